"""Columns of the table of runs on the page, their cells, and which ports limit a run, in words.

Rows are those of `summary.csv`; numbers keep nine significant digits, which is more than a person reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.hardware.system import lacks_unit
from tilewright.results.run_columns import ABSENT, Column, run_columns
from tilewright.results.text_tables import share_text
from tilewright.results.verdict import Verdict as CauseVerdict

DIGITS = 9
"""Significant ones of the numbers in the page; the artifacts have all."""
FLOWS = {"single": "one core", "multi": "several cores"}
"""Flow -> in words."""


LIMITED_BY = Column("limited_by", "What limits the run, in words.", lambda _: ABSENT, "limited by", is_number=False)
"""The page adds it to a row: it is in `bottlenecks.json`, not in the summary."""
NAME = Column("run", "Name of the run.", lambda _: ABSENT, "run", is_number=False)
FIRST = (
    *("run", "workload", "hardware", "flow", "state", "energy_pj", "latency_cycles", "edp_pj_cycles"),
    *("mac_utilization", "area_mm2", "limited_by", "latency_s", "power_w", "tops_per_w", "gap_latency", "gap_energy"),
    *("corrected_energy_pj", "corrected_latency_cycles", "costed_mac_share", "costed_operation_share", "layers"),
)
"""Columns that a reader looks for first, in their order; further ones follow in the order of tables."""
ALWAYS = ("run", "workload", "hardware", "energy_pj", "latency_cycles", "edp_pj_cycles")
"""Columns that are there whatever the runs; others only where some run has a value."""


def shown_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns that some row has a value of; texts that are the same everywhere stay, they say what was run."""
    return tuple(one for one in page_columns() if one.key in ALWAYS or any(_has(row, one) for row in rows))


def page_columns() -> tuple[Column, ...]:
    """The columns that have words, in the order of the page."""
    known = {one.key: one for one in (NAME, LIMITED_BY, *run_columns()) if isinstance(one, Column) and one.words}
    return tuple(known[key] for key in dict.fromkeys((*FIRST, *known)))


def _has(row: Mapping[str, Any], column: Column) -> bool:
    return row.get(column.key) not in (None, "")


def cell(row: Mapping[str, Any], column: Column) -> Any:
    """What the page gets of a row: a number in the unit of the column, a text, or None where there is none."""
    value = row.get(column.key)
    if value is None or value == "":
        return None
    if not column.is_number:
        return FLOWS.get(str(value), str(value)) if column.key == "flow" else str(value)
    return rounded(value if column.scale == 1.0 else value / column.scale)


def rounded(value: float | None) -> float | int | None:
    """A number in nine significant digits, a whole one without a decimal point; None for None."""
    if value is None:
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def area_words(row: Mapping[str, Any]) -> str:
    """Why a run has no area, in two words; '' where it has one."""
    if row.get("area_mm2") is not None or not row.get("area_note"):
        return ""
    return "no unit" if lacks_unit(str(row["area_note"])) else "not given"


Verdict = Mapping[str, Any]
"""What `bottlenecks.json` says of a layer or of the network."""


def port_name(port: Mapping[str, str]) -> str:
    """A port for people, as other reports name it."""
    return f"{port['memory']} {port['port']}"


def named_ports(verdict: Verdict | None) -> Mapping[str, Any] | None:
    """The ports that are said to limit: those that help together, where no single one does, or else the best one."""
    if verdict is None:
        return None
    named: Mapping[str, Any] | None = verdict["together"] or verdict["port"]
    return named


def limit_text(verdict: Verdict | None) -> str:
    """Which ports limit, in a few words; '' where that is not known."""
    if verdict is None:
        return ""
    named = named_ports(verdict)
    if named is None:
        return "no port"
    names = " and ".join(map(port_name, named["ports"]))
    if len(named["ports"]) > 1:
        return f"together: {names}"
    more = len(verdict["ties"])
    return names + (f" (or {more} other{'s' * (more > 1)})" if more else "")


def cause_text(verdict: Verdict | None) -> str:
    """What limits by the kind that takes most cycles, in a few words; '' where that is not known."""
    return "" if verdict is None else str(verdict.get("limited_by") or limit_text(verdict))


def limit_lines(verdict: Verdict | None, causes: CauseVerdict) -> list[str]:
    """What takes most cycles, what limits, and what wider ports would save, each with its number.

    `causes` are those of the chart beside the lines; [] where what limits is not known.
    """
    if verdict is None:
        return []
    gain, latency, words = gain_cycles(verdict), float(verdict["latency_cycles"]), limit_text(verdict)
    saved = f"twice as wide {'they save' if words.startswith('together') else 'it saves'} {gain:,.0f} cycles"
    return [
        *([f"Most cycles go to: {causes.full_text}."] if causes.text else []),
        f"Limited by: {cause_text(verdict)}.",
        f"{words}: {saved}, {share_text(gain, latency)} of the latency, with the same mappings."
        if gain > 0
        else f"{words}: no port that is twice as wide saves a cycle, nor do several together.",
    ]


def array_text(use: Mapping[str, Any] | None) -> str:
    """How full the array is, and what the mapping file has to do with it; '' where that is not known."""
    if not use:
        return ""
    sides = ", ".join(f"{side['array_dimension']} {share_text(side['share'], 1.0)}" for side in use["sides"])
    by_file = sum(layer["by_mapping_file_cycles"] or 0 for layer in use["layers"])
    fixed = f" {by_file:,.0f} cycles of the spatial stall are there since the mapping file fixes spatial mappings."
    return f"While the array computes, its sides are full to: {sides}.{fixed if by_file else ''}"


def gain_cycles(verdict: Verdict | None) -> float:
    """Cycles that what limits would save if it were twice as wide."""
    named = named_ports(verdict)
    return float(named["gain_cycles"]) if named else 0.0
