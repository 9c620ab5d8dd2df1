"""Exact search: the best order of all loop prime factors, with a certificate (docs/proofs/exact-search.md).

One search covers all spatial mappings of a layer. The best mapping found for one spatial mapping prunes all other
spatial mappings. A spatial mapping needs no search if its lower bound is not better than the value of the best mapping.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from tilewright.search.exact.candidate import ITERATIONS, Candidate, Ordering
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import NO_FLOORS
from tilewright.search.exact.likeness import likeness
from tilewright.search.exact.rounds import Incumbent, Watch
from tilewright.search.loma import FEW_LOOPS, loma_batches
from tilewright.search.options import MOST_STARTS, ExactParameters, SalsaParameters

NARROW_ROUNDS = 2
"""Number of rounds of branch and bound that every spatial mapping gets before any spatial mapping gets further
rounds."""
FEW_LOOPS_FIRST = 8
"""Largest number of loops in the multisets that a search with a limited effort searches first."""
MIDDLE_WIDTH = 2048
"""Width of an additional round with free boundaries, which only a search with a limited effort makes. The other widths
are in `rounds.WIDTHS`.
"""
LOOK_SHARE = 3
"""Factor by which a limited effort is raised for the first look: narrow rounds over all spatial mappings. The first
look should reach every spatial mapping, because a spatial mapping that was not searched can give a far better mapping.
"""
LEFT_SHARE = 2
"""Divisor of the effort for the rounds after the first look. If the first look has spent more than the effort, these
rounds get effort / LEFT_SHARE."""
PROMISING = 4
"""Number of spatial mappings that are searched further before all others: the spatial mappings for which the first look
found the best mappings. The first look consists of narrow rounds over all spatial mappings."""
ANNEALED = 4
"""Number of spatial mappings that are searched by simulated annealing. The spatial mappings with the smallest lower
bounds are taken."""
SALSA_ITERATIONS = SalsaParameters().salsa_iteration_number
"""Number of neighbours that one annealing chain visits by default."""
MADE_AT_ONCE = 128
"""Number of spatial mappings that a search without a limit of the effort makes at a time. These spatial mappings are
searched before the next spatial mappings are made."""
FEW_AT_ONCE = 16
"""Number of spatial mappings that a search with a limited effort makes at a time. If the bounds of spatial mappings are
known in advance, the search makes only one spatial mapping at a time. The mapping found for one spatial mapping often
excludes the next spatial mapping, which then need not be made."""
MAKING = 3000
"""Effort that is counted for making one spatial mapping: the number of partial loop orders (labels) that the search
visits in the same time.
"""
COUNTED = 50_000
"""Largest number of spatial mappings that are counted when a lower bound excludes all remaining spatial mappings. A
larger number stays unknown.

A search with a limited effort does not count, because counting takes longer than searching the layer."""


@dataclass(frozen=True)
class ExactResult(BoundedValue):
    """Best mapping found, with a lower bound of the optimum."""

    order: LoopOrder
    boundaries: Boundaries | None
    value: float
    """Value of the objective for the best mapping: energy in pJ, latency in cycles, or a product of their powers."""
    lower_bound: float
    """Lower bound of the objective over all mappings of the space."""
    nodes: int
    """Number of prefixes of loop orders that were visited."""
    orders_in_space: int | None
    """Number of loop orders in the space, summed over all spatial mappings for which the search made a mapping problem;
    None if the count is incomplete.
    """
    candidate: int = 0
    """Index of the best spatial mapping among the spatial mappings of the layer."""
    searched: int = 1
    """Number of spatial mappings that were searched: at least one of their loop orders was visited, or they have only
    one loop order.
    """
    settled_by_bound: int = 0
    """Number of spatial mappings that needed no search. A spatial mapping needs no search if a lower bound excludes it,
    if an earlier spatial mapping gives the same mapping problem, or if no loop order is possible."""
    allowed: int | None = 1
    """Number of spatial mappings in the space; None if the count is incomplete."""
    improved: tuple[tuple[int, float, float], ...] = ()
    """Triples (number of a spatial mapping, energy in pJ, latency in cycles), one for each spatial mapping with which
    the search improved the best known mapping. The costs are those of the last such improvement. The triples are in the
    order of the first improvements."""
    ended_by_time: bool = False
    """True if the time budget ended the search. The result then depends on the speed of the machine."""
    ended_by_effort: bool = False
    """True if the limit of the effort ended the search."""
    energy_pj: float = 0.0
    """Energy of the best mapping in pJ."""
    latency_cycles: float = 0.0
    """Latency of the best mapping in cycles."""
    met: tuple[Incumbent, ...] = ()
    """Mappings that were the best at some time of the search, in the order in which they were found. A Pareto front
    takes its points from these mappings.
    """

    def notes(self, engine: str, allocation: str) -> tuple[tuple[str, object], ...]:
        """Certificate as pairs (name, JSON value)."""
        return (
            ("engine", engine),
            ("allocation", allocation),
            *((name, self.stated()[name]) for name in ("proven", "value", "lower_bound", "gap")),
            ("nodes", self.nodes),
            ("orders_in_space", self.orders_in_space),
            *((("ended_by_time", True),) if self.ended_by_time else ()),
            *((("ended_by_effort", True),) if self.ended_by_effort else ()),
        )


def exact_batches(
    prepared: PreparedProblem,
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[OrderBatch]:
    """Batch with the best order, as the only batch. The certificate is in the statistics of the batch.

    If no order fits, the result is the first batch of loma. Raises MappingError for impossible constraints and for
    problems that are too large, and SearchStoppedError if `stop` is set.
    """
    result = search_exact(prepared, ordering, options, stop, progress)
    if result is None:
        yield next(loma_batches(prepared, ordering, FEW_LOOPS, stop))
        return
    yield batch_of(prepared, result, result.notes(options.engine, options.allocation))


def batch_of(prepared: PreparedProblem, result: ExactResult, notes: tuple[tuple[str, object], ...]) -> OrderBatch:
    """Batch with one order: the order of the best mapping found."""
    boundaries = None if result.boundaries is None else [result.boundaries]
    return OrderBatch.of_orders(prepared, [result.order], boundaries, result.nodes, notes)


def search_exact(
    prepared: PreparedProblem,
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactResult | None:
    """Optimum of the space, or the best mapping found before the time is over; None if no mapping fits.

    Under greedy allocation, the space contains all orders that loma can visit with any `lpf_limit` or without a limit.
    Under free allocation, the space contains all orders of the prime factors with all level boundaries. Raises the
    errors of `exact_batches`.
    """
    return search_candidates([prepared], ordering, options, stop, progress)


def search_candidates(
    candidates: Sequence[PreparedProblem],
    ordering: Ordering,
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactResult | None:
    """Optimum over all spatial mappings of one layer on one core; `search_exact` takes a single spatial mapping.

    All spatial mappings share one time budget. A spatial mapping that contradicts the ordering is left out. For a
    spatial mapping that is too large to be searched, the certificate uses the bound that is known without a search. If
    several mappings are equally good, the result is the mapping that was found first. Raises MappingError if all
    spatial mappings are impossible, or if no mapping was found and a spatial mapping is too large to be searched.
    Raises SearchStoppedError if `stop` is set.
    """
    choices = [
        Choice(
            index,
            passes_of(prepared.layer, prepared.spatial.unrolling),
            0.0,
            prepared.layer,
            prepared.core,
            NO_FLOORS,
            partial(_itself, prepared),
        )
        for index, prepared in enumerate(candidates)
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
    known: Incumbent | None = None,
    *,
    looks_at_all: bool = False,
) -> ExactResult | None:
    """Optimum over the spatial mappings in `choices`, or the best mapping found before a limit ended the search; None
    if no mapping fits. The spatial mappings are made during the search, and the time budget includes making them.

    Without `known`, loma and salsa run with default options for the first `starts` spatial mappings, even with a short
    time budget. The result is at least as good as their results. `known` is a mapping of the layer. With `known`, the
    result is at least as good as this mapping. Salsa then runs only until a limit is reached, and skips each spatial
    mapping whose lower bound excludes an improvement by more than the accepted gap.

    If `looks_at_all` is true, the first look (narrow rounds over all spatial mappings) may take LOOK_SHARE times the
    effort. If the first look takes more than the effort, wider rounds get the effort divided by LEFT_SHARE.

    Raises MappingError if the constraints are impossible, or if no mapping was found and a spatial mapping is too large
    to be searched. Raises TimeBudgetError if a limit ended the search before a mapping was found, and
    SearchStoppedError if `stop` is set.
    """
    rounds.compile_kernels()
    watch = Watch.start(options.objective, options.limits, stop, progress)
    if looks_at_all and watch.most is not None:
        watch.most *= LOOK_SHARE
    return _Layer(choices, starts, ordering, options, watch, known).run()


@dataclass
class _Tally:
    """Counts of spatial mappings, labels (partial loop orders) and orders of a search, dropped candidates included."""

    allowed: int = 0
    made: int = 0
    searched: int = 0
    settled: int = 0
    nodes: int = 0
    orders: int | None = 0
    all_counted: bool = True

    def take(self, candidate: Candidate, best: Incumbent) -> None:
        """Add the counts of a candidate (spatial mapping) that is not searched any further. `best`, the best known
        mapping, decides whether the candidate counts as settled.
        """
        self.nodes += candidate.nodes
        self.searched += candidate.looked_at and candidate.refused is None
        self.settled += not candidate.looked_at and candidate.settled(best)


class _Layer:
    """Search over all spatial mappings of a layer."""

    def __init__(
        self,
        choices: Iterable[Choice],
        starts: int,
        ordering: Ordering,
        options: ExactParameters,
        watch: Watch,
        known: Incumbent | None = None,
    ) -> None:
        self.watch, self.options, self.ordering, self.begins_known = watch, options, ordering, known is not None
        self.best = known or Incumbent()
        self.improved: dict[int, tuple[int, float, float]] = {}
        self.met: list[Incumbent] = []
        self.all: list[Candidate] = []
        self.tally = _Tally(orders=None if self.is_limited else 0)
        self._choices = iter(choices)
        self._known: set[object] = set()
        self._orders: dict[object, int] = {}
        self._impossible: MappingError | None = None
        self._rest_bound = 0.0
        self._settled_bound = math.inf
        self._is_exhausted = False
        self._at_once = MADE_AT_ONCE
        self._begin(starts)

    def run(self) -> ExactResult | None:
        """Result of the search; None if no mapping fits."""
        greedy = self.options.allocation == "greedy"
        narrow = rounds.WIDTHS[:NARROW_ROUNDS]
        few = None
        starts = fresh = self.all[:]
        while True:
            fresh = sorted([*fresh, *self._make(self._at_once)], key=lambda candidate: candidate.floor)
            several = self.tally.made > 1
            if several and greedy and self.is_limited:
                few = FEW_LOOPS_FIRST
            self._start(fresh)
            if greedy and (several or self.begins_known):
                self._relax(fresh, narrow)
            self._search(fresh, narrow, few)
            self._anneal(starts, SALSA_ITERATIONS, in_any_time=not self.begins_known)
            self._forget_settled()
            if self._is_exhausted or not self.watch.in_time():
                break
            fresh, starts = [], []
        is_large = self._limit_further()
        if few is None:
            self._search_wide(greedy)
        else:
            self._search_further(few, is_large)
        return self._result()

    @property
    def is_limited(self) -> bool:
        """True if the effort of the search is limited."""
        return self.options.limits.effort is not None

    def _limit_further(self) -> bool:
        """Set the limit of the effort for the rounds after the first look. Return True if the first look at all spatial
        mappings took at least the effort.
        """
        effort = self.options.limits.effort
        if effort is None:
            return False
        is_large = self._is_exhausted and self.watch.spent >= effort
        self.watch.most = self.watch.spent + effort // LEFT_SHARE if is_large else effort
        return is_large

    def _search_wide(self, greedy: bool) -> None:
        """Search the spatial mappings that can still give a better mapping, in rounds of growing width."""
        if greedy:
            self._relax(self.all, rounds.WIDTHS[: NARROW_ROUNDS + 2])
            self._anneal(self._waiting(self.all)[:ANNEALED], ITERATIONS)
        for width in rounds.WIDTHS[NARROW_ROUNDS:]:
            self._search(self.all, (width,))

    def _search_further(self, few: int, is_large: bool) -> None:
        """Spend the rest of a limited effort on the spatial mappings that can still give a better mapping.

        One round with free boundaries bounds all multisets of a spatial mapping together, so it comes before the rounds
        of the single multisets. Multisets of few loops come first: they take little effort, and most of the best
        mappings are found in them. A wider round begins only after every spatial mapping had the narrower round.
        `is_large` is true if the first look at all spatial mappings has already used up the effort.
        """
        narrow, (middle, *wide) = rounds.WIDTHS[:NARROW_ROUNDS], rounds.WIDTHS[NARROW_ROUNDS:]
        if is_large:
            self._search_promising((narrow, (middle,)))
        self._relax(self.all, (middle,))
        self._search(self.all, (middle,), few)
        for width in (MIDDLE_WIDTH, *wide):
            self._relax(self.all, (width,))
        self._anneal(self._waiting(self.all)[:ANNEALED], ITERATIONS)
        self._search(self.all, (*narrow, middle))
        for width in wide:
            self._search(self.all, (width,))

    def _search_promising(self, rounds_of_widths: Sequence[Sequence[int]]) -> None:
        """Search all multisets of the PROMISING spatial mappings with the best mappings found so far.

        In a large space, the rest of the effort is too small to search all spatial mappings.
        """
        objective = self.options.objective
        waiting = self._waiting(self.all)
        promising = sorted(waiting, key=lambda candidate: candidate.least_found(objective))[:PROMISING]
        for widths in rounds_of_widths:
            self._search(promising, widths)

    def _begin(self, starts: int) -> None:
        """Run loma for the first `starts` spatial mappings, even if the time budget is over."""
        objective = self.options.objective
        for choice in islice(self._choices, starts):
            self._rest_bound = choice.rest_bound(objective)
            candidate = self._made(choice)
            if candidate is not None:
                self.all.append(candidate)
        for candidate in self.all:
            self._guarded(candidate, partial(candidate.start, self.best))
        following = next(self._choices, None)
        self._is_exhausted = following is None
        if self.options.limits.effort is not None:
            self._at_once = 1 if following is not None and following.least else FEW_AT_ONCE
        if following is not None:
            self._choices = chain((following,), self._choices)
        if not self._is_exhausted or len(self.all) > 1:
            for candidate in self.all:
                self._sharpen(candidate)

    def _made(self, choice: Choice) -> Candidate | None:
        """Candidate for a choice: the spatial mapping with its mapping problem. None if the choice is impossible or
        gives the same mapping problem as an earlier choice.
        """
        self.tally.allowed += 1
        self.watch.spent += MAKING
        prepared = choice.make()
        free = self.options.allocation == "free"
        key = None if prepared is None else likeness(prepared, self.ordering, free=free)
        if prepared is None or key in self._known:
            self.tally.settled += 1
            return None
        self._known.add(key)
        try:
            candidate = Candidate(prepared, choice.index, self.ordering, self.options, self.watch, choice.floors)
            candidate.floor = max(candidate.floor, choice.bound(self.options.objective))
        except MappingError as error:
            self._impossible = error
            self.tally.settled += 1
            return None
        self.tally.made += 1
        self._count_orders(candidate)
        return candidate

    def _make(self, count: int) -> list[Candidate]:
        """Next candidates (spatial mappings) that could give a better mapping than the best known mapping: at most
        `count` candidates, in the order of the choices.

        If the time ends, fewer candidates are made.
        """
        made: list[Candidate] = []
        objective = self.options.objective
        counted, most = 0, COUNTED if self.watch.limits.effort is None else 0
        while not self._is_exhausted and len(made) < count and self.watch.in_time():
            choice = next(self._choices, None)
            if choice is None or counted > most:
                if choice is not None:
                    self._settled_bound = min(self._settled_bound, choice.rest_bound(objective))
                self._is_exhausted = True
                self.tally.all_counted = choice is None
                break
            self._rest_bound = choice.rest_bound(objective)
            counted += self.watch.settles(self._rest_bound, self.best)
            bound = choice.bound(objective)
            if self.watch.settles(bound, self.best):
                self._settled_bound = min(self._settled_bound, bound)
                self.tally.allowed += 1
                self.tally.settled += 1
                continue
            candidate = self._made(choice)
            if candidate is not None:
                self._sharpen(candidate)
                if candidate.settled(self.best):
                    self._drop(candidate)
                else:
                    made.append(candidate)
        self.all += made
        return made

    def _count_orders(self, candidate: Candidate) -> None:
        """Count the loop orders of a candidate (spatial mapping), and add the number to the total, if there is time."""
        sizes = candidate.prepared.spatial.temporal_sizes
        if sizes not in self._orders:
            if self.tally.orders is None or not self.watch.in_time():
                self.tally.orders = None
                return
            self._orders[sizes] = candidate.orders
        if self.tally.orders is not None:
            self.tally.orders += self._orders[sizes]

    def _sharpen(self, candidate: Candidate) -> None:
        """Raise the lower bound of a spatial mapping by a fast computation. Candidates are sorted by this bound."""
        if OBJECTIVES[self.options.objective].energy and self.watch.in_time():
            with suppress(MappingError):  # too large for tables: reported when the orders are searched
                candidate.sharpen_floor()

    def _waiting(self, among: Sequence[Candidate]) -> list[Candidate]:
        """Candidates (spatial mappings) in `among` that must be searched, by ascending lower bound. A candidate is left
        out in two cases: its lower bound shows that no search is needed, or the candidate is too large to be searched.
        """
        found = [one for one in among if one.refused is None and not one.settled(self.best)]
        return sorted(found, key=lambda candidate: candidate.lower_bound)

    def _start(self, candidates: Sequence[Candidate]) -> None:
        """Run loma for one candidate (spatial mapping) after another until the search knows a mapping."""
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
        """Run salsa with `iterations` iterations for each candidate (spatial mapping) that can still contain a better
        mapping.

        If `in_any_time` is false, the function stops when the time budget or the effort is used up. It skips a
        candidate if the lower bound of the candidate proves that no improvement exceeds the largest accepted gap. If
        `in_any_time` is true, the function ignores the time budget and the effort. It then skips a candidate only if
        the lower bound proves that there is no improvement at all.
        """
        for candidate in candidates:
            if not (in_any_time or self.watch.in_time()):
                return
            is_settled = candidate.is_proven(self.best) if in_any_time else candidate.settled(self.best)
            if candidate.refused is None and not is_settled:
                if not in_any_time:
                    self.watch.spent += iterations
                self._guarded(candidate, partial(candidate.anneal, self.best, iterations))

    def _search(self, candidates: Sequence[Candidate], widths: Sequence[int], most_loops: int | None = None) -> None:
        """Search multisets of loops in rounds of branch and bound. A multiset is left out if its lower bound proves
        that none of its mappings is better than the best known mapping by more than the accepted gap.

        If `most_loops` is given, multisets with more loops are left out. If the multisets of a candidate cannot be
        bounded together (`Candidate.relaxed` is None), all of them are searched.

        `widths` has the widths of the rounds: the number of labels (partial loop orders) that a round keeps per
        generation. The candidate (spatial mapping) with the smallest lower bound comes first. The function returns
        early if the time budget or the effort is used up.
        """
        for candidate in self._waiting(candidates):
            if candidate.settled(self.best):
                continue
            for part in candidate.parts:
                if not self.watch.in_time():
                    return
                if candidate.settled(self.best):
                    break
                if most_loops is not None and part.multiset.length > most_loops and candidate.relaxed is not None:
                    break
                if not part.settled(self.best):
                    candidate.looked_at = True
                    self._guarded(candidate, partial(part.run, self.best, widths))

    def _forget_settled(self) -> None:
        """Drop the candidates (spatial mappings) that need no further search. In a large space, keeping all candidates
        would need much memory.
        """
        for candidate in self.all:
            if candidate.settled(self.best):
                self._drop(candidate)
        self.all = [candidate for candidate in self.all if not candidate.settled(self.best)]

    def _drop(self, candidate: Candidate) -> None:
        """Add the counts of a dropped candidate (spatial mapping) to the counts of the search. Update `_settled_bound`,
        the least lower bound of all dropped candidates.
        """
        self._settled_bound = min(self._settled_bound, candidate.lower_bound)
        self.tally.take(candidate, self.best)

    def _guarded(self, candidate: Candidate, step: Callable[[], Incumbent]) -> None:
        """Run a step of the search for a candidate (spatial mapping). If the candidate is too large to be searched,
        store the MappingError in `candidate.refused`. Raise the error if there is no other candidate.
        """
        if candidate.refused is None:
            try:
                self._take(candidate, step())
            except MappingError as error:
                if self.tally.made == 1 and self._is_exhausted:
                    raise
                candidate.refused = error

    def _take(self, candidate: Candidate, found: Incumbent) -> None:
        if found is not self.best and found.order is not None:
            self.best = found
            self.met.append(replace(found, candidate=candidate.index))
            self.improved[candidate.index] = (candidate.index, found.energy_pj, found.latency_cycles)

    def _result(self) -> ExactResult | None:
        if not self.tally.made and self._impossible is not None:
            raise self._impossible
        best = self.best
        rest_bound = math.inf if self._is_exhausted else self._rest_bound
        lower_bound = min([rest_bound, self._settled_bound, *(candidate.lower_bound for candidate in self.all)])
        proven = self.watch.proves(lower_bound, best)
        if best.order is None:
            refused = next((candidate.refused for candidate in self.all if candidate.refused), None)
            if refused is not None:
                raise refused
            if not proven:
                raise TimeBudgetError(f"the search {self._end_text()}; it is not known whether a mapping exists")
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
            self.watch.was_spent and not self.watch.was_late,
            best.energy_pj,
            best.latency_cycles,
            tuple(self.met),
        )

    def _end_text(self) -> str:
        """Reason why the search has found no mapping, as a text that ends a sentence."""
        limits = self.options.limits
        if self.watch.was_late:
            return f"has found no mapping within its time budget of {limits.time_budget_s:g} s"
        if self.watch.was_spent:
            return f"has found no mapping before the limit of the option `effort` ({limits.effort:,})"
        return "has found no mapping"
