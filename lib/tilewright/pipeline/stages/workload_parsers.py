"""Stages that read the network: WorkloadParser for lists of layers, and ONNXModelParser for ONNX models."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.base.errors import InputError
from tilewright.base.profile import ModelChoice
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.workload.graph import Workload
from tilewright.workload.source import (
    LAYERS,
    NETWORK,
    PARSED,
    kind_of_source,
    read_layers,
    read_network,
    read_parsed,
    refuse_options,
)

if TYPE_CHECKING:
    from tilewright.workload.onnx.coverage import Coverage


@dataclass(frozen=True)
class NetworkParser(Change):
    """Base class of the stages that read the network. The method `read` of a subclass reads the network from its kind
    of source, such as an ONNX model.
    """

    takes = Descriptions
    gives = Descriptions

    def change(self, item: Descriptions) -> Descriptions:
        """Descriptions with the network that was read. Errors in the network are reported together with errors in
        hardware and mapping.
        """
        notices: list[str] = []
        try:
            if item.workload is None:
                raise InputError("no workload is given")
            kind = kind_of_source(item.workload)
            refuse_options(item.workload, item.network_options)
            network, coverage = (read_parsed(item.workload), None) if kind == PARSED else self.read(item, kind, notices)
        except InputError as error:
            return replace(item, problems=(*item.problems, *error.problems))
        return replace(item, network=network, coverage=coverage, notices=(*item.notices, *notices))

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """Pair (network, coverage of the network), read from a source of the kind `kind`. The coverage is None if it is
        not known. Notices on the source are appended to `notices`. Raises InputError if the source has errors.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class WorkloadParser(ModelChoice, NetworkParser):
    """Reads a network that is described layer by layer: a YAML file, a list of dicts, or an artifact.

    With the model profile `corrected`, the network also has the tensors between layers. Runs on several cores need
    these tensors.

    Example: {replace: ONNXModelParser, stage: WorkloadParser}
    """

    stands_for = "WorkloadParserStage"

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """Pair (network in a YAML file or a list, None). The coverage (the operators that have costs) is None, because
        it is not known here. Raises InputError if the source has errors.
        """
        if kind != LAYERS:
            raise InputError("WorkloadParser reads YAML files and lists of layers; ONNXModelParser reads ONNX models")
        return read_layers(item.workload, notices, self.model), None


@dataclass(frozen=True)
class ONNXModelParser(ModelChoice, NetworkParser):
    """Reads an ONNX model: a file, a model in memory, or an artifact.

    The model profile decides which loop dimensions are height and width, and which operators are layers.

    Example: {set: ONNXModelParser, parameters: {model: corrected}}
    """

    network_name: str = ""
    """Name of the network; default: the name of the file."""

    stands_for = "ONNXModelParserStage"

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """Pair (network in an ONNX model, coverage of the network). Raises InputError if the model has errors."""
        if kind != NETWORK:
            raise InputError("ONNXModelParser reads ONNX models; WorkloadParser reads YAML files and lists of layers")
        return read_network(item.workload, self.model, item.network_options, self.network_name, notices)
