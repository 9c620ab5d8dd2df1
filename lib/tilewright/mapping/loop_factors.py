"""Temporal loop sizes as factors to permute: prime factors, merged down to a limit (zigzag-dse 3.9.1, LOMA)."""

import math
from collections import Counter
from dataclasses import dataclass

from tilewright.errors import MappingError
from tilewright.mapping.constraints import WILDCARD, TemporalOrderingEntry


@dataclass(frozen=True)
class LoopMultiset:
    """The loops to permute: (dimension, factor) sorted by name and factor, each with its multiplicity."""

    loops: tuple[tuple[tuple[str, int], int], ...]

    @property
    def length(self) -> int:
        """Number of loops of an order."""
        return sum(multiplicity for _, multiplicity in self.loops)

    @property
    def order_count(self) -> int:
        """Number of distinct orders."""
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
    """The loops of all orders of `temporal_sizes`, at most `limit` of them unless there are more dimensions.

    A loop that `ordering` gives a size is kept whole. While there are too many, the dimension with most factors merges
    its smallest factor with an equal one, else with the next larger. Raises MappingError when a size of `ordering`
    does not divide what is left of its dimension.
    """
    whole = _whole_loops(dict(temporal_sizes), ordering)
    free = {
        dimension: prime_factors(size // math.prod(whole.get(dimension, [1]))) for dimension, size in temporal_sizes
    }
    if limit is not None:
        target = max(limit, len(temporal_sizes))
        while sum(len(free[d]) + len(whole.get(d, ())) for d in free) > target:
            mergeable = [d for d in free if len(free[d]) > 1]
            if not mergeable:
                break
            _merge_smallest(free[max(mergeable, key=lambda d: len(free[d]) + len(whole.get(d, ())))])
    counts = Counter((d, f) for d in free for f in (*free[d], *whole.get(d, ())))
    return LoopMultiset(tuple(sorted(counts.items())))


def _merge_smallest(factors: list[int]) -> None:
    """Merge, in place, the smallest factor with an equal one if there is one, else with the next larger."""
    product = factors.pop(0) * factors.pop(0)
    factors.append(product)
    factors.sort()


def _whole_loops(sizes: dict[str, int], ordering: tuple[TemporalOrderingEntry, ...]) -> dict[str, list[int]]:
    """Dimension -> loops that the ordering names with a size."""
    whole: dict[str, list[int]] = {}
    for entry in ordering:
        if entry.size is not None and entry.dimension != WILDCARD:
            whole.setdefault(entry.dimension, []).append(entry.size)
    for dimension, factors in whole.items():
        size = sizes.get(dimension, 1)
        if size % math.prod(factors):
            raise MappingError(
                f"temporal_ordering asks for loops {dimension} {' x '.join(map(str, factors))}, "
                f"which do not divide the {size} iterations that the spatial mapping leaves of {dimension}"
            )
    return whole
