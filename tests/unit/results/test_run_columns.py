"""Columns of runs: one declaration serves the tables of both flows and the page, plug-ins included."""

from collections.abc import Iterator

import numpy as np
import pytest
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.cost.rates import RATES
from tilewright.results.columns import ABSENT, Column, Columns
from tilewright.results.page.columns import ALWAYS, FIRST, cell, page_columns, shown_columns
from tilewright.results.run_columns import ENTERED, flow_of, run_columns, run_row
from tilewright.results.run_tables import runs_table

from tests.unit.results.test_run_tables import multi_summary, single_summary

CYCLES_A_LAYER = Column(
    "cycles_a_layer",
    "Latency over layers.",
    lambda summary: summary["latency_cycles"] / summary["layers"],
    "cycles a layer",
    "10³",
    1e3,
    is_cost=True,
)
BUSES = Column("buses", "Buses of a system.", lambda summary: summary.get("buses", ABSENT), "buses", flow="multi")
ENTRIES = {ENTERED.owner: {"cycles": f"{__name__}:CYCLES_A_LAYER", "buses": f"{__name__}:BUSES"}}


@pytest.fixture
def entered() -> Iterator[None]:
    """Registers both columns while a test runs."""
    enter(ENTRIES)
    yield
    withdraw(ENTRIES)


def test_every_name_stands_once() -> None:
    """Every column has a unique name, also in groups, and a sentence with a full stop."""
    keys = [key for one in run_columns() for key in (one.key if isinstance(one, Column) else one.keys).split(", ")]
    assert len(keys) == len(set(keys))
    assert all(one.sentence.endswith(".") for one in run_columns())
    assert {"clock_frequency_mhz", *RATES} <= set(keys)
    assert {*FIRST, *ALWAYS} <= {one.key for one in page_columns()}


@pytest.mark.parametrize("summary", [single_summary(), multi_summary()], ids=flow_of)
def test_a_row_has_the_columns_of_its_flow_in_their_order(summary: dict[str, object]) -> None:
    """A row has the columns of its flow, in their order, and none of the other flow."""
    row = run_row("a", summary)
    order = [key for one in run_columns() for key in ([one.key] if isinstance(one, Column) else one.keys.split(", "))]
    known = [key for key in row if key in order]
    assert known == sorted(known, key=order.index)
    others = {one.key for one in run_columns() if isinstance(one, Column) and one.flow not in ("", flow_of(summary))}
    assert others
    assert not others & row.keys()
    for one in run_columns():
        if isinstance(one, Columns) and one.flow in ("", flow_of(summary)):
            assert one.values(summary).items() <= row.items()


WRONG = Column("wrong", "Value that a table cannot hold.", lambda summary: summary["wrong"], "wrong")
GROUP = Columns("group", "Values that a table cannot hold.", lambda summary: {"group": summary["wrong"]})
BARE = Column("bare", "Function without an argument.", lambda: 1.0)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize("name", ["WRONG", "GROUP"])
def test_values_of_added_columns_are_checked(name: str) -> None:
    """An array, a number that is not finite, and another object are refused with the name of the plug-in."""
    entries = {ENTERED.owner: {"mine": f"{__name__}:{name}"}}
    enter(entries)
    try:
        for value in (np.ones(3), float("nan"), float("-inf"), [1], object()):
            with pytest.raises(InputError, match="plug-in mine is not a valid value of the column"):
                run_row("a", {**single_summary(), "wrong": value})
        for value in (1, 0.5, np.float64(2), "text", None):
            assert run_row("a", {**single_summary(), "wrong": value})[name.lower()] == value
    finally:
        withdraw(entries)


def test_a_column_whose_function_takes_no_run_is_refused() -> None:
    """A column whose function takes no run is refused before a value is computed, and the message names the
    arguments.
    """
    entries = {ENTERED.owner: {"bare": f"{__name__}:BARE"}}
    enter(entries)
    try:
        with pytest.raises(InputError, match=r"this kind needs value\(run\)"):
            run_columns()
    finally:
        withdraw(entries)


def test_a_column_of_someone_else(entered: None) -> None:
    """A plug-in's column stands last in the tables of both flows and on the page, with its unit, where it applies."""
    single, multi = single_summary(), multi_summary()
    table = runs_table({"s": single}, {"m": multi})
    assert list(table["cycles_a_layer"]) == [one["latency_cycles"] / one["layers"] for one in (single, multi)]
    assert "buses" not in table
    rows = [run_row("s", single), run_row("m", multi | {"buses": 2})]
    assert [row.get("buses") for row in rows] == [None, 2]
    shown = {one.key: one for one in shown_columns(rows)}
    assert list(shown)[-2:] == ["cycles_a_layer", "buses"]
    assert cell(rows[0], shown["cycles_a_layer"]) == rows[0]["cycles_a_layer"] / 1e3
