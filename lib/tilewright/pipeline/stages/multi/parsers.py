"""Stages that read the network and the mapping file of a run on several cores."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.base.errors import InputError
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import MODEL, SystemProblem, system_problem
from tilewright.pipeline.stages.workload_parsers import NetworkParser
from tilewright.workload.graph import Workload
from tilewright.workload.source import LAYERS, NETWORK, read_layers, read_network

if TYPE_CHECKING:
    from tilewright.workload.onnx.coverage import Coverage


@dataclass(frozen=True)
class StreamONNXModelParser(NetworkParser):
    """Reads an ONNX model from a file, a model in memory, or an artifact. All operators and the tensors between them
    are read.

    Networks are always read with the model profile `corrected`, even if costs are computed with another profile. Other
    profiles read only convolutions and matrix products, and no tensors between layers.

    Example: {set: StreamONNXModelParser, parameters: {network_name: mine}}
    """

    network_name: str = ""
    """Name of the network; default: the name of the file."""

    stands_for = "ONNXModelParserStage; lists of stages can also use the name StreamONNXModelParserStage"

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """Pair (network in an ONNX model, coverage of the network). Raises InputError if the model has errors."""
        if kind != NETWORK:
            message = "StreamONNXModelParser reads ONNX models; UserDefinedModelParser reads descriptions of layers"
            raise InputError(message)
        return read_network(item.workload, MODEL, item.network_options, self.network_name)


@dataclass(frozen=True)
class UserDefinedModelParser(NetworkParser):
    """Reads a network that is described layer by layer, in a YAML file, a list of dicts, or an artifact. The tensors
    between the layers are read too.

    Example: {replace: StreamONNXModelParser, stage: UserDefinedModelParser}
    """

    stands_for = "UserDefinedModelParserStage"

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """Pair (network in a YAML file or a list, None). The coverage is None, because it is not known. Raises
        InputError if the source has errors.
        """
        if kind != LAYERS:
            message = "UserDefinedModelParser reads descriptions of layers; StreamONNXModelParser reads ONNX models"
            raise InputError(message)
        return read_layers(item.workload, notices, MODEL), None


@dataclass(frozen=True)
class SystemMappingParser(Change):
    """Reads the mapping file, and combines it with the network and the cores that other parsers have read.

    If a pipeline does not have this stage, the stage is added after the other parsers. Pipelines for Stream do not have
    this stage, because in Stream the other parsers read the mapping file.

    Example: [AcceleratorParser, StreamONNXModelParser, SystemMappingParser, GenerateCNWorkloadHybrid, IntraCoreMapping,
    InterCoreMapping]
    """

    takes = Descriptions
    gives = SystemProblem
    stands_for = "reading the mapping file, a part of ONNXModelParserStage; in later versions: MappingParserStage"

    def change(self, item: Descriptions) -> SystemProblem:
        """Network with cores and mapping, made from the descriptions. Raises InputError with all errors of all
        descriptions.
        """
        return system_problem(item)
