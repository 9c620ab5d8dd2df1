"""Searches for plans of one network on many systems, such as the designs of a space."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.stages.multi.core_mapping import KnownRows
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.multi.plan_search import FoundPlan, PlanBounds, StartPlan
from tilewright.plans.call import FusionCall
from tilewright.plans.evaluate import Task

NO_CORE = -1
"""Number in place of a core's position, for a core that the earlier system has and the new system lacks."""


@dataclass
class DesignPlans:
    """Engine of the search for plans on many systems. Systems with equal cores share the costs of computation nodes."""

    _known: dict[Hashable, KnownRows] = field(default_factory=dict)

    def call(self, problem: SystemProblem, options: FusionOptions) -> "DesignPlan":
        """Make the search for a plan of one network on one system; it is not started yet. Searches with the same
        network, mapping, options and cores share the costs of computation nodes.
        """
        accelerator = problem.accelerator
        key = (problem.workload, problem.mapping, options, accelerator.cores, accelerator.places)
        return DesignPlan(FusionCall(problem, options, known=self._known.setdefault(key, {})))


@dataclass(frozen=True, eq=False)
class DesignPlan:
    """Search for a plan of one network on one system."""

    fusion: FusionCall

    def bounds(self) -> PlanBounds:
        """Lower bounds of latency and energy over every plan of the network."""
        bounds = self.fusion.bounds_of_any_plan
        return PlanBounds(bounds.latency_cycles, bounds.energy_pj, bounds.covers)

    def found(self, start: StartPlan | None) -> FoundPlan:
        """Best plan that the search finds. If there is a start plan, the search evaluates it first.

        Raises InputError or MappingError if no plan has a schedule, and KeyboardInterrupt for Ctrl-C.
        """
        made = replace(self.fusion, start=None if start is None else self._start(start)).best_plan()
        if made.found.stopped_by == INTERRUPTED:
            raise KeyboardInterrupt  # the best plan until then is not the result of the search
        outcome = made.found.start
        figures = None if outcome is None else outcome.figures
        ids = self.fusion.problem.accelerator.core_ids
        return FoundPlan(
            made.artifact,
            made.multi_core_problem.inputs.costs,
            made.found.evaluations,
            StartPlan(made.plan, tuple(tuple(ids[core] for core in cores) for cores in made.best.cores)),
            None if figures is None else (figures.latency_cycles, figures.energy_pj),
            made,
        )

    def _start(self, start: StartPlan) -> Task:
        """Task that evaluates a plan of another system. Parts on cores that this system lacks get other cores."""
        place_of = {core_id: place for place, core_id in enumerate(self.fusion.problem.accelerator.core_ids)}
        names = set(self.fusion.space.prefetchable)
        plan = replace(start.plan, prefetch=tuple(name for name in start.plan.prefetch if name in names))
        return Task(plan, tuple(tuple(place_of.get(one, NO_CORE) for one in ids) for ids in start.core_ids))
