"""Figure of the memory hierarchy of a core: memories above the array, with an arrow for each operand between them.

Every memory operand has a vertical lane, and a memory spans the lanes of its operands. Memories of the same generation
share a row. The generation of a memory is the length of the longest chain of memories from it down to the array. If two
memories of a row would overlap, one of them gets a row of its own.
"""

import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from tilewright.base.units import size_text
from tilewright.hardware.core import NO_UNIT, Core, Memory
from tilewright.hardware.hierarchy import instance_count, memory_hierarchy
from tilewright.hardware.system import core_area
from tilewright.results.canvas import GREY, Canvas
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import lighter, memory_operand_colour
from tilewright.results.sheet import sheet_inches

if TYPE_CHECKING:
    import pandas

LANE_INCHES, TITLE_INCHES = 2.75, 0.75
PAD_INCHES, CHIP_INCHES = 0.1, 0.2
CHIP_SIZE_INCHES = (0.34, 0.14)
ARRAY_INCHES = 0.62
_UNITS = re.compile(r"(?<=\d) (b/cycle|pJ|mm²|instances|[KMGT]i?B|B)\b")
MOST_ORDERED_LANES = 6
"""Largest number of operands for which the figure tries all left-to-right orders of the operands."""


@dataclass(frozen=True)
class _Sizes:
    """Sizes of the parts of a figure, in inches, and of its texts, in points."""

    least_lane: float
    """Smallest width of the column of an operand (a lane) in a figure for a paper."""
    margin: float
    gap: float
    pad: float
    """Room between the edge of a box and its texts, on the left and on the right."""
    text_points: float
    name_points: float
    characters_per_inch: float
    name_characters_per_inch: float
    line: float
    """Distance between two lines of text."""
    arrow: float
    """Height of the arrows between two rows of memories."""


WIDE = _Sizes(1.4, 0.25, 0.22, 0.1, 7.0, 8.5, 19.5, 15.0, 0.145, 0.42)
NARROW = _Sizes(0.95, 0.04, 0.06, 0.05, 6.0, 6.5, 21.5, 18.5, 0.115, 0.27)
"""Sizes of the parts of a figure. NARROW is for a figure for a paper in which the lanes do not fit with the sizes WIDE.
"""


def _sizes(lanes: Sequence[str]) -> _Sizes:
    sheet = sheet_inches()
    is_narrow = sheet is not None and 2 * WIDE.margin + WIDE.gap + WIDE.least_lane * max(len(lanes), 2) > sheet
    return NARROW if is_narrow else WIDE


@dataclass(frozen=True)
class _Box:
    """Box of a memory in the figure: its lanes (first, last), its row, and its text."""

    memory: Memory
    first: int
    last: int
    row: int
    name_lines: tuple[str, ...]
    lines: tuple[str, ...]
    sizes: _Sizes

    @property
    def height_inches(self) -> float:
        """Height in inches of the name, the operands and the lines of text together."""
        return CHIP_INCHES + self.sizes.line * (len(self.lines) + len(self.name_lines)) + 2 * PAD_INCHES


def hierarchy_figure(core: Core) -> Figure:
    """Figure of a core: the array at the bottom and the memories above, with operands, sizes, instances, ports and
    costs.
    """
    lanes = lane_order(core)
    boxes = _boxes(core, lanes)
    rows = [max(box.height_inches for box in boxes if box.row == row) for row in range(_row_count(boxes))]
    sizes = _sizes(lanes)
    width = 2 * sizes.margin + _lane_inches(lanes) * max(len(lanes), 2) + sizes.gap
    height = TITLE_INCHES + ARRAY_INCHES + sum(rows) + sizes.arrow * len(rows) + sizes.margin
    with figure_style():
        canvas = Canvas(width, height)
        floors = list(itertools.accumulate(rows, lambda y, row: y + row + sizes.arrow, initial=_first_floor(sizes)))
        found = core_area(core)
        area = found.note or f"area {found.mm2:.4g} mm²"
        words = "tl, fl: to and from the level below; th, fh: to and from the level above"
        canvas.title(sizes.margin, f"Memory hierarchy of {core.name}", words, area)
        canvas.figure.numbers = lambda: _numbers(core)
        _draw_array(canvas, core, sizes)
        _draw_arrows(canvas, core, lanes, boxes, floors)
        for box in boxes:
            _draw_box(canvas, box, floors[box.row], lanes)
    return canvas.figure


def write_hierarchy_figure(core: Core, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure as `path_stem`.svg and .png, or for a paper as the files of `figure_suffixes`. Returns the
    paths.
    """
    return save_figure(hierarchy_figure(core), path_stem)


def lane_order(core: Core) -> tuple[str, ...]:
    """Memory operands in the order in which the figure shows them, from left to right. The operands of each memory
    stand side by side as far as possible. Of equally good orders, the first in lexicographic order is taken; operands
    are compared by their positions in the hardware file. With more than MOST_ORDERED_LANES operands, the order is that
    of the hardware file.
    """
    operands = tuple(operand for operand, _ in memory_hierarchy(core).levels_of)
    if len(operands) > MOST_ORDERED_LANES:
        return operands

    def gaps(order: Sequence[str]) -> int:
        places = ([order.index(operand) for operand in memory.operands] for memory in core.memories)
        return sum(max(place) - min(place) + 1 - len(set(place)) for place in places if place)

    return min(itertools.permutations(operands), key=gaps)


def generations(core: Core) -> list[list[int]]:
    """Indices of the memories of each generation. A memory is in the first generation if it is the innermost memory of
    each operand that it holds. Any other memory is one generation above the highest generation of the memories directly
    below it.
    """
    level: dict[int, int] = {}
    chains = [chain for _, chain in memory_hierarchy(core).levels_of]
    for index in memory_hierarchy(core).topological_order:
        below = [chain[chain.index(index) - 1] for chain in chains if index in chain[1:]]
        level[index] = max((level[lower] + 1 for lower in below), default=0)
    return [sorted(i for i, found in level.items() if found == g) for g in range(max(level.values(), default=-1) + 1)]


def _numbers(core: Core) -> "pandas.DataFrame":
    """Table of the memories of a core."""
    import pandas

    rows = [
        {
            "memory": memory.name,
            "operands": " ".join(memory.operands),
            "size_bits": memory.size_bits,
            "instances": instance_count(core, index),
            "read_energy_pj": memory.read_energy_pj,
            "write_energy_pj": memory.write_energy_pj,
        }
        for index, memory in enumerate(core.memories)
    ]
    return pandas.DataFrame(rows)


def _boxes(core: Core, lanes: Sequence[str]) -> list[_Box]:
    boxes: list[_Box] = []
    row = 0
    for generation in generations(core):
        taken: list[set[int]] = [set()]
        for index in generation:
            memory = core.memories[index]
            places = [lanes.index(operand) for operand in memory.operands]
            first, last = min(places), max(places)
            spanned = set(range(first, last + 1))
            free = next((n for n, used in enumerate(taken) if not used & spanned), len(taken))
            if free == len(taken):
                taken.append(set())
            taken[free] |= spanned
            inches = _lane_inches(lanes) * (last - first + 1) - _sizes(lanes).gap - 2 * _sizes(lanes).pad
            name, lines = _name_lines(memory.name, inches, _sizes(lanes)), _lines(core, index, inches, _sizes(lanes))
            boxes.append(_Box(memory, first, last, row + free, tuple(name), tuple(lines), _sizes(lanes)))
        row += len(taken)
    return boxes


def _row_count(boxes: Sequence[_Box]) -> int:
    return max((box.row for box in boxes), default=-1) + 1


def _lane_inches(lanes: Sequence[str]) -> float:
    """Width in inches of a lane, which is the column of an operand in the figure. In a figure for a paper, all lanes
    together fill the figure, but a lane has a width between the least width and LANE_INCHES. In other figures, it is
    LANE_INCHES.
    """
    sheet = sheet_inches()
    if sheet is None:
        return LANE_INCHES
    sizes = _sizes(lanes)
    return min(LANE_INCHES, max(sizes.least_lane, (sheet - 2 * sizes.margin - sizes.gap) / max(len(lanes), 2)))


def _name_lines(name: str, inches: float, sizes: _Sizes) -> list[str]:
    """Lines of the name of a memory. In a narrow figure, a line ends after an underscore if the name is too long."""
    if sizes is WIDE:
        return [name]
    parts = textwrap.wrap(name.replace("_", "_ "), int(inches * sizes.name_characters_per_inch))
    return [part.replace("_ ", "_") for part in parts]


def _lines(core: Core, index: int, inches: float, sizes: _Sizes) -> Iterator[str]:
    """Lines of text on a memory, at most `inches` wide."""
    width = int(inches * sizes.characters_per_inch)
    indent = "    " if sizes is WIDE else " "
    for text in _texts(core, index):
        if not (sheet_inches() or ": " in text):
            yield text
            continue
        whole = _UNITS.sub("\u00a0\\1", text)  # a number and its unit stay on one line
        yield from (line.replace("\u00a0", " ") for line in textwrap.wrap(whole, width, subsequent_indent=indent))


def _texts(core: Core, index: int) -> Iterator[str]:
    """Texts on a memory: size, number of instances, costs and ports."""
    memory = core.memories[index]
    yield f"{size_text(memory.size_bits)}, {_instances(core, index)}"
    unit = "(area without a unit)" if core.area_unit == NO_UNIT else "mm²"
    area = f", {memory.area_mm2:.3g} {unit}" if memory.area_mm2 else ""
    yield f"read {memory.read_energy_pj:.4g}, write {memory.write_energy_pj:.4g} pJ a word{area}"
    for port in memory.ports:
        least, most = port.bandwidth_min_bits, port.bandwidth_max_bits
        bits = f"{most}" if least == most else f"{least} to {most}"
        served: dict[str, list[str]] = {}
        for operand, direction in port.allocation:
            served.setdefault(operand, []).append(direction)
        links = ", ".join(f"{operand} {'/'.join(directions)}" for operand, directions in served.items())
        yield f"{port.name} ({port.port_type.replace('_', ' ')}) {bits} b/cycle: {links}"
    if memory.force_double_buffering:
        yield "double-buffered"


def _instances(core: Core, index: int) -> str:
    count, served = instance_count(core, index), core.memories[index].served_dimensions
    if count == 1:
        return "one instance"
    if not served:
        return f"{count} instances, one per unit"
    return f"{count} instances, each serves {' '.join(served)}"


def _first_floor(sizes: _Sizes) -> float:
    return sizes.margin + ARRAY_INCHES + sizes.arrow


def _lane_x(lane: int, lanes: Sequence[str]) -> float:
    sizes = _sizes(lanes)
    return sizes.margin + sizes.gap / 2 + (lane + 0.5) * _lane_inches(lanes)


def _draw_array(canvas: Canvas, core: Core, sizes: _Sizes) -> None:
    array = core.operational_array
    inner = canvas.width - 2 * sizes.margin
    canvas.box(sizes.margin, sizes.margin, inner, ARRAY_INCHES, facecolor="#eeeeee", edgecolor=GREY)
    sides = " × ".join(f"{name} {size}" for name, size in array.dimensions)
    systolic = f", systolic along {' '.join(array.systolic_dimensions)}" if array.systolic_dimensions else ""
    x, y = canvas.width / 2, sizes.margin + ARRAY_INCHES / 2
    canvas.text(x, y + 0.11, f"operational array  {sides}", 9, ha="center")
    details = f"{array.unit_count} units, {array.unit_energy_pj:.4g} pJ an operation{systolic}"
    canvas.text(x, y - 0.12, details, sizes.text_points, ha="center", color=GREY)


def _draw_box(canvas: Canvas, box: _Box, floor: float, lanes: Sequence[str]) -> None:
    sizes, lane = _sizes(lanes), _lane_inches(lanes)
    left = _lane_x(box.first, lanes) - lane / 2 + sizes.gap / 2
    width = (box.last - box.first + 1) * lane - sizes.gap
    height = box.height_inches
    canvas.rounded_box(left, floor, width, height, facecolor="white", edgecolor=GREY)
    y = floor + height - PAD_INCHES - sizes.line / 2
    for number, line in enumerate(box.name_lines):
        canvas.text(left + sizes.pad, y - sizes.line * number, line, sizes.name_points, weight="bold")
    y -= sizes.line * (len(box.name_lines) - 1)
    for operand in box.memory.operands:
        x, colour = _lane_x(lanes.index(operand), lanes), memory_operand_colour(operand, lanes)
        chip_y = y - sizes.line / 2 - CHIP_INCHES / 2 + 0.02
        width, height = CHIP_SIZE_INCHES
        corner = (x - width / 2, chip_y - height / 2)
        canvas.box(*corner, width, height, facecolor=lighter(colour, 0.75), edgecolor=colour, linewidth=0.8)
        canvas.text(x, chip_y, operand, sizes.text_points, ha="center")
    for number, line in enumerate(box.lines):
        y = floor + PAD_INCHES + sizes.line * (len(box.lines) - number - 0.5)
        canvas.text(left + sizes.pad, y, line, sizes.text_points, color="#222222")


def _draw_arrows(
    canvas: Canvas, core: Core, lanes: Sequence[str], boxes: Sequence[_Box], floors: Sequence[float]
) -> None:
    box_of = {box.memory.name: box for box in boxes}
    for operand, chain in memory_hierarchy(core).levels_of:
        x, colour = _lane_x(lanes.index(operand), lanes), memory_operand_colour(operand, lanes)
        below = _sizes(lanes).margin + ARRAY_INCHES
        for index in chain:
            box = box_of[core.memories[index].name]
            flows = _flows(box.memory, operand)
            for place, upwards in enumerate(flows):
                shift = 0.07 * (2 * place - 1) if len(flows) == 2 else 0.0
                lower, upper = (x + shift, below), (x + shift, floors[box.row])
                start, end = (lower, upper) if upwards else (upper, lower)
                canvas.arrow(start, end, colour)
            below = floors[box.row] + box.height_inches


def _flows(memory: Memory, operand: str) -> list[bool]:
    """Directions in which an operand moves between a memory and the level below: True for upwards, False for downwards.
    Partial sums move in both directions.
    """
    served = memory.port_of
    return [upwards for direction, upwards in (("tl", False), ("fl", True)) if (operand, direction) in served]
