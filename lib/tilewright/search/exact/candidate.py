"""Spatial mapping in the exact search of a layer, with the results for its loop orders so far."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.search.batch import OrderBatch, best_row, cost_orders, is_better
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact import rounds
from tilewright.search.exact.floors import NO_FLOORS, TensorFloors
from tilewright.search.exact.mirrors import merged_multisets
from tilewright.search.exact.point_numbers import KeptNumbers
from tilewright.search.exact.rounds import Incumbent, MultisetPart, Watch
from tilewright.search.exact.tables import energy_floor, sizes_tiles_in_any_order
from tilewright.search.loma import best_of_few_loops, layer_ordering
from tilewright.search.options import ExactParameters, SalsaParameters
from tilewright.search.salsa import salsa_batches

ITERATIONS = 5000
"""Number of neighbours that one annealing run visits."""
Ordering = tuple[TemporalOrderingEntry, ...]


def without_waiting(prepared: PreparedProblem) -> PreparedProblem:
    """Problem without waiting terms (`cost.waiting`). These terms only add to the latency, so a lower bound without
    them is also a lower bound with them.

    The terms are left out because they depend on properties of a mapping that labels (partial loop orders) do not
    contain.
    """
    if not prepared.arrays.has_waiting:
        return prepared
    arrays = np.array([prepared.arrays], prepared.arrays.dtype).view(np.recarray)[0]
    arrays.has_waiting = 0
    return replace(prepared, arrays=arrays)


class Candidate:
    """Spatial mapping in the exact search, with its multisets of loops, and with bounds that hold for all these
    multisets."""

    def __init__(
        self,
        prepared: PreparedProblem,
        index: int,
        ordering: Ordering,
        options: ExactParameters,
        watch: Watch,
        floors: TensorFloors = NO_FLOORS,
    ) -> None:
        self.floors = floors
        prepared = without_waiting(prepared)
        self.prepared, self.index, self.watch, self.ordering, self.goal = prepared, index, watch, ordering, options
        self.free = options.allocation == "free"
        if self.free and prepared.arrays.even:
            raise MappingError(
                "with `allocation: free`, each operand has its own level boundaries; in an even mapping, all operands"
                " have the same level boundaries"
            )
        self.entries = layer_ordering(ordering, prepared)
        self.whole = loop_multiset(prepared.spatial.temporal_sizes, None, self.entries)
        self.floor = rounds.bound_without_search(prepared, watch.objective, floors)
        self.looked_at = False
        self.refused: MappingError | None = None
        self._kept = KeptNumbers(loop_multiset(prepared.spatial.temporal_sizes, None))
        self._relaxed_bound = 0.0
        self._relaxed_best = Incumbent()

    @cached_property
    def parts(self) -> list[MultisetPart]:
        """Parts of the search of this candidate, one for each multiset of loops whose orders are searched. Under free
        allocation, the only multiset is that of the prime factors.

        Under greedy allocation, there are also multisets of merged factors. The multisets are sorted by number of
        loops. The allocator never splits a loop, so an order of merged loops can be better than all orders of prime
        factors. Small multisets are searched first, because this is fast and often proves that larger multisets need no
        search.
        """
        merged = () if self.free else merged_multisets(self.prepared.spatial.temporal_sizes, tuple(self.entries))
        return [self._part(multiset, self.entries, self.free) for multiset in dict.fromkeys([*merged, self.whole])]

    def _part(self, multiset: LoopMultiset, entries: Ordering, free: bool) -> MultisetPart:
        part = MultisetPart(self.prepared, self.index, multiset, entries, free, self.watch, self.floors)
        part.kept = self._kept
        return part

    @cached_property
    def relaxed(self) -> MultisetPart | None:
        """Search with free level boundaries and without the given temporal ordering. Its space contains all mappings of
        the greedy space of this candidate. The result is None in three cases:

        * The boundaries of this candidate are free anyway.
        * Mappings must be even.
        * Tile sizes can be fractional and are not rounded up to whole numbers. Whether a mapping fits can then depend
          on the order of multiplication, so the space could lack some mappings of the greedy space.
        """
        if self.free or self.prepared.arrays.even or not sizes_tiles_in_any_order(self.prepared.arrays):
            return None
        return self._part(loop_multiset(self.prepared.spatial.temporal_sizes, None, ()), (), True)

    def sharpen_floor(self) -> None:
        """Raise the lower bound, by counting the least amount of data that must cross each boundary between memory
        levels."""
        self.watch.owner = None
        self.watch.spent += math.prod(size + 1 for _, size in self.whole.loops)
        loops = loop_multiset(self.prepared.spatial.temporal_sizes, None, ())
        energy = energy_floor(self.prepared, loops, self.watch.workspace)
        self.floor = max(
            self.floor, rounds.bound_without_search(self.prepared, self.watch.objective, self.floors, energy)
        )

    @property
    def lower_bound(self) -> float:
        """Lower bound of the objective over those mappings of this candidate that are better than the best known
        mapping. The bound is infinite if the search has proven that there is no such mapping.
        """
        if "parts" not in self.__dict__:
            return max(self.floor, self._relaxed_bound)
        return max(self.floor, self._relaxed_bound, min(part.lower_bound for part in self.parts))

    def least_found(self, objective: str) -> float:
        """Value of the best mapping with free level boundaries that was found for this candidate; infinite if no such
        mapping was found. A small value marks a promising candidate, even if its lower bound is weak.
        """
        return self._relaxed_best.value(objective)

    @property
    def orders(self) -> int:
        """Number of orders in the space of this candidate (spatial mapping)."""
        return sum(part.multiset.order_count for part in self.parts)

    @property
    def nodes(self) -> int:
        """Number of prefixes of loop orders that were visited."""
        parts = self.parts if "parts" in self.__dict__ else []
        return sum(part.nodes for part in (*parts, *([self.relaxed] if self.relaxed else [])))

    def settled(self, best: Incumbent) -> bool:
        """True if no multiset of loops of this candidate can give a mapping that is better than `best` by more than the
        largest accepted gap.
        """
        if self.watch.settles(max(self.floor, self._relaxed_bound), best):
            return True
        return "parts" in self.__dict__ and all(part.settled(best) for part in self.parts)

    def is_proven(self, best: Incumbent) -> bool:
        """True if the lower bound proves that no mapping of this candidate is better than `best`."""
        return self.watch.proves(self.lower_bound, best)

    def relax(self, best: Incumbent, widths: Sequence[int]) -> Incumbent:
        """Better of two mappings: `best`, and the mapping that follows from the search with free boundaries. This
        mapping has the loop order that the search finds, but its loops are allocated to memories greedily. The search
        has one round for each width in `widths`. The function also raises the lower bound of this candidate.
        """
        part = self.relaxed
        if part is None or self.watch.proves(part.lower_bound, self._relaxed_best):
            return best
        objective = self.watch.objective
        for width in widths:
            known = self._relaxed_best
            if known.value(objective) < best.value(objective) * self.watch.best_share:
                break  # boundaries that the allocator does not set give more: no bound of this search can settle `best`
            start = known if known.value(objective) < best.value(objective) else replace(best, order=None)
            found = part.run(start, (width,))
            self.looked_at |= part.nodes > 0
            self._relaxed_best = found
            self._relaxed_bound = max(self._relaxed_bound, min(part.lower_bound, found.value(objective)))
            if found.order is not None and found is not known and not self.entries:
                best = self._better(best, OrderBatch.of_orders(self.prepared, [found.order]))
            if self.settled(best) or self.watch.settles(part.lower_bound, found) or not self.watch.in_time():
                break
        return best

    def anneal(self, best: Incumbent, iterations: int = ITERATIONS) -> Incumbent:
        """Better of two mappings: `best`, and the mapping that simulated annealing finds for this candidate."""
        options = SalsaParameters(objective=self.goal.objective, salsa_iteration_number=iterations)
        for batch in salsa_batches(self.prepared, self.ordering, options, self.watch.stop, None):
            best = self._better(best, batch)
        return best

    def start(self, best: Incumbent) -> Incumbent:
        """Better of two mappings: `best`, and the mapping that loma finds for this candidate."""
        found = best_of_few_loops(self.prepared, self.ordering, self.watch.objective, self.watch.stop)
        costs, known = (found.energy_pj, found.latency_cycles), (best.energy_pj, best.latency_cycles)
        if found.order is None or not is_better(self.watch.objective, costs, known):
            return best
        return Incumbent(found.order, None, *costs, self.index)

    def _better(self, best: Incumbent, batch: OrderBatch) -> Incumbent:
        costs = cost_orders(batch)
        row = best_row(costs, self.watch.objective)
        if row is None:
            return best
        energy, latency = float(costs.energy_pj[row]), float(costs.latency_cycles[row])
        found = Incumbent(batch.loop_order(row), None, energy, latency, self.index)
        objective = self.watch.objective
        return found if found.value(objective) < best.value(objective) else best
