"""Queue of cuts that divide a layer into blocks, sorted by the estimated objective of each cut.

Schedules of the first cuts correct the estimates of the remaining cuts.
"""

from collections.abc import Sequence

from tilewright.base.objectives import OBJECTIVES, Powers
from tilewright.plans.blocks import Blocks
from tilewright.plans.evaluate import PlanOutcome


class BlockQueue:
    """Queue of the cuts of a layer that were not tried yet, ordered by estimates.

    An estimate assumes that the array of a core never stalls. Each cut that was scheduled gives a ratio: real core time
    / core time without stalls. The core times in the estimates of the remaining cuts are multiplied by the smallest of
    these ratios.
    """

    def __init__(self, cuts: Sequence[Blocks], objective: str) -> None:
        self._cuts, self._objective, self._stretch = list(cuts), objective, 1.0
        self._is_known = False

    def next(self, count: int, best: PlanOutcome | None, tolerance: float) -> list[Blocks]:
        """Next cuts to try, at most `count`. The returned cuts are removed from the queue. If the objective is the
        latency, a cut is returned only if its estimate is below `tolerance` times the latency of `best`.
        """
        self._cuts.sort(key=lambda cut: cut.rank(self._objective, self._stretch))
        taken = self._cuts[:count]
        if OBJECTIVES[self._objective] == Powers(latency=1) and best is not None and best.figures is not None:
            least = best.figures.latency_cycles
            taken = [cut for cut in taken if cut.least_cycles(self._stretch) < tolerance * least]
        self._cuts = [cut for cut in self._cuts if cut not in taken]
        return taken

    def learn(self, outcome: PlanOutcome, cut: Blocks) -> None:
        """Correct the estimates of the cuts in the queue. The schedule of `cut`, in `outcome`, gives the ratio between
        the real core time and the core time without stalls. An outcome without a schedule changes nothing.
        """
        if outcome.figures is None or not outcome.most_parts * cut.block_cycles:
            return
        stretch = max(1.0, outcome.busiest_cycles / (outcome.most_parts * cut.block_cycles))
        self._stretch = min(self._stretch, stretch) if self._is_known else stretch
        self._is_known = True
