"""An accelerator of several cores as a figure: cores with role, array and memories, links, buses as bars, the DRAM."""

import textwrap
from pathlib import Path

from matplotlib.figure import Figure

from tilewright.hardware.core import Core
from tilewright.hardware.system import COMPUTE, MEMORY, OFFCHIP, POOLING, SIMD, CorePlace, MultiCoreAccelerator
from tilewright.hardware.top_memories import top_memories
from tilewright.report.canvas import GREY, Canvas
from tilewright.report.colours import lighter
from tilewright.report.figure_layout import figure_style, save_figure, size_text
from tilewright.report.system_layout import Arrow, Bar, SystemLayout, system_layout

MARGIN_INCHES, TITLE_INCHES, TEXT_POINTS = 0.25, 0.7, 7.0
LINE_INCHES, PAD_INCHES = 0.145, 0.09
BOX_WIDTH_INCHES, GAP_INCHES, ROW_GAP_INCHES, BRANCH_INCHES, BAR_INCHES = 2.3, 1.25, 0.42, 0.11, 0.34
CHARACTERS = 33
"""That fit on a line of a box."""
ROLE_COLOURS = {COMPUTE: "#0072B2", POOLING: "#009E73", SIMD: "#E69F00", MEMORY: "#CC79A7", OFFCHIP: "#777777"}
BAR_COLOURS = ("#D55E00", "#56B4E9", "#009E73", "#CC79A7", "#E69F00", "#0072B2")


def system_figure(accelerator: MultiCoreAccelerator) -> Figure:
    """Cores in rows and columns, arrows between neighbours, bars for what several cores share, the DRAM below."""
    with figure_style():
        return _SystemDrawing(accelerator).draw()


def write_system_figure(accelerator: MultiCoreAccelerator, path_stem: Path) -> tuple[Path, Path]:
    """Write the figure as `path_stem`.svg and .png; returns both paths."""
    return save_figure(system_figure(accelerator), path_stem)


class _SystemDrawing:
    """The places, in inches, of everything in the figure of one accelerator."""

    def __init__(self, accelerator: MultiCoreAccelerator) -> None:
        self.accelerator = accelerator
        self.layout: SystemLayout = system_layout(accelerator)
        self.cell_of = dict(self.layout.cells)
        self.lines = {place.core_id: _box_lines(accelerator, place) for place in accelerator.places}
        self.box_height = max(_height(self.lines[core_id]) for core_id in accelerator.onchip_core_ids)
        branches = len(self.layout.bars)
        self.pitch = BOX_WIDTH_INCHES + max(GAP_INCHES, (branches + 2) * BRANCH_INCHES)
        self.left = MARGIN_INCHES + (branches + 1) * BRANCH_INCHES
        offchip = accelerator.offchip_core_id
        self.dram_height = _height(self.lines[offchip]) if offchip is not None else 0.0
        self.bars_floor = MARGIN_INCHES + self.dram_height
        self.cores_floor = self.bars_floor + BAR_INCHES * (branches + 1)
        texts = max((len(bar.text) for bar in self.layout.bars), default=0) * 0.058 + self.left
        width = max(self.left + (self.layout.columns - 1) * self.pitch + BOX_WIDTH_INCHES, texts, 4.5)
        height = (
            self.cores_floor + self.layout.rows * (self.box_height + ROW_GAP_INCHES) - ROW_GAP_INCHES + TITLE_INCHES
        )
        self.canvas = Canvas(width + MARGIN_INCHES, height)

    def draw(self) -> Figure:
        """Draw everything; returns the figure."""
        words = "arrows: links; bars: one medium that its cores share; dashed bars: a link for each branch"
        count = len(self.accelerator.onchip_core_ids)
        self.canvas.title(MARGIN_INCHES, f"{self.accelerator.name}: {count} cores", words, self._sharing())
        for number, bar in enumerate(self.layout.bars):
            self._draw_bar(number, bar)
        for arrow in self.layout.arrows:
            self._draw_arrow(arrow)
        for core_id, cell in self.layout.cells:
            self._draw_core(core_id, *self._corner(cell), BOX_WIDTH_INCHES, self.box_height)
        offchip = self.accelerator.offchip_core_id
        if offchip is not None:
            width = self.canvas.width - MARGIN_INCHES - self.left
            self._draw_core(offchip, self.left, MARGIN_INCHES, width, self.dram_height)
        return self.canvas.figure

    def _sharing(self) -> str:
        groups = [", ".join(map(str, group)) for group in self.accelerator.sharing_groups]
        return f"share their top memories: cores {'; cores '.join(groups)}" if groups else ""

    def _corner(self, cell: tuple[int, int]) -> tuple[float, float]:
        """The lower left corner of a core."""
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
            start = (min(x, to_x) + BOX_WIDTH_INCHES, middle)
            end = (max(x, to_x), middle)
            label = ((start[0] + end[0]) / 2, middle)
        else:
            centre = x + BOX_WIDTH_INCHES / 2
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
        """A bar across the figure, with a branch beside each column of its cores and a stub into each of them."""
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
        end = max(max(xs, default=self.left), self.left + BOX_WIDTH_INCHES)
        self.canvas.line((min(xs, default=self.left), y), (end, y), **style)
        text_x = self.left + BRANCH_INCHES * (len(self.layout.bars) + 1)
        self.canvas.text(text_x, y + 0.1, bar.text, TEXT_POINTS, color=colour)


def _height(lines: list[str]) -> float:
    return LINE_INCHES * len(lines) + 2 * PAD_INCHES


def _box_lines(accelerator: MultiCoreAccelerator, place: CorePlace) -> list[str]:
    """What is written in the box of a core."""
    core: Core = accelerator.core_of[place.core_id]
    lines = [textwrap.shorten(f"{place.core_id}: {place.file_name}", CHARACTERS - 6, placeholder="…"), place.role]
    if place.role != OFFCHIP:
        if place.is_router != (place.role == COMPUTE):
            lines[-1] += ", passes data on" if place.is_router else ", passes no data on"
        sides = " × ".join(f"{name} {size}" for name, size in core.operational_array.dimensions)
        lines += _wrapped(f"array {sides}")
    for memory, operands in top_memories(core):
        lines += _wrapped(f"{memory.name} {size_text(memory.size_bits)}: {' '.join(sorted(operands))}")
    if place.role != OFFCHIP and place.operator_types is not None:
        lines += _wrapped(f"runs {', '.join(place.operator_types)}")
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, CHARACTERS, subsequent_indent="  ", break_long_words=True)
