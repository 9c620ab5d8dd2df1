"""Figure of the loop nest of a layer over its memory levels.

The temporal loops are on the left, the outermost at the top. To the right, every operand has a column with its
memories. The box of a memory spans the loops that run while the memory keeps the same data. A loop has the same height
in all columns.

A spatial loop is a band between two memories, because it distributes or collects the data that move between them. The
array is at the bottom.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.measures import ENERGY_PJ
from tilewright.base.units import energy_text, size_text
from tilewright.cost.record import LayerRecord
from tilewright.results.canvas import GREY, Canvas
from tilewright.results.figure_files import figure_style, make_harmless, save_figure
from tilewright.results.figure_layout import lighter, operand_colour
from tilewright.results.records import Summary, layers_in_order, used_unrolling
from tilewright.results.reported_mapping import ReportedMapping
from tilewright.results.sheet import sheet_inches
from tilewright.results.words import short_layer_name

if TYPE_CHECKING:
    import pandas

ROW_INCHES, BAND_INCHES = 0.46, 0.2
"""Heights in inches. ROW_INCHES: height of a temporal loop, and of a memory without loops of its own. BAND_INCHES:
height of a band of spatial loops.
"""
Loop = tuple[str, Any]


@dataclass(frozen=True)
class NestBlock:
    """Part of the column of an operand: a memory level, or a band of spatial loops (`level` is None). Heights are in
    inches.
    """

    operand: str
    level: int | None
    bottom: float
    top: float
    spatial: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class NestLayout:
    """Layout of a figure of a loop nest. Positions are heights in inches above the array."""

    loops: tuple[Loop, ...]
    """Temporal loops, innermost first."""
    loop_bottoms: tuple[float, ...]
    blocks: tuple[NestBlock, ...]
    """Blocks of all columns. The blocks of one column are in order from the array upwards."""
    height: float


@dataclass(frozen=True)
class _Part:
    """Memory level, or band of spatial loops, before it has a position."""

    level: int | None
    end: int
    """Number of temporal loops in this part and in all lower parts."""
    height: float
    """Height in inches of a band, or of a level without loops. It is 0 for a level with loops, because the height of
    this level follows from the positions of its loops.
    """
    spatial: tuple[Loop, ...] = ()


def nest_layout(record: LayerRecord, row_inches: float = ROW_INCHES) -> NestLayout:
    """Layout of the loop nest of a record, with a column for each operand. All columns have the same height.
    `row_inches` is the height of a temporal loop, and of a memory without loops.
    """
    operands = tuple(record.memory_levels)
    loops = _temporal_loops(record)
    parts = {operand: list(_parts(record, operand, row_inches)) for operand in operands}
    reached = dict.fromkeys(operands, 0.0)
    loop_bottoms: list[float] = []
    blocks: list[NestBlock] = []
    for position in range(len(loops) + 1):
        loops_top = loop_bottoms[-1] + row_inches if loop_bottoms else 0.0
        for operand in operands:
            for part in (part for part in parts[operand] if part.end == position):
                top = reached[operand] + part.height if part.height else loops_top
                blocks.append(NestBlock(operand, part.level, reached[operand], top, part.spatial))
                reached[operand] = top
        loop_bottoms.append(max([loops_top, *reached.values()]))
    # The place of the loop after the outermost one is the top of everything.
    height = loop_bottoms.pop()
    return NestLayout(loops, tuple(loop_bottoms), tuple(_drawn_out(blocks, height)), height)


def _temporal_loops(record: LayerRecord) -> tuple[Loop, ...]:
    levels: Sequence[Any] = next(iter(record.temporal_mapping.values()), [])
    return tuple((dimension, size) for level in levels for dimension, size in level)


def _parts(record: LayerRecord, operand: str, row_inches: float) -> Iterator[_Part]:
    """Parts of the column of an operand, from the array upwards. For each level, the spatial loops below it come first,
    then the level. The last part has the spatial loops above the last level, if there are any.
    """
    inside = 0
    spatial, levels = record.spatial_levels[operand], record.temporal_mapping[operand]
    for level in range(max(len(spatial), len(levels))):
        unrolled = tuple((dimension, size) for dimension, size in spatial[level]) if level < len(spatial) else ()
        if unrolled:
            yield _Part(None, inside, BAND_INCHES, unrolled)
        if level < len(levels):
            inside += len(levels[level])
            yield _Part(level, inside, 0.0 if levels[level] else row_inches)


def _drawn_out(blocks: Sequence[NestBlock], height: float) -> Iterator[NestBlock]:
    """Blocks of all columns. The topmost block of each column is extended up to `height`, so that all columns are
    equally high.
    """
    last = {block.operand: place for place, block in enumerate(blocks)}
    for place, block in enumerate(blocks):
        yield replace(block, top=height) if place == last[block.operand] else block


MARGIN_INCHES, TITLE_INCHES, HEAD_INCHES, ARRAY_INCHES = 0.25, 0.95, 0.28, 0.5
GAP_INCHES = 0.18
BAR_INCHES = 0.055
NOTE_POINTS, NAME_POINTS, LOOP_POINTS = 6.5, 8.0, 8.0
SHOWN_NAMES = 3


@dataclass(frozen=True)
class _Sizes:
    """Sizes of the parts of a figure. REPORT_SIZES are for a report, and PAPER_SIZES for a paper."""

    loop: float
    """Width in inches of the text of a temporal loop at the left of the figure, without the indentation of the loop."""
    indent: float
    column: float
    """Width of the column of an operand, in inches."""
    row: float
    """Height of a temporal loop, in inches."""
    lines: int
    """Number of lines of the note on a memory level."""


REPORT_SIZES = _Sizes(1.35, 0.1, 2.15, ROW_INCHES, 1)
PAPER_SIZES = _Sizes(1.1, 0.06, 1.42, 0.58, 2)


def nest_figure(record: LayerRecord, name: str = "") -> Figure:
    """Figure of the loop nest of one record; `name` replaces the layer name in the title.

    The record may have any number of operands, and different memory levels for each operand. Temporal or spatial loops
    may be missing.
    """
    operands = tuple(record.memory_levels)
    sizes = REPORT_SIZES if sheet_inches() is None else PAPER_SIZES
    layout = nest_layout(record, sizes.row)
    loop_width = sizes.loop + sizes.indent * len(layout.loops)
    width = 2 * MARGIN_INCHES + loop_width + (sizes.column + GAP_INCHES) * max(len(operands), 2)
    base = MARGIN_INCHES + ARRAY_INCHES
    height = base + layout.height + HEAD_INCHES + TITLE_INCHES
    with figure_style():
        canvas = Canvas(width, height)
        _draw_title(canvas, record, name)
        canvas.figure.numbers = lambda: _numbers(record)
        _draw_array(canvas, record)
        _draw_loops(canvas, layout, base, sizes)
        for place, operand in enumerate(operands):
            left = MARGIN_INCHES + loop_width + GAP_INCHES + place * (sizes.column + GAP_INCHES)
            head = f"{operand} (as {record.memory_operand_links.get(operand, operand)})"
            canvas.text(left + sizes.column / 2, base + layout.height + 0.12, head, 9, weight="bold", ha="center")
            for block in (block for block in layout.blocks if block.operand == operand):
                colour = operand_colour(operand, operands)
                if block.level is None:
                    _draw_band(canvas, block, colour, left, base, sizes.column)
                else:
                    _draw_level(canvas, block, record, colour, left, base, sizes)
                    _draw_own_loops(canvas, block, layout, left, base, sizes)
    return canvas.figure


def _numbers(record: LayerRecord) -> "pandas.DataFrame":
    """Table of the memory levels of each operand, from the array upwards."""
    import pandas

    rows = [
        {
            "operand": operand,
            "memory": memory,
            "loops": ", ".join(f"{dimension} {size}" for dimension, size in record.temporal_mapping[operand][level]),
            "tile_share": record.memory_utilization_individual[operand][level],
            "full_share": record.memory_utilization[operand][level],
            ENERGY_PJ: sum(record.energy_breakdown_pj[operand][level].values()),
        }
        for operand, memories in record.memory_levels.items()
        for level, memory in enumerate(memories)
    ]
    return pandas.DataFrame(rows)


def write_nest_figure(record: LayerRecord, path_stem: Path, name: str = "") -> tuple[Path, ...]:
    """Write the loop nest of one record as `path_stem`.svg and .png, or for a paper as the files of `figure_suffixes`.
    Returns the paths.
    """
    return save_figure(nest_figure(record, name), path_stem)


def nest_pages(records: Sequence[LayerRecord], summary: Summary | None = None) -> bytes:
    """PDF with the loop nests of a run: one page for each record, in the order of execution. Equal layers share a
    record.
    """
    order = dict.fromkeys(layer.record_index for layer in layers_in_order(records, summary))
    metadata = {"CreationDate": None, "Creator": "tilewright", "Producer": None}
    drawn = io.BytesIO()
    with figure_style(), PdfPages(drawn, metadata=metadata) as pages:
        for index in order:
            figure = nest_figure(records[index])
            make_harmless(figure)
            pages.savefig(figure)
        if not order:
            pages.savefig(Figure(figsize=(4, 1)))
    return drawn.getvalue()


def reported_pages(run: ReportedMapping) -> bytes:
    """PDF with the loop nests of a run, for its report."""
    return nest_pages(run.records, run.summary)


def write_layer_nests(
    records: Sequence[LayerRecord], summary: Summary | None, names: Sequence[str], folder: Path
) -> list[Path]:
    """Write the loop nest of each layer in `names` into `folder`: as `<layer>.svg` and `<layer>.png`, or for a paper as
    the files of `figure_suffixes`. Slashes in layer names become underscores. Returns the paths. Raises InputError if
    the run does not have one of the layers.
    """
    placed = {layer.name: layer for layer in layers_in_order(records, summary)}
    problems = [
        Problem("the run has no such layer", path=name, nearest=nearest_name(name, list(placed)))
        for name in names
        if name not in placed
    ]
    if problems:
        raise InputError(problems)
    return [
        path
        for name in names
        for path in write_nest_figure(placed[name].of_one, folder / name.strip("/").replace("/", "_"), name)
    ]


def _draw_title(canvas: Canvas, record: LayerRecord, name: str) -> None:
    layer = record.layer
    kind = layer.operator_type
    others = [short_layer_name(other, kind) for other in record.names if other != layer.name]
    also = f", also {', '.join(others[:SHOWN_NAMES])}" if others and not name else ""
    more = f" and {len(others) - SHOWN_NAMES} more" if len(others) > SHOWN_NAMES and not name else ""
    cost = f"{_energy(record.energy_pj)}, {record.latency_cycles:,.0f} cycles"
    canvas.title(
        MARGIN_INCHES,
        f"Layer {name or layer.name}",
        f"{kind} on {record.core}{also}{more}",
        str(layer.equation),
        ", ".join(f"{dimension} {size}" for dimension, size in layer.loop_sizes.items()),
        f"{cost}; MAC utilization {record.mac_utilization['with_offloading']:.1%}; bars: how full a memory is,"
        " dark: the part with this operand",
    )


def _draw_array(canvas: Canvas, record: LayerRecord) -> None:
    height = ARRAY_INCHES - 0.08
    inner = canvas.width - 2 * MARGIN_INCHES
    canvas.box(MARGIN_INCHES, MARGIN_INCHES, inner, height, facecolor="#eeeeee", edgecolor=GREY)
    sides = []
    unrolling = used_unrolling(record)
    for array_dimension in record.spatial_mapping:
        factors = [
            f"{dimension} {asked}" + ("" if used == asked else f" ({used:.4g} counted)")
            for side, dimension, asked, used in unrolling
            if side == array_dimension and asked != 1
        ]
        sides.append(f"{array_dimension}: {', '.join(factors) or '-'}")
    text = "operational array   " + "   ".join(sides)
    canvas.text(canvas.width / 2, MARGIN_INCHES + height / 2, text, 8.5, ha="center")


def _draw_loops(canvas: Canvas, layout: NestLayout, base: float, sizes: _Sizes) -> None:
    for position, (dimension, size) in enumerate(layout.loops):
        bottom = base + layout.loop_bottoms[position]
        x = MARGIN_INCHES + sizes.indent * (len(layout.loops) - 1 - position)
        canvas.text(x, bottom + sizes.row / 2, f"for {dimension} in [0, {size})", LOOP_POINTS)
        ends = (MARGIN_INCHES, bottom), (canvas.width - MARGIN_INCHES, bottom)
        canvas.line(*ends, color="#dddddd", linewidth=0.5, zorder=0)


def _draw_band(canvas: Canvas, block: NestBlock, colour: str, left: float, base: float, width: float) -> None:
    bottom, height = base + block.bottom, block.top - block.bottom
    face = lighter(colour, 0.55)
    canvas.box(left, bottom, width, height, facecolor=face, hatch="////", edgecolor="white", linewidth=0)
    text = "parfor " + ", ".join(f"{dimension} {size:.6g}" for dimension, size in block.spatial)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    canvas.text(left + width / 2, bottom + height / 2, text, NOTE_POINTS, ha="center", bbox=behind)


def _draw_level(
    canvas: Canvas, block: NestBlock, record: LayerRecord, colour: str, left: float, base: float, sizes: _Sizes
) -> None:
    assert block.level is not None
    bottom, top = base + block.bottom, base + block.top
    face = lighter(colour, 0.88)
    canvas.box(left, bottom, sizes.column, top - bottom, facecolor=face, edgecolor=colour)
    name = record.memory_levels[block.operand][block.level]
    own = record.memory_utilization_individual[block.operand][block.level]
    shared = record.memory_utilization[block.operand][block.level]
    tile = size_text(round(own * record.memories[name].size_bits))
    energy_pj = sum(record.energy_breakdown_pj[block.operand][block.level].values())
    canvas.text(left + 0.07, top - 0.12, name, NAME_POINTS, weight="bold")
    notes = [f"tile {tile}, {_share(shared)} full", _energy(energy_pj)]
    for number, note in enumerate(notes if sizes.lines == len(notes) else [", ".join(notes)]):
        canvas.text(left + 0.07, top - 0.27 - 0.12 * number, note, NOTE_POINTS, color=GREY)
    inner = sizes.column - 0.14
    for share, filling in ((1.0, "white"), (shared, lighter(colour, 0.55)), (own, colour)):
        if share > 0:
            canvas.box(left + 0.07, bottom + 0.045, inner * min(share, 1.0), BAR_INCHES, facecolor=filling, linewidth=0)


def _draw_own_loops(
    canvas: Canvas, block: NestBlock, layout: NestLayout, left: float, base: float, sizes: _Sizes
) -> None:
    """Write the loops of a memory level into the block of this level, each at its height in the loop nest."""
    for bottom, (dimension, size) in zip(layout.loop_bottoms, layout.loops, strict=True):
        if block.bottom <= bottom < block.top:
            height = sizes.row * (0.5 if sizes.lines == 1 else 0.35)
            place = (left + sizes.column - 0.07, base + bottom + height)
            canvas.text(*place, f"{dimension} {size}", NOTE_POINTS + 0.5, ha="right")


def _share(value: float) -> str:
    return "<0.1%" if 0 < value < 0.001 else f"{value:.1%}"


def _energy(energy_pj: float) -> str:
    return energy_text(energy_pj)
