"""Figure that shows how the axes of a space change its designs.

In a report, each panel has its own scales. In a figure for a paper, the panels of one measure form a row and share
their vertical scale. The effects of the axes can then be compared, and the figure fits a page.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas
from matplotlib.axes import Axes

from tilewright.base.measures import LATENCY_CYCLES
from tilewright.designs.answer import Answer
from tilewright.designs.effects import Effect, known_measures
from tilewright.designs.figure_texts import SUBTITLE_INCHES, assumed_line, assumption_lines, axis_unit, titled_figure
from tilewright.designs.front import Front
from tilewright.designs.results import Measure, value_text
from tilewright.results.figure_files import figure_style
from tilewright.results.figure_layout import CYCLE_UNITS, Unit, unit_for
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.pareto_figure import FRONT_COLOUR
from tilewright.results.sheet import sheet_name
from tilewright.results.words import short_layer_name, short_names

PANEL_INCHES, PANEL_GAP_INCHES, PANEL_BOTTOM_INCHES = (2.1, 1.5), 0.8, 0.75
PANELS_A_ROW = {"": 5, "column": 3, "page": 6}
"""Largest number of panels in a row, by width of the figure in a paper; '' stands for a report."""
MOST_ROWS_IN_PAPER = 8
"""Largest number of rows of panels in a figure for a paper. The figure is then at most about 7 inches high."""
AXIS_CHARACTERS, MOST_LEVELS, LEVEL_CHARACTERS = 34, 12, 12
SHOWN = "for each value: best (solid) and median (dashed) of all compared designs with this value"


def effect_figure(answer: Answer, front: Front, found: Sequence[Effect]) -> NotedFigure:
    """Figure of the effects of axes.

    For each value of an axis, it shows the best and the median of each objective, over all compared designs that have
    this value. EDP is shown as well if the mappings are searched for the least EDP. A figure for a paper leaves out the
    axes with the least effects if there is no room for all axes.
    """
    measures = _measures(answer, front)
    is_for_paper = bool(sheet_name())
    shown = most_effective(found, measures, _most_axes(len(measures))) if is_for_paper else tuple(found)
    blocks = _blocks(shown, PANELS_A_ROW[sheet_name()])
    lines = [SHOWN, *assumption_lines(answer)]
    step = PANEL_INCHES[0] + PANEL_GAP_INCHES, PANEL_INCHES[1] + PANEL_BOTTOM_INCHES
    top = 0.5 + SUBTITLE_INCHES * len(lines)
    width, height = (
        0.2 + max(3, len(blocks[0])) * step[0],
        top + len(blocks) * len(measures) * step[1],
    )
    title = f"Effect of each axis of the space {answer.exploration.name}: {front.network}"
    with figure_style():
        figure = titled_figure(width, height, title, lines)
        told = [SHOWN, *_left_out(found, shown)]
        figure.note(
            figure.caption_title, told, lambda: _numbers(found), further=[*answer.warnings, assumed_line(answer)]
        )
        figure.shares_rows = is_for_paper
        panels = [(block, key) for block in blocks for key in measures]
        for row, (block, key) in enumerate(panels):
            bottom = height - top - PANEL_INCHES[1] - row * step[1]
            for column, effect in enumerate(block):
                left = PANEL_GAP_INCHES + column * step[0]
                box = (left / width, bottom / height, PANEL_INCHES[0] / width, PANEL_INCHES[1] / height)
                axes = figure.add_axes(box)
                if is_for_paper:
                    _draw_effect(axes, effect, key, _shared_scale(shown, key, front.measures[key]))
                    _share_labels(axes, is_first=column == 0, is_last=key == measures[-1])
                else:
                    _draw_effect(axes, effect, key, _shared_scale([effect], key, front.measures[key], report=True))
    return figure


def _measures(answer: Answer, front: Front) -> tuple[str, ...]:
    """Measures that the figure shows: the objectives of the front, and EDP if it is the objective of the searches."""
    known = known_measures(front)
    product = [*front.measures][2]
    if answer.exploration.searched_for != "EDP" or product not in known or not front.objectives:
        return front.objectives or known
    return tuple(key for key in front.measures if key in (*front.objectives, product))


def most_effective(found: Sequence[Effect], measures: Sequence[str], most: int) -> tuple[Effect, ...]:
    """The `most` axes of the space with the largest effects, in the order of the space.

    For each measure and each value of the axis, the best design with this value is taken. The effect of the axis is the
    largest ratio of two of these designs in a measure. Of axes with equal effects, the first is taken.
    """
    order = sorted(range(len(found)), key=lambda place: (-_largest_ratio(found[place], measures), place))
    return tuple(found[place] for place in sorted(order[:most]))


def _largest_ratio(effect: Effect, measures: Sequence[str]) -> float:
    best = [effect.table[f"best_{key}"] for key in measures]
    return max(float(values.max() / values.min()) if values.min() > 0 else math.inf for values in best)


def _most_axes(measure_count: int) -> int:
    """Largest number of axes in a figure for a paper."""
    return PANELS_A_ROW[sheet_name()] * max(1, MOST_ROWS_IN_PAPER // measure_count)


def _blocks(found: Sequence[Effect], most: int) -> list[Sequence[Effect]]:
    """Axes in blocks of nearly equal length, at most `most` axes long."""
    length = math.ceil(len(found) / math.ceil(len(found) / most))
    return [found[start : start + length] for start in range(0, len(found), length)]


def _left_out(found: Sequence[Effect], shown: Sequence[Effect]) -> Iterator[str]:
    """Line of the caption that names axes without a panel, if there are any."""
    names = [effect.axis for effect in found if effect not in shown]
    if names:
        yield f"left out: {', '.join(names)}, with less effect on the best values than each axis in the figure"


def _numbers(found: Sequence[Effect]) -> pandas.DataFrame:
    """Table with the effects of all axes."""
    return pandas.concat([effect.table.assign(axis=effect.axis) for effect in found])


def _shared_scale(
    found: Sequence[Effect], key: str, measure: Measure, report: bool = False
) -> tuple[float, Unit, Measure]:
    """Triple (largest value on the vertical axis, unit, measure) for panels that show the effects of several axes."""
    top = max(float(effect.table[f"median_{key}"].max()) for effect in found)
    if not report:
        return top, axis_unit(key, measure, [top]), measure
    return top, unit_for(top, CYCLE_UNITS) if key == LATENCY_CYCLES else (measure.scale, measure.unit), measure


def _share_labels(axes: Axes, is_first: bool, is_last: bool) -> None:
    """Remove labels that repeat those of another panel. The vertical axis keeps its labels only in the first column of
    panels, and the horizontal axis only in the last row of a block.
    """
    if not is_first:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False)
    if not is_last:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)


def _draw_effect(axes: Axes, effect: Effect, key: str, scale: tuple[float, Unit, Measure]) -> None:
    table, (top, (factor, unit), measure) = effect.table, scale
    is_even = len(table) <= MOST_LEVELS or not pandas.api.types.is_numeric_dtype(table["value"])
    x = np.arange(len(table)) if is_even else table["value"].to_numpy()
    styles: Mapping[str, dict[str, Any]] = {
        "median": {"color": "#666666", "linestyle": "--", "marker": "o", "markersize": 3},
        "best": {"color": FRONT_COLOUR, "marker": "o", "markersize": 3.5},
    }
    for kind, style in styles.items():
        axes.plot(x, table[f"{kind}_{key}"].to_numpy() / factor, linewidth=1.2, **style)
    axes.set_ylim(0, top / factor * 1.1 or 1)
    axes.set_ylabel(f"{measure.words} [{unit}]")
    axes.set_xlabel(short_layer_name(effect.axis, limit=AXIS_CHARACTERS))
    axes.grid(axis="y", linewidth=0.4, color="#cccccc")
    if is_even:
        axes.set_xlim(-0.3, len(table) - 0.7)
        _name_levels(axes, short_names([*map(value_text, table["value"].tolist())], limit=LEVEL_CHARACTERS))


def _name_levels(axes: Axes, names: Sequence[str]) -> None:
    """Write names below the axis. If there are many, some are left out. If they are long, they are slanted."""
    step = -(-len(names) // MOST_LEVELS)
    is_long = sum(len(name) + 2 for name in names[::step]) * 0.065 > PANEL_INCHES[0]
    style: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    axes.set_xticks(range(0, len(names), step), labels=names[::step], fontsize=7, **style)
