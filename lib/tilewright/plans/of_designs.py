"""Searches for plans of one network on many systems, such as the designs of a space."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.multicore.nodes.partial_sums import reductions_of
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.stages.multi.core_mapping import KnownRows
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.multi.plan_search import FoundPlan, PlanBounds, StartPlan
from tilewright.plans.call import FusionCall
from tilewright.plans.evaluate import PlanOutcome, Task
from tilewright.plans.opening import Neighbours
from tilewright.plans.plan import Plan

NO_CORE = -1
"""Number in place of a core's position if the earlier system has this core and the new system does not have it."""


@dataclass
class DesignPlans:
    """Engine of the search for plans on many systems. Systems with equal cores share the costs of computation nodes."""

    _known: dict[Hashable, KnownRows] = field(default_factory=dict)

    def call(self, problem: SystemProblem, options: FusionOptions) -> "DesignPlan":
        """Make the search for a plan of one network on one system, without starting the search. Searches with the same
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

    def takes(self, start: StartPlan) -> bool:
        """True if the lower bounds of this search also cover the plan `start` of another system. This is the case if
        plans of this search can cut every reduction that `start` cuts into steps on one core.
        """
        layers = zip(self.fusion.space.layers, start.plan.tiles, self.fusion.steps, strict=True)
        return all(
            {loop.dimension for loop in tiles.within if loop.tiles != 1} & set(reductions_of(one.layer)) <= steps
            for one, tiles, steps in layers
        )

    def found(self, starts: Sequence[StartPlan] = (), share: float = 1.0, enough: float = math.inf) -> FoundPlan:
        """Best plan that a search finds. `share` is the part of its plans and schedules that the search may evaluate.

        The search first evaluates the plans `starts` of other systems, in their order. If one of these plans has a
        schedule on this system, the opening (the first steps of the search) evaluates fewer plans. If the objective of
        the best plan is also at most `enough`, the opening evaluates no further plans.

        Raises InputError or MappingError if no plan has a schedule, and KeyboardInterrupt for Ctrl-C.
        """
        tasks: dict[Plan, Task] = {}
        for task in map(self._start, starts):
            tasks.setdefault(task.plan, task)
        options = _part_of(self.fusion.options, share)
        neighbours = Neighbours(tuple(tasks.values()), enough) if tasks else None
        made = replace(self.fusion, options=options, neighbours=neighbours).best_plan()
        if made.found.stopped_by == INTERRUPTED:
            raise KeyboardInterrupt  # the best plan until then is not the result of the search
        alone = made.found.layer_by_layer
        return FoundPlan(
            made.artifact,
            made.multi_core_problem.inputs.costs,
            made.found.evaluations,
            self._as_start(made.best),
            None if alone is None else self._as_start(alone),
            made,
        )

    def _as_start(self, outcome: PlanOutcome) -> StartPlan:
        """Plan of this system in a form from which a search on another system can start."""
        ids = self.fusion.problem.accelerator.core_ids
        return StartPlan(outcome.plan, tuple(tuple(ids[core] for core in cores) for cores in outcome.cores))

    def _start(self, start: StartPlan) -> Task:
        """Task that evaluates a plan of another system. Parts on cores that this system lacks get other cores."""
        place_of = {core_id: place for place, core_id in enumerate(self.fusion.problem.accelerator.core_ids)}
        names = set(self.fusion.space.prefetchable)
        plan = replace(start.plan, prefetch=tuple(name for name in start.plan.prefetch if name in names))
        return Task(plan, tuple(tuple(place_of.get(one, NO_CORE) for one in ids) for ids in start.core_ids))


def _part_of(options: FusionOptions, share: float) -> FusionOptions:
    """Options with a share of the plans and schedules, rounded up."""
    most = options.nb_schedules
    limits = {
        "nb_plans": math.ceil(share * options.nb_plans),
        "nb_schedules": None if most is None else math.ceil(share * most),
    }
    return FusionOptions(**{**options.as_dict(), **limits})
