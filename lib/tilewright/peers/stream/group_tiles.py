"""Tiles of the fused groups in a mapping file of stream-dse 2.x: the number of tiles of each loop of each layer."""

from collections.abc import Sequence
from fractions import Fraction

from tilewright.base.errors import KeyPath, Problems
from tilewright.mapping.constraints import TilingEntry
from tilewright.mapping.network_plans import PlanGroup, PlanTile
from tilewright.peers.stream.fused_axes import FusedAxes, Loop
from tilewright.peers.stream.selected_layers import SelectedLayers, divisors, names_of, uneven
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
        self._axes = FusedAxes(layers.workload, tuple(nodes))

    def loops(self) -> dict[int, list[TilingEntry]]:
        """Loops over tiles of each layer of the group, innermost first, by node id."""
        found: dict[int, list[TilingEntry]] = {node.node_id: [] for node in self.nodes}
        parts = self._parts_of_axes()
        sizes: dict[Loop, Fraction] = {}
        for at, tile in enumerate(self.group.tiles):
            told = self._told.within("intra_core_tiling", at)
            for node in (node for node in self.nodes if tile.layer in names_of(node)):
                count = self._count(node, tile, parts, told)
                loop = self.layers.loop(node, tile.dimension, Problems()) if count else None
                if loop is None or not loop[0]:
                    continue
                source = (node.node_id, loop[0])
                axis, size = self._axes.axis_of(source), tile.size / self._axes.indices_of_step(source)
                if sizes.setdefault(axis, size) != size:
                    told.at(("tile",), "another tile of this axis has another size", tile.size)
                elif count > 1:
                    for node_id, name in self._axes.members(axis):
                        if (entry := TilingEntry(name, count)) not in found[node_id]:
                            found[node_id].append(entry)
        return found

    def _parts_of_axes(self) -> dict[Loop, int]:
        """Largest number of parts of each axis over the layers of a group. In every layer, the number of parts must
        divide this largest number and the size of the axis; otherwise, a problem is reported.
        """
        given: list[tuple[Loop, int, int, KeyPath]] = []
        for node in self.nodes:
            place = self.layers.place_of[node.node_id]
            for at, split in enumerate(self.layers.plan.layers[place].splits):
                loop = self.layers.loop(node, split.dimension, Problems())
                if loop is not None and loop[0] and not loop[1] % split.parts:
                    source = (node.node_id, loop[0])
                    path = (*self.layers.root, place, "inter_core_tiling", 0, at, "split")
                    size = int(loop[1] / self._axes.indices_of_step(source))
                    given.append((self._axes.axis_of(source), split.parts, size, path))
        found: dict[Loop, int] = {}
        for axis, parts, *_ in given:
            found[axis] = max(found.get(axis, 1), parts)
        for axis, parts, size, path in given:
            if size % parts:
                message = f"a fused layer has only {size} indices along this loop; the number of parts must divide it"
                self.layers.problems.at(path, message, parts, divisors(size))
            elif found[axis] % parts:
                message = f"a fused layer has {found[axis]} parts along this loop; the number of parts must divide it"
                self.layers.problems.at(path, message, parts, divisors(found[axis]))
        return found

    def _count(self, node: WorkloadNode, tile: PlanTile, parts: dict[Loop, int], told: Problems) -> int:
        """Number of tiles into which a tile size cuts its axis. A wrong tile size is reported, and the result is then
        0.
        """
        loop = self.layers.loop(node, tile.dimension, told.within("dim"))
        if loop is None:
            return 0
        name, size = loop
        if size % tile.size:
            told.at(("tile",), uneven(node, tile.dimension, loop, "tiles"), tile.size, divisors(size))
            return 0
        if not name:
            return 1
        source = (node.node_id, name)
        step, over = self._axes.indices_of_step(source), parts.get(self._axes.axis_of(source), 1)
        if (tile.size / step).denominator != 1:
            message = f"a fused layer moves by steps of {step} along D{tile.dimension} of {node.name}"
            told.at(("tile",), message, tile.size, f"multiples of {step}")
            return 0
        if size % (tile.size * over):
            most = Fraction(size) / over
            share = f"{int(most)}" if most.denominator == 1 else f"{float(most):g}"
            message = (
                f"D{tile.dimension} ({name}) of {node.name} has size {size}, and {over} cores share it, {share} indices"
                " each; the tile must divide this share"
            )
            otherwise = f"no tile, or a `split` (number of parts) that divides {size}"
            allowed = divisors(int(most)) if most.denominator == 1 else otherwise
            told.at(("tile",), message, tile.size, allowed)
            return 0
        return size // (tile.size * over)
