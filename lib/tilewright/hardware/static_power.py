"""The clock of a core and what it draws in each cycle, whether it computes or waits.

Static power times the period of the clock is the energy of a cycle: mW x ns = pJ.
"""

from dataclasses import replace

from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.hardware.system import MultiCoreAccelerator

NS_A_CYCLE_AT_1_MHZ = 1e3
NS_A_SECOND = 1e9
CLOCK_KEY = "clock_frequency"
"""In hardware files."""


def clock_period_ns(core: Core) -> float | None:
    """The cycle of a core, from its frequency, else the shortest one that its array can have; None where the file says
    neither."""
    if core.clock_frequency_mhz:
        return NS_A_CYCLE_AT_1_MHZ / core.clock_frequency_mhz
    return array_model(core.operational_array).clock_period_ns(core.operational_array)


def leakage_mw(core: Core) -> float:
    """Static power of the array and of all instances of all memories; 0 where the file gives none."""
    power = core.unseen_leakage_mw + core.operational_array.unit_leakage_mw * core.operational_array.unit_count
    return power + sum(memory_leakage_mw(core, index) for index in range(len(core.memories)))


def memory_leakage_mw(core: Core, index: int) -> float:
    """Static power of all instances of a memory."""
    return core.memories[index].leakage_mw * instance_count(core, index)


def leakage_pj_a_cycle(core: Core) -> float:
    """What a core leaks in a cycle; 0 where static power or the clock is not given."""
    return leakage_mw(core) * (clock_period_ns(core) or 0.0)


def without_leakage(core: Core) -> Core:
    """A core of which only what it does costs energy."""
    if not leakage_mw(core):
        return core
    memories = tuple(replace(memory, leakage_mw=0.0) for memory in core.memories)
    array = replace(core.operational_array, unit_leakage_mw=0.0)
    return replace(core, operational_array=array, memories=memories, unseen_leakage_mw=0.0)


def system_leakage_mw(accelerator: MultiCoreAccelerator) -> float:
    """Static power of all cores, the off-chip one included. A memory that cores share counts once."""
    power = sum(leakage_mw(core) for core in accelerator.cores)
    for instance in accelerator.memory_instances:
        for core_id, name in list(zip(instance.core_ids, instance.names, strict=True))[1:]:
            core = accelerator.core_of[core_id]
            index = next(place for place, memory in enumerate(core.memories) if memory.name == name)
            power -= memory_leakage_mw(core, index)
    return power


def system_clock_period_ns(accelerator: MultiCoreAccelerator) -> float | None:
    """The cycle that all cores have in common; None where no file says."""
    frequency = accelerator.clock_frequency_mhz
    return NS_A_CYCLE_AT_1_MHZ / frequency if frequency else None


def system_leakage_pj_a_cycle(accelerator: MultiCoreAccelerator) -> float:
    """What all cores together leak in a cycle, used or not."""
    return system_leakage_mw(accelerator) * (system_clock_period_ns(accelerator) or 0.0)


def missing_clock(named: str) -> str:
    """What is told where static power has no clock."""
    return f"static power ({named}) needs the frequency of the clock: only cycles are known"
