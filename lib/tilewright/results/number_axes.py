"""Number axes with at least two distinct labels, for any range of numbers.

Labels are at powers of ten if the range contains enough of them. Otherwise they are at 1, 2 and 5 times powers of ten,
at other round numbers, or at the ends of the range. Labels have as many digits as are needed to distinguish them.
"""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, Formatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

LEAST_LABELS, MOST_LABELS = 2, 7
LEAST_DIGITS, MOST_DIGITS = 6, 17
_SUBS = ((1.0,), (1.0, 2.0, 5.0))


class NumberLocator(LogLocator):
    """Positions of labels on a logarithmic axis, at least two of them in the visible range."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Label positions between two ends."""
        return places(vmin, vmax, is_log=True)

    def __call__(self) -> Any:
        """Label positions in the visible range."""
        assert self.axis is not None
        low, high = self.axis.get_view_interval()
        return self.tick_values(low, high)


class LinearLocator(MaxNLocator):
    """Positions of labels on a linear axis, at least two of them in the visible range."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Positions of labels between `vmin` and `vmax`."""
        return places(vmin, vmax, is_log=False)

    def __call__(self) -> Any:
        """Label positions in the visible range."""
        assert self.axis is not None
        low, high = self.axis.get_view_interval()
        return self.tick_values(low, high)


class DistinctFormatter(Formatter):
    """Formatter with as many digits as are needed to distinguish all labels."""

    def __init__(self, scale: float = 1.0, unit: str = "") -> None:
        self.scale, self.unit, self.digits = scale, unit, LEAST_DIGITS

    def format_ticks(self, values: Any) -> list[str]:
        """Labels of all tick positions."""
        self.set_locs(values)
        self.digits = digits_of([value / self.scale for value in values])
        return [self(value) for value in values]

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Label of one tick position, with the number of digits of the last call of `format_ticks`."""
        return f"{x / self.scale:.{self.digits}g}{self.unit}"


def digits_of(values: Sequence[float]) -> int:
    """Smallest number of digits (at least LEAST_DIGITS) at which different numbers have different texts."""
    different = set(values)
    for digits in range(LEAST_DIGITS, MOST_DIGITS):
        if len({f"{value:.{digits}g}" for value in different}) == len(different):
            return digits
    return MOST_DIGITS


def places(low: float, high: float, *, is_log: bool) -> list[float]:
    """Positions of labels between `low` and `high`, at least two if `low` and `high` differ."""
    low, high = min(low, high), max(low, high)
    if is_log and low > 0:
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for subs in _SUBS:
            found = [sub * 10.0**one for one in exponents for sub in subs if low <= sub * 10.0**one <= high]
            if len(found) > MOST_LABELS and subs == _SUBS[0]:
                return found[:: -(-len(found) // MOST_LABELS)]
            if LEAST_LABELS < len(found) <= MOST_LABELS or (len(found) == LEAST_LABELS and subs != _SUBS[0]):
                return found
            if len(found) == LEAST_LABELS and high / low > 100:
                return found
    round_places = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=LEAST_LABELS).tick_values(low, high)
    inside = [float(one) for one in round_places if low <= one <= high]
    return inside if len(set(inside)) >= LEAST_LABELS else [low, high]


def number_axis(axis: Axis, *, scale: float = 1.0, unit: str = "") -> None:
    """Set the locator and formatter of an axis; numbers are divided by `scale` and followed by `unit`."""
    is_log = axis.get_scale() == "log"
    axis.set_major_locator(NumberLocator() if is_log else LinearLocator())
    axis.set_major_formatter(DistinctFormatter(scale, unit))
    axis.set_minor_formatter(NullFormatter())


def number_all(figure: Figure) -> None:
    """Apply `number_axis` to each numeric axis that has fewer than two labels, in all panels of a figure."""
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            is_free = not isinstance(axis.get_major_locator(), NullLocator | FixedLocator)
            if is_free and len(labels(axis)) < LEAST_LABELS:
                number_axis(axis)


def labels(axis: Axis) -> set[str]:
    """Distinct texts of the labels in the visible range of an axis."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    locations: Any = axis.get_majorticklocs()
    texts = axis.get_major_formatter().format_ticks(locations)
    minor_locations: Any = axis.get_minorticklocs()
    minor = axis.get_minor_formatter().format_ticks(minor_locations)
    pairs = [*zip(locations, texts, strict=True), *zip(minor_locations, minor, strict=True)]
    return {text for place, text in pairs if text and low - room <= place <= high + room}
