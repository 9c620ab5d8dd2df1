"""Axes of a space that end too early for the best design, and axes that hardly change any design."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pandas

from tilewright.base.errors import count_of
from tilewright.base.measures import AREA_MM2
from tilewright.base.units import FieldError, parse_size_bits
from tilewright.designs.effects import effects, known_measures
from tilewright.designs.front import Front
from tilewright.designs.results import INFEASIBLE, INVALID, value_text

LEAST_GAIN = 0.001
"""Limit for reports on the ends of axes. An end is reported only if a measure is lower there, by at least this share,
than at all other values of the axis.
"""
LARGEST_CHANGE = 0.01
"""Limit of the relative change of a measure along an axis. If no measure changes by more, the text says that the axis
hardly changes any design.
"""
NEXT_VALUES = 2
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(\s*[A-Za-z]\S*)")
"""Number with a unit, such as `64 KiB`."""
Value = Any
AxisValues = Mapping[str, Sequence[Value]]
"""Values of each axis in the space file, including the values of excluded designs."""


@dataclass(frozen=True)
class AxisEnd:
    """End of an axis at which a measure has its least value."""

    axis: str
    value: Value
    """Value at the end: the first or last value in ascending order."""
    is_largest: bool
    measure: str
    before: Value
    """Neighbour of `value` on the axis. Only values of compared designs count as neighbours."""
    gain: float
    """Share by which the least value of the measure falls from `before` to `value`."""
    following: tuple[Value, ...]
    """Values that would continue the axis beyond this end; () if no values are proposed."""
    failed: tuple[Value, ...] = ()
    """Values of the axis beyond `value`, the nearest first. No design with one of them has results."""
    reason: str = ""
    """Reason why the designs with the first value of `failed` have no results; '' if there are no such values."""


@dataclass(frozen=True)
class WeakAxis:
    """Axis along which no measure of a design changes by more than LARGEST_CHANGE."""

    axis: str
    changes: tuple[tuple[str, float], ...]
    """Pairs (measure, largest relative change between two designs that differ only in this axis)."""
    groups: int
    """Number of groups of designs in which this axis has several values. The designs of one group have equal values in
    all other axes.
    """


Failures = Mapping[str, Mapping[Fraction | None, str]]
"""Values of each axis with which no design has results: axis -> number in the value (`_number`) -> reason."""
NO_FAILURES: Failures = {}


def axis_failures(table: pandas.DataFrame, axis_names: Sequence[str]) -> Failures:
    """Values of axes with which all designs are invalid or infeasible on some network, each with the reason that occurs
    most often. `table` has the rows of all evaluated designs.
    """
    is_failed = table["status"].isin([INVALID, INFEASIBLE])
    has_failed = is_failed.groupby(table["index"]).transform("any")
    found: dict[str, dict[Fraction | None, str]] = {}
    for axis in axis_names if bool(is_failed.any()) else ():
        for value, places in table.groupby(axis, sort=False).groups.items():
            if has_failed.loc[places].all():
                rows = table.loc[places][is_failed.loc[places]]
                told = (rows["status"] + ": " + rows["reason"]).value_counts(sort=True).index[0]
                found.setdefault(axis, {})[_number(value)] = str(told)
    return found


def axis_ends(front: Front, values: AxisValues, failures: Failures = NO_FAILURES) -> Iterator[AxisEnd]:
    """Ends of axes at which a measure has its least value, sorted by axis, then by measure. At each of these ends, the
    measure is clearly lower than at all other values of the axis (LEAST_GAIN). A value is also an end if all further
    values are in `failures`.

    The values of the axis must be all numbers, all sizes, or all quantities with the same unit. The area is not one of
    the measures. Nothing is yielded if the table has rows only for the designs on the front.
    """
    for effect in effects(front, tuple(values)):
        ordered = _ordered(values[effect.axis])
        if len(ordered) < 2:
            continue
        row_of = {_number(row["value"]): row for row in effect.table.to_dict("records")}
        places = [place for place, (number, _) in enumerate(ordered) if number in row_of]
        failed = failures.get(effect.axis, {})
        for measure in (one for one in known_measures(front) if one != AREA_MM2):  # least area is at most ends
            best = {place: row_of[ordered[place][0]][f"best_{measure}"] for place in places}
            end = min((value, place) for place, value in best.items())[1]
            if len(places) < 2 or end not in (places[0], places[-1]):
                continue
            is_largest = end == places[-1]
            beyond = ordered[end + 1 :] if is_largest else ordered[:end][::-1]
            if any(number not in failed for number, _ in beyond):
                continue
            beside = places[-2] if is_largest else places[1]
            others = min(best[place] for place in places if place != end)
            if others > 0 and 1 - best[end] / others >= LEAST_GAIN:
                yield AxisEnd(
                    effect.axis,
                    ordered[end][1],
                    is_largest,
                    measure,
                    ordered[beside][1],
                    1 - best[end] / best[beside],
                    () if beyond else _following(ordered if is_largest else ordered[::-1]),
                    tuple(value for _, value in beyond),
                    failed[beyond[0][0]] if beyond else "",
                )


def weak_axes(front: Front, axis_names: Sequence[str]) -> Iterator[WeakAxis]:
    """Axes along which no measure of a compared design changes by more than LARGEST_CHANGE while all other axes are
    fixed.
    """
    if not front.is_whole:
        return
    compared, measures = front.compared, list(known_measures(front))
    for axis in axis_names:
        others = [name for name in axis_names if name != axis]
        grouped = compared.groupby(others, sort=False) if others else compared.groupby(lambda _: 0)
        is_varied = grouped[axis].nunique() > 1
        if not is_varied.any():
            continue
        largest, least = (getattr(grouped[measures], name)()[is_varied] for name in ("max", "min"))
        changes = (largest / least.where(least > 0) - 1).max()
        if not changes.isna().any() and bool((changes <= LARGEST_CHANGE).all()):
            yield WeakAxis(axis, tuple((one, float(changes[one])) for one in measures), int(is_varied.sum()))


def axis_sentences(front: Front, values: AxisValues, failures: Failures = NO_FAILURES) -> tuple[str, ...]:
    """Sentences on the ends of axes, and on axes that hardly change any design."""
    if front.compared.empty:
        return ()
    ends: dict[tuple[str, Value], list[AxisEnd]] = {}
    for end in axis_ends(front, values, failures):
        ends.setdefault((end.axis, end.value), []).append(end)
    weak = (_weak_sentence(front, one) for one in weak_axes(front, tuple(values)))
    return (*(end_sentence(front, one) for one in ends.values()), *weak)


def end_sentence(front: Front, ends: Sequence[AxisEnd]) -> str:
    """Sentence on one end of an axis, with all measures that have their least value there."""
    first = ends[0]
    which = "largest" if first.is_largest else "smallest"
    falls = ", ".join(f"the least {front.measures[one.measure].words} falls by {one.gain:.1%}" for one in ends)
    if first.failed:
        return f"{_failed_words(first, which)}: from {value_text(first.before)} to {value_text(first.value)}, {falls}."
    end = f"from {value_text(first.before)} to {value_text(first.value)}, its {which} value"
    told = f"Axis {first.axis} may end too early: {end}, {falls}."
    further = ", ".join(map(value_text, first.following))
    if not further:
        why = "no larger value continues" if first.is_largest else "no smaller positive value continues"
        return f"{told} No value to try next: {why} the series of its values."
    return f"{told} Values to try next: {further}."


def _failed_words(end: AxisEnd, which: str) -> str:
    """Text on an end of an axis beyond which no design has results. The text names the values beyond this end."""
    failed = ", ".join(map(value_text, end.failed))
    nearest = f" (for {value_text(end.failed[0])}: {end.reason.rstrip('.')})"
    return (
        f"Axis {end.axis}: {value_text(end.value)} is the {which} value with results, because no design with {failed}"
        f" has results{nearest}"
    )


def _weak_sentence(front: Front, weak: WeakAxis) -> str:
    """Sentence on an axis that hardly changes any design."""
    changes = ", ".join(f"{front.measures[measure].words} by at most {change:.2%}" for measure, change in weak.changes)
    return (
        f"Axis {weak.axis} has little effect: between designs that differ only in this axis"
        f" ({count_of(weak.groups, 'group')} of designs compared), it changes {changes}."
    )


def _number(value: Value) -> Fraction | None:
    """Number in a value. A size is converted to bits; any other quantity is taken without its unit. None if the value
    is neither a number nor text with a number and a unit.
    """
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        return Fraction(match[1]) * _unit_factor(value, match[1]) if match else None
    if pandas.api.types.is_bool(value) or not pandas.api.types.is_number(value):
        return None
    return Fraction(str(value.item() if hasattr(value, "item") else value))


def _unit_factor(text: str, number: str) -> Fraction:
    """Number of bits in the unit of a size such as `64 KiB`. `text` is the size, and `number` is its number without the
    unit. 1 if `text` is not a size.
    """
    try:
        return Fraction(parse_size_bits(text)) / Fraction(number)
    except (FieldError, ZeroDivisionError):
        return Fraction(1)


def _ordered(values: Sequence[Value]) -> list[tuple[Fraction, Value]]:
    """Pairs (number, value) in ascending order, with the numbers of `_number`. [] if the values mix numbers, sizes and
    quantities, or have different units.
    """
    numbers = [_number(value) for value in values]
    found = [(number, value) for number, value in zip(numbers, values, strict=True) if number is not None]
    kinds = {isinstance(value, str) for value in values}
    are_sizes = all(isinstance(value, str) and _is_size(value) for value in values)
    units = {match[2] for value in values if isinstance(value, str) and (match := _QUANTITY.fullmatch(value))}
    if len(found) < len(values) or len(kinds) > 1 or (len(units) > 1 and not are_sizes):
        return []
    return sorted(dict(found).items())


def _is_size(text: str) -> bool:
    """True if a text is a size with a unit, such as `64 KiB`."""
    match = _QUANTITY.fullmatch(text)
    return match is not None and (_unit_factor(text, match[1]) != 1 or match[2].strip() == "b")


def _following(ordered: Sequence[tuple[Fraction, Value]]) -> tuple[Value, ...]:
    """Next values of a series, at most NEXT_VALUES. `ordered` has the pairs (number, value) of the series.

    If the series has at least three values and equal steps, the next values continue the series with this step.
    Otherwise, they continue the series with the ratio of its last two values. The result ends before the first number
    that is not positive. If the last value is an integer, the result also ends before the first fraction. If the ratio
    already gives a fraction as the first value, the values continue with the last step instead.
    """
    numbers = [number for number, _ in ordered]
    last, value = ordered[-1]
    steps = {after - before for before, after in pairwise(numbers)}
    by_step = [last + place * (last - numbers[-2]) for place in range(1, NEXT_VALUES + 1)]
    by_ratio = [last * (last / numbers[-2]) ** place for place in range(1, NEXT_VALUES + 1)] if numbers[-2] else []
    is_even = len(steps) == 1 and len(numbers) > 2
    return _values(by_step if is_even else by_ratio, last, value) or _values(by_step, last, value)


def _values(numbers: Sequence[Fraction], last: Fraction, value: Value) -> tuple[Value, ...]:
    """Numbers, written in the form of `value`. They end before the first number that is not positive, or that cannot be
    written in this form. `last` is the number in `value`.
    """
    found: list[Value] = []
    for number in numbers:
        written = _written(number / last, value) if number > 0 and last else None
        if written is None:
            break
        found.append(written)
    return tuple(found)


def _written(ratio: Fraction, value: Value) -> Value | None:
    """Value times `ratio`, in the form of `value`: a number, or text with a unit. None if `value` is an integer and the
    result is not.
    """
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        assert match is not None
        scaled = Fraction(match[1]) * ratio
        return f"{value_text(float(scaled))}{match[2]}"
    scaled = Fraction(str(value)) * ratio
    if isinstance(value, int) or Fraction(str(value)).denominator == 1:
        return int(scaled) if scaled.denominator == 1 else None
    return float(scaled)
