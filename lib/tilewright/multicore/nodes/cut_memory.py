"""Cache of the cuts of one network: cut layers, elements that their tiles need, and pieces of tensors."""

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
    """Pieces of one tensor, numbered from 0."""

    bits: Integers
    """Size of the piece in bits (one entry for each piece)"""
    producer: Integers
    """CN that produces the piece, as a number within the producing layer (one entry for each piece); OUTSIDE if no
    layer makes the tensor
    """
    needs: tuple[tuple[Integers, Integers], ...]
    """Needs of each reader of the tensor, as pairs of arrays (CN as a number within the reading layer, piece). An entry
    of the two arrays says that the CN needs the piece.
    """

    @property
    def entries(self) -> int:
        """Total number of pieces and needs."""
        return len(self.bits) + sum(len(cn) for cn, _ in self.needs)


MOST_ENTRIES = 10_000_000
"""Largest number of pieces and needs in the cache. At this limit, the cache takes about 160 MB."""


Needs = dict[tuple[str, str], list[Demand]]


class CutMemory:
    """Cache of the cuts of one network, for use by one thread. The cache saves time and does not change the graphs."""

    def __init__(self, workload: Workload, most_entries: int = MOST_ENTRIES) -> None:
        self.network: NetworkTensors = network_tensors(workload)
        self.cuts: KnownCuts = {}
        self._most = most_entries
        self._entries = 0
        self._needs: dict[tuple[int, LayerCut], Needs] = {}
        self._pieces: OrderedDict[Hashable, TensorPieces] = OrderedDict()

    def needs(self, node: WorkloadNode, cut: LayerCut) -> Needs:
        """Elements that the tiles of a layer need. A result is computed once and then taken from the cache."""
        key = node.node_id, cut
        if key not in self._needs:
            self._needs[key] = needs_of_layer(node, cut.demands, self.network)
        return self._needs[key]

    def pieces(self, key: Hashable, cut: Callable[[], TensorPieces]) -> TensorPieces:
        """Pieces of a tensor, from the cache or computed by `cut`. If the cache is full, the least recently used pieces
        are evicted.
        """
        found = self._pieces.get(key)
        if found is None:
            found = self._pieces[key] = cut()
            self._entries += found.entries
            while self._entries > self._most and len(self._pieces) > 1:
                self._entries -= self._pieces.popitem(last=False)[1].entries
        else:
            self._pieces.move_to_end(key)
        return found
