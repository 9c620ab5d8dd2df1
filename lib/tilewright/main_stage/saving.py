"""Stages that save results where the user's script says: in a folder, in files named by a pattern, or in one file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.files import make_folder, write_atomically
from tilewright.main_stage.own import session
from tilewright.peers.zigzag.exports.results import complete_layer, complete_network, json_text, simple_result
from tilewright.pipeline.stages import watchers
from tilewright.pipeline.stages.base import Rest
from tilewright.pipeline.stages.watchers import Passed

LAYER_MARK = "?"
"""Mark in a pattern of file names. It is replaced by the name of the layer (`overall` for a network) and the kind of
content (`simple` or `complete`).
"""


@dataclass(frozen=True)
class _InPlace(watchers.Save):
    """Base class of stages that save into any folder, also outside the folder of the run."""

    def __post_init__(self) -> None:
        """Accept any folder. Without this method, the check of the base class would refuse folders outside the run."""


@dataclass(frozen=True)
class SimpleSave(_InPlace, watchers.SimpleSave):
    """Stage that saves the energy and the latency of each result that passes through the stage, in the folder that the
    user's script gives.
    """


@dataclass(frozen=True)
class CompleteSave(_InPlace, watchers.CompleteSave):
    """Stage that saves the inputs and the outputs of each result that passes through the stage, in the folder that the
    user's script gives.
    """


@dataclass(frozen=True)
class PlotTemporalMappings(_InPlace, watchers.PlotTemporalMappings):
    """Stage that draws the loop nest of each mapping that passes through the stage, and bars for the energy and the
    latency of these mappings. The figures are written to the folder that the user's script gives.
    """


@dataclass(frozen=True)
class PickleSave(_InPlace, watchers.PickleSave):
    """Stage that saves all results that pass through it, as a pickled list in the file that the user's script gives."""


@dataclass(frozen=True)
class Dump(_InPlace, watchers.Dump):
    """Stage that saves all results that pass through it, as a pickled list in the file that the user's script gives."""


@dataclass(frozen=True)
class _Pattern(_InPlace):
    """Base class of stages that save into files named by a pattern.

    If the pattern contains LAYER_MARK, the stage writes one file for each layer, or a single file with the results of
    the network if such results have passed the stage. If the pattern does not contain LAYER_MARK, a single file has the
    list of all results.
    """

    pattern: str = ""
    what: str = ""

    def files(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the file names that the stage writes. The arguments give the position of the stage in the
        pipeline; the pattern does not depend on them.
        """
        return self.pattern.replace(LAYER_MARK, f"{watchers.LAYER}_{self.what}")

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yield all results of the stages below, and write the files after the last result."""
        passed = Passed(item, rest)
        yield from passed.watch(rest(item))
        found = self.contents(passed)
        if LAYER_MARK in self.pattern:
            for stem, content in found:
                self._write(self.pattern.replace(LAYER_MARK, f"{stem}_{self.what}"), content)
        elif found:
            # Below Workload, and where a stage of a user's runs it again, more comes later: the list goes on.
            saved = session().saved.setdefault(self.pattern, [])
            saved += (content for _, content in found)
            self._write(self.pattern, saved)

    def contents(self, passed: Passed) -> list[tuple[str, Any]]:
        """Pairs (beginning of the file name, content), one for each result that has passed."""
        raise NotImplementedError

    @staticmethod
    def _write(name: str, content: object) -> None:
        path = Path(name)
        make_folder(path.parent)
        write_atomically(path, json_text(content))


@dataclass(frozen=True)
class SimplePattern(_Pattern):
    """Stage that saves the energy and the latency of the results that pass through it."""

    def contents(self, passed: Passed) -> list[tuple[str, Any]]:
        """Pairs (beginning of the file name, content), one for each network that has passed. If no network has passed,
        there is one pair for each layer.
        """
        if passed.networks:
            return [("overall", simple_result(network.summary)) for network in passed.networks]
        return [(stem, simple_result(record)) for _, stem, record in passed.named_records()]


@dataclass(frozen=True)
class CompletePattern(_Pattern):
    """Stage that saves the inputs and the outputs of the results that pass through it."""

    def contents(self, passed: Passed) -> list[tuple[str, Any]]:
        """Pairs (beginning of the file name, content), one for each network that has passed. If no network has passed,
        there is one pair for each layer.
        """
        place = passed.place
        assert place.core is not None
        if passed.networks:
            return [
                ("overall", complete_network(network.records, network.summary, place.core, place.node_ids))
                for network in passed.networks
            ]
        return [
            (stem, complete_layer(record, place.core, place.layers.get(name), name))
            for name, stem, record in passed.named_records()
        ]
