"""First plans in which layers are cut into blocks along several dimensions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.base.objectives import OBJECTIVES, Powers
from tilewright.plans.block_queue import BlockQueue
from tilewright.plans.blocks import Blocks
from tilewright.plans.budget import IsPast
from tilewright.plans.evaluate import PlanOutcome, PlanToBeat, Task
from tilewright.plans.space import PlanSpace
from tilewright.plans.trials import Trials

BLOCKS = "blocks"
"""Origin of plans of this step of the search."""
BLOCK_ROUNDS = ((1.1, 0.9), (math.inf, 0.5))
"""Limits for a network of one layer. Cuts of this layer into blocks are tried in several rounds, and each round has a
pair of limits. The first number is the limit for the estimated latency of a cut, as a multiple of the latency of the
best plan. This limit applies only if the objective is the latency. The second number is the largest share of the
remaining seconds and schedules that the round may use.
"""
BLOCK_COUNT_SHARE = 0.5
"""Largest share of the remaining plans that one round of cuts into blocks may evaluate. The refinement after the round
has the same limit, but the LEAST_REFINED best cuts are exempt from it.
"""
BLOCK_BATCH = 2
"""Number of cuts into blocks in a batch. All cuts of a batch are chosen before any of them is evaluated."""
BLOCK_RANKS = 2
"""Number of tried plans in which all layers are cut into blocks, for a network of several layers. In plan `r`, each
layer has the cut with the estimate of rank `r` (0 is the best).
"""
REFINED_WITHIN, LEAST_REFINED = 1.15, 3
"""Limits for the refinement, which evaluates the best cuts into blocks on every number of cores, with both orders of
the loops. A cut is refined if its objective is at most REFINED_WITHIN times the objective of the best cut. At least
LEAST_REFINED cuts are refined, even if their objectives exceed this limit.
"""


@dataclass(frozen=True)
class BlockSteps:
    """Step of the search that tries plans of blocks."""

    trials: Trials
    space: PlanSpace

    def run(self) -> None:
        """Try plans in which every layer is a stack, cut into blocks along several dimensions. Blocks with the best
        estimates come first. Nothing is tried if the run fixes the stacks.

        For a network of several layers, BLOCK_RANKS plans are tried, and only if there are many cores. For a network of
        one layer, cuts are tried until no cut is left, or until the step has used its share of the budget.
        """
        if self.space.fixed.stacks is not None or not any(one.blocks for one in self.space.layers):
            return
        if len(self.space.layers) > 1:
            if not self.space.has_many_cores:
                return  # the costs of further parts take more time than they save
            plans = dict.fromkeys(self.space.in_blocks(rank, self.trials.objective) for rank in range(BLOCK_RANKS))
            self.trials.look_at([Task(plan, spread=tuple(range(len(self.space.layers)))) for plan in plans], BLOCKS)
            return
        queue = BlockQueue(self.space.layers[0].blocks, self.trials.objective)
        for tolerance, share in BLOCK_ROUNDS:
            self._round(queue, tolerance, share)

    def _round(self, queue: BlockQueue, tolerance: float, share: float) -> None:
        """Try cuts from the queue, and refine the best of the tried cuts. If the objective is the latency, a cut is
        tried only if its estimate is below `tolerance` times the latency of the best plan. `share` is the largest share
        of the remaining seconds and schedules that the round may use. The refinement of the LEAST_REFINED best cuts may
        exceed this share.
        """
        is_past = self.trials.after(share)
        most = len(self.trials.tried) + int(BLOCK_COUNT_SHARE * self.trials.budget.plans_left)
        found: list[tuple[PlanOutcome, Blocks]] = []
        while len(self.trials.tried) < most and not is_past():
            cuts = queue.next(min(BLOCK_BATCH, most - len(self.trials.tried)), self.trials.best, tolerance)
            if not cuts:
                break
            outcomes = self.trials.look_at([self._task(cut) for cut in cuts], BLOCKS, is_past)
            for outcome, cut in zip(outcomes, cuts, strict=False):
                queue.learn(outcome, cut)
                if outcome.figures is not None:
                    found.append((outcome, cut))
        self._refine(found, is_past)

    def _refine(self, found: Sequence[tuple[PlanOutcome, Blocks]], is_past: IsPast) -> None:
        """Evaluate the best cuts into blocks on every number of cores, and with both orders of the loops. The best
        LEAST_REFINED cuts come first; they are limited only by the number of remaining plans. The remaining cuts follow
        until `is_past` returns True. They use at most half of the plans that are left after the best cuts.
        """
        ordered = sorted(found, key=lambda pair: self.trials.rank(pair[0]))
        least = REFINED_WITHIN * self.trials.rank(ordered[0][0])[0] if ordered else 0.0
        cuts = [
            cut
            for place, (outcome, cut) in enumerate(ordered)
            if place < LEAST_REFINED or self.trials.rank(outcome)[0] <= least
        ]
        tasks = [self._task(cut, outwards, True) for cut in cuts for outwards in (True, False)]
        few = tasks[: 2 * LEAST_REFINED][: max(0, self.trials.budget.plans_left)]
        self.trials.look_at(few, BLOCKS)
        if not is_past():
            most = int(BLOCK_COUNT_SHARE * max(0, self.trials.budget.plans_left))
            self.trials.look_at(tasks[len(few) :][:most], BLOCKS, is_past)

    def _task(self, cut: Blocks, outwards: bool = False, on_every_count: bool = False) -> Task:
        (one,) = self.space.layers
        plan = self.space.plan([one.in_blocks(cut.counts, 1, outwards)], (0,))
        rival = None
        if self.trials.best is not None and self.trials.best.figures is not None and one.machine is not None:
            is_latency = OBJECTIVES[self.trials.objective] == Powers(latency=1)
            rival = PlanToBeat(self.trials.best.figures.latency_cycles, one.machine) if is_latency else None
        return Task(plan, spread=(0,), on_every_count=on_every_count, rival=rival)
