"""Call of the search for a plan: one search, parts of a search with islands, or several searches that share limits."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.multicore.nodes.partial_sums import reductions_of
from tilewright.multicore.nodes.stacks import layer_stacks
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.stages.multi.core_mapping import KnownRows
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.advancing import stepped_dimensions
from tilewright.plans.answer import CutWorth, Fusion, ReductionTrial
from tilewright.plans.budget import (
    FILES_S,
    FILES_WITH_PAGE_S,
    FINISHES,
    FINISHES_WITH_FILES,
    CpuMeter,
    search_budget,
)
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanEvaluator, PlanOutcome, Task
from tilewright.plans.islands import IslandRound, IslandState, result_so_far
from tilewright.plans.opening import Neighbours
from tilewright.plans.plan import Plan
from tilewright.plans.reductions import ReductionVariant, reduction_variants
from tilewright.plans.search import FusionSearch
from tilewright.plans.space import Fixed, PlanSpace, plan_space
from tilewright.plans.tiling_bounds.bound import TilingBounds, tiling_bounds
from tilewright.plans.trials import FusionResult, Progress
from tilewright.plans.work import PlanWork
from tilewright.search.options import CnSearchOptions

MOST_CUTS = 12
"""Largest number of cuts between stacks whose benefit is measured. Each measurement evaluates one more plan."""


def fusion_space(
    problem: SystemProblem, options: FusionOptions, stacks: tuple[tuple[int, ...], ...] | None = None
) -> PlanSpace:
    """Space of plans that the search covers. If `options` or `stacks` fix a choice, all plans of the space have the
    fixed value.
    """
    prefetch = options.operands_to_prefetch
    fixed = Fixed(
        stacks,
        options.scheduler_candidate_selection,
        None if prefetch is None else tuple(prefetch),
        options.prefetch_results,
        options.layers_by_off_chip,
    )
    return plan_space(problem, fixed)


@dataclass(frozen=True, eq=False)
class FusionCall:
    """Call of the search for a plan, for one network on one accelerator.

    The limits of seconds do not end the search before one plan has a schedule. All methods raise InputError or
    MappingError if no plan has a schedule, and KeyboardInterrupt for Ctrl-C before the first schedule.
    """

    problem: SystemProblem
    options: FusionOptions
    stacks: tuple[tuple[int, ...], ...] | None = None
    """Node ids of the layers of each stack, if the call fixes the stacks; otherwise None."""
    progress: Progress | None = None
    clock: Callable[[], float] = time.monotonic
    start_s: float | None = None
    """Time at which the call began, in seconds of `clock`. None stands for the beginning of the search."""
    start: Task | None = None
    """Plan of an earlier search. It is evaluated on this accelerator, and the result is never worse than this plan."""
    neighbours: Neighbours | None = None
    """Plans found by searches on similar systems. In the first steps of the search (the opening), they replace some or
    all other plans.
    """
    meter: CpuMeter | None = None
    """Meter of the CPU seconds since the call began. None stands for a meter that begins with the search."""
    known: KnownRows | None = None
    """Table of costs of computation nodes. The costs were computed by earlier searches on the same cores. A search adds
    the costs that it computes in this process.
    """
    makes_files: bool = False
    """True if the caller makes the files of the schedule after the search. The limits of seconds then include this
    work.
    """
    makes_page: bool = False
    """True if the caller makes the page of the search after the search. The limits of seconds then include this work.
    """

    def answer(self) -> Fusion:
        """Best plan that the whole search finds."""
        if self.options.cut_reductions:
            return _ReductionSearches(self).answer()
        return self._with_cuts(self._search.run())

    def best_plan(self) -> Fusion:
        """Best plan that the search finds. The benefits of the cuts between its stacks are not measured."""
        return self._fusion(self._search.run())

    @property
    def bounds_of_any_plan(self) -> TilingBounds:
        """Lower bounds of latency and energy over every plan, computed without a search."""
        return self._any_plan()

    def opening(self) -> IslandState:
        """State of the search after the opening (the first steps, which use no random numbers). Every island begins
        from this state."""
        return self._search.opening()

    def island_round(self, made: IslandRound) -> IslandState:
        """State of an island after one round of its search."""
        return self._search.island_round(made)

    def from_islands(self, opening: IslandState, islands: Sequence[IslandState]) -> Fusion:
        """Best plan of a search with islands, made from finished states: the state after the opening, and the last
        state of each island.
        """
        return self._with_cuts(self._search.from_islands(opening, islands))

    def so_far(self, state: IslandState) -> Fusion:
        """Result of the search as if it ended with `state`.

        The numbers of plans and schedules cover only a part of the search. If `state` is the state after the opening,
        they cover the opening. If `state` is the state of an island, they cover the rounds of this island.
        """
        return self._fusion(result_so_far(state))

    @cached_property
    def start_digest(self) -> str:
        """Digest of the start plan and its cores; '' without a start plan."""
        return "" if self.start is None else content_digest(encode((self.start.plan, self.start.cores)))

    @cached_property
    def _settings(self) -> ScheduleSettings:
        by_off_chip, options = self.options.layers_by_off_chip, self.options
        if by_off_chip:  # reports unknown layers before the search; later, no plan would have a schedule
            given = ScheduleSettings(layers_by_off_chip=by_off_chip)
            given.options(self.problem.workload, self.problem.mapping, ())
        return ScheduleSettings(
            share_divisor=options.share_divisor, stack_order=options.stack_order, cn_runtime=options.cn_runtime
        )

    @cached_property
    def space(self) -> PlanSpace:
        """Space of plans that the search covers."""
        return fusion_space(self.problem, self.options, self.stacks)

    @cached_property
    def _search(self) -> FusionSearch:
        begin = self.clock() if self.start_s is None else self.start_s
        finishes = FINISHES_WITH_FILES if self.makes_files else FINISHES
        files_s = FILES_WITH_PAGE_S if self.makes_page else FILES_S
        budget = search_budget(self.options, self.clock, begin, self.meter, finishes, files_s)
        work = PlanWork(
            self.problem,
            self.options.part(CnSearchOptions),
            self._settings,
            self.options.objective,
            self.clock,
            self._known,
        )
        show = self.progress or (lambda done, planned, best, elapsed: None)

        def finish(found: FusionResult) -> object:
            self._kept[:] = [self._fusion(found)]
            return self._kept[0].document

        if budget.time_limits:
            # These bounds do not depend on the plan, so that their time must not be part of the time for a plan.
            with contextlib.suppress(InputError, MappingError):
                self._any_plan()
        elapsed, starts = lambda: self.clock() - begin, (self.start, self.neighbours)
        return FusionSearch(work, self.space, self.options, budget, show, elapsed, *starts, finish)

    @cached_property
    def _known(self) -> KnownRows:
        return {} if self.known is None else self.known

    @cached_property
    def _any_plan(self) -> Callable[[], TilingBounds]:
        model, settings = self.options.part(CnSearchOptions).model, self._settings
        return cache(lambda: tiling_bounds(self.problem, model, settings, steps=self.steps))

    @property
    def steps(self) -> list[frozenset[str]]:
        """Reductions that a plan can cut into steps on one core, as one set for each layer. A set has the reductions
        that the search can cut, and the reductions that the start plan cuts.
        """
        found = stepped_dimensions(self.space)
        if self.start is None:
            return found
        cut = zip(self.space.layers, self.start.plan.tiles, strict=True)
        given = [
            frozenset(loop.dimension for loop in tiles.within) & set(reductions_of(one.layer)) for one, tiles in cut
        ]
        return [one | other for one, other in zip(found, given, strict=True)]

    def _fusion(self, found: FusionResult, cuts: tuple[CutWorth, ...] = ()) -> Fusion:
        given = (self.problem, self.options, self._settings, self.space)
        made = Fusion(*given, found, cuts, self._any_plan, self.start_digest, known=self._known)
        for kept in self._kept:
            made.take_over(kept)
        return made

    @cached_property
    def _kept(self) -> list[Fusion]:
        """List with at most one result. The time for the end of the call is measured from time to time, each time with
        a result of the search; the list has the last of these results.
        """
        return []

    def _with_cuts(self, found: FusionResult) -> Fusion:
        """Result of a search, with the benefits of the cuts between stacks."""
        if self.stacks is not None or found.stopped_by == INTERRUPTED:
            return self._fusion(found)
        limits = self._search.budget.time_limits
        in_time = lambda: not any(limit.is_over for limit in limits)  # noqa: E731
        return self._fusion(found, _cuts(self._search.work, self.space, found.best, in_time))


def fused(
    problem: SystemProblem,
    options: FusionOptions,
    stacks: tuple[tuple[int, ...], ...] | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    start_s: float | None = None,
    start: Task | None = None,
) -> Fusion:
    """Best plan for a network on an accelerator: the answer of a `FusionCall` with these arguments."""
    return FusionCall(problem, options, stacks, progress, clock, start_s, start).answer()


@dataclass(frozen=True, eq=False)
class _ReductionSearches:
    """Searches of a call with the option `cut_reductions`: for the network as it is, and for networks with cut
    reductions. All searches have the same share of the limits. The network without cuts is searched first.
    """

    call: FusionCall

    @cached_property
    def _variants(self) -> Sequence[ReductionVariant]:
        return reduction_variants(self.call.problem, not self.call.options.layers_by_off_chip)

    @cached_property
    def _share(self) -> FusionOptions:
        """Options of each search. Each search gets an equal share of the limits of the call."""
        return _shared_options(self.call.options, 1 + len(self._variants))

    def answer(self) -> Fusion:
        """Best of the results of all searches."""
        call, options = self.call, self.call.options
        found = replace(call, options=self._share).answer()
        best, trials = _best_of(found, self._variants, self._search)
        model = options.part(CnSearchOptions).model
        any_plan = cache(lambda: tiling_bounds(call.problem, model, found.settings, True, call.steps))
        uncut = found if best.problem is not call.problem else None
        best = replace(best, limits=self._share, searches=len(trials) or 1)
        return replace(best, options=options, any_plan=any_plan, reductions=trials, uncut=uncut)

    def _search(self, variant: ReductionVariant) -> Fusion:
        stacks = self.call.stacks
        members = None if stacks is None else layer_stacks(variant.problem.workload, stacks=stacks)
        given = FusionCall(variant.problem, self._share, members, self.call.progress, self.call.clock)
        return given.answer()


def _best_of(
    found: Fusion, variants: Sequence[ReductionVariant], search: Callable[[ReductionVariant], Fusion]
) -> tuple[Fusion, tuple[ReductionTrial, ...]]:
    """Pair (best result, trials). `found` is the result of the search without cut reductions, and `search` gives a
    result for each of the variants. The best of all these results is returned.

    There is one trial for each search that has ended. The first trial is the search without cut reductions. Without
    variants, the trials are (). Ctrl-C ends the searches and keeps the best result so far.
    """
    if not variants:
        return found, ()
    trials = [ReductionTrial((), 1, "", *_outcome(found), True)]
    best, is_interrupted = found, found.is_interrupted
    for variant in variants:
        if is_interrupted:
            break
        trial = ReductionTrial(variant.layers, variant.parts, variant.shape)
        try:
            tried = search(variant)
        except KeyboardInterrupt:
            is_interrupted = True
            continue
        except (InputError, MappingError):
            trials.append(trial)
            continue
        is_interrupted = tried.is_interrupted
        plans, figures = _outcome(tried)
        trials.append(replace(trial, plans=plans, figures=figures))
        if figures.rank(found.options.objective) < _outcome(best)[1].rank(found.options.objective):
            trials = [replace(one, is_best=one is trials[-1]) for one in trials]
            best = tried
    if is_interrupted:
        best = replace(best, found=replace(best.found, stopped_by=INTERRUPTED))
    return best, tuple(trials)


def _outcome(found: Fusion) -> tuple[int, PlanFigures]:
    """Pair (number of evaluated plans, latency and energy of the best plan)."""
    return len(found.found.tried), PlanFigures(found.latency_cycles, found.energy_pj)


def _shared_options(options: FusionOptions, searches: int) -> FusionOptions:
    """Options for one of several searches that share the limits of a call. Each search gets 1 / `searches` of each
    limit.
    """
    most, cpu_s, seconds = options.nb_schedules, options.fusion_cpu_budget_s, options.fusion_time_budget_s
    shares = {
        "cut_reductions": False,
        "nb_plans": max(1, options.nb_plans // searches),
        "nb_schedules": None if most is None else max(1, most // searches),
        "fusion_cpu_budget_s": None if cpu_s is None else cpu_s / searches,
        "fusion_time_budget_s": None if seconds is None else seconds / searches,
    }
    return FusionOptions(**{**options.as_dict(), **shares})


def _cuts(work: PlanWork, space: PlanSpace, best: PlanOutcome, in_time: Callable[[], bool]) -> tuple[CutWorth, ...]:
    """Benefits of the cuts between stacks, one for each measured cut. If there are more than MOST_CUTS cuts, only
    MOST_CUTS of them are measured: the cuts whose two neighbouring stacks have the most layers. The cuts are measured
    in the order of the network, until `in_time` returns False.
    """
    evaluator = PlanEvaluator(work.problem, work.search, work.settings, work.objective, work.known)
    ends = space.ends_of(best.plan)
    bounds = dict(zip(ends, zip((-1, *ends[:-1]), (*ends[1:], ends[-1]), strict=True), strict=True))
    inner = [end for end in ends[:-1] if _is_of_stacks(best.plan, space, ends)]
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


def _is_of_stacks(plan: Plan, space: PlanSpace, ends: Sequence[int]) -> bool:
    return plan.stacks == space.stacks(ends)
