"""What cuts of one network have in common, remembered from one way to cut it to the next: layers cut as before, what
their tiles need, and the pieces of tensors whose producer and readers are cut as before.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from tilewright.fusion.layer_cuts import KnownCuts, LayerCut
from tilewright.fusion.needs import Demand, NetworkTensors, needs_of_layer, network_tensors
from tilewright.workload.graph import Workload, WorkloadNode

if TYPE_CHECKING:
    from tilewright.fusion.pieces import Cutting

MOST_ENTRIES = 10_000_000
"""Pieces and needs that are remembered in all: some 160 MB."""
Needs = dict[tuple[str, str], list[Demand]]


class CutMemory:
    """Of one network. A graph that is built with it is the same as without; it is for one thread."""

    def __init__(self, workload: Workload, most_entries: int = MOST_ENTRIES) -> None:
        self.network: NetworkTensors = network_tensors(workload)
        self.cuts: KnownCuts = {}
        self._most = most_entries
        self._entries = 0
        self._needs: dict[tuple[int, LayerCut], Needs] = {}
        self._pieces: OrderedDict[Hashable, Cutting] = OrderedDict()

    def needs(self, node: WorkloadNode, cut: LayerCut) -> Needs:
        """What the tiles of a layer need, the same objects for the same cut."""
        key = node.node_id, cut
        if key not in self._needs:
            self._needs[key] = needs_of_layer(node, cut.demands, self.network)
        return self._needs[key]

    def pieces(self, key: Hashable, cut: "Callable[[], Cutting]") -> "Cutting":
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
