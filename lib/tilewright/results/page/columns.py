"""Columns of the table of runs on the page, their cells, and texts on the ports that limit a run.

The rows are those of `summary.csv`, but their numbers have nine significant digits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.base.objectives import energy_delay_product
from tilewright.hardware.system import lacks_unit
from tilewright.results.columns import ABSENT, Column
from tilewright.results.records import Summary
from tilewright.results.run_columns import NAME, run_columns
from tilewright.results.text_tables import WORKING_SHARES, share_text
from tilewright.results.verdict import Verdict as CauseVerdict

DIGITS = 9
"""Number of significant digits of the numbers in the page; the artifacts have all digits."""
FLOWS = {"single": "one core", "multi": "several cores"}
"""Words for each flow, by the name of the flow."""


LIMITED_BY: Column[Summary] = Column(
    "limited_by", "Limit of the run, in words.", lambda _: ABSENT, "limited by", is_number=False
)
"""Column of the page with the limit of the run. Its value comes from `bottlenecks.json`, not from the summary."""
EDP_PJ_S = "edp_pj_s"
EDP_IN_SECONDS: Column[Summary] = Column(
    EDP_PJ_S, "Energy times latency in seconds.", lambda _: ABSENT, "EDP", "nJ s", 1e3, is_cost=True
)
"""Column of the page with the EDP in nJ s. If the clocks of all runs are known, this column replaces the EDP in J
cycles, so that the page has the same number as `compare`.
"""
FIRST = (
    *("run", "workload", "hardware", "flow", "state", ENERGY_PJ, LATENCY_CYCLES, EDP_PJ_CYCLES, EDP_PJ_S),
    *("mac_utilization", AREA_MM2, "limited_by", "latency_s", "power_w", "tops_per_w", "gap_latency", "gap_energy"),
    *("corrected_energy_pj", "corrected_latency_cycles", "costed_mac_share", "costed_operation_share", "layers"),
)
"""Keys of the first columns of the page, in order. The other columns follow in the order of `run_columns`."""
ALWAYS = ("run", "workload", "hardware", ENERGY_PJ, LATENCY_CYCLES, EDP_PJ_CYCLES)
"""Columns that are always shown. Other columns are shown only if at least one run has a value."""


def shown_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[Column[Summary], ...]:
    """Columns for which at least one row has a value, and the columns in ALWAYS. There is one column with the EDP: in
    seconds if all rows with an EDP have it in seconds, otherwise in cycles.
    """
    costed = [row for row in rows if row.get(EDP_PJ_CYCLES) not in (None, "")]
    in_seconds = bool(costed) and all(_has(row, EDP_IN_SECONDS) for row in costed)
    left_out = EDP_PJ_CYCLES if in_seconds else EDP_PJ_S
    known = (one for one in page_columns() if one.key != left_out)
    return tuple(one for one in known if one.key in ALWAYS or any(_has(row, one) for row in rows))


def edp_in_seconds(row: Mapping[str, Any]) -> dict[str, float]:
    """EDP of a run in pJ s, by its key; {} if the clock of the run is not known."""
    seconds = row.get(LATENCY_S)
    return {} if not seconds else {EDP_PJ_S: energy_delay_product(row[ENERGY_PJ], seconds)}


def page_columns() -> tuple[Column[Summary], ...]:
    """Columns with a heading, in the order of the page."""
    known = {
        one.key: one
        for one in (NAME, LIMITED_BY, EDP_IN_SECONDS, *run_columns())
        if isinstance(one, Column) and one.words
    }
    return tuple(known[key] for key in dict.fromkeys((*FIRST, *known)))


def _has(row: Mapping[str, Any], column: Column[Summary]) -> bool:
    return row.get(column.key) not in (None, "")


def cell(row: Mapping[str, Any], column: Column[Summary]) -> Any:
    """Cell of a row: a number in the unit of the column, a text, or None if the row has no value."""
    value = row.get(column.key)
    if value is None or value == "":
        return None
    if not column.is_number:
        return FLOWS.get(str(value), str(value)) if column.key == "flow" else str(value)
    return rounded(value if column.scale == 1.0 else value / column.scale)


def rounded(value: float | None) -> float | int | None:
    """Number with nine significant digits; an integer has no decimal point. None if `value` is None."""
    if value is None:
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def area_words(row: Mapping[str, Any]) -> str:
    """Reason why a run has no area, in two words; '' if the run has an area."""
    if row.get(AREA_MM2) is not None or not row.get("area_note"):
        return ""
    return "no unit" if lacks_unit(str(row["area_note"])) else "not given"


Verdict = Mapping[str, Any]
"""Entry of `bottlenecks.json` for a layer or for the network."""


def port_name(port: Mapping[str, str]) -> str:
    """Text of the form `memory port` that names a port, as in other reports of a run."""
    return f"{port['memory']} {port['port']}"


def named_ports(verdict: Verdict | None) -> Mapping[str, Any] | None:
    """Ports that texts name as the limit: the single port that saves most cycles or, if no single port saves enough, a
    set of ports. None if no port or set saves cycles, or if `verdict` is None.
    """
    if verdict is None:
        return None
    named: Mapping[str, Any] | None = verdict["together"] or verdict["port"]
    return named


def limit_text(verdict: Verdict | None) -> str:
    """Short text with the limiting ports; '' if not known."""
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
    """Short text with the kind of cause to which most cycles go. If the verdict names no kind of cause, the text has
    the limiting ports (`limit_text`). '' if `verdict` is None.
    """
    return "" if verdict is None else str(verdict.get("limited_by") or limit_text(verdict))


def limit_lines(verdict: Verdict | None, causes: CauseVerdict) -> list[str]:
    """Lines on a run on one core: the cause with most cycles, the limit of the run, and the cycles that the limiting
    ports save if they are twice as wide. [] if `verdict` is None.

    `causes` is the verdict on the causes of cycles, which are also in the chart next to the lines.
    """
    if verdict is None:
        return []
    gain, latency, words = gain_cycles(verdict), float(verdict[LATENCY_CYCLES]), limit_text(verdict)
    saved = f"twice as wide {'they save' if words.startswith('together') else 'it saves'} {gain:,.0f} cycles"
    return [
        *([f"Most cycles go to: {causes.full_text}."] if causes.text else []),
        f"Limited by: {cause_text(verdict)}.",
        f"{words}: {saved}, {share_text(gain, latency)} of the latency, with the same mappings."
        if gain > 0
        else f"{words}: doubling the width of one port, or of several ports together, saves no cycles.",
    ]


def array_text(use: Mapping[str, Any] | None) -> str:
    """Text on the share of working units along each side of the array, and on the stall cycles that the mapping file
    causes; '' if the use of the array is not known.
    """
    if not use:
        return ""
    sides = ", ".join(f"{side['array_dimension']} {share_text(side['share'], 1.0)}" for side in use["sides"])
    by_file = sum(layer["by_mapping_file_cycles"] or 0 for layer in use["layers"])
    fixed = f" {by_file:,.0f} cycles of the spatial stall come from spatial mappings that the mapping file fixes."
    return f"{WORKING_SHARES.capitalize()}: {sides}.{fixed if by_file else ''}"


def gain_cycles(verdict: Verdict | None) -> float:
    """Cycles that are saved if the limiting ports (`named_ports`) are twice as wide; 0 if there are no limiting
    ports.
    """
    named = named_ports(verdict)
    return float(named["gain_cycles"]) if named else 0.0
