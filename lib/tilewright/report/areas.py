"""Whether the area of a core is known: hardware files may leave areas out, as those of the reference mostly do."""

from tilewright.hardware.core import Core


def parts_without_area(core: Core) -> tuple[str, ...]:
    """Names of what has no area in the hardware file: memories, and `units` for those of the array.

    A memory above which no operand has another one is off the chip and needs none; if it is the only one of its
    operands it counts.
    """
    missing = [] if core.operational_array.unit_area_mm2 > 0 else ["units"]
    for index, memory in enumerate(core.memories):
        if memory.area_mm2 <= 0 and not _is_outermost(core, index):
            missing.append(memory.name)
    return tuple(missing)


def area_note(core: Core) -> str:
    """In words what of the area is not given; '' if all of it is."""
    missing = parts_without_area(core)
    return f"area not given: none for {', '.join(missing)}" if missing else ""


def _is_outermost(core: Core, index: int) -> bool:
    above = {operand for memory in core.memories[index + 1 :] for operand in memory.operands}
    below = {operand for memory in core.memories[:index] for operand in memory.operands}
    held = set(core.memories[index].operands)
    return not held & above and bool(held & below)
