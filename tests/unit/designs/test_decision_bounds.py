"""Statements after a search with bounds, against the numbers of small artificial spaces."""

import html
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tilewright.designs.answer import answer_of
from tilewright.designs.decision import decision_of
from tilewright.designs.decision_bounds import MappingBounds, bounds_statement, reversed_statements
from tilewright.designs.decision_page import decision_page
from tilewright.designs.decision_text import decision_markdown, decision_text

from tests.unit.designs.conftest import costs, exploration
from tests.unit.designs.decision_cases import with_gaps


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((10.0, 20.0, 16.0), "the order is certain for all mappings that the bounds cover: design-0 is 37.5% below"),
        (
            (10.0, 12.0, 9.0),
            "mappings that were not found could reverse it: design-1 could have up to 10.0% less",
        ),
        ((10.0, 12.0, None), "the search gives no lower bound for some layer on design-1"),
        (
            (10.0, 8.0, 7.0, 9.0),
            "the order is reversed for all mappings that the bounds cover: design-1 has 20.0% less EDP than design-0,"
            " and is 11.1% below the lower bound of design-0",
        ),
        (
            (10.0, 9.99, 7.0, 9.0),
            "the order is open: design-1 has 0.1% less EDP than design-0, but mappings that were not found could give"
            " design-0 up to 9.9% less EDP than design-1",
        ),
        ((10.0, 8.0, 7.0, None), "the search gives no lower bound for some layer on design-0"),
    ],
)
def test_bounds_of_mappings(values: tuple[float | None, ...], said: str) -> None:
    """A bound above the other design's value proves an order, and a bound below leaves the order open."""
    decision = decision_of(answer_of(exploration([costs(5.0, 2.0, 1.0), costs(6.0, 2.0, 1.0)])), "EDP")
    statement = bounds_statement(decision, MappingBounds(*values), [(Path("a"), Path("b"))], "EDP")
    assert said in statement.text
    unit = decision.measure.unit
    found = [decision.measure.text(value) for value in (values[0], values[1], 10.0, 12.0)]
    assert f"design-0 has {found[0]} {unit} ({found[2]} in the space)" in statement.text
    assert f"design-1 has {found[1]} {unit} ({found[3]} in the space)" in statement.text
    assert "not searched again" not in statement.text
    assert statement.commands == ("tilewright compare a b",)
    warnings = reversed_statements(decision, MappingBounds(*values))
    assert len(warnings) == (values[1] < values[0])
    assert all(
        f"design-1 has less EDP than design-0: {found[1]} {unit}, not {found[0]}" in one.text for one in warnings
    )


def test_designs_that_bounds_leave_out() -> None:
    """The text counts the designs not searched again that would beat the choice if they saved most.

    The assumed saving is the largest gap of `explore`, or the larger saving of this search.
    """
    answer = answer_of(exploration([costs(energy, 10.0, 1.0) for energy in (100.0, 105.0, 108.0, 140.0)]))
    for gap, saved, count in ((0.01, 0.2, 1), (0.5, 0.5, 2)):
        decision = with_gaps(answer, [gap, np.nan, np.nan, np.nan])
        text = bounds_statement(decision, MappingBounds(900.0, 840.0, None), [], "EDP").text
        source = (
            "the largest gap that `explore` found on one network" if gap == 0.5 else "the larger saving of this search"
        )
        assert f"2 other designs were not searched again. If it saved {saved:.1%} for them ({source}" in text
        assert f"{count} of them would have less EDP than design-0 after its new search" in text
    again = replace(decision, searched_again={"design-0": 900.0})
    for page in (decision_text(again, ()), decision_markdown(again, ()), decision_page(again, ())):
        assert "After a search with bounds, the EDP in " in html.unescape(page)
