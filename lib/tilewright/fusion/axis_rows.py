"""What the tiles of a layer read or write along one axis of a tensor."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tilewright.fusion.alike import Alike
from tilewright.fusion.axis_join import NOBODY, AxisOwners
from tilewright.fusion.grid import DimensionTiles, Integers, LayerGrid, whole_tile
from tilewright.workload.access import IndexMap, Shape, TensorAccess, index_range

_ONE_ROW = np.zeros(1, np.int64)
_Term = tuple[str, DimensionTiles, int]
"""(loop, its tiles, coefficient)"""


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
    only: tuple[int, int] | None
    """(first, end) of the only row; None where there are several, or gaps."""

    @cached_property
    def has_empty_rows(self) -> bool:
        """Whether some row has no index inside the axis."""
        if self.only is not None:
            return self.only[0] >= self.only[1]
        return bool((self.first >= self.end).any())

    def indices(self) -> tuple[Integers, Integers]:
        """(row, index) of all indices inside the axis, each once in a row."""
        if self.gapped is not None:
            return self.gapped
        lengths = np.maximum(self.end - self.first, 0)
        row = np.repeat(np.arange(len(lengths)), lengths)
        return row, np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + self.first[row]


def access_rows(
    access: TensorAccess, shape: Shape, index_map: IndexMap, grid: LayerGrid, alike: Alike
) -> list[AxisRows]:
    """The rows of each axis of a tensor that the layer of a grid reads or writes."""
    found = []
    cut, size_of = grid.cut_tiles, index_map.size_of
    for axis, size in zip(access.axes, shape, strict=True):
        terms = axis.terms
        if len(terms) == 1 and not axis.offset and terms[0][1] == 1 and terms[0][0] not in cut:
            found.append(whole_row(0, min(size_of[terms[0][0]], size), size))
        else:
            found.append(_axis_rows(axis.offset, terms, size, size_of, cut, alike))
    return found


def _axis_rows(
    offset: int,
    indices: tuple[tuple[str, int], ...],
    size: int,
    size_of: Mapping[str, int],
    cut: Mapping[str, DimensionTiles],
    alike: Alike,
) -> AxisRows:
    """The rows of an axis whose index is `offset + sum(factor * loop)` over the (loop, factor) of `indices`."""
    low = high = offset
    terms: list[_Term] = []
    is_cut = False
    for name, factor in indices:
        if not factor:
            continue
        tiles = cut.get(name)
        if tiles is not None:
            is_cut = True
        else:
            tiles = whole_tile(size_of[name])
            reach = factor * (size_of[name] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        terms.append((name, tiles, factor))
    if not is_cut and _has_no_gaps(terms):
        return whole_row(max(low, 0), min(high + 1, size), size)
    return alike.once(_rows_of_tiles, low, high, size, tuple(terms))


def _rows_of_tiles(low: int, high: int, size: int, terms: tuple[_Term, ...]) -> AxisRows:
    """The rows of an axis whose uncut terms reach from `low` to `high`."""
    dimensions = tuple([name for name, tiles, _ in terms if tiles.count > 1])
    first, end, number = np.array([low]), np.array([high + 1]), _ONE_ROW
    for _, tiles, factor in terms:
        if tiles.count == 1:
            continue
        below, above = (tiles.start, tiles.last) if factor > 0 else (tiles.last, tiles.start)
        if factor != 1:
            below, above = factor * below, factor * above
        first, end, number = _sums(first, below), _sums(end, above), _sums(number, tiles.number)
    gapped = None if _has_no_gaps(terms) else _gapped(first, terms, size)
    ascends = min([factor for _, _, factor in terms]) > 0
    if not ascends or first[0] < 0 or end[-1] > size:  # tiles ascend, and so do sums of them
        first = np.minimum(np.maximum(first, 0), size)
        end = np.maximum(np.minimum(end, size), first)
    only = (int(first[0]), int(end[0])) if len(first) == 1 and gapped is None else None
    return AxisRows(dimensions, size, first, end, number, gapped, only)


def _sums(outer: Integers, inner: Integers) -> Integers:
    """All sums, the inner summand fastest."""
    return outer + inner if len(outer) == 1 else (outer[:, None] + inner).ravel()


@lru_cache(maxsize=1024)
def whole_row(first: int, end: int, size: int) -> AxisRows:
    """The one row of an axis that no cut dimension moves along; its arrays are shared, and so not to be written to."""
    first = min(first, size)
    end = max(end, first)
    bounds = np.array([[first], [end], [0]])
    bounds.flags.writeable = False
    return AxisRows((), size, bounds[0], bounds[1], bounds[2], None, (first, end))


def owners_along(rows: AxisRows) -> tuple[AxisOwners, bool]:
    """(number of the tile that ends the making of each index, whether tiles make some index together).

    Where several tiles add to one element (transposed convolution), the last in number has the final value.
    """
    if rows.only is not None:
        return whole_owners(*rows.only, rows.size), False
    owner = np.full(rows.size, NOBODY, np.int64)
    row, index = rows.indices()
    np.maximum.at(owner, index, rows.number[row])
    return AxisOwners(owner), len(index) > int((owner != NOBODY).sum())


@lru_cache(maxsize=1024)
def whole_owners(first: int, end: int, size: int) -> AxisOwners:
    """The owners of an axis of which one tile makes the indices [first, end); shared, and so not to be written to."""
    owner = np.full(size, NOBODY, np.int64)
    owner[first:end] = 0
    owner.flags.writeable = False
    return AxisOwners(owner)


def shares_loops(access: TensorAccess, index_map: IndexMap) -> bool:
    """Whether a loop moves along several axes of a tensor: what is read is then less than the product of the axes."""
    names = [name for axis in access.axes for name, factor in axis.terms if factor and index_map.size_of[name] > 1]
    return len(names) > len(set(names))


def is_cropped(access: TensorAccess, index_map: IndexMap, shape: Shape) -> bool:
    """Whether some loop values write outside of the tensor: what they read is not needed."""
    size_of = index_map.size_of
    for axis, size in zip(access.axes, shape, strict=True):
        low, terms = axis.offset, axis.terms
        if len(terms) == 1 and terms[0][1] == 1:
            high = low + size_of[terms[0][0]] - 1
        else:
            low, high = index_range(axis, size_of)
        if low < 0 or high >= size:
            return True
    return False


def _gapped(first: Integers, terms: Sequence[_Term], size: int) -> tuple[Integers, Integers] | None:
    """(row, index) where the indices of some row are not consecutive; None where all are.

    Rows whose tiles have equal lengths have equal indices but for their first one.
    """
    coefficients = [abs(factor) for _, _, factor in terms]
    shapes, shape_of_row = _row_shapes([tiles for _, tiles, _ in terms])
    offsets_of = [_offsets(shape, coefficients) for shape in shapes]
    if all(len(values) == values[-1] + 1 for values in offsets_of):
        return None
    pairs = []
    for number, values in enumerate(offsets_of):
        rows_of_shape = np.flatnonzero(shape_of_row == number)
        pairs.append((rows_of_shape.repeat(len(values)), (first[rows_of_shape][:, None] + values).ravel()))
    row, index = pairs[0] if len(pairs) == 1 else (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    if len(pairs) > 1:
        order = np.lexsort((index, row))
        row, index = row[order], index[order]
    inside = (index >= 0) & (index < size)
    return row[inside], index[inside]


def _row_shapes(tiles: list[DimensionTiles]) -> tuple[list[list[int]], Integers]:
    """(the distinct lengths of the tiles of a row, [row] which of them it has); the first of `tiles` counts slowest."""
    rows = math.prod([of_term.count for of_term in tiles])
    extremes = [of_term.shortest_and_longest for of_term in tiles]
    if all(shortest == longest for shortest, longest in extremes):
        return [[shortest for shortest, _ in extremes]], np.zeros(rows, np.int64)
    lengths: list[Integers] = []
    for of_term in tiles:
        outer = len(lengths[0]) if lengths else 1
        lengths = [np.repeat(values, of_term.count) for values in lengths] + [np.tile(of_term.lengths, outer)]
    shapes, shape_of_row = np.unique(np.stack(lengths, axis=1), axis=0, return_inverse=True)
    return shapes.tolist(), shape_of_row.reshape(-1)


def _has_no_gaps(terms: Sequence[_Term]) -> bool:
    """Whether the smallest tiles already join the steps of the loops with larger coefficients (so do larger tiles)."""
    if len(terms) == 1:
        return abs(terms[0][2]) == 1 or terms[0][1].shortest_and_longest[1] <= 1
    reach = 1
    for _, tiles, factor in sorted(terms, key=lambda term: abs(term[2])):
        shortest, longest = tiles.shortest_and_longest
        if abs(factor) > reach and longest > 1:
            return False
        reach += abs(factor) * (shortest - 1)
    return True


def _offsets(lengths: list[int], coefficients: list[int]) -> Integers:
    """Distances of the indices from the smallest one, ascending."""
    values = np.zeros(1, np.int64)
    for coefficient, length in sorted(zip(coefficients, lengths, strict=True)):
        if length > 1 and coefficient:
            steps = coefficient * np.arange(length, dtype=np.int64)[:, None]
            reach = int(values[-1])
            if coefficient <= reach + 1 and len(values) == reach + 1:  # without gaps so far, and none added
                values = np.arange(reach + coefficient * (length - 1) + 1, dtype=np.int64)
            elif coefficient > reach:
                values = (steps + values).ravel()
            else:
                values = np.unique(steps + values)
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
