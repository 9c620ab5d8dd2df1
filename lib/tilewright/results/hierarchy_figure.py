"""Figure of the memory hierarchy of a core: memories above the array, with an arrow for each operand between them.

Every memory operand has a vertical lane, and a memory spans the lanes of its operands. Memories of one topological
generation share a row: their longest chains of memories down to the array are equally long. If two memories of a row
would overlap, one of them gets a row of its own.
"""

import itertools
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

LANE_INCHES, GAP_INCHES, MARGIN_INCHES, TITLE_INCHES, ARROW_INCHES = 2.75, 0.22, 0.25, 0.75, 0.42
LEAST_LANE_INCHES = 1.4
"""Smallest width, in inches, of the column of an operand (a lane) in a figure for a paper."""
LINE_INCHES, PAD_INCHES, CHIP_INCHES = 0.145, 0.1, 0.2
CHIP_SIZE_INCHES = (0.34, 0.14)
TEXT_POINTS = 7.0
CHARACTERS_PER_INCH = 19.5
ARRAY_INCHES = 0.62
MOST_ORDERED_LANES = 6
"""Largest number of operands for which all orders from left to right are tried in the figure."""


@dataclass(frozen=True)
class _Box:
    """Box of a memory in the figure: its lanes (first, last), its row, and its text."""

    memory: Memory
    first: int
    last: int
    row: int
    lines: tuple[str, ...]

    @property
    def height_inches(self) -> float:
        """Height in inches of the name, the operands and the lines of text together."""
        return CHIP_INCHES + LINE_INCHES * (len(self.lines) + 1) + 2 * PAD_INCHES


def hierarchy_figure(core: Core) -> Figure:
    """Figure of a core: the array at the bottom and the memories above, with operands, sizes, instances, ports and
    costs.
    """
    lanes = lane_order(core)
    boxes = _boxes(core, lanes)
    rows = [max(box.height_inches for box in boxes if box.row == row) for row in range(_row_count(boxes))]
    width = 2 * MARGIN_INCHES + _lane_inches(lanes) * max(len(lanes), 2) + GAP_INCHES
    height = TITLE_INCHES + ARRAY_INCHES + sum(rows) + ARROW_INCHES * len(rows) + MARGIN_INCHES
    with figure_style():
        canvas = Canvas(width, height)
        floors = list(itertools.accumulate(rows, lambda y, row: y + row + ARROW_INCHES, initial=_first_floor()))
        found = core_area(core)
        area = found.note or f"area {found.mm2:.4g} mm²"
        words = "tl, fl: to and from the level below; th, fh: to and from the level above"
        canvas.title(MARGIN_INCHES, f"Memory hierarchy of {core.name}", words, area)
        canvas.figure.numbers = lambda: _numbers(core)
        _draw_array(canvas, core)
        _draw_arrows(canvas, core, lanes, boxes, floors)
        for box in boxes:
            _draw_box(canvas, box, floors[box.row], lanes)
    return canvas.figure


def write_hierarchy_figure(core: Core, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure as `path_stem`.svg and .png; for a paper, as the files of `figure_suffixes`. Returns the
    paths.
    """
    return save_figure(hierarchy_figure(core), path_stem)


def lane_order(core: Core) -> tuple[str, ...]:
    """Memory operands in the order in which the figure shows them, from left to right. The order is chosen so that the
    operands of each memory stand side by side as far as possible. Of equally good orders, the one whose positions in
    the hardware file are first in lexicographic order is taken. If there are more than MOST_ORDERED_LANES operands, the
    order is that of the hardware file.
    """
    operands = tuple(operand for operand, _ in memory_hierarchy(core).levels_of)
    if len(operands) > MOST_ORDERED_LANES:
        return operands

    def gaps(order: Sequence[str]) -> int:
        places = ([order.index(operand) for operand in memory.operands] for memory in core.memories)
        return sum(max(place) - min(place) + 1 - len(set(place)) for place in places if place)

    return min(itertools.permutations(operands), key=gaps)


def generations(core: Core) -> list[list[int]]:
    """Indices of the memories of each topological generation. A memory is in the first generation if it is the
    innermost memory of all its operands; any other memory is one generation above the highest generation of the
    memories directly below it.
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
            boxes.append(
                _Box(
                    memory,
                    first,
                    last,
                    row + free,
                    tuple(_lines(core, index, _lane_inches(lanes) * (last - first + 1))),
                )
            )
        row += len(taken)
    return boxes


def _row_count(boxes: Sequence[_Box]) -> int:
    return max((box.row for box in boxes), default=-1) + 1


def _lane_inches(lanes: Sequence[str]) -> float:
    """Width in inches of a lane, which is the column of an operand in the figure. In a paper, the width is chosen so
    that all lanes together fill the figure, but it stays between LEAST_LANE_INCHES and LANE_INCHES. Elsewhere, it is
    LANE_INCHES.
    """
    sheet = sheet_inches()
    if sheet is None:
        return LANE_INCHES
    return min(LANE_INCHES, max(LEAST_LANE_INCHES, (sheet - 2 * MARGIN_INCHES - GAP_INCHES) / max(len(lanes), 2)))


def _lines(core: Core, index: int, width_inches: float) -> Iterator[str]:
    """Lines of text on a memory, short enough for its box."""
    width = int((width_inches - GAP_INCHES - 2 * PAD_INCHES) * CHARACTERS_PER_INCH)
    for text in _texts(core, index):
        yield from textwrap.wrap(text, width, subsequent_indent="    ") if sheet_inches() or ": " in text else [text]


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


def _first_floor() -> float:
    return MARGIN_INCHES + ARRAY_INCHES + ARROW_INCHES


def _lane_x(lane: int, lanes: Sequence[str]) -> float:
    return MARGIN_INCHES + GAP_INCHES / 2 + (lane + 0.5) * _lane_inches(lanes)


def _draw_array(canvas: Canvas, core: Core) -> None:
    array = core.operational_array
    inner = canvas.width - 2 * MARGIN_INCHES
    canvas.box(MARGIN_INCHES, MARGIN_INCHES, inner, ARRAY_INCHES, facecolor="#eeeeee", edgecolor=GREY)
    sides = " × ".join(f"{name} {size}" for name, size in array.dimensions)
    systolic = f", systolic along {' '.join(array.systolic_dimensions)}" if array.systolic_dimensions else ""
    x, y = canvas.width / 2, MARGIN_INCHES + ARRAY_INCHES / 2
    canvas.text(x, y + 0.11, f"operational array  {sides}", 9, ha="center")
    details = f"{array.unit_count} units, {array.unit_energy_pj:.4g} pJ an operation{systolic}"
    canvas.text(x, y - 0.12, details, TEXT_POINTS, ha="center", color=GREY)


def _draw_box(canvas: Canvas, box: _Box, floor: float, lanes: Sequence[str]) -> None:
    lane = _lane_inches(lanes)
    left = _lane_x(box.first, lanes) - lane / 2 + GAP_INCHES / 2
    width = (box.last - box.first + 1) * lane - GAP_INCHES
    height = box.height_inches
    canvas.rounded_box(left, floor, width, height, facecolor="white", edgecolor=GREY)
    y = floor + height - PAD_INCHES - LINE_INCHES / 2
    canvas.text(left + PAD_INCHES, y, box.memory.name, 8.5, weight="bold")
    for operand in box.memory.operands:
        x, colour = _lane_x(lanes.index(operand), lanes), memory_operand_colour(operand, lanes)
        chip_y = y - LINE_INCHES / 2 - CHIP_INCHES / 2 + 0.02
        width, height = CHIP_SIZE_INCHES
        corner = (x - width / 2, chip_y - height / 2)
        canvas.box(*corner, width, height, facecolor=lighter(colour, 0.75), edgecolor=colour, linewidth=0.8)
        canvas.text(x, chip_y, operand, TEXT_POINTS, ha="center")
    for number, line in enumerate(box.lines):
        y = floor + PAD_INCHES + LINE_INCHES * (len(box.lines) - number - 0.5)
        canvas.text(left + PAD_INCHES, y, line, TEXT_POINTS, color="#222222")


def _draw_arrows(
    canvas: Canvas, core: Core, lanes: Sequence[str], boxes: Sequence[_Box], floors: Sequence[float]
) -> None:
    box_of = {box.memory.name: box for box in boxes}
    for operand, chain in memory_hierarchy(core).levels_of:
        x, colour = _lane_x(lanes.index(operand), lanes), memory_operand_colour(operand, lanes)
        below = MARGIN_INCHES + ARRAY_INCHES
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
    """Directions in which an operand moves between a memory and the level below it: True for upwards, False for
    downwards. Partial sums move in both directions.
    """
    served = memory.port_of
    return [upwards for direction, upwards in (("tl", False), ("fl", True)) if (operand, direction) in served]
