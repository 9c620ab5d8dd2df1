"""The area of an accelerator of several cores, and whether all of it is known."""

from tilewright.hardware.hierarchy import core_area_mm2, instance_count
from tilewright.hardware.system import MEMORY, OFFCHIP, MultiCoreAccelerator


def system_area(accelerator: MultiCoreAccelerator) -> tuple[float, str]:
    """(Area of all cores on the chip in mm², in words what of it is not given, '' if nothing is missing).

    A memory that cores share counts once. Links have no area.
    """
    missing: dict[str, list[str]] = {}
    area = 0.0
    for place in accelerator.places:
        if place.role == OFFCHIP:
            continue
        core = accelerator.core_of[place.core_id]
        area += core_area_mm2(core)
        lacks_units = place.role != MEMORY and core.operational_array.unit_area_mm2 <= 0
        parts = ["units"] * lacks_units + [memory.name for memory in core.memories if memory.area_mm2 <= 0]
        if parts:
            missing[place.file_name] = parts
    for instance in accelerator.memory_instances:
        for core_id in instance.core_ids[1:]:
            core = accelerator.core_of[core_id]
            index = next(place for place, memory in enumerate(core.memories) if memory.name == instance.memory.name)
            area -= core.memories[index].area_mm2 * instance_count(core, index)
    told = "; ".join(f"{name}: {', '.join(parts)}" for name, parts in missing.items())
    return area, f"area not given: none for {told}" if told else ""
