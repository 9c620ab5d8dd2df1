"""Figure of an accelerator with several cores: boxes for cores and the DRAM, arrows and bars for links.

Links between neighbouring cores are arrows, and all other links are bars below the cores. A bar is a bus, a shared
port, or a set of equal links from one core to several other cores.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from tilewright.base.units import size_text
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.system import (
    COMPUTE,
    MEMORY,
    OFFCHIP,
    POOLING,
    SIMD,
    CorePlace,
    Link,
    MultiCoreAccelerator,
    memory_text,
)
from tilewright.results.canvas import GREY, Canvas
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import lighter
from tilewright.results.sheet import sheet_inches

MOST_COLUMNS = 8
Cell = tuple[int, int]
"""Position (column, row) of a core in the grid of the figure, counted from 0 at the upper left corner."""


@dataclass(frozen=True)
class Arrow:
    """Arrow for the links between two neighbouring cores."""

    core_ids: tuple[int, int]
    """Ids of the two cores. The arrow points to the second core; a bidirectional arrow points to both."""
    both_ways: bool
    text: str


@dataclass(frozen=True)
class Bar:
    """Bar for one link or for several links, with a branch to each core that these links connect."""

    core_ids: tuple[int, ...]
    is_shared: bool
    """True if the bar is one shared medium, such as a bus. Otherwise, each branch of the bar is a link."""
    text: str


@dataclass(frozen=True)
class SystemLayout:
    """Cells of the on-chip cores, arrows between them and bars below them."""

    cells: tuple[tuple[int, Cell], ...]
    arrows: tuple[Arrow, ...]
    bars: tuple[Bar, ...]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return max((column for _, (column, _) in self.cells), default=0) + 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return max((row for _, (_, row) in self.cells), default=0) + 1


def system_layout(accelerator: MultiCoreAccelerator) -> SystemLayout:
    """Layout of an accelerator.

    A core with coordinates in the accelerator file stands in the cell with these coordinates. Compute cores without
    coordinates form a grid below these cells. Other on-chip cores without coordinates stand in columns on the right.
    """
    cells = _cells(accelerator)
    shared = [link for link in accelerator.links if len(link.core_ids) > 2]
    bars = [Bar(link.core_ids, True, f"{link.name}: {link_text(link)}") for link in shared]
    of_pair: dict[tuple[int, int], list[Link]] = {}
    for link in accelerator.links:
        if len(link.core_ids) == 2:
            first, second = link.core_ids
            of_pair.setdefault((first, second), []).append(link)
    arrows = []
    far: dict[tuple[int, int], tuple[str, bool]] = {}
    for pair, links in of_pair.items():
        text, directions = _pair_text(links), {edge for link in links for edge in link.edges}
        if _are_neighbours(cells.get(pair[0]), cells.get(pair[1])):
            ends = pair if pair in directions else (pair[1], pair[0])
            arrows.append(Arrow(ends, len(directions) == 2, text))
        else:
            far[pair] = (text, any(link.is_half_duplex for link in links))
    bars += _fans(far)
    offchip = accelerator.offchip_core_id
    bars.sort(key=lambda bar: offchip in bar.core_ids)
    return SystemLayout(tuple(cells.items()), tuple(arrows), tuple(bars))


def link_text(link: Link) -> str:
    """Text with the bandwidth and energy of a link."""
    width = (
        "infinite bandwidth" if link.bandwidth_bits_per_cycle is None else f"{link.bandwidth_bits_per_cycle} b/cycle"
    )
    return width + (f", {link.energy_pj_per_bit:.3g} pJ/b" if link.energy_pj_per_bit else "")


def _pair_text(links: Sequence[Link]) -> str:
    texts = list(dict.fromkeys(link_text(link) for link in links))
    if any(link.is_half_duplex for link in links):
        texts[-1] += ", both directions in turn"
    return "; ".join(texts)


def _cells(accelerator: MultiCoreAccelerator) -> dict[int, Cell]:
    known = {place.core_id: place.coordinates for place in accelerator.places if place.coordinates is not None}
    cells: dict[int, Cell] = {
        core_id: cell for core_id, cell in known.items() if core_id in accelerator.onchip_core_ids
    }
    rest = [place for place in accelerator.places if place.role != OFFCHIP and place.core_id not in cells]
    compute = [place.core_id for place in rest if place.role == COMPUTE]
    first_row = max((row for _, row in cells.values()), default=-1) + 1
    cells |= {core_id: (column, first_row + row) for core_id, (column, row) in _grid(compute, accelerator).items()}
    right = max((column for column, _ in cells.values()), default=-1) + 1
    rows = max((row for _, row in cells.values()), default=0) + 1
    for number, place in enumerate(place for place in rest if place.role != COMPUTE):
        cells[place.core_id] = (right + number // rows, number % rows)
    return dict(sorted(cells.items()))


def _grid(core_ids: Sequence[int], accelerator: MultiCoreAccelerator) -> dict[int, Cell]:
    """Cells of the cores. The cores fill a grid row by row. The number of columns is chosen so that most pairs of
    linked cores are neighbours. If several numbers are equally good, the number whose grid is closest to a square is
    chosen.
    """
    pairs = {link.core_ids for link in accelerator.links if len(link.core_ids) == 2}
    square = math.ceil(math.sqrt(len(core_ids)))

    def grid(columns: int) -> dict[int, Cell]:
        return {core_id: (number % columns, number // columns) for number, core_id in enumerate(core_ids)}

    def rank(columns: int) -> tuple[int, int, int]:
        cells = grid(columns)
        arrows = sum(_are_neighbours(cells.get(one), cells.get(other)) for one, other in pairs)
        return -arrows, abs(columns - square), -columns

    return grid(min(range(1, min(len(core_ids), MOST_COLUMNS) + 1), key=rank, default=1))


def _are_neighbours(one: Cell | None, other: Cell | None) -> bool:
    return one is not None and other is not None and abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1


def _fans(far: dict[tuple[int, int], tuple[str, bool]]) -> list[Bar]:
    """Bars for links between cores that are not neighbours. `far` has, for each pair of core ids, a pair (text of the
    links, True if one of them is half-duplex).

    Links of one core with the same text share a bar, and this core is the first core of the bar. Bars with more
    branches come first.
    """
    bars: list[Bar] = []
    left = dict(far)
    while left:
        counts = Counter((core_id, text) for pair, (text, _) in left.items() for core_id in pair)
        hub, text = min(counts, key=lambda key: (-counts[key], -key[0], key[1]))
        pairs = [pair for pair, (found, _) in left.items() if found == text and hub in pair]
        others = sorted(core_id for pair in pairs for core_id in pair if core_id != hub)
        each = "each " if len(others) > 1 else ""
        bars.append(Bar((hub, *others), False, f"{hub} with {', '.join(map(str, others))}: {each}{text}"))
        for pair in pairs:
            del left[pair]
    return bars


MARGIN_INCHES, TITLE_INCHES, TEXT_POINTS = 0.25, 0.7, 7.0
LINE_INCHES, PAD_INCHES = 0.145, 0.09
BOX_WIDTH_INCHES, GAP_INCHES, ROW_GAP_INCHES, BRANCH_INCHES, BAR_INCHES = 2.3, 1.25, 0.42, 0.11, 0.34
CHARACTERS = 33
"""Largest number of characters on one line of a box that is BOX_WIDTH_INCHES wide."""
LEAST_BOX_INCHES, LABEL_INCHES = 1.1, 0.3
"""Sizes in inches for a figure in a paper: smallest width of a core's box, and room at the right edge for the labels of
vertical arrows.
"""
ROLE_COLOURS = {COMPUTE: "#0072B2", POOLING: "#009E73", SIMD: "#E69F00", MEMORY: "#CC79A7", OFFCHIP: "#777777"}
BAR_COLOURS = ("#D55E00", "#56B4E9", "#009E73", "#CC79A7", "#E69F00", "#0072B2")


def system_figure(accelerator: MultiCoreAccelerator) -> Figure:
    """Figure with cores in rows and columns, arrows for links between neighbours, bars for all other links, and the
    DRAM below.
    """
    with figure_style():
        return _SystemDrawing(accelerator).draw()


def write_system_figure(accelerator: MultiCoreAccelerator, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure of an accelerator as `path_stem`.svg and .png, or for a paper as the files of `figure_suffixes`.
    Returns the paths.
    """
    return save_figure(system_figure(accelerator), path_stem)


class _SystemDrawing:
    """Positions in inches of all boxes, arrows and bars in the figure of an accelerator."""

    def __init__(self, accelerator: MultiCoreAccelerator) -> None:
        self.accelerator = accelerator
        self.layout: SystemLayout = system_layout(accelerator)
        self.cell_of = dict(self.layout.cells)
        branches = len(self.layout.bars)
        gap = max(GAP_INCHES, (branches + 2) * BRANCH_INCHES)
        self.left = MARGIN_INCHES + (branches + 1) * BRANCH_INCHES
        self.box_width = _box_width(self.layout.columns, self.left, gap)
        characters = int(CHARACTERS * self.box_width / BOX_WIDTH_INCHES)
        self.lines = {place.core_id: _box_lines(accelerator, place, characters) for place in accelerator.places}
        self.box_height = max(_height(self.lines[core_id]) for core_id in accelerator.onchip_core_ids)
        self.pitch = self.box_width + gap
        offchip = accelerator.offchip_core_id
        self.dram_height = _height(self.lines[offchip]) if offchip is not None else 0.0
        self.bars_floor = MARGIN_INCHES + self.dram_height
        self.cores_floor = self.bars_floor + BAR_INCHES * (branches + 1)
        texts = max((len(bar.text) for bar in self.layout.bars), default=0) * 0.058 + self.left
        width = max(
            self.left + (self.layout.columns - 1) * self.pitch + self.box_width,
            texts,
            4.5 if sheet_inches() is None else 0.0,
        )
        height = (
            self.cores_floor + self.layout.rows * (self.box_height + ROW_GAP_INCHES) - ROW_GAP_INCHES + TITLE_INCHES
        )
        self.canvas = Canvas(width + MARGIN_INCHES, height)

    def draw(self) -> Figure:
        """Draw all parts of the figure. Returns the figure."""
        words = "arrows: links; bars: one medium shared by cores; dashed bars: a link for each branch"
        count = len(self.accelerator.onchip_core_ids)
        self.canvas.title(MARGIN_INCHES, f"System {self.accelerator.name}: {count} cores", words, self._sharing())
        for number, bar in enumerate(self.layout.bars):
            self._draw_bar(number, bar)
        for arrow in self.layout.arrows:
            self._draw_arrow(arrow)
        for core_id, cell in self.layout.cells:
            self._draw_core(core_id, *self._corner(cell), self.box_width, self.box_height)
        offchip = self.accelerator.offchip_core_id
        if offchip is not None:
            width = self.canvas.width - MARGIN_INCHES - self.left
            self._draw_core(offchip, self.left, MARGIN_INCHES, width, self.dram_height)
        return self.canvas.figure

    def _sharing(self) -> str:
        groups = [", ".join(map(str, group)) for group in self.accelerator.sharing_groups]
        words = [f"share their top memories: cores {'; cores '.join(groups)}"] if groups else []
        one = [" and ".join(map(memory_text, group)) for group in self.accelerator.shared_memories]
        return "; ".join(words + [f"one memory: {'; '.join(one)}"] * bool(one))

    def _corner(self, cell: tuple[int, int]) -> tuple[float, float]:
        """Lower left corner (x, y) of the box of the core at a position (column, row), in inches."""
        column, row = cell
        rows_below = self.layout.rows - 1 - row
        y = self.cores_floor + rows_below * (self.box_height + ROW_GAP_INCHES)
        return self.left + column * self.pitch, y

    def _draw_core(self, core_id: int, x: float, y: float, width: float, height: float) -> None:
        place = self.accelerator.place_of[core_id]
        colour = ROLE_COLOURS[place.role]
        self.canvas.rounded_box(x, y, width, height, facecolor=lighter(colour, 0.88), edgecolor=colour)
        for number, line in enumerate(self.lines[core_id]):
            bold = {"weight": "bold"} if number == 0 else {}
            line_y = y + height - PAD_INCHES - LINE_INCHES * (number + 0.5)
            self.canvas.text(x + PAD_INCHES, line_y, line, TEXT_POINTS + (1 if number == 0 else 0), **bold)

    def _draw_arrow(self, arrow: Arrow) -> None:
        (x, y), (to_x, to_y) = (self._corner(self.cell_of[core_id]) for core_id in arrow.core_ids)
        if y == to_y:
            middle = y + self.box_height * 0.62
            start = (min(x, to_x) + self.box_width, middle)
            end = (max(x, to_x), middle)
            label = ((start[0] + end[0]) / 2, middle)
        else:
            centre = x + self.box_width / 2
            start = (centre, min(y, to_y) + self.box_height)
            end = (centre, max(y, to_y))
            label = (centre + 0.08, (start[1] + end[1]) / 2)
        forwards = (to_x, to_y) > (x, y)
        for ends, drawn in (
            ((start, end), forwards or arrow.both_ways),
            ((end, start), not forwards or arrow.both_ways),
        ):
            if drawn:
                self.canvas.arrow(*ends, GREY)
        if y == to_y:
            for number, part in enumerate(arrow.text.split(", ")):
                self.canvas.text(label[0], label[1] + 0.09 - 0.2 * number, part, TEXT_POINTS - 0.5, ha="center")
        else:
            self.canvas.text(*label, arrow.text, TEXT_POINTS - 0.5)

    def _draw_bar(self, number: int, bar: Bar) -> None:
        """Draw a bar across the figure, with a branch at each column of its cores and a stub into each core."""
        colour = BAR_COLOURS[number % len(BAR_COLOURS)]
        y = self.cores_floor - BAR_INCHES * (number + 1)
        style = {
            "color": colour,
            "linewidth": 3.0 if bar.is_shared else 1.5,
            "linestyle": "-" if bar.is_shared else "--",
        }
        branch = {"color": colour, "linewidth": 1.0, "linestyle": style["linestyle"]}
        tops: dict[int, float] = {}
        for core_id in bar.core_ids:
            if core_id in self.cell_of:
                x, floor = self._corner(self.cell_of[core_id])
                stub_y = floor + self.box_height * 0.42 - 0.09 * number
                branch_x = x - BRANCH_INCHES * (number + 1)
                tops[self.cell_of[core_id][0]] = max(tops.get(self.cell_of[core_id][0], 0.0), stub_y)
                self.canvas.line((branch_x, stub_y), (x, stub_y), **branch)
        xs = [self.left + column * self.pitch - BRANCH_INCHES * (number + 1) for column in tops]
        for x, top in zip(xs, tops.values(), strict=True):
            self.canvas.line((x, y), (x, top), **branch)
        into_dram = self.accelerator.offchip_core_id in bar.core_ids
        if into_dram:
            xs.append(self.left + BRANCH_INCHES * (len(self.layout.bars) - number))
            self.canvas.line((xs[-1], y), (xs[-1], self.bars_floor), **branch)
        end = max(max(xs, default=self.left), self.left + self.box_width)
        self.canvas.line((min(xs, default=self.left), y), (end, y), **style)
        text_x = self.left + BRANCH_INCHES * (len(self.layout.bars) + 1)
        self.canvas.text(text_x, y + 0.1, bar.text, TEXT_POINTS, color=colour)


def _height(lines: list[str]) -> float:
    return LINE_INCHES * len(lines) + 2 * PAD_INCHES


def _box_width(columns: int, left: float, gap: float) -> float:
    """Width of a box, in inches. In a figure for a paper, a row of boxes fills the width of the figure, but a box is at
    least LEAST_BOX_INCHES and at most BOX_WIDTH_INCHES wide.
    """
    sheet = sheet_inches()
    if sheet is None:
        return BOX_WIDTH_INCHES
    room = (sheet - left - MARGIN_INCHES - LABEL_INCHES - (columns - 1) * gap) / columns
    return min(BOX_WIDTH_INCHES, max(LEAST_BOX_INCHES, room))


def _box_lines(accelerator: MultiCoreAccelerator, place: CorePlace, characters: int) -> list[str]:
    """Lines of text in the box of a core."""
    core: Core = accelerator.core_of[place.core_id]
    name, most = f"{place.core_id}: {place.file_name}", characters - 4
    lines = [name if len(name) <= most else f"{name[: most - 1]}…", place.role]
    if place.role != OFFCHIP:
        if place.is_router != (place.role == COMPUTE):
            lines[-1] += ", passes data on" if place.is_router else ", passes no data on"
        sides = " × ".join(f"{name} {size}" for name, size in core.operational_array.dimensions)
        lines += _wrapped(f"array {sides}", characters)
    for memory, operands in top_memories(core):
        lines += _wrapped(f"{memory.name} {size_text(memory.size_bits)}: {' '.join(sorted(operands))}", characters)
    if place.role != OFFCHIP and place.operator_types is not None:
        lines += _wrapped(f"runs {', '.join(place.operator_types)}", characters)
    return lines


def _wrapped(text: str, characters: int) -> list[str]:
    return textwrap.wrap(text, characters, subsequent_indent="  ", break_long_words=True)
