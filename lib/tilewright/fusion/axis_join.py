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


@dataclass(frozen=True, eq=False)
class AxisJoin:
    """For every row of needs along an axis the owners that hold some of it: CSR over rows."""

    start: Integers
    """[row + 1]"""
    owner: Integers
    """[entry] each once in a row"""
    count: Integers
    """[entry] indices that the owner holds of the row's needs"""


def join_intervals(first: Integers, end: Integers, owners: AxisOwners) -> AxisJoin:
    """The join of needs [first, end), one a row, inside the axis."""
    if owners.only is not None:
        return _joined_with_one(first, end, owners.only)
    from_run = np.searchsorted(owners.run_end, first, side="right")
    to_run = np.maximum(np.searchsorted(owners.run_start, end, side="left"), from_run)
    runs = np.where(first < end, to_run - from_run, 0)
    row = np.repeat(np.arange(len(first)), runs)
    run = _places_in_rows(runs) + np.repeat(from_run, runs)
    count = np.minimum(owners.run_end[run], end[row]) - np.maximum(owners.run_start[run], first[row])
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
    step = np.diff(row)
    if not ((step > 0) | ((step == 0) & (np.diff(owner) > 0))).all():
        order = np.lexsort((owner, row))
        row, owner, count = row[order], owner[order], count[order]
        heads = np.flatnonzero(np.append(True, (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])))
        row, owner, count = row[heads], owner[heads], np.add.reduceat(count, heads)
    start = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=row_count), out=start[1:])
    return AxisJoin(start, owner, count)


def product_of_joins(
    joins: Sequence[tuple[AxisJoin, Integers]], need_count: int, owner: int, elements: int
) -> tuple[Integers, Integers, Integers]:
    """(need, owner, elements) of all needs: each need has a row of every join, ([need] row).

    The owner is the sum of the owners along the axes, the elements are the product of the counts; `owner` and
    `elements` are those of the axes that are not among the joins.
    """
    need = np.arange(need_count, dtype=np.int64)
    owners, counts = np.full(need_count, owner, np.int64), np.full(need_count, elements, np.int64)
    for join, row_of_need in joins:
        row = row_of_need[need]
        first, entries = join.start[row], join.start[row + 1] - join.start[row]
        if (entries == 1).all():
            place = first
        else:
            place = np.repeat(first, entries) + _places_in_rows(entries)
            need, owners, counts = (np.repeat(values, entries) for values in (need, owners, counts))
        owners = owners + join.owner[place]
        counts = counts * join.count[place]
    return need, owners, counts


def spread(start: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """(place in `chosen`, entry) of every entry of the CSR rows `chosen`."""
    entries = start[chosen + 1] - start[chosen]
    return np.repeat(np.arange(len(chosen)), entries), np.repeat(start[chosen], entries) + _places_in_rows(entries)


def _places_in_rows(lengths: Integers) -> Integers:
    """0, 1, ..., length - 1 for every row, one after the other."""
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    return np.arange(total, dtype=np.int64) - np.repeat(ends - lengths, lengths)
