"""Figure of the search for an allocation: the best latency and energy found up to each generation, and the Pareto front
of allocations.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tilewright.base.artifacts.envelope import read_beside
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.proof import covered_by
from tilewright.base.steps import ALLOCATION
from tilewright.base.units import energy_text
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style
from tilewright.results.figure_layout import CYCLE_UNITS, ENERGY_UNIT, OPERAND_COLOURS, unit_for
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.noted_figure import NotedFigure

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, Any]
WIDTH_INCHES, HEIGHT_INCHES, TOP_INCHES, BOTTOM_INCHES = 10.0, 4.3, 0.95, 0.6
LATENCY_COLOUR, ENERGY_COLOUR, CHOSEN_COLOUR = OPERAND_COLOURS[0], OPERAND_COLOURS[4], "#000000"
GENERATION_COLUMNS = {"generation": int, "best_latency_cycles": int, "best_energy_pj": float}
FRONT_COLUMNS = {LATENCY_CYCLES: int, ENERGY_PJ: float, "is_chosen": lambda text: text.lower() in ("true", "1")}


def read_generations(path: Path) -> list[JsonObject]:
    """Rows of generations.csv: generation, best latency and best energy so far. Raises ArtifactError if the file is not
    such a table.
    """
    return _read_rows(path, GENERATION_COLUMNS)


def read_front(path: Path) -> list[JsonObject]:
    """Rows of pareto.csv. Each row has a latency, an energy, and a flag that is true for the chosen allocation. Raises
    ArtifactError if the file is not such a table.
    """
    return _read_rows(path, FRONT_COLUMNS)


def allocation_figure(
    generations: Sequence[Row], front: Sequence[Row], title: str, bound: Mapping[str, Any] | None = None
) -> Figure:
    """Figure with two plots.

    The first plot has the best latency and energy so far over the generations. The second plot has the Pareto front
    (energy over latency) with the chosen allocation marked. `bound` is the lower bound in the summary, which the figure
    states below the title.
    """
    with figure_style():
        figure = NotedFigure(figsize=(WIDTH_INCHES, HEIGHT_INCHES))
        FigureCanvasAgg(figure)
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.2 / HEIGHT_INCHES, title, fontsize=10, weight="bold", va="center")
        words = _bound_words(bound)
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.4 / HEIGHT_INCHES, words, fontsize=8, color=GREY, va="center")
        figure.note(title, [words], lambda: _numbers(generations, front))
        height = (HEIGHT_INCHES - TOP_INCHES - BOTTOM_INCHES) / HEIGHT_INCHES
        bottom = BOTTOM_INCHES / HEIGHT_INCHES
        _draw_progress(figure.add_axes((0.08, bottom, 0.34, height)), generations)
        _draw_front(figure.add_axes((0.6, bottom, 0.37, height)), front)
    return figure


def reported_search(run: ReportedSchedule) -> Figure | None:
    """Figure of the search for the allocation, for the report of a run; None if there was no search."""
    if run.search is None:
        return None
    title = f"Search for the allocation of {run.title}"
    return allocation_figure(*run.search, title, run.summary["lower_bound"])


def _numbers(generations: Sequence[Row], front: Sequence[Row]) -> "pandas.DataFrame":
    """Table of the best values after each generation, then of the allocations on the front."""
    import pandas

    rows = [{"shown": "best so far", **row} for row in generations] + [{"shown": "front", **row} for row in front]
    return pandas.DataFrame(rows)


def _bound_words(bound: Mapping[str, Any] | None) -> str:
    if not bound:
        return ""
    costs = f"{bound[LATENCY_CYCLES]:,} cycles, {energy_text(bound[ENERGY_PJ])}"
    return f"lower bounds over {covered_by(bound)}: {costs}"


def _draw_progress(panel: Axes, generations: Sequence[Row]) -> None:
    """Draw step curves of latency (left axis) and energy (right axis)."""
    numbers = [row["generation"] for row in generations]
    panel.set_title("best so far", fontsize=8, loc="left")
    panel.set_xlabel("generation")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(numbers) < 2:  # a single generation stands between whole numbers
        middle = numbers[0] if numbers else 0
        panel.set_xlim(middle - 1, middle + 1)
    right = panel.twinx()
    right.spines["right"].set_visible(True)
    for axes, key, units, colour, name in (
        (panel, "best_latency_cycles", CYCLE_UNITS, LATENCY_COLOUR, "latency"),
        (right, "best_energy_pj", (ENERGY_UNIT,), ENERGY_COLOUR, "energy"),
    ):
        values = [row[key] for row in generations]
        unit = unit_for(min(values, default=1), units)
        shown = [value / unit[0] for value in values]
        # A single generation is a point.
        axes.step(numbers, shown, where="post", color=colour, marker="o", markersize=3 if len(shown) < 40 else 0)
        axes.set_ylabel(f"{name} [{unit[1]}]", color=colour)
        axes.tick_params(axis="y", colors=colour)
        _room(axes, shown)
    panel.grid(axis="x", linewidth=0.4, color="#cccccc")


def _draw_front(panel: Axes, front: Sequence[Row]) -> None:
    panel.set_title(f"allocations on the Pareto front: {len(front)}", fontsize=8, loc="left")
    cycles = unit_for(min((row[LATENCY_CYCLES] for row in front), default=1), CYCLE_UNITS)
    energy = ENERGY_UNIT
    points = sorted((row[LATENCY_CYCLES] / cycles[0], row[ENERGY_PJ] / energy[0]) for row in front)
    if points:
        x, y = zip(*points, strict=True)
        panel.step(x, y, where="post", color=LATENCY_COLOUR, linewidth=0.9, zorder=1)
        panel.scatter(x, y, s=18, color=LATENCY_COLOUR, zorder=2)
    for row in (row for row in front if row["is_chosen"]):
        place = row[LATENCY_CYCLES] / cycles[0], row[ENERGY_PJ] / energy[0]
        label = f"chosen: {row[LATENCY_CYCLES]:,} cycles, {energy_text(row[ENERGY_PJ])}"
        panel.scatter(*place, s=70, facecolor="none", edgecolor=CHOSEN_COLOUR, linewidth=1.6, zorder=3, label=label)
    panel.set_xlabel(f"latency [{cycles[1]}]")
    panel.set_ylabel(f"energy [{energy[1]}]")
    panel.grid(linewidth=0.4, color="#cccccc")
    panel.margins(0.12, 0.2)
    if any(row["is_chosen"] for row in front):
        panel.legend(loc="upper right", fontsize=7.5, frameon=False, borderaxespad=0.1)


def _room(axes: Axes, values: Sequence[float]) -> None:
    """Set the range of an axis to the range of the values, with a margin below and above. If all values are equal, the
    axis still gets a range.
    """
    least, most = min(values, default=0.0), max(values, default=1.0)
    span = max(most - least, 0.02 * abs(most), 1e-9)
    axes.set_ylim(least - 0.1 * span, most + 0.15 * span)


def _read_rows(path: Path, columns: Mapping[str, Any]) -> list[JsonObject]:
    try:
        with io.StringIO(read_beside(path, path.with_name(ALLOCATION)).decode(), newline="") as stream:
            reader = csv.DictReader(stream)
            if missing := [name for name in columns if name not in (reader.fieldnames or columns)]:
                raise KeyError(*missing)
            rows = [{name: convert(row[name]) for name, convert in columns.items()} for row in reader]
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error) as error:
        wanted = ", ".join(columns)
        raise ArtifactError([Problem("is not a table of evaluated allocations", str(path), allowed=wanted)]) from error
    if any(not math.isfinite(value) for row in rows for value in row.values()):
        raise ArtifactError([Problem("has numbers that are not finite", str(path))])
    return rows
