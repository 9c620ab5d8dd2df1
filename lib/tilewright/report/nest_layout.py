"""Where things stand in the figure of a loop nest: the same loop at the same height in the column of every operand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.cost.record import LayerRecord

ROW_INCHES, EMPTY_INCHES, BAND_INCHES = 0.46, 0.46, 0.2
"""Heights of a temporal loop, of a memory that keeps no loop, and of a band of spatial loops."""
Loop = tuple[str, Any]


@dataclass(frozen=True)
class Block:
    """A part of an operand's column: a memory level, or (level None) a band of spatial loops. Heights in inches."""

    operand: str
    level: int | None
    bottom: float
    top: float
    spatial: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class NestLayout:
    """A loop nest in inches above the array."""

    loops: tuple[Loop, ...]
    """The temporal loops, innermost first."""
    loop_bottoms: tuple[float, ...]
    blocks: tuple[Block, ...]
    """Of all columns, each from the array upwards."""
    height: float


@dataclass(frozen=True)
class _Part:
    """A memory level or a band of spatial loops before it is placed."""

    level: int | None
    end: int
    """How many temporal loops are inside it or below it."""
    height: float
    """Its own height; 0 for a level that is as high as its loops."""
    spatial: tuple[Loop, ...] = ()


def nest_layout(record: LayerRecord) -> NestLayout:
    """The layout of a record's loop nest; of levels that could be higher, the upper one is."""
    operands = tuple(record.memory_levels)
    loops = _temporal_loops(record)
    parts = {operand: list(_parts(record, operand)) for operand in operands}
    reached = dict.fromkeys(operands, 0.0)
    loop_bottoms: list[float] = []
    blocks: list[Block] = []
    for position in range(len(loops) + 1):
        loops_top = loop_bottoms[-1] + ROW_INCHES if loop_bottoms else 0.0
        for operand in operands:
            for part in (part for part in parts[operand] if part.end == position):
                top = reached[operand] + part.height if part.height else loops_top
                blocks.append(Block(operand, part.level, reached[operand], top, part.spatial))
                reached[operand] = top
        loop_bottoms.append(max([loops_top, *reached.values()]))
    # The place of the loop after the outermost one is the top of everything.
    height = loop_bottoms.pop()
    return NestLayout(loops, tuple(loop_bottoms), tuple(_drawn_out(blocks, height)), height)


def _temporal_loops(record: LayerRecord) -> tuple[Loop, ...]:
    levels: Sequence[Any] = next(iter(record.temporal_mapping.values()), [])
    return tuple((dimension, size) for level in levels for dimension, size in level)


def _parts(record: LayerRecord, operand: str) -> Iterator[_Part]:
    """The column of an operand from the array upwards: spatial loops below each level, and above the last."""
    inside = 0
    spatial, levels = record.spatial_levels[operand], record.temporal_mapping[operand]
    for level in range(max(len(spatial), len(levels))):
        unrolled = tuple((dimension, size) for dimension, size in spatial[level]) if level < len(spatial) else ()
        if unrolled:
            yield _Part(None, inside, BAND_INCHES, unrolled)
        if level < len(levels):
            inside += len(levels[level])
            yield _Part(level, inside, 0.0 if levels[level] else EMPTY_INCHES)


def _drawn_out(blocks: Sequence[Block], height: float) -> Iterator[Block]:
    """The blocks, the topmost of each column up to the height of the highest column."""
    last = {block.operand: place for place, block in enumerate(blocks)}
    for place, block in enumerate(blocks):
        yield replace(block, top=height) if place == last[block.operand] else block
