"""Files in the layouts of zigzag-dse 3.9.1, each written whole: a reader sees the old file or the new one.

`loop_ordering.txt`, unlike the tool's own, can be written for layers without temporal loops and for any number of
operands. For reading there is the richer `report.loop_nest`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tilewright.artifacts.files import make_folder, write_atomically
from tilewright.cost.record import LayerFacts, LayerRecord
from tilewright.errors import InputError, Problem
from tilewright.hardware.core import Core
from tilewright.harmless import ended_lines
from tilewright.peers.zigzag.exports.results import (
    COMPLETE,
    SIMPLE,
    JsonObject,
    complete_layer,
    complete_layers,
    complete_network,
    export_file_name,
    json_text,
    pickle_bytes,
    reference_equation,
    simple_result,
)
from tilewright.report.records import OVERALL, Summary, layers_in_order
from tilewright.workload.layer import OUTPUT, Layer


def write_complete_layer(
    folder: Path, record: LayerRecord, core: Core, layer: Layer | None = None, name: str = ""
) -> Path:
    """Write `<layer>_complete.json` of one layer into a folder; returns its path."""
    value = complete_layer(record, core, layer, name)
    return _write_json(folder, name or record.layer.name, COMPLETE, value)


def write_complete_network(
    folder: Path,
    records: Sequence[LayerRecord],
    summary: Summary | None,
    core: Core,
    layer_ids: Mapping[str, int] | None = None,
) -> Path:
    """Write `overall_complete.json`, the sums over a network, into a folder; returns its path."""
    return _write_json(folder, OVERALL, COMPLETE, complete_network(records, summary, core, layer_ids))


def write_simple(folder: Path, totals: LayerRecord | Summary, name: str = OVERALL) -> Path:
    """Write `<name>_simple.json` of a record, or of a network by its summary, into a folder; returns its path."""
    return _write_json(folder, name, SIMPLE, simple_result(totals))


def write_pickle(path: Path, values: Sequence[JsonObject]) -> None:
    """Write complete objects as a pickled list of plain dicts."""
    write_atomically(path, pickle_bytes(values))


def write_all_complete(
    folder: Path,
    records: Sequence[LayerRecord],
    summary: Summary | None,
    core: Core,
    layers: Mapping[str, Layer] | None = None,
    layer_ids: Mapping[str, int] | None = None,
) -> list[Path]:
    """Write the complete objects of every layer and of their sum; returns the paths.

    Raises InputError where two layers would be one file.
    """
    values = complete_layers(records, summary, core, layers)
    _refuse_equal_files(list(values))
    paths = [_write_json(folder, name, COMPLETE, value) for name, value in values.items()]
    return [*paths, write_complete_network(folder, records, summary, core, layer_ids)]


def write_all_simple(folder: Path, records: Sequence[LayerRecord], summary: Summary) -> list[Path]:
    """Write energy and latency of every layer and of the network; returns the paths.

    Raises InputError where two layers would be one file.
    """
    layers = layers_in_order(records, summary)
    _refuse_equal_files([layer.name for layer in layers])
    return [*(write_simple(folder, layer.record, layer.name) for layer in layers), write_simple(folder, summary)]


def check_descriptions(records: Sequence[LayerRecord], core: Core, layers: Mapping[str, Layer]) -> None:
    """Raise InputError unless `core` and `layers` are what the records were made with."""
    problems = []
    sizes = {memory.name: memory.size_bits for memory in core.memories}
    for placed in layers_in_order(records):
        layer = layers.get(placed.name)
        if layer is None or LayerFacts.of(layer)._replace(name=placed.record.layer.name) != placed.record.layer:
            problems.append(Problem("this layer of the run is not in the workload given", path=placed.name))
        # With data locality a layer has fewer memories, and less room in them.
        if any(memory.size_bits > sizes.get(name, 0) for name, memory in placed.record.memories.items()):
            problems.append(Problem(f"this layer did not run on the hardware given, {core.name}", path=placed.name))
    if problems:
        raise InputError(problems)


def _write_json(folder: Path, name: str, form: str, value: Any) -> Path:
    make_folder(folder)
    path = folder / export_file_name(name, form)
    write_atomically(path, json_text(value))
    return path


def _refuse_equal_files(names: Sequence[str]) -> None:
    counts = Counter(export_file_name(name, COMPLETE) for name in (*names, OVERALL))
    problems = [
        Problem("two layers would be written to the same file", path=name, value=export_file_name(name, COMPLETE))
        for name in names
        if counts[export_file_name(name, COMPLETE)] > 1
    ]
    if problems:
        raise InputError(problems)


T = TypeVar("T")
INDENT = 2
NAME_ROOM = 14
"""Room for `for … in [0, …):` beside the name and the indentation."""
COLUMN_GAP = 5


def loop_ordering_text(record: LayerRecord, name: str = "") -> str:
    """The loop ordering of one layer, with an empty line at its end; `name` replaces the layer name of the record.

    Temporal loops come outermost first, each with the memory of every operand; then the spatial loops as counted.
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
    """The loop orderings of every layer of a network in execution order: the content of `loop_ordering.txt`."""
    return "".join(loop_ordering_text(layer.record, layer.name) for layer in layers_in_order(records, summary))


def _temporal_loops(record: LayerRecord, operands: Sequence[str]) -> list[tuple[str, int, list[str]]]:
    """(dimension, size, memory of each operand), outermost first."""
    levels = record.temporal_mapping
    memory_of = {
        operand: [record.memory_levels[operand][m] for m, loops in enumerate(levels[operand]) for _ in loops]
        for operand in operands
    }
    loops = [loop for level in _output_levels(levels) for loop in level]
    return [(loop[0], loop[1], [memory_of[o][place] for o in operands]) for place, loop in enumerate(loops)][::-1]


def _output_levels(levels: Mapping[str, Sequence[T]]) -> Sequence[T]:
    """The levels of the output; those of the first operand in a record without one."""
    return levels.get(OUTPUT) or next(iter(levels.values()), ())
