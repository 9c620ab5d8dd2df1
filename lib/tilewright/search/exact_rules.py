"""What the reference's allocator is bound to do with a level, for the exact search in the greedy space."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.cost.problem import Problem
from tilewright.profile import SWITCHES
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact_lattice import Lattice, boundaries_of, held_by, precisions_of, tile_bits


@dataclass(frozen=True)
class GreedyRules:
    """What the reference's allocator does with a level, as far as the loops below and the next loop decide it."""

    prepared: PreparedProblem
    search: np.record
    lattice: Lattice

    def mark(self) -> None:
        """Mark every boundary as pinned, filled or contested; none where boundaries are free."""
        search = self.search
        if search.free:
            return
        rows = boundaries_of(search)
        for b, o, m in rows:
            k = int(self.prepared.arrays.level_memory[o, m])
            if self._pinned(k):
                search.pinned[b] = True
            elif self._filled(o, m, k):
                search.filled[b] = True
            else:
                search.contested[b] = True
        for b, _, m in rows:
            if m > 0 and search.contested[b - 1]:
                search.contested[b], search.filled[b] = True, False
        for o in range(self.prepared.arrays.operand_count):
            held = self._held_beside(o)
            search.never_costlier[o] = all(self._never_costlier(*pair) for pair in held)
        search.any_contested = bool(search.contested[: search.boundary_count].any())
        search.keep_paths = bool(search.keep_paths or search.any_contested)

    def _held_beside(self, o: int) -> list[tuple[int, int]]:
        """What the memory below the uppermost boundary of an operand holds."""
        problem = self.prepared.arrays
        level = int(problem.level_count[o]) - 2
        return held_by(problem, int(problem.level_memory[o, level])) if level >= 0 else []

    def _pinned(self, k: int) -> bool:
        """All operands of the memory fit whole together, and more loops never cost more: then it keeps them whole."""
        problem, n = self.prepared.arrays, self.lattice.size
        whole = 0.0
        for o, m in held_by(problem, k):
            whole += (
                float(self.search.elements[self.search.first_level[o] + m, n - 1]) * precisions_of(problem, o, m)[1]
            )
            if not self._never_costlier(o, m):
                return False
        return whole <= float(problem.memory_bits[k]) and not problem.force_double_buffering[k]

    def _filled(self, o: int, m: int, k: int) -> bool:
        """A memory of one operand whose slices never cost more with more loops takes all that fit."""
        return len(held_by(self.prepared.arrays, k)) == 1 and self._never_costlier(o, m)

    def _never_costlier(self, o: int, m: int) -> bool:
        """One more loop that fits never raises the bits times remaining loops that the allocator compares."""
        problem, n = self.prepared.arrays, self.lattice.size
        if m == problem.level_count[o] - 1:
            return True
        if not self._same_in_any_order():
            return False
        tiles = self.search.elements[self.search.first_level[o] + m, :n]
        if any(
            np.any(self.lattice.successors(tiles, symbol, np.inf) < tiles) for symbol in range(len(self.lattice.shape))
        ):
            return False
        total = float(self.search.cycles[n - 1])
        left = total / self.search.cycles[:n].astype(float)
        limit = float(problem.memory_bits[problem.level_memory[o, m]])
        for precision in set(precisions_of(problem, o, m)):
            bits = tile_bits(problem, self.search, o, m, precision, n)
            cost = left * bits
            for symbol in range(len(self.lattice.shape)):
                after = self.lattice.successors(cost, symbol, -np.inf)
                fits = self.lattice.successors(bits, symbol, np.inf) <= limit
                if np.any(after[fits] > cost[fits]):
                    return False
        return True

    def _same_in_any_order(self) -> bool:
        """Tile sizes do not depend on the order of multiplication, not even in the last bit."""
        return not order_sensitive_dimensions(self.prepared.arrays, self.search)


def order_sensitive_dimensions(problem: Problem, search: np.record) -> set[int]:
    """Dimensions whose tile sizes can depend on the order of multiplication in the last bit.

    With a spatial factor that is no binary fraction, if there are two odd loops to multiply.
    """
    odd = dict.fromkeys(range(problem.dimension_count), 0)
    for j in range(search.symbol_count):
        if search.loop_size[j] & (search.loop_size[j] - 1):
            odd[int(search.loop_dimension[j])] += int(search.multiplicity[j])
    sensitive = set()
    for o in range(problem.operand_count):
        for s in range(problem.spatial_start[o].max()):
            dimension = int(problem.spatial_dimension[o, s])
            if Fraction(float(problem.spatial_factor[0, o, s])).denominator > 2**20 and odd[dimension] > 1:
                sensitive.add(dimension)
    return sensitive


def tiles_are_rounded(problem: Problem, o: int) -> bool:
    """Whether the model multiplies tiles of an operand from numbers that are not exact in binary.

    Those are ratios of window positions, and spatial factors that are no binary fractions.
    """
    if not problem.spatial_differs:
        return False
    factors = [float(factor) for factor in problem.spatial_factor[0, o, : problem.spatial_start[o].max()]]
    return bool(problem.relation_used[o].any()) or any(Fraction(f).denominator > 2**20 for f in factors)


def truncates_by_order(problem: Problem, search: np.record) -> bool:
    """Whether the reference may truncate the size of a window differently in different orders (fault B12)."""
    if problem.switches[SWITCHES.index("exact_window_sizes")]:
        return False
    windows = {int(d) for d in problem.relation_dimension[: problem.relation_count].ravel()}
    return bool(windows & order_sensitive_dimensions(problem, search))
