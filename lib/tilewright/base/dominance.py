"""Dominance among points: a dominating point is at least as good in every column, and better in at least one.

Smaller values are better.

The Pareto front is found by divide and conquer (H. T. Kung, F. Luccio and F. P. Preparata, "On finding the maxima of a
set of vectors", J. ACM 22(4), 1975). The time is O(n log^(d-2) n) for n points and d columns: a million points take
seconds.
"""

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
FEW_ROWS, FEW_POINTS = 64, 8
"""Limits below which simple methods are used. Up to FEW_ROWS rows, all pairs of rows are compared. Up to FEW_POINTS
points, each point is compared with all rows."""


def on_front(values: Values) -> npt.NDArray[np.bool_]:
    """Array of shape (rows,): True for each row that no other row dominates.

    Equal rows do not dominate each other, so all rows of an exact tie are on the front. If there are no columns, all
    rows are on the front.
    """
    if not values.size:
        return np.ones(len(values), dtype=np.bool_)
    order = np.lexsort(values.T[::-1])
    ordered = values[order]
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    distinct = ordered[is_new]
    is_kept = np.zeros(len(distinct), dtype=np.bool_)
    is_kept[_front(distinct, 0, len(distinct))] = True
    found = np.empty(len(values), dtype=np.bool_)
    found[order] = is_kept[np.cumsum(is_new) - 1]
    return found


def first_dominators(values: Values, front: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """First dominating row for each row: array of shape (rows,) with the index of the first front row that dominates
    the row. The index is -1 for rows of the front. `front` is the result of `on_front`.
    """
    found = np.full(len(values), -1, dtype=np.int64)
    members = np.flatnonzero(front)
    # A front row that is no larger in any column than a row off the front cannot be equal to it.
    found[~front] = _least(values[members], members.astype(np.float64), values[~front]).astype(np.int64)
    return found


def dominators(values: Values) -> list[tuple[int, ...]]:
    """List with one tuple for each row: the indices, in ascending order, of the front rows that dominate the row. The
    tuple of a front row is ().
    """
    front = on_front(values)
    members = np.flatnonzero(front)
    return [
        () if is_member else tuple(members[(values[members] <= row).all(axis=1)].tolist())
        for row, is_member in zip(values, front.tolist(), strict=True)
    ]


def _front(rows: Values, low: int, high: int) -> npt.NDArray[np.int64]:
    """Indices of the Pareto front among the rows from `low` to `high` - 1. The rows are distinct and in lexicographic
    order. A dominating row therefore comes before the rows that it dominates."""
    if high - low <= FEW_ROWS:
        own = rows[low:high, 1:]
        covers = (own[None] <= own[:, None]).all(axis=2)
        return low + np.flatnonzero(~np.tril(covers, -1).any(axis=1))
    middle = (low + high) // 2
    first, second = _front(rows, low, middle), _front(rows, middle, high)
    if rows.shape[1] == 1:
        return first
    least = _least(rows[first, 1:-1], rows[first, -1], rows[second, 1:-1])
    return np.concatenate([first, second[least > rows[second, -1]]])


def _least(points: Values, weights: Values, rows: Values) -> Values:
    """Smallest weight of the points below each row, as an array of shape (rows,). A point is below a row if it is at
    most as large in every column. Without such a point, the value is infinite. `points` has shape (points, columns),
    and `rows` has shape (rows, columns).
    """
    if not len(points) or not len(rows):
        return np.full(len(rows), np.inf)
    columns = points.shape[1]
    if columns == 0:
        return np.full(len(rows), weights.min())
    if columns == 1:
        order = np.argsort(points[:, 0], kind="stable")
        least = np.minimum.accumulate(weights[order])
        return np.append(np.inf, least)[np.searchsorted(points[order, 0], rows[:, 0], side="right")]
    if len(points) <= FEW_POINTS:
        found = np.full(len(rows), np.inf)
        for point, weight in zip(points, weights.tolist(), strict=True):
            np.minimum(found, weight, out=found, where=(point <= rows).all(axis=1))
        return found
    return _least_of_halves(points, weights, rows)


def _least_of_halves(points: Values, weights: Values, rows: Values) -> Values:
    """Result of `_least`, by divide and conquer. A value of the first column divides points and rows into a low and a
    high half. Rows of the low half are compared only with points of the low half. Rows of the high half are compared
    with all points. Points of the low half are certainly below these rows in the first column, so only the other
    columns are compared.
    """
    heads = points[:, 0]
    bound = np.partition(heads, len(heads) // 2)[len(heads) // 2]
    is_low = heads < bound
    if not is_low.any():
        # At least half of the points have the smallest value.
        is_low = heads <= bound
    is_above = rows[:, 0] >= (bound if is_low.all() else heads[~is_low].min())
    found = np.full(len(rows), np.inf)
    above = rows[is_above]
    if is_low.all():
        found[is_above] = _least(points[:, 1:], weights, above[:, 1:])
        return found
    found[~is_above] = _least(points[is_low], weights[is_low], rows[~is_above])
    of_low = _least(points[is_low, 1:], weights[is_low], above[:, 1:])
    found[is_above] = np.minimum(of_low, _least(points[~is_low], weights[~is_low], above))
    return found
