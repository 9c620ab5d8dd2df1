"""Figures (plots) of the results of a space: the front of each network, and the effect of each axis."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tilewright.base.errors import count_of
from tilewright.base.harmless import visible
from tilewright.base.measures import AREA_MM2
from tilewright.designs.answer import Answer, values_text
from tilewright.designs.columns import ON_FRONT
from tilewright.designs.effects import effects, known_measures, marked_designs
from tilewright.designs.effects_figure import effect_figure
from tilewright.designs.figure_texts import SUBTITLE_INCHES, assumed_line, assumption_lines, axis_unit, titled_figure
from tilewright.designs.front import STEPS, Front, drawn_rows, order_of_sample, spread
from tilewright.designs.results import file_word
from tilewright.designs.tables import front_line
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import Unit
from tilewright.results.other_widths import remove_files
from tilewright.results.pareto_figure import (
    FRONT_COLOUR,
    OTHER_COLOUR,
    axis_range,
    draw_stairs,
    legend_entries,
    number_points,
    scale_axes,
    size_entries,
)
from tilewright.results.sheet import FIGURE_ENDS, WIDTHS_INCHES, drawn_for, sheet_inches
from tilewright.results.words import short_names

MOST_POINTS = 5000
"""Largest number of points in a figure. Each point is drawn as a separate object."""
MANY_POINTS = 300
"""Number of points above which points are drawn smaller."""
MOST_LISTED = 20
_ENDS = (".svg", ".png", *(f"-{width}{suffix}" for width in WIDTHS_INCHES for suffix in FIGURE_ENDS))
"""Endings of the file names of figures, including those of the data files beside figures for a paper."""
LEFT_INCHES, PLOT_INCHES, BOTTOM_INCHES, GAP_INCHES = 0.85, (4.8, 3.6), 0.6, 0.3
NUMBER_INCHES, CHARACTER_INCHES = 0.3, 0.062
"""Widths in inches for the list beside the plot: width of the number column, and width of one character in the other
columns.
"""
MEASURE_INCHES, LINE_INCHES = 1.0, 0.17
TITLE_INCHES = 9.5
"""Width in inches that the title needs."""
VALUE_CHARACTERS, NAME_CHARACTERS = 100, 32
MARKER_POINTS_SQUARED = (16.0, 150.0)
"""Marker sizes in points squared, for the smallest and the largest area."""
MARK_POINTS_SQUARED = 22.0
"""Size in points squared of the diamond of a named design in a figure for a paper."""
DIAMOND: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.8}
"""Style of the diamond of a named design in a figure for a paper."""
LINE_COLOUR = "#00324f"
"""Colour of the line of the front, darker than the discs on the front."""


def write_figures(answer: Answer, folder: Path) -> tuple[Path, ...]:
    """Write the figures `front-<network>` and `effect-<network>` with `save_figure`. Returns the paths of the files.

    If designs can be compared, there are figures for each network and for all networks together. Figures of networks
    that the answer no longer has are removed; files of another width for a paper stay if they show the same numbers.
    """
    order = order_of_sample(answer.exploration.table)
    found: list[Path] = []
    stems: list[str] = []
    for front in answer.fronts:
        name = file_word(front.network)
        if len(front.members):
            stems.append(f"front-{name}")
            drawn = drawn_rows(front, MOST_POINTS, order)
            found += save_figure(front_figure(answer, front, drawn), folder / stems[-1])
        if own := effects(front, answer.exploration.axis_names):
            stems.append(f"effect-{name}")
            found += save_figure(effect_figure(answer, front, own), folder / stems[-1])
    _remove_others(folder, stems)
    return tuple(found)


def _remove_others(folder: Path, stems: Sequence[str]) -> None:
    """Remove the files of all figures of fronts and effects except those with the names `stems`."""
    kept = {stem + end for stem in stems for end in _ENDS}
    before = {path for end in _ENDS for kind in ("front", "effect") for path in folder.glob(f"{kind}-*{end}")}
    remove_files(path for path in before if path.name not in kept)


def write_all_figures(answer: Answer, folder: Path) -> tuple[Path, ...]:
    """Write the figures of a report. If the files are made for a paper (`results.sheet`), also write the figures for
    the paper. Returns the paths of all files.
    """
    with drawn_for(None):
        found = write_figures(answer, folder)
    return found if sheet_inches() is None else (*found, *write_figures(answer, folder))


def front_figure(answer: Answer, front: Front, drawn: pandas.DataFrame) -> Figure:
    """Figure of the designs over two objectives.

    A list beside the plot names up to MOST_LISTED designs on the front and numbers them. The same numbers mark these
    designs in the plot. A figure for a paper has no list: it marks the designs of `marked_designs`.
    """
    y, x = _two_measures(front)
    listed = spread(front.members, MOST_LISTED, [*marked_designs(front)])
    measures = [*dict.fromkeys((*front.objectives, y, x))]
    outside = _outside_line(drawn, x, y)
    lines = [*_front_lines(front, len(drawn), len(listed)), *outside, *assumption_lines(answer)]
    cells = [*_cells(answer, front, listed, measures)]
    edges = _edges(cells)
    width = max(edges[-1] + 0.2, TITLE_INCHES)
    plot_height = max(PLOT_INCHES[1], LINE_INCHES * (len(listed) + 1))
    top = 0.5 + SUBTITLE_INCHES * len(lines)
    with figure_style():
        figure = titled_figure(
            width,
            top + plot_height + BOTTOM_INCHES,
            f"Designs of the space {answer.exploration.name}: {front.network}",
            lines,
        )
        named = marked_designs(front)
        told = "; ".join(f"{number}: {name}, {roles}" for number, (name, roles) in enumerate(named.items(), 1))
        caption = [*_front_lines(front, len(drawn), len(front.members)), *outside, f"diamonds: {told}"]
        entries = _entries(front, drawn, x, y)
        figure.note(figure.caption_title, caption, lambda: drawn, entries, [*answer.warnings, assumed_line(answer)])
        _, height = figure.get_size_inches()
        plot_bottom = height - top - PLOT_INCHES[1]
        box = (LEFT_INCHES / width, plot_bottom / height, PLOT_INCHES[0] / width, PLOT_INCHES[1] / height)
        axes = figure.add_axes(box)
        _draw_points(axes, front, drawn, x, y)
        numbered = front.rows.set_index("design", drop=False).loc[[*named]] if sheet_inches() else listed
        points = [numbered[key].to_numpy() / _unit(front, drawn, key)[0] for key in (x, y)]
        sizes = _sizes(front, numbered, drawn)
        if sheet_inches():
            sizes = np.full(len(numbered), MARK_POINTS_SQUARED)
            # Diamonds have no filling, so that those that lie upon one another stay visible.
            axes.scatter(points[0], points[1], s=sizes, marker="D", facecolor="none", **DIAMOND, zorder=4)
        # The corners of a diamond are farther from its centre than the edge of a disc of the same size.
        areas = sizes * 2 if sheet_inches() else sizes
        figure.place_numbers = lambda: number_points(axes, points[0], points[1], areas.tolist())
        if not sheet_inches():
            figure.place_numbers()
        for number, row in enumerate(cells):
            _draw_row(figure, edges, height - top - LINE_INCHES * number, row, "normal" if number else "bold")
    return figure


def _entries(front: Front, drawn: pandas.DataFrame, x: str, y: str) -> list[Line2D]:
    """Entries of the legend of a figure for a paper: the marks that the figure has, and the sizes of the smallest and
    of the largest drawn area.
    """
    found = legend_entries([front.measures[key].words for key in (y, x)], LINE_COLOUR, len(drawn) > MANY_POINTS)
    if not (drawn["unmet"] == "").all():
        cross: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 4, "color": OTHER_COLOUR}
        found.append(Line2D([], [], label="constraint not met", **cross))
    diamond: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": MARK_POINTS_SQUARED**0.5}
    style = {"markeredgecolor": DIAMOND["edgecolor"], "markeredgewidth": DIAMOND["linewidth"]}
    found.append(Line2D([], [], markerfacecolor="none", label="named in the caption", **diamond, **style))
    if AREA_MM2 in front.objectives[2:]:
        met = _met(drawn)
        areas = [float(met[AREA_MM2].min()), float(met[AREA_MM2].max())]
        sizes = _sizes(front, pandas.DataFrame({AREA_MM2: areas}), drawn)
        found += size_entries([*zip(sizes.tolist(), areas, strict=True)])
    return found


def _two_measures(front: Front) -> tuple[str, str]:
    """Pair (measure on the vertical axis, measure on the horizontal axis): the first two objectives. If there is only
    one objective, another measure is added.
    """
    others = [key for key in known_measures(front) if key not in front.objectives]
    first, second, *_ = *front.objectives, *others
    return first, second


def _front_lines(front: Front, drawn: int, listed: int) -> list[str]:
    lines = [f"{front_line(front)}; filled: on the front; line: the front for the two drawn measures alone"]
    if AREA_MM2 in front.objectives[2:]:
        lines[0] += "; size: area"
    if len(front.compared) < len(front.rows):
        lines[0] += "; cross: constraint not met"
    if drawn < len(front.rows):
        lines.append(
            f"drawn: {drawn:,} of {len(front.rows):,} designs: the front and a random sample of the other designs"
        )
    if listed < len(front.members):
        lines.append(f"numbered: {listed} of the {len(front.members):,} designs on the front, {STEPS}")
    return [*lines, *filter(None, [front.note])]


def _met(drawn: pandas.DataFrame) -> pandas.DataFrame:
    """Rows of the designs that meet all constraints; all rows if there are no such designs. Only these rows set the
    axes of the figure: a design that meets no constraint can be far from all others.
    """
    is_met = drawn["unmet"] == ""
    return drawn[is_met] if is_met.any() else drawn


def _outside_line(drawn: pandas.DataFrame, x: str, y: str) -> list[str]:
    """Line on the designs that lie outside of the axes; [] if there are none."""
    is_inside = np.ones(len(drawn), dtype=np.bool_)
    for key in (x, y):
        low, high, _ = axis_range(_met(drawn)[key].to_numpy())
        is_inside &= (drawn[key] >= low).to_numpy() & (drawn[key] <= high).to_numpy()
    if is_inside.all():
        return []
    count = count_of(len(drawn) - int(is_inside.sum()), "design")
    return [f"outside of the axes: {count} with a constraint that is not met"]


def _draw_points(axes: Axes, front: Front, drawn: pandas.DataFrame, x_key: str, y_key: str) -> None:
    x, y = (drawn[key].to_numpy() / _unit(front, drawn, key)[0] for key in (x_key, y_key))
    shown = _met(drawn)
    scale_axes(axes, *(shown[key].to_numpy() / _unit(front, drawn, key)[0] for key in (x_key, y_key)))
    is_front, is_met = drawn[ON_FRONT].to_numpy(), (drawn["unmet"] == "").to_numpy()
    many = len(drawn) > MANY_POINTS
    sizes = _sizes(front, drawn, drawn)
    plain = {"facecolor": OTHER_COLOUR if many else "none", "edgecolor": "none" if many else OTHER_COLOUR}
    styles: tuple[tuple[np.ndarray, dict[str, Any]], ...] = (
        (~is_met, {"marker": "x", "color": OTHER_COLOUR, "alpha": 0.4, "linewidth": 0.6}),
        (is_met & ~is_front, {**plain, "alpha": (0.2 if sheet_inches() else 0.35) if many else 0.75, "linewidth": 0.6}),
        (is_front, {"facecolor": FRONT_COLOUR, "edgecolor": "white", "alpha": 0.8, "linewidth": 0.4}),
    )
    for are_of, style in styles:
        # Small markers over large ones.
        rows = np.flatnonzero(are_of)[np.argsort(-sizes[are_of], kind="stable")]
        axes.scatter(x[rows], y[rows], s=sizes[rows], rasterized=many, zorder=2, **style)
    # The line is above the discs, because it would be hidden below them.
    draw_stairs(axes, sorted(zip(x[is_front].tolist(), y[is_front].tolist(), strict=True)), LINE_COLOUR, 3)
    axes.set_xlabel(f"{front.measures[x_key].words} [{_unit(front, drawn, x_key)[1]}]")
    axes.set_ylabel(f"{front.measures[y_key].words} [{_unit(front, drawn, y_key)[1]}]")
    axes.grid(linewidth=0.4, color="#cccccc", which="both")


def _unit(front: Front, drawn: pandas.DataFrame, key: str) -> Unit:
    """Pair (divisor, unit) for the axis of the figure that shows the column `key`. A value of the column, divided by
    the divisor, is in this unit.
    """
    met = _met(drawn)[key]
    return axis_unit(key, front.measures[key], [float(met.min()), float(met.max())])


def _sizes(front: Front, rows: pandas.DataFrame, drawn: pandas.DataFrame) -> np.ndarray:
    """Marker sizes in points squared, one for each of `rows`: array of shape (rows,).

    If the area is an objective, but on no axis of the figure, the size grows linearly with the area. The largest area
    in `drawn` of a design that meets all constraints then has the largest marker, and so have all larger areas.
    Otherwise, all markers have the smallest size.
    """
    smallest, largest = MARKER_POINTS_SQUARED
    if len(drawn) > MANY_POINTS:
        largest = largest / 3
    if sheet_inches():
        smallest, largest = smallest / 4, largest / 2
    if AREA_MM2 not in front.objectives[2:]:
        return np.full(len(rows), smallest)
    areas: np.ndarray = rows[AREA_MM2].fillna(0.0).to_numpy()
    return smallest + (largest - smallest) * np.minimum(1.0, areas / (float(_met(drawn)[AREA_MM2].max()) or 1.0))


def _cells(
    answer: Answer, front: Front, listed: pandas.DataFrame, measures: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Cells of the list beside the plot. The first row has the headings."""
    yield "", "design", "values", *(front.measures[key].title for key in measures)
    rows = listed.to_dict("records")
    names = short_names([row["design"] for row in rows], limit=NAME_CHARACTERS)
    for number, (row, name) in enumerate(zip(rows, names, strict=True), 1):
        yield (
            str(number),
            name,
            textwrap.shorten(
                visible(values_text(row, answer.exploration.axis_names)), VALUE_CHARACTERS, placeholder=" …"
            ),
            *(front.measures[key].text(row[key]) for key in measures),
        )


def _edges(cells: Sequence[tuple[str, ...]]) -> np.ndarray:
    """Positions of the column edges of the list beside the plot, in inches: the left edge of each column, then the
    right edge of the last column.
    """
    left = LEFT_INCHES + PLOT_INCHES[0] + GAP_INCHES
    texts = [max(len(row[column]) for row in cells) * CHARACTER_INCHES + 0.15 for column in (1, 2)]
    return np.cumsum([left, NUMBER_INCHES, *texts, *[MEASURE_INCHES] * (len(cells[0]) - 3)])


def _draw_row(figure: Figure, edges: np.ndarray, y: float, cells: Sequence[str], weight: str) -> None:
    for column, cell in enumerate(cells):
        # Texts start at the left of their column, numbers end at its right.
        x, side = (edges[column], "left") if column < 3 else (edges[column + 1], "right")
        figure.text(x, y, cell, fontsize=7.5, ha=side, va="center", weight=weight, transform=figure.dpi_scale_trans)
