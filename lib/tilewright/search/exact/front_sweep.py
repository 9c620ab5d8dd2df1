"""Sweeps for the Pareto front of energy and latency of a layer: branch and bound in which known points dominate labels.

A label is a partial loop order. A known point matches a label within a tolerance t if its energy and its latency exceed
the label's lower bounds by at most the fraction t. A sweep expands the labels of the exact search, and drops each label
that a known point matches (docs/proofs/network-front.md#sweeps). The *miss* of a label is the smallest t with which a
point matches it. The largest miss of all dropped labels bounds the distance of the points from the complete front.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.exact import rounds
from tilewright.search.exact.bounds_kernel import TOLERANCE
from tilewright.search.exact.candidate import Candidate, Ordering
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.expansion_kernel import begin, expand_labels, next_generation
from tilewright.search.exact.lattice_record import KNOWN_POINTS, LABELS, PATH_BITS, PATH_SYMBOLS
from tilewright.search.exact.likeness import likeness
from tilewright.search.exact.rounds import CHUNK_LABELS, Incumbent, MultisetPart, Watch
from tilewright.search.exact.search import MAKING
from tilewright.search.exact.staircase import ROUNDED, UNLIMITED, Staircase
from tilewright.search.exact.tables import energy_floor
from tilewright.search.front import Values, on_staircase
from tilewright.search.loma import best_of_few_loops
from tilewright.search.loma_kernel import matches
from tilewright.search.options import ExactParameters

OBJECTIVE = "EDP"
"""Objective that is stored in the record of a sweep. With EDP, labels (partial loop orders) have bounds of both energy
and latency."""
WIDTHS = (64, 512, LABELS)
"""Widths of the successive sweeps. The width of a sweep is the largest number of labels (partial loop orders) that the
sweep keeps per generation."""
_BLOCK = 256
"""Number of complete loop orders whose costs are computed at a time. The known points are updated after each block."""
_ALL = slice(None)
_MADE_AT_ONCE = 128
"""Number of spatial mappings that are made at a time. Sweeps over these spatial mappings follow."""


class FrontPart(MultisetPart):
    """Part of a sweep: one spatial mapping with one multiset of temporal loops. The field `miss` limits the distance
    between the mappings of the part and the known points.
    """

    miss = math.inf
    """Upper limit of the distance (miss) of the orders of this part from the known points, as a fraction (see
    `Staircase.misses`)."""
    spent = 0
    """Effort of the last sweep, in the units of `SearchLimits.effort`."""
    _unmatched: tuple[Values, Values] = (np.zeros(0), np.zeros(0))
    """Mappings with free boundaries that no known point matched when a sweep evaluated them, as two arrays: energies in
    pJ and latencies in cycles. Only a sweep with `bounds_only` fills the arrays."""

    def can_match(self, known: Staircase, tolerance: float) -> bool:
        """False if a mapping in `_unmatched` is farther from the known points than `tolerance`. The distance (miss) of
        this part then exceeds the tolerance, whatever number of labels (partial loop orders) a sweep expands.
        """
        return not (known.misses(*self._unmatched) > tolerance).any()

    def sweep(self, known: Staircase, width: int, tolerance: float, *, bounds_only: bool = False) -> None:
        """Expand all labels (partial loop orders) that no known point matches within `tolerance`, at most `width`
        labels per generation. The mappings found are added to `known`.

        If `bounds_only` is true, the level boundaries of this part are free, and the sweep only bounds the distance of
        greedily allocated mappings. The orders found are then added to `known` with greedy allocation. Raises
        MappingError if the problem exceeds the tables.
        """
        if self.multiset.length == 0:
            self._take_only(known)
            self.miss = 0.0
            return
        if not self._has_tables():
            return
        search = self.search
        search.best = known.largest_product(tolerance)
        search.best_share = 1 - TOLERANCE
        search.width = 0
        search.bucket_count = self._bucket_count(width)
        self._write_known(known, tolerance)
        # Labels above this limit are dropped unseen; those beyond an end of the front are as far as its bound.
        self._left = known.end_miss if search.best < UNLIMITED else 0.0
        before, self.spent = int(search.nodes), -self.watch.spent
        self._call(begin, 0)
        is_complete = self._grow(known, width, tolerance)
        self.nodes += int(search.nodes) - before
        if is_complete:
            self._finish(known, tolerance, bounds_only)
        self.spent += self.watch.spent
        if math.isfinite(search.dropped_bound):  # the record was full: only the EDP of the dropped labels is known
            self._left = max(self._left, math.sqrt(float(search.best / search.dropped_bound)) - 1)
        matched = float(search.known_share) - 1
        self._left = max(self._left, 0.0 if matched <= ROUNDED else matched)
        if self.claims_bound:
            self.miss = min(self.miss, self._left)

    def _write_known(self, known: Staircase, tolerance: float) -> None:
        """Write the known points into the record of the search, whose kernels drop the labels (partial loop orders)
        that a point matches within `tolerance`. Of more than KNOWN_POINTS points, evenly spaced points are written.
        """
        fields, count = self.fields, len(known.energy)
        places = np.linspace(0, count - 1, min(count, KNOWN_POINTS)).round().astype(int)
        for name, value in (
            ("known_count", len(places)),
            ("known_tolerance", 1 + max(tolerance, ROUNDED)),
            ("known_floor_energy", known.least_energy_pj),
            ("known_floor_latency", known.least_latency_cycles),
            ("known_share", 1.0),
        ):
            fields[name][0] = value
        fields["sweeps"][0] = True
        fields["known_energy"][: len(places)] = known.energy[places]
        fields["known_latency"][: len(places)] = known.latency[places]

    def _take_only(self, known: Staircase) -> None:
        """Add the only mapping of a problem without temporal loops to the known points, if the mapping fits."""
        only = best_of_few_loops(self.prepared, self.entries, OBJECTIVE, self.watch.stop)
        if only.order is not None:
            known.add([Incumbent(only.order, None, only.energy_pj, only.latency_cycles, self.candidate)])

    def _grow(self, known: Staircase, width: int, tolerance: float) -> bool:
        """Expand one generation after another until each label is a complete loop order. Return False if the time ends
        before that.
        """
        fields = self.fields
        generation, current, cursor, nodes = (fields[name] for name in ("generation", "current", "cursor", "nodes"))
        counts = fields["label_count"]
        while generation[0] < self.multiset.length and counts[current[0]]:
            while cursor[0] < counts[current[0]]:
                if not self.watch.in_time():
                    waiting = self._escapes(known, int(current[0]), slice(int(cursor[0]), None))
                    made = self._escapes(known, 1 - int(current[0]))
                    self._leave(waiting)
                    self._leave(made)
                    return False
                before = int(nodes[0])
                self._call(expand_labels, CHUNK_LABELS)
                self._spend(int(nodes[0]) - before)
            if generation[0] + 1 < self.multiset.length:
                self._keep(known, width, tolerance)
            self._call(next_generation, 0)
        return True

    def _spend(self, labels: int) -> None:
        self.watch.spent += labels
        if self.watch.progress is not None:
            self.watch.progress(labels)

    def _leave(self, escapes: Values) -> None:
        """Update the largest distance (miss) of the labels (partial loop orders) that this part does not expand.
        `escapes` has the distances of labels that are dropped now.
        """
        self._left = max(self._left, float(escapes.max(initial=0.0)))

    def _escapes(self, known: Staircase, g: int, labels: np.ndarray | slice = _ALL) -> Values:
        """Distances (miss) of labels (partial loop orders) of generation `g` from the known points: array [label].
        `labels` has the indexes of these labels. The distance of a label is computed from its lower bounds of energy
        and latency. The distance is 0 for labels that `_keep` has dropped."""
        count = int(self.fields["label_count"][g])
        latency = self.fields["label_latency_bound"][g, :count][labels]
        energy = (
            self.fields["label_energy_bound"][g, :count][labels]
            + float(self.prepared.arrays.energy_pj_a_cycle) * latency
        )
        is_dropped = np.isinf(self.fields["label_bound"][g, :count][labels])
        return np.where(is_dropped, 0.0, known.misses(energy, latency))

    def _keep(self, known: Staircase, width: int, tolerance: float) -> None:
        """Keep those labels (partial loop orders) of the next generation that no known point matches within
        `tolerance`. If there are more than `width` such labels, keep the `width` labels that are farthest from the
        known points."""
        g = 1 - int(self.fields["current"][0])
        if int(self.fields["label_count"][g]) <= width and len(known.energy) <= KNOWN_POINTS:
            return  # the kernels have dropped the matched labels
        escapes = self._escapes(known, g)
        kept = np.flatnonzero(escapes > tolerance)
        if len(kept) > width:
            kept = np.sort(kept[np.argsort(-escapes[kept], kind="stable")[:width]])
        if len(kept) == len(escapes):
            return
        is_left = np.ones(len(escapes), dtype=np.bool_)
        is_left[kept] = False
        self._leave(escapes[is_left])
        self.fields["label_bound"][g, : len(escapes)][is_left] = math.inf  # expand_labels then skips these labels

    def _finish(self, known: Staircase, tolerance: float, bounds_only: bool) -> None:
        """Compute the costs of the labels of the current generation, which are complete loop orders. The labels that
        are farthest from the known points come first. A label that a known point matches within `tolerance` is left
        out.

        The mappings found are added to `known`. If `bounds_only` is true, the orders have free level boundaries, and
        their costs are used only as bounds. The same orders are then added with greedy allocation.
        """
        search = self.search
        g = int(search.current)
        escapes = self._escapes(known, g)
        ranked = np.argsort(-escapes, kind="stable")
        for first in range(0, len(ranked), _BLOCK):
            block = ranked[first : first + _BLOCK]
            escapes = self._escapes(known, g, block)
            self._leave(escapes[escapes <= tolerance])
            block = block[escapes > tolerance]
            if not len(block):
                continue
            if not self.watch.in_time():
                self._leave(escapes)
                self._leave(self._escapes(known, g, ranked[first:]))
                return
            batch = self._batch(g, block)
            self._spend(len(batch.orders))
            if bounds_only:
                self._leave_costs(known, batch, tolerance)
                batch = replace(batch, boundaries=None)
            known.add(self._found(batch))
            if bounds_only and not self.can_match(known, tolerance):
                self._leave(self._escapes(known, g, ranked[first:]))
                return

    def _leave_costs(self, known: Staircase, batch: OrderBatch, tolerance: float) -> None:
        """Update the largest distance (miss) of this part with the distances of the mappings in `batch` from the known
        points. The largest distance rises if a mapping is farther away; it never falls.

        The mappings in `batch` have free level boundaries. A greedily allocated mapping is at most as far from the
        known points as the farthest mapping with the same order and free boundaries.
        """
        costs = cost_orders(batch)
        energy, latency = costs.energy_pj[costs.fits], costs.latency_cycles[costs.fits]
        escapes = known.misses(energy, latency)
        self._leave(escapes)
        far = escapes > tolerance
        self._unmatched = (np.append(self._unmatched[0], energy[far]), np.append(self._unmatched[1], latency[far]))

    def _found(self, batch: OrderBatch) -> list[Incumbent]:
        """Mappings of a batch that no other mapping of the batch dominates."""
        if not len(batch.orders):
            return []
        costs = cost_orders(batch)
        fitting = np.flatnonzero(costs.fits)
        rows = fitting[on_staircase(costs.energy_pj[fitting], costs.latency_cycles[fitting])].tolist()
        return [
            Incumbent(
                batch.loop_order(row),
                batch.level_boundaries(row),
                float(costs.energy_pj[row]),
                float(costs.latency_cycles[row]),
                self.candidate,
            )
            for row in rows
        ]

    def _batch(self, g: int, labels: np.ndarray) -> OrderBatch:
        """Batch of the labels `labels` of generation `g`, which are complete loop orders. Orders that do not match the
        temporal ordering are left out.
        """
        search, length = self.search, self.multiset.length
        words = search.label_path[g, labels]
        places = np.arange(length)
        orders = words[:, places // PATH_SYMBOLS] >> (PATH_BITS * (places % PATH_SYMBOLS)) & ((1 << PATH_BITS) - 1)
        if search.pattern_length:
            allowed = np.array([_is_allowed(search, order) for order in orders.tolist()], dtype=np.bool_)
            orders, labels = orders[allowed], labels[allowed]
        loops = tuple(loop for loop, _ in self.multiset.loops)
        boundaries = self._boundaries_of(g, labels, orders) if self.free else None
        return OrderBatch(self.prepared, loops, orders, boundaries)

    def _boundaries_of(self, g: int, labels: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Level boundaries of complete orders, as numbers of loops below them: array [order, operand, level]. Row i of
        `orders` has the symbols of the order that is the label `labels[i]` of generation `g`.
        """
        search, problem = self.search, self.prepared.arrays
        counts = problem.level_count[: len(self.prepared.layer.operands)].tolist()
        found = np.zeros((len(labels), len(counts), max(counts)), np.int64)
        for o, count in enumerate(counts):
            for m in range(count - 1):
                points = search.label_boundary[g, labels, int(search.first_boundary[o]) + m]
                found[:, o, m] = _loops_at(search, points)
            found[:, o, count - 1] = self.multiset.length
        if search.wide_final:
            _begin_early(found, problem.kind[OUTPUT_INDEX][search.loop_dimension[orders]], counts[OUTPUT_INDEX])
        return found


def _loops_at(search: Any, points: np.ndarray) -> np.ndarray:
    """Number of loops in the multiset of each lattice point."""
    symbols = range(int(search.symbol_count))
    each = [points // int(search.stride[j]) % (int(search.multiplicity[j]) + 1) for j in symbols]
    found: np.ndarray = np.sum(each, axis=0)
    return found


def _begin_early(boundaries: np.ndarray, kinds: np.ndarray, levels: int) -> None:
    """Move each output boundary inwards, past the irrelevant loops that lie directly below the boundary. The function
    changes `boundaries`, an array [order, operand, level]. `kinds` has the relevance of each loop of each order for the
    output: array [order, loop]. `levels` is the number of memory levels of the output.
    """
    for row, kind in zip(boundaries[:, OUTPUT_INDEX], kinds, strict=True):
        for m in range(levels - 1):
            while row[m] > 0 and kind[row[m] - 1] == IRRELEVANT:
                row[m] -= 1


def _is_allowed(search: Any, order: list[int]) -> bool:
    """True if an order matches the required temporal ordering of a search."""
    stream = SimpleNamespace(
        length=len(order),
        order=order,
        loop_dimension=search.loop_dimension,
        loop_size=search.loop_size,
        pattern_length=int(search.pattern_length),
        pattern_dimension=search.pattern_dimension,
        pattern_size=search.pattern_size,
    )
    return bool(matches.py_func(stream))


def _largest_miss(known: Staircase, pairs: tuple[Values, Values]) -> float:
    """Largest distance (miss) of mappings from the known points. `pairs` has the mappings: their energies in pJ, and
    their latencies in cycles.
    """
    return float(known.misses(*pairs).max())


class FrontCandidate(Candidate):
    """Spatial mapping in a sweep."""

    energy_pj = 0.0
    """Lower bound in pJ of the energy of every mapping of this candidate (spatial mapping)."""
    latency_cycles = 0.0
    """Lower bound in cycles of the latency of every mapping of this candidate (spatial mapping)."""
    pairs: tuple[Values, Values] | None = None
    """Lower bounds of energy and latency that were known before this candidate was made (see `Choice.pairs`)."""
    _relaxed_miss = math.inf
    _is_relaxed_left = False

    def _part(self, multiset: LoopMultiset, entries: Ordering, free: bool) -> FrontPart:
        return FrontPart(self.prepared, self.index, multiset, entries, free, self.watch, self.floors)

    @property
    def front_parts(self) -> list[FrontPart]:
        """Parts of this candidate (spatial mapping): one for each multiset of loops."""
        return [part for part in self.parts if isinstance(part, FrontPart)]

    def begin(self) -> None:
        """Compute the lower bounds that can be computed without labels (partial loop orders)."""
        energy = 0.0
        if self.watch.in_time():
            self.watch.owner = None
            self.watch.spent += math.prod(size + 1 for _, size in self.whole.loops)
            loops = loop_multiset(self.prepared.spatial.temporal_sizes, None, ())
            with suppress(MappingError):
                energy = energy_floor(self.prepared, loops, self.watch.workspace)
        self.energy_pj = rounds.bound_without_search(self.prepared, "energy", self.floors, energy)
        self.latency_cycles = rounds.bound_without_search(self.prepared, "latency", self.floors)

    def miss(self, known: Staircase) -> float:
        """Upper limit of the distance (miss) from the known points, as a fraction, over all mappings of this candidate
        (spatial mapping). See `Staircase.misses`.
        """
        found = min(known.miss(self.energy_pj, self.latency_cycles), self._relaxed_miss)
        if self.pairs is not None:
            found = min(found, _largest_miss(known, self.pairs))
        if "parts" in self.__dict__:
            found = min(found, max(part.miss for part in self.front_parts))
        return found

    def sweep(self, known: Staircase, width: int, tolerance: float) -> None:
        """Sweep the parts of this candidate (spatial mapping) until its distance (miss) is at most `tolerance`, or the
        time ends. The larger space with free boundaries (`relaxed`) is swept first if its sweep can be worth the
        effort: its result bounds the distance of all parts.

        If the problem exceeds the tables, the error is stored in `refused`.
        """
        try:
            relaxed = None if self.entries or len(self.parts) == 1 else self.relaxed
            if isinstance(relaxed, FrontPart) and self._is_relaxed_worth(relaxed, known, tolerance):
                relaxed.sweep(known, width, tolerance, bounds_only=True)
                self._relaxed_miss = min(self._relaxed_miss, relaxed.miss)
            for part in self.front_parts:
                if self.miss(known) <= tolerance or not self.watch.in_time():
                    return
                if part.miss > tolerance:
                    part.sweep(known, width, tolerance)
        except MappingError as error:
            self.refused = error

    def _is_relaxed_worth(self, relaxed: FrontPart, known: Staircase, tolerance: float) -> bool:
        """True if a sweep over the larger space `relaxed` can be worth its effort. The sweep is not worth its effort in
        two cases:

        * A mapping of this space is too far from the known points (`FrontPart.can_match`).
        * The last sweep over the space took more effort than the last sweeps over the parts of this candidate (spatial
          mapping) that are not matched yet. The space is then never swept again.
        """
        waiting = sum(part.spent for part in self.front_parts if part.miss > tolerance)
        if math.isfinite(self._relaxed_miss) and relaxed.spent > waiting:
            self._is_relaxed_left = True
        return not self._is_relaxed_left and relaxed.can_match(known, tolerance)


@dataclass
class FrontSweep:
    """Branch and bound for the Pareto front of a layer: sweeps over all spatial mappings of the layer, which add points
    to `known`."""

    choices: Iterable[Choice]
    ordering: Ordering
    options: ExactParameters
    """Options of the search of the layer. The sweeps do not use the objective in these options."""
    watch: Watch
    known: Staircase
    tolerance: float
    """Distance (miss) up to which a mapping counts as matched by a known point, as a fraction."""
    _known_problems: set[object] = field(default_factory=set)
    _settled_miss: float = 0.0

    def __post_init__(self) -> None:
        self._choices: Iterator[Choice] = iter(self.choices)

    def run(self) -> float:
        """Run all sweeps, which add the mappings that they find to the known points. Returns an upper limit of the
        distance (miss) of any mapping of the layer from the known points, as a fraction (see `Staircase.misses`)."""
        rounds.compile_kernels()
        waiting: list[FrontCandidate] = []
        fresh = self._make()
        while fresh:
            waiting += self._swept(fresh, WIDTHS[:1])
            fresh = self._make()
        waiting = self._swept(waiting, WIDTHS[1:])
        return max([self._settled_miss, *(one.miss(self.known) for one in waiting)])

    def _swept(self, candidates: list[FrontCandidate], widths: Sequence[int]) -> list[FrontCandidate]:
        """Candidates (spatial mappings) whose distance (miss) from the known points still exceeds the tolerance after
        the sweeps. There is one sweep for each width in `widths`.
        """
        for width in widths:
            candidates = sorted(candidates, key=lambda one: -one.miss(self.known))
            for candidate in candidates:
                if not self.watch.in_time():
                    return candidates
                if candidate.refused is None and candidate.miss(self.known) > self.tolerance:
                    candidate.sweep(self.known, width, self.tolerance)
            candidates = [one for one in candidates if not self._is_settled(one.miss(self.known))]
        return candidates

    def _is_settled(self, miss: float) -> bool:
        if miss > self.tolerance:
            return False
        self._settled_miss = max(self._settled_miss, miss)
        return True

    def _make(self) -> list[FrontCandidate]:
        """Next candidates (spatial mappings) whose distance (miss) from the known points can exceed the tolerance, in
        the order of the choices. There are at most _MADE_AT_ONCE candidates.
        """
        made: list[FrontCandidate] = []
        for choice in self._choices:
            rest = min(self._miss(choice, choice.rest_passes), choice.rest_miss)
            if rest <= self.tolerance or not self.watch.in_time():
                self._settled_miss = max(self._settled_miss, rest)
                self._choices = iter(())
                break
            own = self._miss(choice, choice.passes)
            if self._is_settled(own if choice.pairs is None else min(own, _largest_miss(self.known, choice.pairs))):
                continue
            candidate = self._candidate(choice)
            if candidate is not None and not self._is_settled(candidate.miss(self.known)):
                made.append(candidate)
            if len(made) == _MADE_AT_ONCE:
                break
        return made

    def _miss(self, choice: Choice, passes: float) -> float:
        """Upper limit of the distance (miss) from the known points, over all mappings of the layer with at least
        `passes` temporal iterations. The limit follows from the lower bounds that `choice` has before the problem of
        its spatial mapping is made."""
        return self.known.miss(choice.of_passes(passes, "energy"), choice.of_passes(passes, "latency"))

    def _candidate(self, choice: Choice) -> FrontCandidate | None:
        """Candidate for a choice: the spatial mapping with its mapping problem. The result is None in three cases: the
        choice is impossible, the choice contradicts the temporal ordering, or an earlier choice has a problem with the
        same key (`likeness`).
        """
        self.watch.spent += MAKING
        prepared = choice.make()
        key = None if prepared is None else likeness(prepared)
        if prepared is None or key in self._known_problems:
            return None
        self._known_problems.add(key)
        try:
            candidate = FrontCandidate(prepared, choice.index, self.ordering, self.options, self.watch, choice.floors)
        except MappingError:  # contradicts the ordering, as in the exact search
            return None
        candidate.pairs = choice.pairs
        candidate.begin()
        return candidate
