"""Search for plans: first uniform plans, then compositions of segments, then random steps from the best plans.

The costs and the schedule of every plan are computed as in a run, so that latency and energy are not estimates. Plans
are evaluated in batches of a fixed size, also with several processes. Therefore, if the number of plans ends the
search, the result does not depend on the number of processes.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES, Powers
from tilewright.base.processes import in_processes
from tilewright.multicore.allocation.evaluate import INTERRUPTED, TIME_BUDGET
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.plans.block_queue import BlockQueue
from tilewright.plans.blocks import Blocks
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanOutcome, PlanToBeat, Task
from tilewright.plans.moves import FEW_TRIES, MANY_TRIES, PlanMoves
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.segments import PART_RULES, SEGMENT_TILES, Segment, blocks, candidates, compose
from tilewright.plans.space import SELECTIONS, PartRule, PlanSpace
from tilewright.plans.work import Likeness, PlanWork, SegmentTask, make_worker, segment_task

COUNT = "count"
"""Reason why a search ended: it evaluated the planned number of plans."""
BATCH = 12
"""Number of plans in a batch. All plans of a batch are chosen before any of them is evaluated."""
ELITE = 4
"""Number of best plans that are kept as starting points of random steps."""
BEST_SHARE = 0.7
"""Share of random steps that begin at the best plan."""
SEGMENT_TIME_SHARE, SEGMENT_COUNT_SHARE = 0.3, 0.4
"""Largest shares of the time and of the number of plans that the search uses for segments of the network."""
FINISHES, FILES_S = 2.0, 1.0
"""Numbers that determine the time reserved for the end of a call. First: multiple of the time that the bounds and the
check of the first plan take. Second: seconds for writing files.
"""
CUTS_TIME_SHARE = 0.1
"""Share of the time budget that is reserved for measuring the benefit of cuts."""
SEGMENT_RULES = 3
"""Number of part rules that are tried for segments. They are the rules of the best uniform plans."""
COMPOSED = 3
"""Number of compositions of segments that are evaluated as whole plans, for each rule of candidate selection."""
COMPOSED_TRIES = 120
"""Number of allocations that are tried for each composition. Later plans start from the best of these allocations."""
BLOCK_ROUNDS = ((1.1, 0.9), (math.inf, 0.5))
"""Rounds of cuts into blocks, for a network of one layer. First: largest estimate of a cut, as a multiple of the
latency of the best plan. Second: largest share of the remaining time.
"""
BLOCK_COUNT_SHARE = 0.5
"""Largest share of the remaining plans that a round may use. The refinement of the best cuts of a round has the same
limit.
"""
BLOCK_BATCH = 2
"""Number of cuts into blocks in a batch. All cuts of a batch are chosen before any of them is evaluated."""
BLOCK_RANKS = 2
"""Number of plans in blocks for a network of several layers. In plan `r`, each layer has its cut with the `r`-th best
estimate.
"""
REFINED_WITHIN, LEAST_REFINED = 1.15, 3
"""Selection of the cuts into blocks that are evaluated on every number of cores, and with both orders of the loops.
First: largest objective of a selected cut, as a multiple of the objective of the best cut. Second: smallest number of
selected cuts.
"""
LAYER_BY_LAYER_RULES = (PartRule(1.0, True), *PART_RULES)
START, LAYER_BY_LAYER, BLOCKS, UNIFORM = "start", "layer by layer", "blocks", "uniform"
COMPOSITION = "composition"
"""Origin of plans that are compositions of segments. The names above are the other origins of plans that do not come
from a step of `PlanMoves`.
"""


@dataclass(frozen=True)
class Tried:
    """Record of a plan that was evaluated."""

    number: int
    """Number of the plan, in the order of evaluation."""
    origin: str
    figures: PlanFigures | None
    stacks: int
    evaluations: int
    """Number of schedules that were made for the plan."""
    is_best: bool
    """True if the plan was the best so far when it was evaluated."""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class FusionResult:
    """Result of the search for plans."""

    best: PlanOutcome
    layer_by_layer: PlanOutcome | None
    """Best plan in which each stack has one layer; None if the run fixes the stacks."""
    tried: tuple[Tried, ...]
    segments: int
    """Number of distinct segments that were scheduled as separate networks."""
    evaluations: int
    """Number of schedules made in the complete search."""
    stopped_by: str
    start: PlanOutcome | None = None
    """Result of the start plan with exactly its own cores; None if the search has no start plan."""


Progress = Callable[[int, int, PlanOutcome | None, float], None]
"""Callback after each plan. Its arguments are the number of plans so far, the largest number of plans, the best
outcome, and the elapsed seconds.
"""


@dataclass
class FusionSearch:
    """State of one search."""

    work: PlanWork
    space: PlanSpace
    options: FusionOptions
    progress: Progress = lambda done, planned, best, elapsed: None
    clock: Callable[[], float] = time.monotonic
    start_s: float | None = None
    """Time at which the call began, in seconds of `clock`; the time budget counts from it. None stands for the
    beginning of the search.
    """
    given: Task | None = None
    """Start plan from an earlier search, which is evaluated first."""
    finishing_s: Callable[[FusionResult], float] = lambda found: 0.0
    """Function that returns the seconds that the bounds and the check of a result take. It is called after the first
    plan with a schedule.
    """
    reserve_s: float | None = None
    """Seconds reserved for the end of the call, without the time to measure the benefit of cuts. None before the first
    measurement.
    """
    best: PlanOutcome | None = None
    lbl: PlanOutcome | None = None
    tried: list[Tried] = field(default_factory=list)
    evaluations: int = 0
    segments: int = 0
    stopped_by: str = ""
    started: PlanOutcome | None = None

    def run(self) -> FusionResult:
        """Search for the best plan. Raises InputError or MappingError if no plan has a schedule. Ctrl-C before the
        first schedule raises KeyboardInterrupt.
        """
        self._start = self.clock() if self.start_s is None else self.start_s
        self._elite: dict[Plan, PlanOutcome] = {}
        self._reasons: dict[str, None] = {}
        self._ends = blocks(self.space)
        try:
            make = partial(make_worker, self.work)
            with in_processes(make, BATCH, self.options.job_count, self._seconds_left) as work:
                self._work = work
                self._search()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.stopped_by = INTERRUPTED
        if self.best is None:
            raise MappingError(f"none of {len(self.tried)} plans has a schedule: {'; '.join(list(self._reasons)[:3])}")
        return self._found(self.best)

    def _found(self, best: PlanOutcome) -> FusionResult:
        tried, stopped_by = tuple(self.tried), self.stopped_by or COUNT
        return FusionResult(best, self.lbl, tried, self.segments, self.evaluations, stopped_by, self.started)

    def _search(self) -> None:
        if self.given is not None:
            (self.started,) = self._look_at([self.given], START)
        self._look_at(self._layer_by_layer(), LAYER_BY_LAYER)
        self._blocks()
        rules = self._uniform() if len(self.space.layers) > 1 else []
        if self.space.fixed.stacks is None:
            self._look_at(self._compositions(rules), COMPOSITION)
        self._step_by_step()
        if self.best is not None and self.stopped_by != TIME_BUDGET:
            self._look_at([Task(self.best.plan, self.best.cores, MANY_TRIES, by_engine=True)], "cores")

    def _is_over(self) -> bool:
        """True if the search ends now. The time budget does not end the search before one plan has a schedule."""
        left = self._seconds_left()
        if left is not None and left <= 0:
            self.stopped_by = self.stopped_by or TIME_BUDGET
        return bool(self.stopped_by)

    def _seconds_left(self) -> float | None:
        """Seconds left for plans, without the reserve for the end of the call; None if there is no time limit."""
        budget = self.options.fusion_time_budget_s
        if budget is None or self.best is None:
            return None
        if self.reserve_s is None:
            start = self.clock()
            self.reserve_s = FINISHES * self.finishing_s(self._found(self.best)) + FILES_S
            self.reserve_s = min(self.reserve_s, budget - (start - self._start))
        return max(0.0, (1 - CUTS_TIME_SHARE) * budget - self.reserve_s - self._elapsed())

    def _elapsed(self) -> float:
        return self.clock() - self._start

    @property
    def _left(self) -> int:
        """Number of plans that can still be evaluated."""
        return self.options.nb_plans - len(self.tried) - self.segments

    @property
    def _all(self) -> tuple[int, ...]:
        """Positions of all layers of the network."""
        return tuple(range(len(self.space.layers)))

    def _layer_by_layer(self) -> list[Task]:
        """Tasks that evaluate plans in which every layer is a stack. The first task also uses the allocation engine of
        a run.
        """
        if self.space.fixed.stacks is not None:
            return []
        plain = self.space.layer_by_layer(None)
        fixed = self.space.fixed
        first = replace(
            plain,
            selection=fixed.selection or SELECTIONS[0],
            prefetch=() if fixed.prefetch is None else fixed.prefetch,
            prefetch_results=bool(fixed.prefetch_results),
        )
        plans = dict.fromkeys([plain, *(self.space.layer_by_layer(rule) for rule in LAYER_BY_LAYER_RULES)])
        plans = dict.fromkeys(variant for plan in plans for variant in self._schedules(plan))
        return [Task(first, thorough=True, by_engine=True), *(Task(plan, thorough=True) for plan in plans)]

    def _schedules(self, plan: Plan) -> list[Plan]:
        """Copies of a plan, one for each rule of candidate selection."""
        if self.space.fixed.selection is not None:
            return [plan]
        return [replace(plan, selection=selection) for selection in SELECTIONS]

    def _blocks(self) -> None:
        """Try plans in which every layer is a stack, cut into blocks along several dimensions. Blocks with the best
        estimates come first.

        A network of several layers gets such plans only if there are many cores. For a network of one layer, the search
        can try all cuts. It ends when the estimates of the remaining cuts are too high, or when the time or the plans
        of this step are used up.
        """
        if self.space.fixed.stacks is not None or not any(one.blocks for one in self.space.layers):
            return
        if len(self.space.layers) > 1:
            if not self.space.has_many_cores:
                return  # the costs of further parts take more time than they save
            plans = dict.fromkeys(self.space.in_blocks(rank, self.options.objective) for rank in range(BLOCK_RANKS))
            self._look_at([Task(plan, spread=self._all) for plan in plans], BLOCKS)
            return
        queue = BlockQueue(self.space.layers[0].blocks, self.options.objective)
        for tolerance, share in BLOCK_ROUNDS:
            self._block_round(queue, tolerance, share)

    def _block_round(self, queue: BlockQueue, tolerance: float, share: float) -> None:
        """Try the cuts of a queue whose estimates are below `tolerance` times the best latency, and refine the best
        cuts. `share` is the largest share of the remaining time.
        """
        until, most = self._until(share), len(self.tried) + int(BLOCK_COUNT_SHARE * self._left)
        found: list[tuple[PlanOutcome, Blocks]] = []
        while len(self.tried) < most and not self._is_past(until):
            cuts = queue.next(min(BLOCK_BATCH, most - len(self.tried)), self.best, tolerance)
            if not cuts:
                break
            outcomes = self._look_at([self._block_task(cut) for cut in cuts], BLOCKS, until)
            for outcome, cut in zip(outcomes, cuts, strict=False):
                queue.learn(outcome, cut)
                if outcome.figures is not None:
                    found.append((outcome, cut))
        self._refine(found, until)

    def _refine(self, found: Sequence[tuple[PlanOutcome, Blocks]], until: float | None) -> None:
        """Evaluate the best cuts into blocks on every number of cores, and with both orders of the loops. The best
        LEAST_REFINED cuts come first, without a time limit. The other cuts are limited to the time `until` and to half
        of the remaining plans.
        """
        ordered = sorted(found, key=lambda pair: self._rank(pair[0]))
        least = REFINED_WITHIN * self._rank(ordered[0][0])[0] if ordered else 0.0
        cuts = [
            cut
            for place, (outcome, cut) in enumerate(ordered)
            if place < LEAST_REFINED or self._rank(outcome)[0] <= least
        ]
        tasks = [self._block_task(cut, outwards, True) for cut in cuts for outwards in (True, False)]
        few = tasks[: 2 * LEAST_REFINED][: max(0, self._left)]
        self._look_at(few, BLOCKS)
        if not self._is_past(until):
            most = int(BLOCK_COUNT_SHARE * max(0, self._left))
            self._look_at(tasks[len(few) :][:most], BLOCKS, until)

    def _block_task(self, cut: Blocks, outwards: bool = False, on_every_count: bool = False) -> Task:
        (one,) = self.space.layers
        plan = self.space.plan([one.in_blocks(cut.counts, 1, outwards)], (0,))
        rival = None
        if self.best is not None and self.best.figures is not None and one.machine is not None:
            is_latency = OBJECTIVES[self.options.objective] == Powers(latency=1)
            rival = PlanToBeat(self.best.figures.latency_cycles, one.machine) if is_latency else None
        return Task(plan, spread=self._all, on_every_count=on_every_count, rival=rival)

    def _until(self, share: float) -> float | None:
        """End time of a step that can use this share of the remaining time, in elapsed seconds; None if there is no
        time limit.
        """
        left = self._seconds_left()
        return None if left is None else self._elapsed() + share * left

    def _is_past(self, until: float | None) -> bool:
        return self._is_over() or (until is not None and self._elapsed() >= until)

    def _uniform(self) -> list[PartRule]:
        """Try plans in which one part rule cuts all layers. Returns the part rules of the best plans."""
        rule_of: dict[Plan, PartRule] = {}
        for rows in SEGMENT_TILES:
            for rule in PART_RULES:
                for variant in self._schedules(self.space.uniform(rows, rule)):
                    rule_of.setdefault(variant, rule)
        outcomes = self._look_at([Task(plan) for plan in rule_of], UNIFORM)
        found = sorted((one for one in outcomes if one.figures is not None), key=self._rank)
        best = list(dict.fromkeys(rule_of[one.plan] for one in found))[:SEGMENT_RULES]
        return [rule for rule in PART_RULES if rule in best]

    def _compositions(self, rules: Sequence[PartRule]) -> list[Task]:
        """Tasks that evaluate plans of the complete network. Each plan joins a sequence of segments whose costs have a
        small sum.
        """
        costs = self._segment_costs(rules)
        tasks = []
        for selection in self._selections:
            for segments in compose(costs[selection], len(self.space.layers), self.options.objective, COMPOSED):
                tiles: list[LayerTiles] = []
                ends: list[int] = []
                for segment in segments:
                    tiles += segment.tiles
                    ends += [segment.last] if segment.is_fused else range(segment.first, segment.last + 1)
                spread = self._all if self.space.has_many_cores else ()
                plan = self.space.plan(tiles, ends, selection)
                tasks.append(Task(plan, tries=COMPOSED_TRIES, thorough=True, spread=spread))
        return tasks

    @property
    def _selections(self) -> tuple[str, ...]:
        return SELECTIONS if self.space.fixed.selection is None else (self.space.fixed.selection,)

    def _segment_costs(self, rules: Sequence[PartRule]) -> dict[str, dict[Segment, PlanFigures]]:
        """[rule of candidate selection][segment] Costs of the segment. Each segment is scheduled as a separate network,
        and equal segments are scheduled only once.
        """
        costs: dict[str, dict[Segment, PlanFigures]] = {selection: {} for selection in self._selections}
        known: dict[object, list[Segment]] = {}
        wanted: list[SegmentTask] = []
        alike = Likeness(self.work.problem)
        for segment in candidates(self.space, self._ends, rules, self.options.objective):
            if len(self._ends) == 1:
                continue  # the segment is the whole network, which was evaluated before
            key = alike.of(segment)
            if key not in known:
                wanted.append(segment_task(segment, self._selections, self.space))
            known.setdefault(key, []).append(segment)
        groups = list(known.values())
        wanted = wanted[: max(0, int(SEGMENT_COUNT_SHARE * self._left))]
        until = self._until(SEGMENT_TIME_SHARE)
        for members, found in zip(groups, self._work(wanted), strict=False):
            self.segments += 1
            self.evaluations += found.evaluations
            for selection, figures in found.figures.items():
                costs[selection].update(dict.fromkeys(members, figures))
            self._say()
            if self._is_past(until):
                break
        return costs

    def _step_by_step(self) -> None:
        draw = random.Random(self.options.seed)
        moves = PlanMoves(self.space, self._ends, draw, self.options.objective)
        while self.best is not None and not self._is_over() and self._left > 0:
            batch = [self._step(moves, draw, number) for number in range(min(BATCH, self._left))]
            parents = [parent for _, parent, _ in batch]
            outcomes = self._look_at([task for _, _, task in batch], [kind for kind, _, _ in batch])
            better = []
            for (kind, parent, _), outcome in zip(batch, outcomes, strict=False):
                is_better = outcome.figures is not None and self._rank(outcome) < self._rank(parent)
                gain = 1 - self._rank(outcome)[0] / self._rank(parent)[0] if is_better else 0.0
                moves.learn(kind, gain, outcome.evaluations)
                if is_better and outcome.plan != parent.plan and parent is parents[0]:
                    better.append(outcome)
            joined = self._joined(parents[0], better)
            if joined is not None and self._left > 0:
                self._look_at([joined], "joined")

    def _step(self, moves: PlanMoves, draw: random.Random, number: int) -> tuple[str, PlanOutcome, Task]:
        assert self.best is not None
        others = list(self._elite.values())
        parent = self.best if number == 0 or draw.random() < BEST_SHARE else draw.choice(others)
        kind, task = moves.next_task(parent, self.options.seed + len(self.tried) + number)
        return kind, parent, task

    def _joined(self, parent: PlanOutcome, better: Sequence[PlanOutcome]) -> Task | None:
        """Task that joins all steps in `better`, which improved the plan `parent`. If steps contradict each other, the
        best step takes precedence. Returns None for fewer than two steps.
        """
        if len(better) < 2:
            return None
        ordered = sorted(better, key=self._rank, reverse=True)
        tiles = list(parent.plan.tiles)
        by_off_chip = before = set(parent.plan.by_off_chip)
        for outcome in ordered:
            changed = before.symmetric_difference(outcome.plan.by_off_chip)
            by_off_chip = by_off_chip - changed | changed.intersection(outcome.plan.by_off_chip)
            for place, (old, new) in enumerate(zip(parent.plan.tiles, outcome.plan.tiles, strict=True)):
                if old != new:
                    tiles[place] = new
        plan = replace(ordered[-1].plan, tiles=tuple(tiles), by_off_chip=tuple(sorted(by_off_chip)))
        return Task(plan, ordered[-1].cores, FEW_TRIES)

    def _look_at(
        self, tasks: Sequence[Task], origin: str | Sequence[str], until: float | None = None
    ) -> list[PlanOutcome]:
        """Evaluate tasks and record their outcomes. The list of outcomes is shorter if the search ends early or if
        `until` seconds have elapsed.
        """
        outcomes: list[PlanOutcome] = []
        if self._is_over():
            return outcomes
        origins: Iterator[str] = iter([origin] * len(tasks) if isinstance(origin, str) else origin)
        budget = self.options.fusion_time_budget_s
        if budget is not None:
            known = self._seconds_left()
            left = max(0.0, budget - self._elapsed()) if known is None else known
            tasks = [replace(task, time_left_s=left) for task in tasks]
        for outcome in self._work(tasks):
            outcomes.append(outcome)
            self._keep(outcome, next(origins))
            if self._is_past(until):
                break
        return outcomes

    def _keep(self, outcome: PlanOutcome, origin: str) -> None:
        self.evaluations += outcome.evaluations
        is_best = self._is_better(outcome, self.best)
        if is_best:
            self.best = outcome
        is_alone = self.space.fixed.stacks is None and all(len(stack) == 1 for stack in outcome.plan.stacks)
        if is_alone and self._is_better(outcome, self.lbl):
            self.lbl = outcome
        if outcome.reason:
            self._reasons[outcome.reason] = None
        row = (len(outcome.plan.stacks), outcome.evaluations, is_best, outcome.reason)
        self.tried.append(Tried(len(self.tried), origin, outcome.figures, *row))
        plan = outcome.plan.without_detours
        if outcome.figures is not None and self._is_better(outcome, self._elite.get(plan)):
            self._elite[plan] = outcome
            kept = sorted(self._elite.values(), key=self._rank)[:ELITE]
            self._elite = {one.plan.without_detours: one for one in kept}
        self._say()

    def _say(self) -> None:
        done = len(self.tried) + self.segments
        self.progress(done, max(done, self.options.nb_plans), self.best, self._elapsed())

    def _rank(self, outcome: PlanOutcome) -> tuple[float, ...]:
        assert outcome.figures is not None
        return outcome.figures.rank(self.options.objective)

    def _is_better(self, outcome: PlanOutcome, other: PlanOutcome | None) -> bool:
        if outcome.figures is None:
            return False
        return other is None or self._rank(outcome) < self._rank(other)
