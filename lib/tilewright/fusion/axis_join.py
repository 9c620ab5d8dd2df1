"""Which tiles of a producer hold what tiles of a consumer need, axis by axis, and all axes together.

A tensor's axes are cut independently of one another, so what a consumer needs and what a producer makes are both
products over the axes: a join along each axis is small, and the pairs of CNs are the product of the joins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.fusion.grid import Integers

NOBODY = -1
"""Owner of the indices that no tile makes."""


@dataclass(frozen=True, eq=False)
class AxisJoin:
    """For every row of needs along an axis the owners that hold some of it: CSR over rows."""

    start: Integers
    """[row + 1]"""
    owner: Integers
    """[entry] each once in a row"""
    count: Integers
    """[entry] indices that the owner holds of the row's needs"""


def join_intervals(first: Integers, end: Integers, owner_of_index: Integers) -> AxisJoin:
    """The join of needs [first, end), one a row, inside the axis; `owner_of_index` is what tile makes each index."""
    changes = np.flatnonzero(owner_of_index[1:] != owner_of_index[:-1]) + 1
    if not len(changes) and len(owner_of_index):
        return _joined_with_one(first, end, int(owner_of_index[0]))
    run_start = np.concatenate((np.zeros(1, np.int64), changes))
    run_end = np.append(changes, len(owner_of_index))
    from_run = np.searchsorted(run_end, first, side="right")
    to_run = np.maximum(np.searchsorted(run_start, end, side="left"), from_run)
    runs = np.where(first < end, to_run - from_run, 0)
    row = np.repeat(np.arange(len(first)), runs)
    run = _places_in_rows(runs) + np.repeat(from_run, runs)
    count = np.minimum(run_end[run], end[row]) - np.maximum(run_start[run], first[row])
    return _joined(row, owner_of_index[run_start[run]], count, len(first))


def join_indices(row: Integers, index: Integers, row_count: int, owner_of_index: Integers) -> AxisJoin:
    """The join of needs given as single indices, each once in its row; those outside the axis are padding."""
    inside = (index >= 0) & (index < len(owner_of_index))
    row, index = row[inside], index[inside]
    return _joined(row, owner_of_index[index], np.ones(len(row), np.int64), row_count)


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
    row, owner, count = row[made], owner[made], count[made]
    order = np.lexsort((owner, row))
    row, owner, count = row[order], owner[order], count[order]
    if len(row):
        heads = np.flatnonzero(np.append(True, (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])))
        row, owner, count = row[heads], owner[heads], np.add.reduceat(count, heads)
    start = np.zeros(row_count + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=row_count), out=start[1:])
    return AxisJoin(start, owner, count)


def product_of_joins(
    joins: Sequence[tuple[AxisJoin, Integers]], need_count: int
) -> tuple[Integers, Integers, Integers]:
    """(need, owner, elements) of all needs: each need has a row of every join, ([need] row).

    The owner is the sum of the owners along the axes, the elements are the product of the counts.
    """
    need = np.arange(need_count, dtype=np.int64)
    owner = np.zeros(need_count, np.int64)
    elements = np.ones(need_count, np.int64)
    for join, row_of_need in joins:
        if len(join.start) == 2 and len(join.owner) == 1:
            # An axis that neither side cuts: the same for all.
            owner, elements = owner + join.owner[0], elements * join.count[0]
            continue
        row = row_of_need[need]
        entries = join.start[row + 1] - join.start[row]
        place = np.repeat(join.start[row], entries) + _places_in_rows(entries)
        if (entries != 1).any():
            need, owner, elements = (np.repeat(values, entries) for values in (need, owner, elements))
        owner = owner + join.owner[place]
        elements = elements * join.count[place]
    return need, owner, elements


def spread(start: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """(place in `chosen`, entry) of every entry of the CSR rows `chosen`."""
    entries = start[chosen + 1] - start[chosen]
    return np.repeat(np.arange(len(chosen)), entries), np.repeat(start[chosen], entries) + _places_in_rows(entries)


def _places_in_rows(lengths: Integers) -> Integers:
    """0, 1, ..., length - 1 for every row, one after the other."""
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    return np.arange(total, dtype=np.int64) - np.repeat(ends - lengths, lengths)
