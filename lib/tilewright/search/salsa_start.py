"""Where chains of simulated annealing start: random orders of the prime factors that meet the constraints and fit."""

from collections import Counter
from dataclasses import dataclass
from random import Random

import numpy as np

from tilewright.cost.problem import new_record
from tilewright.cost.record import LoopOrder
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.loop_factors import loop_multiset, prime_factors
from tilewright.mapping.temporal_ordering import ANY, GAP, OrderPattern, order_pattern
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.loma import best_of_few_loops, write_loops, write_pattern
from tilewright.search.loma_kernel import STREAM_DTYPE, matches

START_DRAWS = (1, 15, 240, 744)
"""Random orders that a chain draws at once until one of them fits: one, then more, 1000 in all."""


@dataclass(frozen=True)
class OrderSpace:
    """All orders of the prime factors that match a pattern."""

    prepared: PreparedProblem
    entries: tuple[TemporalOrderingEntry, ...]
    """Temporal ordering, as far as it speaks of the layer."""
    loops: tuple[tuple[str, int], ...]
    """The distinct loops; loops that the ordering names with a size are whole."""
    multiset: tuple[int, ...]
    """All loops of an order, as indexes of `loops`."""
    pattern: OrderPattern

    @classmethod
    def of(cls, prepared: PreparedProblem, entries: tuple[TemporalOrderingEntry, ...]) -> "OrderSpace":
        """The space of a problem; raises MappingError for impossible constraints."""
        found = loop_multiset(prepared.spatial.temporal_sizes, None, entries).loops
        indexes = tuple(index for index, (_, repeats) in enumerate(found) for _ in range(repeats))
        loops = tuple(loop for loop, _ in found)
        return cls(prepared, entries, loops, indexes, order_pattern(entries, prepared.dimensions))

    def batch(self, orders: list[list[int]], **other: object) -> OrderBatch:
        """A batch of orders given by indexes of loops."""
        rows = np.array(orders, np.int64).reshape(len(orders), len(self.multiset))
        return OrderBatch(self.prepared, self.loops, rows, **other)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Start:
    """A fitting order, as indexes of loops, and its costs."""

    order: list[int]
    energy_pj: float
    latency_cycles: float


def draw_order(space: OrderSpace, random: Random) -> list[int] | None:
    """A random order that matches the pattern, each with a chance above 0; None if there is none."""
    rest = sorted(space.multiset, key=lambda _: random.random())
    entries = list(zip(space.pattern.dimension.tolist(), space.pattern.size.tolist(), strict=True))
    if not entries:
        return rest
    parts: list[list[int]] = [[] for _ in entries]
    for place, (dimension, size) in sorted(enumerate(entries), key=lambda entry: entry[1][1] == ANY):
        if dimension == GAP:
            continue
        name = space.prepared.dimensions[dimension]
        fitting = (i for i in rest if space.loops[i][0] == name and size in (ANY, space.loops[i][1]))
        loop = next(fitting, None)
        if loop is None:
            return None
        rest.remove(loop)
        parts[place] = [loop]
    gaps = [place for place, (dimension, _) in enumerate(entries) if dimension == GAP]
    for loop in rest:
        parts[gaps[int(random.random() * len(gaps))]].append(loop)
    return [loop for part in parts for loop in part]


def random_start(space: OrderSpace, random: Random) -> tuple[Start | None, OrderBatch]:
    """The first of the random orders that fits, if any does, and the orders that were costed last.

    `visited` of the batch is the number of all orders that were costed.
    """
    visited = 0
    batch = space.batch([])
    for draws in START_DRAWS:
        orders = [draw_order(space, random) or [] for _ in range(draws)]
        visited += draws
        batch = space.batch(orders, visited=visited)
        costed = cost_orders(batch)
        if costed.fits.any():
            row = int(np.argmax(costed.fits))
            return Start(orders[row], float(costed.energy_pj[row]), float(costed.latency_cycles[row])), batch
    return None, batch


def fallback_order(space: OrderSpace, objective: str) -> tuple[LoopOrder | None, int]:
    """The best of all orders of a few merged loops, if any fits, and how many were costed."""
    found = best_of_few_loops(space.prepared, space.entries, objective)
    return found.order, found.costed


def split_start(space: OrderSpace, order: LoopOrder) -> Start | None:
    """An order of merged loops with each loop split into its prime factors, if that matches the pattern and fits."""
    left = Counter(space.loops[index] for index in space.multiset)
    split: list[int] = []
    for dimension, size in order:
        whole = left[dimension, size] > 0
        for factor in (size,) if whole else prime_factors(size):
            left[dimension, factor] -= 1
            if left[dimension, factor] < 0:
                return None
            split.append(space.loops.index((dimension, factor)))
    record = new_record(STREAM_DTYPE)
    write_loops(record, space.prepared, space.loops, split)
    write_pattern(record, space.pattern)
    if record.pattern_length and not matches.py_func(record):
        return None
    costed = cost_orders(space.batch([split]))
    if not costed.fits[0]:
        return None
    return Start(split, float(costed.energy_pj[0]), float(costed.latency_cycles[0]))
