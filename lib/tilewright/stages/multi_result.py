"""What comes up a pipeline of the multi-core flow: the network scheduled on the cores."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.allocation.document import layer_cores
from tilewright.allocation.requests import fixed_entries
from tilewright.allocation.result import AllocationResult, summary
from tilewright.mapping.yaml_writer import mapping_text
from tilewright.report.multi_summary import multi_summary
from tilewright.schedule.assembly import SystemNames
from tilewright.schedule.bounds import LowerBounds
from tilewright.schedule.result import Schedule
from tilewright.stages.multi_run import MultiCoreProblem, ScheduledNetwork

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class MultiCoreResult:
    """A network scheduled on the cores of an accelerator."""

    problem: MultiCoreProblem
    """What was to be allocated and scheduled: the network, its costs, the cores that each part may run on."""
    allocation: AllocationResult
    """The chosen allocation, the Pareto front, and how they were found."""
    scheduled: ScheduledNetwork
    """The schedule of the chosen allocation with its logs and lower bounds."""

    @property
    def schedule(self) -> Schedule:
        """When each CN runs, what moves when, what is in the memories."""
        return self.scheduled.artifact.schedule

    @property
    def names(self) -> SystemNames:
        """What the numbers of the schedule stand for."""
        return self.problem.assembled.names

    @property
    def latency_cycles(self) -> int:
        """Of the schedule."""
        return self.schedule.latency_cycles

    @property
    def energy_pj(self) -> float:
        """Of the schedule."""
        return self.schedule.energy_pj

    @property
    def bounds(self) -> LowerBounds | None:
        """What no allocation is below; None for a model of schedules for which nothing is proven."""
        return self.scheduled.bounds

    @cached_property
    def core_of(self) -> dict[str, tuple[int, ...]]:
        """Layer -> core id of each of its groups."""
        cores = layer_cores(self.problem.space, self.allocation.chosen.genome, self.names)
        return {self.names.layer_names[layer]: tuple(ids) for layer, ids in cores.items()}

    def table(self) -> list[dict[str, Any]]:
        """A row for each part of a layer: layer, group, core id, core, CNs, first start and last end in cycles."""
        schedule, space, names = self.schedule, self.problem.space, self.names
        rows = []
        for number, (layer, group) in enumerate(space.parts):
            cns = space.part_of_cn == number
            core = int(schedule.allocation[cns][0])
            rows.append(
                {
                    "layer": names.layer_names[layer],
                    "group": group,
                    "core_id": names.core_ids[core],
                    "core": names.core_files[core],
                    "cn_count": int(cns.sum()),
                    "start_cycles": int(schedule.start_cycles[cns].min()),
                    "end_cycles": int(schedule.end_cycles[cns].max()),
                }
            )
        return rows
