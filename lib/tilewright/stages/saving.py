"""Stages that write what passes them into files, for programs that read the output of zigzag-dse, and pass it on.

The files go into the folder of exports, `results/single/<run>/exports/` in the pipeline. Nothing ever reads them back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.artifacts.canonical import make_folder, write_atomically
from tilewright.artifacts.codec import encode
from tilewright.cost.record import record_row
from tilewright.errors import InputError, Problem
from tilewright.peers.zigzag.exports.files import (
    write_complete_layer,
    write_complete_network,
    write_pickle,
    write_simple,
)
from tilewright.peers.zigzag.exports.results import SIMPLE, complete_layer, export_file_name, json_text
from tilewright.stages.base import Rest, Stage
from tilewright.stages.items import Evaluations
from tilewright.stages.passing import Passed


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
