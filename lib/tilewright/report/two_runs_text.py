"""Two runs told apart, as text for the terminal: totals, then the largest differences of terms and of layers."""

from collections.abc import Sequence

from tilewright.report.pareto import BY_TIME, Candidate
from tilewright.report.run_ledger import ENERGY, LATENCY, QUANTITIES
from tilewright.report.run_text import area_text
from tilewright.report.short_names import short_layer_name
from tilewright.report.text_tables import render, text_table
from tilewright.report.two_runs import DESCRIPTIONS, Comparison, Difference
from tilewright.units import PICOJOULES_A_MICROJOULE

MOST_ROWS = 12
UNITS = {ENERGY: ("energy", "µJ", PICOJOULES_A_MICROJOULE), LATENCY: ("latency", "cycles", 1.0)}
"""Quantity -> words, unit for people, and how many units of the ledger that is."""


def comparison_text(comparison: Comparison) -> str:
    """What differs, the largest first, with what is assumed at the end."""
    tables = [
        _differences(comparison, quantity, what, rows)
        for quantity in QUANTITIES
        for what, rows in (("term", comparison.by_term(quantity)), ("layer", comparison.by_layer(quantity)))
        if any(row.difference for row in rows)
    ]
    return "\n".join([_heading(comparison), *tables, "".join(f"{line}\n" for line in comparison.lines)])


def shown(rows: Sequence[Difference], most: int) -> tuple[Difference, ...]:
    """The largest differences, and the others as one row, so that they still add up."""
    kept = tuple(row for row in rows if row.difference)
    rest = [row for row in rows if row not in kept[:most]]
    if not rest:
        return kept
    others = Difference(
        f"{len(rest)} other{'s' * (len(rest) > 1)}", sum(row.a for row in rest), sum(row.b for row in rest)
    )
    return (*kept[:most], others)


def title_of(run: Candidate) -> str:
    """A run for people: its network and its hardware."""
    return f"{run.workload or 'a network'} on {run.core or 'a core'}"


def amount(value: float, quantity: str, signed: bool = False) -> str:
    """A number in the unit for people."""
    scaled = value / UNITS[quantity][2]
    sign = "+" if signed and value else ""
    return f"{scaled:{sign},.0f}" if abs(scaled) >= 1e4 or quantity == LATENCY else f"{scaled:{sign},.4g}"


def change(one: Difference) -> str:
    """By how much the second run has more, in percent of the first."""
    return f"{one.difference / one.a:+.1%}" if one.a else "new" if one.b else "-"


def share_text(comparison: Comparison, quantity: str, row: Difference, digits: int = 0) -> str:
    """The share of the whole difference, '' where there is none."""
    share = comparison.share(quantity, row.difference)
    return "" if share is None else f"{round(share, digits + 2) + 0.0:.{digits}%}"


def _heading(comparison: Comparison) -> str:
    a, b = comparison.runs
    table = text_table("", ("",), ("A", "B", "difference", ""))
    for quantity, (words, unit, _) in UNITS.items():
        row = comparison.totals(quantity)
        table.add_row(f"{words} [{unit}]", *_numbers(row, quantity), change(row))
    if BY_TIME in comparison.objectives:
        time = Difference("", *(float(run.latency_s or 0.0) for run in (a, b)))
        seconds = (f"{time.a:.4g}", f"{time.b:.4g}", f"{time.difference:+.4g}")
        table.add_row("time [s]", *seconds, change(time))
    area = [area_text(run.area_mm2, run.area_note) for run in (a, b)]
    if a.area_mm2 is not None and b.area_mm2 is not None:
        both = Difference("", a.area_mm2, b.area_mm2)
        area += [f"{both.difference:+,.4g}", change(both)]
    table.add_row("area [mm²]", *area, *[""] * (4 - len(area)))
    return f"A: {a.run}, {title_of(a)}\nB: {b.run}, {title_of(b)}\n{_differs(comparison)}{render(table)}"


def _differs(comparison: Comparison) -> str:
    """What goes into both and is not the same; '' where that is not known."""
    if comparison.differs:
        return f"they differ in: {', '.join(comparison.differs)}\n"
    known = all(run.made_of.get(kind) for run in (comparison.a, comparison.b) for kind in DESCRIPTIONS)
    return "they are made of the same: hardware, mapping, workload, options\n" if known else ""


def _differences(comparison: Comparison, quantity: str, what: str, rows: Sequence[Difference]) -> str:
    words, unit, _ = UNITS[quantity]
    table = text_table(
        f"{words.capitalize()} by {what} [{unit}]", (what,), ("A", "B", "difference", "share of the\nwhole difference")
    )
    for row in (*shown(rows, MOST_ROWS), comparison.totals(quantity)):
        name = short_layer_name(row.name, limit=40)
        table.add_row(name, *_numbers(row, quantity), share_text(comparison, quantity, row, 1) or "-")
    return render(table)


def _numbers(row: Difference, quantity: str) -> tuple[str, str, str]:
    return amount(row.a, quantity), amount(row.b, quantity), amount(row.difference, quantity, signed=True)
