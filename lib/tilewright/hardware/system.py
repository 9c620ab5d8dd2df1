"""An accelerator of several cores: the cores with their roles, the links between them, and the memories they share."""

from dataclasses import dataclass
from functools import cached_property

from tilewright.hardware.core import Accelerator, Core, Memory
from tilewright.hardware.interconnect import Link
from tilewright.hardware.top_memories import shared_memory_names, top_memories

COMPUTE, POOLING, SIMD, MEMORY, OFFCHIP = "compute", "pooling", "simd", "memory", "offchip"
"""What a core is for. Only compute cores pass on data of others, unless the file says which do (`routers`)."""


@dataclass(frozen=True)
class CorePlace:
    """A core in an accelerator: what the same core file means in this place."""

    core_id: int
    file_name: str
    """Name of the core file without folder and suffix, unique per file: cores of one file have equal costs."""
    role: str = COMPUTE
    is_router: bool = True
    """Whether data of other cores may pass through it."""
    operator_types: tuple[str, ...] | None = None
    """What it can run, where the accelerator or the core file says so; None: nothing is said, the mapping decides."""
    coordinates: tuple[int, int] | None = None
    """(column, row), where known."""


@dataclass(frozen=True)
class MemoryInstance:
    """A memory at the top of the hierarchy of one or several cores: what a scheduler keeps an account of."""

    memory: Memory
    users: tuple[tuple[int, tuple[str, ...]], ...]
    """(core id, memory operands for which it is the top memory of that core)."""

    @property
    def core_ids(self) -> tuple[int, ...]:
        """The cores that use it."""
        return tuple(core_id for core_id, _ in self.users)


@dataclass(frozen=True)
class MultiCoreAccelerator(Accelerator):
    """Several cores. `cores` and `places` go together, in the order of core ids."""

    places: tuple[CorePlace, ...]
    links: tuple[Link, ...]
    sharing_groups: tuple[tuple[int, ...], ...] = ()
    """Cores (ids) that share their top memories of equal name."""

    @cached_property
    def core_ids(self) -> tuple[int, ...]:
        """Ids of all cores, in rising order."""
        return tuple(place.core_id for place in self.places)

    @cached_property
    def core_of(self) -> dict[int, Core]:
        """Core id -> core."""
        return dict(zip(self.core_ids, self.cores, strict=True))

    @cached_property
    def place_of(self) -> dict[int, CorePlace]:
        """Core id -> its place."""
        return {place.core_id: place for place in self.places}

    @property
    def offchip_core_id(self) -> int | None:
        """Id of the off-chip core; None if there is none."""
        return next((place.core_id for place in self.places if place.role == OFFCHIP), None)

    @property
    def onchip_core_ids(self) -> tuple[int, ...]:
        """Ids of all cores but the off-chip one."""
        return tuple(place.core_id for place in self.places if place.role != OFFCHIP)

    def sharers_of(self, core_id: int) -> tuple[int, ...]:
        """The cores that share memory with a core, itself included."""
        return next((group for group in self.sharing_groups if core_id in group), (core_id,))

    @cached_property
    def distinct_cores(self) -> dict[str, Core]:
        """Core file name -> core, without the off-chip core, in the order of ids."""
        return {place.file_name: self.core_of[place.core_id] for place in self.places if place.role != OFFCHIP}

    @cached_property
    def memory_instances(self) -> tuple[MemoryInstance, ...]:
        """The top memories of all cores, a shared one once, in the order of the first core that uses it."""
        users: dict[tuple[int, str], list[tuple[int, tuple[str, ...]]]] = {}
        memory_of: dict[tuple[int, str], Memory] = {}
        for core_id in self.core_ids:
            sharers = self.sharers_of(core_id)
            shared = shared_memory_names([self.core_of[sharer] for sharer in sharers])
            for memory, operands in top_memories(self.core_of[core_id]):
                key = min(sharers) if memory.name in shared else core_id, memory.name
                users.setdefault(key, []).append((core_id, operands))
                memory_of.setdefault(key, memory)
        return tuple(MemoryInstance(memory_of[key], tuple(found)) for key, found in users.items())
