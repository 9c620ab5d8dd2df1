"""Descriptions on which parser stages work, and the network problem that they make together."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.files import file_of
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.hardware.core import Accelerator, Core, single_core
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.runnable import NOT_MODELLED, UncostedWork, coverage_of, restrict_to_core, unmodelled_work
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.mapping.locality import MemoryReach
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.workload.onnx.coverage import Coverage


@dataclass(frozen=True)
class WrittenFiles:
    """Files that users wrote; '' if not known."""

    hardware: str = ""
    mapping: str = ""


@dataclass(frozen=True)
class Descriptions:
    """Hardware, workload and mapping as given, and the objects that were read from them so far.

    A source is a path of a file or of an artifact, the same data as dicts and lists, or the parsed object.
    """

    hardware: "AcceleratorSource | None" = None
    workload: "WorkloadSource | None" = None
    mapping: "MappingSource | None" = None
    network_options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen
    """Options for what an ONNX file leaves open: sizes of dynamic dimensions, branches, precision."""
    written: WrittenFiles = WrittenFiles()
    """Files from which the given artifacts were read, for line numbers in messages."""
    accelerator: Accelerator | None = None
    """Hardware; None until it is read."""
    network: Workload | None = None
    """Workload; None until it is read."""
    coverage: "Coverage | None" = None
    """Coverage of the network."""
    notices: tuple[str, ...] = ()
    """Notices on unusual content."""
    problems: tuple[Problem, ...] = ()
    """Problems; they are reported together once everything is read."""

    @property
    def hardware_file(self) -> str:
        """File named in problems of the hardware; '' if it was not given as a file."""
        return self.written.hardware or file_of(self.hardware)

    @property
    def mapping_file(self) -> str:
        """File named in problems of the mapping; '' if it was not given as a file."""
        return self.written.mapping or file_of(self.mapping)

    def checked(self) -> "Descriptions":
        """Descriptions without a problem. Raises InputError with all problems."""
        if self.problems:
            raise InputError(self.problems)
        return self


@dataclass(frozen=True)
class NetworkProblem:
    """Network to be mapped on a core."""

    workload: Workload
    accelerator: Accelerator
    mapping: Mapping
    memory_reach: "tuple[MemoryReach, ...]" = ()
    """Outermost memories of the data of each layer, in execution order; () if all data reach the top memory."""
    notices: tuple[str, ...] = ()
    """Notices on unusual content of the descriptions."""
    uncosted: tuple[UncostedWork, ...] | None = None
    """Work of the network without costs; None: it is determined here."""
    whole: Workload | None = None
    """Network as it was read, with the layers that the core cannot run; None at first."""

    def __post_init__(self) -> None:
        """Keep only the layers that the core can run, so that all stages see the same layers."""
        if len(self.accelerator.cores) != 1:
            return  # told when the core is asked for
        known = unmodelled_work(self.workload) if self.uncosted is None else self.uncosted
        if self.whole is None:
            object.__setattr__(self, "whole", self.workload)
        workload, not_run = restrict_to_core(self.workload, self.core)
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "uncosted", (*not_run, *known))

    @property
    def coverage(self) -> JsonObject:
        """Share of the work of the network that has costs, as plain data for the summary."""
        return coverage_of(self.workload, self.uncosted or ())

    def check_complete(self) -> None:
        """Raise InputError with a problem for each operator type with work without costs."""
        if self.uncosted:
            place = f"{self.workload.name} on {self.core.name}"
            raise InputError([Problem(f"not costed, which strict forbids: {row.text}", place) for row in self.uncosted])

    def check_layers(self) -> None:
        """Raise InputError if the core runs no layer of the network, since the result would be empty."""
        if any(node.layer is not None for node in self.workload.nodes):
            return
        rows = self.uncosted or ()
        found = "; ".join(row.text for row in rows) or "no operator that computes"
        hint = "; `model: corrected` reads every operator" if any(row.reason == NOT_MODELLED for row in rows) else ""
        message = f"nothing to map, no layer for this core in the network: {found}{hint}"
        raise InputError([Problem(message, f"{self.workload.name} on {self.core.name}")])

    @cached_property
    def core(self) -> Core:
        """Core. Raises InputError if the accelerator has several."""
        return single_core(self.accelerator)


def of_core(workload: Workload, core: Core, mapping: Mapping, **others: Any) -> NetworkProblem:
    """Problem of a network on a given core."""
    return NetworkProblem(workload, Accelerator(core.name, (core,)), mapping, **others)
