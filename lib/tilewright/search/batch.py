"""Batches of loop orders of one layer on one core, with the costs of the orders.

A search produces batches. A reduction, such as `best_row`, chooses the best order of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.objectives import ranking
from tilewright.cost.record import LoopOrder
from tilewright.cost.workspace import FITS, new_workspace
from tilewright.search.blocks import cost_rows, thread_block, write_block
from tilewright.search.evaluate import Boundaries, PreparedProblem, boundary_array, check_order, failure_text
from tilewright.search.loma_kernel import BATCH_ORDERS

NOTHING_MATCHES = "no loop order matches temporal_ordering"


class SearchStoppedError(Exception):
    """Error that ends a search when the caller requests a stop."""


@dataclass(frozen=True, eq=False)
class OrderBatch:
    """Loop orders of one mapping problem, innermost loop first. A batch can be empty.

    Raises MappingError if the arrays do not match the problem or are too large.
    """

    problem: PreparedProblem
    """Mapping problem of the orders."""
    loops: tuple[tuple[str, int], ...]
    """Distinct loops as pairs (loop dimension, size); `orders` holds indexes into this tuple."""
    orders: np.ndarray
    """Index of the loop at each position of each order: int64 array [order, position] with at most BATCH_ORDERS
    orders."""
    boundaries: np.ndarray | None = None
    """Level boundaries of each order: int64 array [order, operand, level], with the operands in the order of the layer.
    A boundary is the number of loops in a memory level and in all levels below it. If `boundaries` is None, loops are
    allocated to memories greedily, as in zigzag-dse."""
    visited: int = 0
    """Number of orders that the search visited to make this batch. Orders that violate the constraints count, too."""
    search: tuple[tuple[str, object], ...] = ()
    """Statistics of the search (certificate, seed, ...) as JSON values."""

    def __post_init__(self) -> None:
        orders, loops = self.orders, self.loops
        if orders.ndim != 2 or len(orders) > BATCH_ORDERS:
            raise MappingError(
                f"the orders of a batch must be an array [order, position] of at most {BATCH_ORDERS} orders"
            )
        if orders.size and (orders.min() < 0 or orders.max() >= len(loops)):
            raise MappingError(f"an order of a batch has an index outside the {len(loops)} loops of the batch")
        unknown = sorted({d for d, _ in loops} - set(self.problem.dimensions))
        if unknown:
            raise MappingError(f"layer '{self.problem.layer.name}' has no loop dimension {', '.join(unknown)}")
        if self.boundaries is not None:
            expected = (len(orders), *boundary_shape(self.problem))
            if self.boundaries.shape != expected:
                raise MappingError(
                    f"boundaries of a batch have the shape {self.boundaries.shape} instead of {expected}"
                )

    def loop_order(self, row: int) -> LoopOrder:
        """Loop order in row `row` of the batch, with the names of the loop dimensions."""
        return tuple(self.loops[int(index)] for index in self.orders[row])

    def level_boundaries(self, row: int) -> Boundaries | None:
        """Level boundaries of the order in row `row`, one tuple per operand with one number per memory level. The
        number counts the loops in this level and in all levels below it. None if the batch has no boundaries.
        """
        if self.boundaries is None:
            return None
        counts = self.problem.arrays.level_count.tolist()
        return tuple(
            tuple(int(bound) for bound in bounds[:count])
            for bounds, count in zip(self.boundaries[row], counts, strict=False)
        )

    @classmethod
    def of_orders(
        cls,
        problem: PreparedProblem,
        orders: Sequence[LoopOrder],
        boundaries: Sequence[Boundaries] | None = None,
        visited: int | None = None,
        search: tuple[tuple[str, object], ...] = (),
    ) -> "OrderBatch":
        """Batch of orders of equal length. In `orders`, each loop is a pair (name of the dimension, size).

        Raises MappingError if the lengths differ, or if an order does not cover exactly the iterations that remain
        after the spatial mapping.
        """
        for order in orders:
            check_order(problem, order)
        if len({len(order) for order in orders}) > 1:
            raise MappingError("the orders of a batch have different numbers of loops")
        loops = tuple(sorted({loop for order in orders for loop in order}))
        index = {loop: i for i, loop in enumerate(loops)}
        length = len(orders[0]) if orders else 0
        rows = np.array([[index[loop] for loop in order] for order in orders], np.int64).reshape(len(orders), length)
        given = None
        if boundaries is not None:
            given = np.array([boundary_array(problem, entry) for entry in boundaries], np.int64)
        return cls(problem, loops, rows, given, len(orders) if visited is None else visited, search)


def boundary_shape(problem: PreparedProblem) -> tuple[int, int]:
    """Shape of the array with the boundaries of one loop order: (number of operands, largest number of levels among the
    operands).
    """
    operands = len(problem.layer.operands)
    return operands, int(problem.arrays.level_count[:operands].max())


@dataclass(frozen=True, eq=False)
class CostedBatch:
    """Energy and latency of each order of a batch; both are infinite for an order that does not fit the core."""

    batch: OrderBatch
    """Orders whose costs were computed."""
    energy_pj: np.ndarray
    """Energy of each order in pJ: float64 array [order]."""
    latency_cycles: np.ndarray
    """Latency of each order in cycles: float64 array [order]."""
    fits: np.ndarray
    """True for each order that fits the core: bool array [order]."""
    closest_failure: str
    """Reason why the order that came closest to fitting does not fit; '' if some order of the batch fits. If the batch
    is empty, the text is NOTHING_MATCHES.
    """
    closest_ratio: float = np.inf
    """Required bits divided by available bits, for the order that came closest to fitting. The ratio is infinite if
    some order fits or the batch is empty. Callers compare batches by this ratio.
    """


def cost_orders(batch: OrderBatch) -> CostedBatch:
    """Energy and latency of all orders of a batch."""
    problem, rows = batch.problem, len(batch.orders)
    dimensions = [problem.dimensions.index(d) for d, _ in batch.loops]
    block = write_block(thread_block(), dimensions, [size for _, size in batch.loops], batch.orders, batch.boundaries)
    cost_rows(problem.arrays, new_workspace(), block, rows)
    failure, ratio = "", np.inf
    if rows == 0:
        failure = NOTHING_MATCHES
    elif block.fitting == 0:
        failure = failure_text(problem, int(block.closest_outcome), block.closest_place, block.closest_bits)
        ratio = float(block.closest_ratio)
    return CostedBatch(
        batch,
        block.energy_pj[:rows].copy(),
        block.latency_cycles[:rows].copy(),
        block.outcome[:rows] == FITS,
        failure,
        ratio,
    )


def first_of_the_best(columns: Sequence[np.ndarray]) -> int | None:
    """Index of the row with the smallest entry in the first column; None if the first column has no finite entry. Rows
    with equal entries in one column are compared by the next column."""
    first = columns[0]
    rows = np.flatnonzero(first == first.min(initial=np.inf))
    for column in columns[1:]:
        if len(rows) > 1:
            values = column[rows]
            rows = rows[values == values.min()]
    return int(rows[0]) if len(rows) and np.isfinite(first[rows[0]]) else None


def best_row(costed: CostedBatch, objective: str) -> int | None:
    """Index of the best order of a batch under an objective; None if no order fits."""
    return first_of_the_best(ranking(objective, costed.energy_pj, costed.latency_cycles))


def is_better(objective: str, costs: tuple[float, float], best: tuple[float, float]) -> bool:
    """True if `costs` are strictly better than `best`, by the rule of `best_row`. Both arguments are pairs (energy,
    latency)."""
    return ranking(objective, *costs) < ranking(objective, *best)
