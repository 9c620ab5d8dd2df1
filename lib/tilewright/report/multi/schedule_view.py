"""What the figures of a schedule are drawn from: the schedule, the system it runs on, names for people."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.fusion.graph import CnGraph
from tilewright.hardware.interconnect import OFFCHIP_PORT
from tilewright.scheduling.artifact import ScheduleArtifact
from tilewright.scheduling.assembly import WEIGHT, SystemNames
from tilewright.scheduling.problem import CoreSystem, Integers
from tilewright.scheduling.result import Schedule
from tilewright.scheduling.state_record import CORE_TO_CORE, EVICTION, OFF_CHIP_STREAM, SINK_OUTPUT

CATEGORIES = (
    "weights from off-chip",
    "activations from off-chip",
    "activations between cores",
    "evictions",
    "outputs",
    "streams",
)
"""Why data moves, as figures tell it."""
WEIGHTS, OFF_CHIP_ACTIVATIONS, BETWEEN_CORES, EVICTIONS, OUTPUTS, STREAMS = range(len(CATEGORIES))


@dataclass(frozen=True, eq=False)
class TileRanges:
    """The ranges of the loop dimensions in which a layer is cut."""

    dimensions: tuple[tuple[str, ...], ...]
    """[layer] cut dimensions"""
    starts: tuple[Integers, ...]
    """[place of a dimension][cn] first value; 0 where the layer has fewer cut dimensions"""
    ends: tuple[Integers, ...]
    """[place of a dimension][cn] value after the last"""


@dataclass(frozen=True, eq=False)
class ScheduleView:
    """A schedule and the tiles of its CNs, as figures ask for them."""

    artifact: ScheduleArtifact
    tiles: TileRanges | None = None
    """None where the graph of CNs is not at hand."""

    @property
    def schedule(self) -> Schedule:
        """When what runs and moves."""
        return self.artifact.schedule

    @property
    def system(self) -> CoreSystem:
        """Cores, memories, links and paths."""
        return self.artifact.system

    @property
    def names(self) -> SystemNames:
        """What the numbers stand for."""
        return self.artifact.names

    @property
    def node_layer(self) -> Integers:
        """[cn] ascending"""
        return self.artifact.graph.layer

    @property
    def node_count(self) -> int:
        """Number of CNs."""
        return self.artifact.graph.node_count

    @cached_property
    def first_node(self) -> Integers:
        """[layer + 1] its first CN"""
        return np.searchsorted(self.node_layer, np.arange(len(self.names.layer_names) + 1))

    def link_label(self, link: int) -> str:
        """A link for people: its name; the ports of the off-chip memory, which have the number of its core, say so."""
        name = self.names.link_names[link]
        return f"{name} (off-chip)" if self.names.link_kinds[link] == OFFCHIP_PORT else name

    def node_name(self, node: int) -> str:
        """A CN for people: number of the layer, then of the CN in it."""
        layer = int(self.node_layer[node])
        return f"{layer}.{node - int(self.first_node[layer])}"

    @cached_property
    def edges(self) -> tuple[Integers, Integers, Integers]:
        """(source, target, bits) of the pairs of CNs between which data flows; targets ascend, then sources"""
        source, target, bits = self.artifact.edges
        order = np.lexsort((source, target))
        return source[order], target[order], bits[order]

    @cached_property
    def transfer_category(self) -> Integers:
        """[transfer] place in CATEGORIES."""
        moves = self.schedule.transfers
        kind = np.array([WEIGHTS if kind == WEIGHT else OFF_CHIP_ACTIVATIONS for kind in self.names.tensor_kinds])
        fetched = kind[self.artifact.piece_tensor[moves["piece"]]] if len(moves) else np.zeros(0, np.int64)
        other = {OFF_CHIP_STREAM: STREAMS, EVICTION: EVICTIONS, SINK_OUTPUT: OUTPUTS, CORE_TO_CORE: BETWEEN_CORES}
        for cause, category in other.items():
            fetched = np.where(moves["cause"] == cause, category, fetched)
        return fetched.astype(np.int64)


def tile_ranges(graph: CnGraph) -> TileRanges:
    """The ranges of all CNs of a graph."""
    cut = tuple(layer.grid.tiled_dimensions for layer in graph.layers)
    places = max(map(len, cut), default=0)
    starts = tuple(np.zeros(graph.cn_count, np.int64) for _ in range(places))
    ends = tuple(np.zeros(graph.cn_count, np.int64) for _ in range(places))
    for layer, dimensions in zip(graph.layers, cut, strict=True):
        own = slice(layer.first_cn, layer.first_cn + layer.cn_count)
        for place, dimension in enumerate(dimensions):
            starts[place][own], ends[place][own] = layer.grid.ranges(dimension)
    return TileRanges(cut, starts, ends)
