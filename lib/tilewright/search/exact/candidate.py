"""One spatial mapping in the exact search of a layer, with the results for its loop orders so far."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from tilewright.base.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.search.batch import OrderBatch, best_row, cost_orders, is_better
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact import rounds
from tilewright.search.exact.floors import NO_FLOORS, TensorFloors
from tilewright.search.exact.rounds import Incumbent, MultisetPart, Watch
from tilewright.search.exact.tables import energy_floor, sizes_tiles_in_any_order
from tilewright.search.loma import best_of_few_loops, layer_ordering
from tilewright.search.options import ExactParameters, SalsaParameters
from tilewright.search.salsa import salsa_batches

ITERATIONS = 5000
"""Number of neighbours that one annealing run visits."""
Ordering = tuple[TemporalOrderingEntry, ...]


def likeness(prepared: PreparedProblem) -> tuple[object, bytes]:
    """Key by which equal problems are found. Two spatial mappings have the same key if their temporal sizes and the
    numbers in their problems are the same."""
    record = prepared.arrays
    digest = hashlib.blake2b(digest_size=16)
    for name in record.dtype.names or ():  # without the padding between fields, which is arbitrary
        digest.update(record[name].tobytes())
    return prepared.spatial.temporal_sizes, digest.digest()


class Candidate:
    """Spatial mapping in the search, with its multisets of loops and with bounds that hold for all of these
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
        self.prepared, self.index, self.watch, self.ordering, self.goal = prepared, index, watch, ordering, options
        self.free = options.allocation == "free"
        if self.free and prepared.arrays.even:
            raise MappingError(
                "allocation: free gives each operand its own level boundaries, which even mappings forbid"
            )
        self.entries = layer_ordering(ordering, prepared)
        self.whole = loop_multiset(prepared.spatial.temporal_sizes, None, self.entries)
        self.floor = rounds.bound_without_search(prepared, watch.objective, floors)
        self.looked_at = False
        self.refused: MappingError | None = None
        self._relaxed_bound = 0.0
        self._relaxed_best = Incumbent()

    @cached_property
    def parts(self) -> list[MultisetPart]:
        """Multisets of loops to order. Under free allocation, the only multiset is that of the prime factors.

        Under greedy allocation, there are also multisets of merged factors. The multisets are sorted by number of
        loops. The allocator never splits a loop, so an order of merged loops can be better than all orders of prime
        factors. Small multisets are searched first, because this is fast and often settles the larger ones.
        """
        sizes, most = self.prepared.spatial.temporal_sizes, self.whole.length
        merged = [] if self.free else [loop_multiset(sizes, limit, self.entries) for limit in range(1, most)]
        return [self._part(multiset, self.entries, self.free) for multiset in dict.fromkeys([*merged, self.whole])]

    def _part(self, multiset: LoopMultiset, entries: Ordering, free: bool) -> MultisetPart:
        return MultisetPart(self.prepared, self.index, multiset, entries, free, self.watch, self.floors)

    @cached_property
    def relaxed(self) -> MultisetPart | None:
        """Search with free level boundaries and without the given ordering. The space of this search contains all
        mappings of the greedy space.

        None if this is not certain. If the sizes of tiles are not rounded to whole numbers, the order of multiplication
        could decide whether a mapping fits.
        """
        if self.free or self.prepared.arrays.even or not sizes_tiles_in_any_order(self.prepared.arrays):
            return None
        return self._part(loop_multiset(self.prepared.spatial.temporal_sizes, None, ()), (), True)

    def sharpen_floor(self) -> None:
        """Raise the lower bound by counting the least amount of data that must cross each boundary between memory
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
        """Lower bound of the objective for all mappings of this candidate, except the best known mapping."""
        if "parts" not in self.__dict__:
            return max(self.floor, self._relaxed_bound)
        return max(self.floor, self._relaxed_bound, min(part.lower_bound for part in self.parts))

    @property
    def orders(self) -> int:
        """Number of orders in the space of this candidate."""
        return sum(part.multiset.order_count for part in self.parts)

    @property
    def nodes(self) -> int:
        """Number of prefixes of loop orders that were visited."""
        parts = self.parts if "parts" in self.__dict__ else []
        return sum(part.nodes for part in (*parts, *([self.relaxed] if self.relaxed else [])))

    def settled(self, best: Incumbent) -> bool:
        """True if no part can contain a mapping that is better by more than the largest accepted gap."""
        if self.watch.settles(max(self.floor, self._relaxed_bound), best):
            return True
        return "parts" in self.__dict__ and all(part.settled(best) for part in self.parts)

    def is_proven(self, best: Incumbent) -> bool:
        """True if the lower bound proves that no mapping of this candidate is better by any amount."""
        return self.watch.proves(self.lower_bound, best)

    def relax(self, best: Incumbent, widths: Sequence[int]) -> Incumbent:
        """Better of two mappings: `best`, and the mapping that the search with free boundaries finds. Its loop order
        is then allocated greedily. Also raises the lower bound."""
        part = self.relaxed
        known = self._relaxed_best
        if part is None or self.watch.proves(part.lower_bound, known):
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
