"""Exact search: the best order of all loop prime factors, with a certificate (docs/exact.md).

All spatial mappings of a layer are one search: the best mapping known of any is what all others have to beat, and one
that no order can make better than that is settled by its bound alone.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

from tilewright.cost.record import LoopOrder
from tilewright.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.objectives import OBJECTIVES
from tilewright.search.batch import OrderBatch, best_row, cost_orders
from tilewright.search.evaluate import Boundaries, PreparedProblem
from tilewright.search.exact import rounds
from tilewright.search.exact.rounds import Best, Part, Watch
from tilewright.search.exact.tables import energy_floor, has_whole_tiles
from tilewright.search.loma import FEW_LOOPS, best_of_few_loops, layer_ordering, loma_batches
from tilewright.search.options import ExactParameters, SalsaParameters
from tilewright.search.salsa import salsa_batches

NARROW_ROUNDS = 2
"""Rounds that every spatial mapping gets before one gets more."""
ANNEALED = 4
"""Spatial mappings that are annealed at a time, the most promising first."""
ITERATIONS = 5000
"""Of annealing, each time."""
Ordering = tuple[TemporalOrderingEntry, ...]


@dataclass(frozen=True)
class ExactResult:
    """The best mapping found and how far from the optimum it can be."""

    order: LoopOrder
    boundaries: Boundaries | None
    value: float
    """Of the objective, in cycles and pJ."""
    lower_bound: float
    """No mapping of the space has a smaller objective."""
    proven: bool
    """The value is the optimum, up to TOLERANCE relative."""
    nodes: int
    """Prefixes looked at."""
    orders_in_space: int
    """Loop orders, over all spatial mappings."""
    candidate: int = 0
    """Position of the spatial mapping among those that were given."""
    searched: int = 1
    """Spatial mappings of which orders were looked at, or that have only one."""
    settled_by_bound: int = 0
    """Spatial mappings of which the bound alone said that they have nothing better, or that are like another one."""
    improved: tuple[tuple[int, float, float], ...] = ()
    """(spatial mapping, energy in pJ, latency in cycles) of the mappings that were the best for a while, each spatial
    mapping with its last."""

    @property
    def gap(self) -> float:
        """How much smaller, relative to the value, the optimum could be."""
        return max(0.0, 1.0 - self.lower_bound / self.value) if self.value else 0.0

    def notes(self, allocation: str) -> tuple[tuple[str, object], ...]:
        """The certificate as JSON values."""
        return (
            ("engine", "exact"),
            ("allocation", allocation),
            ("proven", self.proven),
            ("value", self.value),
            ("lower_bound", self.lower_bound),
            ("gap", self.gap),
            ("nodes", self.nodes),
            ("orders_in_space", self.orders_in_space),
        )


def exact_batches(
    prepared: PreparedProblem,
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[OrderBatch]:
    """The best order as a batch of one, with the certificate among its notes; where nothing fits, what loma says.

    Raises MappingError for impossible constraints and problems that are too large, SearchStoppedError on `stop`.
    """
    result = search_exact(prepared, ordering, options, stop, progress)
    if result is None:
        yield next(loma_batches(prepared, ordering, FEW_LOOPS, stop))
        return
    yield batch_of(prepared, result, result.notes(options.allocation))


def batch_of(prepared: PreparedProblem, result: ExactResult, notes: tuple[tuple[str, object], ...]) -> OrderBatch:
    """The mapping found as a batch of one."""
    boundaries = None if result.boundaries is None else [result.boundaries]
    return OrderBatch.of_orders(prepared, [result.order], boundaries, result.nodes, notes)


def search_exact(
    prepared: PreparedProblem,
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactResult | None:
    """The optimum of the space, or the best found when the time is over; None where nothing fits.

    Greedy: all orders that loma could visit at any `lpf_limit`, none included. Free: all orders of the prime factors
    with all level boundaries. Raises MappingError and SearchStoppedError as `exact_batches` does.
    """
    return search_candidates([prepared], ordering, options, stop, progress)


def search_candidates(
    candidates: Sequence[PreparedProblem],
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactResult | None:
    """The optimum over all spatial mappings of one layer on one core, as `search_exact` finds that of one.

    The time budget is that of all. A spatial mapping that the ordering makes impossible has no mappings; one that is
    too large to be searched counts with what is known without a search. Of equal mappings the first found is taken.
    Raises MappingError as `search_exact` does where no spatial mapping has a mapping, SearchStoppedError on `stop`.
    """
    rounds.compile_kernels()
    watch = Watch(options.objective, time.monotonic() + options.time_budget_s, stop, progress)
    return _Layer(candidates, ordering, options, watch).run()


def like_others(candidates: Sequence[PreparedProblem]) -> dict[int, int]:
    """Candidate -> the first one that is the same problem to the model: equal loops left, equal numbers."""
    first: dict[tuple[object, ...], int] = {}
    return {
        index: first.setdefault((prepared.spatial.temporal_sizes, prepared.arrays.tobytes()), index)
        for index, prepared in enumerate(candidates)
    }


class _Candidate:
    """One spatial mapping: its multisets of loops, and what is known of all of them together."""

    def __init__(
        self, prepared: PreparedProblem, index: int, ordering: Ordering, options: ExactParameters, watch: Watch
    ) -> None:
        self.prepared, self.index, self.watch, self.ordering, self.goal = prepared, index, watch, ordering, options
        self.free = options.allocation == "free"
        if self.free and prepared.arrays.even:
            raise MappingError("allocation: free gives every operand boundaries of its own, which even mappings forbid")
        self.entries = layer_ordering(ordering, prepared)
        self.whole = loop_multiset(prepared.spatial.temporal_sizes, None, self.entries)
        self.floor = rounds.bound_without_search(prepared, watch.objective)
        self.looked_at = False
        self.refused: MappingError | None = None
        self._relaxed_bound = 0.0
        self._relaxed_best = Best()

    @cached_property
    def parts(self) -> list[Part]:
        """The loops to order: prime factors, and (greedy) before them the same merged, from the fewest to the most.

        The allocator takes whole loops, so that orders of merged loops can beat all orders of prime factors. Few loops
        are searched in no time, and what they give often leaves nothing to look for among many.
        """
        sizes, most = self.prepared.spatial.temporal_sizes, self.whole.length
        merged = [] if self.free else [loop_multiset(sizes, limit, self.entries) for limit in range(1, most)]
        return [self._part(multiset, self.entries, self.free) for multiset in dict.fromkeys([*merged, self.whole])]

    def _part(self, multiset: LoopMultiset, entries: Ordering, free: bool) -> Part:
        return Part(self.prepared, self.index, multiset, entries, free, self.watch)

    @cached_property
    def relaxed(self) -> Part | None:
        """The free space without an ordering, which contains the greedy one; None where that is not sure.

        With tiles that are not whole numbers, the order of multiplication could decide what fits.
        """
        if self.free or self.prepared.arrays.even or not has_whole_tiles(self.prepared.arrays):
            return None
        return self._part(loop_multiset(self.prepared.spatial.temporal_sizes, None, ()), (), True)

    def sharpen_floor(self) -> None:
        """Raise the floor by the least that must cross each boundary."""
        self.watch.owner = None
        loops = loop_multiset(self.prepared.spatial.temporal_sizes, None, ())
        energy = energy_floor(self.prepared, loops, self.watch.workspace)
        self.floor = max(self.floor, rounds.bound_without_search(self.prepared, self.watch.objective, energy))

    @property
    def lower_bound(self) -> float:
        """What no mapping of it undercuts, unless it was known as the best."""
        if "parts" not in self.__dict__:
            return max(self.floor, self._relaxed_bound)
        return max(self.floor, self._relaxed_bound, min(part.lower_bound for part in self.parts))

    @property
    def orders(self) -> int:
        """Orders of its space."""
        return sum(part.multiset.order_count for part in self.parts)

    @property
    def nodes(self) -> int:
        """Prefixes looked at."""
        parts = self.parts if "parts" in self.__dict__ else []
        return sum(part.nodes for part in (*parts, *([self.relaxed] if self.relaxed else [])))

    def settled(self, best: Best) -> bool:
        """Whether nothing is left to look for in any part."""
        if self.watch.settles(max(self.floor, self._relaxed_bound), best):
            return True
        return "parts" in self.__dict__ and all(part.settled(best) for part in self.parts)

    def relax(self, best: Best, widths: Sequence[int]) -> Best:
        """Bound it by the free space; the better of `best` and the order found there as the allocator does it."""
        part = self.relaxed
        known = self._relaxed_best
        if part is None or self.watch.settles(part.lower_bound, known):
            return best
        objective = self.watch.objective
        start = known if known.value(objective) < best.value(objective) else replace(best, order=None)
        found = part.run(start, widths)
        self.looked_at |= part.nodes > 0
        self._relaxed_best = found
        self._relaxed_bound = max(self._relaxed_bound, min(part.lower_bound, found.value(objective)))
        if found.order is None or found is known or self.entries:
            return best
        return self._better(best, OrderBatch.of_orders(self.prepared, [found.order]))

    def anneal(self, best: Best) -> Best:
        """The better of `best` and what annealing finds."""
        options = SalsaParameters(objective=self.goal.objective, salsa_iteration_number=ITERATIONS)
        for batch in salsa_batches(self.prepared, self.ordering, options, self.watch.stop, None):
            best = self._better(best, batch)
        return best

    def start(self, best: Best) -> Best:
        """The better of `best` and what loma finds."""
        found = best_of_few_loops(self.prepared, self.ordering, self.watch.objective, self.watch.stop)
        start = Best(found.order, None, found.energy_pj, found.latency_cycles, self.index)
        objective = self.watch.objective
        return start if start.value(objective) < best.value(objective) else best

    def _better(self, best: Best, batch: OrderBatch) -> Best:
        costs = cost_orders(batch)
        row = best_row(costs, self.watch.objective)
        if row is None:
            return best
        energy, latency = float(costs.energy_pj[row]), float(costs.latency_cycles[row])
        found = Best(batch.loop_order(row), None, energy, latency, self.index)
        objective = self.watch.objective
        return found if found.value(objective) < best.value(objective) else best


class _Layer:
    """One search over all spatial mappings of a layer."""

    def __init__(
        self, candidates: Sequence[PreparedProblem], ordering: Ordering, options: ExactParameters, watch: Watch
    ) -> None:
        self.watch, self.options = watch, options
        self.best = Best()
        self.improved: dict[int, tuple[int, float, float]] = {}
        self.all: list[_Candidate] = []
        self.count = len(candidates)
        impossible: MappingError | None = None
        for index, first in like_others(candidates).items():
            if index == first:
                try:
                    self.all.append(_Candidate(candidates[index], index, ordering, options, watch))
                except MappingError as error:
                    impossible = error
        if not self.all and impossible is not None:
            raise impossible

    def run(self) -> ExactResult | None:
        """The result; None where nothing fits."""
        several = len(self.all) > 1
        greedy = self.options.allocation == "greedy"
        narrow, wide = rounds.WIDTHS[:NARROW_ROUNDS], rounds.WIDTHS[NARROW_ROUNDS:]
        if several:
            self._sharpen_floors()
        self._start()
        if greedy and several:
            self._relax(narrow)
        self._search(narrow)
        if greedy:
            self._relax(rounds.WIDTHS[: NARROW_ROUNDS + 2])
            self._anneal()
        for width in wide:
            self._search((width,))
        return self._result()

    def _waiting(self) -> list[_Candidate]:
        """Candidates with something left to look for, the most promising first."""
        found = [one for one in self.all if one.refused is None and not one.settled(self.best)]
        return sorted(found, key=lambda candidate: candidate.lower_bound)

    def _sharpen_floors(self) -> None:
        """Cheap bounds of all spatial mappings, for the most promising to come first."""
        for candidate in self.all:
            if OBJECTIVES[self.options.objective].energy and self.watch.in_time():
                with suppress(MappingError):  # too large for tables: told where orders are searched
                    candidate.sharpen_floor()
        self.all.sort(key=lambda candidate: candidate.floor)  # stable: of equal ones the first

    def _start(self) -> None:
        """Something to beat: what loma finds for the first candidate for which it finds something."""
        for candidate in self.all:
            if self.best.order is None:
                self._guarded(candidate, partial(candidate.start, self.best))
            if not self.watch.in_time():
                break

    def _relax(self, widths: Sequence[int]) -> None:
        for candidate in self._waiting():
            if not self.watch.in_time():
                return
            if not candidate.settled(self.best):
                self._guarded(candidate, partial(candidate.relax, self.best, widths))

    def _anneal(self) -> None:
        for candidate in self._waiting()[:ANNEALED]:
            if not self.watch.in_time():
                return
            self._guarded(candidate, partial(candidate.anneal, self.best))

    def _search(self, widths: Sequence[int]) -> None:
        """These rounds of every part that is waiting."""
        for candidate in self._waiting():
            if candidate.settled(self.best):
                continue
            for part in candidate.parts:
                if not self.watch.in_time():
                    return
                if candidate.settled(self.best):
                    break
                if not part.settled(self.best):
                    candidate.looked_at = True
                    self._guarded(candidate, partial(part.run, self.best, widths))

    def _guarded(self, candidate: _Candidate, step: Callable[[], Best]) -> None:
        """What a step finds, or that the candidate is too large to be searched."""
        if candidate.refused is None:
            try:
                self._take(candidate, step())
            except MappingError as error:
                if len(self.all) == 1:
                    raise
                candidate.refused = error

    def _take(self, candidate: _Candidate, found: Best) -> None:
        if found is not self.best and found.order is not None:
            self.best = found
            self.improved[candidate.index] = (candidate.index, found.energy_pj, found.latency_cycles)

    def _result(self) -> ExactResult | None:
        best = self.best
        lower_bound = min((candidate.lower_bound for candidate in self.all), default=math.inf)
        proven = self.watch.settles(lower_bound, best)
        if best.order is None:
            refused = next((candidate.refused for candidate in self.all if candidate.refused), None)
            if refused is not None:
                raise refused
            if not proven:
                raise MappingError(
                    "the exact search has found no mapping within its time budget of"
                    f" {self.options.time_budget_s:g} s; whether there is one is not known"
                )
            return None
        value = best.value(self.options.objective)
        searched = sum(one.looked_at and one.refused is None for one in self.all)
        return ExactResult(
            best.order,
            best.boundaries,
            value,
            value if proven else min(lower_bound, value),
            proven,
            sum(candidate.nodes for candidate in self.all),
            sum(candidate.orders for candidate in self.all),
            best.candidate,
            searched,
            self.count - len(self.all) + sum(not one.looked_at and one.settled(best) for one in self.all),
            tuple(self.improved.values()),
        )
