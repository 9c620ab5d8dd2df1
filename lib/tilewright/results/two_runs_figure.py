"""Figure that compares two runs: a bar for each difference.

Panels for energy are above panels for latency. Panels with differences by term are beside panels with differences by
layer.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.base.harmless import visible
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import OPERAND_COLOURS
from tilewright.results.noted_figure import NotedFigure, name_axes
from tilewright.results.run_ledger import QUANTITIES
from tilewright.results.two_runs import Difference, RunComparison, comparison_table
from tilewright.results.two_runs_text import UNITS, amount, change, share_text, shown, titles_of
from tilewright.results.words import short_names

MOST_BARS = 15
NAME_INCHES, PANEL_INCHES, NUMBER_INCHES, BAR_INCHES = 2.0, 2.6, 1.35, 0.2
TITLE_INCHES, LINE_INCHES, HEAD_INCHES, GAP_INCHES = 0.45, 0.15, 0.3, 0.25
SUBTITLE_CHARACTERS = 165
LESS_COLOUR, MORE_COLOUR = OPERAND_COLOURS[2], OPERAND_COLOURS[4]


def comparison_figure(comparison: RunComparison) -> Figure:
    """Figure of the differences between two runs. Energy and latency each have a panel by term and a panel by layer.
    The bars of a panel add up to the total difference.
    """
    panels = {
        quantity: [shown(rows, MOST_BARS) for rows in (comparison.by_term(quantity), comparison.by_layer(quantity))]
        for quantity in QUANTITIES
    }
    told = _told(comparison)
    lines = [
        line
        for text in told
        for line in textwrap.wrap(visible(text), SUBTITLE_CHARACTERS, max_lines=3, placeholder=" …")
    ]
    heights = [HEAD_INCHES + BAR_INCHES * max(1, *map(len, rows)) + GAP_INCHES for rows in panels.values()]
    width = 2 * (NAME_INCHES + PANEL_INCHES + NUMBER_INCHES)
    height = TITLE_INCHES + LINE_INCHES * len(lines) + sum(heights)
    a, b = comparison.runs
    with figure_style():
        figure = NotedFigure(figsize=(width, height))
        FigureCanvasAgg(figure)
        inches = figure.dpi_scale_trans
        title = f"Difference: {b.run} minus {a.run}"
        figure.text(0.2, height - 0.2, title, fontsize=10, weight="bold", va="center", transform=inches)
        figure.note(
            f"{title} (A: {a.run}, B: {b.run})",
            [f"Totals of {told[0]}", *told[1:]],
            lambda: comparison_table(comparison),
        )
        top = height - 0.4
        for line in lines:
            figure.text(0.2, top, line, fontsize=7.5, color=GREY, va="center", transform=inches)
            top -= LINE_INCHES
        for (quantity, columns), room in zip(panels.items(), heights, strict=True):
            for column, rows in enumerate(columns):
                left = NAME_INCHES + column * (NAME_INCHES + PANEL_INCHES + NUMBER_INCHES)
                tall = BAR_INCHES * max(1, len(rows))
                box = (left / width, (top - HEAD_INCHES - tall) / height, PANEL_INCHES / width, tall / height)
                _draw(figure.add_axes(box), comparison, quantity, ("term", "layer")[column], rows)
            top -= room
    return figure


def write_comparison_figure(comparison: RunComparison, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure as `path_stem`.svg and .png; returns both paths."""
    return save_figure(comparison_figure(comparison), path_stem)


def _told(comparison: RunComparison) -> list[str]:
    """Sentences on both runs: their totals, then the lines of the comparison."""
    totals = [comparison.totals(quantity) for quantity in QUANTITIES]
    parts = [
        f"{UNITS[quantity][0]} {amount(total.a, quantity)} → {amount(total.b, quantity)} {UNITS[quantity][1]}"
        f" ({change(total)})"
        for quantity, total in zip(QUANTITIES, totals, strict=True)
    ]
    return [f"{titles_of(comparison)}: {', '.join(parts)}", *comparison.lines]


def _draw(panel: Axes, comparison: RunComparison, quantity: str, what: str, rows: Sequence[Difference]) -> None:
    words, unit, scale = UNITS[quantity]
    panel.set_title(f"{words} by {what}, B − A [{unit}]", fontsize=8, loc="left")
    name_axes(panel, f"{words} by {what}, B − A [{unit}]", what)
    panel.set_xticks([])
    panel.spines["bottom"].set_visible(False)
    panel.spines["left"].set_visible(False)
    if not rows:
        panel.set_yticks([])
        panel.text(0, 0.5, "nothing in common", va="center", color=GREY, transform=panel.transAxes)
        return
    values = [row.real_difference / scale for row in rows]
    colours = [MORE_COLOUR if value > 0 else LESS_COLOUR for value in values]
    panel.barh(range(len(rows)), values, 0.62, color=colours)
    panel.axvline(0, color=GREY, linewidth=0.8)
    for place, row in enumerate(rows):
        text = f"{amount(row.real_difference, quantity, signed=True)}  {share_text(comparison, quantity, row)}"
        panel.text(1.03, place, text, va="center", fontsize=7, transform=panel.get_yaxis_transform())
    most = max(map(abs, values)) or 1.0
    panel.set_xlim(min(0.0, *values) - most * 0.02, max(0.0, *values) + most * 0.02)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_yticks(range(len(rows)), labels=short_names([row.name for row in rows], limit=32))
    panel.tick_params(axis="y", length=0)
