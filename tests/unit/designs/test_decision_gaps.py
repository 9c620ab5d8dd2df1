"""Statements on mapping gaps that `explore` found, against the numbers of small artificial spaces."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilewright.designs.answer import answer_of
from tilewright.designs.decision import Decision, decision_of
from tilewright.designs.decision_gaps import latency_statements, unbounded_statements
from tilewright.designs.decision_text import CERTAINTY
from tilewright.designs.front_odds import part_columns
from tilewright.designs.known_gaps import KnownGap, known_gap, needed_gap, within_gap
from tilewright.search.cost_ranges import CostPart
from tilewright.search.options import SearchOptions

from tests.unit.designs.conftest import costs, exploration
from tests.unit.designs.decision_cases import commands_of, texts, with_gaps

SPACE: Any = SimpleNamespace(options=SimpleNamespace(objective="EDP"), is_of_systems=False)
"""The part of a space that the statements on gaps need."""


def gap_text(decision: Decision) -> str:
    """Return the text of the statement on mapping gaps."""
    (statement,) = unbounded_statements(decision, SPACE, commands_of(decision.answer), "EDP")
    return statement.text


@pytest.mark.parametrize("gap", [0.0, 0.04, 0.06, 0.3, 0.6])
def test_gaps_against_the_margin(gap: float) -> None:
    """The order is proven only if the gap is below the margin of the runner-up; other designs within the gap are
    counted."""
    answer = answer_of(exploration([costs(energy, 10.0, 1.0) for energy in (100.0, 105.0, 140.0, 300.0)]))
    decision = with_gaps(answer, [0.01, np.nan, gap, np.nan])
    largest = max(gap, 0.01)
    assert known_gap(decision, "EDP") == KnownGap(largest, 2, is_of_runner_up=False)
    assert known_gap(decision, "latency") is None
    assert needed_gap(decision) == pytest.approx(1 - 100 / 105)
    within = sum(energy * (1 - largest) < 100 for energy in (105, 140, 300))
    assert within_gap(decision, largest) == within
    text = gap_text(decision)
    assert "Better temporal mappings could give design-0 itself at most 1.0% less EDP." in text
    assert (
        f"The gap of design-1 is not known; the largest gap that `explore` found on one network is {largest:.1%}"
        in text
    )
    is_open = largest >= 1 - 100 / 105
    assert (f"with such a gap, {within} of 3 other designs could have less EDP" in text) == is_open
    assert ("would not reverse the order" in text) != is_open


@pytest.mark.parametrize("gap", [0.02, 0.3])
def test_gap_of_the_runner_up_comes_first(gap: float) -> None:
    """The stated gap is that of the runner-up over all networks, even if other designs have larger gaps."""
    rows = [costs(energy, 10.0, 1.0) for energy in (100.0, 50.0, 104.0, 51.0, 300.0, 300.0)]
    decision = with_gaps(answer_of(exploration(rows, ("one", "two"))), [0.1, 0.2, gap, 0.0, 0.9, 0.9])
    found = known_gap(decision, "EDP")
    assert found is not None
    assert found.is_of_runner_up
    assert found.share == pytest.approx(gap * 104 / 155)
    text = gap_text(decision)
    assert "could give design-0 itself at most 10.0% on one, 20.0% on two less EDP." in text
    assert f"Better temporal mappings could give design-1 at most {found.share:.1%} less EDP." in text
    within = sum(energy * 0.1 < 150 for energy in (155, 600))
    explained = (
        f"`explore` uses the largest gap of any design on one network, 90.0%: with that gap, {within} could be better."
    )
    assert (explained in text) == ("not proven" in text)
    assert ("90.0%" in text) == ("not proven" in text)
    assert ("better temporal mappings of design-1 cannot reverse the order" in text) == (gap * 104 < 5)
    assert ("not proven" in text) == (gap * 104 >= 5)


def test_ties_are_told_as_ties() -> None:
    """Tied designs count among those that could be better, and a note explains shares of samples above 1 in total."""
    part = CostPart("", "sram", 1.0, 0.0, 0.5, 2.0)
    rows = [costs(energy, 10.0, 1.0) | part_columns((part,), 10.0) for energy in (5.0, 5.0, 5.0, 9.0)]
    decision = with_gaps(answer_of(exploration(rows)), [0.1, np.nan, np.nan, np.nan])
    text = gap_text(decision)
    assert "design-1 has as little EDP as design-0." in text
    assert "better mappings can break the tie" in text
    assert "2 of 3 other designs, among them the 2 that tie, could have less EDP than design-0" in text
    assert "less than 0.1%" not in text
    assert "design-1 in 100.0% (a tie counts for both)." in texts(decision, CERTAINTY)[0]


@pytest.mark.parametrize(("objective", "is_said"), [("EDP", True), ("latency", True), ("energy", False)])
def test_latencies_without_error_bars(objective: str, is_said: bool) -> None:
    """A decision on latency says that it has no error bars and names the option for them.
    Designs of several cores have no such statement, because their errors are not measured.
    """
    decision = decision_of(answer_of(exploration([costs(energy, 10.0, 1.0) for energy in (100.0, 105.0)])), objective)
    space: Any = SimpleNamespace(options=SearchOptions(model="corrected"), is_of_systems=False, design=None)
    space = type("Space", (SimpleNamespace,), {"__len__": lambda self: 0})(**vars(space))
    assert ["--error-bars CLASS" in one.text for one in latency_statements(decision, space)] == [True] * is_said
    space.is_of_systems = True
    assert not [*latency_statements(decision, space)]
