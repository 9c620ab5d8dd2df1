"""What the tiles of a layer read or write along one axis of a tensor."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.fusion.alike import Alike
from tilewright.fusion.axis_join import NOBODY, AxisOwners, owners_of_indices
from tilewright.fusion.grid import DimensionTiles, Integers, LayerGrid, sums, whole_tile
from tilewright.workload.access import IndexMap, Shape, TensorAccess

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
    is_clipped: bool
    """Whether some combination of loop values lies outside the axis."""
    has_empty_rows: bool
    """Whether some row has no index inside the axis."""
    are_tiles: bool = False
    """Whether the rows are the tiles of one dimension, end to end and none empty."""

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
        terms, offset = axis.terms, axis.offset
        if len(terms) == 1 and not offset:
            name, factor = terms[0]
            if factor == 1 and name not in cut:
                found.append(whole_row(0, size_of[name], size))
                continue
        spans = tuple([cut[name] if name in cut else size_of[name] for name, _ in terms])
        found.append(alike.once(_axis_rows, offset, terms, spans, size))
    return found


def _axis_rows(
    offset: int, factors: tuple[tuple[str, int], ...], spans: tuple[DimensionTiles | int, ...], size: int
) -> AxisRows:
    """The rows of an axis whose index is `offset + sum(factor * loop)` over the (loop, factor) of `factors`.

    `spans` are the tiles of these loops, or their sizes where they are not cut.
    """
    low = high = offset
    terms: list[_Term] = []
    is_cut = False
    for (name, factor), span in zip(factors, spans, strict=True):
        if not factor:
            continue
        if isinstance(span, DimensionTiles):
            is_cut = True
            terms.append((name, span, factor))
        else:
            reach = factor * (span - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
            terms.append((name, whole_tile(span), factor))
    if not is_cut and _has_no_gaps(terms):
        return whole_row(low, high + 1, size)
    return _rows_of_tiles(low, high, size, tuple(terms))


def _rows_of_tiles(low: int, high: int, size: int, terms: tuple[_Term, ...]) -> AxisRows:
    """The rows of an axis whose uncut terms reach from `low` to `high`."""
    cut = [term for term in terms if term[1].count > 1]
    dimensions = tuple([name for name, _, _ in cut])
    if not low and not high and len(cut) == 1:
        _, tiles, factor = cut[0]
        if factor == 1 and tiles.end[-1] <= size:
            bounds = tiles.start, tiles.end, tiles.number
            return AxisRows(dimensions, size, *bounds, None, None, False, False, are_tiles=True)
    first, end, number = _ONE_ROW + low, _ONE_ROW + (high + 1), _ONE_ROW
    ascends = True
    for _, tiles, factor in cut:
        ascends &= factor > 0
        below, above = (tiles.start, tiles.last) if factor > 0 else (tiles.last, tiles.start)
        first, end, number = sums(first, factor * below), sums(end, factor * above), sums(number, tiles.number)
    gapped = None if _has_no_gaps(terms) else _gapped(first, terms, size)
    if ascends:  # as tiles do, so do sums of them
        smallest, last, smallest_end, largest = first[0], first[-1], end[0], end[-1]
    else:
        smallest, last, smallest_end, largest = first.min(), first.max(), end.min(), end.max()
    is_clipped = bool(smallest < 0 or largest > size)
    has_empty_rows = bool(smallest_end <= 0 or last >= size)
    if is_clipped:
        first = np.minimum(np.maximum(first, 0), size)
        end = np.maximum(np.minimum(end, size), first)
    only = (int(first[0]), int(end[0])) if len(first) == 1 and gapped is None else None
    return AxisRows(dimensions, size, first, end, number, gapped, only, is_clipped, has_empty_rows)


@lru_cache(maxsize=1024)
def whole_row(low: int, high: int, size: int) -> AxisRows:
    """The one row, from `low` to before `high`, of an axis that no cut dimension moves along.

    Its arrays are shared, and so not to be written to.
    """
    first = min(max(low, 0), size)
    end = max(min(high, size), first)
    bounds = np.array([[first], [end], [0]])
    bounds.flags.writeable = False
    is_clipped = low < 0 or high > size
    return AxisRows((), size, bounds[0], bounds[1], bounds[2], None, (first, end), is_clipped, first == end)


def owners_along(rows: AxisRows) -> tuple[AxisOwners, bool]:
    """(number of the tile that ends the making of each index, whether tiles make some index together).

    Where several tiles add to one element (transposed convolution), the last in number has the final value.
    """
    first, end = rows.first, rows.end
    are_filled = rows.gapped is None and not rows.has_empty_rows
    if rows.are_tiles or (are_filled and np.array_equal(first[1:], end[:-1])):
        return _owners_end_to_end(first, end, rows.number, rows.size), False
    owner = np.full(rows.size, NOBODY, np.int64)
    row, index = rows.indices()
    np.maximum.at(owner, index, rows.number[row])
    return owners_of_indices(owner), len(index) > int((owner != NOBODY).sum())


def _owners_end_to_end(first: Integers, end: Integers, number: Integers, size: int) -> AxisOwners:
    """Owners of an axis where each tile begins where the one before ends."""
    if first[0] > 0:
        first, number = np.append(0, first), np.append(NOBODY, number)
    if end[-1] < size:
        first, number = np.append(first, end[-1]), np.append(number, NOBODY)
    return AxisOwners(size, first, number)


@lru_cache(maxsize=1024)
def whole_owners(first: int, end: int, size: int) -> AxisOwners:
    """The owners of an axis of which one tile makes the indices [first, end); shared, and so not to be written to."""
    owner = np.full(size, NOBODY, np.int64)
    owner[first:end] = 0
    owners = owners_of_indices(owner)
    for values in (owners.run_start, owners.run_owner):
        values.flags.writeable = False
    return owners


def shares_loops(access: TensorAccess, index_map: IndexMap) -> bool:
    """Whether a loop moves along several axes of a tensor: what is read is then less than the product of the axes."""
    names = [name for axis in access.axes for name, _ in axis.terms]
    if len(names) == len(set(names)):
        return False
    size_of = index_map.size_of
    moving = [name for axis in access.axes for name, factor in axis.terms if factor and size_of[name] > 1]
    return len(moving) > len(set(moving))


def _gapped(first: Integers, terms: Sequence[_Term], size: int) -> tuple[Integers, Integers] | None:
    """(row, index) where the indices of some row are not consecutive; None where all are.

    Rows whose tiles have equal lengths have equal indices but for their first one.
    """
    coefficients = [abs(factor) for _, _, factor in terms]
    shapes, shape_of_row = _row_shapes([tiles for _, tiles, _ in terms])
    offsets_of = [_offsets(shape, coefficients) for shape in shapes]
    if all(len(values) == values[-1] + 1 for values in offsets_of):
        return None
    if len(shapes) == 1:
        row = np.arange(len(first)).repeat(len(offsets_of[0]))
        index = (first[:, None] + offsets_of[0]).ravel()
    else:
        pairs = []
        for number, values in enumerate(offsets_of):
            rows_of_shape = np.flatnonzero(shape_of_row == number)
            pairs.append((rows_of_shape.repeat(len(values)), (first[rows_of_shape][:, None] + values).ravel()))
        row, index = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
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
    for _, tiles, factor in sorted(terms, key=_step):
        shortest, longest = tiles.shortest_and_longest
        if abs(factor) > reach and longest > 1:
            return False
        reach += abs(factor) * (shortest - 1)
    return True


def _step(term: _Term) -> int:
    return abs(term[2])


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


def row_of_contents(own: tuple[str, ...], dimensions: tuple[str, ...], counts: tuple[int, ...]) -> Integers:
    """[content] row of an axis that the dimensions `own` cut.

    Contents are the combinations of the tiles of `dimensions`, the first slowest.
    """
    count = math.prod(counts)
    if not own:
        return np.zeros(count, np.int64)
    content = np.arange(count, dtype=np.int64)
    if own == dimensions:
        return content
    row = np.zeros(count, np.int64)
    for dimension in own:
        place = dimensions.index(dimension)
        inner = math.prod(counts[place + 1 :])
        row = row * counts[place] + content // inner % counts[place]
    return row
