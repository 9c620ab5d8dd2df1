"""The values of a range: from 32 to 2048 by a factor of 2, from 64 to 512 in steps of 64."""

from decimal import Decimal

from tilewright.units import FieldError

MOST_VALUES = 10_000
"""Of one range."""


def geometric(first: float, last: float, factor: float) -> tuple[int | float, ...]:
    """first, first x factor, ... up to last; whole numbers where all are whole. Raises FieldError."""
    if factor <= 1:
        raise FieldError("factor must be greater than 1")
    if first <= 0:
        raise FieldError("a range by factors must begin above 0")
    return _range(first, last, factor=_exact(factor))


def linear(first: float, last: float, step: float) -> tuple[int | float, ...]:
    """first, first + step, ... up to last; whole numbers where all are whole. Raises FieldError."""
    if step <= 0:
        raise FieldError("step must be greater than 0")
    return _range(first, last, step=_exact(step))


def _range(
    first: float, last: float, factor: Decimal = Decimal(1), step: Decimal = Decimal(0)
) -> tuple[int | float, ...]:
    """In decimal numbers, as they are written: 0.1, 0.2, 0.3 and the same on every machine."""
    if last < first:
        raise FieldError("`to` is below `from`: the range is empty")
    found = [_exact(first)]
    while (following := found[-1] * factor + step) <= _exact(last):
        found.append(following)
        if len(found) > MOST_VALUES:
            raise FieldError("too many values", f"{MOST_VALUES:,}")
    if all(value == value.to_integral_value() for value in found):
        return tuple(map(int, found))
    return tuple(map(float, found))


def _exact(number: float) -> Decimal:
    return Decimal(str(number))
