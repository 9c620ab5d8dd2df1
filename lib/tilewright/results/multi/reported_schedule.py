"""Data of a run on several cores, as an argument of the functions that make the files of its report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilewright.base.json_values import JsonObject
from tilewright.multicore.scheduling.core_costs import CoreCosts
from tilewright.results.multi.bars import ScheduleTable, ScheduleView
from tilewright.results.records import Summary
from tilewright.results.schedule_options import ScheduleFigureOptions


class AllocationSearch(NamedTuple):
    """Search for an allocation: its generations, and the Pareto front that it found."""

    generations: Sequence[JsonObject]
    front: Sequence[JsonObject]


@dataclass(frozen=True)
class ReportedSchedule:
    """Data of a run on several cores. The files of `SEVERAL_CORES_FILES` are made from these data."""

    view: ScheduleView
    table: ScheduleTable
    summary: Summary
    options: ScheduleFigureOptions
    core_costs: CoreCosts
    """Cost table of each core file; {} if only the tables of the report are made."""
    search: AllocationSearch | None = None
    """Search for the allocation; None if the allocation was not searched."""

    @property
    def title(self) -> str:
        """Names of the network and the accelerator."""
        return f"{self.view.names.network} on {self.view.names.accelerator}"
