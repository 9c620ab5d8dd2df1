"""Text that shows the mapping of a layer as a loop nest.

Temporal loops come first, the outermost at the top. The line of a temporal loop names one memory for each operand: the
innermost memory whose data of this operand stay the same while the loop runs. Then come the spatial loops (`parfor`).
The line of a spatial loop names, for each operand, the memory that distributes data to the lanes of the loop or
collects data from them.
"""

from collections.abc import Sequence

from tilewright.base.harmless import ended_lines
from tilewright.base.units import energy_text
from tilewright.cost.record import LayerRecord
from tilewright.results.records import Summary, layers_in_order, used_unrolling, work_text
from tilewright.results.reported_mapping import ReportedMapping

INDENT = "  "
MISSING = "-"
Row = tuple[str, ...]


def loop_nest_text(record: LayerRecord, name: str = "") -> str:
    """Loop nest of one record, as text that ends in a newline. `name` replaces the layer name in the title.

    The record may have any number of operands, and different memory levels for each operand. Temporal or spatial loops
    may be missing.
    """
    operands = tuple(record.memory_levels)
    temporal = _temporal_rows(record, operands)
    depth = len(temporal)
    spatial = _spatial_rows(record, operands, depth)
    body = INDENT * depth + record.layer.equation
    temporal_title: Row = ("Temporal loops, outermost first", *operands)
    spatial_title: Row = ("Spatial loops", *operands, "array dimension")
    widths = _column_widths([temporal_title, spatial_title, *temporal, *spatial])
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [*_title(record, name), "", _line(temporal_title, widths), rule]
    lines += [_line(row, widths) for row in temporal] or ["(none: one pass)"]
    lines += ["", _line(spatial_title, widths), rule]
    lines += [_line(row, widths) for row in spatial] or ["(none: only one unit of the array works)"]
    lines += [body] if body.strip() else []
    return ended_lines(line.rstrip() for line in lines)


def network_loop_nests(records: Sequence[LayerRecord], summary: Summary | None = None) -> str:
    """Loop nests of a whole run, one for each distinct layer problem. The title of a nest names all layers with this
    problem.
    """
    order = {layer.record_index: None for layer in layers_in_order(records, summary)}
    return "\n\n".join(loop_nest_text(records[index]) for index in order)


def reported_loop_nests(run: ReportedMapping) -> str:
    """Loop nests of a run, for its report."""
    return network_loop_nests(run.records, run.summary)


def _title(record: LayerRecord, name: str) -> list[str]:
    layer = record.layer
    others = [other for other in record.names if other != layer.name]
    sizes = ", ".join(f"{dimension} {size}" for dimension, size in layer.loop_sizes.items())
    title = f"{name or layer.name} ({layer.operator_type}) on {record.core}"
    lines = [title, "=" * len(title)]
    if others and not name:
        lines.append(f"also: {', '.join(others)}")
    lines += [
        f"{sizes}: {work_text(record)}",
        f"{record.latency_cycles:,.0f} cycles, {energy_text(record.energy_pj)}"
        f" (model {record.model}, objective {record.objective})",
    ]
    return lines


def _temporal_rows(record: LayerRecord, operands: Sequence[str]) -> list[Row]:
    columns = {operand: _memory_of_each_loop(record, operand) for operand in operands}
    loops = [loop for level in record.temporal_mapping[operands[0]] for loop in level] if operands else []
    rows = []
    for depth, position in enumerate(reversed(range(len(loops)))):
        dimension, size = loops[position]
        memories = (columns[operand][position] for operand in operands)
        rows.append((f"{INDENT * depth}for {dimension} in [0, {_number(size)}):", *memories))
    return rows


def _memory_of_each_loop(record: LayerRecord, operand: str) -> list[str]:
    names = record.memory_levels[operand]
    levels = record.temporal_mapping[operand]
    return [names[index] for index, level in enumerate(levels) for _ in level]


def _spatial_rows(record: LayerRecord, operands: Sequence[str], depth: int) -> list[Row]:
    rows = []
    for array_dimension, dimension, asked, used in used_unrolling(record):
        if asked == 1:
            continue
        note = array_dimension if used == asked else f"{array_dimension}, {_number(used)} of {asked} lanes counted"
        memories = (_spreading_memory(record, operand, dimension, used) for operand in operands)
        rows.append((f"{INDENT * depth}parfor {dimension} in [0, {asked}):", *memories, note))
    return rows


def _spreading_memory(record: LayerRecord, operand: str, dimension: str, used: float) -> str:
    names = [*record.memory_levels[operand], MISSING]
    levels = record.spatial_levels[operand]
    found = [(names[index], size) for index, level in enumerate(levels) for d, size in level if d == dimension]
    exact = [name for name, size in found if size == used]
    chosen = exact if len(exact) == 1 else [name for name, _ in found]
    return "/".join(dict.fromkeys(chosen)) or MISSING


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def _column_widths(rows: Sequence[Row]) -> list[int]:
    count = max(len(row) for row in rows)
    return [max((len(row[column]) for row in rows if column < len(row)), default=0) for column in range(count)]


def _line(row: Row, widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
