"""Result of a search for plans: the best schedule, options that reproduce it, the benefit of cuts between stacks, and
all evaluated plans.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import Unused
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
from tilewright.pipeline.stages.multi.core_mapping import KnownRows
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.multi.run import MultiCoreProblem, fixed_mapping_text
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanEvaluator, PlanOutcome
from tilewright.plans.plan import Plan, has_steps
from tilewright.plans.space import PlanSpace
from tilewright.plans.tiling_bounds.bound import TilingBounds, any_plan_fields
from tilewright.plans.trials import FusionResult, Tried
from tilewright.results.multi.cost_ranges import range_fields
from tilewright.results.multi.summary import rate_fields, reload_rows, term_fields
from tilewright.search.options import CnSearchOptions

SEARCH_FIELDS = ("seed", "nb_plans", "nb_schedules", "fusion_time_budget_s", "fusion_cpu_budget_s", "islands")
"""Names of the search options that `fusion.json` states."""


@dataclass(frozen=True)
class CutWorth:
    """Benefit of one cut between two stacks. The benefit follows from the latency and energy of the plan without this
    cut.
    """

    after: str
    """Name of the last layer before the cut."""
    before: str
    """Name of the first layer after the cut."""
    figures: PlanFigures | None
    """Latency and energy of the plan in which the two stacks are merged and the tiles and cores stay the same. None if
    this plan has no schedule.
    """


@dataclass(frozen=True)
class ReductionTrial:
    """Result of one search. The search is for the network as it is, or for a network in which some reductions are cut
    between cores.
    """

    layers: tuple[str, ...]
    """Names of the layers whose reductions are cut."""
    parts: int
    """Largest number of parts into which a reduction is to be cut; 1 if no reduction is cut. A reduction with fewer
    indices has one part for each index.
    """
    shape: str
    """Order in which the partial sums are added; '' if no reduction is cut."""
    plans: int = 0
    """Number of plans that were evaluated."""
    figures: PlanFigures | None = None
    """Latency and energy of the best plan; None if no plan has a schedule."""
    is_best: bool = False
    """True if this result is the best one, which the call returns."""

    def to_dict(self) -> JsonObject:
        """Row for this search in the list `reductions` of `fusion.json`."""
        best = None if self.figures is None else _figures(self.figures)
        return {
            **{"layers": list(self.layers), "parts": self.parts, "shape": self.shape},
            **{"plans": self.plans, "best": best, "is_best": self.is_best},
        }


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
    reductions: tuple[ReductionTrial, ...] = ()
    """Results of all searches of a call with the option `cut_reductions`: first the result for the network as it is,
    then one result for each network with cut reductions. () if there was only one search.
    """
    limits: FusionOptions | None = None
    """Limits of this search: a share of the limits of the call, if the call makes several searches. None if the call
    makes only one search.
    """
    searches: int = 1
    """Number of searches that share the limits of the call."""
    uncut: "Fusion | None" = None
    """Result for the network without cuts of reductions; None if this `Fusion` itself is for this network."""
    known: KnownRows | None = None
    """Costs of computation nodes that the search computed in this process. Later searches can use these costs again."""

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
    def unused(self) -> list[Unused]:
        """Notices on keys of hardware files that have no effect on the computation nodes of the best plan."""
        return self.multi_core_problem.inputs.unused

    @property
    def bounds_of_any_plan(self) -> TilingBounds:
        """Lower bounds of latency and energy over every plan of this network on this accelerator."""
        return self.any_plan()

    @cached_property
    def multi_core_problem(self) -> MultiCoreProblem:
        """Problem of allocation and scheduling for the best plan. Each part can run on any of its allowed cores, so the
        lower bounds hold for all allocations.
        """
        return self._problem_of(self.plan)

    def take_over(self, other: "Fusion") -> None:
        """Take the scheduling problem, its bounds and the checked schedule from another result, so that they are not
        computed again. Nothing is taken if the plans or cores of the two results differ.
        """
        if (other.plan, other.best.cores) == (self.plan, self.best.cores):
            for name in ("multi_core_problem", "_genome", "artifact"):
                if name in vars(other):
                    vars(self)[name] = vars(other)[name]

    def _problem_of(self, plan: Plan) -> MultiCoreProblem:
        options, objective = self.options.part(CnSearchOptions), self.options.objective
        return PlanEvaluator(self.problem, options, self.settings, objective, self.known).multi_core_problem(plan)

    @cached_property
    def _genome(self) -> Genome:
        space = self.multi_core_problem.space
        return space.genome([self.best.cores[layer][group] for layer, group in space.parts])

    @cached_property
    def artifact(self) -> ScheduleArtifact:
        """Best schedule with its logs. The schedule is computed and checked at the first use."""
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
        whole = self.uncut or self
        lbl = whole.found.layer_by_layer
        document: dict[str, Any] = {
            "workload": self.problem.workload.name,
            "hardware": self.problem.accelerator.name,
            "objective": self.options.objective,
            **_figures(PlanFigures(self.latency_cycles, self.energy_pj)),
            **self._rates(),
            **_bound_fields(bounds, self.latency_cycles, self.energy_pj),
            "any_plan": any_plan_fields(self.bounds_of_any_plan, self.latency_cycles, self.energy_pj),
            "layer_by_layer": None if lbl is None or lbl.figures is None else whole._alone(lbl, lbl.figures),
            **self._start(),
            **({"reductions": [one.to_dict() for one in self.reductions]} if self.reductions else {}),
            "search": {
                **{name: getattr(self.limits or self.options, name) for name in SEARCH_FIELDS},
                **({"searches": self.searches} if self.searches > 1 else {}),
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
            "stacks": _stack_rows(self.space, self.plan),
            "cuts": [_cut_row(cut, self.latency_cycles, self.energy_pj) for cut in self.cuts],
            "layers": self._layer_rows(),
            "reloads": reload_rows(self.artifact),
            "reproduce": {verb: shlex.join(options) for verb, options in self.reproducing_options.items()},
        }
        return with_unused(document, [*self.problem.notices, *self.unused])

    def _alone(self, lbl: PlanOutcome, figures: PlanFigures) -> JsonObject:
        """Latency, energy, energy terms and latency bound of the best plan in which each stack has one layer."""
        if lbl == self.best:
            problem, artifact = self.multi_core_problem, self.artifact
        else:
            problem = self._problem_of(lbl.plan)
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
        """Latency and energy of the start plan on this accelerator, or the reason why it has no schedule. The result is
        empty if there is no start plan.
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
            **term_fields(self.artifact, costs),
        }

    def _layer_rows(self) -> list[JsonObject]:
        ids, joined = self.problem.accelerator.core_ids, _fused_ids(self.space, self.plan)
        return [
            {
                "name": one.node.name,
                "inter_core_tiling": _written(tiles.between),
                "intra_core_tiling": (
                    _written(tiles.within) if one.node.node_id in joined or has_steps(one.layer, tiles) else []
                ),
                "cores": [ids[core] for core in cores],
            }
            for one, tiles, cores in zip(self.space.layers, self.plan.tiles, self.best.cores, strict=True)
        ]


def _cut_row(cut: CutWorth, latency_cycles: int, energy_pj: float) -> JsonObject:
    """Row of `fusion.json` for one cut between two stacks: its effect on latency and energy. `latency_cycles` and
    `energy_pj` belong to the plan with this cut.
    """
    without = None if cut.figures is None else _figures(cut.figures)
    row: dict[str, Any] = {"after": cut.after, "before": cut.before, "without": without}
    for key, mine in (("saves_latency_cycles", latency_cycles), ("saves_energy_pj", energy_pj)):
        other = None if cut.figures is None else getattr(cut.figures, key.removeprefix("saves_"))
        row[key] = None if other is None else other - mine
    return row


def _stack_rows(space: PlanSpace, plan: Plan) -> list[JsonObject]:
    names = {one.node.node_id: one.node.name for one in space.layers}
    return [
        {"stack": number, "layers": len(stack), "first": names[stack[0]], "last": names[stack[-1]]}
        for number, stack in enumerate(plan.stacks)
        if stack
    ]


def _fused_ids(space: PlanSpace, plan: Plan) -> set[int]:
    """Ids of all layers that share a stack with another layer of the network file. Parts of the same layer of this file
    count as one layer.
    """
    whole = {one.node.node_id: one.node.network_id for one in space.layers}
    return {one for stack in plan.stacks if len({whole[member] for member in stack}) > 1 for one in stack}


def origin_rows(tried: Sequence[Tried], objective: str) -> list[JsonObject]:
    """Statistics of the evaluated plans, one row for each origin (the step of the search that proposed the plan).

    A row has four counts: plans, schedules that were made for these plans, plans without a schedule, and plans that
    were the best so far when they were evaluated. A row also has latency, energy and EDP of the best plan of the
    origin.
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
    """Fields of `fusion.json` with the lower bounds for the tiles of the plan, and the gap between the schedule and
    each bound.
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
