"""Clock of a core, and static energy that a core uses in every cycle, whether it is busy or idle.

Static energy in pJ is static power in mW times the clock period in ns.
"""

from collections.abc import Iterable
from dataclasses import replace

from tilewright.hardware.array_model import array_model
from tilewright.hardware.attributes import Figures, Owner, attributes, figure, power_terms
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.hardware.system import MultiCoreAccelerator

NS_A_CYCLE_AT_1_MHZ = 1e3


def clock_period_ns(core: Core) -> float | None:
    """Clock period of a core in ns: the period of the clock frequency in the file. Without a frequency, the result is
    the shortest clock cycle of the array. None if the model of the array has no shortest cycle either.
    """
    if core.clock_frequency_mhz:
        return NS_A_CYCLE_AT_1_MHZ / core.clock_frequency_mhz
    return array_model(core.operational_array).clock_period_ns(core.operational_array)


def static_power_mw(core: Core, term: str | None = None) -> float:
    """Static power of a core in mW: the sum over the core itself, its array, and all instances of its memories. The sum
    includes memories that were removed because a layer does not use them. If `term` names an energy term, only the
    powers of this term are summed; None sums all powers.

    The result is 0 if the file gives no static power.
    """
    array = core.operational_array
    power = sum(power for name, power in core.unseen_power_mw if term in (None, name))
    power += _power_mw("array", array.figures, term) * array.unit_count + _power_mw("core", core.figures, term)
    return power + sum(memory_power_mw(core, index, term) for index in range(len(core.memories)))


def memory_power_mw(core: Core, index: int, term: str | None = None) -> float:
    """Static power in mW of all instances of the memory with index `index`. If `term` names an energy term, only the
    powers of this term are summed; None sums all powers.
    """
    figures = core.memories[index].figures
    return _power_mw("memory", figures, term) * instance_count(core, index) if figures else 0.0


COUNTED, ZERO, NOT_GIVEN = "counted", "zero", "not_given"
"""Kinds of parts by static power: above 0, given as 0, and not given. A power that is not given counts as 0."""


def static_power_parts(core: Core) -> dict[str, str]:
    """Part of a core -> COUNTED, ZERO or NOT_GIVEN. The parts are the array and all memories. If the hardware file
    gives a static power for the core itself, the core is a part, too.
    """
    powers = {"array": _power_mw("array", core.operational_array.figures, None)}
    powers |= {memory.name: memory_power_mw(core, index) for index, memory in enumerate(core.memories)}
    own = _power_mw("core", core.figures, None)
    if own or "core" in core.zero_power_parts:
        powers["core"] = own
    zero = core.zero_power_parts
    return {name: COUNTED if power > 0 else ZERO if name in zero else NOT_GIVEN for name, power in powers.items()}


def static_power_fields(cores: Iterable[Core]) -> dict[str, dict[str, list[str]]]:
    """Field `static_power_parts` of a summary: `counted` has the parts with a static power above 0, `zero` has the
    parts with a given power of 0, and `not_given` has all other parts. With several cores, the names of parts include
    the names of their cores.
    """
    cores = list(cores)
    found: dict[str, list[str]] = {COUNTED: [], ZERO: [], NOT_GIVEN: []}
    for core in cores:
        for name, kind in static_power_parts(core).items():
            found[kind].append(name if len(cores) == 1 else f"{core.name} {name}")
    return {"static_power_parts": found}


def _power_mw(owner: Owner, figures: Figures, term: str | None) -> float:
    """Sum in mW of the static powers in `figures`, the attributes of one memory instance, one unit of the array or one
    core. `owner` is memory, array or core. If `term` names an energy term, only the powers of this term are summed;
    None sums all powers.
    """
    if not figures:
        return 0.0
    return sum(figure(one, figures) for one in attributes(owner) if one.term and term in (None, one.term))


def rate_pj_a_cycle(core: Core, term: str) -> float:
    """Static energy in pJ per cycle that a core spends on the energy term `term`; 0 if the file gives no static power
    or no clock.
    """
    return static_power_mw(core, term) * (clock_period_ns(core) or 0.0)


def without_static_power(core: Core) -> Core:
    """Copy of the core in which all static powers are 0."""
    if not static_power_mw(core):
        return core
    memories = tuple(replace(memory, figures=_without_power("memory", memory.figures)) for memory in core.memories)
    array = replace(core.operational_array, figures=_without_power("array", core.operational_array.figures))
    own = _without_power("core", core.figures)
    return replace(core, operational_array=array, memories=memories, figures=own, unseen_power_mw=())


def _without_power(owner: Owner, figures: Figures) -> Figures:
    powers = {one.field for one in attributes(owner) if one.term}
    return tuple((field, value) for field, value in figures if field not in powers)


def system_power_mw(accelerator: MultiCoreAccelerator, term: str | None = None) -> float:
    """Static power in mW of all cores, including the off-chip core. A memory that cores share counts once."""
    power = sum(static_power_mw(core, term) for core in accelerator.cores)
    for instance in accelerator.memory_instances:
        for core_id, name in list(zip(instance.core_ids, instance.names, strict=True))[1:]:
            core = accelerator.core_of[core_id]
            index = next(place for place, memory in enumerate(core.memories) if memory.name == name)
            power -= memory_power_mw(core, index, term)
    return power


def system_clock_period_ns(accelerator: MultiCoreAccelerator) -> float | None:
    """Common clock period of all cores in ns; None if no file gives it."""
    frequency = accelerator.clock_frequency_mhz
    return NS_A_CYCLE_AT_1_MHZ / frequency if frequency else None


def system_rates_pj_a_cycle(accelerator: MultiCoreAccelerator) -> dict[str, float]:
    """Energy term -> static energy per cycle in pJ of all cores. Terms of 0 are left out."""
    period_ns = system_clock_period_ns(accelerator) or 0.0
    rates = {term: system_power_mw(accelerator, term) * period_ns for term in power_terms()}
    return {term: rate for term, rate in rates.items() if rate > 0}


def missing_clock(named: str) -> str:
    """Message for a file that gives static power but no clock."""
    return f"static power ({named}) needs the frequency of the clock, because the model counts time only in cycles"
