"""Rounds of branch and bound over the orders of one multiset of loops (docs/proofs/exact-rounds.md, section 7).

A label is a partial loop order. The labels of a generation have the same number of loops, and a round expands one
generation after another. If a generation has too many labels, only the most promising labels are expanded, and the
bounds of the dropped labels determine the gap. Rounds of growing width follow until no label is dropped.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.base.compiled import address_of, native_function
from tilewright.base.objectives import OBJECTIVES
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.record import LoopOrder
from tilewright.cost.workspace import Workspace, new_workspace
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import DIGITAL, Core
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import GAP, LoopMultiset, order_pattern
from tilewright.mapping.zeros import least_active_share
from tilewright.search.batch import SearchStoppedError
from tilewright.search.evaluate import Boundaries, PreparedProblem
from tilewright.search.exact.bounds_kernel import TOLERANCE
from tilewright.search.exact.expansion_kernel import begin, expand_labels, next_generation
from tilewright.search.exact.floors import NO_FLOORS, TensorFloors
from tilewright.search.exact.lattice_record import BUCKETS, LABELS, PATH_BITS, PATH_SYMBOLS
from tilewright.search.exact.point_numbers import KeptNumbers
from tilewright.search.exact.rules_kernel import find_floor
from tilewright.search.exact.tables import TABLE_RECORDS, TABLE_STEPS, fields_of, new_search, truncates_by_order
from tilewright.search.loma import best_of_few_loops, write_pattern
from tilewright.search.options import SearchLimits
from tilewright.workload.layer import Layer

WIDTHS = (8, 64, 512, 16384, LABELS)
"""Width of each round: the number of labels (partial loop orders) that a round keeps per generation. Narrow rounds find
good mappings in little time."""
EXACT_WIDTH = 512
"""Largest width of a round that does not use the accepted gap. Such a round drops a label (partial loop order) only if
no completion of the label is better than the best known mapping. Wider rounds also drop labels whose best completion is
better by at most the accepted gap.

Rounds up to this width take little time, and prove most optima."""
ENTRIES = (*TABLE_STEPS, find_floor, begin, expand_labels, next_generation)
"""Compiled functions that are called by rounds of branch and bound, and by sweeps of Pareto fronts."""
ENTRY_RECORDS = TABLE_RECORDS
"""Types of the records that the functions of `ENTRIES` take as arguments."""
EARLY_SHARE = 32
"""Divisor of a limited effort. Until effort / EARLY_SHARE is spent, a search accepts only half of the largest gap.
Small layers are then mapped closer to the optimum, and large layers take no longer.
"""
CHUNK_LABELS = 128
"""Number of labels (partial loop orders) that are expanded between two checks of the clock and of requests to stop."""


@dataclass(frozen=True)
class Incumbent:
    """Best mapping that the search has found so far. If `order` is None, no mapping is known."""

    order: LoopOrder | None = None
    boundaries: Boundaries | None = None
    energy_pj: float = math.inf
    latency_cycles: float = math.inf
    candidate: int = 0
    """Index of the spatial mapping among the spatial mappings of the layer."""

    def value(self, objective: str) -> float:
        """Value of the objective for this mapping."""
        return OBJECTIVES[objective].value(self.energy_pj, self.latency_cycles)


@dataclass
class Watch:
    """Data that all parts of one search share: the objective, the limits, the clock and the callbacks. `owner` is the
    part whose tables are now in the search record of this thread."""

    objective: str
    limits: SearchLimits
    deadline: float
    stop: threading.Event | None = None
    progress: Callable[[int], None] | None = None
    workspace: Workspace = field(default_factory=new_workspace)
    owner: "MultisetPart | None" = None
    """Part of the search whose tables are now in the search record of this thread; None if the record has the tables of
    no part. A part has all orders of one multiset of loops."""
    was_late: bool = False
    """True if work was skipped because the time budget was used up."""
    spent: int = 0
    """Effort that is spent so far, in the units of `SearchLimits.effort`."""
    most: int | None = None
    """Limit of the effort at this time of the search; None: no limit."""
    was_spent: bool = False
    """True if work was skipped because the limit of the effort was reached."""

    @classmethod
    def start(
        cls, objective: str, limits: SearchLimits, stop: threading.Event | None, progress: Callable[[int], None] | None
    ) -> "Watch":
        """Watch of a search that begins with this call."""
        seconds = math.inf if limits.time_budget_s is None else limits.time_budget_s
        return cls(objective, limits, time.monotonic() + seconds, stop, progress, most=limits.effort)

    def in_time(self) -> bool:
        """False if the time budget or the limit of the effort is used up. Raises SearchStoppedError if the caller
        set `stop`."""
        if self.stop is not None and self.stop.is_set():
            raise SearchStoppedError
        is_late = time.monotonic() > self.deadline
        is_spent = self.most is not None and self.spent >= self.most
        self.was_late |= is_late
        self.was_spent |= is_spent
        return not (is_late or is_spent)

    def settles(self, bound: float, best: Incumbent) -> bool:
        """True if `bound` proves that no mapping beats the best known mapping by more than the accepted gap."""
        return bool(bound >= best.value(self.objective) * self.best_share)

    @property
    def best_share(self) -> float:
        """Share 1 - g, where g is the accepted gap (at least TOLERANCE). If a lower bound is at least this share of the
        value of the best known mapping, no mapping is better than the best known mapping by more than g.

        The accepted gap is `largest_gap`. At the beginning of a search with a limited effort, the accepted gap is half
        of `largest_gap` (EARLY_SHARE).
        """
        effort, gap = self.limits.effort, self.limits.largest_gap
        is_early = effort is not None and self.spent * EARLY_SHARE < effort
        return 1 - max(gap / 2 if is_early else gap, TOLERANCE)

    def proves(self, bound: float, best: Incumbent) -> bool:
        """True if `bound` proves that no mapping is better than the best known mapping."""
        return bool(bound >= best.value(self.objective) * (1 - TOLERANCE))


def compile_kernels() -> None:
    """Compile the kernels of rounds if they are not compiled yet. The search time then does not include compiling."""
    for entry in ENTRIES:
        native_function(entry, TABLE_RECORDS)


def bound_without_search(
    prepared: PreparedProblem, objective: str, floors: TensorFloors = NO_FLOORS, energy_pj: float = 0.0
) -> float:
    """Lower bound of the objective for every order, computed without tables.

    The latency is the larger of two numbers: the cycles of all passes over the array plus the fixed cycles, and the
    cycles of `floors`.

    The energy is the sum of two terms. The first term does not grow with latency: it is the larger of `energy_pj` and
    the sum of the fixed energy of the problem and the energy of `floors`. The second term is the energy of the problem
    per cycle, times the latency.
    """
    arrays = prepared.arrays
    passes = math.prod(size for _, size in prepared.spatial.temporal_sizes)
    latency = max(passes * int(arrays.cycles_per_operation) + float(arrays.fixed_cycles), floors.cycles)
    fixed_pj = float(arrays.fixed_energy_pj) + floors.energy_pj
    energy = max(energy_pj, fixed_pj) + float(arrays.energy_pj_a_cycle) * latency
    return Incumbent(energy_pj=energy, latency_cycles=latency).value(objective)


def bound_of_passes(
    layer: Layer, core: Core, passes: float, floors: TensorFloors, objective: str, pj_a_cycle: float = 0.0
) -> float:
    """Lower bound of the objective for a spatial mapping with at least `passes` temporal iterations. The bound can be
    computed before the mapping is made.

    `floors` are lower bounds that hold for every mapping. Each cycle of the latency adds `pj_a_cycle` to the energy.
    """
    array = core.operational_array
    # The energy of other kinds of arrays, and further energy terms, can depend on the spatial mapping.
    energy = floors.energy_pj
    if array.kind == DIGITAL:
        energy += array.unit_energy_pj * layer.mac_count * least_active_share(layer, core)
    latency = max(passes * array_model(array).cycles_per_operation(array), floors.cycles)
    return Incumbent(energy_pj=energy + pj_a_cycle * latency, latency_cycles=latency).value(objective)


class MultisetPart:
    """Part of a search: one spatial mapping with one multiset of temporal loops. The part covers the orders of these
    loops, and keeps the results of the rounds so far.
    """

    def __init__(
        self,
        prepared: PreparedProblem,
        candidate: int,
        multiset: LoopMultiset,
        entries: tuple[TemporalOrderingEntry, ...],
        free: bool,
        watch: Watch,
        floors: TensorFloors = NO_FLOORS,
    ) -> None:
        self.prepared, self.candidate, self.multiset, self.free, self.watch = prepared, candidate, multiset, free, watch
        self.entries = entries
        self.claims_bound = True
        self.floor = bound_without_search(prepared, watch.objective, floors)
        self.kept: KeptNumbers | None = None
        self._found_bound = 0.0
        self._previous = (0, 0)
        self.nodes = 0

    @property
    def lower_bound(self) -> float:
        """Lower bound of the objective over those orders of this part that are better than the best known mapping. The
        bound is infinite if the rounds have proven that there is no such order. The bound is 0 if the bounds of the
        search are not certain (`claims_bound`).
        """
        return max(self.floor, self._found_bound) if self.claims_bound else 0.0

    def settled(self, best: Incumbent) -> bool:
        """True if this part contains no order that is better than `best` by more than the accepted gap (see
        `Watch.settles`)."""
        return self.watch.settles(max(self.floor, self._found_bound), best)

    def run(self, best: Incumbent, widths: Sequence[int]) -> Incumbent:
        """Better of two mappings: `best`, and the best mapping that the rounds find within the time budget. There is
        one round for each width. Raises MappingError if the problem is too large for the tables."""
        if self.multiset.length == 0:
            return self._run_empty(best)
        if not self._can_afford(widths[0]):
            self.watch.was_spent = True
            return best
        if not self._has_tables():
            return best
        fields, watch = self.fields, self.watch
        value, dropped, nodes = fields["best"], fields["dropped_bound"], fields["nodes"]
        fields["best_energy"][0], fields["best_latency"][0] = best.energy_pj, best.latency_cycles
        fields["improved"][0], value[0] = 0, best.value(watch.objective)
        before = int(nodes[0])
        for width in widths:
            if not self._can_afford(width):
                watch.was_spent = True
                break
            begun = int(nodes[0])
            fields["best_share"][0] = watch.best_share if width > EXACT_WIDTH else 1 - TOLERANCE
            in_time = self._round(width)
            self._found_bound = max(self._found_bound, float(dropped[0]))
            self._previous = (width, int(nodes[0]) - begun)
            if not in_time or self._found_bound >= value[0] * watch.best_share:
                break
        self.nodes += int(nodes[0]) - before
        assert not (self.claims_bound and fields["broken"][0]), (
            "a mapping costs less than the bound that the exact search had for it"
        )
        if not fields["improved"][0]:
            return best
        energy, latency = float(fields["best_energy"][0]), float(fields["best_latency"][0])
        return Incumbent(self._order(), self._boundaries(), energy, latency, self.candidate)

    def _can_afford(self, width: int) -> bool:
        """False if the limit of the effort would probably end a wide round. An ended round proves little, so the effort
        is left to other spatial mappings.

        The effort of a round grows more slowly than its width, because many labels (partial loop orders) are dropped by
        their bounds. The estimate is the effort of the previous round, times the square root of the ratio between the
        two widths.
        """
        effort, (before, visited) = self.watch.most, self._previous
        if effort is None or width <= EXACT_WIDTH or not before:
            return True
        return visited * math.sqrt(width / before) <= effort - self.watch.spent

    def _run_empty(self, best: Incumbent) -> Incumbent:
        """Better of two mappings: `best`, and the only mapping of a problem without temporal loops."""
        self._found_bound = math.inf
        only = best_of_few_loops(self.prepared, self.entries, self.watch.objective, self.watch.stop)
        found = Incumbent(only.order, None, only.energy_pj, only.latency_cycles, self.candidate)
        objective = self.watch.objective
        return found if found.value(objective) < best.value(objective) else best

    def _has_tables(self) -> bool:
        """Make the tables if they do not exist yet. Return False if the time ends before they are complete."""
        watch = self.watch
        if watch.owner is self:
            return True
        watch.owner = None
        watch.spent += math.prod(count + 1 for _, count in self.multiset.loops)
        tables = new_search(
            self.prepared, self.multiset, watch.workspace, watch.objective, self.free, watch.in_time, self.kept
        )
        if tables is None:
            return False
        self.search, self.fields = tables, fields_of(tables)
        self._addresses = [address_of(record) for record in (self.prepared.arrays, watch.workspace, tables)]
        self._write_pattern()
        self.claims_bound = not truncates_by_order(self.prepared.arrays, tables)
        watch.owner = self
        return True

    def _write_pattern(self) -> None:
        pattern = order_pattern(self.entries, self.prepared.dimensions)
        write_pattern(self.search, pattern)
        length = len(pattern.dimension)
        gaps = np.flatnonzero(pattern.dimension == GAP)
        self.search.given_length = int(gaps[0]) if len(gaps) else length
        if len(gaps) and gaps[0] < length - 1:
            self.search.keep_paths = True  # the possible next loops depend on all loops so far

    def _call(self, entry, count: int) -> None:  # type: ignore[no-untyped-def]
        native_function(entry, TABLE_RECORDS)(*self._addresses, count)

    def _round(self, width: int) -> bool:
        """Expand all generations and keep `width` labels (partial loop orders) of each generation. Return False if the
        time ends before the last generation.
        """
        fields, watch = self.fields, self.watch
        generation, current, counts = fields["generation"], fields["current"], fields["label_count"]
        nodes = fields["nodes"]
        fields["bucket_count"][0] = self._bucket_count(width)
        fields["width"][0] = width
        self._call(begin, 0)
        while generation[0] < self.multiset.length and counts[current[0]]:
            if not watch.in_time():
                self._give_up()
                return False
            before = int(nodes[0])
            self._call(expand_labels, CHUNK_LABELS)
            visited = int(nodes[0]) - before
            watch.spent += visited
            if watch.progress is not None:
                watch.progress(visited)
        return True

    def _bucket_count(self, width: int) -> int:
        """Number of buckets for the labels (partial loop orders) of one generation of a round. At least half of the
        buckets stay empty.

        A small table fits into a cache of the processor. The number of buckets does not affect the result.
        """
        choices = math.prod(max(1, count) for count in self.prepared.arrays.level_count.tolist()) if self.free else 1
        most = min(width * len(self.multiset.loops) * choices, LABELS)
        return min(BUCKETS, 1 << (2 * most).bit_length())

    def _give_up(self) -> None:
        """Treat all labels (partial loop orders) that are not expanded yet as dropped."""
        search = self.search
        g = int(search.current)
        waiting = search.label_bound[g, search.cursor : search.label_count[g]]
        made = search.label_bound[1 - g, : search.label_count[1 - g]]
        for bounds in (waiting, made):
            if len(bounds):
                search.dropped_bound = min(float(search.dropped_bound), float(bounds.min()))

    def _order(self) -> LoopOrder:
        """Best order, as loops with the names of their dimensions."""
        words = self.search.best_path.tolist()
        symbols = [
            (words[i // PATH_SYMBOLS] >> (PATH_BITS * (i % PATH_SYMBOLS))) & ((1 << PATH_BITS) - 1)
            for i in range(self.multiset.length)
        ]
        return tuple(self.multiset.loops[symbol][0] for symbol in symbols)

    def _boundaries(self) -> Boundaries | None:
        """Level boundaries of the best mapping, each as the number of loops below the boundary; None if the greedy
        allocator chose the boundaries."""
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
        """Boundary `bound` of the output, moved inwards past the irrelevant loops that lie directly below the boundary.
        `bound` and the result are numbers of loops below the boundary. The search has evaluated the mapping with the
        moved boundary.
        """
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
