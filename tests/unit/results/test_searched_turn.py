"""The factor at which new searches reverse an order, found for functions with a known turning point."""

import math
import random
from collections.abc import Callable

import pytest
from tilewright.results.order_turn import (
    CLOCK,
    MEMORY_ENERGY,
    ChangedRun,
    LinearFigure,
    OrderTurn,
    Turn,
    UncertainNumber,
)
from tilewright.results.searched_turn import (
    MOST_TRIALS,
    SearchedTurn,
    searchable,
    searched_lines,
    searched_object,
    searched_turn,
)

STILL = ChangedRun(LinearFigure(1.0), LinearFigure(1.0))


def number(low: float = 0.1, high: float = 10.0, has_range: bool = False, **changed: object) -> UncertainNumber:
    """A number that can change: the energy of a memory of the first run."""
    given = {"kind": MEMORY_ENERGY, "values": (8.0,), "unit": "pJ/b", "parts": (("dram",), ())} | changed
    return UncertainNumber("energy of dram in A", runs=(STILL, STILL), low=low, high=high, has_range=has_range, **given)  # type: ignore[arg-type]


def order(turn: Turn) -> OrderTurn:
    """An order in which the second run is behind, and `turn` is expected to reverse it."""
    return OrderTurn("EDP", 0, 0.2, turn, None)


class Counted:
    """A difference of two runs that records the factors at which it is computed."""

    def __init__(self, function: Callable[[float], float]) -> None:
        self.function, self.tried = function, list[float]()

    def __call__(self, factor: float) -> float:
        """The difference at a factor."""
        self.tried.append(factor)
        return self.function(factor)


@pytest.mark.parametrize("seed", range(40))
def test_the_factor_turns_the_order_and_nine_tenths_of_the_change_do_not(seed: int) -> None:
    """The found factor reverses the order, and nine tenths of the change do not.

    The differences are concave, convex or bent, fall with the change, and start up to 40 % off.
    """
    draw = random.Random(seed)
    sign, size = draw.choice([1, -1]), math.exp(draw.uniform(math.log(0.01), math.log(1.9)))
    power, bend = draw.choice([0.5, 1.0, 2.0]), draw.uniform(0, 0.5)

    def difference(factor: float) -> float:
        share = max(0.0, sign * math.log(factor)) / size
        return 0.3 * (1 - share**power) - (bend * (share - 1) if share > 1 else 0.0)

    measured = Counted(difference)
    start = Turn(number(), math.exp(sign * size * draw.uniform(0.6, 1.4)))
    found = searched_turn(order(start), start, measured)
    assert found.is_turned
    assert difference(found.factor) < 0 <= difference(found.not_turned or 0.0)
    assert difference(1 + (found.factor - 1) * 0.9) > 0
    assert abs(math.log(found.factor)) / size == pytest.approx(1, rel=0.025)
    assert {found.factor} <= set(measured.tried)
    assert len(measured.tried) <= 12
    assert float(f"{found.factor:.8g}") == found.factor


def test_an_order_that_no_factor_turns() -> None:
    """The sentence gives the difference at the end of the range if no factor of the range reverses the order."""
    start = Turn(number(0.8, 1.25, has_range=True), 0.9)
    found = searched_turn(order(start), start, Counted(lambda factor: 0.1 + factor / 10))
    assert (found.factor, found.is_turned, found.not_turned) == (0.8, False, 0.8)
    assert found.difference == pytest.approx(0.18)
    assert searched_lines((found,))[0] == (
        "searched again, EDP: B is still 18.0% above A with 0.8 times the energy of dram in A (6.4 pJ/b), the end of"
        " its range"
    )


def test_a_difference_without_end_is_given_up() -> None:
    """The search is given up after a fixed number of trials; for a difference that jumps, the factor is beyond the
    jump.
    """
    start = Turn(number(), 1.5)
    jumping = Counted(lambda factor: -1.0 if factor > 2.2345 else 1.0)
    found = searched_turn(order(start), start, jumping)
    assert found.factor == pytest.approx(2.2345, rel=0.03)
    assert found.factor > 2.2345
    assert len(jumping.tried) <= MOST_TRIALS + 1


def test_an_order_that_new_searches_turn_without_a_change() -> None:
    """The sentence names no factor if new searches reverse the order without a change, and says so."""
    start = Turn(number(), 1.5)
    found = searched_turn(order(start), start, lambda _: -0.05)
    assert "without any change, B is already 5.0% below A" in searched_lines((found,))[0]
    assert searched_object(found)["not_turned_at_factor"] is None


def test_sentences() -> None:
    """Each sentence has the factor, the changed value, and the factor that does not reverse the order."""
    found = SearchedTurn("energy", 1, number(), 0.744, -0.001, 0.75)
    line, covers = searched_lines((found,))
    assert line == (
        "searched again, energy: A is below B with at most 0.744 times the energy of dram in A (5.952 pJ/b);"
        " with 0.75 times, A is not below B"
    )
    assert "mappings of A and B were searched" in covers
    assert "no search was needed" in searched_lines(())[0]


def test_a_ratio_of_clocks_is_not_searched() -> None:
    """A ratio of clocks is not searched, because it changes no mapping."""
    ratio = Turn(number(kind=CLOCK, values=()), 1.5)
    assert searchable(order(ratio)) == ()
    assert len(searchable(order(Turn(number(kind=CLOCK), 1.5)))) == 1
