"""Descriptions that parser stages work on, and the network problem that they make together."""

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
    """Files that people wrote, '' for those that are not known."""

    hardware: str = ""
    mapping: str = ""


@dataclass(frozen=True)
class Descriptions:
    """Hardware, workload and mapping as they were given, and what was read of them so far.

    A source is a path of a file or of an artifact, the same data as dicts and lists, or the parsed object.
    """

    hardware: "AcceleratorSource | None" = None
    workload: "WorkloadSource | None" = None
    mapping: "MappingSource | None" = None
    network_options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen
    """What an ONNX file leaves open: sizes of dynamic dimensions, branches, precision."""
    written: WrittenFiles = WrittenFiles()
    """Where artifacts were given: the files that they were read from, for lines."""
    accelerator: Accelerator | None = None
    """The hardware, once it is read."""
    network: Workload | None = None
    """The workload, once it is read."""
    coverage: "Coverage | None" = None
    """What of the network is costed."""
    notices: tuple[str, ...] = ()
    """What is legal but unusual."""
    problems: tuple[Problem, ...] = ()
    """What is wrong; reported together once everything is read."""

    @property
    def hardware_file(self) -> str:
        """The file that problems with the hardware are told of, '' if it was not given as a file."""
        return self.written.hardware or file_of(self.hardware)

    @property
    def mapping_file(self) -> str:
        """The file that problems with the mapping are told of, '' if it was not given as a file."""
        return self.written.mapping or file_of(self.mapping)

    def checked(self) -> "Descriptions":
        """Itself. Raises InputError with everything that is wrong."""
        if self.problems:
            raise InputError(self.problems)
        return self


@dataclass(frozen=True)
class NetworkProblem:
    """A network to be mapped on a core."""

    workload: Workload
    accelerator: Accelerator
    mapping: Mapping
    memory_reach: "tuple[MemoryReach, ...]" = ()
    """Up to which memory the data of each layer go, in execution order; () for all the way."""
    notices: tuple[str, ...] = ()
    """What is legal but unusual in the descriptions."""
    uncosted: tuple[UncostedWork, ...] | None = None
    """Work of the network that is not costed; found out when None."""

    def __post_init__(self) -> None:
        """Leave the layers to be costed that the core can run: whoever makes a problem, all stages see these alone."""
        if len(self.accelerator.cores) != 1:
            return  # told when the core is asked for
        known = unmodelled_work(self.workload) if self.uncosted is None else self.uncosted
        workload, not_run = restrict_to_core(self.workload, self.core)
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "uncosted", (*not_run, *known))

    @property
    def coverage(self) -> JsonObject:
        """How much of the work of the network is costed, as plain data for the summary."""
        return coverage_of(self.workload, self.uncosted or ())

    def check_complete(self) -> None:
        """Raises InputError with a problem for each operator type whose work is not costed."""
        if self.uncosted:
            place = f"{self.workload.name} on {self.core.name}"
            raise InputError([Problem(f"not costed, which strict forbids: {row.text}", place) for row in self.uncosted])

    def check_layers(self) -> None:
        """Raises InputError if nothing of the network is a layer that the core runs: a result would be of nothing."""
        if any(node.layer is not None for node in self.workload.nodes):
            return
        rows = self.uncosted or ()
        found = "; ".join(row.text for row in rows) or "no operator that computes"
        hint = "; `model: corrected` reads every operator" if any(row.reason == NOT_MODELLED for row in rows) else ""
        message = f"nothing to map, no layer for this core in the network: {found}{hint}"
        raise InputError([Problem(message, f"{self.workload.name} on {self.core.name}")])

    @cached_property
    def core(self) -> Core:
        """The core. Raises InputError if the accelerator has several."""
        return single_core(self.accelerator)


def of_core(workload: Workload, core: Core, mapping: Mapping, **others: Any) -> NetworkProblem:
    """The problem of a network on a given core."""
    return NetworkProblem(workload, Accelerator(core.name, (core,)), mapping, **others)
