"""What the parser stages work on: descriptions that people wrote, and the network problem that they make together."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.errors import InputError, Problem
from tilewright.hardware.core import Accelerator, Core, single_core
from tilewright.mapping.constraints import Mapping
from tilewright.workload.graph import Workload

if TYPE_CHECKING:
    from tilewright.mapping.data_locality import MemoryReach
    from tilewright.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.workload.onnx.coverage import Coverage


@dataclass(frozen=True)
class Descriptions:
    """Hardware, workload and mapping as they were given, and what was read of them so far.

    A source is a path of a file or of an artifact, the same data as dicts and lists, or the parsed object.
    """

    hardware: "AcceleratorSource | None" = None
    workload: "WorkloadSource | None" = None
    mapping: "MappingSource | None" = None
    dims: tuple[tuple[str, int], ...] = ()
    """Sizes of dynamic ONNX dimensions."""
    accelerator: Accelerator | None = None
    """The hardware, once it is read."""
    network: Workload | None = None
    """The workload, once it is read."""
    coverage: "Coverage | None" = None
    """What of the network is costed."""
    notices: tuple[str, ...] = ()
    """What is legal but unusual."""
    problems: tuple[Problem, ...] = ()
    """What is wrong; told together once everything is read."""

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

    @cached_property
    def core(self) -> Core:
        """The core. Raises InputError if the accelerator has several."""
        return single_core(self.accelerator)


def of_core(workload: Workload, core: Core, mapping: Mapping, **others: Any) -> NetworkProblem:
    """The problem of a network on a given core."""
    return NetworkProblem(workload, Accelerator(core.name, (core,)), mapping, **others)
