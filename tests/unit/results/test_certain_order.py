"""Sentences on the order of two runs: their claims follow from values and bounds."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.results.certain_order import order_notice
from tilewright.results.pareto import RunPoint

A = RunPoint("a", "net", "1", "core", "EDP", "corrected", (), 100.0, 10.0, None, objective_bound=990.0)
B = replace(A, run="b", energy_pj=120.0, objective_bound=1150.0)


def test_a_certain_order() -> None:
    """The order is certain if the bound of the larger run is above the value of the smaller run."""
    text = (
        "EDP: A is 16.7% below B; this order is certain for all mappings that the lower bound of B covers, with these"
        " costs: A is 13.0% below this bound"
    )
    assert order_notice(A, B) == text
    assert order_notice(B, A).startswith("EDP: B is 16.7% below A; this order is certain")


def test_an_order_that_mappings_could_turn() -> None:
    """The sentence says how far mappings could reverse the order if the bound of the larger run is below the smaller
    value.
    """
    assert order_notice(A, replace(B, objective_bound=900.0)) == (
        "EDP: A is 16.7% below B; mappings of B that the search did not find could reverse this order: among the"
        " mappings that the lower bound of B covers, some could have up to 25.0% less EDP"
    )


def test_a_search_without_bounds_is_named() -> None:
    """A missing bound is named for the larger run; for the smaller run it does not matter."""
    assert "gives no lower bound" in order_notice(A, replace(B, objective_bound=None))
    assert "this order is certain" in order_notice(replace(A, objective_bound=None), B)


@pytest.mark.parametrize(
    "other",
    [
        replace(B, objective="latency"),
        replace(B, model="zigzag-3.9.1"),
        replace(B, is_of_several_cores=True),
    ],
)
def test_runs_that_minimise_other_things(other: RunPoint) -> None:
    """Runs that minimise other objectives get no sentence."""
    assert order_notice(A, other) == ""
    assert order_notice(other, A) == ""
    assert order_notice(replace(A, objective="a user's"), replace(B, objective="a user's")) == ""


def test_equal_runs() -> None:
    """Runs that are equal up to rounding are called equal."""
    assert order_notice(A, replace(A, run="b")) == "EDP: A and B are equal"
    assert order_notice(A, replace(A, energy_pj=100.0 * (1 + 1e-12))) == "EDP: A and B are equal"


def test_clocks_that_differ_count() -> None:
    """A run of fewer cycles at a slower clock is slower; energies do not depend on the clock."""
    slow, fast = replace(A, clock_frequency_mhz=100.0), replace(B, clock_frequency_mhz=1000.0)
    assert order_notice(slow, fast).startswith("EDP in seconds: B is 88.0% below A; this order is certain")
    energy = [replace(one, objective="energy", objective_bound=one.energy_pj) for one in (slow, fast)]
    assert order_notice(*energy).startswith("energy: A is 16.7% below B")
    assert order_notice(A, fast).startswith("EDP: A is")


CLOCKS = st.sampled_from([None, 100.0, 250.0, 1000.0])
NUMBERS = st.floats(1, 1e12)


@given(
    st.sampled_from(["energy", "latency", "EDP"]),
    st.tuples(NUMBERS, NUMBERS, st.none() | st.floats(0, 1), CLOCKS),
    st.tuples(NUMBERS, NUMBERS, st.none() | st.floats(0, 1), CLOCKS),
)
def test_what_is_claimed_follows(
    objective: str,
    one: tuple[float, float, float | None, float | None],
    other: tuple[float, float, float | None, float | None],
) -> None:
    """A second, plain computation of values and bounds agrees with each claim."""

    def value(run: tuple[float, float, float | None, float | None], share: float) -> float:
        clocks_differ = None not in (one[3], other[3]) and one[3] != other[3]
        time = run[1] / run[3] / 1e6 if clocks_differ and run[3] else run[1]
        return share * {"energy": run[0], "latency": time, "EDP": run[0] * time}[objective]

    def point(run: tuple[float, float, float | None, float | None]) -> RunPoint:
        whole = {"energy": run[0], "latency": run[1], "EDP": run[0] * run[1]}[objective]
        bound = None if run[2] is None else whole * run[2]
        return replace(
            A,
            objective=objective,
            energy_pj=run[0],
            latency_cycles=run[1],
            objective_bound=bound,
            clock_frequency_mhz=run[3],
        )

    text = order_notice(point(one), point(other))
    first, second = value(one, 1.0), value(other, 1.0)
    if math.isclose(first, second, rel_tol=3e-9):
        return
    less, more = ("A", "B") if first < second else ("B", "A")
    assert re.match(rf"{objective}( in seconds)?: {less} is <?[\d.]+% below {more}", text)
    share = (one if more == "A" else other)[2]
    if share is None:
        assert "gives no lower bound" in text
        return
    bound = value(one if more == "A" else other, share)
    if not math.isclose(bound, min(first, second), rel_tol=3e-9):
        assert ("this order is certain" in text) == (bound > min(first, second))
        assert ("could reverse" in text) == (bound < min(first, second))
