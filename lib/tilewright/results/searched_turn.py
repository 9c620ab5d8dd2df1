"""Order of two runs under a changed number, with the mappings of both runs searched again for each tried value.

Mappings that suit the changed number can move the point at which the order turns.
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
    OrderTurn,
    Turn,
    UncertainNumber,
    outward,
    percent,
    whole_bits,
)

TOLERANCE = 0.02
"""Largest distance, as a share of the change (in logarithms of factors), between the factor that turns the order and
the nearest factor that does not.
"""
MOST_TRIALS = 16
"""Largest number of factors for which the mappings of both runs are searched."""
SEARCHED = (
    "searched again: the mappings of A and B were searched for each factor with the options of the runs; of the number"
    " named above, each line has the smallest factor found to turn the order, and the nearest one found not to"
)

NOTHING_SEARCHED = (
    "searched again: no search was needed, because the lines above name no number that can change a mapping"
)


@dataclass(frozen=True)
class SearchedTurn:
    """Change of one number, and the order of two runs after their mappings were searched again for the changed
    number.
    """

    measure: str
    first: int
    """Index of the run that is first without the change."""
    number: UncertainNumber
    factor: float
    """Factor on the number at which the order is turned. If no tried factor turned the order, the last tried factor."""
    difference: float
    """Value of the second run minus the value of the first run at `factor`, as a share of the value of the first run.
    """
    not_turned: float | None
    """Tried factor nearest to `factor` at which the order is not turned; 1 means no change. None if new searches turn
    the order even without a change.
    """

    @property
    def is_turned(self) -> bool:
        """True if the order is turned at `factor`."""
        return self.difference < 0


def searchable(one: OrderTurn) -> tuple[Turn, ...]:
    """Changes that new searches can confirm or correct. A ratio of clocks is left out, because it changes no
    mapping.
    """
    turns = (one.turn or one.nearest_end, one.bandwidth)
    return tuple(turn for turn in turns if turn and (turn.number.kind != CLOCK or turn.number.values))


def searched_turn(one: OrderTurn, turn: Turn, difference: Callable[[float], float]) -> SearchedTurn:
    """Smallest factor on the number of `turn` that was found to turn the order with new searches, in the direction of
    `turn`.

    `difference` searches both runs with the number multiplied by a factor. It returns the value of the second run minus
    the value of the first run, as a share of the value of the first run. The result is at most TOLERANCE of the change
    beyond a factor that does not turn the order. It can be further away if MOST_TRIALS is reached first.
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
    """Tried factor, with the difference of the runs at this factor."""

    factor: float
    value: float

    @property
    def size(self) -> float:
        """Size of the change, in logarithms of factors."""
        return abs(math.log(self.factor))


def _inside(low: _Tried, high: _Tried, was_turned: Sequence[bool]) -> float:
    """Size of the next change to try, between a change that does not turn the order and one that does.

    It is next to the root of the secant, on the side that was not tried last. If the last two trials were on one side,
    it is the middle.
    """
    root = low.size + (high.size - low.size) * low.value / (low.value - high.value)
    beside = root * (1 - 0.4 * TOLERANCE if was_turned[-1] else 1 + 0.4 * TOLERANCE)
    margin = 0.1 * TOLERANCE * high.size
    has_stalled = len(was_turned) > 1 and was_turned[-1] == was_turned[-2]
    is_inside = low.size + margin <= beside <= high.size - margin
    return beside if is_inside and not has_stalled else (low.size + high.size) / 2


def _further(low: _Tried, now: float) -> float:
    """Size of the next change to try if no tried change turned the order. It lies beyond the root of the secant through
    no change and the last change.
    """
    size, value = low.size, low.value
    root = size * now / (now - value) if value < now else 2 * size
    return min(max(root * (1 + 0.4 * TOLERANCE), 1.05 * size), 2 * size)


def _rounded(factor: float, limit: float, is_outward: bool = True) -> float:
    """Factor rounded away from 1 or towards 1, within the limit. It has as many digits as its distance from 1 needs."""
    digits = 4 + max(0, math.ceil(-math.log10(max(abs(factor - 1), 1e-9))))
    rounded = outward(factor, factor if is_outward else 1 / factor, digits)
    return min(rounded, limit) if limit > 1 else max(rounded, limit)


def searched_lines(found: Sequence[SearchedTurn]) -> tuple[str, ...]:
    """Sentences on the order with new searches, and on the mappings that the searches cover. One sentence if no number
    could be searched.
    """
    return (*map(_line, found), SEARCHED) if found else (NOTHING_SEARCHED,)


def _line(one: SearchedTurn) -> str:
    first, second = NAMES[one.first], NAMES[1 - one.first]
    said, name = f"searched again, {one.measure}:", one.number.name
    if one.not_turned is None:
        return f"{said} without any change {second} is already {percent(-one.difference)} below {first}"
    change = f"{_number(one.factor)} times the {name}{_values(one)}"
    if not one.is_turned:
        ends = "the end of its range" if one.number.has_range else "the largest change considered"
        limit = ends if one.factor in (one.number.low, one.number.high) else "the largest change tried"
        return f"{said} at {change}, {limit}, {second} is still {percent(one.difference)} above {first}"
    not_yet = "without the change" if one.not_turned == 1 else f"at {_number(one.not_turned)} times"
    bound = "at least" if one.factor > 1 else "at most"
    return f"{said} {second} is first with {bound} {change}; not yet {not_yet}"


def _values(one: SearchedTurn) -> str:
    values, unit = one.number.values, one.number.unit
    if values and one.number.kind == BANDWIDTH:
        return f" ({whole_bits(one.number, one.factor):,} {unit})"
    return f" ({' and '.join(f'{value * one.factor:.4g}' for value in values)} {unit})" if values else ""


def _number(factor: float) -> str:
    return f"{factor:.10g}"


def searched_object(one: SearchedTurn) -> JsonObject:
    """Result of new searches under a changed number, as a JSON object."""
    return {
        "measure": one.measure,
        "first": NAMES[one.first],
        "number": one.number.name,
        "factor": one.factor,
        "is_turned": one.is_turned,
        "difference_at_factor": one.difference,
        "not_turned_at_factor": one.not_turned,
    }
