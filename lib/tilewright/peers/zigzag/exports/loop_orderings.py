"""Loop orderings of layers as text, in the layout of zigzag-dse 3.9.1."""

from collections.abc import Mapping, Sequence

from tilewright.base.harmless import ended_lines
from tilewright.cost.record import LayerRecord
from tilewright.peers.zigzag.exports.files import T
from tilewright.peers.zigzag.exports.results import (
    reference_equation,
)
from tilewright.results.records import Summary, layers_in_order
from tilewright.workload.layer import OUTPUT

INDENT = 2


NAME_ROOM = 14
"""Number of characters of a line without the name of the dimension and the indentation: the characters of `for … in [0,
…):`.
"""


COLUMN_GAP = 5


def loop_ordering_text(record: LayerRecord, name: str = "") -> str:
    """Loop ordering of one layer as text that ends with an empty line. `name` replaces the layer name of the record.

    The temporal loops come first, outermost loop first, each with the memory of every operand. Then come the spatial
    loops with the unrolling that the cost model uses.
    """
    operands = list(record.memory_operand_links)
    operands = [operand for operand in operands if operand in record.memory_levels]
    temporal = _temporal_loops(record, operands)
    spatial = [loop for level in _output_levels(record.spatial_levels) for loop in level][::-1]
    names = [dimension for dimension, _, _ in temporal] or [str(dimension) for dimension, _ in spatial]
    width = max(map(len, names), default=0) + NAME_ROOM + INDENT * (len(temporal) + len(spatial)) + COLUMN_GAP
    memories = [memory for _, _, of_loop in temporal for memory in of_loop] or operands
    column = max(map(len, memories), default=0) + COLUMN_GAP
    total = width + column * len(operands)

    def row(text: str, cells: Sequence[str]) -> str:
        return text.ljust(width) + "".join(cell.ljust(column) for cell in cells)

    lines = [f"Loop ordering for {name or record.layer.name}; {reference_equation(record)}"]
    lines += ["=" * total, row("Temporal Loops", operands), "=" * total]
    for depth, (dimension, size, of_loop) in enumerate(temporal):
        lines += [row(f"{' ' * INDENT * depth}for {dimension} in [0, {size}):", of_loop), "-" * total]
    blank = [""] * len(operands)
    lines += ["=" * total, row("Spatial Loops", blank), "=" * total]
    for dimension, lanes in spatial:
        lines += [row(f"{' ' * INDENT * len(temporal)}parfor {dimension} in [0, {lanes}):", blank), "-" * total]
    return ended_lines(lines) + "\n"


def network_loop_orderings(records: Sequence[LayerRecord], summary: Summary | None = None) -> str:
    """Text of `loop_ordering.txt`: the loop orderings of all layers of a network, in execution order."""
    return "".join(loop_ordering_text(layer.record, layer.name) for layer in layers_in_order(records, summary))


def _temporal_loops(record: LayerRecord, operands: Sequence[str]) -> list[tuple[str, int, list[str]]]:
    """Temporal loops, outermost first, as triples (dimension, size, memory of each operand)."""
    levels = record.temporal_mapping
    memory_of = {
        operand: [record.memory_levels[operand][m] for m, loops in enumerate(levels[operand]) for _ in loops]
        for operand in operands
    }
    loops = [loop for level in _output_levels(levels) for loop in level]
    return [(loop[0], loop[1], [memory_of[o][place] for o in operands]) for place, loop in enumerate(loops)][::-1]


def _output_levels(levels: Mapping[str, Sequence[T]]) -> Sequence[T]:
    """Levels of the output. If `levels` has no output, the result has the levels of the first operand."""
    return levels.get(OUTPUT) or next(iter(levels.values()), ())
