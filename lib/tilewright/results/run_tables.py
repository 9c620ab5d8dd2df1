"""Tables of several runs: a table for programs, with a row for each run; and a text table for the terminal, with the
runs on several cores and their baselines.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.harmless import ended_lines
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.base.units import microjoules_text, number_text
from tilewright.results.records import Summary
from tilewright.results.run_columns import BASELINES, run_row
from tilewright.results.tables import COSTED_HEADING, costed_text
from tilewright.results.terminal_tables import TERMINAL_WIDTH, render, text_table
from tilewright.results.words import worse_words

if TYPE_CHECKING:  # pandas is slow to load, and tables for the terminal need none
    import pandas


IN_PAPER = (
    "run", "workload", "hardware", "state", "objective", "operand_bits", ENERGY_PJ, LATENCY_CYCLES, LATENCY_S,
    EDP_PJ_CYCLES, AREA_MM2,
)  # fmt: skip
"""Columns of the table of runs in a paper. The column `state` is left out if all runs are done."""


def runs_table(
    single: Mapping[str, Summary], multi: Mapping[str, Summary], unfinished: Sequence[Mapping[str, str]] = ()
) -> "pandas.DataFrame":
    """Table with one row per run. Runs on one core come first. Columns that do not apply to a run are empty. Each run
    without a result has a row in `unfinished` with `run`, `flow`, `state`, `workload` and `core`; its other columns in
    the table are empty.
    """
    import pandas

    rows = [run_row(run, summary) for run, summary in (*single.items(), *multi.items())]
    rows += [dict(row) for row in unfinished]
    table = pandas.DataFrame(rows)
    for column in table.columns:
        values = table[column].dropna()
        # With an empty cell, pandas would turn the counts of a column into floating-point numbers.
        if len(values) < len(table) and len(values) and all(type(row.get(column, 0)) is int for row in rows):
            table[column] = table[column].astype("Int64")
    return table


def multi_text(summaries: Mapping[str, Summary], width: int = TERMINAL_WIDTH) -> str:
    """Text table of runs on several cores, for the terminal: totals, and the gap between latency and lower bound, as a
    share of the latency.

    Below each run are its baselines (layer by layer, and on one core). Each baseline has the ratio (latency of the
    baseline / latency of the run). Lines below the table name the runs that are worse than a baseline.
    """
    heads = (
        "nodes",
        "energy\n[µJ]",
        "latency\n[cycles]",
        "EDP\n[J cycles]",
        "gap to bound\nof its tiles",
        "of this\nrun",
    )
    table = text_table("", ("run",), (*heads, COSTED_HEADING))
    worse: list[str] = []
    for run, summary in summaries.items():
        row = run_row(run, summary)
        table.add_row(run, f"{row['cn_count']:,}", *_figures(row), _gap(row["gap_latency"]), "", costed_text(row))
        for name in BASELINES:
            baseline = next((found for found in summary["baselines"] if found["name"] == name), None)
            if baseline:
                times = f"{baseline['speedup']:.2f} ×"
                table.add_row(f"  {_words(baseline)}", "", *_figures(baseline), _gap(baseline["gap"]), times, "")
                words = worse_words(_words(baseline), baseline["speedup"], baseline["energy_ratio"])
                worse += [f"{run} {sentence}" for sentence in words]
    return render(table, width) + ended_lines(worse)


def edp_text(edp_pj_cycles: float) -> str:
    """Text of an energy-delay product in J cycles."""
    return number_text(edp_pj_cycles / 1e12)


def _words(baseline: Mapping[str, Any]) -> str:
    core = f" ({baseline['core']}: {baseline['core_name']})" if baseline["core"] is not None else ""
    return BASELINES[baseline["name"]] + core


def _figures(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return microjoules_text(row[ENERGY_PJ]), f"{row[LATENCY_CYCLES]:,.0f}", edp_text(row[EDP_PJ_CYCLES])


def _gap(gap: float | None) -> str:
    return "" if gap is None else f"{gap:.1%}"
