"""Result of a search for plans: the best schedule, how to reproduce it, the benefit of cuts, and all evaluated
plans.
"""

import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES, Goal, energy_delay_product
from tilewright.base.proof import gap_to
from tilewright.base.unused import with_unused
from tilewright.hardware.system import system_area
from tilewright.mapping.constraints import TilingEntry
from tilewright.mapping.runnable import work_of
from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.multicore.allocation.space import Genome
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.pipeline.configuration.arguments import arguments_of
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.stages.multi import run as multi_run
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.multi.run import MultiCoreProblem, fixed_mapping_text
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanEvaluator, PlanOutcome, Task
from tilewright.plans.plan import Plan
from tilewright.plans.search import FusionResult, FusionSearch, Progress, Tried
from tilewright.plans.space import Fixed, PlanSpace, plan_space
from tilewright.plans.tiling_bounds.bound import TilingBounds, any_plan_fields, tiling_bounds
from tilewright.plans.work import PlanWork
from tilewright.results.multi.cost_ranges import range_fields
from tilewright.results.multi.summary import rate_fields, reload_rows
from tilewright.search.options import CnSearchOptions

MOST_CUTS = 12
"""Largest number of cuts between stacks whose benefit is measured. Each measurement evaluates one more plan."""


@dataclass(frozen=True)
class CutWorth:
    """Benefit of one cut between two stacks, described by the latency and energy of the plan without this cut."""

    after: str
    """Name of the last layer before the cut."""
    before: str
    """Name of the first layer after the cut."""
    figures: PlanFigures | None
    """Latency and energy of the plan without the cut: the two stacks are merged, and tiles and cores stay the same.
    None if this plan has no schedule.
    """


@dataclass(frozen=True, eq=False)
class Fusion:
    """Result of the search for a plan, for one network on one accelerator."""

    problem: SystemProblem
    options: FusionOptions
    settings: ScheduleSettings
    space: PlanSpace
    found: FusionResult
    cuts: tuple[CutWorth, ...]
    any_plan: Callable[[], TilingBounds]
    """Function that returns the lower bounds over every plan."""
    start_digest: str = ""
    """Digest of the start plan and its cores; '' for a search without a start plan."""

    @property
    def best(self) -> PlanOutcome:
        """Best plan that was found, with its cores, latency and energy."""
        return self.found.best

    @property
    def plan(self) -> Plan:
        """Stacks, tiles, parts and schedule options of the best plan."""
        return self.found.best.plan

    @property
    def latency_cycles(self) -> int:
        """Latency of the best schedule, in cycles."""
        assert self.best.figures is not None
        return self.best.figures.latency_cycles

    @property
    def energy_pj(self) -> float:
        """Energy of the best schedule, in pJ."""
        assert self.best.figures is not None
        return self.best.figures.energy_pj

    @property
    def is_interrupted(self) -> bool:
        """True if Ctrl-C ended the search."""
        return self.found.stopped_by == INTERRUPTED

    @property
    def schedule_settings(self) -> ScheduleSettings:
        """Settings of the scheduler for the best schedule."""
        return self.plan.settings(self.settings)

    @property
    def bounds_of_any_plan(self) -> TilingBounds:
        """Lower bounds of latency and energy over every plan of this network on this accelerator."""
        return self.any_plan()

    @cached_property
    def multi_core_problem(self) -> MultiCoreProblem:
        """Problem of allocation and scheduling for the best plan. Each part can run on any of its allowed cores, and
        the lower bounds hold for all these allocations.
        """
        evaluator = PlanEvaluator(
            self.problem, self.options.part(CnSearchOptions), self.settings, self.options.objective
        )
        return evaluator.multi_core_problem(self.plan)

    @cached_property
    def _genome(self) -> Genome:
        space = self.multi_core_problem.space
        return space.genome([self.best.cores[layer][group] for layer, group in space.parts])

    @cached_property
    def artifact(self) -> ScheduleArtifact:
        """Best schedule with its logs. The first access computes and checks it."""
        return multi_run.schedule(self.multi_core_problem, self._genome)

    @cached_property
    def mapping_text(self) -> str:
        """Mapping file, as YAML, that fixes the tiles and cores of the best plan."""
        return fixed_mapping_text(self.multi_core_problem, self._genome)

    @property
    def reproducing_options(self) -> dict[str, list[str]]:
        """Command-line options that reproduce the schedule from the mapping file, keyed by verb."""
        search, default = self.options.part(CnSearchOptions).as_dict(), CnSearchOptions().as_dict()
        changed = {name: value for name, value in search.items() if value != default[name]}
        stacks = {"layer_stacks": [list(stack) for stack in self.plan.stacks]}
        return {
            "cns": arguments_of(TilingOptions, stacks),
            "cost": arguments_of(CnSearchOptions, changed),
            "schedule": [
                *arguments_of(Goal, {"objective": self.options.objective}),
                *arguments_of(ScheduleSettings, self.schedule_settings.stated()),
            ],
        }

    @cached_property
    def document(self) -> JsonObject:
        """Content of `fusion.json`."""
        bounds = self.multi_core_problem.bounds
        assert bounds is not None  # the schedule model is always causal here
        lbl = self.found.layer_by_layer
        document: dict[str, Any] = {
            "workload": self.problem.workload.name,
            "hardware": self.problem.accelerator.name,
            "objective": self.options.objective,
            **_figures(PlanFigures(self.latency_cycles, self.energy_pj)),
            **self._rates(),
            **_bound_fields(bounds, self.latency_cycles, self.energy_pj),
            "any_plan": any_plan_fields(self.bounds_of_any_plan, self.latency_cycles, self.energy_pj),
            "layer_by_layer": None if lbl is None or lbl.figures is None else self._alone(lbl, lbl.figures),
            **self._start(),
            "search": {
                **{name: getattr(self.options, name) for name in ("seed", "nb_plans", "fusion_time_budget_s")},
                "plans": len(self.found.tried),
                "segments": self.found.segments,
                "schedules": self.found.evaluations,
                "stopped_by": self.found.stopped_by,
                "origins": origin_rows(self.found.tried, self.options.objective),
            },
            "fixed": {
                "layer_stacks": self.space.fixed.stacks is not None,
                "scheduler_candidate_selection": self.space.fixed.selection is not None,
                "operands_to_prefetch": self.space.fixed.prefetch is not None,
                "prefetch_results": self.space.fixed.prefetch_results is not None,
                "layers_by_off_chip": self.space.fixed.by_off_chip is not None,
                "inter_core_tiling": [one.node.name for one in self.space.layers if one.between is not None],
                "intra_core_tiling": [one.node.name for one in self.space.layers if one.within is not None],
            },
            "settings": self.schedule_settings.stated(),
            "layer_stacks": [list(stack) for stack in self.plan.stacks],
            "stacks": self._stack_rows(),
            "cuts": [self._cut_row(cut) for cut in self.cuts],
            "layers": self._layer_rows(),
            "reloads": reload_rows(self.artifact),
            "reproduce": {verb: shlex.join(options) for verb, options in self.reproducing_options.items()},
        }
        return with_unused(document, self.problem.notices)

    def _alone(self, lbl: PlanOutcome, figures: PlanFigures) -> JsonObject:
        """Latency, energy, energy terms and latency bound of the best plan in which each stack has one layer."""
        if lbl == self.best:
            problem, artifact = self.multi_core_problem, self.artifact
        else:
            options, objective = self.options.part(CnSearchOptions), self.options.objective
            problem = PlanEvaluator(self.problem, options, self.settings, objective).multi_core_problem(lbl.plan)
            space = problem.space
            artifact = multi_run.schedule(
                problem, space.genome([lbl.cores[layer][group] for layer, group in space.parts])
            )
        bounds = problem.bounds
        return {
            **_figures(figures),
            "energy_parts_pj": encode(artifact.schedule.energy_terms_pj),
            "lower_bound": None if bounds is None else {LATENCY_CYCLES: bounds.latency_cycles},
        }

    def _start(self) -> JsonObject:
        """Latency and energy of the start plan on this accelerator, or the reason why it has no schedule; empty without
        a start plan.
        """
        start = self.found.start
        if start is None:
            return {}
        return {"start": {"reason": start.reason} if start.figures is None else _figures(start.figures)}

    def _rates(self) -> JsonObject:
        accelerator, (macs, _) = self.problem.accelerator, work_of(self.problem.workload.nodes)
        area_mm2, costs = system_area(accelerator).mm2, self.multi_core_problem.inputs.costs
        return {
            **rate_fields(accelerator, self.latency_cycles, self.energy_pj, macs),
            **range_fields(self.artifact, costs, accelerator, area_mm2),
        }

    def _stack_rows(self) -> list[JsonObject]:
        names = {one.node.node_id: one.node.name for one in self.space.layers}
        return [
            {"stack": number, "layers": len(stack), "first": names[stack[0]], "last": names[stack[-1]]}
            for number, stack in enumerate(self.plan.stacks)
            if stack
        ]

    def _cut_row(self, cut: CutWorth) -> JsonObject:
        without = None if cut.figures is None else _figures(cut.figures)
        row: dict[str, Any] = {"after": cut.after, "before": cut.before, "without": without}
        for key, mine in (("saves_latency_cycles", self.latency_cycles), ("saves_energy_pj", self.energy_pj)):
            other = None if cut.figures is None else getattr(cut.figures, key.removeprefix("saves_"))
            row[key] = None if other is None else other - mine
        return row

    def _layer_rows(self) -> list[JsonObject]:
        ids = self.problem.accelerator.core_ids
        return [
            {
                "name": one.node.name,
                "inter_core_tiling": _written(tiles.between),
                "intra_core_tiling": _written(tiles.within) if one.node.node_id in self._fused else [],
                "cores": [ids[core] for core in cores],
            }
            for one, tiles, cores in zip(self.space.layers, self.plan.tiles, self.best.cores, strict=True)
        ]

    @cached_property
    def _fused(self) -> set[int]:
        return {node_id for stack in self.plan.stacks if len(stack) > 1 for node_id in stack}


def fusion_space(
    problem: SystemProblem, options: FusionOptions, stacks: tuple[tuple[int, ...], ...] | None = None
) -> PlanSpace:
    """Space of plans to search. Choices that `options` or `stacks` fix have only their fixed value."""
    prefetch = options.operands_to_prefetch
    fixed = Fixed(
        stacks,
        options.scheduler_candidate_selection,
        None if prefetch is None else tuple(prefetch),
        options.prefetch_results,
        options.layers_by_off_chip,
    )
    return plan_space(problem, fixed)


def fused(
    problem: SystemProblem,
    options: FusionOptions,
    stacks: tuple[tuple[int, ...], ...] | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    start_s: float | None = None,
    start: Task | None = None,
) -> Fusion:
    """Best plan for a network on an accelerator.

    `stacks` fixes the stacks. `start` is a plan of an earlier search. It is evaluated on this accelerator, and the
    result is never worse than this plan. `start_s` is the time at which the call began, in seconds of `clock`. The time
    budget is measured from this time, and does not end the search before one plan has a schedule. Raises InputError or
    MappingError if no plan has a schedule, and KeyboardInterrupt for Ctrl-C before the first schedule.
    """
    search_options = options.part(CnSearchOptions)
    by_off_chip = options.layers_by_off_chip
    if by_off_chip:  # reports unknown layers before the search; later, no plan would have a schedule
        ScheduleSettings(layers_by_off_chip=by_off_chip).options(problem.workload, problem.mapping, ())
    settings = ScheduleSettings(
        share_divisor=options.share_divisor, stack_order=options.stack_order, cn_runtime=options.cn_runtime
    )
    space = fusion_space(problem, options, stacks)
    work = PlanWork(problem, search_options, settings, options.objective, clock)

    any_plan = cache(lambda: tiling_bounds(problem, search_options.model, settings))

    def finishing_s(found: FusionResult) -> float:
        start = clock()
        Fusion(problem, options, settings, space, found, (), any_plan).document  # noqa: B018  only the time is needed
        return clock() - start

    begin = clock() if start_s is None else start_s
    show = progress or (lambda done, planned, best, elapsed: None)
    search = FusionSearch(work, space, options, show, clock, begin, start, finishing_s)
    found, budget = search.run(), options.fusion_time_budget_s
    until = math.inf if budget is None else begin + budget - (search.reserve_s or 0.0)
    without = stacks is not None or found.stopped_by == INTERRUPTED
    cuts = () if without else _cuts(work, space, found.best, lambda: clock() < until)
    digest = "" if start is None else content_digest(encode((start.plan, start.cores)))
    return Fusion(problem, options, settings, space, found, cuts, any_plan, digest)


def _cuts(work: PlanWork, space: PlanSpace, best: PlanOutcome, in_time: Callable[[], bool]) -> tuple[CutWorth, ...]:
    """Benefits of the cuts between stacks. The measurement ends when `in_time` returns False. If there are more than
    MOST_CUTS cuts, only the cuts between the largest stacks are measured.
    """
    evaluator = PlanEvaluator(work.problem, work.search, work.settings, work.objective)
    ends = space.ends_of(best.plan)
    bounds = dict(zip(ends, zip((-1, *ends[:-1]), (*ends[1:], ends[-1]), strict=True), strict=True))
    inner = [end for end in ends[:-1] if _is_of_stacks(best.plan, ends)]
    chosen = sorted(inner, key=lambda end: (-(bounds[end][1] - bounds[end][0]), end))[:MOST_CUTS]
    names = [one.node.name for one in space.layers]
    found = []
    for end in sorted(chosen):
        if not in_time():
            break
        merged = Plan(
            best.plan.tiles,
            space.stacks([other for other in ends if other != end]),
            best.plan.selection,
            best.plan.prefetch,
            best.plan.prefetch_results,
            best.plan.by_off_chip,
        )
        outcome = evaluator.evaluate(Task(merged, best.cores))
        found.append(CutWorth(names[end], names[end + 1], outcome.figures))
    return tuple(found)


def _is_of_stacks(plan: Plan, ends: Sequence[int]) -> bool:
    return len(plan.stacks) == len(ends)


def origin_rows(tried: Sequence[Tried], objective: str) -> list[JsonObject]:
    """Rows with statistics of the evaluated plans, one row for each origin of plans. A row counts the plans, the
    schedules, the plans without a schedule, and the plans that were the best when they were evaluated. It also has
    latency, energy and EDP of the best plan of this origin.
    """
    rows: dict[str, dict[str, Any]] = {}
    best: dict[str, PlanFigures] = {}
    for one in tried:
        row = rows.setdefault(
            one.origin, {"origin": one.origin, "plans": 0, "schedules": 0, "infeasible": 0, "best_so_far": 0}
        )
        row["plans"] += 1
        row["schedules"] += one.evaluations
        row["best_so_far"] += one.is_best
        if one.figures is None:
            row["infeasible"] += 1
        elif one.origin not in best or one.figures.rank(objective) < best[one.origin].rank(objective):
            best[one.origin] = one.figures
    return [{**row, "best": _figures(best[name]) if name in best else None} for name, row in rows.items()]


def tried_rows(found: FusionResult) -> list[JsonObject]:
    """Rows of `fusion.csv`, one for each evaluated plan, in the order of evaluation."""
    return [
        {
            "plan": one.number,
            "origin": one.origin,
            "stacks": one.stacks,
            "schedules": one.evaluations,
            LATENCY_CYCLES: "" if one.figures is None else one.figures.latency_cycles,
            ENERGY_PJ: "" if one.figures is None else one.figures.energy_pj,
            "is_best": one.is_best,
            "reason": one.reason,
        }
        for one in found.tried
    ]


def _figures(figures: PlanFigures) -> dict[str, float]:
    latency, energy = figures.latency_cycles, figures.energy_pj
    return {LATENCY_CYCLES: latency, ENERGY_PJ: energy, "edp": OBJECTIVES["EDP"].value(energy, float(latency))}


def _written(loops: Sequence[TilingEntry]) -> list[str]:
    return [f"{loop.dimension}, {loop.tiles}" for loop in loops]


def _bound_fields(bounds: LowerBounds, latency_cycles: int, energy_pj: float) -> JsonObject:
    """Fields of `fusion.json` with the lower bounds for the tiles of the plan, and the gaps between the schedule and
    the bounds.
    """
    least_edp = energy_delay_product(bounds.energy_pj, bounds.latency_cycles)
    return {
        "lower_bound": {
            LATENCY_CYCLES: bounds.latency_cycles,
            ENERGY_PJ: bounds.energy_pj,
            "covers": bounds.scope.text,
            "if_copied": {LATENCY_CYCLES: bounds.if_copied.latency_cycles},
        },
        "gap_latency": bounds.latency_gap(latency_cycles),
        "gap_latency_if_copied": bounds.if_copied.latency_gap(latency_cycles),
        "gap_energy": gap_to(bounds.energy_pj, energy_pj),
        "gap_edp": gap_to(least_edp, energy_delay_product(energy_pj, latency_cycles)),
    }
