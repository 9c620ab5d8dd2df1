"""Exact search: the best order of all loop prime factors, with a certificate (docs/proofs.md#exact-search).

All spatial mappings of a layer are one search: the best mapping known of any is what all others have to beat, and one
that no order can make better than that is settled by its bound alone.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from tilewright.base.errors import MappingError, TimeBudgetError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import BoundedValue
from tilewright.cost.record import LoopOrder
from tilewright.mapping.spatial_space import passes_of
from tilewright.search.batch import OrderBatch
from tilewright.search.evaluate import Boundaries, PreparedProblem
from tilewright.search.exact import rounds
from tilewright.search.exact.candidate import ITERATIONS, Candidate, Choice, Ordering, likeness
from tilewright.search.exact.rounds import Best, Watch
from tilewright.search.loma import FEW_LOOPS, loma_batches
from tilewright.search.options import MOST_STARTS, ExactParameters, SalsaParameters

NARROW_ROUNDS = 2
"""Rounds that every spatial mapping gets before one gets more."""
ANNEALED = 4
"""Spatial mappings that are annealed at a time, the most promising first."""
SALSA_ITERATIONS = SalsaParameters().salsa_iteration_number
"""Neighbours that salsa looks at unless it is told otherwise."""
MADE_AT_ONCE = 512
"""Spatial mappings that are made before those among them are searched that could be better."""
COUNTED = 50_000
"""Spatial mappings that are counted at most once it is known that none of the rest can be better."""


@dataclass(frozen=True)
class ExactResult(BoundedValue):
    """The best mapping found and how far from the optimum it can be."""

    order: LoopOrder
    boundaries: Boundaries | None
    value: float
    """Value of the objective, in cycles and pJ."""
    lower_bound: float
    """No mapping of the space has a smaller objective."""
    nodes: int
    """Prefixes looked at."""
    orders_in_space: int | None
    """Loop orders of all spatial mappings that were made; None where the time was over before they were counted."""
    candidate: int = 0
    """Position of the spatial mapping among those that were given."""
    searched: int = 1
    """Spatial mappings of which orders were looked at, or that have only one."""
    settled_by_bound: int = 0
    """Spatial mappings of which a bound alone said that they have nothing better, or that are like another one."""
    allowed: int | None = 1
    """Spatial mappings of the space; None where they were not counted to the end."""
    improved: tuple[tuple[int, float, float], ...] = ()
    """(spatial mapping, energy in pJ, latency in cycles) of the mappings that were the best for a while, each spatial
    mapping with its last."""
    ended_by_time: bool = False
    """Whether the time budget ended before the search: on another machine it may find another mapping."""

    def notes(self, allocation: str) -> tuple[tuple[str, object], ...]:
        """The certificate as JSON values."""
        return (
            ("engine", "exact"),
            ("allocation", allocation),
            *((name, self.stated()[name]) for name in ("proven", "value", "lower_bound", "gap")),
            ("nodes", self.nodes),
            ("orders_in_space", self.orders_in_space),
            *((("ended_by_time", True),) if self.ended_by_time else ()),
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
    choices = [
        Choice(index, passes_of(prepared.layer, prepared.spatial.unrolling), 0.0, prepared.layer, prepared.core, one)
        for index, prepared in enumerate(candidates)
        for one in [partial(_itself, prepared)]
    ]
    return search_choices(choices, MOST_STARTS, ordering, options, stop, progress)


def _itself(prepared: PreparedProblem) -> PreparedProblem:
    return prepared


def search_choices(
    choices: Iterable[Choice],
    starts: int,
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactResult | None:
    """Optimum over spatial mappings that are made one at a time, which the time budget covers too.

    Whatever the budget, the result is no worse than the best that loma and salsa find, as they are without options, for
    the first `starts` of them.
    """
    rounds.compile_kernels()
    watch = Watch(options.objective, time.monotonic() + options.time_budget_s, stop, progress)
    return _Layer(choices, starts, ordering, options, watch).run()


@dataclass
class _Tally:
    """Counts of a search, with those of candidates that are forgotten."""

    allowed: int = 0
    made: int = 0
    searched: int = 0
    settled: int = 0
    nodes: int = 0
    orders: int | None = 0
    all_counted: bool = True

    def take(self, candidate: Candidate, best: Best) -> None:
        """Count a candidate that is forgotten."""
        self.nodes += candidate.nodes
        self.searched += candidate.looked_at and candidate.refused is None
        self.settled += not candidate.looked_at and candidate.settled(best)


class _Layer:
    """One search over all spatial mappings of a layer."""

    def __init__(
        self, choices: Iterable[Choice], starts: int, ordering: Ordering, options: ExactParameters, watch: Watch
    ) -> None:
        self.watch, self.options, self.ordering = watch, options, ordering
        self.best = Best()
        self.improved: dict[int, tuple[int, float, float]] = {}
        self.all: list[Candidate] = []
        self.tally = _Tally()
        self._choices = iter(choices)
        self._known: set[object] = set()
        self._orders: dict[object, int] = {}
        self._impossible: MappingError | None = None
        self._rest_bound = 0.0
        self._is_exhausted = False
        self._begin(starts)

    def run(self) -> ExactResult | None:
        """The result; None where nothing fits."""
        greedy = self.options.allocation == "greedy"
        narrow, wide = rounds.WIDTHS[:NARROW_ROUNDS], rounds.WIDTHS[NARROW_ROUNDS:]
        starts = fresh = self.all[:]
        while True:
            fresh = sorted([*fresh, *self._make(MADE_AT_ONCE)], key=lambda candidate: candidate.floor)
            several = self.tally.made > 1
            self._start(fresh)
            if greedy and several:
                self._relax(fresh, narrow)
            self._search(fresh, narrow)
            self._anneal(starts, SALSA_ITERATIONS, in_any_time=True)
            self._forget_settled()
            if self._is_exhausted or not self.watch.in_time():
                break
            fresh, starts = [], []
        if greedy:
            self._relax(self.all, rounds.WIDTHS[: NARROW_ROUNDS + 2])
            self._anneal(self._waiting(self.all)[:ANNEALED], ITERATIONS)
        for width in wide:
            self._search(self.all, (width,))
        return self._result()

    def _begin(self, starts: int) -> None:
        """The best that loma finds for the spatial mappings that it tries itself, whatever the time budget."""
        for choice in islice(self._choices, starts):
            self._rest_bound = self._bound(choice.rest_passes, choice)
            candidate = self._made(choice)
            if candidate is not None:
                self.all.append(candidate)
        for candidate in self.all:
            self._guarded(candidate, partial(candidate.start, self.best))
        following = next(self._choices, None)
        self._is_exhausted = following is None
        if following is not None:
            self._choices = chain((following,), self._choices)
        if not self._is_exhausted or len(self.all) > 1:
            for candidate in self.all:
                self._sharpen(candidate)

    def _made(self, choice: Choice) -> Candidate | None:
        """The candidate of a choice, unless it is impossible or like an earlier one."""
        self.tally.allowed += 1
        prepared = choice.make()
        key = None if prepared is None else likeness(prepared)
        if prepared is None or key in self._known:
            self.tally.settled += 1
            return None
        self._known.add(key)
        try:
            candidate = Candidate(prepared, choice.index, self.ordering, self.options, self.watch)
        except MappingError as error:
            self._impossible = error
            self.tally.settled += 1
            return None
        self.tally.made += 1
        self._count_orders(candidate)
        return candidate

    def _make(self, count: int) -> list[Candidate]:
        """The next candidates that could be better than the best, those with the fewest passes first; at most so many,
        and as far as the time goes."""
        made: list[Candidate] = []
        counted = 0
        while not self._is_exhausted and len(made) < count and self.watch.in_time():
            choice = next(self._choices, None)
            if choice is None or counted > COUNTED:
                self._is_exhausted = True
                self.tally.all_counted = choice is None
                break
            self._rest_bound = self._bound(choice.rest_passes, choice)
            counted += self.watch.settles(self._rest_bound, self.best)
            if self.watch.settles(self._bound(choice.passes, choice), self.best):
                self.tally.allowed += 1
                self.tally.settled += 1
                continue
            candidate = self._made(choice)
            if candidate is not None:
                self._sharpen(candidate)
                if candidate.settled(self.best):
                    self.tally.take(candidate, self.best)
                else:
                    made.append(candidate)
        self.all += made
        return made

    def _bound(self, passes: float, choice: Choice) -> float:
        """What no order of so many passes undercuts."""
        return choice.bound(passes, self.options.objective)

    def _count_orders(self, candidate: Candidate) -> None:
        """Add the orders of a candidate to those of the space, while there is time to count them."""
        sizes = candidate.prepared.spatial.temporal_sizes
        if sizes not in self._orders:
            if self.tally.orders is None or not self.watch.in_time():
                self.tally.orders = None
                return
            self._orders[sizes] = candidate.orders
        if self.tally.orders is not None:
            self.tally.orders += self._orders[sizes]

    def _sharpen(self, candidate: Candidate) -> None:
        """A cheap bound of a spatial mapping, for the most promising to come first."""
        if OBJECTIVES[self.options.objective].energy and self.watch.in_time():
            with suppress(MappingError):  # too large for tables: told where orders are searched
                candidate.sharpen_floor()

    def _waiting(self, among: Sequence[Candidate]) -> list[Candidate]:
        """Candidates with something left to look for, the most promising first."""
        found = [one for one in among if one.refused is None and not one.settled(self.best)]
        return sorted(found, key=lambda candidate: candidate.lower_bound)

    def _start(self, candidates: Sequence[Candidate]) -> None:
        """Something to beat: what loma finds for the first candidate for which it finds something."""
        for candidate in candidates:
            if self.best.order is not None or not self.watch.in_time():
                break
            self._guarded(candidate, partial(candidate.start, self.best))

    def _relax(self, candidates: Sequence[Candidate], widths: Sequence[int]) -> None:
        for candidate in self._waiting(candidates):
            if not self.watch.in_time():
                return
            if not candidate.settled(self.best):
                self._guarded(candidate, partial(candidate.relax, self.best, widths))

    def _anneal(self, candidates: Sequence[Candidate], iterations: int, *, in_any_time: bool = False) -> None:
        """What salsa finds, where something is left to find."""
        for candidate in candidates:
            if not (in_any_time or self.watch.in_time()):
                return
            if candidate.refused is None and not candidate.settled(self.best):
                self._guarded(candidate, partial(candidate.anneal, self.best, iterations))

    def _search(self, candidates: Sequence[Candidate], widths: Sequence[int]) -> None:
        """Rounds of every part that is waiting."""
        for candidate in self._waiting(candidates):
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

    def _forget_settled(self) -> None:
        """Keep only candidates with something left to look for: those of a large space take much memory."""
        for candidate in self.all:
            if candidate.settled(self.best):
                self.tally.take(candidate, self.best)
        self.all = [candidate for candidate in self.all if not candidate.settled(self.best)]

    def _guarded(self, candidate: Candidate, step: Callable[[], Best]) -> None:
        """What a step finds, or that the candidate is too large to be searched."""
        if candidate.refused is None:
            try:
                self._take(candidate, step())
            except MappingError as error:
                if self.tally.made == 1 and self._is_exhausted:
                    raise
                candidate.refused = error

    def _take(self, candidate: Candidate, found: Best) -> None:
        if found is not self.best and found.order is not None:
            self.best = found
            self.improved[candidate.index] = (candidate.index, found.energy_pj, found.latency_cycles)

    def _result(self) -> ExactResult | None:
        if not self.tally.made and self._impossible is not None:
            raise self._impossible
        best = self.best
        rest_bound = math.inf if self._is_exhausted else self._rest_bound
        lower_bound = min([rest_bound, *(candidate.lower_bound for candidate in self.all)])
        proven = self.watch.settles(lower_bound, best)
        if best.order is None:
            refused = next((candidate.refused for candidate in self.all if candidate.refused), None)
            if refused is not None:
                raise refused
            if not proven:
                raise TimeBudgetError(
                    "the exact search has found no mapping within its time budget of"
                    f" {self.options.time_budget_s:g} s; whether there is one is not known"
                )
            return None
        value = best.value(self.options.objective)
        for candidate in self.all:
            self.tally.take(candidate, best)
        is_counted = self._is_exhausted and self.tally.all_counted
        return ExactResult(
            best.order,
            best.boundaries,
            value,
            value if proven else min(lower_bound, value),
            self.tally.nodes,
            self.tally.orders if is_counted else None,
            best.candidate,
            self.tally.searched,
            self.tally.settled,
            self.tally.allowed if is_counted else None,
            tuple(self.improved.values()),
            self.watch.was_late,
        )
