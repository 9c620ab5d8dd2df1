"""Dominance against its definition, for any sizes at which the algorithm divides."""

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base import dominance
from tilewright.base.dominance import dominators, first_dominators, on_front

values = st.integers(0, 4).map(float) | st.floats(0, 1e12, allow_nan=False)
points = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(values, min_size=width, max_size=width), max_size=40)
)


def matrix(rows: list[list[float]]) -> np.ndarray:
    """Return the rows as an array, even without rows."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else 0)


def plainly_dominated(rows: list[list[float]], one: list[float]) -> bool:
    """Return whether a row dominates `one`, by the definition."""
    return any(
        all(a <= b for a, b in zip(other, one, strict=True)) and any(a < b for a, b in zip(other, one, strict=True))
        for other in rows
    )


@given(points)
def test_the_set_is_what_no_row_dominates(rows: list[list[float]]) -> None:
    """A row is in the set exactly if no row dominates it; the named dominators are in the set and complete."""
    array = matrix(rows)
    found = dominators(array)
    assert [bool(others) for others in found] == [plainly_dominated(rows, row) for row in rows]
    for row, others in zip(rows, found, strict=True):
        assert list(others) == sorted(others)
        assert all(plainly_dominated([rows[other]], row) and not found[other] for other in others)
        every = [n for n, other in enumerate(rows) if plainly_dominated([other], row) and not found[n]]
        assert list(others) == every


@given(points, st.randoms())
def test_the_order_of_runs_changes_nothing(rows: list[list[float]], random: Any) -> None:
    """The order of rows does not change the set, and equal rows are in it together."""
    order = list(range(len(rows)))
    random.shuffle(order)
    array = matrix(rows)
    found, shuffled = dominators(array), dominators(array[order])
    assert [bool(found[index]) for index in order] == [bool(others) for others in shuffled]
    verdicts: dict[tuple[float, ...], bool] = {}
    for row, others in zip(rows, found, strict=True):
        assert verdicts.setdefault(tuple(row), bool(others)) == bool(others)


@given(points)
def test_small_and_large_sets_are_alike(rows: list[list[float]]) -> None:
    """The algorithm finds the same front when it divides down to single rows as when it compares all rows."""
    array = matrix(rows)
    with patch.multiple(dominance, FEW_ROWS=1, FEW_POINTS=1):
        front = on_front(array)
        first = first_dominators(array, front)
    found = dominators(array)
    assert front.tolist() == [not others for others in found]
    assert first.tolist() == [others[0] if others else -1 for others in found]


def test_rows_without_columns_are_equal() -> None:
    """Rows without columns do not dominate each other."""
    assert on_front(np.zeros((3, 0))).tolist() == [True, True, True]
    assert on_front(np.zeros((0, 2))).tolist() == []
