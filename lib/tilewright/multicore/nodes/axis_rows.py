"""Pairs of tiles in which one tile produces elements that the other tile needs.

The pairs are computed axis by axis, because the axes of a tensor are cut independently. Therefore the elements that a
consumer needs are a product of index sets, one set for each axis. The elements that a producer makes are also such a
product.

A row is the index set along one axis for one combination of tiles. Along each axis, a join finds the owners of the
indices of every row, which takes little time. The pairs of CNs are the product of these joins.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tilewright.multicore.nodes.grid import DimensionTiles, Integers, LayerGrid, sums, whole_tile
from tilewright.workload.access import AxisIndex, IndexMap, Shape, TensorAccess

NOBODY = -1
"""Placeholder for the owner of an index that no tile makes."""


@dataclass(frozen=True, eq=False)
class AxisOwners:
    """Owners of the indices of an axis. The owner of an index is the tile that makes it.

    A tile is stored as its contribution to the number of a CN: the number of a CN is the sum of the contributions of
    its tiles along all axes. Consecutive indices with the same owner are stored as one run.
    """

    size: int
    """Number of indices of the axis."""
    run_start: Integers
    """First index of the run (one entry for each run)"""
    run_owner: Integers
    """Owner of the run (one entry for each run); NOBODY if no tile makes the indices of the run"""

    @cached_property
    def only(self) -> int | None:
        """Owner of the whole axis; None if the axis has several owners or no indices."""
        return int(self.run_owner[0]) if len(self.run_owner) == 1 else None

    @cached_property
    def of_index(self) -> Integers:
        """Owner of each index of the axis"""
        run_end = np.append(self.run_start[1:], self.size)
        return self.run_owner.repeat(run_end - self.run_start)


def owners_of_indices(owner: Integers) -> AxisOwners:
    """Owners of the indices of an axis. `owner` has the owner of each index. In the result, consecutive indices with
    the same owner are one run.
    """
    is_first = np.ones(len(owner), dtype=bool)
    np.not_equal(owner[1:], owner[:-1], out=is_first[1:])
    run_start = np.flatnonzero(is_first)
    return AxisOwners(len(owner), run_start, owner[run_start])


@dataclass(frozen=True, eq=False)
class AxisJoin:
    """Join of the rows of an axis and the owners of its indices, in CSR format. A row has the indices that one
    combination of tiles needs. The owner of an index is the tile that makes it. A row has one entry (owner, count) for
    each owner of its indices.
    """

    start: Integers
    """Position in `owner` and `count` where the row begins (one entry for each row, and one more at the end)"""
    owner: Integers
    """Owner of the counted indices (one value for each entry). A row has at most one entry for each owner"""
    count: Integers
    """Number of indices that the row needs from the owner (one value for each entry, which is a pair of a row and an
    owner)
    """


class AxisNeeds(NamedTuple):
    """Indices of one axis that each row needs, and the owners of the axis. A row is for one combination of tiles."""

    first: Integers
    """First needed index inside the axis (one entry for each row)"""
    end: Integers
    """Index after the last needed index (one entry for each row)"""
    gapped: tuple[Integers, Integers] | None
    """Arrays (row, index) with one value for each needed index of each row. None if no row has gaps; `first` and `end`
    then suffice.
    """
    owners: AxisOwners


def join_axes(needs: Sequence[AxisNeeds]) -> tuple[AxisJoin, list[int]]:
    """Pair (join, first rows). The join has the rows of all axes in `needs`. The list of first rows has, for each axis,
    the number of its first row in the join.

    Row 0 of the join is neutral: its only entry has owner 0 and count 1. All axes without gaps in their rows are
    concatenated and joined as one axis. All axes with gaps are concatenated and joined as a second axis. The computing
    time therefore depends on the number of rows, not on the number of axes.
    """
    whole = [place for place, need in enumerate(needs) if need.gapped is None]
    gapped = [place for place, need in enumerate(needs) if need.gapped is not None]
    joins = [_ONE]
    if whole:
        joins.append(_join_intervals([needs[place] for place in whole]))
    if gapped:
        joins.append(_join_indices([needs[place] for place in gapped]))
    rows, row = [0] * len(needs), 1
    for place in (*whole, *gapped):
        rows[place] = row
        row += len(needs[place].first)
    start, entries = [np.zeros(1, np.int64)], 0
    for join in joins:
        start.append(join.start[1:] + entries)
        entries += len(join.owner)
    owner, count = np.concatenate([join.owner for join in joins]), np.concatenate([join.count for join in joins])
    return AxisJoin(np.concatenate(start), owner, count), rows


_ONE = AxisJoin(np.array([0, 1]), np.zeros(1, np.int64), np.ones(1, np.int64))


def _join_intervals(needs: Sequence[AxisNeeds]) -> AxisJoin:
    """Join of rows and owners if the needed indices of every row are consecutive. For each row, the join has the owners
    of the needed indices.
    """
    bases, base = [], 0
    for need in needs:
        bases.append(base)
        base += need.owners.size
    shift = np.repeat(np.array(bases), [len(need.first) for need in needs])
    run_shift = np.repeat(np.array(bases), [len(need.owners.run_start) for need in needs])
    first, end = np.concatenate([need.first for need in needs]), np.concatenate([need.end for need in needs])
    run_start = np.concatenate([need.owners.run_start for need in needs]) + run_shift
    run_owner = np.concatenate([need.owners.run_owner for need in needs])
    run_end = np.append(run_start[1:], base)
    first, end, is_filled = first + shift, end + shift, first < end
    from_run = run_end.searchsorted(first, side="right")
    to_run = np.maximum(run_start.searchsorted(end, side="left"), from_run)
    runs = np.where(is_filled, to_run - from_run, 0)
    row = np.arange(len(first)).repeat(runs)
    run = places(from_run, runs)
    count = np.minimum(run_end[run], end[row]) - np.maximum(run_start[run], first[row])
    return _joined(row, run_owner[run], count, len(first))


def _join_indices(needs: Sequence[AxisNeeds]) -> AxisJoin:
    """Join of rows and owners if the needed indices of the rows are listed one by one (`gapped`). An index occurs only
    once in a row. Indices outside the axis are padding and have no owner.
    """
    rows, owners, row_count = [], [], 0
    for need in needs:
        assert need.gapped is not None
        row, index = need.gapped
        inside = (index >= 0) & (index < need.owners.size)
        rows.append(row[inside] + row_count)
        owners.append(need.owners.of_index[index[inside]])
        row_count += len(need.first)
    row = np.concatenate(rows)
    return _joined(row, np.concatenate(owners), np.ones(len(row), np.int64), row_count)


def _joined(row: Integers, owner: Integers, count: Integers, row_count: int) -> AxisJoin:
    """Join of entries (row, owner, count). Entries with the same row and owner become one entry with the sum of their
    counts. The owners of a row are in rising order.
    """
    made = owner != NOBODY
    if not made.all():
        row, owner, count = row[made], owner[made], count[made]
    row, owner, count = added_up(row, owner, count)
    start = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=row_count), out=start[1:])
    return AxisJoin(start, owner, count)


def added_up(first: Integers, second: Integers, count: Integers) -> tuple[Integers, Integers, Integers]:
    """Distinct pairs of numbers, with their counts summed: arrays (first number, second number, sum of counts). The
    pairs are sorted by the first number, then by the second number.
    """
    if not len(first):
        return first, second, count
    pair = first * (int(second.max()) + 1) + second
    if (pair[1:] > pair[:-1]).all():
        return first, second, count
    order = np.argsort(pair, kind="stable")
    pair, first, second, count = pair[order], first[order], second[order], count[order]
    heads = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
    return first[heads], second[heads], np.add.reduceat(count, heads)


def product_of_joins(
    join: AxisJoin, rows: Iterable[Integers], need_count: int, owner: Integers, elements: Integers
) -> tuple[Integers, Integers, Integers]:
    """Pairs of a need and an owner that makes some of the needed elements, as three arrays with one value for each
    pair: (index of the need, owner, number of elements).

    Each array in `rows` belongs to one axis. It has, for each need, the index of a row of `join`. A pair combines one
    entry of this row from each axis. The owner of the pair is the sum of the owners of its entries. Its number of
    elements is the product of their counts.

    The arguments `owner` and `elements` have one value for each need. The sum starts from the value in `owner`, and the
    product from the value in `elements`. These values stand for the axes that are not in `rows`.
    """
    need = np.arange(need_count, dtype=np.int64)
    for row_of_need in rows:
        row = row_of_need[need]
        first, entries = join.start[row], join.start[row + 1] - join.start[row]
        place = places(first, entries)
        need = need.repeat(entries)
        owner = owner.repeat(entries) + join.owner[place]
        elements = elements.repeat(entries) * join.count[place]
        del row_of_need, row, first, entries, place  # before the rows of the next axis are made
    return need, owner, elements


def spread(start: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Entries of the CSR rows in `chosen`, as two arrays with one value for each entry. The value of the first array
    says to which row the entry belongs, as a position in `chosen`. The value of the second array is the index of the
    entry. `start` has the index of the first entry of each row.
    """
    first, entries = start[chosen], start[chosen + 1] - start[chosen]
    return np.arange(len(chosen)).repeat(entries), places(first, entries)


def places(first: Integers, lengths: Integers) -> Integers:
    """Concatenation of ranges, one for each element i of the arguments: first[i], first[i] + 1, ..., first[i] +
    lengths[i] - 1.
    """
    ends: Integers = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + (first - (ends - lengths)).repeat(lengths)


_ONE_ROW = np.zeros(1, np.int64)
_Term = tuple[str, DimensionTiles, int]
"""Loop of an index map: triple (dimension, tiles of the dimension, coefficient of the dimension)."""


@dataclass(frozen=True, eq=False)
class AxisRows:
    """Indices along one axis that a layer reads or writes, with one row for each combination of tiles.

    Only tiles of the dimensions on which the axis depends are combined. Rows are numbered so that the tile of the first
    dimension changes slowest.
    """

    dimensions: tuple[str, ...]
    """Dimensions that have more than one tile, and on which the axis depends."""
    size: int
    """Number of indices of the axis."""
    first: Integers
    """Smallest index, limited to the axis (one entry for each row)"""
    end: Integers
    """Index after the largest index, limited to the axis (one entry for each row)"""
    number: Integers
    """Contribution of the row's tiles to the number of a CN (one entry for each row)"""
    gapped: tuple[Integers, Integers] | None
    """Arrays (row, index) with all indices inside the axis. None if no row has gaps (strides larger than the window);
    `first` and `end` then suffice.
    """
    only: tuple[int, int] | None
    """Pair (first index, index after the last one) if there is only one row and it has no gaps; else None."""
    is_clipped: bool
    """True if some combination of loop values gives an index outside the axis."""
    has_empty_rows: bool
    """True if some row has no index inside the axis."""

    def indices(self) -> tuple[Integers, Integers]:
        """Arrays (row, index) with one entry for each index inside the axis. Each index occurs once in a row."""
        if self.gapped is not None:
            return self.gapped
        lengths = np.maximum(self.end - self.first, 0)
        row = np.repeat(np.arange(len(lengths)), lengths)
        return row, np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + self.first[row]


def access_rows(access: TensorAccess, shape: Shape, index_map: IndexMap, grid: LayerGrid) -> list[AxisRows]:
    """Rows of indices along each axis of the tensor that a layer reads or writes by `access`. A tile is given by its
    position along each cut loop dimension. An axis has one row for each combination of positions along the dimensions
    on which its indices depend; the row has the indices that tiles at these positions use.
    """
    return [_axis_rows(axis, size, index_map, grid) for axis, size in zip(access.axes, shape, strict=True)]


def _axis_rows(axis: AxisIndex, size: int, index_map: IndexMap, grid: LayerGrid) -> AxisRows:
    """Rows along one axis of a tensor that a layer reads or writes, one row for each combination of tile
    positions (`access_rows`)."""
    low = high = axis.offset
    terms: list[_Term] = []
    for name, factor in axis.terms:
        if factor and name in grid.cut_tiles:
            terms.append((name, grid.cut_tiles[name], factor))
        elif factor:
            reach = factor * (index_map.size_of[name] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
            terms.append((name, whole_tile(index_map.size_of[name]), factor))
    has_gaps = not _has_no_gaps(terms)
    cut = [term for term in terms if term[1].count > 1]
    if not cut and not has_gaps:
        return whole_row(low, high + 1, size)
    first, end, number = _ONE_ROW + low, _ONE_ROW + (high + 1), _ONE_ROW
    for _, tiles, factor in cut:
        below, above = (tiles.start, tiles.last) if factor > 0 else (tiles.last, tiles.start)
        first, end, number = sums(first, factor * below), sums(end, factor * above), sums(number, tiles.number)
    gapped = _gapped(first, terms, size) if has_gaps else None
    is_clipped = bool(first.min() < 0 or end.max() > size)
    has_empty_rows = bool(end.min() <= 0 or first.max() >= size)
    first = np.minimum(np.maximum(first, 0), size)
    end = np.maximum(np.minimum(end, size), first)
    only = (int(first[0]), int(end[0])) if len(first) == 1 and gapped is None else None
    dimensions = tuple(name for name, _, _ in cut)
    return AxisRows(dimensions, size, first, end, number, gapped, only, is_clipped, has_empty_rows)


def whole_row(low: int, high: int, size: int) -> AxisRows:
    """Rows of an axis that does not depend on any cut dimension: one row with the indices from `low` to `high` - 1."""
    first = min(max(low, 0), size)
    end = max(min(high, size), first)
    bounds = np.array([[first], [end], [0]])
    is_clipped = low < 0 or high > size
    return AxisRows((), size, bounds[0], bounds[1], bounds[2], None, (first, end), is_clipped, first == end)


def owners_along(rows: AxisRows) -> tuple[AxisOwners, bool]:
    """Pair (owners of the axis, true if several tiles contribute to one index).

    If several tiles add to one element (transposed convolution), the owner is the tile with the highest number, which
    makes the final value.
    """
    first, end = rows.first, rows.end
    are_filled = rows.gapped is None and not rows.has_empty_rows
    if are_filled and np.array_equal(first[1:], end[:-1]):
        return _owners_end_to_end(first, end, rows.number, rows.size), False
    owner = np.full(rows.size, NOBODY, np.int64)
    row, index = rows.indices()
    np.maximum.at(owner, index, rows.number[row])
    return owners_of_indices(owner), len(index) > int((owner != NOBODY).sum())


def _owners_end_to_end(first: Integers, end: Integers, number: Integers, size: int) -> AxisOwners:
    """Owners of an axis on which each tile begins where the previous tile ends."""
    if first[0] > 0:
        first, number = np.append(0, first), np.append(NOBODY, number)
    if end[-1] < size:
        first, number = np.append(first, end[-1]), np.append(number, NOBODY)
    return AxisOwners(size, first, number)


def whole_owners(first: int, end: int, size: int) -> AxisOwners:
    """Owners of an axis that is not cut: a single tile makes the indices from `first` to `end` - 1."""
    owner = np.full(size, NOBODY, np.int64)
    owner[first:end] = 0
    return owners_of_indices(owner)


def shares_loops(access: TensorAccess, index_map: IndexMap) -> bool:
    """True if one loop moves along several axes of a tensor. The layer then accesses fewer elements than the product of
    the numbers of indices along the axes.
    """
    size_of = index_map.size_of
    moving = [name for axis in access.axes for name, factor in axis.terms if factor and size_of[name] > 1]
    return len(moving) > len(set(moving))


def _gapped(first: Integers, terms: Sequence[_Term], size: int) -> tuple[Integers, Integers] | None:
    """Arrays (row, index) with all indices; None if the indices of every row are consecutive. The indices of a row,
    counted from the first index of the row, depend only on the lengths of its tiles.
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
    row, index = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    order = np.lexsort((index, row))
    row, index = row[order], index[order]
    inside = (index >= 0) & (index < size)
    return row[inside], index[inside]


def _row_shapes(tiles: list[DimensionTiles]) -> tuple[list[list[int]], Integers]:
    """Pair (distinct combinations of tile lengths, position of each row's combination in this list). A row has one tile
    of each element of `tiles`; the lengths of these tiles are the combination of the row. Rows are numbered so that the
    tile of the first element changes slowest.
    """
    lengths: list[Integers] = []
    for of_term in tiles:
        outer = len(lengths[0]) if lengths else 1
        lengths = [np.repeat(values, of_term.count) for values in lengths] + [np.tile(of_term.lengths, outer)]
    shapes, shape_of_row = np.unique(np.stack(lengths, axis=1), axis=0, return_inverse=True)
    return shapes.tolist(), shape_of_row.reshape(-1)


def _has_no_gaps(terms: Sequence[_Term]) -> bool:
    """True if the indices of every row are certainly consecutive. The test uses the smallest tiles: if they leave no
    gaps, larger tiles leave none. A result of False is not certain: rows without gaps are possible.
    """
    reach = 1
    for _, tiles, factor in sorted(terms, key=lambda term: abs(term[2])):
        shortest, longest = tiles.shortest_and_longest
        if abs(factor) > reach and longest > 1:
            return False
        reach += abs(factor) * (shortest - 1)
    return True


def _offsets(lengths: list[int], coefficients: list[int]) -> Integers:
    """Distinct distances of the indices from the smallest index, in rising order. An index is a sum of loop values
    multiplied by `coefficients`; `lengths` has the number of values of each loop.
    """
    values = np.zeros(1, np.int64)
    for coefficient, length in sorted(zip(coefficients, lengths, strict=True)):
        values = np.unique(coefficient * np.arange(length, dtype=np.int64)[:, None] + values)
    return values


def row_of_contents(own: tuple[str, ...], dimensions: tuple[str, ...], counts: tuple[int, ...]) -> Integers:
    """Row along one axis for each content, as an array. A content is the set of elements that one combination of tiles
    of `dimensions` needs. `counts` has the number of tiles of each of these dimensions. Only the dimensions in `own`
    cut the axis. Contents with the same tiles along the dimensions in `own` have the same row.

    Contents are numbered so that the tile of the first dimension changes slowest.
    """
    content = np.arange(math.prod(counts), dtype=np.int64)
    row = np.zeros_like(content)
    for dimension in own:
        place = dimensions.index(dimension)
        inner = math.prod(counts[place + 1 :])
        row = row * counts[place] + content // inner % counts[place]
    return row
