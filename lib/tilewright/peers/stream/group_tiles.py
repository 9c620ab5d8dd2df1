"""Tiles of the fused groups in a mapping file of stream-dse 2.x: the number of tiles of each loop of each layer."""

from collections.abc import Sequence
from fractions import Fraction

from tilewright.base.errors import Problems
from tilewright.mapping.constraints import TilingEntry
from tilewright.mapping.network_plans import PlanGroup, PlanTile
from tilewright.mapping.spatial_generation import divisors
from tilewright.peers.stream.allowed_numbers import allowed_numbers
from tilewright.peers.stream.fused_axes import Loop
from tilewright.peers.stream.group_parts import GroupParts
from tilewright.peers.stream.selected_layers import SelectedLayers, loop_text, names_of
from tilewright.workload.graph import WorkloadNode


class GroupTiles:
    """Tiles of one group of fused layers. Wrong tiles are reported."""

    def __init__(self, layers: SelectedLayers, place: int, nodes: Sequence[WorkloadNode]) -> None:
        """Store the group at the position `place` of the plan. `nodes` are the layers of the group, in the order of the
        network.
        """
        self.layers, self.nodes = layers, nodes
        self.group: PlanGroup = layers.plan.groups[place]
        self._told = layers.problems.within("fused_groups", place)
        self._parts = GroupParts(layers, nodes)
        self._axes = self._parts.axes

    def loops(self) -> dict[int, list[TilingEntry]]:
        """Loops over tiles of each layer of the group, innermost first, by node id."""
        self._parts.check()
        found: dict[int, list[TilingEntry]] = {node.node_id: [] for node in self.nodes}
        first: dict[Loop, tuple[PlanTile, Fraction]] = {}
        for at, tile in enumerate(self.group.tiles):
            told = self._told.within("intra_core_tiling", at)
            for node in (node for node in self.nodes if tile.layer in names_of(node)):
                count = self._count(node, tile, told)
                loop = self.layers.loop(node, tile.dimension, Problems()) if count else None
                if loop is None or not loop[0]:
                    continue
                source = (node.node_id, loop[0])
                axis, step = self._axes.axis_of(source), self._axes.indices_of_step(source)
                other, size = first.setdefault(axis, (tile, tile.size / step))
                if size != tile.size / step:
                    message = (
                        f"D{tile.dimension} of {node.name} and {other.layer}.D{other.dimension} are one axis, which"
                        f" the tile {other.size} of {other.layer}.D{other.dimension} cuts into another number of tiles"
                    )
                    told.at(("tile",), message, tile.size, _whole(size * step))
                elif count > 1:
                    for node_id, name in self._axes.members(axis):
                        if (entry := TilingEntry(name, count)) not in found[node_id]:
                            found[node_id].append(entry)
        return found

    def _count(self, node: WorkloadNode, tile: PlanTile, told: Problems) -> int:
        """Number of tiles into which a tile size cuts its axis. A wrong tile size is reported, and the result is then
        0.
        """
        loop = self.layers.loop(node, tile.dimension, told.within("dim"))
        if loop is None:
            return 0
        name, size = loop
        source = (node.node_id, name)
        step = self._axes.indices_of_step(source) if name else Fraction(1)
        over = self._parts.largest.get(self._axes.axis_of(source), 1) if name else 1
        share = size / step / over
        choices = [one * step for one in divisors(int(share))] if share.denominator == 1 else []
        whole = [int(one) for one in choices if one.denominator == 1]
        if tile.size in whole:
            return size // (tile.size * over)
        message, must = loop_text(node, tile.dimension, loop), "divide this size"
        if over > 1:
            message += f", and {over} cores share it, {_whole(Fraction(size, over))} indices each"
            must = "divide this share"
        if step != 1:
            must += f" and be a multiple of {_whole(step)}, the stride of a fused layer"
        otherwise = f"no tile, or a `split` (number of parts) that divides {size}"
        allowed = allowed_numbers(tile.size, whole) if whole else otherwise
        told.at(("tile",), f"{message}; the tile must {must}, as in Stream 2.1.1", tile.size, allowed)
        return 0


def _whole(number: Fraction) -> str:
    """Text of a number, without decimals if it is whole."""
    return f"{int(number)}" if number.denominator == 1 else f"{float(number):g}"
