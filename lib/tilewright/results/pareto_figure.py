"""Figure of the runs of a network: energy over latency, with the Pareto front.

The size of a marker shows the area.
"""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tilewright.base.harmless import visible
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import CYCLE_UNITS, ENERGY_UNIT, OPERAND_COLOURS, lighter, unit_for
from tilewright.results.noted_figure import NUMBER_TEXT, NotedFigure
from tilewright.results.number_axes import number_axis
from tilewright.results.pareto import ComparableRuns, figures_of, pareto_table
from tilewright.results.run_point import run_label
from tilewright.results.sheet import drawn_for, sheet_inches

PLOT_INCHES, LEFT_INCHES, BOTTOM_INCHES, TABLE_GAP_INCHES = (4.6, 3.3), 0.85, 0.6, 0.3
TITLE_INCHES, SUBTITLE_INCHES = 0.55, 0.15
"""Height of the title with its margins, and of each line below it, in inches."""
COLUMN_INCHES = (0.28, 2.5, 0.95, 0.95, 0.85)
"""Widths in inches of the columns in the list next to the plot: number, run, energy, latency, area."""
LINE_INCHES = 0.17
MARKER_POINTS_SQUARED = (45.0, 520.0)
"""Sizes of the smallest and of the largest marker, in points squared."""
NUMBER_POINTS = 7.0
TURNS = tuple(np.radians(degrees) for degrees in (35, 0, 325, 145, 180, 215, 90, 270))
"""Directions from a marker in which the number of its point can be placed, as angles in radians. The preferred
direction comes first.
"""
FRONT_COLOUR, OTHER_COLOUR = OPERAND_COLOURS[0], "#999999"
SAME_POINTS = 1.5
"""Distance, in points of type, up to which two points of the plot look like one. They share a text with both
numbers."""
ROOM = 0.1
"""Margin around the points, as a share of the span of their values."""
LOG_FROM = 10.0
"""Smallest ratio (largest value / smallest value) at which an axis is logarithmic."""
MOST_RUN_CHARACTERS = 34
SUBTITLE_CHARACTERS = 150


def pareto_figure(groups: Sequence[ComparableRuns]) -> Figure:
    """Figure with the groups of one network below each other, each as a plot with a numbered list of its runs."""
    heights = [_top_inches(group) + max(PLOT_INCHES[1], _list_inches(group)) + BOTTOM_INCHES for group in groups]
    width = LEFT_INCHES + PLOT_INCHES[0] + TABLE_GAP_INCHES + sum(COLUMN_INCHES) + 0.2
    with figure_style():
        figure = NotedFigure(figsize=(width, sum(heights)))
        FigureCanvasAgg(figure)
        top = sum(heights)
        for group, height in zip(groups, heights, strict=True):
            _draw_group(figure, group, top)
            top -= height
        title = f"Energy, latency and area of {groups[0].workload}"
        lines = [line for group in groups for line in _caption(group)]
        figure.note(title, lines, lambda: pareto_table(groups), _entries(groups))
    return figure


def _entries(groups: Sequence[ComparableRuns]) -> list[Line2D]:
    """Entries of the legend of a figure for a paper."""
    pairs = [
        (size, point.area_mm2)
        for group in groups
        for size, point in zip(_marker_sizes(group), group.candidates, strict=True)
        if len(group.objectives) == 3 and point.area_mm2 is not None
    ]
    # Each plot has its own sizes, so one legend cannot explain those of several plots.
    sizes = [min(pairs), max(pairs)] if pairs and len(groups) == 1 else []
    return legend_entries(("energy", "latency"), FRONT_COLOUR) + size_entries(sizes)


def write_pareto_figures(groups: Sequence[ComparableRuns], folder: Path) -> list[Path]:
    """Write a figure for each network, `<workload>.svg` and `<workload>.png`. Returns the paths.

    If a paper is set (`drawn_for`), also write each figure for this paper.
    """
    with drawn_for(None):
        found = _written_figures(groups, folder)
    return found if sheet_inches() is None else [*found, *_written_figures(groups, folder)]


def _written_figures(groups: Sequence[ComparableRuns], folder: Path) -> list[Path]:
    """Write a figure for each network, for the paper that `drawn_for` has set, or for a report if none is set. Returns
    the paths.
    """
    by_workload: dict[str, list[ComparableRuns]] = {}
    for group in groups:
        by_workload.setdefault(group.workload, []).append(group)
    return [
        path
        for workload, own in by_workload.items()
        for path in save_figure(pareto_figure(own), folder / workload.replace("/", "_"))
    ]


def _top_inches(group: ComparableRuns) -> float:
    return TITLE_INCHES + SUBTITLE_INCHES * len(_subtitle(group))


def _list_inches(group: ComparableRuns) -> float:
    return LINE_INCHES * (len(group.candidates) + 2)


def _draw_group(figure: Figure, group: ComparableRuns, top: float) -> None:
    width, height = figure.get_size_inches()
    plot_top = top - _top_inches(group)
    bottom = plot_top - PLOT_INCHES[1]
    box = (LEFT_INCHES / width, bottom / height, PLOT_INCHES[0] / width, PLOT_INCHES[1] / height)
    axes = figure.add_axes(box)
    inches = figure.dpi_scale_trans
    figure.text(
        0.2,
        top - 0.2,
        f"Energy, latency and area of {group.workload}",
        fontsize=10,
        weight="bold",
        va="center",
        transform=inches,
    )
    for number, line in enumerate(_subtitle(group)):
        figure.text(
            0.2, top - 0.4 - SUBTITLE_INCHES * number, line, fontsize=7.5, color=GREY, va="center", transform=inches
        )
    _draw_points(axes, group)
    _draw_list(figure, group, plot_top)


def _subtitle(group: ComparableRuns) -> list[str]:
    """Lines below the title: the options in which the group differs from other groups, an explanation of the marks, and
    the assumptions, notes and warning of the group.
    """
    time = "time" if "latency_s" in group.objectives else "latency"
    by = f"energy, {time} and area (size of the marker)" if len(group.objectives) == 3 else f"energy and {time}"
    lines = textwrap.wrap(visible(group.difference), SUBTITLE_CHARACTERS, max_lines=1, placeholder=" …")
    lines.append(f"filled: on the Pareto front by {by}; line: the front in energy and latency alone")
    for line in group.lines:
        lines += textwrap.wrap(visible(line), SUBTITLE_CHARACTERS, max_lines=2, placeholder=" …")
    return lines


def _caption(group: ComparableRuns) -> Iterator[str]:
    """Lines of the caption: the explanation, and the name of the run for each number."""
    first, *others = _subtitle(group)
    yield from (f"Options of these runs: {first}" if group.difference else first, *others)
    yield "; ".join(f"{number}: {run_label(point)}" for number, point in enumerate(group.candidates, 1))


def _draw_points(axes: Axes, group: ComparableRuns) -> None:
    points = group.candidates
    energy_unit = ENERGY_UNIT
    cycle_unit = unit_for(min(point.latency_cycles for point in points), CYCLE_UNITS)
    x = np.array([point.latency_cycles / cycle_unit[0] for point in points])
    y = np.array([point.energy_pj / energy_unit[0] for point in points])
    scale_axes(axes, x, y)
    front = sorted((x[i], y[i]) for i in range(len(points)) if group.on_front(i))
    draw_stairs(axes, front, FRONT_COLOUR, 1)
    sizes = _marker_sizes(group)
    # Small markers over large ones.
    for index in sorted(range(len(points)), key=lambda index: -sizes[index]):
        on_front = group.on_front(index)
        colour = FRONT_COLOUR if on_front else OTHER_COLOUR
        face = colour if on_front else "none"
        axes.scatter(x[index], y[index], s=sizes[index], facecolor=face, edgecolor=colour, alpha=0.75, zorder=2)
    number_points(axes, x, y, sizes)
    axes.set_xlabel(f"latency [{cycle_unit[1]}]")
    axes.set_ylabel(f"energy [{energy_unit[1]}]")
    axes.grid(linewidth=0.4, color="#cccccc", which="both")


def number_points(axes: Axes, x: np.ndarray, y: np.ndarray, sizes: Sequence[float]) -> None:
    """Draw the number of each point beside its marker, in the direction with the fewest overlaps with other markers and
    numbers.
    """
    points = axes.transData.transform(np.column_stack([x, y])) * 72 / axes.figure.dpi
    radii = np.sqrt(np.array(sizes)) / 2
    taken = [(tuple(point), radius) for point, radius in zip(points, radii, strict=True)]
    for numbers in _coinciding(points):
        centre, radius = points[numbers[0]], max(radii[number] for number in numbers)
        text = ", ".join(str(number + 1) for number in numbers)
        room = NUMBER_POINTS * (0.35 + 0.25 * len(text))
        places = [centre + (radius + room) * np.array([np.cos(turn), np.sin(turn)]) for turn in TURNS]
        touched = [sum(float(np.hypot(*(place - other))) < room + r - 1 for other, r in taken) for place in places]
        best = places[touched.index(min(touched))]
        taken.append((tuple(best), room))
        axes.annotate(
            text,
            (x[numbers[0]], y[numbers[0]]),
            tuple(best - centre),
            textcoords="offset points",
            fontsize=NUMBER_POINTS,
            ha="center",
            va="center",
            zorder=3,
            gid=NUMBER_TEXT,
        )


def scale_axes(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Set the range of each axis to the `axis_range` of its values."""
    for axis, values, set_scale, set_limits in (
        (axes.xaxis, x, axes.set_xscale, axes.set_xlim),
        (axes.yaxis, y, axes.set_yscale, axes.set_ylim),
    ):
        low, high, is_log = axis_range(values)
        if is_log:
            set_scale("log")
        set_limits(low, high)
        number_axis(axis)


def axis_range(values: np.ndarray) -> tuple[float, float, bool]:
    """Triple (lower end, upper end, whether the axis is logarithmic) of an axis: the range of the values, and a margin.
    An axis is logarithmic if its values differ by a large factor. A linear axis begins at 0 if 0 is within the margin.
    """
    least, most = float(values.min()), float(values.max())
    if least > 0 and most / least >= LOG_FROM:
        return least / 1.6, most * 1.9, True
    room = ROOM * (most - least) or ROOM * most or 1.0
    return 0.0 if 0 <= least <= room else least - room, most + room, False


def draw_stairs(axes: Axes, points: Sequence[tuple[float, float]], colour: str, zorder: float) -> None:
    """Draw the border of the area that the points of the front dominate. `points` must be sorted by x. The line
    continues to the edges of the plot, so that it is visible even for a single point.
    """
    stairs = list(lower_left(points))
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    x, y = zip((stairs[0][0], top), *stairs, (right, stairs[-1][1]), strict=True)
    axes.step(x, y, where="post", color=colour, linewidth=1, zorder=zorder)


def legend_entries(objectives: Sequence[str], line_colour: str, are_filled: bool = False) -> list[Line2D]:
    """Entries of a legend for the marks of a plot: points on the front, points that are not on the front, and the line.
    `objectives` are the names of the two drawn measures. Points that are not on the front are circles or, if
    `are_filled` is true, light discs.
    """
    other = {"markerfacecolor": lighter(OTHER_COLOUR, 0.5), "markeredgecolor": "none"}
    circle = {"markerfacecolor": "none", "markeredgecolor": OTHER_COLOUR}
    disc: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5}
    return [
        Line2D([], [], markerfacecolor=FRONT_COLOUR, markeredgecolor=FRONT_COLOUR, label="on the front", **disc),
        Line2D([], [], **(other if are_filled else circle), label="not on the front", **disc),
        Line2D([], [], color=line_colour, linewidth=1, label=f"front in {' and '.join(objectives)} alone"),
    ]


def size_entries(sizes: Sequence[tuple[float, float]]) -> list[Line2D]:
    """Entries of a legend for the sizes of markers: pairs (marker size in points squared, area in mm²)."""
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "none"}
    return [
        Line2D([], [], markersize=size**0.5, markeredgecolor=GREY, label=f"area {area:.3g} mm²", **style)
        for size, area in dict.fromkeys(sizes)
    ]


def lower_left(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Points of the Pareto front in x and y. `points` must be sorted by x; a point is on the front if its y is below
    that of all earlier points.
    """
    least = float("inf")
    for x, y in points:
        if y < least:
            least = y
            yield x, y


def _marker_sizes(group: ComparableRuns) -> list[float]:
    smallest, largest = MARKER_POINTS_SQUARED
    areas = [point.area_mm2 for point in group.candidates if point.area_mm2 is not None]
    if len(group.objectives) < 3 or not areas:
        return [smallest * 1.5] * len(group.candidates)
    most = max(areas) or 1.0
    return [smallest + (largest - smallest) * (point.area_mm2 or 0.0) / most for point in group.candidates]


def _coinciding(points: np.ndarray) -> list[list[int]]:
    """Groups of points that look like one point in the figure. A group is a list of indices in `points`. `points` has
    the positions in the figure, in typographic points: array of shape (number of points, 2).
    """
    found: list[list[int]] = []
    for index, point in enumerate(points):
        near = (group for group in found if np.hypot(*(points[group[0]] - point)) <= SAME_POINTS)
        if (group := next(near, None)) is not None:
            group.append(index)
        else:
            found.append([index])
    return found


def _draw_list(figure: Figure, group: ComparableRuns, top: float) -> None:
    left = LEFT_INCHES + PLOT_INCHES[0] + TABLE_GAP_INCHES
    edges = np.cumsum([left, *COLUMN_INCHES])
    _draw_row(figure, edges, top, ("", "run", "energy [µJ]", "latency [cycles]", "area [mm²]"), weight="bold")
    for index, point in enumerate(group.candidates):
        name = textwrap.shorten(visible(run_label(point)), MOST_RUN_CHARACTERS, placeholder="…")
        cells = (str(index + 1), name, *figures_of(point))
        colour = FRONT_COLOUR if group.on_front(index) else "#666666"
        weight = "bold" if group.on_front(index) else "normal"
        _draw_row(figure, edges, top - LINE_INCHES * (index + 1), cells, color=colour, weight=weight)


def _draw_row(figure: Figure, edges: np.ndarray, y: float, cells: Sequence[str], **style: Any) -> None:
    for column, cell in enumerate(cells):
        # Names start at the left of their column, numbers end at its right.
        x, side = (edges[column], "left") if column < 2 else (edges[column + 1], "right")
        figure.text(x, y, cell, fontsize=7.5, ha=side, va="center", transform=figure.dpi_scale_trans, **style)
