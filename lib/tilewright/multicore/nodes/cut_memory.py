"""Memory of the cuts of one network: layers cut as before, what their tiles need, and the pieces of tensors."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from tilewright.multicore.nodes.grid import Integers
from tilewright.multicore.nodes.needs import (
    Demand,
    KnownCuts,
    LayerCut,
    NetworkTensors,
    needs_of_layer,
    network_tensors,
)
from tilewright.workload.graph import Workload, WorkloadNode


@dataclass(frozen=True, eq=False)
class TensorPieces:
    """The pieces of one tensor, numbered from 0."""

    bits: Integers
    """[piece]"""
    producer: Integers
    """[piece] CN of the producer's layer, or OUTSIDE"""
    needs: tuple[tuple[Integers, Integers], ...]
    """[reader] (CN of its layer, piece)"""

    @property
    def entries(self) -> int:
        """Pieces and needs."""
        return len(self.bits) + sum(len(cn) for cn, _ in self.needs)


MOST_ENTRIES = 10_000_000
"""Pieces and needs that are remembered in all: some 160 MB."""


Needs = dict[tuple[str, str], list[Demand]]


class CutMemory:
    """Memory of the cuts of one network. A graph that is built with it is the same as without; it is for one thread."""

    def __init__(self, workload: Workload, most_entries: int = MOST_ENTRIES) -> None:
        self.network: NetworkTensors = network_tensors(workload)
        self.cuts: KnownCuts = {}
        self._most = most_entries
        self._entries = 0
        self._needs: dict[tuple[int, LayerCut], Needs] = {}
        self._pieces: OrderedDict[Hashable, TensorPieces] = OrderedDict()

    def needs(self, node: WorkloadNode, cut: LayerCut) -> Needs:
        """What the tiles of a layer need, the same objects for the same cut."""
        key = node.node_id, cut
        if key not in self._needs:
            self._needs[key] = needs_of_layer(node, cut.demands, self.network)
        return self._needs[key]

    def pieces(self, key: Hashable, cut: Callable[[], TensorPieces]) -> TensorPieces:
        """The pieces of a tensor, made by `cut` where they are not known; those used longest ago are forgotten."""
        found = self._pieces.get(key)
        if found is None:
            found = self._pieces[key] = cut()
            self._entries += found.entries
            while self._entries > self._most and len(self._pieces) > 1:
                self._entries -= self._pieces.popitem(last=False)[1].entries
        else:
            self._pieces.move_to_end(key)
        return found
