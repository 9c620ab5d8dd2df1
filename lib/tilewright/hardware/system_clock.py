"""The clock of an accelerator of several cores: its schedules count cycles of one clock, whoever names it."""

from collections.abc import Mapping

from tilewright.errors import WRITTEN, KeyPath, Problems
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import CLOCK_KEY, leakage_mw, missing_clock
from tilewright.hardware.system_schema import SystemFile


def read_clock(problems: Problems, entry: SystemFile, cores: Mapping[KeyPath, Core]) -> float:
    """The frequency in MHz that the file or its cores name, 0 where none does; records cores that differ, and static
    power without a clock. `cores` are those that could be read, by the place that names their file."""
    clock = entry.clock_frequency or max((core.clock_frequency_mhz for core in cores.values()), default=0.0)
    for place, core in cores.items():
        if core.clock_frequency_mhz not in (0.0, clock):
            told = (
                f"{core.name} has a clock of {core.clock_frequency_mhz:g} MHz, another core or this file {clock:g} MHz"
            )
            problems.at(place, f"{told}: a schedule counts cycles of one clock", WRITTEN, "one frequency for all cores")
    leaking = [core.name for core in cores.values() if leakage_mw(core)]
    if leaking and not clock:
        problems.at((CLOCK_KEY,), missing_clock(", ".join(dict.fromkeys(leaking))), allowed="200 MHz, 1.2 GHz")
    return clock
