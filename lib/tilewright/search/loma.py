"""LOMA: enumeration of all orders of the loop factors, in batches (Symons et al., "LOMA", AICAS 2021)."""

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.cost.problem import new_record
from tilewright.cost.record import LoopOrder
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import (
    LoopMultiset,
    OrderPattern,
    applicable_ordering,
    complete_order,
    loop_multiset,
    order_pattern,
)
from tilewright.search.batch import OrderBatch, SearchStoppedError, best_row, cost_orders, is_better
from tilewright.search.blocks import check_length, thread_block
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.loma_kernel import BATCH_ORDERS, BLOCK_DTYPE, STREAM_DTYPE, fill_block

RECORDS = (STREAM_DTYPE, BLOCK_DTYPE)
"""Types of the records that the compiled generator of loop orders takes as arguments."""
FEW_ORDERS = 1000
"""Largest number of orders of a multiset of loops for which the orders are cached. All layers with the same loops share
the cached orders."""
VISITS_PER_ROW = 64
"""Largest number of visited orders for each row of a batch. A batch has BATCH_ORDERS rows, one for each order. After
VISITS_PER_ROW * BATCH_ORDERS visited orders, a batch is returned even if it is not full."""


def loma_batches(
    prepared: PreparedProblem,
    ordering: tuple[TemporalOrderingEntry, ...],
    lpf_limit: int | None,
    stop: threading.Event | None = None,
) -> Iterator[OrderBatch]:
    """Batches with all orders of the loop factors that match `ordering`. A complete ordering gives one batch with one
    order.

    Memory use does not grow with the number of orders. Raises MappingError for impossible constraints, and
    SearchStoppedError if `stop` is set.
    """
    sizes = prepared.spatial.temporal_sizes
    entries = layer_ordering(ordering, prepared)
    given = complete_order(entries, sizes)
    if given is not None:
        yield OrderBatch.of_orders(prepared, [given])
        return
    multiset = loop_multiset(sizes, lpf_limit, entries)
    loops = tuple(loop for loop, _ in multiset.loops)
    source = _few_orders if multiset.order_count <= min(FEW_ORDERS, BATCH_ORDERS) else _streamed
    for orders, visited in source(multiset, entries, prepared.dimensions, stop):
        yield OrderBatch(prepared, loops, orders, visited=visited)


def _few_orders(
    multiset: LoopMultiset,
    entries: tuple[TemporalOrderingEntry, ...],
    dimensions: tuple[str, ...],
    stop: threading.Event | None,
) -> Iterator[tuple[np.ndarray, int]]:
    """Orders of `multiset` that match `entries`, from the cache of `_kept_orders`, in the form that `_streamed` yields.
    Raises SearchStoppedError if `stop` is set.
    """
    if stop is not None and stop.is_set():
        raise SearchStoppedError
    return iter(_kept_orders(multiset, entries, dimensions))


@lru_cache(maxsize=256)
def _kept_orders(
    multiset: LoopMultiset, entries: tuple[TemporalOrderingEntry, ...], dimensions: tuple[str, ...]
) -> tuple[tuple[np.ndarray, int], ...]:
    """Orders of `multiset` that match `entries`, in the form that `_streamed` yields. The result is cached for all
    layers and designs, so its arrays are read-only.
    """
    found = tuple(_streamed(multiset, entries, dimensions, None))
    for orders, _ in found:
        orders.flags.writeable = False
    return found


def _streamed(
    multiset: LoopMultiset,
    entries: tuple[TemporalOrderingEntry, ...],
    dimensions: tuple[str, ...],
    stop: threading.Event | None,
) -> Iterator[tuple[np.ndarray, int]]:
    """Pairs (orders of `multiset` that match `entries`, number of orders that were visited to find them). The orders
    are an array [order, position] of indexes of `multiset.loops`, innermost loop first. Raises SearchStoppedError if
    `stop` is set.
    """
    pattern = order_pattern(entries, dimensions)
    stream = _new_stream(multiset, pattern, dimensions)
    fill = native_function(fill_block, RECORDS)
    left = multiset.order_count
    while left > 0:
        if stop is not None and stop.is_set():
            raise SearchStoppedError
        stream.visits_allowed = min(left, VISITS_PER_ROW * BATCH_ORDERS)
        block = thread_block()
        fill(stream, block, BATCH_ORDERS)
        rows, visited = int(stream.rows), int(stream.visited)
        left -= visited
        yield block.orders[: rows * multiset.length].reshape(rows, multiset.length).astype(np.int64), visited


def _new_stream(multiset: LoopMultiset, pattern: OrderPattern, dimensions: tuple[str, ...]) -> np.record:
    """Record of a stream of orders. The stream visits all orders of `multiset`. The first order is the order in which
    the indexes of the loops descend.
    """
    ascending = [index for index, (_, repeats) in enumerate(multiset.loops) for _ in range(repeats)]
    stream = new_record(STREAM_DTYPE)
    write_loops(stream, dimensions, tuple(loop for loop, _ in multiset.loops), ascending[::-1])
    write_pattern(stream, pattern)
    return stream


def write_loops(
    record: np.record, dimensions: tuple[str, ...], loops: tuple[tuple[str, int], ...], order: list[int]
) -> None:
    """Write loops and a start order into the record of a search. Raises MappingError if there are too many loops."""
    check_length(len(order))
    record.length = len(order)
    record.loop_dimension[: len(loops)] = [dimensions.index(d) for d, _ in loops]
    record.loop_size[: len(loops)] = [size for _, size in loops]
    record.order[: len(order)] = order


def write_pattern(record: np.record, pattern: OrderPattern) -> None:
    """Write the pattern that loop orders must match into the record of a search. Raises MappingError if `pattern` is
    too long.
    """
    length = len(pattern.dimension)
    check_length(length)
    record.pattern_length = length
    record.pattern_dimension[:length], record.pattern_size[:length] = pattern.dimension, pattern.size


def layer_ordering(
    ordering: tuple[TemporalOrderingEntry, ...], prepared: PreparedProblem
) -> tuple[TemporalOrderingEntry, ...]:
    """Entries of an ordering that apply to the layer.

    One case is special: no iterations remain after the spatial mapping. The reference then still has one loop of size
    1, over the first dimension. If the only entry of the ordering is this dimension without a size, the entry matches
    this loop, and the result is ().
    """
    entries = applicable_ordering(ordering, prepared.layer)
    nothing_left = not prepared.spatial.temporal_sizes
    return () if nothing_left and entries == (TemporalOrderingEntry(prepared.dimensions[0]),) else entries


FEW_LOOPS = 6
"""Value of `lpf_limit` in the search for a start mapping. Prime factors are merged until at most FEW_LOOPS loops are
left. The merging ends earlier if each dimension has only one loop. The search then tries all orders of these loops.
"""


@dataclass(frozen=True)
class BestOrder:
    """Best order that loma finds if the factors are merged to few loops."""

    order: LoopOrder | None
    """Best order; None if no order fits."""
    energy_pj: float
    latency_cycles: float
    costed: int
    """Number of orders whose cost was computed."""


def best_of_few_loops(
    prepared: PreparedProblem,
    ordering: tuple[TemporalOrderingEntry, ...],
    objective: str,
    stop: threading.Event | None = None,
) -> BestOrder:
    """Best order that loma finds with `lpf_limit` FEW_LOOPS; other searches start from this order.

    Raises the errors of `loma_batches`.
    """
    order: LoopOrder | None = None
    best = (math.inf, math.inf)
    costed_orders = 0
    for batch in loma_batches(prepared, ordering, FEW_LOOPS, stop):
        costed_orders += len(batch.orders)
        costed = cost_orders(batch)
        row = best_row(costed, objective)
        if row is not None:
            costs = float(costed.energy_pj[row]), float(costed.latency_cycles[row])
            if order is None or is_better(objective, costs, best):
                order, best = batch.loop_order(row), costs
    return BestOrder(order, *best, costed_orders)
