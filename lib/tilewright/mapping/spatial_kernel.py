"""Compiled search for the best spatial mappings.

A spatial mapping combines one unrolling per array dimension.
"""

import numpy as np

from tilewright.base.compiled import kernel, native_function
from tilewright.base.record_pointer import RecordPointer, pointer_to

Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_INTEGER, _FLOAT = np.dtype([("value", np.int64)]), np.dtype([("value", np.float64)])
_ARRAYS = ("factors", "start", "layer_size", "fixed", "best_score", "best_index", "total", "most", "position")
_NUMBERS = ("depth", "dimensions", "slots", "valid")
COMBINATIONS = np.dtype([(name, np.int64) for name in (*_ARRAYS, *_NUMBERS)])
"""NumPy data type for the working data of the search: addresses of arrays in row-major order, then four counts.

`depth` is the number of array dimensions, and `dimensions` is the number of loop dimensions. `slots` is the number of
requested results. `valid` is the number of valid combinations that the search has visited.
"""
integer = RecordPointer(_INTEGER)
floating = RecordPointer(_FLOAT)


def best_combinations(
    factors: Integers, start: Integers, layer_size: Integers, fixed: Integers, count: int
) -> tuple[Floats, Integers, int]:
    """Triple (scores, candidates, number of visited valid combinations) for the `count` best combinations. `scores` has
    shape (count,). `candidates` has shape (count, number of array dimensions), and contains row indices of `factors`.

    A combination has one candidate for each array dimension a: one of the rows start[a] to start[a + 1] - 1 of
    `factors`. The candidate in row n unrolls loop dimension d by `factors` [n, d]. `fixed` [d] is the unrolling of loop
    dimension d on the other array dimensions, which are already decided. A combination is valid if it unrolls no loop
    dimension beyond `layer_size` [d].

    The score is u + (u / w - 1), where u is the product of all factors and w is the largest unrolling of a loop
    dimension. The best combination comes first; combinations with equal scores keep the order of enumeration. If there
    are fewer than `count` valid combinations, the remaining scores are -infinity. If `count` > 0, the search skips most
    combinations that cannot be among the best, and does not count them.
    """
    depth, dimensions = len(start) - 1, len(layer_size)
    arrays = {
        "factors": np.ascontiguousarray(factors, np.int64),
        "start": np.ascontiguousarray(start, np.int64),
        "layer_size": np.ascontiguousarray(layer_size, np.int64),
        "fixed": np.ascontiguousarray(fixed, np.int64),
        "best_score": np.full(count, -np.inf),
        "best_index": np.zeros((count, depth), np.int64),
        "total": np.ones((depth + 1, dimensions), np.int64),
        "most": np.ones(depth + 1, np.float64),
        "position": np.array(start[:-1], np.int64),
    }
    record: np.record = np.zeros(1, COMBINATIONS).view(np.recarray)[0]
    for name, array in arrays.items():
        record[name] = pointer_to(array)
    record["depth"], record["dimensions"], record["slots"] = depth, dimensions, count
    native_function(fill_best_combinations, (COMBINATIONS,))(record, 0)
    return arrays["best_score"], arrays["best_index"], int(record["valid"])


@kernel
def _widest(g, a):
    """Largest product of the factors of a candidate, over all candidates of array dimension a."""
    widest = 1
    for candidate in range(integer(g.start, a).value, integer(g.start, a + 1).value):
        product = 1
        for d in range(g.dimensions):
            product *= integer(g.factors, candidate * g.dimensions + d).value
        widest = max(widest, product)
    return widest


@kernel
def _keep(g, score, filled):
    """Insert the current combination (`position`) into the list of the best combinations, which is sorted by descending
    score. `score` is its score; `filled` is the number of combinations in the list. If the list is full, its last
    combination is dropped.
    """
    i = min(filled, g.slots - 1)
    while i > 0 and floating(g.best_score, i - 1).value < score:
        floating(g.best_score, i).value = floating(g.best_score, i - 1).value
        for a in range(g.depth):
            integer(g.best_index, i * g.depth + a).value = integer(g.best_index, (i - 1) * g.depth + a).value
        i -= 1
    floating(g.best_score, i).value = score
    for a in range(g.depth):
        integer(g.best_index, i * g.depth + a).value = integer(g.position, a).value


@kernel
def fill_best_combinations(g, _count):
    """Search all combinations depth first, one array dimension after the other, and fill `best_score`, `best_index` and
    `valid`.
    """
    for d in range(g.dimensions):
        integer(g.total, d).value = integer(g.fixed, d).value
    for a in range(g.depth - 1, -1, -1):
        floating(g.most, a).value = floating(g.most, a + 1).value * _widest(g, a)
    filled = 0
    valid = 0
    a = 0
    while a >= 0:
        if integer(g.position, a).value == integer(g.start, a + 1).value:
            integer(g.position, a).value = integer(g.start, a).value
            a -= 1
            if a >= 0:
                integer(g.position, a).value += 1
            continue
        units = 1.0
        largest = 1
        fits = True
        for d in range(g.dimensions):
            candidate = integer(g.position, a).value
            product = integer(g.total, a * g.dimensions + d).value
            product *= integer(g.factors, candidate * g.dimensions + d).value
            integer(g.total, (a + 1) * g.dimensions + d).value = product
            units *= product
            largest = max(largest, product)
            fits = fits and product <= integer(g.layer_size, d).value
        if fits and g.slots > 0 and filled == g.slots and a + 1 < g.depth:
            reach = units * floating(g.most, a + 1).value
            fits = reach + (reach / largest - 1) > floating(g.best_score, g.slots - 1).value
        if not fits:
            integer(g.position, a).value += 1
            continue
        if a + 1 < g.depth:
            a += 1
            continue
        valid += 1
        score = units + (units / largest - 1)
        if g.slots > 0 and (filled < g.slots or score > floating(g.best_score, g.slots - 1).value):
            _keep(g, score, filled)
            filled = min(filled + 1, g.slots)
        integer(g.position, a).value += 1
    g.valid = valid
