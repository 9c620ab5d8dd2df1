"""Which tiles of a producer hold what tiles of a consumer need, axis by axis, and all axes together.

A tensor's axes are cut independently of one another, so what a consumer needs and what a producer makes are both
products over the axes: a join along each axis is small, and the pairs of CNs are the product of the joins.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tilewright.fusion.grid import Integers

NOBODY = -1
"""Owner of the indices that no tile makes."""


@dataclass(frozen=True, eq=False)
class AxisOwners:
    """What tile makes each index of an axis: runs of indices that one tile makes, end to end."""

    size: int
    """Of the axis."""
    run_start: Integers
    """[run] first index"""
    run_owner: Integers
    """[run] what the tile adds to the number of a CN; NOBODY where none makes it"""

    @cached_property
    def only(self) -> int | None:
        """The owner of the whole axis; None where there are several, or no indices."""
        return int(self.run_owner[0]) if len(self.run_owner) == 1 else None

    @cached_property
    def of_index(self) -> Integers:
        """[index] owner"""
        run_end = np.append(self.run_start[1:], self.size)
        return self.run_owner.repeat(run_end - self.run_start)


def owners_of_indices(owner: Integers) -> AxisOwners:
    """Owners given for each index."""
    is_first = np.ones(len(owner), dtype=bool)
    np.not_equal(owner[1:], owner[:-1], out=is_first[1:])
    run_start = np.flatnonzero(is_first)
    return AxisOwners(len(owner), run_start, owner[run_start])


@dataclass(frozen=True, eq=False)
class AxisJoin:
    """For every row of needs along an axis the owners that hold some of it: CSR over rows."""

    start: Integers
    """[row + 1]"""
    owner: Integers
    """[entry] each once in a row"""
    count: Integers
    """[entry] indices that the owner holds of the row's needs"""


class AxisNeeds(NamedTuple):
    """What is needed of one axis by rows, and who makes its indices."""

    first: Integers
    """[row] first index, inside the axis"""
    end: Integers
    """[row] the one after the last"""
    gapped: tuple[Integers, Integers] | None
    """(row, index) of all indices where some row has gaps; else None."""
    owners: AxisOwners


def join_axes(needs: Sequence[AxisNeeds]) -> tuple[AxisJoin, list[int]]:
    """The join of any number of axes, and where the rows of each begin in it; row 0 is one element of owner 0.

    The axes are laid end to end and joined as one, so that the time goes with the rows, not with the axes.
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
    """The join of needs without gaps."""
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
    """The join of needs given as single indices, each once in its row; those outside the axis are padding."""
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
    """Sum the entries of equal row and owner; the owners of a row ascend."""
    made = owner != NOBODY
    if not made.all():
        row, owner, count = row[made], owner[made], count[made]
    row, owner, count = added_up(row, owner, count)
    start = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=row_count), out=start[1:])
    return AxisJoin(start, owner, count)


def added_up(first: Integers, second: Integers, count: Integers) -> tuple[Integers, Integers, Integers]:
    """Pairs of numbers from 0 by the first, then by the second, each once with the sum of its counts."""
    if not len(first):
        return first, second, count
    pair = first * (int(second.max()) + 1) + second
    if (pair[1:] > pair[:-1]).all():
        return first, second, count
    order = np.argsort(pair, kind="stable")
    pair, first, second, count = pair[order], first[order], second[order], count[order]
    heads = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
    if len(heads) == len(pair):
        return first, second, count
    return first[heads], second[heads], np.add.reduceat(count, heads)


def product_of_joins(
    join: AxisJoin, rows: Iterable[Integers], need_count: int, owner: Integers, elements: Integers
) -> tuple[Integers, Integers, Integers]:
    """(need, owner, elements) of all needs; `rows` has one array for each axis: [need] row of the join.

    The owner is the sum of the owners along the axes, the elements are the product of the counts; `owner` and
    `elements`, one for each need or one for all, are those of the axes that are not among the rows.
    """
    need = np.arange(need_count, dtype=np.int64)
    for turn, row_of_need in enumerate(rows):
        row = row_of_need[need] if turn else row_of_need
        first, entries = join.start[row], join.start[row + 1] - join.start[row]
        if (entries == 1).all():
            place = first
        else:
            place = places(first, entries)
            need = need.repeat(entries)
            owner = owner if len(owner) == 1 else owner.repeat(entries)
            elements = elements if len(elements) == 1 else elements.repeat(entries)
        owner = owner + join.owner[place]
        elements = elements * join.count[place]
        del row_of_need, row, first, entries, place  # before the rows of the next axis are made
    if len(owner) != len(need):
        return need, owner.repeat(len(need)), elements.repeat(len(need))
    return need, owner, elements


def spread(start: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """(place in `chosen`, entry) of every entry of the CSR rows `chosen`."""
    first, entries = start[chosen], start[chosen + 1] - start[chosen]
    return np.arange(len(chosen)).repeat(entries), places(first, entries)


def places(first: Integers, lengths: Integers) -> Integers:
    """first, first + 1, ..., first + length - 1 of every row, one after the other."""
    ends: Integers = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + (first - (ends - lengths)).repeat(lengths)
