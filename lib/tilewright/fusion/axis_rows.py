"""What the tiles of a layer read or write along one axis of a tensor."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.fusion.axis_join import NOBODY, AxisJoin, join_indices, join_intervals
from tilewright.fusion.grid import DimensionTiles, Integers, LayerGrid
from tilewright.workload.access import AxisIndex, IndexMap, Shape, TensorAccess

_WHOLE = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class AxisRows:
    """The indices along one axis, for each combination of the tiles of the dimensions that it depends on: a row each.

    The row of a combination counts the first dimension slowest.
    """

    dimensions: tuple[str, ...]
    """Those with more than one tile."""
    size: int
    """Of the axis."""
    first: Integers
    """[row] smallest index, clipped to the axis"""
    end: Integers
    """[row] the one after the largest, clipped to the axis"""
    number: Integers
    """[row] what the tiles add to the number of a CN"""
    gapped: tuple[Integers, Integers] | None
    """(row, index) of all indices where some row has gaps (strides larger than the window), clipped; else None."""

    def indices(self) -> tuple[Integers, Integers]:
        """(row, index) of all indices inside the axis, each once in a row."""
        if self.gapped is not None:
            return self.gapped
        lengths = np.maximum(self.end - self.first, 0)
        row = np.repeat(np.arange(len(lengths)), lengths)
        return row, np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + self.first[row]

    def joined(self, owner_of_index: Integers) -> AxisJoin:
        """The join of these needs with the tiles that make each index of the axis."""
        if self.gapped is None:
            return join_intervals(self.first, self.end, owner_of_index)
        return join_indices(*self.gapped, len(self.first), owner_of_index)


def axis_rows(axis: AxisIndex, size: int, index_map: IndexMap, grid: LayerGrid) -> AxisRows:
    """The rows of one axis of a tensor that the layer of a grid reads or writes."""
    terms = [(_tiles(name, index_map, grid), coefficient) for name, coefficient in axis.terms if coefficient]
    first = np.full(1, axis.offset, np.int64)
    last, number = first, _WHOLE
    lengths: list[Integers] = []
    for tiles, coefficient in terms:
        ends = coefficient * tiles.start, coefficient * (tiles.end - 1)
        lengths = [np.repeat(values, tiles.count) for values in lengths]
        lengths.append(np.tile(tiles.end - tiles.start, len(first)))
        first = (first[:, None] + np.minimum(*ends)).ravel()
        last = (last[:, None] + np.maximum(*ends)).ravel()
        number = (number[:, None] + tiles.number).ravel()
    dimensions = tuple(name for name, factor in axis.terms if factor and _tiles(name, index_map, grid).count > 1)
    pairs = _gapped(first, lengths, [abs(coefficient) for _, coefficient in terms], size)
    clipped_first = np.maximum(first, 0)
    end = np.maximum(np.minimum(last + 1, size), clipped_first)
    return AxisRows(dimensions, size, np.minimum(clipped_first, size), np.minimum(end, size), number, pairs)


def owners_along(rows: AxisRows) -> tuple[Integers, bool]:
    """([index] number of the tile that ends the making of it, NOBODY where none does; whether tiles make it together).

    Where several tiles add to one element (transposed convolution), the last in number has the final value.
    """
    owner = np.full(rows.size, NOBODY, np.int64)
    row, index = rows.indices()
    np.maximum.at(owner, index, rows.number[row])
    return owner, len(index) > int((owner != NOBODY).sum())


def shares_loops(access: TensorAccess, index_map: IndexMap) -> bool:
    """Whether a loop moves along several axes of a tensor: what is read is then less than the product of the axes."""
    names = [name for axis in access.axes for name, factor in axis.terms if factor and index_map.size_of[name] > 1]
    return len(names) > len(set(names))


def is_cropped(access: TensorAccess, index_map: IndexMap, shape: Shape) -> bool:
    """Whether some loop values write outside of the tensor: what they read is not needed."""
    for axis, size in zip(access.axes, shape, strict=True):
        reach = [factor * (index_map.size_of[name] - 1) for name, factor in axis.terms]
        low, high = axis.offset + sum(min(r, 0) for r in reach), axis.offset + sum(max(r, 0) for r in reach)
        if low < 0 or high >= size:
            return True
    return False


def _tiles(name: str, index_map: IndexMap, grid: LayerGrid) -> DimensionTiles:
    if name in grid.tiles:
        return grid.tiles[name]
    return DimensionTiles(_WHOLE, np.full(1, index_map.size_of[name], np.int64), _WHOLE)


def _gapped(
    first: Integers, lengths: list[Integers], coefficients: list[int], size: int
) -> tuple[Integers, Integers] | None:
    """(row, index) where the indices of some row are not consecutive; None where all are.

    Rows whose tiles have equal lengths have equal indices but for their first one.
    """
    if not lengths or _has_no_gaps(lengths, coefficients):
        return None
    shapes, shape_of_row = np.unique(np.stack(lengths, axis=1), axis=0, return_inverse=True)
    offsets = [_offsets(shape.tolist(), coefficients) for shape in shapes]
    if all(len(values) == values[-1] + 1 for values in offsets):
        return None
    pairs = []
    for number, values in enumerate(offsets):
        rows = np.flatnonzero(shape_of_row.reshape(-1) == number)
        pairs.append((np.repeat(rows, len(values)), (first[rows][:, None] + values).ravel()))
    row, index = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    order = np.lexsort((index, row))
    inside = (index[order] >= 0) & (index[order] < size)
    return row[order][inside], index[order][inside]


def _has_no_gaps(lengths: list[Integers], coefficients: list[int]) -> bool:
    """Whether the smallest tiles already join the steps of the loops with larger coefficients (so do larger tiles)."""
    reach = 1
    for place in sorted(range(len(lengths)), key=lambda place: coefficients[place]):
        if coefficients[place] > reach and lengths[place].max() > 1:
            return False
        reach += coefficients[place] * (int(lengths[place].min()) - 1)
    return True


def _offsets(lengths: list[int], coefficients: list[int]) -> Integers:
    """Distances of the indices from the smallest one, ascending."""
    reach = 1
    for coefficient, length in sorted(zip(coefficients, lengths, strict=True)):
        if length > 1 and coefficient > reach:
            break
        reach += coefficient * (length - 1)
    else:
        return np.arange(reach, dtype=np.int64)
    values = np.zeros(1, np.int64)
    for coefficient, length in zip(coefficients, lengths, strict=True):
        values = np.unique(values[:, None] + coefficient * np.arange(length))
    return values


def row_of_contents(rows: AxisRows, dimensions: tuple[str, ...], counts: tuple[int, ...]) -> Integers:
    """[content] row of an axis, where contents are the combinations of the tiles of `dimensions`, the first slowest."""
    content = np.arange(math.prod(counts), dtype=np.int64)
    row = np.zeros(len(content), np.int64)
    for dimension in rows.dimensions:
        place = dimensions.index(dimension)
        inner = math.prod(counts[place + 1 :])
        row = row * counts[place] + content // inner % counts[place]
    return row
