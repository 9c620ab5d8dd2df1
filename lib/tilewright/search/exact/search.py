"""Exact search: the best order of all loop prime factors, with a certificate (docs/exact.md).

Branch and bound, one generation of labels after another; where a generation grows too wide its most promising labels
go on, and the bounds of the others make the gap. Rounds of growing width repeat this until nothing is left out.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import native_function
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT, PROBLEM_DTYPE
from tilewright.cost.record import LoopOrder
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace, new_workspace
from tilewright.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import GAP, LoopMultiset, OrderPattern, loop_multiset, order_pattern
from tilewright.objectives import OBJECTIVES
from tilewright.search.batch import OrderBatch, SearchStoppedError
from tilewright.search.evaluate import Boundaries, PreparedProblem
from tilewright.search.exact.bounds_kernel import TOLERANCE
from tilewright.search.exact.expansion_kernel import begin, expand_labels, next_generation
from tilewright.search.exact.lattice_record import EXACT_DTYPE, LABEL_FIELDS, LABELS, PATH_BITS, PATH_SYMBOLS
from tilewright.search.exact.tables import TABLE_STEPS, new_search, truncates_by_order
from tilewright.search.loma import FEW_LOOPS, best_of_few_loops, layer_ordering, loma_batches, write_pattern
from tilewright.search.options import ExactParameters

WIDTHS = (8, 64, 512, 16384, LABELS)
"""Labels of a generation that go on, round after round; narrow rounds find good mappings for little time."""
CHUNK_LABELS = 128
"""Labels expanded between two looks at the clock and at requests to stop."""
_RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, EXACT_DTYPE)


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

    @property
    def gap(self) -> float:
        """How much smaller, relative to the value, the optimum could be."""
        return max(0.0, 1.0 - self.lower_bound / self.value) if self.value else 0.0


def exact_batches(
    prepared: PreparedProblem,
    ordering: tuple[TemporalOrderingEntry, ...],
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
    notes = (
        ("engine", "exact"),
        ("allocation", options.allocation),
        ("proven", result.proven),
        ("value", result.value),
        ("lower_bound", result.lower_bound),
        ("gap", result.gap),
        ("nodes", result.nodes),
        ("orders_in_space", result.orders_in_space),
    )
    boundaries = None if result.boundaries is None else [result.boundaries]
    yield OrderBatch.of_orders(prepared, [result.order], boundaries, result.nodes, notes)


def search_exact(
    prepared: PreparedProblem,
    ordering: tuple[TemporalOrderingEntry, ...],
    options: ExactParameters,
    stop: threading.Event | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactResult | None:
    """The optimum of the space, or the best found when the time is over; None where nothing fits.

    Greedy: all orders that loma could visit at any `lpf_limit`, none included. Free: all orders of the prime factors
    with all level boundaries. Raises MappingError and SearchStoppedError as `exact_batches` does.
    """
    for entry in (*TABLE_STEPS, begin, expand_labels, next_generation):
        native_function(entry, _RECORDS)  # compiling, where that is still to be done, is not part of the search
    deadline = time.monotonic() + options.time_budget_s
    free = options.allocation == "free"
    if free and prepared.arrays.even:
        raise MappingError("allocation: free gives every operand boundaries of its own, which even mappings forbid")
    entries = layer_ordering(ordering, prepared)
    multisets = _multisets(prepared, entries, free)
    pattern = order_pattern(entries, prepared.dimensions)
    start = best_of_few_loops(prepared, ordering, options.objective, stop)
    best = _Best(start.order, None, start.energy_pj, start.latency_cycles)
    first_round = 0
    lower_bound, nodes, proven = math.inf, 0, True
    for multiset in multisets:
        rounds = _Rounds(prepared, multiset, pattern, options.objective, free, deadline, stop, progress)
        best = rounds.run(best, first_round)
        first_round = rounds.last_round  # these loops say much of those that come next
        lower_bound, nodes, proven = (
            min(lower_bound, rounds.lower_bound),
            nodes + rounds.nodes,
            proven and rounds.proven,
        )
    if best.order is None and not proven:
        raise MappingError(
            f"the exact search has found no mapping within its time budget of {options.time_budget_s:g} s;"
            " whether there is one is not known"
        )
    if best.order is None:
        return None
    value = best.value(options.objective)
    orders = sum(multiset.order_count for multiset in multisets)
    return ExactResult(
        best.order, best.boundaries, value, value if proven else min(lower_bound, value), proven, nodes, orders
    )


def _multisets(prepared: PreparedProblem, entries: tuple[TemporalOrderingEntry, ...], free: bool) -> list[LoopMultiset]:
    """The loops to order: prime factors, and (greedy) before them the same merged, from the fewest loops to the most.

    The allocator takes whole loops, so that orders of merged loops can beat all orders of prime factors. Few loops are
    searched in no time, and what they give often leaves nothing to look for among many.
    """
    sizes = prepared.spatial.temporal_sizes
    whole = loop_multiset(sizes, None, entries)
    merged = [] if free else [loop_multiset(sizes, limit, entries) for limit in range(1, whole.length)]
    return list(dict.fromkeys([*merged, whole]))


@dataclass(frozen=True)
class _Best:
    """The best mapping so far; without an order nothing is known."""

    order: LoopOrder | None
    boundaries: Boundaries | None
    energy_pj: float
    latency_cycles: float

    def value(self, objective: str) -> float:
        """Of the objective."""
        return OBJECTIVES[objective].value(self.energy_pj, self.latency_cycles)


class _Rounds:
    """Rounds of branch and bound over one multiset of loops."""

    def __init__(
        self,
        prepared: PreparedProblem,
        multiset: LoopMultiset,
        pattern: OrderPattern,
        objective: str,
        free: bool,
        deadline: float,
        stop: threading.Event | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.prepared, self.multiset, self.deadline = prepared, multiset, deadline
        self.stop, self.progress = stop, progress
        self.workspace: Workspace = new_workspace()
        tables = new_search(prepared, multiset, self.workspace, objective, free, self._in_time)
        self.objective = objective
        self.in_time = tables is not None
        if tables is not None:
            self.search = tables
            self._write_pattern(pattern)
        self.lower_bound, self.proven, self.nodes = 0.0, False, 0
        self.last_round = 0

    def _write_pattern(self, pattern: OrderPattern) -> None:
        write_pattern(self.search, pattern)
        length = len(pattern.dimension)
        gaps = np.flatnonzero(pattern.dimension == GAP)
        self.search.given_length = int(gaps[0]) if len(gaps) else length
        if len(gaps) and gaps[0] < length - 1:
            self.search.keep_paths = True  # what may follow depends on all loops so far

    def run(self, best: _Best, first_round: int) -> _Best:
        """The better of `best` and the optimum of this multiset, with rounds from a given one on.

        Sets lower_bound, proven, nodes and last_round.
        """
        if not self.in_time:
            self.lower_bound = self._bound_without_search()
            return best
        search = self.search
        search.best_energy, search.best_latency = best.energy_pj, best.latency_cycles
        search.best = best.value(self.objective)
        if self.multiset.length == 0:
            self.lower_bound, self.proven = float(search.best), True
            return best
        for number, width in enumerate(WIDTHS[first_round:], start=first_round):
            self.last_round = number
            in_time = self._round(width)
            self.lower_bound = max(self.lower_bound, float(search.dropped_bound))
            self.proven = in_time and bool(self.lower_bound >= search.best * (1 - TOLERANCE))
            if self.proven or not in_time:
                break
        if truncates_by_order(self.prepared.arrays, search):
            self.lower_bound, self.proven = 0.0, False
        else:
            assert not search.broken, "a mapping costs less than the bound that the exact search had for it"
        self.nodes = int(search.nodes)
        if not search.improved:
            return best
        return _Best(self._order(), self._boundaries(), float(search.best_energy), float(search.best_latency))

    def _in_time(self) -> bool:
        """False if the time is over. Raises SearchStoppedError where the search is to stop at once."""
        if self.stop is not None and self.stop.is_set():
            raise SearchStoppedError
        return time.monotonic() <= self.deadline

    def _bound_without_search(self) -> float:
        """What no order undercuts, known without any table: all passes, and the energy of the array."""
        arrays = self.prepared.arrays
        passes = math.prod(size for _, size in self.prepared.spatial.temporal_sizes)
        latency = passes * int(arrays.cycles_per_operation) + float(arrays.drain_cycles)
        energy = float(arrays.fixed_energy_pj) + float(arrays.energy_pj_a_cycle) * latency
        return _Best(None, None, energy, latency).value(self.objective)

    def _call(self, entry, count: int) -> None:  # type: ignore[no-untyped-def]
        native_function(entry, _RECORDS)(self.prepared.arrays, self.workspace, self.search, count)

    def _round(self, width: int) -> bool:
        """Expand all generations, keeping `width` labels of each; False if the time is over before the end."""
        search = self.search
        self._call(begin, 0)
        while search.generation < self.multiset.length and search.label_count[search.current]:
            while search.cursor < search.label_count[search.current]:
                if not self._in_time():
                    self._give_up()
                    return False
                before = int(search.nodes)
                self._call(expand_labels, CHUNK_LABELS)
                if self.progress is not None:
                    self.progress(int(search.nodes) - before)
            self._select(width)
            self._call(next_generation, 0)
        return True

    def _give_up(self) -> None:
        """Count every label that is not expanded as left out."""
        search = self.search
        g = int(search.current)
        waiting = search.label_bound[g, search.cursor : search.label_count[g]]
        made = search.label_bound[1 - g, : search.label_count[1 - g]]
        for bounds in (waiting, made):
            if len(bounds):
                search.dropped_bound = min(float(search.dropped_bound), float(bounds.min()))

    def _select(self, width: int) -> None:
        """Keep the most promising labels of the next generation: smallest bound first, then the first made."""
        search = self.search
        g = 1 - int(search.current)
        count = int(search.label_count[g])
        if count <= width:
            return
        bounds = search.label_bound[g, :count]
        ranked = np.argsort(bounds, kind="stable")
        search.dropped_bound = min(float(search.dropped_bound), float(bounds[ranked[width]]))
        kept = np.sort(ranked[:width])
        for name, _, _ in LABEL_FIELDS:
            column = search[f"label_{name}"]
            column[g, :width] = column[g, kept]
        search.label_count[g] = width

    def _order(self) -> LoopOrder:
        """The best order by name."""
        words = self.search.best_path.tolist()
        symbols = [
            (words[i // PATH_SYMBOLS] >> (PATH_BITS * (i % PATH_SYMBOLS))) & ((1 << PATH_BITS) - 1)
            for i in range(self.multiset.length)
        ]
        return tuple(self.multiset.loops[symbol][0] for symbol in symbols)

    def _boundaries(self) -> Boundaries | None:
        """The level boundaries of the best mapping as numbers of loops, where the search has chosen them."""
        search, problem = self.search, self.prepared.arrays
        if not search.free:
            return None
        result = []
        for o in range(problem.operand_count):
            first = int(search.first_boundary[o])
            points = search.best_boundary[first : first + int(problem.level_count[o]) - 1].tolist()
            bounds = [self._loops_in(point) for point in points]
            if o == OUTPUT_INDEX and search.wide_final:
                bounds = [self._begun_early(bound) for bound in bounds]
            result.append((*bounds, self.multiset.length))
        return tuple(result)

    def _begun_early(self, bound: int) -> int:
        """A boundary of the output below the irrelevant loops under it, as the leaf was costed."""
        dimensions, kinds = self.prepared.dimensions, self.prepared.arrays.kind[OUTPUT_INDEX]
        order = self._order()
        while bound > 0 and kinds[dimensions.index(order[bound - 1][0])] == IRRELEVANT:
            bound -= 1
        return bound

    def _loops_in(self, point: int) -> int:
        search = self.search
        strides = search.stride[: search.symbol_count].tolist()
        counts = search.multiplicity[: search.symbol_count].tolist()
        return sum(point // stride % (count + 1) for stride, count in zip(strides, counts, strict=True))
