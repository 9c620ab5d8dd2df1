"""Texts that the figures of a space share: title, assumptions, and units of axes."""

import textwrap
from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg

from tilewright.base.harmless import visible
from tilewright.base.measures import LATENCY_CYCLES
from tilewright.designs.answer import Answer
from tilewright.designs.results import Measure
from tilewright.results.canvas import GREY
from tilewright.results.figure_layout import CYCLE_UNITS, Unit, unit_for
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.paper_tables import UNITS, readable_unit, unit_end
from tilewright.results.pareto_figure import SUBTITLE_CHARACTERS
from tilewright.results.sheet import sheet_name

SUBTITLE_INCHES = 0.15


def titled_figure(width: float, height: float, title: str, lines: Sequence[str]) -> NotedFigure:
    """Figure of `width` times `height` inches, with a title and lines below it."""
    figure = NotedFigure(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.note(title, lines)
    inches = figure.dpi_scale_trans
    figure.text(0.2, height - 0.2, title, fontsize=10, weight="bold", va="center", transform=inches)
    for number, line in enumerate(lines):
        y = height - 0.4 - SUBTITLE_INCHES * number
        figure.text(0.2, y, line, fontsize=7.5, color=GREY, va="center", transform=inches)
    return figure


def assumed_line(answer: Answer) -> str:
    """Line with all assumptions of the comparison; '' if there are none."""
    assumed = " ".join(f"{sentence.rstrip('.')}." for sentence in answer.assumptions)
    return f"assumed: {assumed}" if assumed else ""


def assumption_lines(answer: Answer) -> list[str]:
    """Lines with the assumptions below the title of a figure of a report. Only the first four lines are shown."""
    return textwrap.wrap(visible(assumed_line(answer)), SUBTITLE_CHARACTERS, max_lines=4, placeholder=" …")


def axis_unit(key: str, measure: Measure, values: Sequence[float]) -> Unit:
    """Pair (divisor, unit) for the axis of the column `key` that shows `values`.

    The terminal and the tables use the same unit. A figure or a table for a paper has another unit if its numbers are
    not readable in this unit (`readable_unit`).
    """
    if key == LATENCY_CYCLES:
        return unit_for(min(values), CYCLE_UNITS)
    end, usual = unit_end(key), (measure.scale, measure.unit)
    return readable_unit(UNITS[end], values, usual) if sheet_name() and end else usual
