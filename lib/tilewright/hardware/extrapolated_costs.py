"""Memories whose costs are extrapolated: their size or the width of their words is beyond the table of the library."""

from tilewright.hardware.core import Core, Memory
from tilewright.hardware.system import MultiCoreAccelerator


def core_extrapolated(core: Core) -> tuple[str, ...]:
    """Names of those memories of a core whose costs are extrapolated."""
    return tuple(memory.name for memory in core.memories if _is_extrapolated(memory))


def system_extrapolated(accelerator: MultiCoreAccelerator) -> tuple[str, ...]:
    """Names, in the form `core.memory`, of all memories with extrapolated costs. Equal cores count once."""
    return tuple(
        dict.fromkeys(f"{core.name}.{memory}" for core in accelerator.cores for memory in core_extrapolated(core))
    )


def _is_extrapolated(memory: Memory) -> bool:
    return memory.cost_source is not None and bool(memory.cost_source.extrapolations)
