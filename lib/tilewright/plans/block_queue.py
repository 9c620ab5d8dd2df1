"""Queue of the cuts of a layer into blocks, by estimates and by the schedules of earlier cuts."""

from collections.abc import Sequence

from tilewright.base.objectives import OBJECTIVES, Powers
from tilewright.plans.blocks import Blocks
from tilewright.plans.evaluate import PlanOutcome

TOLERANCE = 1.1
"""Largest estimate of a cut that is tried, as a multiple of the latency of the best plan."""


class BlockQueue:
    """Cuts of a layer that were not tried yet.

    Estimates count the cycles of an array without stalls. The schedules of earlier cuts give the least ratio of the
    real time on a core to this time, which then stretches the estimates of all other cuts.
    """

    def __init__(self, cuts: Sequence[Blocks], objective: str) -> None:
        self._cuts, self._objective, self._stretch = list(cuts), objective, 1.0
        self._is_known = False

    def next(self, count: int, best: PlanOutcome | None) -> list[Blocks]:
        """The next `count` cuts, which leave the queue. If the objective is the latency, cuts whose estimate is
        much above the latency of `best` are left out.
        """
        self._cuts.sort(key=lambda cut: cut.rank(self._objective, self._stretch))
        taken = self._cuts[:count]
        if OBJECTIVES[self._objective] == Powers(latency=1) and best is not None and best.figures is not None:
            least = best.figures.latency_cycles
            taken = [cut for cut in taken if cut.least_cycles(self._stretch) < TOLERANCE * least]
        self._cuts = self._cuts[count:] if taken else []
        return taken

    def learn(self, outcome: PlanOutcome, cut: Blocks) -> None:
        """Take the schedule of a cut into account."""
        if outcome.figures is None or not outcome.most_parts * cut.block_cycles:
            return
        stretch = max(1.0, outcome.busiest_cycles / (outcome.most_parts * cut.block_cycles))
        self._stretch = min(self._stretch, stretch) if self._is_known else stretch
        self._is_known = True
