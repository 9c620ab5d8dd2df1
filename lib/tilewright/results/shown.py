"""HTML of results for notebooks: one line and a short table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.base.harmless import html, visible_table
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.units import energy_text
from tilewright.results.records import Summary

if TYPE_CHECKING:
    import pandas

SHOWN_ROWS = 24
"""Largest number of rows that a notebook shows. A longer table shows its first and its last rows."""


def totals_text(summary: Summary) -> str:
    """Text with energy and latency of a run."""
    return f"{energy_text(summary[ENERGY_PJ])}, {summary[LATENCY_CYCLES]:,.0f} cycles"


def shown_html(line: str, table: "pandas.DataFrame", columns: Sequence[str] = ()) -> str:
    """HTML of a result for a notebook: a line, then a table with the columns `columns` (all columns if it is empty)."""
    kept = table[[name for name in columns if name in table]] if columns else table
    rows: str = visible_table(kept).to_html(
        index=False, border=0, max_rows=SHOWN_ROWS, na_rep="", float_format="{:.6g}".format
    )
    return f"<p>{html(line)}</p>\n{rows}"
