"""Order of two runs under a changed number, after new searches of the mappings of both runs for each value of the
number.

If the mappings are adapted to the changed number, the order can reverse at another value than with unchanged mappings.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilewright.base.json_values import JsonObject
from tilewright.results.order_turn import (
    BANDWIDTH,
    CLOCK,
    NAMES,
    TERM_ENERGY,
    OrderTurn,
    Turn,
    UncertainNumber,
    outward,
    percent,
    whole_bits,
)

TOLERANCE = 0.02
"""Accuracy of the search for the smallest change that reverses the order of two runs. The size of a change by a factor
is |log(factor)|. The search narrows an interval of sizes: the upper end reverses the order, and the lower end does not.
It ends as soon as the interval is at most TOLERANCE x its upper end.
"""
MOST_TRIALS = 16
"""Largest number of factors, besides 1, for which new mappings of both runs are searched."""
SEARCHED = (
    "searched again: for each factor, the mappings of A and B were searched with the options of the runs; each line"
    " has the smallest factor found that reverses the order, and the nearest factor that does not"
)

NOTHING_SEARCHED = (
    "searched again: no search was needed, because the lines above name no number that can change a mapping"
)


@dataclass(frozen=True)
class SearchedTurn:
    """Change of one number, and the order of two runs after new searches of their mappings with the changed number."""

    measure: str
    first: int
    """Index (0 or 1) of the run with the smaller value if neither the number nor the mappings change."""
    number: UncertainNumber
    factor: float
    """Factor by which the number is multiplied: the smallest change that was found to reverse the order. If no tried
    factor reversed the order, it is the last tried factor.
    """
    difference: float
    """Relative difference between the two runs at `factor`: (v2 - v1) / v1. v1 is the value of the run `first`, and v2
    is the value of the other run.
    """
    not_turned: float | None
    """Tried factor at which the order is not reversed; of several such factors, the one nearest to `factor`. 1 means no
    change. None if new searches without a change already reverse the order.
    """

    @property
    def is_turned(self) -> bool:
        """True if the order is reversed at `factor`."""
        return self.difference < 0


def searchable(one: OrderTurn) -> tuple[Turn, ...]:
    """Changes whose effect new searches can check. A ratio of clocks is left out, because no mapping depends on it. The
    energy of a term is left out, because it is not a number of the hardware file.
    """
    turns = (one.turn or one.nearest_end, one.bandwidth)
    return tuple(
        turn
        for turn in turns
        if turn and turn.number.kind != TERM_ENERGY and (turn.number.kind != CLOCK or turn.number.values)
    )


def searched_turn(one: OrderTurn, turn: Turn, difference: Callable[[float], float]) -> SearchedTurn:
    """Result of new searches for the factor closest to 1 that reverses the order of two runs. The factor multiplies the
    number of `turn`. If new searches without a change already reverse the order, the factor is 1. Otherwise, all tried
    factors are on the same side of 1 as the factor of `turn`, and within the limits `low` and `high` of the number.

    `difference` searches mappings of both runs with the number multiplied by a factor. It returns (v2 - v1) / v1. v1 is
    the value of the first run, which is the run with the smaller value before the change (`OrderTurn.first`); v2 is the
    value of the other run.

    The factor has the accuracy TOLERANCE, or a lower accuracy if MOST_TRIALS ends the search.
    """
    sign, limit = (1.0, turn.number.high) if turn.factor > 1 else (-1.0, turn.number.low)
    if (now := difference(1.0)) < 0:
        return SearchedTurn(one.measure, one.first, turn.number, 1.0, now, None)
    low, high, at = _Tried(1.0, now), None, _rounded(turn.factor, limit)
    was_turned: list[bool] = []
    for _ in range(MOST_TRIALS):
        tried = _Tried(at, difference(at))
        was_turned.append(tried.value < 0)
        low, high = (low, tried) if was_turned[-1] else (tried, high)
        if high is None and at == limit:
            break
        if high is not None and high.size - low.size <= TOLERANCE * high.size:
            break
        step = _further(low, now) if high is None else _inside(low, high, was_turned)
        at = _rounded(math.exp(sign * step), limit, is_outward=high is None or not was_turned[-1])
    end = high or low
    return SearchedTurn(one.measure, one.first, turn.number, end.factor, end.value, low.factor)


class _Tried(NamedTuple):
    """Tried factor, with the relative difference between the two runs at this factor: (v2 - v1) / v1. v1 is the value
    of the first run, and v2 is the value of the other run. The first run is the run with the smaller value before the
    change.
    """

    factor: float
    value: float

    @property
    def size(self) -> float:
        """Size of the change: absolute value of the logarithm of the factor."""
        return abs(math.log(self.factor))


def _inside(low: _Tried, high: _Tried, was_turned: Sequence[bool]) -> float:
    """Size of the next change to try, between the sizes of two tried changes: `low`, which does not reverse the order,
    and `high`, which reverses the order. `was_turned` has an entry for each trial: True if the tried change reversed
    the order.

    The secant is the straight line through the differences of the runs at `low` and `high`, as a function of the size
    of the change. If the last tried change reversed the order, the result is slightly below the root of the secant,
    otherwise slightly above it. The result is the middle between the sizes of `low` and `high` in two cases: the last
    two trials had the same outcome, or the size near the root is too close to one of the two sizes.
    """
    root = low.size + (high.size - low.size) * low.value / (low.value - high.value)
    beside = root * (1 - 0.4 * TOLERANCE if was_turned[-1] else 1 + 0.4 * TOLERANCE)
    margin = 0.1 * TOLERANCE * high.size
    has_stalled = len(was_turned) > 1 and was_turned[-1] == was_turned[-2]
    is_inside = low.size + margin <= beside <= high.size - margin
    return beside if is_inside and not has_stalled else (low.size + high.size) / 2


def _further(low: _Tried, now: float) -> float:
    """Size of the next change to try, if no tried change has reversed the order yet. `low` is the last tried change,
    and `now` is the difference of the runs without a change.

    If the difference at `low` is not smaller than `now`, the result is twice the size of `low`. Otherwise, a secant
    decides: the straight line through the differences at no change and at `low`, as a function of the size of the
    change. The result is slightly larger than the root of the secant, but at least 1.05 times and at most twice the
    size of `low`.
    """
    size, value = low.size, low.value
    root = size * now / (now - value) if value < now else 2 * size
    return min(max(root * (1 + 0.4 * TOLERANCE), 1.05 * size), 2 * size)


def _rounded(factor: float, limit: float, is_outward: bool = True) -> float:
    """Factor rounded away from 1 if `is_outward` is true, otherwise towards 1, but not beyond `limit`. Factors close to
    1 keep more digits.
    """
    digits = 4 + max(0, math.ceil(-math.log10(max(abs(factor - 1), 1e-9))))
    rounded = outward(factor, factor if is_outward else 1 / factor, digits)
    return min(rounded, limit) if limit > 1 else max(rounded, limit)


def searched_lines(found: Sequence[SearchedTurn]) -> tuple[str, ...]:
    """Sentences on the order after new searches with changed numbers, then a sentence on the mappings that the searches
    cover. If no number could be searched, the only sentence says so.
    """
    return (*map(_line, found), SEARCHED) if found else (NOTHING_SEARCHED,)


def _line(one: SearchedTurn) -> str:
    first, second = NAMES[one.first], NAMES[1 - one.first]
    said, name = f"searched again, {one.measure}:", one.number.name
    if one.not_turned is None:
        return f"{said} without any change, {second} is already {percent(-one.difference)} below {first}"
    change = f"{_number(one.factor)} times the {name}{_values(one)}"
    if not one.is_turned:
        ends = "the end of its range" if one.number.has_range else "the largest change considered"
        limit = ends if one.factor in (one.number.low, one.number.high) else "the largest change tried"
        return f"{said} {second} is still {percent(one.difference)} above {first} with {change}, {limit}"
    before = "without the change" if one.not_turned == 1 else f"with {_number(one.not_turned)} times"
    bound = "at least" if one.factor > 1 else "at most"
    return f"{said} {second} is below {first} with {bound} {change}; {before}, {second} is not below {first}"


def _values(one: SearchedTurn) -> str:
    values, unit = one.number.values, one.number.unit
    if values and one.number.kind == BANDWIDTH:
        return f" ({whole_bits(one.number, one.factor):,} {unit})"
    return f" ({' and '.join(f'{value * one.factor:.4g}' for value in values)} {unit})" if values else ""


def _number(factor: float) -> str:
    return f"{factor:.10g}"


def searched_object(one: SearchedTurn) -> JsonObject:
    """Outcome of the searches with a changed number (`searched_turn`), as a JSON object."""
    return {
        "measure": one.measure,
        "first": NAMES[one.first],
        "number": one.number.name,
        "factor": one.factor,
        "is_turned": one.is_turned,
        "difference_at_factor": one.difference,
        "not_turned_at_factor": one.not_turned,
    }
