"""SALSA: simulated annealing over all orders of the prime factors (Jung et al., "SALSA", AICAS 2023).

The temperature and the rule of acceptance are those of zigzag-dse 3.9.1. Fault B33 of zigzag-dse (docs/model.md) is
repaired: the chain uses the objective of the run and a seed, rejects orders that do not fit, and obeys temporal
orderings. A chain starts at a random order of the prime factors that meets the constraints and fits. A neighbour of an
order has two loops exchanged, as in zigzag-dse, or one loop moved.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.base.objectives import OBJECTIVES
from tilewright.cost.problem import PROBLEM_DTYPE, new_record
from tilewright.cost.record import LoopOrder
from tilewright.cost.workspace import WORKSPACE_DTYPE, new_workspace
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import (
    ANY,
    GAP,
    OrderPattern,
    complete_order,
    loop_multiset,
    order_pattern,
    prime_factors,
)
from tilewright.search.batch import OrderBatch, SearchStoppedError, cost_orders
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.loma import best_of_few_loops, layer_ordering, write_loops, write_pattern
from tilewright.search.loma_kernel import STREAM_DTYPE, matches
from tilewright.search.options import SalsaParameters
from tilewright.search.salsa_kernel import CHAIN_DTYPE, anneal

START_DRAWS = (1, 15, 240, 744)
"""Sizes of the successive batches of random orders that a chain draws until an order fits; 1000 orders in all."""


@dataclass(frozen=True)
class OrderSpace:
    """Space of all orders of the prime factors that match a pattern."""

    prepared: PreparedProblem
    entries: tuple[TemporalOrderingEntry, ...]
    """Entries of the temporal ordering that apply to the layer."""
    loops: tuple[tuple[str, int], ...]
    """Distinct loops. A loop that the ordering gives with a size is not split into prime factors."""
    multiset: tuple[int, ...]
    """Indexes in `loops` of the loops that every order of the space has. A loop that occurs several times in an order
    is listed several times.
    """
    pattern: OrderPattern

    @classmethod
    def of(cls, prepared: PreparedProblem, entries: tuple[TemporalOrderingEntry, ...]) -> "OrderSpace":
        """Space of the loop orders of a problem. Raises MappingError for impossible constraints."""
        found = loop_multiset(prepared.spatial.temporal_sizes, None, entries).loops
        indexes = tuple(index for index, (_, repeats) in enumerate(found) for _ in range(repeats))
        loops = tuple(loop for loop, _ in found)
        return cls(prepared, entries, loops, indexes, order_pattern(entries, prepared.dimensions))

    def batch(self, orders: list[list[int]], **other: object) -> OrderBatch:
        """Batch of `orders`, in which each order is a list of indexes of `loops`. `other` has values for further fields
        of the batch.
        """
        rows = np.array(orders, np.int64).reshape(len(orders), len(self.multiset))
        return OrderBatch(self.prepared, self.loops, rows, **other)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Start:
    """Start of a chain: an order that fits, as indexes of loops, with its costs."""

    order: list[int]
    energy_pj: float
    latency_cycles: float


def draw_order(space: OrderSpace, random: Random) -> list[int] | None:
    """Random order that matches the pattern; None if no order matches. Every matching order can occur."""
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
    """Pair (first random order that fits, last batch of random orders). The order is None if no random order fits.
    `visited` of the batch counts the random orders of all batches."""
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
    """Pair (best of all orders of a few merged loops, number of orders whose cost was computed). The order is None if
    no order fits.
    """
    found = best_of_few_loops(space.prepared, space.entries, objective)
    return found.order, found.costed


def split_start(space: OrderSpace, order: LoopOrder) -> Start | None:
    """Start of a chain: `order` with each merged loop split into its prime factors. None if the split order violates
    the pattern or does not fit.
    """
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
    write_loops(record, space.prepared.dimensions, space.loops, split)
    write_pattern(record, space.pattern)
    if record.pattern_length and not matches.py_func(record):
        return None
    costed = cost_orders(space.batch([split]))
    if not costed.fits[0]:
        return None
    return Start(split, float(costed.energy_pj[0]), float(costed.latency_cycles[0]))


RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, CHAIN_DTYPE)
"""Types of the records that the compiled function `anneal` takes as arguments."""
COOLING = 0.995
"""Factor by which each iteration multiplies the temperature in a chain of at most REFERENCE_ITERATIONS iterations, as
in zigzag-dse."""
REFERENCE_ITERATIONS = 1000
"""Number of iterations of a chain in zigzag-dse. Longer chains cool more slowly, to the same final temperature."""
BLOCK_ITERATIONS = 16384
"""Number of iterations between two checks for stop requests of the caller."""


def salsa_batches(
    prepared: PreparedProblem,
    ordering: tuple[TemporalOrderingEntry, ...],
    options: SalsaParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[OrderBatch]:
    """Batch with the best order of each annealing chain. If no order fits, the batch has orders that do not fit. If no
    order matches `ordering`, the batch is empty. If `ordering` is complete, the batch has only this order, unchanged.

    A chain starts at a random order that fits. If none of its random orders fits (START_DRAWS), the chain starts at the
    best order that loma finds with `lpf_limit` FEW_LOOPS. The merged loops of this order are first split into prime
    factors. If the split order does not fit or does not match `ordering`, the unsplit order is yielded in a batch of
    its own.

    `progress` is called with the number of iterations since the last call. Raises MappingError for impossible
    constraints, and SearchStoppedError if `stop` is set.
    """
    entries = layer_ordering(ordering, prepared)
    given = complete_order(entries, prepared.spatial.temporal_sizes)
    if given is not None:
        yield OrderBatch.of_orders(prepared, [given], search=_notes(options, 0, 1))
        return
    space = OrderSpace.of(prepared, entries)
    if draw_order(space, Random(0)) is None:
        yield space.batch([], search=_notes(options, 0, 0))
        return
    yield from _Salsa(space, options, stop, progress).batches()


def _notes(options: SalsaParameters, iterations: int, evaluations: int) -> tuple[tuple[str, object], ...]:
    """Statistics of the search as pairs (name, value)."""
    return (
        ("engine", "salsa"),
        ("seed", options.seed),
        ("restarts", options.salsa_restarts),
        ("iterations", iterations),
        ("start_temperature", options.salsa_start_temperature),
        ("evaluations", evaluations),
    )


@dataclass(frozen=True)
class _Salsa:
    """Annealing chains for one problem."""

    space: OrderSpace
    options: SalsaParameters
    stop: threading.Event | None
    progress: Callable[[int], None] | None

    def batches(self) -> Iterator[OrderBatch]:
        """Batches that `salsa_batches` yields."""
        starts, missed, visited = self._starts()
        merged: LoopOrder | None = None
        if None in starts:
            merged, orders = fallback_order(self.space, self.options.objective)
            visited += orders
            other = None if merged is None else split_start(self.space, merged)
            merged = merged if other is None else None
            starts = [start or other for start in starts]
        found = []
        for restart, start in enumerate(starts):
            if start is not None:
                order, evaluations = self._chain(start, restart)
                found.append(order)
                visited += evaluations
        search = _notes(self.options, self.iterations, visited)
        if found:
            yield self.space.batch(found, visited=visited, search=search)
        if merged is not None:
            given = 0 if found else visited
            yield OrderBatch.of_orders(self.space.prepared, [merged], visited=given, search=search)
        elif not found:
            yield self.space.batch(missed.orders.tolist(), visited=visited, search=search)

    @property
    def iterations(self) -> int:
        """Number of iterations of a chain; 0 if the space has only one order."""
        return self.options.salsa_iteration_number if len(self.space.loops) > 1 else 0

    def _starts(self) -> tuple[list[Start | None], OrderBatch, int]:
        """Start of each chain, the last batch of random orders, and the number of orders whose cost was computed. A
        start is None if no random order fits."""
        starts, visited = [], 0
        for restart in range(self.options.salsa_restarts):
            self._look_at_stop()
            random = Random(_random_state(self.options.seed, restart, "start"))
            start, drawn = random_start(self.space, random)
            starts.append(start)
            visited += drawn.visited
        return starts, drawn, visited

    def _chain(self, start: Start, restart: int) -> tuple[list[int], int]:
        """Best order of one chain, as indexes of loops, and the number of neighbours whose cost was computed."""
        problem, workspace = self.space.prepared.arrays, new_workspace()
        chain = self._new_chain(start, restart)
        run = native_function(anneal, RECORDS)
        left = self.iterations
        while left > 0:
            self._look_at_stop()
            count = min(left, BLOCK_ITERATIONS)
            run(problem, workspace, chain, count)
            left -= count
            if self.progress is not None:
                self.progress(count)
        return chain.best_order[: len(start.order)].tolist(), int(chain.evaluations)

    def _new_chain(self, start: Start, restart: int) -> Any:
        """Record of a chain before its first iteration."""
        chain = new_record(CHAIN_DTYPE)
        write_loops(chain, self.space.prepared.dimensions, self.space.loops, start.order)
        write_pattern(chain, self.space.pattern)
        powers = OBJECTIVES[self.options.objective]
        chain.energy_power, chain.latency_power = powers.energy, powers.latency
        chain.best_order[:] = chain.order
        chain.best_energy_pj, chain.best_latency_cycles = start.energy_pj, start.latency_cycles
        chain.current_value = powers.value(start.energy_pj, start.latency_cycles)
        chain.random_state = _random_state(self.options.seed, restart, "chain")
        chain.temperature = self.options.salsa_start_temperature
        chain.cooling = COOLING ** min(1.0, REFERENCE_ITERATIONS / self.options.salsa_iteration_number)
        return chain

    def _look_at_stop(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise SearchStoppedError


def _random_state(seed: int, restart: int, use: str) -> int:
    """Random state of 64 bits that is computed from the seed, the number of the chain and the purpose `use`."""
    digest = hashlib.blake2b(f"{seed} {restart} {use}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
