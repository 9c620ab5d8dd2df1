"""Figure that compares a run with its baselines: bars with numbers for latency, energy and EDP, and the lower
bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.base.measures import EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.base.proof import covered_by
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style
from tilewright.results.figure_layout import CYCLE_UNITS, EDP_UNIT, ENERGY_UNIT, OPERAND_COLOURS, three_digits, unit_for
from tilewright.results.multi.energy_figure import THIS_RUN, readable
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.noted_figure import NotedFigure, name_axes
from tilewright.results.words import worse_words

if TYPE_CHECKING:
    import pandas

Summary = Mapping[str, Any]
WIDTH_INCHES, NAME_INCHES, PANEL_INCHES, NUMBER_INCHES = 11.0, 1.6, 1.95, 1.05
TOP_INCHES, BAR_INCHES, BOTTOM_INCHES = 1.0, 0.36, 0.25
RUN_COLOUR, BASELINE_COLOUR, BOUND_COLOUR = OPERAND_COLOURS[0], "#bbbbbb", OPERAND_COLOURS[4]


@dataclass(frozen=True)
class BaselineRow:
    """Schedule in the comparison: this run, or a baseline."""

    name: str
    latency_cycles: int
    energy_pj: float
    gap: float | None
    """Gap between the latency and its lower bound, as a share of the latency; None if not known."""

    @property
    def edp(self) -> float:
        """Energy-delay product in pJ · cycles."""
        return energy_delay_product(self.energy_pj, self.latency_cycles)


def baseline_rows(summary: Summary) -> list[BaselineRow]:
    """Rows of the comparison: this run, then its baselines in the order of the summary."""
    rows = [BaselineRow(THIS_RUN, summary[LATENCY_CYCLES], summary[ENERGY_PJ], summary.get("gap_latency"))]
    for row in summary.get("baselines") or ():
        name = readable(row["name"])
        if name != THIS_RUN:
            rows.append(BaselineRow(name, row[LATENCY_CYCLES], row[ENERGY_PJ], row.get("gap")))
    return rows


def baselines_figure(summary: Summary) -> Figure:
    """Figure with a row for each schedule (this run and its baselines) and columns for latency, energy and EDP. Each
    cell has the value of the schedule. For a baseline, the cell also has the ratio of this value to the value of this
    run.
    """
    rows = baseline_rows(summary)
    bound = summary.get("lower_bound") or {}
    columns = (
        ("latency", [float(row.latency_cycles) for row in rows], CYCLE_UNITS, bound.get(LATENCY_CYCLES)),
        ("energy", [row.energy_pj for row in rows], (ENERGY_UNIT,), bound.get(ENERGY_PJ)),
        ("EDP", [row.edp for row in rows], (EDP_UNIT,), None),
    )
    height = TOP_INCHES + BAR_INCHES * len(rows) + BOTTOM_INCHES
    with figure_style():
        figure = NotedFigure(figsize=(WIDTH_INCHES, height))
        FigureCanvasAgg(figure)
        words = "beside its baselines" if len(rows) > 1 else "without baselines"
        title = f"Costs of {summary['workload']} on {summary['hardware']} {words}"
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.2 / height, title, fontsize=10, weight="bold", va="center")
        lines = _subtitle(rows[0], bound)
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.4 / height, lines, fontsize=8, color=GREY, va="center")
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.58 / height, _worse(rows), fontsize=8, va="center")
        figure.note(title, [lines, _worse(rows)], lambda: _numbers(rows, bound))
        for number, (name, values, units, least) in enumerate(columns):
            left = NAME_INCHES + number * (PANEL_INCHES + NUMBER_INCHES)
            box = (left / WIDTH_INCHES, BOTTOM_INCHES / height, PANEL_INCHES / WIDTH_INCHES)
            panel = figure.add_axes((*box, BAR_INCHES * len(rows) / height))
            _draw_column(panel, name, values, units, least)
            panel.set_yticks(range(len(rows)), labels=[row.name for row in rows] if number == 0 else [""] * len(rows))
    return figure


def reported_baselines(run: ReportedSchedule) -> Figure:
    """Figure that compares a run with its baselines, for the report of the run."""
    return baselines_figure(run.summary)


def _subtitle(run: BaselineRow, bound: Mapping[str, Any]) -> str:
    if not bound:
        return ""
    gap = f", {100 * run.gap:.1f} % below the latency of this run" if run.gap is not None else ""
    return f"dashed: lower bound over {covered_by(bound)}{gap}"


def _worse(rows: Sequence[BaselineRow]) -> str:
    """Text on quantities in which this run (the first row) is worse than a baseline; '' if there is no such
    quantity.
    """
    run = rows[0]
    words = []
    for row in rows[1:]:
        energy_ratio = row.energy_pj / run.energy_pj if run.energy_pj else None
        words += worse_words(row.name, row.latency_cycles / max(run.latency_cycles, 1), energy_ratio)
    return f"this run {', '.join(words)}" if words else ""


def _numbers(rows: Sequence[BaselineRow], bound: Mapping[str, Any]) -> "pandas.DataFrame":
    """Table with a row for each schedule (latency, energy and EDP), and a last row for the lower bounds if `bound` is
    not empty.
    """
    import pandas

    found = [
        {"schedule": row.name, LATENCY_CYCLES: row.latency_cycles, ENERGY_PJ: row.energy_pj, EDP_PJ_CYCLES: row.edp}
        for row in rows
    ]
    least = {key: bound.get(key) for key in (LATENCY_CYCLES, ENERGY_PJ)}
    return pandas.DataFrame([*found, *([{"schedule": "lower bound", **least}] if bound else [])])


def _draw_column(
    panel: Axes, name: str, values: Sequence[float], units: Sequence[tuple[float, str]], least: float | None
) -> None:
    unit = unit_for(values[0], units)
    shown = [value / unit[0] for value in values]
    most = max(shown) or 1.0
    colours = [RUN_COLOUR, *([BASELINE_COLOUR] * (len(values) - 1))]
    panel.barh(range(len(values)), shown, 0.62, color=colours)
    for place, value in enumerate(values):
        text = three_digits(shown[place])
        ratio = f"  ×{value / values[0]:.2f}" if place and values[0] else ""
        panel.text(shown[place] + most * 0.02, place, text + ratio, va="center", fontsize=7.5)
    if least is not None:
        panel.axvline(least / unit[0], color=BOUND_COLOUR, linewidth=1, linestyle="--")
    panel.set_xlim(0, most)
    panel.set_ylim(len(values) - 0.5, -0.5)
    panel.set_xticks([])
    panel.tick_params(axis="y", length=0)
    panel.spines["bottom"].set_visible(False)
    panel.set_title(f"{name} [{unit[1]}]", fontsize=8, loc="left")
    name_axes(panel, f"{name} [{unit[1]}]", "schedule")
