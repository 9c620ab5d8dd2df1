"""Columns of the table of runs on the page."""

import pytest
from tilewright.results.page.columns import cell, edp_in_seconds, shown_columns

RUN = {"run": "a", "energy_pj": 2e9, "latency_cycles": 1e6, "edp_pj_cycles": 2e15, "latency_s": 2e-3}


def test_the_edp_is_in_seconds_if_all_clocks_are_known() -> None:
    """The EDP has the unit of `compare`: J s if all runs have a clock, else J cycles. A run without a result
    has none.
    """
    unclocked = {key: value for key, value in RUN.items() if key != "latency_s"}
    known, unknown, failed = ({**row, **edp_in_seconds(row)} for row in (RUN, unclocked, {"run": "failed"}))
    for rows, unit, value in (([known, failed], "nJ s", 4e3), ([known, unknown], "J cycles", 2e3)):
        (column,) = (one for one in shown_columns(rows) if one.words == "EDP")
        assert column.unit == unit
        assert cell(known, column) == pytest.approx(value)
