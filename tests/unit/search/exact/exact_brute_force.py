"""Every mapping of a small problem with its cost, for comparison with the exact search.

Plain Python lists the orders here. The cost model is asked for each cost, one by one.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from tilewright.base.objectives import OBJECTIVES as POWERS
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import loop_multiset
from tilewright.search.batch import OrderBatch, boundary_shape, cost_orders
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.search import ExactParameters, ExactResult, search_exact
from tilewright.search.loma_kernel import BATCH_ORDERS

Order = tuple[tuple[str, int], ...]
Ordering = tuple[TemporalOrderingEntry, ...]
OBJECTIVES = tuple(POWERS)
ALLOCATIONS = ("greedy", "free")
LARGEST_FREE_SPACE = 12000
"""Largest number of mappings for brute force, so that the tests take seconds."""


@dataclass(frozen=True, eq=False)
class Mappings:
    """Mappings of one set of loops, with the costs of each row; costs are infinite if the mapping does not fit."""

    loops: Order
    """Distinct loops; orders hold indexes of these loops."""
    orders: np.ndarray
    """[mapping, position], innermost first."""
    boundaries: np.ndarray | None
    """[mapping, operand, level] number of loops in this level and all lower ones; None for greedy allocation."""
    energy_pj: np.ndarray
    latency_cycles: np.ndarray

    @cached_property
    def fits(self) -> np.ndarray:
        """[mapping] whether it fits."""
        return np.isfinite(self.energy_pj)

    def values(self, objective: str) -> np.ndarray:
        """The objective of each mapping."""
        return POWERS[objective].value(self.energy_pj, self.latency_cycles)


def distinct_orders(counts: dict[tuple[str, int], int]) -> Iterator[Order]:
    """All distinct orders of a multiset of loops; `counts` says how often each loop occurs."""
    left = [loop for loop, count in counts.items() if count]
    if not left:
        yield ()
    for loop in left:
        for rest in distinct_orders(counts | {loop: counts[loop] - 1}):
            yield (loop, *rest)


def matches(order: Order, ordering: Ordering) -> bool:
    """Whether an order meets an ordering: entries in a row, with a gap for any loops between.

    Loops of size 1 are ignored. Without any gap, the outermost loops are free.
    """
    wanted = [(entry.dimension, entry.size) for entry in ordering if entry.dimension == "*" or entry.size != 1]
    if wanted and all(dimension != "*" for dimension, _ in wanted):
        wanted.append(("*", None))
    return meets(order, wanted) if wanted else True


def meets(order: Sequence[tuple[str, int]], wanted: Sequence[tuple[str, int | None]]) -> bool:
    """Whether an order has the wanted loops, by trying every length of every gap."""
    if not wanted:
        return not order
    dimension, size = wanted[0]
    if dimension == "*":
        return any(meets(order[skipped:], wanted[1:]) for skipped in range(len(order) + 1))
    if not order or order[0][0] != dimension or size not in (None, order[0][1]):
        return False
    return meets(order[1:], wanted[1:])


def greedy_mappings(prepared: PreparedProblem, ordering: Ordering = ()) -> Iterator[Mappings]:
    """All orders of the prime factors and of every merging of them, allocated greedily."""
    sizes = prepared.spatial.temporal_sizes
    multisets = {loop_multiset(sizes, limit, ordering).loops for limit in (None, *range(1, 40))}
    for loops in sorted(multisets):
        orders = [order for order in distinct_orders(dict(loops)) if matches(order, ordering)]
        yield _costed(prepared, tuple(loop for loop, _ in loops), _indexes(orders, loops), None)


def free_mappings(prepared: PreparedProblem, ordering: Ordering = ()) -> Mappings:
    """All orders of the prime factors with all level boundaries."""
    loops = loop_multiset(prepared.spatial.temporal_sizes, None, ordering).loops
    orders = _indexes([order for order in distinct_orders(dict(loops)) if matches(order, ordering)], loops)
    boundaries = _all_boundaries(prepared, sum(count for _, count in loops))
    rows = np.repeat(orders, len(boundaries), axis=0)
    given = np.tile(boundaries, (len(orders), 1, 1))
    return _costed(prepared, tuple(loop for loop, _ in loops), rows, given)


def free_mapping_count(prepared: PreparedProblem) -> int:
    """The number of rows of `free_mappings` without an ordering."""
    multiset = loop_multiset(prepared.spatial.temporal_sizes, None, ())
    levels = prepared.arrays.level_count[: len(prepared.layer.operands)].tolist()
    return multiset.order_count * math.prod(math.comb(multiset.length + n - 1, n - 1) for n in levels)


def _indexes(orders: list[Order], loops: Sequence[tuple[tuple[str, int], int]]) -> np.ndarray:
    index = {loop: i for i, (loop, _) in enumerate(loops)}
    length = sum(count for _, count in loops)
    return np.array([[index[loop] for loop in order] for order in orders], np.int64).reshape(len(orders), length)


def _all_boundaries(prepared: PreparedProblem, length: int) -> np.ndarray:
    """All combinations of the nested boundaries of the operands."""
    operands, deepest = boundary_shape(prepared)
    choices = []
    for count in prepared.arrays.level_count[:operands].tolist():
        nested = itertools.combinations_with_replacement(range(length + 1), count - 1)
        choices.append([(*inner, length, *[0] * (deepest - count)) for inner in nested])
    return np.array(list(itertools.product(*choices)), np.int64).reshape(-1, operands, deepest)


def _costed(prepared: PreparedProblem, loops: Order, orders: np.ndarray, boundaries: np.ndarray | None) -> Mappings:
    energy, latency = [np.zeros(0)], [np.zeros(0)]
    for first in range(0, len(orders), BATCH_ORDERS):
        rows = slice(first, first + BATCH_ORDERS)
        batch = OrderBatch(prepared, loops, orders[rows], None if boundaries is None else boundaries[rows])
        costed = cost_orders(batch)
        energy.append(costed.energy_pj)
        latency.append(costed.latency_cycles)
    return Mappings(loops, orders, boundaries, np.concatenate(energy), np.concatenate(latency))


def optimum(spaces: Sequence[Mappings], objective: str) -> float:
    """The smallest value of an objective; infinite if no mapping fits."""
    return min((float(space.values(objective).min(initial=math.inf)) for space in spaces), default=math.inf)


def space_of(prepared: PreparedProblem, allocation: str, ordering: Ordering = ()) -> list[Mappings]:
    """Every mapping of the space that the search looks through."""
    if allocation == "free":
        return [free_mappings(prepared, ordering)]
    return list(greedy_mappings(prepared, ordering))


def search(
    prepared: PreparedProblem, allocation: str, objective: str, ordering: Ordering = (), budget_s: float = 60.0
) -> ExactResult | None:
    """The exact search with an objective, an allocation and a time budget."""
    return search_exact(prepared, ordering, ExactParameters(objective, allocation, budget_s))


def check_optimum(result: ExactResult | None, spaces: list[Mappings], objective: str, where: object) -> None:
    """Checks that a result is proven and has the least value of all mappings, or that there is neither."""
    least = optimum(spaces, objective)
    if result is None:
        assert least == math.inf, where
        return
    assert result.is_proven is True, where
    assert result.value == pytest.approx(least, rel=1e-9, abs=0), where
    assert result.lower_bound == result.value, where
    assert result.gap == 0, where
