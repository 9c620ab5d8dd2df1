"""Descriptions (hardware, workload and mapping), which parser stages read, and the network problem made of these
inputs.
"""

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

    `hardware`, `workload` and `mapping` are paths of files or artifacts, data as dicts and lists, or parsed objects.
    """

    hardware: "AcceleratorSource | None" = None
    workload: "WorkloadSource | None" = None
    mapping: "MappingSource | None" = None
    network_options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen
    """Options for an ONNX file: sizes of dynamic dimensions, branches of If operators, and precision."""
    written: WrittenFiles = WrittenFiles()
    """Files of the user from which the artifacts were made, for line numbers in messages."""
    accelerator: Accelerator | None = None
    """Hardware that was read; None before it is read."""
    network: Workload | None = None
    """Workload that was read; None before it is read."""
    coverage: "Coverage | None" = None
    """Coverage of the network: the operators that have a cost model. None before the network is read."""
    notices: tuple[str, ...] = ()
    """Notices on unusual content."""
    problems: tuple[Problem, ...] = ()
    """Errors found so far. They are reported together after all inputs are read."""

    @property
    def hardware_file(self) -> str:
        """Path of the hardware file, for messages; '' if the hardware is not a file."""
        return self.written.hardware or file_of(self.hardware)

    @property
    def mapping_file(self) -> str:
        """Path of the mapping file, for messages; '' if the mapping is not a file."""
        return self.written.mapping or file_of(self.mapping)

    def checked(self) -> "Descriptions":
        """Unchanged descriptions, if they have no errors. Otherwise, InputError with all errors is raised."""
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
    """Outermost memories that the data of each layer reach, in execution order of the layers; () if all data reach the
    top memory.
    """
    notices: tuple[str, ...] = ()
    """Notices on unusual content of the inputs."""
    uncosted: tuple[UncostedWork, ...] | None = None
    """Parts of the network whose costs are not computed. None: these parts are determined when the object is made."""
    whole: Workload | None = None
    """Network as it was read, including the layers that the core cannot run. None: this field is set when the object is
    made.
    """

    def __post_init__(self) -> None:
        """Keep only the layers that the core can run, so that all stages see the same layers."""
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
        """Share of the network's work with computed costs, as plain data for the summary."""
        return coverage_of(self.workload, self.uncosted or ())

    def check_complete(self) -> None:
        """Raise InputError with a problem for each operator type whose costs are not computed."""
        if self.uncosted:
            place = f"{self.workload.name} on {self.core.name}"
            raise InputError(
                [Problem(f"has work without costs, which strict forbids: {row.text}", place) for row in self.uncosted]
            )

    def check_layers(self) -> None:
        """Raise InputError if the core cannot run any layer of the network, because the result would be empty."""
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
    """Problem of mapping a network on a core."""
    return NetworkProblem(workload, Accelerator(core.name, (core,)), mapping, **others)
