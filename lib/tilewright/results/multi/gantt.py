"""Figure of the schedule: a row for each core, then a row for each link in use.

Time runs from left to right.

If a schedule has too many bars for vector shapes, the bars are drawn as an image. Each pixel then has the mean colour
of the bars in its time interval; a pixel without bars is white. The drawing time is proportional to the number of bars
plus the number of pixels.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from tilewright.base.objectives import energy_delay_product
from tilewright.base.proof import ALLOWED_ALLOCATIONS
from tilewright.base.report_files import SCHEDULE_DOTS_PER_INCH
from tilewright.base.units import energy_text, number_text
from tilewright.multicore.scheduling.problem import Integers
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import (
    CYCLE_UNITS,
    EDP_UNIT,
    LAYER_COLOURS,
    NO_LAYER_COLOUR,
    layer_colour,
    text_colour,
    unit_for,
)
from tilewright.results.multi.bars import CATEGORIES, CORE, NODE_BAR, ScheduleTable, ScheduleView, schedule_table
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.noted_figure import SMALL_TEXT, NotedFigure, name_axes
from tilewright.results.number_axes import number_axis
from tilewright.results.schedule_options import ScheduleFigureOptions
from tilewright.results.words import short_names

Floats = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]
DARKER = 0.5
"""Share of black in the lines of a hatch."""
LIGHTER = 0.22
"""Share of white mixed into the colour of every second CN of a core. Neighbouring CNs of one layer can thus be told
apart.
"""
PALETTE = np.array([to_rgb(colour) for colour in (*LAYER_COLOURS, NO_LAYER_COLOUR)])


def hatch_masks(height: int, width: int) -> npt.NDArray[np.bool_]:
    """Array of shape (categories, height, width): True for the pixels that the hatch of a category darkens. The hatches
    look like those of vector shapes.
    """
    y, x = np.mgrid[0:height, 0:width]
    masks = (
        y % 9 < 2,
        np.zeros((height, width), np.bool_),
        ((x + y) % 14 < 2) | ((x - y) % 14 < 2),
        (x + y) % 10 < 2,
        (x % 9 < 2) | (y % 9 < 2),
        x % 9 < 2,
    )
    assert len(masks) == len(CATEGORIES)
    return np.array(masks)


def strips(
    table: ScheduleTable, window: tuple[float, float], width: int, row_heights: Sequence[int], gap: int
) -> Image:
    """Image of the rows of a table, one below the other with white gaps, as an array (height, width, 3 colours).
    `window` is the interval of cycles that fills `width` pixels. `row_heights` are in pixels and include the gap.
    """
    lanes = np.array([row.lanes for row in table.rows], np.int64)
    first_lane = np.cumsum(lanes) - lanes
    colour, share, hatched = _coverage(table, window, width, first_lane[table.row] + table.lane, int(lanes.sum()))
    image = np.full((sum(row_heights), width, 3), 255, np.uint8)
    top = 0
    for number, height in enumerate(row_heights):
        inner = height - gap
        masks = hatch_masks(inner, width)
        # Lane of each line of pixels.
        line = first_lane[number] + np.arange(inner) * int(lanes[number]) // inner
        dark = np.einsum("chw,hcw->hw", masks, hatched[line], optimize=True) * DARKER
        pixels = colour[line] * (1 - dark[..., None]) + (1 - share[line])[..., None]
        image[top + gap // 2 : top + gap // 2 + inner] = np.round(np.clip(pixels, 0, 1) * 255)
        top += height
    return image


def _coverage(
    table: ScheduleTable, window: tuple[float, float], width: int, lane: npt.NDArray[np.int64], lanes: int
) -> tuple[Floats, Floats, Floats]:
    """Coverage of the pixels of each lane, as three arrays of shapes (lanes, width, 3), (lanes, width) and (lanes,
    categories, width):

    * Sum of the colours of all bars in the pixel. Each bar counts with the share of the pixel that it covers.
    * Share of the pixel that the bars cover.
    * Share of the covered part of the pixel that belongs to bars of the category.
    """
    scale = width / (window[1] - window[0])
    left = np.clip((table.start_cycles - window[0]) * scale, 0.0, float(width))
    right = np.clip((table.end_cycles - window[0]) * scale, 0.0, float(width))
    seen = np.flatnonzero(right > left)
    left, right = left[seen], right[seen]
    first = np.minimum(left.astype(np.int64), width - 1)
    count = np.maximum(np.ceil(right).astype(np.int64), first + 1) - first
    bar = np.repeat(np.arange(len(seen)), count)
    pixel = first[bar] + np.arange(len(bar)) - np.repeat(np.cumsum(count) - count, count)
    part = np.minimum(right[bar], pixel + 1) - np.maximum(left[bar], pixel)
    place = lane[seen][bar] * width + pixel
    cells = lanes * width
    layer, category = table.layer[seen], table.category[seen]
    paint = PALETTE[np.where(layer >= 0, layer % len(LAYER_COLOURS), len(LAYER_COLOURS))]
    every_second = (table.kind[seen] == NODE_BAR) & (seen % 2 == 1)
    paint = np.where(every_second[:, None], paint + (1 - paint) * LIGHTER, paint)
    colour: Floats = np.stack([np.bincount(place, part * paint[bar, c], cells) for c in range(3)], axis=-1)
    share = np.bincount(place, part, cells).astype(np.float64)
    hatched = np.zeros((lanes, len(CATEGORIES), width))
    for number in range(len(CATEGORIES)):
        of_category = (category == number)[bar]
        filled = np.bincount(place[of_category], part[of_category], cells)
        hatched[:, number] = (filled / np.where(share > 0, share, 1)).reshape(lanes, width)
    return colour.reshape(lanes, width, 3), share.reshape(lanes, width), hatched


Summary = Mapping[str, Any]
CATEGORY_HATCHES = ("-----", "", "xxxx", "/////", "++++", "|||||")
"""Hatches by index in CATEGORIES. All hatches consist of lines: circles would make an SVG file twice as large."""
SECTIONS = ((0.0, 0.05), (0.475, 0.525), (0.95, 1.0))
"""Sections of a schedule, as shares of its latency, that are drawn if the schedule is not drawn in full."""
MOST_SHAPES = 2500
"""Largest number of bars in a panel that are drawn as shapes. If a panel has more bars, all its bars are drawn as an
image.
"""
IMAGE_DOTS_PER_INCH = 100
"""Resolution in dots per inch of images of bars, and of the whole figure as PNG."""
WIDTH_INCHES, RIGHT_INCHES, TOP_INCHES, AXIS_INCHES, GAP_INCHES = 16.0, 0.6, 0.75, 0.45, 0.25
CORE_INCHES, LINK_INCHES, LANE_INCHES, MOST_ROW_INCHES = 0.36, 0.24, 0.1, 1.2
ROW_GAP_INCHES = 0.05
ROW_CHARACTER_INCHES, LEGEND_CHARACTER_INCHES = 0.062, 0.058
LEGEND_ROW_INCHES = 0.17
LABEL_CHARACTER_INCHES, LABEL_POINTS = 0.056, 6.0
MOST_ROW_CHARACTERS = 34


def schedule_figure(
    view: ScheduleView,
    summary: Summary | None = None,
    plot_full_schedule: bool = ScheduleFigureOptions.plot_full_schedule,
    plot_data_transfer: bool = ScheduleFigureOptions.plot_data_transfer,
    table: ScheduleTable | None = None,
) -> Figure:
    """Gantt chart. A CN has the colour of its layer. A transfer has the colour of the layer of its data, and a hatch
    for its category.

    If `plot_full_schedule` is false, the chart shows three sections of 5 % each (beginning, middle, end). If
    `plot_data_transfer` is false, it has no rows of links.
    """
    table = table or schedule_table(view)
    if not plot_data_transfer:
        table = table.rows_of(CORE)
    with figure_style():
        return _Drawing(view, table, summary, plot_full_schedule).draw()


def write_schedule_figure(
    view: ScheduleView,
    path_stem: Path,
    summary: Summary | None = None,
    options: ScheduleFigureOptions = ScheduleFigureOptions(),  # noqa: B008  frozen
    table: ScheduleTable | None = None,
) -> tuple[Path, ...]:
    """Write the Gantt chart as `path_stem`.svg and .png, or for a paper as the files of `figure_suffixes`. Returns the
    paths.
    """
    figure = schedule_figure(view, summary, **options.as_dict(), table=table)
    return save_figure(figure, path_stem, SCHEDULE_DOTS_PER_INCH)


def reported_schedule(run: ReportedSchedule) -> Figure:
    """Gantt chart, for the report of a run."""
    return schedule_figure(run.view, run.summary, **run.options.as_dict(), table=run.table)


def totals_line(latency_cycles: int, energy_pj: float, summary: Summary | None) -> str:
    """Line with latency, energy, EDP, and gap to the lower bound."""
    edp = energy_delay_product(energy_pj, latency_cycles)
    parts = [
        f"latency {latency_cycles:,} cycles",
        f"energy {energy_text(energy_pj)}",
        f"EDP {number_text(edp / EDP_UNIT[0])} {EDP_UNIT[1]}",
    ]
    if summary is not None and summary.get("gap_latency") is not None:
        gap = f"{100 * summary['gap_latency']:.1f} %"
        parts.append(
            f"gap of the latency to its lower bound over {ALLOWED_ALLOCATIONS}: {gap} (other tilings may be faster)"
        )
    return "     ".join(parts)


def schedule_title(view: ScheduleView) -> str:
    """Title of a schedule: its network and its accelerator."""
    return f"Schedule of {view.names.network} on {view.names.accelerator}"


class _Drawing:
    """Sizes of a Gantt chart, and the parts that it draws."""

    def __init__(self, view: ScheduleView, table: ScheduleTable, summary: Summary | None, full: bool) -> None:
        self.view, self.table, self.summary = view, table, summary
        sections = ((0.0, 1.0),) if full else SECTIONS
        latency = max(table.latency_cycles, 1)
        self.windows = [(first * latency, last * latency) for first, last in sections]
        self.heights = [_row_inches(row.kind, row.lanes) for row in table.rows]
        names = [_shortened(row.name) for row in table.rows]
        self.left = 0.3 + ROW_CHARACTER_INCHES * max(map(len, names), default=0)
        self.names = names
        self.layers, self.categories = self._legend_entries()
        entries = [*self.layers.values(), *self.categories.values()]
        self.entry_inches = 0.45 + LEGEND_CHARACTER_INCHES * max(map(len, entries), default=1)
        self.columns = max(1, int((WIDTH_INCHES - 0.3) / self.entry_inches))
        rows = -(-len(self.layers) // self.columns) + -(-len(self.categories) // self.columns)
        self.legend_inches = 0.2 + LEGEND_ROW_INCHES * (rows + 1)
        self.panel_inches = max(sum(self.heights), CORE_INCHES)
        self.height = TOP_INCHES + self.panel_inches + AXIS_INCHES + self.legend_inches

    def draw(self) -> Figure:
        figure = NotedFigure(figsize=(WIDTH_INCHES, self.height))
        FigureCanvasAgg(figure)
        gaps = GAP_INCHES * (len(self.windows) - 1)
        width = (WIDTH_INCHES - self.left - RIGHT_INCHES - gaps) / len(self.windows)
        floor = self.legend_inches + AXIS_INCHES
        unit = unit_for(self.windows[-1][1], CYCLE_UNITS)
        for number, window in enumerate(self.windows):
            x = self.left + number * (width + GAP_INCHES)
            box = (x / WIDTH_INCHES, floor / self.height, width / WIDTH_INCHES, self.panel_inches / self.height)
            panel = figure.add_axes(box)
            self._frame(panel, window, unit, number == 0)
            self._bars(panel, window, width)
        self._busy_shares(figure)
        self._texts(figure)
        self._legend(figure)
        return figure

    def _frame(self, panel: Axes, window: tuple[float, float], unit: tuple[float, str], is_first: bool) -> None:
        """Set up the axes of a panel. The vertical axis has the rows, from the top downwards, in inches. The horizontal
        axis has the time, in the unit `unit`.
        """
        panel.set_xlim(*window)
        panel.set_ylim(self.panel_inches, 0)
        edges = np.cumsum([0.0, *self.heights])
        middles = (edges[1:] + edges[:-1]) / 2
        panel.set_yticks(middles, labels=self.names if is_first else [""] * len(self.names))
        panel.tick_params(axis="y", length=0)
        number_axis(panel.xaxis, scale=unit[0])
        panel.set_xlabel(f"time [{unit[1]}]")
        panel.grid(axis="x", linewidth=0.4, color="#cccccc")
        for edge in edges:
            panel.axhline(edge, linewidth=0.4, color="#e2e2e2", zorder=0)
        panel.spines["left"].set_visible(False)
        name_axes(panel, "", "core" if all(row.kind == CORE for row in self.table.rows) else "core or link")

    def _bars(self, panel: Axes, window: tuple[float, float], inches: float) -> None:
        table = self.table
        seen = np.flatnonzero((table.end_cycles > window[0]) & (table.start_cycles < window[1]))
        top, bottom = self._places(seen)
        if len(seen) > MOST_SHAPES:
            pixels = [round(height * IMAGE_DOTS_PER_INCH) for height in self.heights]
            gap = round(ROW_GAP_INCHES * IMAGE_DOTS_PER_INCH)
            image = strips(table, window, round(inches * IMAGE_DOTS_PER_INCH), pixels, gap)
            extent = (window[0], window[1], sum(pixels) / IMAGE_DOTS_PER_INCH, 0.0)
            panel.imshow(image, aspect="auto", extent=extent, interpolation="none", zorder=1)
            panel.set_xlim(*window)
            panel.set_ylim(self.panel_inches, 0)
        else:
            self._shapes(panel, seen, top, bottom)
        self._labels(panel, window, inches, seen, top, bottom)

    def _places(self, bars: Integers) -> tuple[np.ndarray, np.ndarray]:
        """Pair of arrays (top, bottom), each with one entry for each bar in `bars`. Both are distances from the top of
        the panel, in inches.
        """
        table = self.table
        heights = np.array(self.heights) - ROW_GAP_INCHES
        tops = np.cumsum([0.0, *self.heights])[:-1] + ROW_GAP_INCHES / 2
        lanes = np.array([row.lanes for row in table.rows])
        row = table.row[bars]
        lane_height = (heights / lanes)[row] if len(lanes) else np.zeros(0)
        top = tops[row] + table.lane[bars] * lane_height if len(lanes) else np.zeros(0)
        return top, top + lane_height

    def _shapes(self, panel: Axes, bars: Integers, top: np.ndarray, bottom: np.ndarray) -> None:
        table = self.table
        left, right = table.start_cycles[bars], table.end_cycles[bars]
        corners = np.stack(
            [np.stack(pair, axis=-1) for pair in ((left, top), (right, top), (right, bottom), (left, bottom))], axis=1
        )
        colours = np.array([layer_colour(layer) for layer in table.layer[bars].tolist()])
        for category in np.unique(table.category[bars]).tolist():
            own = table.category[bars] == category
            hatch = CATEGORY_HATCHES[category] if category >= 0 else ""
            look: dict[str, Any] = {"edgecolors": "#ffffff" if category < 0 else "#00000080", "linewidths": 0.25}
            panel.add_collection(
                PolyCollection(corners[own], facecolors=colours[own], hatch=hatch or None, zorder=2, **look)
            )

    def _labels(
        self,
        panel: Axes,
        window: tuple[float, float],
        inches: float,
        bars: Integers,
        top: np.ndarray,
        bottom: np.ndarray,
    ) -> None:
        """Write the name of each CN in its bar if the bar is wide enough."""
        table, view = self.table, self.view
        scale = inches / (window[1] - window[0])
        left, right = np.maximum(table.start_cycles[bars], window[0]), np.minimum(table.end_cycles[bars], window[1])
        room = (right - left) * scale
        for place in np.flatnonzero((table.kind[bars] == NODE_BAR) & (room > 3 * LABEL_CHARACTER_INCHES)).tolist():
            name = view.node_name(int(table.item[bars[place]]))
            if len(name) * LABEL_CHARACTER_INCHES + 0.04 <= room[place]:
                colour = text_colour(layer_colour(int(table.layer[bars[place]])))
                x, y = (left[place] + right[place]) / 2, (top[place] + bottom[place]) / 2
                style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "clip_on": True}
                panel.text(x, y, name, fontsize=LABEL_POINTS, color=colour, zorder=3, gid=SMALL_TEXT, **style)

    def _busy_shares(self, figure: Figure) -> None:
        """Write next to each row the share of the time in which the row has a bar."""
        x, top = WIDTH_INCHES - RIGHT_INCHES + 0.08, self.height - TOP_INCHES
        style: dict[str, Any] = {"fontsize": 7, "color": GREY, "va": "center", "transform": figure.dpi_scale_trans}
        figure.text(x, top + 0.1, "busy", **style)
        for row, height in zip(self.table.rows, self.heights, strict=True):
            share = row.busy_cycles / max(self.table.latency_cycles, 1)
            figure.text(x, top - height / 2, f"{100 * share:.1f} %", **style)
            top -= height

    def _texts(self, figure: NotedFigure) -> None:
        schedule = self.view.schedule
        lines = [totals_line(schedule.latency_cycles, schedule.energy_pj, self.summary)]
        if len(self.windows) > 1:
            shares = ", ".join(f"{100 * first:g} to {100 * last:g} %" for first, last in SECTIONS)
            lines.append(f"three sections: {shares} of the latency")
        x = 0.2 / WIDTH_INCHES
        figure.note(schedule_title(self.view), lines, self._numbers, self._patches())
        figure.text(x, 1 - 0.2 / self.height, schedule_title(self.view), fontsize=10, weight="bold", va="center")
        for number, line in enumerate(lines):
            y = 1 - (0.4 + 0.16 * number) / self.height
            figure.text(x, y, line, fontsize=8, color=GREY, va="center")

    def _legend_entries(self) -> tuple[dict[int, str], dict[int, str]]:
        """Texts of the legend for all bars in the rows, as two dicts: text by layer, and text by category of data
        movement.
        """
        names, types = self.view.names.layer_names, self.view.names.layer_operator_types
        short = short_names(names, types)
        layers = {
            layer: f"{layer} {short[layer]}" if layer >= 0 else "of no layer"
            for layer in np.unique(self.table.layer).tolist()
        }
        found = np.unique(self.table.category).tolist()
        return layers, {category: CATEGORIES[category] for category in found if category >= 0}

    def _numbers(self) -> pandas.DataFrame:
        """Table of the bars: row, layer, start and end."""
        table, names = self.table, self.view.names.layer_names
        columns = {
            "row": [table.rows[row].name for row in table.row.tolist()],
            "layer": [names[layer] if layer >= 0 else "" for layer in table.layer.tolist()],
            "start_cycles": table.start_cycles,
            "end_cycles": table.end_cycles,
        }
        return pandas.DataFrame(columns)

    def _looks(self) -> tuple[list[tuple[dict[str, Any], str]], list[tuple[dict[str, Any], str]]]:
        """Legend entries as a pair of lists: entries of the layers, entries of the categories. An entry is a pair
        (style, text).
        """
        plain: dict[str, Any] = {"linewidth": 0}
        layers = [({"facecolor": layer_colour(layer), **plain}, text) for layer, text in self.layers.items()]
        grey: dict[str, Any] = {"facecolor": "#dddddd", "edgecolor": GREY, "linewidth": 0.4}
        categories = [
            ({"hatch": CATEGORY_HATCHES[category] or None, **grey}, text) for category, text in self.categories.items()
        ]
        return layers, categories

    def _patches(self) -> list[Patch]:
        """Entries of the legend."""
        return [Patch(label=text, **style) for entries in self._looks() for style, text in entries]

    def _legend(self, figure: Figure) -> None:
        """Draw two legends below the axis, in columns: layers, then categories."""
        layers, categories = self._looks()
        y = self.legend_inches - 0.1
        for entries in (layers, categories):
            for number, (style, text) in enumerate(entries):
                left, middle = (
                    0.2 + number % self.columns * self.entry_inches,
                    y - number // self.columns * LEGEND_ROW_INCHES,
                )
                box = Rectangle((left, middle - 0.05), 0.24, 0.1, transform=figure.dpi_scale_trans, **style)
                figure.add_artist(box)
                figure.text(left + 0.3, middle, text, fontsize=7, va="center", transform=figure.dpi_scale_trans)
            y -= LEGEND_ROW_INCHES * (-(-len(entries) // self.columns) + 0.35)


def _row_inches(kind: str, lanes: int) -> float:
    least = CORE_INCHES if kind == CORE else LINK_INCHES
    return min(max(least, LANE_INCHES * lanes + ROW_GAP_INCHES), MOST_ROW_INCHES)


def _shortened(name: str) -> str:
    return name if len(name) <= MOST_ROW_CHARACTERS else name[: MOST_ROW_CHARACTERS - 1] + "…"
