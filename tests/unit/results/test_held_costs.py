"""Texts on energy without a range: they follow from the numbers of a summary or of runs."""

from typing import Any

import pytest
from tilewright.results.held_costs import held_text
from tilewright.results.run_text import range_lines
from tilewright.results.two_runs import less_energy_text
from tilewright.results.uncertainty import UncertainRun
from tilewright.search.cost_ranges import CostPart


def part(law: str, energy_pj: float) -> dict[str, Any]:
    """Part of an energy with a range, as in a summary."""
    return CostPart(law, law, energy_pj, 0.0, 0.5, 2.0)._asdict()


def summary(parts: list[dict[str, Any]], **energies: float) -> dict[str, Any]:
    """Fields of the summary of a core with an energy of 10 pJ."""
    ranges = {"energy_pj": [8.0, 14.0], "area_mm2": None, "parts": parts}
    return {"energy_pj": 10.0, "cost_ranges": ranges, **{f"{term}_energy_pj": pj for term, pj in energies.items()}}


def test_the_line_of_a_run_names_what_is_held_constant() -> None:
    """The line of a run names the parts without a range, the largest first; memories without a range are one part."""
    found = summary([part("sram 28 nm hp", 1.0), part("dram x", 2.0)], mac=0.5, memory=4.5, leakage=5.0)
    _, line = range_lines(found)
    assert line == (
        "costs with a range: sram 28 nm hp (0.5 to 2 times the cost used), dram x (0.5 to 2 times the cost used), 30.0%"
        " of the energy; without a range, and held constant: leakage 50.0%, memories without a range 15.0%, MAC 5.0%"
    )
    _, whole = range_lines(summary([part("dram x", 10.0)], memory=10.0))
    assert whole == "costs with a range: dram x (0.5 to 2 times the cost used), 100.0% of the energy"


def test_the_line_of_several_cores() -> None:
    """The line of several cores names arrays and static power; links count with the memories."""
    energy = {"on_core_operational_pj": 2.0, "on_core_terms_pj": {"leakage": 1.0}, "terms_pj": {"leakage": 3.0}}
    _, line = range_lines(summary([part("dram x", 1.0)]) | {"energy": energy})
    assert line.endswith("held constant: leakage 40.0%, memories and links without a range 30.0%, arrays 20.0%")


def test_shares_add_up() -> None:
    """Shares add up: no part is lost, and rounding errors make no part."""
    assert held_text(0.3, 0.1 + 0.2 - 0.1, {"leakage": 0.1}) == "leakage 33.3%"


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_comparison_of_runs_says_how_much_varies(factor: float) -> None:
    """A comparison says what share of each run's energy has a range."""
    a, b = (
        UncertainRun(energy * 2, 1.0, None, (CostPart("m", "law", energy, 0.0, 0.5, 2.0),))
        for energy in (10.0, 10.0 * factor)
    )
    assert "(costs with a range: 50.0% of the energy of A and 50.0% of the energy of B)" in less_energy_text(a, b)
