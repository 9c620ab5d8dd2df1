"""Accelerator of several cores: the cores with their roles, the links, the shared memories, and the area.

A link is one resource: all transfers over the link share its bandwidth, whichever cores send and receive. A directed
wire carries the transfers of one pair of cores. A bus, or the single port of a DRAM, carries the transfers of many
pairs.

Files can omit areas, as most files of the reference do, or give areas without a unit. Results therefore give the area
of a core or accelerator only if every part has an area in mm2. There is one exception: the area of a core with an
in-memory array leaves out memories without area, and a note names these memories.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.profile import CORRECTED, ModelProfile
from tilewright.hardware.array_model import array_model, total
from tilewright.hardware.core import NO_UNIT, Accelerator, Core, Memory
from tilewright.hardware.hierarchy import instance_count, shared_memory_names, top_memories

POINT_TO_POINT, BUS, OFFCHIP_PORT = "link", "bus", "port"
"""Kinds of links. OFFCHIP_PORT is a port over which several cores reach the off-chip core."""


@dataclass(frozen=True)
class Link:
    """Link between cores. All pairs of cores that use the link share its bandwidth."""

    name: str
    kind: str
    edges: tuple[tuple[int, int], ...]
    """Pairs (sending core, receiving core) that the link carries, by core id."""
    bandwidth_bits_per_cycle: int | None
    """Bandwidth in bits per cycle. None means infinite bandwidth: a transfer takes no time."""
    energy_pj_per_bit: float
    unit_energy_pj_per_cycle: float | None = None
    """Energy of a busy cycle (`unit_energy_cost` in the file), from which the energy per bit is computed.

    None if the file gives the energy per bit itself.
    """
    is_multicast: bool = field(default=False, metadata=LEFT_OUT)
    """True if the link carries data only once for several cores that receive the data together (`multicast` in the
    file)."""

    @property
    def core_ids(self) -> tuple[int, ...]:
        """Ids of the cores that the link joins, in rising order."""
        return tuple(sorted({core_id for edge in self.edges for core_id in edge}))

    @property
    def is_half_duplex(self) -> bool:
        """True if, for some pair of cores, transfers in both directions share the link."""
        return any((receiver, sender) in self.edges for sender, receiver in self.edges)

    def transfer_cycles(self, bits: int) -> int:
        """Number of cycles in which the link transfers `bits` at full width, rounded up."""
        return 0 if self.bandwidth_bits_per_cycle is None else -(-bits // self.bandwidth_bits_per_cycle)


def energy_per_bit_pj(unit_energy_pj_per_cycle: float, bandwidth_bits_per_cycle: int | None) -> float:
    """Energy of a bit on a link, computed from the energy of a busy cycle. Each busy cycle counts as full: the number
    of its bits is the width of the link.

    The reference tool multiplies the energy of a cycle by the cycles of a transfer. This product includes the unused
    part of the last cycle, and cycles in which the link waits for a slower link. The model of tilewright includes
    neither. A link of infinite bandwidth is never busy and needs no energy.
    """
    return 0.0 if bandwidth_bits_per_cycle is None else unit_energy_pj_per_cycle / bandwidth_bits_per_cycle


def all_pairs(core_ids: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Every ordered pair of different cores."""
    return tuple((sender, receiver) for sender in core_ids for receiver in core_ids if sender != receiver)


BY_CORE_IDS, BY_LOAD = "core_ids", "load"
"""Rules for the choice among equally wide paths with the same number of links. BY_CORE_IDS takes the path whose list of
core ids is first in lexicographic order. BY_LOAD takes the path whose most loaded link has the smallest load. The load
of a link is the number of already chosen paths over the link, divided by the width of the link.
"""
COMPUTE, POOLING, SIMD, MEMORY, OFFCHIP = "compute", "pooling", "simd", "memory", "offchip"
"""Roles of cores. By default, data of other cores can pass through compute cores, and through memory cores that share a
memory with a compute core. The key `routers` of the file changes this rule."""


@dataclass(frozen=True)
class CorePlace:
    """Core of an accelerator, with its id, its file and its role."""

    core_id: int
    file_name: str
    """Name of the core file without folder and suffix. If different files have the same name, folders or the suffix are
    added. Cores with the same file have equal costs."""
    role: str = COMPUTE
    is_router: bool = True
    """True if data of other cores can pass through the core."""
    operator_types: tuple[str, ...] | None = None
    """Operators that the core can run, if the accelerator or the core file gives them.

    None if neither file gives operators; the mapping file then decides.
    """
    coordinates: tuple[int, int] | None = None
    """Position (column, row) of the core; None if unknown."""


MemoryPlace = tuple[int, str]
"""Memory of a core, as (core id, name of the memory)."""


def memory_text(place: MemoryPlace) -> str:
    """Text of a memory as files name it: `3.sram`."""
    return f"{place[0]}.{place[1]}"


@dataclass(frozen=True)
class MemoryInstance:
    """Outermost memory of one or several cores. Schedulers track the content of these memories."""

    memory: Memory
    users: tuple[tuple[int, tuple[str, ...]], ...]
    """Pairs (core id, memory operands of this core whose topmost memory is this memory)."""
    names: tuple[str, ...]
    """Names that the cores of `users` give to the memory, in the order of `users`."""

    @property
    def core_ids(self) -> tuple[int, ...]:
        """Ids of the cores that use the memory."""
        return tuple(core_id for core_id, _ in self.users)


@dataclass(frozen=True)
class MultiCoreAccelerator(Accelerator):
    """Several cores. `cores` and `places` have one item per core, in the order of core ids."""

    places: tuple[CorePlace, ...]
    links: tuple[Link, ...]
    sharing_groups: tuple[tuple[int, ...], ...] = ()
    """Groups of cores, as core ids. If all cores of a group have a top memory of the same name, they share this
    memory."""
    shared_memories: tuple[tuple[MemoryPlace, ...], ...] = ()
    """Groups of top memories of different cores. Each group is one physical memory. Cores that share only such a memory
    can have links to one another, but cores of the same group in `sharing_groups` cannot."""
    clock_frequency_mhz: float = field(default=0.0, metadata=LEFT_OUT)
    """Clock of all cores; 0 if not given."""
    equal_paths: str = field(default=BY_CORE_IDS, metadata=LEFT_OUT)
    """Choice among equally wide and equally short paths: BY_CORE_IDS or BY_LOAD."""
    forwards_constants: bool = field(default=False, metadata=LEFT_OUT)
    """True if a core can send weights and network inputs to other cores while it holds them (`forwarding` in the file).
    """

    @cached_property
    def core_ids(self) -> tuple[int, ...]:
        """Ids of all cores, in rising order."""
        return tuple(place.core_id for place in self.places)

    @cached_property
    def core_of(self) -> dict[int, Core]:
        """Cores by id."""
        return dict(zip(self.core_ids, self.cores, strict=True))

    @cached_property
    def place_of(self) -> dict[int, CorePlace]:
        """Core id -> place of the core in the accelerator."""
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
        """Ids of the cores in the sharing group of a core, including this core. For a core outside all
        `sharing_groups`, the result is only its own id."""
        return next((group for group in self.sharing_groups if core_id in group), (core_id,))

    @cached_property
    def distinct_cores(self) -> dict[str, Core]:
        """Cores by core file name, without the off-chip core, in the order of ids."""
        return {place.file_name: self.core_of[place.core_id] for place in self.places if place.role != OFFCHIP}

    @cached_property
    def memory_instances(self) -> tuple[MemoryInstance, ...]:
        """Top memories of all cores, in the order of the first core that uses them. A shared memory appears once."""
        users: dict[MemoryPlace, list[tuple[int, tuple[str, ...]]]] = {}
        names: dict[MemoryPlace, list[str]] = {}
        memory_of: dict[MemoryPlace, Memory] = {}
        first_of = {place: group[0] for group in self.shared_memories for place in group}
        for core_id in self.core_ids:
            sharers = self.sharers_of(core_id)
            shared = shared_memory_names([self.core_of[sharer] for sharer in sharers])
            for memory, operands in top_memories(self.core_of[core_id]):
                key = min(sharers) if memory.name in shared else core_id, memory.name
                key = first_of.get((core_id, memory.name), key)
                names.setdefault(key, []).append(memory.name)
                users.setdefault(key, []).append((core_id, operands))
                memory_of.setdefault(key, memory)
        return tuple(MemoryInstance(memory_of[key], tuple(found), tuple(names[key])) for key, found in users.items())


IN_CELLS = "I2"
"""Memory operand that the cells of an in-memory array hold."""
CELLS = "cells"
"""Name of the memory that consists of the cells of an in-memory array. The component with the area of the cells has the
same name."""
LEFT_OUT_OF_AREA = "not counted, no area given: "
"""First words of the note on an area that leaves out memories."""
UNITS = "units"
"""Name of the units of the array, in lists of the parts of a core."""
WITHOUT_UNIT = "area without a unit"
"""First words of the note on an area whose unit is not mm2."""


@dataclass(frozen=True)
class Area:
    """Area on the chip, or the reason why the area is unknown."""

    mm2: float | None
    """Area in mm2; None if the area is unknown. `note` then has the reason."""
    note: str
    """Text on the parts that the area lacks; '' if the area is known and complete.

    If the area is unknown, the text names the parts without area, or says that areas have no unit. If the area is
    known, the text names the parts that the area leaves out.
    """

    @property
    def lacks_unit(self) -> bool:
        """True if every part has an area, but some areas are not in mm2."""
        return lacks_unit(self.note)


def lacks_unit(area_note: str) -> bool:
    """True if `area_note`, the note of an area in a summary, says that the areas have no unit."""
    return area_note.startswith(WITHOUT_UNIT)


def core_area(core: Core, profile: ModelProfile = CORRECTED) -> Area:
    """Area of the array and of all instances of all memories on the chip.

    For a core with an in-memory array, the area is the sum of `area_breakdown_mm2`. As in the reference, this sum
    leaves out memories whose area the file does not give. The note names these memories.
    """
    if parts := area_breakdown_mm2(core, profile):
        without = ", ".join(_without_number(core))
        note = f"{LEFT_OUT_OF_AREA}{without}" if without else ""
        return Area(total(total(areas.values()) for areas in parts.values()), note)
    bare = [""] if core.area_unit == NO_UNIT else []
    return _area(_core_area_mm2(core), ", ".join(parts_without_area(core)), bare)


def area_breakdown_mm2(core: Core, profile: ModelProfile) -> dict[str, dict[str, float]]:
    """Areas of a core with an in-memory array: `array` by component, `memories` by name; {} for other cores.

    The reference counts one instance of each memory. The reference counts the cells twice: as a memory, and as a part
    of the array. A model profile that repairs fault B15 (docs/model.md) counts every instance, and counts the cells
    only as a part of the array.
    """
    array = core.operational_array
    circuits = array_model(array).area_breakdown_mm2(array)
    if not circuits:
        return {}
    memories = {
        memory.name: memory.area_mm2 * (instance_count(core, index) if profile.in_memory_active_parts else 1)
        for index, memory in enumerate(core.memories)
    }
    cells = total(memory.area_mm2 * array.unit_count for memory in core.memories if memory.name == CELLS)
    if profile.in_memory_active_parts:
        memories.pop(CELLS, None)
    return {"array": {CELLS: cells, **circuits}, "memories": memories}


def system_area(accelerator: MultiCoreAccelerator) -> Area:
    """Area of all cores on the chip. A memory that cores share counts once; links have no area."""
    missing: dict[str, list[str]] = {}
    left_out: dict[str, list[str]] = {}
    bare: dict[str, None] = {}
    area = 0.0
    for place in accelerator.places:
        if place.role == OFFCHIP:
            continue
        core = accelerator.core_of[place.core_id]
        area += _core_area_mm2(core, is_part=True)
        lacks_units = place.role != MEMORY and _array_area_mm2(core) is None
        parts = [UNITS] * lacks_units + _memories_without_area(core, is_part=True)
        if parts:
            missing[place.file_name] = parts
        elif place.role != MEMORY and (uncounted := _without_number(core, is_part=True)):
            left_out[place.file_name] = uncounted
        if core.area_unit == NO_UNIT:
            bare[place.file_name] = None
    for instance in accelerator.memory_instances:
        for core_id, name in list(zip(instance.core_ids, instance.names, strict=True))[1:]:
            core = accelerator.core_of[core_id]
            index = next(place for place, memory in enumerate(core.memories) if memory.name == name)
            area -= core.memories[index].area_mm2 * instance_count(core, index)
    found = _area(area, _by_core(missing), list(bare))
    return replace(found, note=LEFT_OUT_OF_AREA + _by_core(left_out)) if left_out and found.mm2 is not None else found


def _by_core(parts: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in parts.items())


def on_chip_memories(core: Core, is_part: bool = False) -> tuple[int, ...]:
    """Indices of the memories that are on the chip. Only the areas of these memories count.

    In an accelerator of several cores (`is_part`), the off-chip memory is a separate core, and all memories of other
    cores are on the chip. In an accelerator of one core, the outermost memory of an operand (the DRAM) is off the chip.
    There are two exceptions. An outermost memory is on the chip if its operands have no other memory. An outermost
    memory is also on the chip if the file gives its area, such as the area of an interface.
    """
    indexes = range(len(core.memories))
    return tuple(
        index for index in indexes if is_part or core.memories[index].area_mm2 > 0 or not _is_outermost(core, index)
    )


def parts_without_area(core: Core) -> tuple[str, ...]:
    """Names of those parts of a core for which the hardware file gives no area. UNITS stands for the units of the
    array; all other names are names of memories.
    """
    missing = [] if _array_area_mm2(core) is not None else [UNITS]
    return (*missing, *_memories_without_area(core))


def _memories_without_area(core: Core, is_part: bool = False) -> list[str]:
    if array_model(core.operational_array).area_breakdown_mm2(core.operational_array):
        return []
    return _without_number(core, is_part)


def _without_number(core: Core, is_part: bool = False) -> list[str]:
    memories = [core.memories[index] for index in on_chip_memories(core, is_part)]
    return [memory.name for memory in memories if memory.area_mm2 <= 0]


def _area(amount: float, missing: str, bare: list[str]) -> Area:
    """Area of `amount` mm2, or an unknown area with the reason.

    `missing` is a text that names the parts without area; '' if all parts have an area. `bare` has the names of the
    cores whose areas have no unit. For the single core of an accelerator, '' stands in place of the name.
    """
    if missing:
        return Area(None, f"area not given for {missing}")
    if bare:
        cores = ", ".join(filter(None, bare))
        said = f" for {cores}" if cores else f" ({float(amount):.6g})"
        return Area(None, f"{WITHOUT_UNIT}{said}, so it is not compared; if it is in mm2, write area_unit: mm2")
    return Area(float(amount), "")


def _core_area_mm2(core: Core, is_part: bool = False) -> float:
    area = _array_area_mm2(core) or 0.0
    for index in on_chip_memories(core, is_part):
        area += core.memories[index].area_mm2 * instance_count(core, index)
    return area


def _array_area_mm2(core: Core) -> float | None:
    return array_model(core.operational_array).area_mm2(core.operational_array)


def _is_outermost(core: Core, index: int) -> bool:
    above = {operand for memory in core.memories[index + 1 :] for operand in memory.operands}
    below = {operand for memory in core.memories[:index] for operand in memory.operands}
    held = set(core.memories[index].operands)
    return not held & above and bool(held & below)
