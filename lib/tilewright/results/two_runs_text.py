"""Text of the comparison of two runs: the totals, then the largest differences by term and by layer, then notes."""

from collections.abc import Sequence

from tilewright.base.harmless import ended_lines
from tilewright.base.objectives import energy_delay_product
from tilewright.base.units import PICOJOULES_A_MICROJOULE, number_text
from tilewright.results.pareto import BY_TIME
from tilewright.results.run_ledger import ENERGY, LATENCY, QUANTITIES
from tilewright.results.run_point import RunPoint
from tilewright.results.run_text import area_text
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.two_runs import DESCRIPTIONS, Difference, RunComparison
from tilewright.results.words import short_layer_name

MOST_ROWS = 12
UNITS = {ENERGY: ("energy", "µJ", PICOJOULES_A_MICROJOULE), LATENCY: ("latency", "cycles", 1.0)}
"""Units of energy and latency in texts, as tuples (name, unit, number of pJ or cycles in one unit)."""


def comparison_text(comparison: RunComparison) -> str:
    """Text of the comparison: warnings, the totals, the differences (the largest first), the assumptions and notes, and
    the changes that would reverse the order of the two runs.
    """
    tables = [
        _differences(comparison, quantity, what, rows)
        for quantity in QUANTITIES
        for what, rows in (("term", comparison.by_term(quantity)), ("layer", comparison.by_layer(quantity)))
        if any(row.real_difference for row in rows)
    ]
    below = (*_assumed(comparison), *comparison.notes, *comparison.turn_lines)
    return "\n".join([_heading(comparison), *tables, ended_lines(below)])


def _assumed(comparison: RunComparison) -> tuple[str, ...]:
    """Line with the assumptions. For two designs of one space, it names the file with the assumptions of the space."""
    a, b = comparison.runs
    if a.assumes and a.assumes_file and a.assumes_file == b.assumes_file:
        return (f"assumed: the same for A, B and all designs of their space (column `assumes` of {a.assumes_file})",)
    return comparison.assumed


def shown(rows: Sequence[Difference], most: int) -> tuple[Difference, ...]:
    """Rows with the largest differences, at most `most`, then a row with the sum of all other rows. The rows still add
    up to the total. A row whose values differ only by rounding is never shown by itself; the sum contains it.
    """
    kept = tuple(row for row in rows if row.real_difference)
    rest = [row for row in rows if row not in kept[:most]]
    if not rest:
        return kept
    equal = ", equal" if not any(row.real_difference for row in rest) else ""
    name = f"{len(rest)} other{'s' * (len(rest) > 1)}{equal}"
    return (*kept[:most], Difference(name, sum(row.a for row in rest), sum(row.b for row in rest)))


def title_of(run: RunPoint) -> str:
    """Title of a run: its network and its hardware."""
    return f"{run.workload or 'a network'} on {run.core or 'a core'}"


def amount(value: float, quantity: str, signed: bool = False) -> str:
    """Text of an energy (given in pJ) or a latency (given in cycles), in the unit for texts (UNITS). `quantity` is
    ENERGY or LATENCY.
    """
    if quantity == LATENCY:
        return f"{value:{'+' if signed and value else ''},.0f}"
    return number_text(value / UNITS[quantity][2], signed)


def change(one: Difference) -> str:
    """Text of the change from the first to the second run, in percent of the value of the first run. If that value is
    0, the text is `new`, or `-` if both values are 0.
    """
    return f"{one.real_difference / one.a:+.1%}" if one.a else "new" if one.b else "-"


def share_text(comparison: RunComparison, quantity: str, row: Difference) -> str:
    """Difference `row` as a text: its percentage of the total of `quantity` in the first run, with its sign. The
    percentages of all terms add up to the change of the total. '' if the total is 0.
    """
    total = comparison.totals(quantity).a
    if not total:
        return ""
    part = round(row.real_difference / total, 3)
    return f"{part:+.1%}" if part else "0.0%"


def _heading(comparison: RunComparison) -> str:
    a, b = comparison.runs
    table = text_table("", ("",), ("A", "B", "difference", ""))
    for quantity, (words, unit, _) in UNITS.items():
        row = comparison.totals(quantity)
        table.add_row(f"{words} [{unit}]", *_numbers(row, quantity), change(row))
    if BY_TIME in comparison.objectives:
        table.add_row("time [s]", *_row_of(Difference("", *(float(run.latency_s or 0.0) for run in (a, b)))))
    table.add_row(*_edp_row(a, b))
    area = [area_text(run.area_mm2, run.area_note) for run in (a, b)]
    if a.area_mm2 is not None and b.area_mm2 is not None:
        area += _row_of(Difference("", a.area_mm2, b.area_mm2))[2:]
    table.add_row("area [mm²]", *area, *[""] * (4 - len(area)))
    names = [f"{name}: {run.run}, {title_of(run)}" for name, run in (("A", a), ("B", b))]
    return ended_lines((*comparison.warning_lines, *names, *_differs(comparison))) + render(table)


def _edp_row(a: RunPoint, b: RunPoint) -> tuple[str, ...]:
    """Row of the table of totals with the EDP of both runs: in nJ s if both clocks are known, otherwise in J cycles."""
    times = [run.latency_s for run in (a, b)]
    in_seconds = None not in times
    unit, scale = ("nJ s", 1e3) if in_seconds else ("J cycles", 1e12)
    values = [
        energy_delay_product(run.energy_pj, float((time if in_seconds else run.latency_cycles) or 0.0)) / scale
        for run, time in zip((a, b), times, strict=True)
    ]
    return f"EDP [{unit}]", *_row_of(Difference("", *values))


def _row_of(row: Difference) -> tuple[str, str, str, str]:
    """Texts of both values, of their difference, and of the change."""
    return number_text(row.a), number_text(row.b), number_text(row.real_difference, signed=True), change(row)


def _differs(comparison: RunComparison) -> list[str]:
    """Line that names the inputs that differ, or says that all inputs are equal, as a list with one item. [] if it is
    not known whether inputs differ, because digests of inputs are missing.
    """
    if comparison.differs:
        return [f"they differ in: {', '.join(comparison.differs)}"]
    known = all(run.made_of.get(kind) for run in (comparison.a, comparison.b) for kind in DESCRIPTIONS)
    plug_ins = " and plug-ins" if comparison.a.made_with else ""
    same = f"hardware, mapping, workload{',' if plug_ins else ' and'} options{plug_ins}"
    return [f"they have the same {same}"] if known else []


def _differences(comparison: RunComparison, quantity: str, what: str, rows: Sequence[Difference]) -> str:
    words, unit, _ = UNITS[quantity]
    heads = ("A", "B", "difference", "difference as part\nof the total of A")
    table = text_table(f"{words.capitalize()} by {what} [{unit}]", (what,), heads)
    for row in (*shown(rows, MOST_ROWS), comparison.totals(quantity)):
        name = short_layer_name(row.name, limit=40)
        table.add_row(name, *_numbers(row, quantity), share_text(comparison, quantity, row) or "-")
    return render(table)


def _numbers(row: Difference, quantity: str) -> tuple[str, str, str]:
    return amount(row.a, quantity), amount(row.b, quantity), amount(row.real_difference, quantity, signed=True)


def titles_of(comparison: RunComparison) -> str:
    """Titles of both runs with an arrow between them. If the titles are equal, the names of the runs tell them
    apart.
    """
    a, b = comparison.runs
    if title_of(a) == title_of(b):
        return f"{title_of(a)}, {a.run} → {b.run}"
    return f"{title_of(a)} → {title_of(b)}"
