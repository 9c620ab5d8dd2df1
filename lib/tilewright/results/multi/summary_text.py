"""Text that shows the summary of a run on several cores in the terminal."""

from collections.abc import Sequence
from typing import Any

from tilewright.base.harmless import ended_lines
from tilewright.base.measures import EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.proof import covered_by, if_copied_line
from tilewright.base.units import microjoules_text, size_text
from tilewright.cost.ledger import on_core_terms
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, term_pj, terms_of_summary
from tilewright.results.multi.summary import reload_lines
from tilewright.results.multi.use_tables import core_use_rows
from tilewright.results.run_tables import edp_text
from tilewright.results.run_text import bits_lines, coverage_lines, plug_in_lines, power_lines, range_lines
from tilewright.results.words import worse_words

Summary = dict[str, Any]
_MOST_RELOADS = 3
"""Largest number of layers with reloaded data that the short text lists."""
_ADVICE = "the tiles of the run cost more than they save: `tilewright fuse` searches for better tiles"
_ROW_NAMES = {"single_core": "everything on one core", "layer_by_layer": "layer by layer", "this_run": "this run"}


def summary_text(summary: Summary, in_full: bool = True) -> str:
    """Text with totals, gaps, baselines and cores. With `in_full`, the text also has memories, links and parts of the
    energy.
    """
    lines = [
        f"{summary['workload']} on {summary['hardware']}: {summary['cn_count']:,} computation nodes,"
        f" {summary['edge_count']:,} edges between them",
        f"latency {summary[LATENCY_CYCLES]:,} cycles, energy {microjoules_text(summary[ENERGY_PJ])} µJ,"
        f" EDP {edp_text(summary[EDP_PJ_CYCLES])} J cycles",
        *_bound_lines(summary),
    ]
    lines += bits_lines(summary)
    lines += power_lines(summary)
    lines += plug_in_lines(summary)
    lines += range_lines(summary)
    lines += coverage_lines(summary)
    if len(summary["baselines"]) > 1:
        lines += ["", *_table(("", "latency [cycles]", "energy [µJ]", "gap", "of this run"), _baselines(summary))]
        lines += _slower_lines(summary)
    heads = ("core", "role", "nodes", "busy", "array use", "energy [µJ]", "fullest memory")
    lines += ["", *_table(heads, _cores(summary))]
    reloads = reload_lines(summary["reloads"], len(summary["reloads"]) if in_full else _MOST_RELOADS)
    lines += ["", *reloads] if reloads else []
    if in_full:
        lines += ["", *_table(("memory", "capacity", "peak"), _memories(summary))]
        lines += ["", *_table(("link", "width [bit/cycle]", "moved", "busy"), _links(summary))]
        lines += ["", *_table(("energy of", "[µJ]", "share"), _energies(summary))]
    return ended_lines(line.rstrip() for line in lines)


def _bound_lines(summary: Summary) -> list[str]:
    """Lines on the lower bounds, on the gaps between the bounds and the totals, and on the terms of the latency bound.
    The latency bound is the largest of its terms.
    """
    bound = summary["lower_bound"]
    if bound is None:
        return [f"no lower bound: the schedule model {summary['schedule_model']} is not causal"]
    terms = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in bound["latency_terms"].items())
    return [
        f"lower bounds for these tiles: {bound[LATENCY_CYCLES]:,} cycles, {microjoules_text(bound[ENERGY_PJ])} µJ;"
        f" gaps: {summary['gap_latency']:.1%} in latency, {summary['gap_energy']:.1%} in energy;"
        f" the bounds hold for {covered_by(bound)}",
        *if_copied_line(summary),
        f"the bound of the latency is the largest of: {terms}",
    ]


def _baselines(summary: Summary) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in summary["baselines"]:
        core = f" ({row['core']}: {row['core_name']})" if row["core"] is not None else ""
        gap = "" if row["gap"] is None else f"{row['gap']:.1%}"
        name = _ROW_NAMES[row["name"]] + core
        rows.append(
            (name, f"{row[LATENCY_CYCLES]:,}", microjoules_text(row[ENERGY_PJ]), gap, f"{row['speedup']:.2f} ×")
        )
    return rows


def _slower_lines(summary: Summary) -> list[str]:
    """Lines on the quantities in which a run is worse than its baselines."""
    lines = [
        f"this run {words}"
        for row in summary["baselines"]
        for words in worse_words(_ROW_NAMES[row["name"]], row["speedup"], row["energy_ratio"])
    ]
    return [*lines, _ADVICE] if lines else []


def _cores(summary: Summary) -> list[tuple[str, ...]]:
    return [
        (
            f"{row['core']}: {row['name']}",
            row["role"],
            f"{row['cn_count']:,}",
            f"{row['utilisation']:.1%}",
            f"{row['array_utilisation']:.1%}",
            microjoules_text(row[ENERGY_PJ]),
            "" if row["peak_share"] is None else f"{row['peak_share']:.1%}",
        )
        for row in core_use_rows(summary)
    ]


def _memories(summary: Summary) -> list[tuple[str, ...]]:
    return [(row["name"], size_text(row["capacity_bits"]), f"{row['peak_share']:.1%}") for row in summary["memories"]]


def _links(summary: Summary) -> list[tuple[str, ...]]:
    return [
        (
            row["name"],
            "unlimited" if row["width_bits_per_cycle"] is None else str(row["width_bits_per_cycle"]),
            size_text(row["bits"]),
            f"{row['busy']:.1%}",
        )
        for row in summary["links"]
    ]


def _energies(summary: Summary) -> list[tuple[str, ...]]:
    terms = terms_of_summary(summary["energy"])
    parts = on_core_terms(summary["energy"])
    parts |= {name.replace("_", " "): term_pj(energy) for name, energy in terms.items() if name != ON_CORE}
    total = summary[ENERGY_PJ] or 1.0
    return [(name, microjoules_text(value), f"{value / total:.1%}") for name, value in parts.items()]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table. The first column is text, the other columns are numbers."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = []
    for row in (heads, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join((row[0].ljust(widths[0]), *cells[1:])))
    return lines
