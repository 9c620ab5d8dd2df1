"""Stages that only observe results: they write files or draw figures, and pass the results on unchanged.

Most of these stages write files for programs that read the output of zigzag-dse. The files are in the folder of
exports, which is `results/single/<run>/exports/` for `make run`. No verb reads them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.files import make_folder, write_atomically, writing
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.cost.record import LayerRecord, record_row
from tilewright.hardware.core import Core
from tilewright.peers.zigzag.exports.files import write_complete_network, write_pickle, write_simple
from tilewright.peers.zigzag.exports.results import (
    COMPLETE,
    SIMPLE,
    complete_layer,
    export_file_name,
    json_text,
    simple_result,
)
from tilewright.pipeline.stages.base import Rest, Stage, Writer
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.items import Evaluations, LayerProblem, MappedWorkload, TemporalProblem
from tilewright.pipeline.stages.layer_file_names import check_file_names, file_name_of
from tilewright.pipeline.stages.layers import records_of
from tilewright.pipeline.stages.reductions import Sum
from tilewright.results.records import OVERALL, layers_in_order
from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class PipelinePlace:
    """Level of a pipeline at which a stage runs: once for the network, once for each layer, or once for each spatial
    mapping of a layer.
    """

    core: Core | None
    layers: dict[str, Layer]
    """Layers of the network or of the layer problem, by name."""
    names: tuple[str, ...] = ()
    """Names of all layers that have this layer problem; () for a network."""
    candidate: int | None = None
    """Index of the spatial mapping among the spatial mappings of the layer; None for a stage that runs before the
    spatial mapping is chosen.
    """
    node_ids: dict[str, int] | None = None

    @classmethod
    def of(cls, item: Any) -> "PipelinePlace":
        """Level of the pipeline at which a stage with the input `item` runs."""
        if isinstance(item, NetworkProblem):
            nodes = [node for node in item.workload.layers_in_order if node.layer is not None]
            layers = {node.layer.name: node.layer for node in nodes if node.layer is not None}
            ids = {name: node.node_id for name, node in zip(layers, nodes, strict=True)}
            return cls(item.core, layers, node_ids=ids)
        if not isinstance(item, LayerProblem | TemporalProblem):
            return cls(None, {})
        candidate = item.candidate if isinstance(item, TemporalProblem) else getattr(item, "index", None)
        names = item.names or (item.layer.name,)
        return cls(item.core, dict.fromkeys(names, item.layer), names, candidate)

    def stem(self, layer: str, number: int = 1) -> str:
        """Beginning of the file names for a mapping of a layer. `number` counts the mappings in the order in which they
        pass the stage, from 1.

        Examples are the names for the layer `conv`. If the stage runs before the spatial mapping is chosen, the names
        are `conv`, `conv-2` and `conv-3`. Otherwise, the name contains the index of the spatial mapping. The first
        mappings of the spatial mappings 0, 1 and 2 have the names `conv`, `conv-1` and `conv-2`. The second mapping of
        spatial mapping 1 has the name `conv-1.2`.
        """
        name = file_name_of(layer)
        if self.candidate is None:
            return name if number == 1 else f"{name}-{number}"
        if number > 1:
            return f"{name}-{self.candidate}.{number}"
        return f"{name}-{self.candidate}" if self.candidate else name

    def file_names(self, file_name: str) -> list[str]:
        """File names at this level of the pipeline: `file_name` for a network; otherwise `<stem>_<file_name>` for each
        layer, with the stem that `stem` gives.
        """
        return [f"{self.stem(name)}_{file_name}" for name in self.names] or [file_name]


class NamedMapping(NamedTuple):
    """Mapping that passed a stage, with the name of the layer and the beginning of the file names."""

    layer: str
    stem: str
    record: LayerRecord


class Passed:
    """Results that went through an observing stage, and the level of the pipeline at which this stage runs."""

    def __init__(self, item: Any, rest: Rest) -> None:
        self.item = item
        self.place = PipelinePlace.of(item)
        self.stages: tuple[Stage, ...] = rest.stages
        self.networks: list[MappedWorkload] = []
        self.layers: list[LayerRecord] = []
        self.evaluations: list[Evaluations] = []

    def watch(self, results: Iterator[Any]) -> Iterator[Any]:
        """Yield the results unchanged, and add them to this object."""
        for result in results:
            self._note(result)
            yield result

    def _note(self, result: Any) -> None:
        if isinstance(result, list):
            for one in result:
                self._note(one)
        elif isinstance(result, MappedWorkload):
            self.networks.append(result)
        elif isinstance(result, Evaluations):
            self.evaluations.append(result)
        elif isinstance(result, LayerRecord):
            self.layers.append(result)

    def named_records(self) -> list[NamedMapping]:
        """Mappings that passed the stage, each with the name of a layer and the beginning of its file names. If several
        layers share a mapping, the mapping occurs once for each of them. No two results have the same file names. The
        mappings of a network are in the execution order of the layers.
        """
        found = [
            (placed.name, placed.record)
            for network in self.networks
            for placed in layers_in_order(network.records, network.summary)
        ]
        found += [(name, record) for record in self.layers for name in record.layer_names]
        for record in records_of(self.evaluations, self.stages):
            found += [(name, record) for name in self.place.names]
        counts: Counter[str] = Counter()
        result = []
        for name, record in found:
            counts[name] += 1
            result.append(NamedMapping(name, self.place.stem(name, counts[name]), record))
        return result


def _wrong_name(parameter: str, name: str) -> list[Problem]:
    """Errors in a parameter whose value is the name of a file or folder; [] if the name is valid."""
    if name and "/" not in name and not name.startswith("."):
        return []
    allowed = "a name without folders that does not begin with a dot"
    return [Problem(f"not a valid {parameter.replace('_', ' ')}", path=parameter, value=repr(name), allowed=allowed)]


@dataclass(frozen=True)
class Save(Writer):
    """Base class of stages that write all results into files. The results are passed on unchanged."""

    folder: str = field(default="", kw_only=True)
    """Name of a subfolder in the folder of exports. Two stages that write files with the same names must have different
    subfolders.
    """

    observes = True
    exports = True

    def __post_init__(self) -> None:
        of_folder = _wrong_name("folder", self.folder) if self.folder else []
        if problems := [*of_folder, *self.wrong_names()]:
            raise InputError(problems)

    def wrong_names(self) -> list[Problem]:
        """Errors in those parameters of the stage whose values are file names. The parameter `folder` is checked
        elsewhere.
        """
        return []

    def files(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the names of the files that the stage writes. `above_workload` is true if the stage comes before
        Workload in the pipeline, and `above_sum` is true if it comes before Sum.
        """
        raise NotImplementedError

    def written(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the paths of the files, relative to the folder of exports."""
        files = self.files(above_workload, above_sum)
        return f"{self.folder}/{files}" if self.folder else files

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yield all results, and write the files after the last result."""
        if isinstance(item, NetworkProblem):
            above_sum = any(isinstance(stage, Sum) for stage in rest.stages)
            if LAYER in self.files(True, above_sum):
                check_file_names(item.workload, numbered=False)
        passed = Passed(item, rest)
        yield from passed.watch(rest(item))
        folder = rest.control.exports / self.folder
        make_folder(folder)
        self.write(passed, folder)

    def write(self, passed: Passed, folder: Path) -> None:
        """Write the files of this stage for the results in `passed` into `folder`."""
        raise NotImplementedError


LAYER = "<layer>"


@dataclass(frozen=True)
class SimpleSave(Save):
    """Saves energy and latency as JSON. Above Sum, the file `overall_simple.json` has the values of the network. Below
    Sum, each layer has a file `<layer>_simple.json`; if the stage gets several mappings of a layer, the file has a list
    with the values of each mapping.

    Example: {insert: SimpleSave, before: Sum}
    """

    stands_for = "SimpleSaveStage"

    def files(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the file names: one file for the network if the stage comes before Sum; otherwise, one file for
        each layer.
        """
        return export_file_name(OVERALL if above_sum else LAYER, SIMPLE)

    def write(self, passed: Passed, folder: Path) -> None:
        """Write one file for each network among the results, and one file for each layer among the results."""
        for network in passed.networks:
            write_simple(folder, network.summary)
        of_layer: dict[str, list[Any]] = {}
        for record in passed.layers:
            for name in record.layer_names:
                of_layer.setdefault(name, []).append(simple_result(record))
        if passed.evaluations:
            pairs = [pair for found in passed.evaluations for pair in _pairs(found)]
            for name in passed.place.names:
                of_layer[name] = pairs
        for name, pairs in of_layer.items():
            content = pairs[0] if len(pairs) == 1 else pairs
            write_atomically(folder / export_file_name(passed.place.stem(name), SIMPLE), json_text(content))


def _pairs(found: Evaluations) -> list[dict[str, float]]:
    """Energy and latency of each mapping that fits the core."""
    if found.costs is None:
        return []
    rows = np.flatnonzero(found.costs.fits)
    columns = zip(found.costs.energy_pj[rows].tolist(), found.costs.latency_cycles[rows].tolist(), strict=True)
    return [{"energy": energy, "latency": latency} for energy, latency in columns]


@dataclass(frozen=True)
class CompleteSave(Save):
    """Saves the inputs and outputs of the cost model as JSON. Below Sum, each layer has a file `<layer>_complete.json`.
    Above Sum, the file `overall_complete.json` has the sums over the network.

    If the stage gets several mappings of a layer, each mapping has a file; the second file is
    `<layer>-2_complete.json`.

    Example: {insert: CompleteSave, after: Workload}
    """

    stands_for = "CompleteSaveStage"

    def files(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the file names: one file for the network if the stage comes before Sum; otherwise, one file for
        each layer.
        """
        return export_file_name(OVERALL if above_sum else LAYER, COMPLETE)

    def write(self, passed: Passed, folder: Path) -> None:
        """Write one file for the network if results for the whole network passed the stage; otherwise, write one file
        for each layer. Nothing is written if the stage does not know the core.
        """
        place = passed.place
        if place.core is None:
            return
        for network in passed.networks:
            write_complete_network(folder, network.records, network.summary, place.core, place.node_ids)
        if not passed.networks:
            for name, stem, record in passed.named_records():
                value = complete_layer(record, place.core, place.layers.get(name), name)
                write_atomically(folder / export_file_name(stem, COMPLETE), json_text(value))


@dataclass(frozen=True)
class _Pickle(Save):
    file_name: str = ""

    def wrong_names(self) -> list[Problem]:
        """Errors in the value of the parameter `file_name`."""
        return _wrong_name("file_name", self.file_name)

    def files(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the file names. Above Workload, there is one file for the network; below Workload, one file for
        each layer.
        """
        return self.file_name if above_workload else f"{LAYER}_{self.file_name}"

    def write(self, passed: Passed, folder: Path) -> None:
        """Write pickled lists of plain dicts: one file for the network, or one for each layer, whose file name begins
        with the name of the layer.
        """
        for name, file_name in zip(passed.place.names or ("",), passed.place.file_names(self.file_name), strict=True):
            write_pickle(folder / file_name, self.values(passed, name))

    def values(self, passed: Passed, layer: str) -> list[JsonObject]:
        """Dicts to be pickled for a layer; for all layers if `layer` is ''."""
        raise NotImplementedError


@dataclass(frozen=True)
class PickleSave(_Pickle):
    """Saves the same data as CompleteSave, for all layers, as a pickled list of plain dicts.

    Example: {insert: PickleSave, before: Sum, parameters: {file_name: layers.pickle}}
    """

    file_name: str = "list_of_cmes.pickle"
    """Name of the file. A stage below Workload writes one file for each layer; the name of the layer then precedes this
    name.
    """

    stands_for = "PickleSaveStage"

    def values(self, passed: Passed, layer: str) -> list[JsonObject]:
        """Data of each mapping, as CompleteSave saves it."""
        place = passed.place
        if place.core is None:
            return []
        return [
            complete_layer(record, place.core, place.layers.get(name), name)
            for name, _, record in passed.named_records()
            if layer in ("", name)
        ]


@dataclass(frozen=True)
class Dump(_Pickle):
    """Saves all results as a pickled list of plain dicts. A result is the record of a layer, a network with records and
    summary, or a batch of loop orders with costs.

    Example: {insert: Dump, after: Sum, parameters: {file_name: records.pickle}}
    """

    file_name: str = "dump.pickle"
    """Name of the file. A stage below Workload writes one file for each layer; the name of the layer then precedes this
    name.
    """

    stands_for = "DumpStage"

    def values(self, passed: Passed, layer: str) -> list[dict[str, Any]]:
        """Dicts of all results that passed the stage: first networks, then layer records, then evaluations. `layer` has
        no effect.
        """
        networks = [
            {"summary": one.summary, "records": [record_row(r) for r in one.records]} for one in passed.networks
        ]
        return [*networks, *map(record_row, passed.layers), *map(_evaluations, passed.evaluations)]


def _evaluations(found: Evaluations) -> JsonObject:
    """Evaluations as plain data: the tally, and the loop orders that fit the core (innermost loop first) with their
    costs.
    """
    rows = [] if found.costs is None else np.flatnonzero(found.costs.fits).tolist()
    plain: dict[str, Any] = {
        "candidates": [encode(entry.row()) for entry in found.tally],
        "loop_orders": [],
        "costs": [],
    }
    for row in rows:
        assert found.costs is not None
        plain["loop_orders"].append([list(loop) for loop in found.costs.batch.loop_order(row)])
    return plain | {"costs": _pairs(found)}


@dataclass(frozen=True)
class PlotTemporalMappings(Save):
    """Draws each mapping as a loop nest over the memory levels of each operand (`<layer>_loop_nest.svg`, `.png`). This
    stage also draws energy and latency of all mappings as bars (`breakdown.svg`, `.png`).

    Above Workload, the bars are for the whole network; below Workload, for one layer. If the stage gets several
    mappings of a layer, each mapping has a figure; the second figure is `<layer>-2_loop_nest.svg`.

    Example: {insert: PlotTemporalMappings, before: Workload}
    """

    stands_for = "PlotTemporalMappingsStage and VisualizationStage"

    def files(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the file names. There is one figure for each layer."""
        return f"{LAYER}_loop_nest.svg"

    def write(self, passed: Passed, folder: Path) -> None:
        """Write the figures of all results."""
        from tilewright.results.figures import write_breakdown
        from tilewright.results.nest_figure import write_nest_figure

        named, place = passed.named_records(), passed.place
        with writing(folder):
            for name, stem, record in named:
                write_nest_figure(record, folder / f"{stem}_loop_nest", name)
            for name, file_name in zip(place.names or ("",), place.file_names("breakdown"), strict=True):
                records = [_called(stem, record) for layer, stem, record in named if name in ("", layer)]
                if records:
                    write_breakdown(records, None, folder / file_name)


def _called(name: str, record: LayerRecord) -> LayerRecord:
    return replace(record, layer=record.layer._replace(name=name), layer_names=(name,))
