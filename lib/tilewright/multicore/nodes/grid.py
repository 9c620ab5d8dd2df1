"""Regular grid of a layer's computation nodes (CNs).

Ranges, numbers and groups are computed from the grid, not stored for each CN.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from tilewright.multicore.nodes.tiling import LayerTiling, OuterLoop

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DimensionTiles:
    """Tiles of one loop dimension, in the order of their ranges. The range of tile t is [start[t], end[t])."""

    start: Integers
    end: Integers
    number: Integers
    """Contribution of the tile to the number of a CN in the full grid (one entry for each tile). The number of the CN
    is the sum of these contributions over all dimensions.
    """

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.start)

    @cached_property
    def lengths(self) -> Integers:
        """Length of each tile's range."""
        return self.end - self.start

    @cached_property
    def last(self) -> Integers:
        """Last value of each tile's range."""
        return self.end - 1

    @cached_property
    def shortest_and_longest(self) -> tuple[int, int]:
        """Smallest and largest length of a tile."""
        lengths = self.lengths.tolist()
        return min(lengths), max(lengths)


@lru_cache(maxsize=1024)
def whole_tile(size: int) -> DimensionTiles:
    """Single tile of a dimension that is not cut. Callers share its arrays and must not change them."""
    return DimensionTiles(np.zeros(1, np.int64), np.full(1, size, np.int64), np.zeros(1, np.int64))


def sums(outer: Integers, inner: Integers) -> Integers:
    """Sum of each element of `outer` and each element of `inner`. The element of `inner` changes fastest."""
    return (outer[:, None] + inner).ravel()


Cuts = tuple[tuple[int, int, int], ...]
"""Triples (number of tiles, tile size, stride) of the outer loops over one dimension, innermost first. The stride is
the amount by which one step of the loop increases the number of a CN in the full grid.
"""


def cut_dimension(size: int, cuts: Cuts) -> tuple[DimensionTiles, Integers | None]:
    """Pair (tiles that are not empty, ranks). Each combination of values of the outer loops over the dimension gives
    one tile, which can be empty.

    `ranks` has, for each combination, the position of its tile among the tiles that are not empty. If no tile is empty,
    `ranks` is None, because each position is then equal to the number of the combination.
    """
    *inner, (count, tile_size, stride) = cuts
    values = np.arange(count, dtype=np.int64)
    start, number = tile_size * values, stride * values
    end = np.minimum(start + tile_size, size)
    for count, tile_size, stride in reversed(inner):
        values = np.arange(count, dtype=np.int64)
        start, number = sums(start, tile_size * values), sums(number, stride * values)
        end = np.minimum(start + tile_size, end.repeat(count))
    filled = start < end
    if filled.all():
        return DimensionTiles(start, end, number), None
    return DimensionTiles(start[filled], end[filled], number[filled]), np.cumsum(filled) - 1


@dataclass(frozen=True, eq=False)
class LayerGrid:
    """Grid of all CNs of a layer.

    The full grid has one number for each combination of values of the outer loops: `sum(value * stride)`, with stride 1
    for loop 0. If several loops cut a dimension and their tiles do not divide its size, some combinations are empty.
    Empty combinations get no CN; the other CNs keep their order.
    """

    loop_sizes: tuple[tuple[str, int], ...]
    tiling: LayerTiling

    @property
    def loops(self) -> tuple[OuterLoop, ...]:
        """Outer loops, innermost first."""
        return self.tiling.loops

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Stride of each outer loop: the difference of the CN numbers in the full grid for one step of the loop."""
        counts = [loop.count for loop in self.loops]
        return tuple([math.prod(counts[:place]) for place in range(len(counts))])

    @cached_property
    def tiles(self) -> Mapping[str, DimensionTiles]:
        """Tiles of each loop dimension. A dimension that is not cut has a single tile."""
        return {dimension: tiles for dimension, (tiles, _) in self._tiles_and_ranks.items()}

    @cached_property
    def _tiles_and_ranks(self) -> Mapping[str, tuple[DimensionTiles, Integers | None]]:
        cuts: dict[str, Cuts] = {}
        for loop, stride in zip(self.loops, self.strides, strict=True):
            cuts[loop.dimension] = (*cuts.get(loop.dimension, ()), (loop.count, loop.tile_size, stride))
        return {
            dimension: cut_dimension(size, cuts[dimension]) if dimension in cuts else (whole_tile(size), None)
            for dimension, size in self.loop_sizes
        }

    @cached_property
    def cut_tiles(self) -> Mapping[str, DimensionTiles]:
        """Tiles of each dimension that has more than one tile, in the dimension order of the layer."""
        return {dimension: tiles for dimension, tiles in self.tiles.items() if tiles.count > 1}

    @property
    def tiled_dimensions(self) -> tuple[str, ...]:
        """Dimensions that have more than one tile, in the dimension order of the layer."""
        return tuple(self.cut_tiles)

    @cached_property
    def full_numbers(self) -> Integers | None:
        """Number of each CN in the full grid. The result is None if every combination of loop values has a CN: the
        number of a CN is then also its number in the full grid.
        """
        if math.prod([loop.count for loop in self.loops]) == self.cn_count:
            return None
        numbers = np.zeros(1, np.int64)
        for tiles in self.cut_tiles.values():
            numbers = sums(numbers, tiles.number)
        return np.sort(numbers)

    @cached_property
    def cn_count(self) -> int:
        """Number of CNs."""
        return math.prod([tiles.count for tiles in self.cut_tiles.values()])

    def cn_of(self, full_number: Integers) -> Integers:
        """CNs with the numbers `full_number` in the full grid."""
        return full_number if self.full_numbers is None else np.searchsorted(self.full_numbers, full_number)

    def _sum_over_loops(self, weights: Sequence[int]) -> Integers:
        """Weighted sum of the loop values of each CN, with one weight for each outer loop."""
        total = np.zeros(1, np.int64)
        for loop, weight in zip(reversed(self.loops), reversed(weights), strict=True):
            total = sums(total, np.arange(loop.count, dtype=np.int64) * weight)
        return total if self.full_numbers is None else total[self.full_numbers]

    def tile_of(self, dimension: str) -> Integers:
        """Tile of each CN along a dimension, as the index of this tile in `tiles[dimension]`."""
        weights = []
        scale = 1
        for loop in self.loops:
            is_own = loop.dimension == dimension
            weights.append(scale if is_own else 0)
            scale *= loop.count if is_own else 1
        position = self._sum_over_loops(weights)
        rank = self._tiles_and_ranks[dimension][1]
        return position if rank is None else rank[position]

    def combination_of(self, dimensions: Sequence[str]) -> tuple[Integers, tuple[int, ...]]:
        """Pair (combination number of each CN, number of tiles along each of `dimensions`). A combination is one tile
        along each of `dimensions`. Combinations are numbered so that the tile of the first dimension changes slowest.
        """
        combination = np.zeros(self.cn_count, np.int64)
        for dimension in dimensions:
            combination *= self.tiles[dimension].count
            if self.tiles[dimension].count > 1:
                combination += self.tile_of(dimension)
        return combination, tuple(self.tiles[dimension].count for dimension in dimensions)

    def ranges(self, dimension: str) -> tuple[Integers, Integers]:
        """Range of each CN along a dimension, as a pair of arrays: first value, and value after the last one."""
        tiles = self.tiles[dimension]
        tile = self.tile_of(dimension)
        return tiles.start[tile], tiles.end[tile]

    @cached_property
    def groups(self) -> Integers:
        """Group of the CN (one entry for each CN). Groups are numbered by the values of the group loops; the value of
        the first loop changes fastest.
        """
        weights = [0] * len(self.loops)
        scale = 1
        for place in self.tiling.group_loops:
            weights[place] = scale
            scale *= self.loops[place].count
        return self._sum_over_loops(weights)
