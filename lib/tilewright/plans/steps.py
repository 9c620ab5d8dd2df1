"""Random steps of a search.

A step changes one of the best plans so far; steps are evaluated in batches.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.plans.evaluate import PlanOutcome, Task
from tilewright.plans.moves import FEW_TRIES, PlanMoves
from tilewright.plans.trials import BATCH, Trials

BEST_SHARE = 0.7
"""Share of random steps that begin at the best plan."""


@dataclass(frozen=True)
class StepByStep:
    """Search that improves the best plans so far in random steps."""

    trials: Trials
    moves: PlanMoves
    draw: random.Random
    seed: int

    def run(self) -> None:
        """Take steps until the budget is used."""
        while self.trials.best is not None and not self.trials.is_over() and self.trials.budget.plans_left > 0:
            batch = [self._step(number) for number in range(min(BATCH, self.trials.budget.plans_left))]
            parents = [parent for _, parent, _ in batch]
            outcomes = self.trials.look_at([task for _, _, task in batch], [kind for kind, _, _ in batch])
            better = []
            for (kind, parent, _), outcome in zip(batch, outcomes, strict=False):
                is_better = outcome.figures is not None and self.trials.rank(outcome) < self.trials.rank(parent)
                gain = 1 - self.trials.rank(outcome)[0] / self.trials.rank(parent)[0] if is_better else 0.0
                self.moves.learn(kind, gain, outcome.evaluations)
                if is_better and outcome.plan != parent.plan and parent is parents[0]:
                    better.append(outcome)
            joined = self._joined(parents[0], better)
            if joined is not None and self.trials.budget.plans_left > 0:
                self.trials.look_at([joined], "joined")

    def _step(self, number: int) -> tuple[str, PlanOutcome, Task]:
        assert self.trials.best is not None
        others = list(self.trials.elite.values())
        parent = self.trials.best if number == 0 or self.draw.random() < BEST_SHARE else self.draw.choice(others)
        kind, task = self.moves.next_task(parent, self.seed + len(self.trials.tried) + number)
        return kind, parent, task

    def _joined(self, parent: PlanOutcome, better: Sequence[PlanOutcome]) -> Task | None:
        """Task for a plan that joins the changes of all plans in `better`. Each of these plans was made from the plan
        `parent` by one step, and is better than `parent`. None if `better` has fewer than two plans.

        The changes of tiles and detours are joined. If several plans in `better` change the same choice in different
        ways, the best of these plans decides. All other choices are taken from the best plan.
        """
        if len(better) < 2:
            return None
        ordered = sorted(better, key=self.trials.rank, reverse=True)
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
