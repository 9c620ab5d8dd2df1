"""Conversion of mapping files of stream-dse 2.x to mapping entries and stacks of tilewright, for one network on one
accelerator.

Source: stream-dse 2.1.1 (`stream/parser/mapping_factory.py`, `stream/workload/utils.py`). A tile is the part of an axis
that one core computes at a time. Layers of a group can share an axis. All layers with this axis are cut into the same
number of tiles, S / (T * P). S is the size of the axis, and T is the size of the tile. Each layer cuts the axis into
parts for several cores; P is the largest number of parts. docs/formats/mapping.md lists the differences from Stream.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.base.errors import Problems, count_of
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints, PartAdditions, TilingEntry
from tilewright.mapping.network_plans import PlanLayer
from tilewright.multicore.nodes.partial_sums import reductions_of
from tilewright.peers.stream.group_parts import GroupParts
from tilewright.peers.stream.group_tiles import GroupTiles
from tilewright.peers.stream.selected_layers import SelectedLayers
from tilewright.workload.graph import Workload, WorkloadNode

_MOST_NAMED = 3


def applied(mapping: Mapping, workload: Workload, accelerator: MultiCoreAccelerator, problems: Problems) -> Mapping:
    """Copy of `mapping` for a network on an accelerator: mapping entries and stacks replace the plan, which is the
    content of a file of stream-dse 2.x. All problems are reported in `problems`, and no error is raised. If there are
    problems, the only entry is `default`.
    """
    assert mapping.plan is not None
    before = len(problems.found)
    layers = SelectedLayers(mapping.plan, workload, accelerator, problems)
    layers.check()
    made = _Application(layers)
    tiles = made.tiles()
    if len(problems.found) > before:
        return replace(mapping, entries=(MappingConstraints(DEFAULT),), plan=None)
    entries, places = made.entries(tiles)
    made.tell()
    entries.append(MappingConstraints(DEFAULT))
    return replace(mapping, entries=tuple(entries), plan=None, stacks=made.stacks, places=(*places, -1))


@dataclass
class _Application:
    """Plan of a file, applied to a network on an accelerator."""

    layers: SelectedLayers
    _left_out: list[str] = field(default_factory=list)

    @cached_property
    def _members(self) -> list[list[WorkloadNode]]:
        """Layers of each group, in the order of the network."""
        plan, found = self.layers.plan, []
        for group in plan.groups:
            places = {place for place, entry in enumerate(plan.layers) if entry.name in group.layers}
            nodes = self.layers.workload.nodes
            found.append([node for node in nodes if self.layers.place_of.get(node.node_id) in places])
        return found

    def tiles(self) -> dict[int, list[TilingEntry]]:
        """Loops over tiles of the layers of all groups, innermost first, by node id. Wrong tiles and wrong numbers of
        parts are reported.
        """
        found: dict[int, list[TilingEntry]] = {}
        for place, nodes in enumerate(self._members):
            self._check_group(place)
            if nodes:
                found |= GroupTiles(self.layers, place, nodes).loops()
        grouped = {node.node_id for members in self._members for node in members}
        for node in self.layers.workload.nodes:
            if node.node_id in self.layers.place_of and node.node_id not in grouped:
                GroupParts(self.layers, [node]).check()
        return found

    def _check_group(self, place: int) -> None:
        """Report each name in the list of the group if the name selects several operators. The file then does not say
        which of these operators are in this group. Nothing is reported if the file has only one group.
        """
        plan = self.layers.plan
        told = self.layers.problems.within("fused_groups", place)
        for at, name in enumerate(plan.groups[place].layers if len(plan.groups) > 1 else ()):
            entry = next(index for index, one in enumerate(plan.layers) if one.name == name)
            operators = list(dict.fromkeys(node.origin or node.name for node in self.layers.nodes_of[entry]))
            if len(operators) > 1:
                message = f"selects {len(operators)} layers, and the file does not say which of them are in this group"
                told.at(("layers", at), message, name, f"names of layers: {_some(operators)}")

    @property
    def stacks(self) -> tuple[tuple[int, ...], ...]:
        """Stacks as tuples of node ids: one for each group, and one for each layer outside the groups. The result is ()
        if the file has no groups.
        """
        if not self.layers.plan.groups:
            return ()
        grouped = [tuple(node.node_id for node in members) for members in self._members if members]
        seen = {node_id for stack in grouped for node_id in stack}
        alone = [
            (node.node_id,)
            for node in self.layers.workload.nodes
            if node.layer is not None and node.node_id not in seen
        ]
        order = {node.node_id: place for place, node in enumerate(self.layers.workload.nodes)}
        return tuple(sorted((*grouped, *alone), key=lambda stack: order[stack[0]]))

    def entries(self, tiles: dict[int, list[TilingEntry]]) -> tuple[list[MappingConstraints], list[int]]:
        """Pair (entries of the layers, positions of these entries in the file)."""
        alone = {stack[0] for stack in self.stacks if len(stack) == 1}
        found, places = [], []
        for node in self.layers.workload.nodes:
            if node.node_id in self.layers.place_of:
                place = self.layers.place_of[node.node_id]
                given = tiles.get(node.node_id, [])
                found.append(self._entry(node, self.layers.plan.layers[place], given, node.node_id in alone))
                places.append(place)
        return found, places

    def _entry(
        self, node: WorkloadNode, given: PlanLayer, tiles: Sequence[TilingEntry], is_alone: bool
    ) -> MappingConstraints:
        """Entry of a layer. A layer that is alone in its stack is not cut into tiles: the tiles that the file gives for
        it become further parts on the same cores. Tiles of a reduction are then left out. If the cores of the layer are
        not fixed, all tiles are left out.
        """
        assert node.layer is not None
        loops = [(self.layers.loop(node, split.dimension, Problems()), split.parts) for split in given.splits]
        between = [TilingEntry(loop[0], parts) for loop, parts in reversed(loops) if loop and parts > 1]
        reduced = reductions_of(node.layer)
        cores, is_fixed = given.cores, len(given.cores) == math.prod(loop.tiles for loop in between)  # type: ignore[misc]
        within = list(tiles)
        if is_alone and within:
            within = [loop for loop in tiles if loop.dimension not in reduced and is_fixed]
            self._left_out += [f"{node.name}: {loop.dimension}, {loop.tiles}" for loop in tiles if loop not in within]
            cores *= math.prod(int(loop.tiles) for loop in within)
            between, within = [*between, *within], []
        uncut = next((name for name in node.layer.size_of if name not in reduced), next(iter(node.layer.size_of)))
        return MappingConstraints(
            node.layer.name,
            core_allocation=cores,
            core_allocation_is_fixed=is_fixed,
            inter_core_tiling=tuple(between),
            # A layer without a loop over tiles would be cut into two tiles.
            intra_core_tiling=tuple(within) or (TilingEntry(uncut, 1),),
            reduction=PartAdditions() if any(loop.dimension in reduced for loop in between) else None,
        )

    def tell(self) -> None:
        """Add notices on layers without an entry, on layers that several cores could run, and on tiles that are left
        out.
        """
        layers = [node for node in self.layers.workload.nodes if node.layer is not None]
        missing = [node.name for node in layers if node.node_id not in self.layers.place_of]
        if missing:
            told = (
                f"the file has no entry for {count_of(len(missing), 'layer')} of the network ({_some(missing)}): such a"
                " layer is not cut, and any core can run it; Stream refuses such a file"
            )
            self.layers.problems.notice(self.layers.root, told)
        grouped = {node.node_id for members in self._members for node in members}
        if not self.layers.plan.groups:
            self.layers.problems.notice(self.layers.root, "the file has no fused groups; the options decide the stacks")
        apart = [node.name for node in layers if node.node_id in self.layers.place_of and node.node_id not in grouped]
        if apart and self.layers.plan.groups:
            told = f"{count_of(len(apart), 'layer')} ({_some(apart)}) are in no fused group; each is a separate stack"
            self.layers.problems.notice(self.layers.root, told)
        for place, entry in enumerate(self.layers.plan.layers):
            count = math.prod(split.parts for split in entry.splits)
            if count < len(entry.cores):
                told = (
                    f"{len(entry.cores)} cores are given for {count_of(count, 'part')}: each part runs on one of these"
                    " cores; in Stream, several cores compute the same part"
                )
                self.layers.of_entry(place).notice(("core_allocation",), told)
        if self._left_out:
            told = f"tiles of a layer that is alone in its group are left out: {'; '.join(self._left_out)}"
            self.layers.problems.notice(("fused_groups",), told)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
