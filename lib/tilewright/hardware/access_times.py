"""Access times of memories, compared with the clock period.

The cost model moves one word per cycle, even if an access takes longer than a cycle.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tilewright.hardware.core import Core
from tilewright.hardware.static_power import clock_period_ns, system_clock_period_ns
from tilewright.hardware.system import MultiCoreAccelerator


class AccessTime(NamedTuple):
    """Access time of a memory, with the clock period of its core."""

    memory: str
    access_ns: float
    period_ns: float | None
    """Clock period in ns; None if the clock is unknown."""

    @property
    def is_slow(self) -> bool:
        """True if an access takes longer than a clock cycle; False if the clock is unknown."""
        return self.period_ns is not None and self.access_ns > self.period_ns


def access_note(access_ns: float, period_ns: float) -> str:
    """Text which says that an access takes `access_ns`, but counts as one cycle of `period_ns`."""
    return f"an access takes {access_ns:.4g} ns, but counts as one cycle of {period_ns:.4g} ns"


def access_times(core: Core, period_ns: float | None) -> tuple[AccessTime, ...]:
    """Access times of the memories of a core. Memories without a known access time are left out."""
    return tuple(
        AccessTime(memory.name, memory.cost_source.access_time_ns, period_ns)
        for memory in core.memories
        if memory.cost_source is not None and memory.cost_source.access_time_ns is not None
    )


def core_access_times(core: Core) -> tuple[AccessTime, ...]:
    """Access times of the memories of a core, compared with the clock of this core."""
    return access_times(core, clock_period_ns(core))


def system_access_times(accelerator: MultiCoreAccelerator) -> tuple[AccessTime, ...]:
    """Access times of the memories of all cores, compared with their common clock. Equal cores count once."""
    return tuple(dict.fromkeys(_of_cores(accelerator)))


def _of_cores(accelerator: MultiCoreAccelerator) -> Iterator[AccessTime]:
    period_ns = system_clock_period_ns(accelerator)
    for core in accelerator.cores:
        for one in access_times(core, period_ns):
            yield one._replace(memory=f"{core.name}.{one.memory}")
