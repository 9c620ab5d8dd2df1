"""The stages that read the network: WorkloadParser for descriptions of layers, ONNXModelParser for ONNX models."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.errors import InputError, Problem
from tilewright.profile import ModelChoice, profile_by_name
from tilewright.stages.base import Change
from tilewright.stages.descriptions import Descriptions
from tilewright.unused import unused_option
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import ASSUMED, NetworkOptions
from tilewright.workload.source import LAYERS, NETWORK, PARSED, kind_of_source, read_layers, read_network, read_parsed

if TYPE_CHECKING:
    from tilewright.workload.onnx.coverage import Coverage


@dataclass(frozen=True)
class NetworkParser(Change):
    """Base of the stages that read the network; a subclass says which sources it reads, and how."""

    takes = Descriptions
    gives = Descriptions

    def change(self, item: Descriptions) -> Descriptions:
        """The descriptions with their network. Problems are told together with those of the other descriptions."""
        notices: list[str] = []
        try:
            if item.workload is None:
                raise InputError("no workload is given")
            kind = kind_of_source(item.workload)
            if kind != NETWORK:
                _refuse_options(item)
            network, coverage = (read_parsed(item.workload), None) if kind == PARSED else self.read(item, kind, notices)
        except InputError as error:
            return replace(item, problems=(*item.problems, *error.problems))
        return replace(item, network=network, coverage=coverage, notices=(*item.notices, *notices))

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """The network of a source of that kind, and what of it is costed where that is known. Raises InputError."""
        raise NotImplementedError


def _refuse_options(item: Descriptions) -> None:
    """Raises InputError for options that only an ONNX file has a use for."""
    given, default = item.network_options, NetworkOptions()
    names = {"dim": "dims", "input-shape": "input_shapes", "branch": "branches", "precision": "precision"}
    file = str(item.workload) if isinstance(item.workload, Path) else ""
    message = "says what an ONNX file leaves open, and this workload is none"
    problems = [
        Problem(message, file=file, path=option)
        for option, name in names.items()
        if getattr(given, name) != getattr(default, name)
    ]
    if problems:
        raise InputError(problems)


@dataclass(frozen=True)
class WorkloadParser(ModelChoice, NetworkParser):
    """Reads a network that is described layer by layer: a YAML file, a list of dicts, or an artifact.

    The profile `corrected` adds the tensors between layers, which several cores need.

    Example: {replace: ONNXModelParser, stage: WorkloadParser}
    """

    stands_for = "WorkloadParserStage"

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """The network of a YAML file or of a list. Raises InputError."""
        if kind != LAYERS:
            raise InputError("WorkloadParser reads YAML files and lists of layers; ONNXModelParser reads ONNX models")
        return read_layers(item.workload, notices, self.model), None


@dataclass(frozen=True)
class ONNXModelParser(ModelChoice, NetworkParser):
    """Reads an ONNX model: a file, a model in memory, or an artifact.

    The model profile decides how height and width are read, and which operators are layers.

    Example: {set: ONNXModelParser, parameters: {model: corrected}}
    """

    network_name: str = ""
    """Name of the network; by default that of the file."""

    stands_for = "ONNXModelParserStage"

    def read(self, item: Descriptions, kind: str, notices: list[str]) -> "tuple[Workload, Coverage | None]":
        """The network of an ONNX model. Raises InputError."""
        if kind != NETWORK:
            raise InputError("ONNXModelParser reads ONNX models; WorkloadParser reads YAML files and lists of layers")
        precision = item.network_options.precision
        if precision != ASSUMED and not profile_by_name(self.model).model_every_operator:
            why = f"has no effect under model {self.model}, which counts 8 bits as zigzag-dse does; use model corrected"
            notices.append(unused_option("precision", why, precision))
        return read_network(item.workload, self.model, item.network_options, self.network_name)
