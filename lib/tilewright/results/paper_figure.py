"""Layout of a figure for a paper: fixed width, text of at least 6 points, labels on all axes, and no title.

A figure of a report is too wide for a column of a paper, and a scaled figure would have unreadable text. The panels are
therefore arranged again. All sizes are measured on the drawn figure, so no text is cut off.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import Bbox

from tilewright.base.errors import InputError, Problem
from tilewright.results.name_lines import MOST_LINES, break_names, names_inches
from tilewright.results.noted_figure import NUMBER_TEXT, PANEL_TEXT, SMALL_TEXT, TITLE_TEXT, NotedFigure, sentence
from tilewright.results.number_axes import LEAST_LABELS, DistinctFormatter, labels, number_axis
from tilewright.results.sheet import LEAST_POINTS, PAGE_INCHES, SHEET_HEIGHT_INCHES

MOST_POINTS, TICK_POINTS, LABEL_POINTS = 7.5, 6.5, 7.0
MARGIN_INCHES, GAP_INCHES = 0.04, 0.1
"""Sizes in inches: margin of the page, and gap between panels."""
LEAST_PLOT_INCHES, LEAST_NAMED_INCHES, LEAST_HEIGHT_INCHES = 1.1, 0.75, 0.3
"""Sizes in inches of a panel without its texts: smallest width of a panel beside another panel, smallest width beside
names of rows, and smallest height.
"""
HEIGHT_TO_WIDTH, CATEGORY_SCALE = 0.72, 0.8
"""Proportions of a panel. HEIGHT_TO_WIDTH is the largest ratio of height to width if both axes have numbers.
CATEGORY_SCALE multiplies the height of a panel with a row for each name, because the text of such a panel is
smaller.
"""
MOST_LEGEND_COLUMNS, ROUNDS = 6, 3
LEAST_GAP_INCHES = 0.03
"""Smallest gap between the numbers of a horizontal axis, in inches."""
CHARACTER_INCHES = 0.054
"""Width of a character in an axis label, in inches."""
_UNIT = re.compile(r"\[[^]]*\]")
"""Pattern of a unit in an axis label. No line of the label ends within a unit."""


@dataclass(frozen=True, eq=False)
class _Panel:
    """Panel of a figure, with its matplotlib axes, its row in the report, and its height. Several axes in one rectangle
    form one panel.
    """

    axes: tuple[Axes, ...]
    row: int
    height_inches: float

    @property
    def first(self) -> Axes:
        """Axes on which the marks (bars, points or curves) are drawn."""
        return self.axes[0]

    @property
    def has_names(self) -> bool:
        """True if the vertical axis has a row for each name."""
        return isinstance(self.first.yaxis.get_major_locator(), FixedLocator)


def fit_to_sheet(figure: NotedFigure, width_inches: float) -> str:
    """Arrange the panels of a figure so that the figure is `width_inches` wide. Returns a text: the caption (which
    replaces the title), then an empty line and the further lines of the figure.
    """
    FigureCanvasAgg(figure)
    figure.set_layout_engine("none")
    if not figure.axes:
        return _fit_diagram(figure, width_inches)
    panels = _panels(figure)
    _remove_texts(figure)
    empty = list(_remove_empty(panels))
    panels = [panel for panel in panels if panel.first in figure.axes]
    _move_legends(figure)
    caption = [*_caption(figure, panels), *empty]
    _label_axes(figure, panels)
    _limit_fonts(figure)
    is_room_for_marks = False
    for is_room_for_marks in (True, False):
        _place_panels(figure, panels, width_inches)
        if is_room_for_marks and not _are_marks_readable(figure):
            for text in _small_texts(figure):
                text.set_visible(False)
        else:
            break
    if figure.words_of_marks and any(text.get_visible() for text in _small_texts(figure)):
        caption.append(sentence(figure.words_of_marks))
    if figure.place_numbers is not None:
        figure.place_numbers()
    caption += _hide_numbers(figure)
    return _lines(caption) + (f"\n{_lines(figure.further_lines)}" if figure.further_lines else "")


def _lines(caption: Iterable[str]) -> str:
    return "\n".join(f"{line.rstrip('.')}." for line in caption) + "\n"


def _fit_diagram(figure: NotedFigure, width: float) -> str:
    """Remove the title of a diagram. Its parts have fixed positions in inches. Returns the caption. Raises InputError
    if the diagram is wider than `width` (in inches), because shrinking would make its text too small.
    """
    for text in [one for one in figure.texts if one.get_gid() == TITLE_TEXT]:
        text.remove()
    _limit_fonts(figure)
    drawn = _renderer(figure)
    parts = [*figure.texts, *figure.artists, *figure.patches, *figure.lines]
    box = Bbox.union([part.get_window_extent(drawn) for part in parts])
    needed, top = (float(edge) / figure.dpi + MARGIN_INCHES for edge in (box.x1, box.y1))
    if needed > width:
        message = f"the diagram “{figure.caption_title}” needs {needed:.1f} inches with text of {LEAST_POINTS:g} points"
        allowed = "page" if width < needed <= PAGE_INCHES else ""
        raise InputError([Problem(message, path="paper", value=f"{width:g} inches", allowed=allowed)])
    figure.set_size_inches(width, top)
    return _lines([figure.caption_title, *figure.caption_lines])


def _panels(figure: NotedFigure) -> list[_Panel]:
    """Panels of a figure, row by row from the top, each row from left to right."""
    groups: dict[tuple[float, ...], list[Axes]] = {}
    for axes in figure.axes:
        groups.setdefault(tuple(np.round(axes.get_position().bounds, 4).tolist()), []).append(axes)
    tops = sorted({-round(y + height, 3) for _, y, _, height in groups})
    tall = float(figure.get_size_inches()[1])
    places = sorted(groups, key=lambda box: (-round(box[1] + box[3], 3), box[0]))
    return [_Panel(tuple(groups[box]), tops.index(-round(box[1] + box[3], 3)), box[3] * tall) for box in places]


def _remove_texts(figure: NotedFigure) -> None:
    """Remove the title and the other texts, lines, boxes and legends outside of the panels, because their positions fit
    only the report.
    """
    parts: tuple[list[Any], ...] = (figure.texts, figure.artists, figure.legends, figure.patches, figure.lines)
    for part in parts:
        part.clear()


def _remove_empty(panels: Sequence[_Panel]) -> Iterator[str]:
    """Remove panels without marks. Their texts become lines of the caption."""
    for panel in panels:
        axes = panel.first
        if not axes.has_data() and len(panels) > 1:
            title = axes.get_title(loc="left") or axes.get_title()
            yield ": ".join(filter(None, ["Not drawn", title, *(text.get_text() for text in axes.texts)]))
            for one in panel.axes:
                one.remove()


def _caption(figure: NotedFigure, panels: Sequence[_Panel]) -> Iterator[str]:
    """Lines of the caption. In the figure, letters replace the titles of panels; the last line of the caption explains
    the letters.
    """
    yield figure.caption_title
    yield from figure.caption_lines
    explained = []
    told = {panel: list(_panel_texts(figure, panel)) for panel in panels}
    told = {panel: texts for panel, texts in told.items() if texts}
    for letter, (panel, texts) in zip(_letters(), told.items(), strict=False):
        if len(panels) > 1:
            panel.first.set_title(f"({letter})", loc="left", fontsize=LABEL_POINTS, pad=3)
        explained.append(f"({letter}) {', '.join(texts)}" if len(panels) > 1 else f"Shown: {', '.join(texts)}")
    if explained:
        yield "; ".join(explained)


def _letters() -> Iterator[str]:
    yield from ascii_lowercase
    yield from (first + second for first in ascii_lowercase for second in ascii_lowercase)


def _panel_texts(figure: NotedFigure, panel: _Panel) -> Iterator[str]:
    """Title and texts of a panel. The function removes them from the panel."""
    axes = panel.first
    title = axes.get_title(loc="left") or axes.get_title()
    for place in ("left", "center"):
        axes.set_title("", loc=place)  # type: ignore[arg-type]
    if title and title != figure.words.get(axes, ("", ""))[0] and title not in (axes.get_xlabel(), axes.get_ylabel()):
        yield title
    for text in [one for one in axes.texts if one.get_gid() == PANEL_TEXT]:
        yield text.get_text()
        text.remove()


def _label_axes(figure: NotedFigure, panels: Sequence[_Panel]) -> None:
    """Give each axis its label and the labels of its ticks. In a report, these can be missing, for example because
    numbers are beside the bars.
    """
    named: dict[int, list[str]] = {}
    for panel in panels:
        axes = panel.first
        across, upwards = figure.words.get(axes, ("", ""))
        if across and not axes.get_xlabel():
            axes.set_xlabel(across)
            if not labels(axes.xaxis):
                number_axis(axes.xaxis)
                axes.spines["bottom"].set_visible(True)
        if upwards and not axes.get_ylabel():
            axes.set_ylabel(upwards)
        if panel.has_names:
            names = [label.get_text() for label in axes.get_yticklabels()]
            named.setdefault(panel.row, names)
            if not any(names) and len(named[panel.row]) == len(names):
                axes.set_yticks(axes.get_yticks(), labels=named[panel.row])
        for axis in (axis for one in panel.axes for axis in (one.xaxis, one.yaxis)):
            _avoid_exponents(axis)


def _avoid_exponents(axis: Axis) -> None:
    """Remove texts such as 1e+06 from an axis: a linear axis gets a unit with a power of ten, and a logarithmic axis
    shows powers.
    """
    formatter = axis.get_major_formatter()
    scale = formatter.scale if isinstance(formatter, DistinctFormatter) else 1.0
    low, high = axis.get_view_interval()
    if not any("e" in text for text in labels(axis) if text.strip("+-.e0123456789") == ""):
        return
    if axis.get_scale() == "log":
        axis.set_major_formatter(FuncFormatter(lambda value, _: _power_text(value / scale)))
        return
    power = 3 * math.floor(math.log10(max(abs(low), abs(high)) / scale) / 3)
    axis.set_major_formatter(DistinctFormatter(scale * 10.0**power))
    factor, text = f"10{_superscript(power)}", axis.label.get_text()
    axis.label.set_text(text.replace("[", f"[{factor} ") if "[" in text else f"{text} [{factor}]")


def _power_text(value: float) -> str:
    """Text of a number on a logarithmic axis, such as 10⁶ or 5·10⁶. Numbers from 0.01 to below 10,000 are written
    without a power.
    """
    power = math.floor(math.log10(value) + 1e-9)
    if -2 <= power <= 3:
        return f"{value:.6g}"
    factor = f"{value / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + f"10{_superscript(power)}"


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))


def _limit_fonts(figure: NotedFigure) -> None:
    for axes in figure.axes:
        axes.tick_params(labelsize=TICK_POINTS, pad=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set_fontsize(LABEL_POINTS)
            axis.labelpad = 2 if axis is axes.xaxis else 4
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontsize(min(max(float(text.get_fontsize()), LEAST_POINTS), MOST_POINTS))


def _place_panels(figure: NotedFigure, panels: Sequence[_Panel], width: float) -> None:
    """Place the panels in columns of equal width, above the legend. The figure becomes `width` inches wide; its height
    follows from the heights of the panels, their texts and the legend.
    """
    columns = _column_count(figure, panels, width)
    _break_long_names(figure, panels, width / columns)
    for _ in range(ROUNDS):
        _place_once(figure, panels, width, columns)
        for panel in panels:
            _fit_labels(panel)


def _break_long_names(figure: NotedFigure, panels: Sequence[_Panel], width: float) -> None:
    """Write the names of rows on several lines, if names on one line would leave less than LEAST_NAMED_INCHES of
    `width` to the plot."""
    room = width - 2 * MARGIN_INCHES - GAP_INCHES - LEAST_NAMED_INCHES
    for panel in (panel for panel in panels if panel.has_names):
        for lines in range(2, MOST_LINES + 1):
            if sum(_overhang(figure, panel)[:2]) <= room:
                break
            break_names(panel.first, lines)


def _column_count(figure: NotedFigure, panels: Sequence[_Panel], width: float) -> int:
    """Largest number of columns in which each panel is wide enough, but not more columns than in the report."""
    in_a_row = [sum(panel.row == row for panel in panels) for row in {panel.row for panel in panels}]
    beside = max((sum(_overhang(figure, panel)[:2]) for panel in panels), default=0.0)
    most = max(in_a_row, default=1)
    if figure.shares_rows:
        return most
    return next((n for n in range(most, 1, -1) if width / n - beside - GAP_INCHES >= LEAST_PLOT_INCHES), 1)


def _place_once(figure: NotedFigure, panels: Sequence[_Panel], width: float, columns: int) -> None:
    rows = list(_rows(panels, columns))
    overhangs = {panel: _overhang(figure, panel) for panel in panels}
    shared = _shared_sides(overhangs, rows, columns) if figure.shares_rows else None
    sides = [shared or _sides(overhangs, row, columns) for row in rows]
    widths = [_plot_width(width, columns, *pair) for pair in sides]
    ratio = 1.0 if figure.shares_rows else HEIGHT_TO_WIDTH
    heights = [max(_height(panel, each, ratio) for panel in row) for row, each in zip(rows, widths, strict=True)]
    above = [max(overhangs[panel][3] for panel in row) for row in rows]
    below = [max(overhangs[panel][2] for panel in row) for row in rows]
    legend = _legend(figure, width)
    room = SHEET_HEIGHT_INCHES - sum(above) - sum(below) - GAP_INCHES * len(rows) - legend
    shrunk = max(0.0, min(1.0, room / (sum(heights) or 1.0)))
    heights = [max(LEAST_HEIGHT_INCHES, height * shrunk) for height in heights]
    total = sum(heights) + sum(above) + sum(below) + GAP_INCHES * (len(rows) - 1) + legend + 2 * MARGIN_INCHES
    figure.set_size_inches(width, total)
    top = total - MARGIN_INCHES
    for row, height, over, under, each, (lefts, rights) in zip(rows, heights, above, below, widths, sides, strict=True):
        left = MARGIN_INCHES
        for panel, before, after in zip(row, lefts, rights, strict=False):
            box = ((left + before) / width, (top - over - height) / total, each / width, height / total)
            for axes in panel.axes:
                axes.set_position(box)
            left += before + each + after + GAP_INCHES
        top -= over + height + under + GAP_INCHES


def _sides(
    overhangs: Mapping[_Panel, tuple[float, ...]], row: Sequence[_Panel], columns: int
) -> tuple[list[float], list[float]]:
    """Room in inches for the texts of panels, as a pair (room on the left of each column, room on the right of each
    column).

    All columns have the same room: the largest room that any panel needs for its texts on this side. Panels of another
    kind than the first panel of `row` are ignored. There are two kinds: panels with a row for each name, and panels
    with numbers on the vertical axis.
    """
    kind = row[0].has_names
    alike = [one for one in overhangs if one.has_names == kind]
    left, right = (max(overhangs[panel][side] for panel in alike) for side in (0, 1))
    return [left] * columns, [right] * columns


def _shared_sides(
    overhangs: Mapping[_Panel, tuple[float, ...]], rows: Sequence[Sequence[_Panel]], columns: int
) -> tuple[list[float], list[float]]:
    """Room in inches for the texts of panels that share the vertical axis of their row, in the form of `_sides`. Each
    column has only the room that its own panels need.
    """
    found = [[overhangs[row[place]] for row in rows if place < len(row)] for place in range(columns)]
    return [max(one[0] for one in column) for column in found], [max(one[1] for one in column) for column in found]


def _plot_width(width: float, columns: int, lefts: Sequence[float], rights: Sequence[float]) -> float:
    """Width of a panel without its texts, in inches."""
    return (width - 2 * MARGIN_INCHES - GAP_INCHES * (columns - 1) - sum(lefts) - sum(rights)) / columns


def _rows(panels: Sequence[_Panel], columns: int) -> Iterator[list[_Panel]]:
    """Panels in rows. A panel that begins a row of the report also begins a row here."""
    for number in dict.fromkeys(panel.row for panel in panels):
        row = [panel for panel in panels if panel.row == number]
        for start in range(0, len(row), columns):
            yield row[start : start + columns]


def _height(panel: _Panel, width: float, ratio: float) -> float:
    """Height of a panel without its texts, in inches. If both axes have numbers, the height is limited to `ratio` times
    the width. The height is never less than LEAST_HEIGHT_INCHES.
    """
    if panel.has_names:
        return max(LEAST_HEIGHT_INCHES, panel.height_inches * CATEGORY_SCALE, names_inches(panel.first))
    return max(LEAST_HEIGHT_INCHES, min(panel.height_inches, ratio * width))


def _overhang(figure: NotedFigure, panel: _Panel) -> tuple[float, float, float, float]:
    """Room in inches that the texts of a panel need on its left, on its right, below it and above it."""
    drawn = _renderer(figure)
    boxes = [box for axes in panel.axes if (box := axes.get_tightbbox(drawn)) is not None]
    inner = panel.first.get_window_extent(drawn)
    outer = Bbox.union([*boxes, inner])
    sides = (inner.x0 - outer.x0, outer.x1 - inner.x1, inner.y0 - outer.y0, outer.y1 - inner.y1)
    left, right, below, above = (max(0.0, float(side)) / figure.dpi for side in sides)
    return left, right, below, above


def _renderer(figure: NotedFigure) -> Any:
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    return canvas.get_renderer()  # type: ignore[no-untyped-call]


def _legend(figure: NotedFigure, width: float) -> float:
    """Draw the legend at the bottom, in as many columns as fit. Returns its height in inches; 0 without entries."""
    figure.legends.clear()
    handles: list[Artist] = list(figure.handles)
    if not handles:
        return 0.0
    style: dict[str, Any] = {"fontsize": TICK_POINTS, "frameon": False, "handlelength": 1.4, "columnspacing": 1.0}
    for columns in range(min(MOST_LEGEND_COLUMNS, len(handles)), 0, -1):
        figure.legends.clear()
        legend = figure.legend(
            handles=handles, loc="lower center", ncol=columns, borderaxespad=0.2, labelspacing=0.3, **style
        )
        box = legend.get_window_extent(_renderer(figure))
        if box.width / figure.dpi <= width - 2 * MARGIN_INCHES:
            break
    return float(box.height) / figure.dpi + MARGIN_INCHES + GAP_INCHES / 2


UNBROKEN_SPACE = "\N{NO-BREAK SPACE}"
"""Character that replaces each blank of a unit while a label is wrapped, so that no line ends within the unit."""


def _fit_labels(panel: _Panel) -> None:
    """Make all names and numbers of axes readable: turn overlapping names, leave out overlapping numbers, and wrap long
    labels.
    """
    for axes in panel.axes:
        width, height = _inches(axes)
        for label, room in ((axes.xaxis.label, width), (axes.yaxis.label, height)):
            text = _UNIT.sub(_unbroken, label.get_text().replace("\n", " "))
            wrapped = textwrap.fill(text, max(12, int(room * 1.15 / CHARACTER_INCHES)), break_long_words=False)
            label.set_text(wrapped.replace(UNBROKEN_SPACE, " "))
    axis = panel.first.xaxis
    if isinstance(axis.get_major_locator(), FixedLocator):
        if _overlap(axis):
            for tick in axis.get_ticklabels():
                tick.set(rotation=90, ha="center", va="top", rotation_mode="default")
    elif _overlap(axis):
        _thin_out(axis)


def _unbroken(unit: re.Match[str]) -> str:
    """Text of a unit in which no line can end, because its spaces are non-breaking spaces."""
    return unit[0].replace(" ", UNBROKEN_SPACE)


def _inches(axes: Axes) -> tuple[float, float]:
    assert isinstance(axes.figure, NotedFigure)
    width, height = axes.figure.get_size_inches()
    box = axes.get_position()
    return box.width * width, box.height * height


def _boxes(axis: Axis) -> list[Bbox]:
    """Rectangles of the visible labels of an axis, from left to right."""
    figure = axis.axes.figure
    assert isinstance(figure, NotedFigure)
    drawn, low, high = _renderer(figure), *sorted(axis.get_view_interval())
    axis.get_tightbbox(drawn)  # makes the ticks and their labels
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]
    boxes = [tick.label1.get_window_extent(drawn) for tick in ticks if tick.label1.get_visible()]
    return sorted(boxes, key=lambda box: float(box.x0))


def _overlap(axis: Axis) -> bool:
    figure = axis.axes.figure
    assert isinstance(figure, NotedFigure)
    gap = LEAST_GAP_INCHES * figure.dpi
    return any(left.x1 + gap > right.x0 for left, right in pairwise(_boxes(axis)))


def _thin_out(axis: Axis) -> None:
    """Leave out numbers of an axis until no two overlap, or until only two numbers remain."""
    low, high = sorted(axis.get_view_interval())
    while _overlap(axis):
        locations: Any = axis.get_majorticklocs()
        places = [float(place) for place in locations if low <= place <= high]
        if len(places) <= LEAST_LABELS:
            return
        step = 2 if len(places) > LEAST_LABELS + 1 else len(places) - 1
        axis.set_major_locator(FixedLocator(places[::step]))


def _move_legends(figure: NotedFigure) -> None:
    """Move the entries of legends inside panels to the legend below the figure, because a legend inside a panel would
    hide marks.
    """
    known = {str(handle.get_label()) for handle in figure.handles}
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is None:
            continue
        title = legend.get_title().get_text()
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            label = " ".join(filter(None, [title, text.get_text()]))
            if handle is not None and label not in known:
                known.add(label)
                handle.set_label(label)
                figure.handles += (handle,)
        legend.remove()


def _hide_numbers(figure: NotedFigure) -> list[str]:
    """Hide the numbers of points that would overlap other numbers; of several overlapping numbers, the first stays.
    Returns a line for the caption that says that numbers are left out; [] if no number is hidden.
    """
    drawn, is_hidden = _renderer(figure), False
    kept: list[Bbox] = []
    for text in [text for axes in figure.axes for text in axes.texts if text.get_gid() == NUMBER_TEXT]:
        box = text.get_window_extent(drawn)
        if any(box.overlaps(other) for other in kept):
            text.set_visible(False)
            is_hidden = True
        else:
            kept.append(box)
    return ["Numbers that would overlap others are left out of the figure"] if is_hidden else []


def _small_texts(figure: NotedFigure) -> list[Text]:
    return [text for axes in figure.axes for text in axes.texts if text.get_gid() == SMALL_TEXT]


def _are_marks_readable(figure: NotedFigure) -> bool:
    """True if no two texts with the id SMALL_TEXT (numbers or names on marks) overlap."""
    drawn = _renderer(figure)
    boxes = [text.get_window_extent(drawn) for text in _small_texts(figure)]
    return not any(one.overlaps(other) for number, one in enumerate(boxes) for other in boxes[:number])
