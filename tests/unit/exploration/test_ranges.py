"""Ranges: by factors and by steps, exactly as they are written."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.exploration.ranges import geometric, linear
from tilewright.units import FieldError

WHOLE = st.integers(1, 200)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (geometric(32, 2048, 2), (32, 64, 128, 256, 512, 1024, 2048)),
        (geometric(32, 100, 2), (32, 64)),
        (geometric(4, 14, 1.5), (4.0, 6.0, 9.0, 13.5)),
        (geometric(0.25, 2, 2), (0.25, 0.5, 1.0, 2.0)),
        (geometric(1.0, 4.0, 2.0), (1, 2, 4)),
        (linear(64, 512, 64), (64, 128, 192, 256, 320, 384, 448, 512)),
        (linear(0.1, 0.5, 0.1), (0.1, 0.2, 0.3, 0.4, 0.5)),
        (linear(-2, 2, 2), (-2, 0, 2)),
        (linear(3, 3, 1), (3,)),
        (linear(3, 3.5, 1), (3,)),
    ],
)
def test_values(found: tuple[float, ...], wanted: tuple[float, ...]) -> None:
    """Both ends count; decimal numbers are exact; whole numbers only where all are whole."""
    assert found == wanted
    assert list(map(type, found)) == list(map(type, wanted))


@given(WHOLE, WHOLE, WHOLE)
def test_whole_steps_are_those_of_range(first: int, length: int, step: int) -> None:
    """As Python counts."""
    assert linear(first, first + length, step) == tuple(range(first, first + length + 1, step))


@given(WHOLE, st.integers(0, 10**6), st.sampled_from([1.1, 1.25, 1.5, 2, 3, 10]))
def test_factors_are_never_passed(first: int, more: int, factor: float) -> None:
    """Each value is the factor of the one before, and the next one would be too large."""
    found = geometric(first, first + more, factor)
    assert found[0] == first
    assert all(later / earlier == pytest.approx(factor) for earlier, later in itertools.pairwise(found))
    assert found[-1] <= first + more < found[-1] * factor * (1 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((geometric, 1, 8, 1), "factor must be greater than 1"),
        ((geometric, 1, 8, 0.5), "factor must be greater than 1"),
        ((geometric, 0, 8, 2), "must begin above 0"),
        ((geometric, 8, 4, 2), "the range is empty"),
        ((linear, 1, 8, 0), "step must be greater than 0"),
        ((linear, 8, 1, -1), "step must be greater than 0"),
        ((linear, 8, 1, 1), "the range is empty"),
        ((linear, 0, 1, 1e-9), "too many values"),
    ],
)
def test_what_is_no_range(arguments: tuple[object, ...], said: str) -> None:
    """Each has a reason, at once."""
    make, *numbers = arguments
    with pytest.raises(FieldError) as raised:
        make(*numbers)  # type: ignore[operator]
    assert said in str(raised.value)
