"""Which tiles of a producer hold what tiles of a consumer need, axis by axis, and all axes together.

A tensor's axes are cut independently of one another, so what a consumer needs and what a producer makes are both
products over the axes: a join along each axis is small, and the pairs of CNs are the product of the joins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.fusion.grid import Integers

NOBODY = -1
"""Owner of the indices that no tile makes."""


@dataclass(frozen=True, eq=False)
class AxisOwners:
    """What tile makes each index of an axis."""

    of_index: Integers
    """[index] what the tile adds to the number of a CN; NOBODY where none makes it"""

    @cached_property
    def only(self) -> int | None:
        """The owner of the whole axis; None where there are several, or no indices."""
        return int(self.of_index[0]) if len(self.run_start) == 1 and len(self.of_index) else None

    @cached_property
    def run_start(self) -> Integers:
        """[run] first index of each run of indices with one owner."""
        return np.append(0, np.flatnonzero(self.of_index[1:] != self.of_index[:-1]) + 1)

    @cached_property
    def run_end(self) -> Integers:
        """[run] index after the last."""
        return np.append(self.run_start[1:], len(self.of_index))

    @cached_property
    def run_owner(self) -> Integers:
        """[run]"""
        return self.of_index[self.run_start[: len(self.of_index)]]

    @cached_property
    def ascend(self) -> bool:
        """Whether each index is made by a tile, and tiles with higher indices have higher numbers."""
        owner = self.run_owner
        return bool(len(owner) and owner[0] != NOBODY and (owner[1:] > owner[:-1]).all())


@dataclass(frozen=True, eq=False)
class AxisJoin:
    """For every row of needs along an axis the owners that hold some of it: CSR over rows."""

    start: Integers
    """[row + 1]"""
    owner: Integers
    """[entry] each once in a row"""
    count: Integers
    """[entry] indices that the owner holds of the row's needs"""

    @cached_property
    def row(self) -> Integers:
        """[entry]"""
        lengths = self.start[1:] - self.start[:-1]
        return np.arange(len(lengths), dtype=np.int64).repeat(lengths)


def join_intervals(first: Integers, end: Integers, owners: AxisOwners) -> AxisJoin:
    """The join of needs [first, end), one a row, inside the axis."""
    if owners.only is not None:
        return _joined_with_one(first, end, owners.only)
    from_run = owners.run_end.searchsorted(first, side="right")
    to_run = np.maximum(owners.run_start.searchsorted(end, side="left"), from_run)
    runs = np.where(first < end, to_run - from_run, 0)
    row = np.arange(len(first)).repeat(runs)
    run = _places(from_run, runs)
    count = np.minimum(owners.run_end[run], end[row]) - np.maximum(owners.run_start[run], first[row])
    if owners.ascend:
        start = np.zeros(len(first) + 1, np.int64)
        runs.cumsum(out=start[1:])
        return AxisJoin(start, owners.run_owner[run], count)
    return _joined(row, owners.run_owner[run], count, len(first))


def join_indices(row: Integers, index: Integers, row_count: int, owners: AxisOwners) -> AxisJoin:
    """The join of needs given as single indices, each once in its row; those outside the axis are padding."""
    inside = (index >= 0) & (index < len(owners.of_index))
    row, index = row[inside], index[inside]
    return _joined(row, owners.of_index[index], np.ones(len(row), np.int64), row_count)


def _joined_with_one(first: Integers, end: Integers, owner: int) -> AxisJoin:
    """The join of needs with an axis that one tile makes, or none."""
    held = (first < end) & (owner != NOBODY)
    start = np.zeros(len(first) + 1, np.int64)
    np.cumsum(held, out=start[1:])
    count = (end - first)[held]
    return AxisJoin(start, np.full(len(count), owner, np.int64), count)


def _joined(row: Integers, owner: Integers, count: Integers, row_count: int) -> AxisJoin:
    """Sum the entries of equal row and owner; the owners of a row ascend."""
    made = owner != NOBODY
    if not made.all():
        row, owner, count = row[made], owner[made], count[made]
    if not ascending(row, owner):
        order = np.lexsort((owner, row))
        row, owner, count = row[order], owner[order], count[order]
        heads = np.flatnonzero(np.append(True, (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])))
        row, owner, count = row[heads], owner[heads], np.add.reduceat(count, heads)
    start = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=row_count), out=start[1:])
    return AxisJoin(start, owner, count)


def ascending(first: Integers, second: Integers) -> bool:
    """Whether pairs rise, each one above the one before."""
    step = first[1:] - first[:-1]
    return bool(((step > 0) | ((step == 0) & (second[1:] > second[:-1]))).all())


def product_of_joins(
    joins: Sequence[tuple[AxisJoin, Integers | None]], need_count: int, owner: int, elements: int
) -> tuple[Integers, Integers, Integers]:
    """(need, owner, elements) of all needs: each need has a row of every join, ([need] row); None: its own number.

    The owner is the sum of the owners along the axes, the elements are the product of the counts; `owner` and
    `elements` are those of the axes that are not among the joins.
    """
    if not joins:
        need = np.arange(need_count, dtype=np.int64)
        return need, np.full(need_count, owner, np.int64), np.full(need_count, elements, np.int64)
    if len(joins) == 1 and joins[0][1] is None:
        join = joins[0][0]
        return join.row, join.owner + owner if owner else join.owner, join.count * elements
    need = np.arange(need_count, dtype=np.int64)
    owners: Integers | int = owner
    counts: Integers | int = elements
    for join, row_of_need in joins:
        row = need if row_of_need is None else row_of_need[need]
        first, entries = join.start[row], join.start[row + 1] - join.start[row]
        if (entries == 1).all():
            place = first
        else:
            place = _places(first, entries)
            need = need.repeat(entries)
            owners = owners if isinstance(owners, int) else owners.repeat(entries)
            counts = counts if isinstance(counts, int) else counts.repeat(entries)
        owners = owners + join.owner[place]
        counts = counts * join.count[place]
    assert not isinstance(owners, int)
    assert not isinstance(counts, int)
    return need, owners, counts


def spread(start: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """(place in `chosen`, entry) of every entry of the CSR rows `chosen`."""
    first, entries = start[chosen], start[chosen + 1] - start[chosen]
    return np.arange(len(chosen)).repeat(entries), _places(first, entries)


def _places(first: Integers, lengths: Integers) -> Integers:
    """first, first + 1, ..., first + length - 1 of every row, one after the other."""
    ends: Integers = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + (first - (ends - lengths)).repeat(lengths)
