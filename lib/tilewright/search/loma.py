"""LOMA: all orders of the loop factors, in a stream of blocks (Symons et al., "LOMA", AICAS 2021)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.cost.record import LoopOrder
from tilewright.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.loop_factors import loop_multiset
from tilewright.mapping.temporal_ordering import applicable_ordering, complete_order, order_pattern
from tilewright.search.batch import BEST_INDEX, FITTING, MATCHING, VISITED, OrderBatch
from tilewright.search.evaluate import PreparedProblem, failure_text
from tilewright.search.options import OBJECTIVES, SearchOptions

BLOCK_ORDERS = 16384
"""Orders evaluated between two looks at the clock and at requests to stop."""


class SearchStopped(Exception):
    """The search was asked to stop before it was done."""


@dataclass(frozen=True)
class OrderSearchResult:
    """Outcome of the search over temporal orders for one spatial mapping."""

    orders: int
    """Orders visited."""
    feasible: int
    """Orders that match the constraints and fit the core."""
    best_order: LoopOrder | None
    best_index: int
    """Position of the best among the feasible ones, in enumeration order."""
    energy_pj: float | None
    latency_cycles: float | None
    reason: str
    """Why nothing fits; '' if something does."""


def search_orders(
    prepared: PreparedProblem,
    ordering: tuple[TemporalOrderingEntry, ...],
    options: SearchOptions,
    progress: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> OrderSearchResult:
    """The best order under the run's objective.

    A complete `ordering` is evaluated as it is. `progress` is told the number of orders of each finished block.
    Raises MappingError for impossible constraints, SearchStopped when `stop` is set.
    """
    sizes = prepared.spatial.temporal_sizes
    entries = applicable_ordering(ordering, prepared.layer)
    given = complete_order(entries, sizes)
    if given is not None:
        symbols, order, count, entries = list(given), list(range(len(given))), 1, ()
    else:
        multiset = loop_multiset(sizes, options.lpf_limit, entries)
        symbols = [loop for loop, _ in multiset.loops]
        ascending = [index for index, (_, repeats) in enumerate(multiset.loops) for _ in range(repeats)]
        order, count = ascending[::-1], multiset.order_count
    pattern = order_pattern(entries, prepared.dimensions)
    batch = OrderBatch(
        prepared.arrays,
        [prepared.dimensions.index(d) for d, _ in symbols],
        [size for _, size in symbols],
        order,
        OBJECTIVES.index(options.objective),
        (pattern.dimension, pattern.size),
    )
    return _stream(batch, count, symbols, prepared, progress, stop)


def count_orders(
    prepared: PreparedProblem, ordering: tuple[TemporalOrderingEntry, ...], options: SearchOptions
) -> int:
    """How many orders `search_orders` will visit; 0 if the constraints are impossible."""
    entries = applicable_ordering(ordering, prepared.layer)
    sizes = prepared.spatial.temporal_sizes
    if complete_order(entries, sizes) is not None:
        return 1
    try:
        return loop_multiset(sizes, options.lpf_limit, entries).order_count
    except MappingError:
        return 0


def _stream(
    batch: OrderBatch,
    count: int,
    symbols: list[tuple[str, int]],
    prepared: PreparedProblem,
    progress: Callable[[int], None] | None,
    stop: threading.Event | None,
) -> OrderSearchResult:
    """Run the kernel block by block; memory does not grow with the number of orders."""
    state = batch.state
    while state[VISITED] < count:
        if stop is not None and stop.is_set():
            raise SearchStopped
        block = int(min(BLOCK_ORDERS, count - state[VISITED]))
        batch.run(block)
        if progress is not None:
            progress(block)
    feasible = int(state[FITTING])
    if feasible == 0:
        if state[MATCHING] == 0:
            reason = "no loop order matches temporal_ordering"
        else:
            reason = failure_text(prepared, int(batch.closest_place[0]), batch.closest_place[1:], batch.closest[1:])
        return OrderSearchResult(int(count), 0, None, -1, None, None, reason)
    loops = tuple(symbols[index] for index in batch.best_order)
    energy_pj, latency_cycles = batch.best.tolist()
    return OrderSearchResult(int(count), feasible, loops, int(state[BEST_INDEX]), energy_pj, latency_cycles, "")
