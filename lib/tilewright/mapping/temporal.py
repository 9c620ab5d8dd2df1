"""Loops that the search permutes, and constraints on their order: a complete order or a pattern.

The rules are those of zigzag-dse 3.9.1 for mappings and for LOMA, its search for loop orders. A pattern is a list of
entries, and an entry is a loop or a gap `*`. Entries before the first gap are the innermost loops. Entries after the
last gap are the outermost loops. Entries between two gaps are consecutive loops anywhere between the innermost and the
outermost loops. A pattern without a gap gets a gap at its end. zigzag-dse 3.9.1 has three faults here (B7, B8, B9): it
ignores gaps, can compute too many cycles if the size of a loop is no prime number, and crashes on loops of size 1 and
on repeated sizes.

The sizes of the loops are prime factors of the iterations. Factors are merged until their number is within a limit.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.mapping.constraints import WILDCARD, TemporalOrderingEntry
from tilewright.workload.layer import Layer

ANY = -1
GAP = -2


def applicable_ordering(ordering: tuple[TemporalOrderingEntry, ...], layer: Layer) -> tuple[TemporalOrderingEntry, ...]:
    """Entries of an ordering that apply to a layer: loops over a dimension of the layer, and gaps (which stand for any
    loops)."""
    return tuple(entry for entry in ordering if entry.dimension == WILDCARD or entry.dimension in layer.size_of)


def nothing_left(ordering: tuple[TemporalOrderingEntry, ...], layer: Layer, unrolled: Sequence[tuple[str, int]]) -> str:
    """Part of a message: the dimensions in `ordering` for which the spatial mapping leaves no temporal loop. A loop of
    size 1 does not count.

    The text is '' if there is no such dimension. Entries with a size are ignored.
    """
    left = dict(layer.size_of)
    for dimension, factor in unrolled:
        left[dimension] = math.ceil(left.get(dimension, 1) / factor)
    gone = [entry.dimension for entry in ordering if entry.size is None and left.get(entry.dimension) == 1]
    return f": the spatial mapping leaves no loop of {', '.join(dict.fromkeys(gone))}" if gone else ""


def complete_order(
    ordering: tuple[TemporalOrderingEntry, ...], temporal_sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...] | None:
    """Complete loop order that `ordering` specifies, without loops of size 1. None if an entry is a gap or has no size.
    Also None if the product of the loop sizes of a dimension is not its number of temporal iterations."""
    if any(entry.dimension == WILDCARD or entry.size is None for entry in ordering):
        return None
    loops = tuple((entry.dimension, entry.size or 1) for entry in ordering)
    products = {d: math.prod(size for name, size in loops if name == d) for d, _ in loops}
    if {d: size for d, size in products.items() if size != 1} != dict(temporal_sizes):
        return None
    return tuple(loop for loop in loops if loop[1] != 1)


def counted_boundaries(
    boundaries: tuple[tuple[str, tuple[int, ...]], ...], ordering: tuple[TemporalOrderingEntry, ...], layer: Layer
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Level boundaries of each operand. A boundary is a number of loops: the loops below the boundary. The argument
    `boundaries` counts entries of `ordering`; the result counts loops of the layer.

    Two kinds of entries do not count in the result: entries of dimensions that the layer does not have, and entries of
    size 1. A boundary above all entries of `ordering` stays above all loops of the layer.
    """
    counts = [0]
    for entry in ordering:
        counts.append(counts[-1] + (entry.dimension in layer.size_of and entry.size != 1))

    def counted(bound: int) -> int:
        return counts[bound] if bound < len(counts) else counts[-1] + bound - len(ordering)

    return tuple((operand, tuple(counted(bound) for bound in bounds)) for operand, bounds in boundaries)


@dataclass(frozen=True)
class OrderPattern:
    """Pattern of a loop order in the form that the compiled search takes: arrays with one value for each loop or gap,
    innermost first. A gap stands for any loops.
    """

    dimension: np.ndarray
    """Index of the loop dimension of each entry, or GAP."""
    size: np.ndarray
    """Size of the loop (one value for each loop or gap); ANY for a gap, and for a loop of any size."""


def order_pattern(ordering: tuple[TemporalOrderingEntry, ...], dimensions: tuple[str, ...]) -> OrderPattern:
    """Pattern of the loop orders that `ordering` allows, without loops of size 1. If the pattern has loops but no gap,
    a gap is added at its end. `dimensions` has the names of the loop dimensions in the order of their indices.
    """
    entries = [entry for entry in ordering if entry.dimension == WILDCARD or entry.size != 1]
    if entries and all(entry.dimension != WILDCARD for entry in entries):
        entries.append(TemporalOrderingEntry(WILDCARD))
    index = [GAP if entry.dimension == WILDCARD else dimensions.index(entry.dimension) for entry in entries]
    size = [ANY if entry.size is None else entry.size for entry in entries]
    return OrderPattern(np.array(index, np.int64), np.array(size, np.int64))


@dataclass(frozen=True)
class LoopMultiset:
    """Loops to permute: pairs ((dimension, factor), number of such loops), sorted by dimension and factor."""

    loops: tuple[tuple[tuple[str, int], int], ...]

    @property
    def length(self) -> int:
        """Number of loops in an order of all loops."""
        return sum(multiplicity for _, multiplicity in self.loops)

    @property
    def order_count(self) -> int:
        """Number of distinct orders of the loops."""
        count = math.factorial(self.length)
        for _, multiplicity in self.loops:
            count //= math.factorial(multiplicity)
        return count


def prime_factors(number: int) -> list[int]:
    """Prime factors of a positive integer, ascending, with repeats; [] for 1."""
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return [*factors, number] if number > 1 else factors


def loop_multiset(
    temporal_sizes: tuple[tuple[str, int], ...],
    limit: int | None,
    ordering: tuple[TemporalOrderingEntry, ...] = (),
) -> LoopMultiset:
    """Loops to permute. In each dimension, the product of their sizes is the number of iterations in `temporal_sizes`.
    There are at most `limit` loops. With more than `limit` dimensions, there is one loop for each dimension. None means
    no limit.

    Loops with a size in `ordering` are fixed: they are neither split nor merged, even if there are then more loops than
    `limit`. The other loops are free, and begin as prime factors. While there are too many loops, the two smallest free
    loops of a dimension are merged. Of the dimensions with at least two free loops, the dimension with the most loops
    is chosen. Raises MappingError if the sizes in `ordering` do not divide the number of iterations of their dimension.
    """
    every = loop_multisets(temporal_sizes, ordering)
    found = next(every)
    target = found.length if limit is None else max(limit, len(temporal_sizes))
    while found.length > target:
        following = next(every, None)
        if following is None:
            break
        found = following
    return found


def loop_multisets(
    temporal_sizes: tuple[tuple[str, int], ...], ordering: tuple[TemporalOrderingEntry, ...] = ()
) -> Iterator[LoopMultiset]:
    """Results of `loop_multiset` for falling limits. The first has no limit; each further result has one loop less.
    Raises MappingError as `loop_multiset` does."""
    whole = _whole_loops(dict(temporal_sizes), ordering)
    free = {
        dimension: prime_factors(size // math.prod(whole.get(dimension, [1]))) for dimension, size in temporal_sizes
    }
    while True:
        counts = Counter((d, f) for d in free for f in (*free[d], *whole.get(d, ())))
        yield LoopMultiset(tuple(sorted(counts.items())))
        mergeable = [d for d in free if len(free[d]) > 1]
        if not mergeable:
            return
        _merge_smallest(free[max(mergeable, key=lambda d: len(free[d]) + len(whole.get(d, ())))])


def _merge_smallest(factors: list[int]) -> None:
    """Replace, in place, the two smallest factors of the sorted list by their product."""
    product = factors.pop(0) * factors.pop(0)
    factors.append(product)
    factors.sort()


def _whole_loops(sizes: dict[str, int], ordering: tuple[TemporalOrderingEntry, ...]) -> dict[str, list[int]]:
    """Loop dimension -> sizes of the loops for which the ordering gives a size. Raises MappingError if the product
    of the sizes does not divide the iterations of the dimension."""
    whole: dict[str, list[int]] = {}
    for entry in ordering:
        if entry.size is not None and entry.dimension != WILDCARD:
            whole.setdefault(entry.dimension, []).append(entry.size)
    for dimension, factors in whole.items():
        size = sizes.get(dimension, 1)
        if size % math.prod(factors):
            raise MappingError(
                f"temporal_ordering has the loops {dimension} {' x '.join(map(str, factors))}, "
                f"whose product does not divide the {size} iterations of {dimension} that the spatial mapping leaves"
            )
    return whole
