"""Totals of a run have the same text in every sentence and table."""

from collections.abc import Callable
from typing import Any

import pytest
from tilewright.base.units import energy_text, microjoules_text, number_text
from tilewright.cost.record import LayerRecord
from tilewright.designs.results import ENERGY as ENERGY_OF_DESIGN
from tilewright.results.bottlenecks import bottlenecks_of
from tilewright.results.bottlenecks_text import bottlenecks_text
from tilewright.results.pareto import figures_of
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import ledger_of_layers
from tilewright.results.shown import totals_text
from tilewright.results.tables import summary_text
from tilewright.results.two_runs import compare_two
from tilewright.results.two_runs_text import comparison_text

MakeNetwork = Callable[[int], tuple[list[LayerRecord], dict[str, Any]]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.648991, "0.649"),
        (3.0, "3"),
        (99.996, "100"),
        (999.96, "1,000"),
        (4129.26, "4,129"),
        (9999.6, "10,000"),
        (59178.7, "59,179"),
        (-4129.26, "-4,129"),
    ],
)
def test_numbers_have_four_digits_or_all_before_the_point(value: float, text: str) -> None:
    """Numbers have four digits, or all digits before the point, and no exponent after rounding up."""
    assert number_text(value) == text
    assert microjoules_text(value * 1e6) == text
    assert energy_text(value * 1e6) == f"{text} µJ"
    assert number_text(value, signed=True) == (f"+{text}" if value > 0 else text)


@pytest.mark.parametrize("count", [1, 14, 60])
def test_an_energy_has_one_text_everywhere(count: int, make_network: MakeNetwork) -> None:
    """An energy has one text in summary, comparison, Pareto table, bottlenecks, designs and a notebook's line."""
    records, summary = make_network(count)
    energy, cycles = energy_text(summary["energy_pj"]), f"{summary['latency_cycles']:,} cycles"
    number = energy.removesuffix(" µJ")
    ledger = ledger_of_layers("run", records, summary, {})
    found = bottlenecks_of(ledger, layers_in_order(records, summary))
    assert totals_text(summary) == f"{energy}, {cycles}"
    explained = bottlenecks_text(found)
    assert f": {energy}, {cycles}" in explained.splitlines()[0]
    energies = explained[explained.index("Energy by memory") :].split("\n\n")[0]
    assert next(line for line in energies.splitlines() if line.startswith(" all")).split()[-1] == number
    assert number in summary_text({"run": summary}).split()
    assert comparison_text(compare_two(ledger, ledger)).count(f" {number} ") >= 2
    assert figures_of(ledger.run)[0] == number
    assert ENERGY_OF_DESIGN.text(summary["energy_pj"]) == number
