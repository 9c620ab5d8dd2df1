"""LOMA: all orders of the loop factors, in a stream of blocks (Symons et al., "LOMA", AICAS 2021)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.cost.record import LoopOrder
from tilewright.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.loop_factors import loop_multiset
from tilewright.mapping.temporal_ordering import applicable_ordering, complete_order, order_pattern
from tilewright.search.batch import new_stream, new_workspace, run_stream
from tilewright.search.evaluate import PreparedProblem, failure_text
from tilewright.search.options import OBJECTIVES, SearchOptions

BLOCK_ORDERS = 16384
"""Orders evaluated between two looks at the clock and at requests to stop."""


class SearchStoppedError(Exception):
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
    Raises MappingError for impossible constraints, SearchStoppedError when `stop` is set.
    """
    sizes = prepared.spatial.temporal_sizes
    entries = _entries(ordering, prepared)
    given = complete_order(entries, sizes)
    if given is not None:
        symbols, order, count, entries = list(given), list(range(len(given))), 1, ()
    else:
        multiset = loop_multiset(sizes, options.lpf_limit, entries)
        symbols = [loop for loop, _ in multiset.loops]
        ascending = [index for index, (_, repeats) in enumerate(multiset.loops) for _ in range(repeats)]
        order, count = ascending[::-1], multiset.order_count
    pattern = order_pattern(entries, prepared.dimensions)
    stream = new_stream(
        [prepared.dimensions.index(d) for d, _ in symbols],
        [size for _, size in symbols],
        order,
        OBJECTIVES.index(options.objective),
        (pattern.dimension, pattern.size),
    )
    return _run(stream, count, symbols, prepared, progress, stop)


def _entries(
    ordering: tuple[TemporalOrderingEntry, ...], prepared: PreparedProblem
) -> tuple[TemporalOrderingEntry, ...]:
    """The entries that apply to the layer.

    Where nothing is left to iterate, the reference has one loop of 1 over the first dimension, so that an ordering
    which asks for just that dimension, in any size, is met.
    """
    entries = applicable_ordering(ordering, prepared.layer)
    nothing_left = not prepared.spatial.temporal_sizes
    return () if nothing_left and entries == (TemporalOrderingEntry(prepared.dimensions[0]),) else entries


def count_orders(prepared: PreparedProblem, ordering: tuple[TemporalOrderingEntry, ...], options: SearchOptions) -> int:
    """How many orders `search_orders` will visit; 0 if the constraints are impossible."""
    entries = _entries(ordering, prepared)
    sizes = prepared.spatial.temporal_sizes
    if complete_order(entries, sizes) is not None:
        return 1
    try:
        return loop_multiset(sizes, options.lpf_limit, entries).order_count
    except MappingError:
        return 0


def _run(
    stream: np.record,
    count: int,
    symbols: list[tuple[str, int]],
    prepared: PreparedProblem,
    progress: Callable[[int], None] | None,
    stop: threading.Event | None,
) -> OrderSearchResult:
    """Run the kernel block by block; memory does not grow with the number of orders."""
    ws = new_workspace()
    while stream.visited < count:
        if stop is not None and stop.is_set():
            raise SearchStoppedError
        block = int(min(BLOCK_ORDERS, count - stream.visited))
        run_stream(prepared.arrays, ws, stream, block)
        if progress is not None:
            progress(block)
    feasible = int(stream.fitting)
    if feasible == 0:
        if stream.matching == 0:
            reason = "no loop order matches temporal_ordering"
        else:
            reason = failure_text(prepared, int(stream.closest_outcome), stream.closest_place, stream.closest_bits)
        return OrderSearchResult(int(count), 0, None, -1, None, None, reason)
    loops = tuple(symbols[index] for index in stream.best_order[: stream.length])
    return OrderSearchResult(
        int(count),
        feasible,
        loops,
        int(stream.best_index),
        float(stream.best_energy_pj),
        float(stream.best_latency_cycles),
        "",
    )
