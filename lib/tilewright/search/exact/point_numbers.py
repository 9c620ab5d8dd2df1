"""Numbers of the cost model at lattice points, kept for all searches of one spatial mapping.

A lattice point is a multiset of loops. The cost numbers of a point depend only on the products of its loops, one
product per dimension. A point in a lattice of merged loops therefore has the same cost numbers as the point with these
products in the lattice of the prime factors (docs/proofs/exact-search.md, 2).
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.mapping.temporal import LoopMultiset, prime_factors
from tilewright.search.exact.lattice_record import LATTICE_ROW, MAX_PLACED, NUMBER_FIELDS

MOST_POINTS = 4096
"""Limit of the size of a lattice, in points (multisets of loops). The numbers of the cost model are kept only for
lattices within this limit."""
FEW_POINTS = 96
"""Threshold for the size of a lattice, in points. Up to this size, copying stored numbers is not faster than running
the cost model at every point.
"""
_AT_POINTS = tuple(name for name, _, *shape in NUMBER_FIELDS if shape and shape[0][-1] == LATTICE_ROW)
_ALIKE = ("array_cycles", "output_count", "least_tile_bits")
"""Fields of a search record that have the same value at all lattice points (multisets of loops)."""


def points_of(multiset: LoopMultiset) -> int:
    """Number of lattice points of a multiset of loops."""
    return math.prod(count + 1 for _, count in multiset.loops)


@dataclass(frozen=True)
class PointNumbers:
    """Numbers that the cost model computes for one spatial mapping, at every point of a lattice. The points of the
    lattice are the multisets of prime factors of the temporal loops.
    """

    multiset: LoopMultiset
    """Prime factors of the temporal loops."""
    at_points: dict[str, np.ndarray]
    """Name of a field -> numbers of the field at the lattice points (multisets of loops). The table has the fields of
    `NUMBER_FIELDS` whose last axis is the lattice point. Unused rows and unused points are left out."""
    alike: dict[str, np.ndarray]
    """Name of a field -> value of the field, for the fields that have the same value at all lattice points (multisets
    of loops)."""

    @classmethod
    def of(cls, multiset: LoopMultiset, fields: Mapping[str, np.ndarray], level_count: int) -> "PointNumbers":
        """Copy of the numbers in `fields`, the fields of a search record. This record has the lattice of `multiset`.
        `level_count` is the total number of memory levels of all operands.
        """
        points = points_of(multiset)
        kept = {name: fields[name][..., :points] for name in _AT_POINTS}
        at_points = {name: (field[:level_count] if field.ndim > 1 else field).copy() for name, field in kept.items()}
        return cls(multiset, at_points, {name: fields[name].copy() for name in _ALIKE})

    def write(self, multiset: LoopMultiset, fields: Mapping[str, np.ndarray]) -> None:
        """Write the numbers of the cost model at the lattice points of `multiset` to `fields`, the fields of a search
        record. Each loop of `multiset` must be a product of prime factors of one dimension.
        """
        points = self._points_of(multiset)
        for name, numbers in self.at_points.items():
            target = fields[name]
            if numbers.ndim > 1:
                target = target[: len(numbers)]
            np.take(numbers, points, axis=-1, out=target[..., : len(points)], mode="clip")
        for name, numbers in self.alike.items():
            fields[name][...] = numbers

    def _points_of(self, multiset: LoopMultiset) -> npt.NDArray[np.int64]:
        """Array with one value for each point of the lattice of `multiset`: the index of the corresponding point in the
        lattice of all prime factors. Two points correspond if, in each dimension, the product of their loops is the
        same.
        """
        stride, strides = 1, {}
        for loop, count in reversed(self.multiset.loops):
            strides[loop] = stride
            stride *= count + 1
        points = np.zeros(1, np.int64)
        for (dimension, size), count in multiset.loops:
            step = sum(strides[dimension, prime] * times for prime, times in Counter(prime_factors(size)).items())
            points = (points[:, None] + step * np.arange(count + 1)).ravel()
        return points


@dataclass
class KeptNumbers:
    """Holder of the numbers of one spatial mapping. The first search that needs the numbers computes them and stores
    them here.
    """

    multiset: LoopMultiset
    """Prime factors of the temporal loops."""
    numbers: PointNumbers | None = None
    """Numbers of the cost model at the lattice points of `multiset`; None before the first search that needs these
    numbers.
    """

    def serves(self, multiset: LoopMultiset) -> bool:
        """True if copying the numbers to the lattice of `multiset` takes less time than running the cost model at all
        its points. False if this object keeps no numbers. Numbers are kept only if the lattice of all prime factors has
        at most MOST_POINTS points, and a complete order has at most MAX_PLACED loops.
        """
        is_small = points_of(self.multiset) <= MOST_POINTS and self.multiset.length <= MAX_PLACED
        return is_small and points_of(multiset) > FEW_POINTS
