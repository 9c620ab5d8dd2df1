"""Files in the layouts of zigzag-dse 3.9.1, each written atomically.

Unlike the file of zigzag-dse, `loop_ordering.txt` can be written for layers without temporal loops, and for any number
of operands. The module `tilewright.results.loop_nest` makes a more detailed text.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tilewright.base.artifacts.files import make_folder, write_atomically
from tilewright.base.errors import InputError, Label, Problem
from tilewright.cost.record import LayerFacts, LayerRecord
from tilewright.hardware.core import Core
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
    simple_result,
)
from tilewright.results.records import OVERALL, Summary, layers_in_order
from tilewright.workload.layer import Layer


def write_complete_layer(
    folder: Path, record: LayerRecord, core: Core, layer: Layer | None = None, name: str = ""
) -> Path:
    """Write `<layer>_complete.json` of one layer into a folder. Returns the path of the file. The arguments `core`,
    `layer` and `name` are passed to `complete_layer`.
    """
    value = complete_layer(record, core, layer, name)
    return _write_json(folder, name or record.layer.name, COMPLETE, value)


def write_complete_network(
    folder: Path,
    records: Sequence[LayerRecord],
    summary: Summary | None,
    core: Core,
    layer_ids: Mapping[str, int] | None = None,
) -> Path:
    """Write `overall_complete.json`, the sums over a network, into a folder. Returns the path of the file."""
    return _write_json(folder, OVERALL, COMPLETE, complete_network(records, summary, core, layer_ids))


def write_simple(folder: Path, totals: LayerRecord | Summary, name: str = OVERALL) -> Path:
    """Write `<name>_simple.json` for the record of a layer or the summary of a network into a folder. Returns the path
    of the file.
    """
    return _write_json(folder, name, SIMPLE, simple_result(totals))


def write_pickle(path: Path, values: Sequence[JsonObject]) -> None:
    """Write complete objects (`complete_layer`) as a pickled list of plain dicts."""
    write_atomically(path, pickle_bytes(values))


def write_all_complete(
    folder: Path,
    records: Sequence[LayerRecord],
    summary: Summary | None,
    core: Core,
    layers: Mapping[str, Layer] | None = None,
    layer_ids: Mapping[str, int] | None = None,
) -> list[Path]:
    """Write `<layer>_complete.json` of each layer and `overall_complete.json` of the network into a folder. Returns the
    paths of the files.

    Raises InputError if two layers would be written to the same file.
    """
    values = complete_layers(records, summary, core, layers)
    _refuse_equal_files(list(values))
    paths = [_write_json(folder, name, COMPLETE, value) for name, value in values.items()]
    return [*paths, write_complete_network(folder, records, summary, core, layer_ids)]


def write_all_simple(folder: Path, records: Sequence[LayerRecord], summary: Summary) -> list[Path]:
    """Write energy and latency of all layers and of the network. Returns the paths of the files.

    Raises InputError if two layers would be written to the same file.
    """
    layers = layers_in_order(records, summary)
    _refuse_equal_files([layer.name for layer in layers])
    return [*(write_simple(folder, layer.record, layer.name) for layer in layers), write_simple(folder, summary)]


def check_descriptions(records: Sequence[LayerRecord], core: Core, layers: Mapping[str, Layer]) -> None:
    """Raise InputError if the records were made with a core other than `core`, or with layers that are not in
    `layers`.
    """
    problems = []
    sizes = {memory.name: memory.size_bits for memory in core.memories}
    for placed in layers_in_order(records):
        layer = layers.get(placed.name)
        if layer is None or LayerFacts.of(layer)._replace(name=placed.record.layer.name) != placed.record.layer:
            problems.append(Problem("this layer of the run is not in the given workload", path=Label(placed.name)))
        # With data locality, a layer has fewer memories, and some of them are smaller.
        if any(memory.size_bits > sizes.get(name, 0) for name, memory in placed.record.memories.items()):
            problems.append(
                Problem(f"this layer did not run on the given hardware, {core.name}", path=Label(placed.name))
            )
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
