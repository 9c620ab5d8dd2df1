"""A stream of loop orders for one problem: the only way into the compiled kernel, for one order or for millions."""

from collections.abc import Sequence

import numpy as np

from tilewright.cost.problem import Problem
from tilewright.cost.workspace import MAX_LOOPS, new_workspace
from tilewright.errors import MappingError
from tilewright.search.loma_kernel import (
    BEST_INDEX,
    FITTING,
    LAST_OUTCOME,
    MATCHING,
    STATE_COUNT,
    VISITED,
    search_block,
)

NO_PATTERN = np.zeros(0, np.int64)


class OrderBatch:
    """Orders of a multiset of loops, from a first one on, and the best of those evaluated so far.

    `dimension` and `size` give the loops by symbol; an order is a list of symbols, innermost first. `objective` is an
    index into OBJECTIVES; `pattern` (dimension, size) is what orders must match. After a run `state` [STATE_COUNT],
    `best` (energy_pj, latency_cycles), `best_order` and, if nothing fits, `closest` (ratio, needed bits, limit) with
    `closest_place` (outcome, memory, operand, level) hold the results, and `ws` the breakdown of the last order.
    """

    def __init__(
        self,
        problem: Problem,
        dimension: Sequence[int],
        size: Sequence[int],
        first_order: Sequence[int],
        objective: int = 0,
        pattern: tuple[np.ndarray, np.ndarray] = (NO_PATTERN, NO_PATTERN),
    ) -> None:
        if len(first_order) > MAX_LOOPS:
            raise MappingError(f"an order of {len(first_order)} temporal loops, at most {MAX_LOOPS} are possible")
        self.problem = problem
        self.dimension = np.array(dimension, np.int64)
        self.size = np.array(size, np.int64)
        self.order = np.array(first_order, np.int64)
        self.objective = objective
        self.pattern = pattern
        self.ws = new_workspace()
        self.state = np.zeros(STATE_COUNT, np.int64)
        self.best = np.zeros(2)
        self.best_order = self.order.copy()
        self.closest = np.array([np.inf, 0.0, 0.0])
        self.closest_place = np.zeros(4, np.int64)

    def run(self, count: int) -> None:
        """Evaluate the next `count` orders."""
        search_block(
            self.problem, self.ws, self.objective, self.dimension, self.size, self.pattern[0], self.pattern[1],
            self.order, count, self.state, self.best, self.best_order, self.closest, self.closest_place,
        )  # fmt: skip


__all__ = ["BEST_INDEX", "FITTING", "LAST_OUTCOME", "MATCHING", "VISITED", "OrderBatch"]
