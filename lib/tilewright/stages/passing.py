"""What passes a stage that only looks: whose results they are, and what of them is kept to be written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.report.records import OVERALL, layers_in_order
from tilewright.search.batch import OrderBatch
from tilewright.stages.base import Rest, Stage
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.items import Evaluations, LayerProblem, MappedWorkload, TemporalProblem
from tilewright.stages.results import records_of
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
