"""Descriptions (hardware, workload and mapping), and the network problem that parser stages make from them."""

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
    """Paths of the files that the user wrote; '' if a path is not known."""

    hardware: str = ""
    mapping: str = ""


@dataclass(frozen=True)
class Descriptions:
    """Hardware, workload and mapping as the user gives them, and the objects that the parsers have read from them so
    far.

    `hardware`, `workload` and `mapping` can be paths of files or artifacts, data as dicts and lists, or parsed objects.
    """

    hardware: "AcceleratorSource | None" = None
    """Hardware as the user gives it."""
    workload: "WorkloadSource | None" = None
    """Network as the user gives it."""
    mapping: "MappingSource | None" = None
    """Mapping choices as the user gives them."""
    network_options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen
    """Options for an ONNX file: sizes of dynamic dimensions, branches of If operators, and precision."""
    written: WrittenFiles = WrittenFiles()
    """Paths of the user's files from which the hardware artifact and the mapping artifact were made. Messages refer to
    lines of these files.
    """
    accelerator: Accelerator | None = None
    """Hardware that was read; None before it is read."""
    network: Workload | None = None
    """Workload that was read; None before it is read."""
    coverage: "Coverage | None" = None
    """Coverage of the network: the operators that have a cost model. None before the network is read, and for a network
    that was not read from an ONNX model.
    """
    notices: tuple[str, ...] = ()
    """Notices on unusual content of the inputs."""
    problems: tuple[Problem, ...] = ()
    """Errors found so far, which are reported together after all inputs are read."""

    @property
    def hardware_file(self) -> str:
        """Path of the hardware file, for messages; '' if the hardware is not a file."""
        return self.written.hardware or file_of(self.hardware)

    @property
    def mapping_file(self) -> str:
        """Path of the mapping file, for messages; '' if the mapping is not a file."""
        return self.written.mapping or file_of(self.mapping)

    @property
    def workload_file(self) -> str:
        """Path of the workload file, for messages; '' if the workload is not a file."""
        return file_of(self.workload)

    def checked(self) -> "Descriptions":
        """Unchanged descriptions. Raises InputError with all errors if the descriptions have errors."""
        if self.problems:
            raise InputError(self.problems)
        return self


@dataclass(frozen=True)
class NetworkProblem:
    """Network to be mapped on a core."""

    workload: Workload
    """Network without the layers that the core cannot run."""
    accelerator: Accelerator
    """Accelerator with one core, on which the network is to be mapped."""
    mapping: Mapping
    """Entries of the mapping file."""
    memory_reach: "tuple[MemoryReach, ...]" = ()
    """Outermost memory of each operand, for each layer in execution order; () if all data reach the top memory."""
    notices: tuple[str, ...] = ()
    """Notices on unusual content of the input files."""
    uncosted: tuple[UncostedWork, ...] | None = None
    """Operators without costs: first the layers that the core cannot run, then the operators without a cost model. The
    constructor takes only the operators without a cost model; by default, they are found in `workload`.
    """
    whole: Workload | None = None
    """Network as it was read, including the layers that the core cannot run. The default is the network given as
    `workload`.
    """

    def __post_init__(self) -> None:
        """Removes the layers that the core cannot run, so that all stages see the same layers."""
        if len(self.accelerator.cores) != 1:
            return  # `core` raises the error
        known = unmodelled_work(self.workload) if self.uncosted is None else self.uncosted
        if self.whole is None:
            object.__setattr__(self, "whole", self.workload)
        workload, not_run = restrict_to_core(self.workload, self.core)
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "uncosted", (*not_run, *known))

    @property
    def coverage(self) -> JsonObject:
        """Share of the network's operations whose costs are computed, as plain data for the summary."""
        return coverage_of(self.workload, self.uncosted or ())

    def check_complete(self) -> None:
        """Raise InputError with a problem for each operator type whose costs are not computed."""
        if self.uncosted:
            place = f"{self.workload.name} on {self.core.name}"
            raise InputError(
                Problem(f"has operators without costs, which the option strict forbids: {row.text}", place)
                for row in self.uncosted
            )

    def check_layers(self) -> None:
        """Raise InputError if the core can run no layer of the network, because the result would be empty."""
        if any(node.layer is not None for node in self.workload.nodes):
            return
        rows = self.uncosted or ()
        found = "; ".join(row.text for row in rows) or "no operator that computes"
        hint = "; `model: corrected` reads every operator" if any(row.reason == NOT_MODELLED for row in rows) else ""
        message = f"nothing to map, because the network has no layer for this core: {found}{hint}"
        raise InputError([Problem(message, f"{self.workload.name} on {self.core.name}")])

    @cached_property
    def core(self) -> Core:
        """Core of the accelerator. Raises InputError if the accelerator has several cores."""
        return single_core(self.accelerator)


def of_core(workload: Workload, core: Core, mapping: Mapping, **others: Any) -> NetworkProblem:
    """Problem of mapping a network on one core. `others` are values of further fields of NetworkProblem, by name."""
    return NetworkProblem(workload, Accelerator(core.name, (core,)), mapping, **others)
