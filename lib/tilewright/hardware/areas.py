"""The area of cores and accelerators. Files may leave areas out, as those of the reference mostly do: an area is given
only where every part has one, and a sum over some of the parts is none."""

from dataclasses import dataclass

from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.hardware.system import MEMORY, OFFCHIP, MultiCoreAccelerator

UNITS = "units"
"""What the units of an array are called among the parts of a core."""


@dataclass(frozen=True)
class Area:
    """An area on the chip, or what it lacks."""

    mm2: float | None
    """None where a part has no area."""
    note: str
    """In words which parts have none; '' if the area is known."""


def core_area(core: Core) -> Area:
    """The area of the array and of all instances of all memories. Memories off the chip have none and need none."""
    return _area(_core_area_mm2(core), ", ".join(parts_without_area(core)))


def system_area(accelerator: MultiCoreAccelerator) -> Area:
    """The area of all cores on the chip. A memory that cores share counts once; links have no area."""
    missing: dict[str, list[str]] = {}
    area = 0.0
    for place in accelerator.places:
        if place.role == OFFCHIP:
            continue
        core = accelerator.core_of[place.core_id]
        area += _core_area_mm2(core)
        lacks_units = place.role != MEMORY and _array_area_mm2(core) is None
        parts = [UNITS] * lacks_units + [memory.name for memory in core.memories if memory.area_mm2 <= 0]
        if parts:
            missing[place.file_name] = parts
    for instance in accelerator.memory_instances:
        for core_id in instance.core_ids[1:]:
            core = accelerator.core_of[core_id]
            index = next(place for place, memory in enumerate(core.memories) if memory.name == instance.memory.name)
            area -= core.memories[index].area_mm2 * instance_count(core, index)
    return _area(area, "; ".join(f"{name}: {', '.join(parts)}" for name, parts in missing.items()))


def parts_without_area(core: Core) -> tuple[str, ...]:
    """Names of what has no area in the hardware file: memories, and UNITS for those of the array.

    A memory above which no operand has another one is off the chip and needs none; if it is the only one of its
    operands it counts.
    """
    missing = [] if _array_area_mm2(core) is not None else [UNITS]
    for index, memory in enumerate(core.memories):
        if memory.area_mm2 <= 0 and not _is_outermost(core, index):
            missing.append(memory.name)
    return tuple(missing)


def _area(mm2: float, missing: str) -> Area:
    return Area(None, f"area not given: none for {missing}") if missing else Area(float(mm2), "")


def _core_area_mm2(core: Core) -> float:
    area = _array_area_mm2(core) or 0.0
    for index, memory in enumerate(core.memories):
        area += memory.area_mm2 * instance_count(core, index)
    return area


def _array_area_mm2(core: Core) -> float | None:
    return array_model(core.operational_array).area_mm2(core.operational_array)


def _is_outermost(core: Core, index: int) -> bool:
    above = {operand for memory in core.memories[index + 1 :] for operand in memory.operands}
    below = {operand for memory in core.memories[:index] for operand in memory.operands}
    held = set(core.memories[index].operands)
    return not held & above and bool(held & below)
