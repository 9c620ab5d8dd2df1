"""Trials of changes to a run on several cores: its allocation is evaluated on changed hardware, and new searches are
made.

To evaluate the allocation, the cost tables of changed cores are computed again, and the schedule is simulated with
these tables. The results are those of `tilewright cost` and `tilewright schedule` with the changed files and a
`mapping.yaml` that fixes the allocation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base.errors import InputError, MappingError
from tilewright.designs.advice import Advice, Advices
from tilewright.designs.design_cost import DesignCost
from tilewright.designs.evaluate_system import SystemEvaluator
from tilewright.designs.held_mappings import Held, Outcome
from tilewright.designs.space import SystemOptions
from tilewright.designs.trials import Found
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.multicore.scheduling.assembly import model_problem
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.problem import Integers
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.multicore.scheduling.system_assembly import MEMORY_OPERANDS
from tilewright.pipeline.stages.base import Control, Rest
from tilewright.pipeline.stages.multi.costs import IntraCoreMapping
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem
from tilewright.search.options import CnSearchOptions
from tilewright.search.progress import Advance

NOT_SEARCHED = "fused plans are not searched again here; `tilewright fuse` searches a plan for the changed files"


@dataclass(frozen=True, eq=False)
class ExplainedSystemRun:
    """Run on several cores with all its inputs."""

    name: str
    hardware: dict[str, Any]
    """Content of the run's accelerator file, with its cores under `core_files`."""
    costed: CostedCnProblem
    allocation: Integers
    """Index of the core that runs each computation node, as an array [node]."""
    now: Outcome
    """Costs of the run."""
    objective: str
    search: CnSearchOptions
    """Options of the search for the mappings from which cost tables are made."""
    settings: ScheduleSettings
    options: SystemOptions | None
    """Options of a new search, including those of the search for an allocation. None if the run allows no new search.
    """
    same_words = "same\nallocation"
    most_sets = 24  # a set costs new tables and a schedule
    holds_searches = False

    @property
    def not_searched(self) -> str:
        """Reason why the run allows no new search; '' if it allows one."""
        return NOT_SEARCHED if self.options is None else ""

    def same(self, accelerator: MultiCoreAccelerator) -> Outcome:
        """Costs on an accelerator with the run's tiles and allocation. Changed cores get new cost tables."""
        given = replace(self.costed.descriptions, accelerator=accelerator)
        changed = _changed_cores(self.costed.descriptions.accelerator, accelerator)
        costs = dict(self.costed.costs)
        if changed:
            stage = IntraCoreMapping(**self.search.as_dict())
            (made,) = stage.run(CnProblem(given, self.costed.graph, changed), Rest((), Control()))
            costs |= {name: tuple(made.costs[name]) for name in changed}
        assembled = model_problem(given.workload, self.costed.graph, accelerator, given.mapping, costs, self.settings)
        options = self.settings.options(given.workload, given.mapping, MEMORY_OPERANDS)
        schedule = Scheduler(assembled.problem, options)(self.allocation)
        return _outcome(schedule)

    def searcher(self) -> Callable[[MultiCoreAccelerator], Found]:
        """Function that searches an allocation for a changed accelerator. The found allocation is also evaluated on the
        accelerator of the run.
        """
        given = self.costed.descriptions
        assert self.options is not None
        evaluator = SystemEvaluator(given.workload, given.mapping, self.options)

        def search(accelerator: MultiCoreAccelerator) -> Found:
            try:
                result = evaluator.result(accelerator)
            except (InputError, MappingError) as error:
                return Outcome.of_design(DesignCost.refused(error)), None
            held = evaluator.held(given.accelerator, result)
            return _outcome(result.artifact.schedule), None if held is None else Held(_outcome(held))

        return search

    def further(self, jobs: int, advance: Advance) -> list[Advice]:
        """Empty list: for a run on several cores, only changes of the hardware are tried."""
        return []

    def best_known(self, held: Sequence[Held]) -> Outcome:
        """Costs on the run's accelerator with the best known allocation: the allocation of the run, or an allocation
        from a search.
        """
        values = {one: one.value(self.objective) for one in (self.now, *(one.outcome for one in held))}
        return min(values, key=lambda one: math.inf if (value := values[one]) is None else value)

    def notes(self, advices: Advices) -> list[str]:
        """Empty list: there are no notes on a run on several cores."""
        return []


def _outcome(schedule: Schedule) -> Outcome:
    return Outcome(schedule.energy_pj, schedule.latency_cycles)


def _changed_cores(before: MultiCoreAccelerator, after: MultiCoreAccelerator) -> tuple[str, ...]:
    """Names of the core files whose cost tables must be computed again, because the core of the file or the off-chip
    core has changed.
    """
    names = tuple(after.distinct_cores)
    off_chip = after.offchip_core_id
    if off_chip is not None and before.core_of[off_chip] != after.core_of[off_chip]:
        return names
    return tuple(name for name in names if before.distinct_cores[name] != after.distinct_cores[name])
