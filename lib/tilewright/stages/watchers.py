"""Stages that only look: they write files, or draw figures, of what passes them, and pass it on.

Most write for programs that read the output of zigzag-dse.

The files go into the folder of exports, `results/single/<run>/exports/` in the pipeline. Nothing ever reads them back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.artifacts.codec import encode
from tilewright.artifacts.files import make_folder, write_atomically, writing
from tilewright.cost.record import LayerRecord, record_row
from tilewright.errors import InputError, Problem
from tilewright.hardware.core import Core
from tilewright.peers.zigzag.exports.files import (
    write_complete_layer,
    write_complete_network,
    write_pickle,
    write_simple,
)
from tilewright.peers.zigzag.exports.results import SIMPLE, complete_layer, export_file_name, json_text
from tilewright.report.records import OVERALL, layers_in_order
from tilewright.search.batch import OrderBatch
from tilewright.stages.base import Rest, Stage
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.items import Evaluations, LayerProblem, MappedWorkload, TemporalProblem
from tilewright.stages.layers import records_of
from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class Place:
    """Where in a pipeline something passes: for a whole network, or for one layer."""

    name: str
    """Of the layer, with the number of the spatial mapping where there are several; OVERALL for a network."""
    core: Core | None
    layers: dict[str, Layer]
    """By name."""
    names: tuple[str, ...] = ()
    """The layers that share the problem of this layer."""
    node_ids: dict[str, int] | None = None

    @classmethod
    def of(cls, item: Any) -> "Place":
        """Where an item stands."""
        if isinstance(item, NetworkProblem):
            nodes = [node for node in item.workload.layers_in_order if node.layer is not None]
            layers = {node.layer.name: node.layer for node in nodes if node.layer is not None}
            return cls(OVERALL, item.core, layers, (), {name: n.node_id for name, n in zip(layers, nodes, strict=True)})
        if isinstance(item, OrderBatch):
            item = item.problem
        if not isinstance(item, LayerProblem | TemporalProblem):
            return cls(OVERALL, None, {})
        layer, candidate = item.layer, getattr(item, "index", getattr(item, "candidate", 0))
        names = getattr(item, "names", ()) or (layer.name,)
        return cls(
            f"{layer.name}-{candidate}" if candidate else layer.name, item.core, dict.fromkeys(names, layer), names
        )

    @property
    def is_network(self) -> bool:
        """True for a whole network."""
        return self.name == OVERALL and not self.names

    def file_name(self, file_name: str) -> str:
        """The name of a file of this place: as it is for a network, after the layer's name for a layer."""
        return file_name if self.is_network else f"{self.name.replace('/', '_')}_{file_name}"


class Passed:
    """The results that passed a stage while it looked."""

    def __init__(self, item: Any, rest: Rest) -> None:
        self.item = item
        self.place = Place.of(item)
        self.stages: tuple[Stage, ...] = rest.stages
        self.networks: list[MappedWorkload] = []
        self.layers: list[LayerRecord] = []
        self.evaluations: list[Evaluations] = []

    def watch(self, results: Iterator[Any]) -> Iterator[Any]:
        """Pass results on and note them."""
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

    def named_records(self) -> list[tuple[str, LayerRecord]]:
        """(layer, record) of everything that passed, layers of networks in execution order.

        Further mappings of a layer have a number after its name.
        """
        found = [
            (placed.name, placed.record)
            for network in self.networks
            for placed in layers_in_order(network.records, network.summary)
        ]
        found += [(name, record) for record in self.layers for name in record.layer_names]
        for record in records_of(self.evaluations, self.stages):
            found += [(name, record) for name in self.place.names]
        return numbered(found)


def numbered(found: list[tuple[str, LayerRecord]]) -> list[tuple[str, LayerRecord]]:
    """The same, with `-2`, `-3`, ... after names that stood before."""
    counts: dict[str, int] = {}
    result = []
    for name, record in found:
        counts[name] = counts.get(name, 0) + 1
        result.append((name if counts[name] == 1 else f"{name}-{counts[name]}", record))
    return result


@dataclass(frozen=True)
class _Save(Stage):
    observes = True
    exports = True

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Everything that comes back; files are written when all of it has."""
        passed = Passed(item, rest)
        yield from passed.watch(rest(item))
        make_folder(rest.control.exports)
        self.write(passed, rest.control.exports)

    def write(self, passed: Passed, folder: Path) -> None:
        """Write the files."""
        raise NotImplementedError


@dataclass(frozen=True)
class SimpleSave(_Save):
    """Saves energy and latency as JSON: above Sum of the network (`overall_simple.json`), below it of each layer
    (`<layer>_simple.json`), and where several mappings of a layer pass, a list of all of them.

    Example: {insert: SimpleSave, before: Sum}
    """

    stands_for = "SimpleSaveStage"

    def write(self, passed: Passed, folder: Path) -> None:
        """One file for the network, or one for each layer."""
        for network in passed.networks:
            write_simple(folder, network.summary)
        for record in passed.layers:
            for name in record.layer_names:
                write_simple(folder, record, name)
        pairs = [pair for found in passed.evaluations for pair in _pairs(found)]
        if passed.evaluations:
            content: Any = pairs[0] if len(pairs) == 1 else pairs
            write_atomically(folder / export_file_name(passed.place.name, SIMPLE), json_text(content))


def _pairs(found: Evaluations) -> list[dict[str, float]]:
    """Energy and latency of every mapping that fits."""
    if found.costs is None:
        return []
    rows = np.flatnonzero(found.costs.fits)
    columns = zip(found.costs.energy_pj[rows].tolist(), found.costs.latency_cycles[rows].tolist(), strict=True)
    return [{"energy": energy, "latency": latency} for energy, latency in columns]


@dataclass(frozen=True)
class CompleteSave(_Save):
    """Saves the inputs and outputs of the cost model as JSON: below Sum of each layer (`<layer>_complete.json`), above
    it the sums over the network (`overall_complete.json`).

    Example: {insert: CompleteSave, after: Workload}
    """

    stands_for = "CompleteSaveStage"

    def write(self, passed: Passed, folder: Path) -> None:
        """One file for the network, or one for each layer."""
        place = passed.place
        if place.core is None:
            return
        for network in passed.networks:
            write_complete_network(folder, network.records, network.summary, place.core, place.node_ids)
        if not passed.networks:
            for name, record in passed.named_records():
                write_complete_layer(folder, record, place.core, place.layers.get(name), name)


@dataclass(frozen=True)
class _Pickle(_Save):
    file_name: str = ""

    def __post_init__(self) -> None:
        if not self.file_name or "/" in self.file_name or self.file_name.startswith("."):
            name, allowed = repr(self.file_name), "a name without folders that does not begin with a dot"
            raise InputError([Problem("not a file name", path="file_name", value=name, allowed=allowed)])

    def write(self, passed: Passed, folder: Path) -> None:
        """One pickle of plain dicts; those of single layers have the layer's name in front."""
        write_pickle(folder / passed.place.file_name(self.file_name), self.values(passed))

    def values(self, passed: Passed) -> list[dict[str, Any]]:
        """What is pickled."""
        raise NotImplementedError


@dataclass(frozen=True)
class PickleSave(_Pickle):
    """Saves the complete objects of all layers, as CompleteSave has them, as a pickled list of plain dicts.

    Example: {insert: PickleSave, before: Sum, parameters: {file_name: layers.pickle}}
    """

    file_name: str = "list_of_cmes.pickle"
    """Name of the file; below Workload each layer has one, with its name in front."""

    stands_for = "PickleSaveStage"

    def values(self, passed: Passed) -> list[dict[str, Any]]:
        """The complete object of every layer."""
        place = passed.place
        if place.core is None:
            return []
        return [
            complete_layer(record, place.core, place.layers.get(name), name) for name, record in passed.named_records()
        ]


@dataclass(frozen=True)
class Dump(_Pickle):
    """Saves what passes, just as it is, as a pickled list of plain dicts: records of layers, networks with records and
    summary, or the loop orders of batches with their costs.

    Example: {insert: Dump, after: Sum, parameters: {file_name: records.pickle}}
    """

    file_name: str = "dump.pickle"
    """Name of the file; below Workload each layer has one, with its name in front."""

    stands_for = "DumpStage"

    def values(self, passed: Passed) -> list[dict[str, Any]]:
        """Networks, then records, then evaluations."""
        networks = [
            {"summary": one.summary, "records": [record_row(r) for r in one.records]} for one in passed.networks
        ]
        return [*networks, *map(record_row, passed.layers), *map(_evaluations, passed.evaluations)]


def _evaluations(found: Evaluations) -> dict[str, Any]:
    """Batches as plain data: the loop orders that fit, innermost first, with their costs."""
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
class PlotTemporalMappings(Stage):
    """Draws each mapping that passes: its loop nest over the memory levels of each operand
    (`<layer>_loop_nest.svg`, `.png`), and energy and latency of all as bars (`breakdown.svg`, `.png`).

    Above Workload the bars are those of the whole network, below it of one layer.

    Example: {insert: PlotTemporalMappings, before: Workload}
    """

    observes = True
    exports = True
    stands_for = "PlotTemporalMappingsStage and VisualizationStage"

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Everything that comes back; figures are drawn when all of it has."""
        passed = Passed(item, rest)
        yield from passed.watch(rest(item))
        from tilewright.report.figures import write_breakdown
        from tilewright.report.nest_figure import write_nest_figure

        folder = rest.control.exports
        make_folder(folder)
        named = passed.named_records()
        with writing(folder):
            for name, record in named:
                write_nest_figure(record, folder / f"{name.replace('/', '_')}_loop_nest", name)
            records = [_called(name, record) for name, record in named]
            write_breakdown(records, None, folder / passed.place.file_name("breakdown"))


def _called(name: str, record: LayerRecord) -> LayerRecord:
    return replace(record, layer=record.layer._replace(name=name), layer_names=(name,))
