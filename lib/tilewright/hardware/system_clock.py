"""The clock of an accelerator of several cores: its schedules count cycles of one clock, whoever names it."""

from collections.abc import Mapping

from tilewright.errors import WRITTEN, KeyPath, Problems
from tilewright.hardware.core import Core
from tilewright.hardware.core_reader import clock_notes
from tilewright.hardware.static_power import CLOCK_KEY, NS_A_CYCLE_AT_1_MHZ, missing_clock
from tilewright.hardware.system_schema import SystemFile


def read_clock(problems: Problems, entry: SystemFile, cores: Mapping[KeyPath, Core]) -> float:
    """The frequency in MHz that the file or its cores name, 0 where none does; records cores that differ, and static
    power without a clock; that of the library of costs is left out then. `cores` are those that could be read, by the
    place that names their file."""
    clock = entry.clock_frequency or max((core.clock_frequency_mhz for core in cores.values()), default=0.0)
    for place, core in cores.items():
        if core.clock_frequency_mhz not in (0.0, clock):
            told = (
                f"{core.name} has a clock of {core.clock_frequency_mhz:g} MHz, another core or this file {clock:g} MHz"
            )
            problems.at(place, f"{told}: a schedule counts cycles of one clock", WRITTEN, "one frequency for all cores")
    leaking = [core.name for core in cores.values() if _leaks_by_its_file(core)]
    if leaking and not clock:
        problems.at((CLOCK_KEY,), missing_clock(", ".join(dict.fromkeys(leaking))), allowed="200 MHz, 1.2 GHz")
    else:
        _note_clock(problems, clock, cores)
    return clock


def _leaks_by_its_file(core: Core) -> bool:
    """Whether the file itself gives static power, not only the library of costs."""
    return bool(core.operational_array.unit_leakage_mw) or any(
        memory.leakage_mw and (memory.cost_source is None or memory.leakage_mw != memory.cost_source.leakage_mw)
        for memory in core.memories
    )


def _note_clock(problems: Problems, clock_mhz: float, cores: Mapping[KeyPath, Core]) -> None:
    """Note once for each core file what its clock leaves out, or is too fast for."""
    period_ns = NS_A_CYCLE_AT_1_MHZ / clock_mhz if clock_mhz else None
    told = set()
    for place, core in cores.items():
        for path, said in clock_notes(core, period_ns):
            part = "" if path == (CLOCK_KEY,) else f", {path[-1]}"
            text = f"{core.name}{part}: {said}"
            if text not in told:
                problems.notice(place, text)
            told.add(text)
