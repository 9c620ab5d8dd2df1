"""Mapping files of stream-dse 2.x for a network on an accelerator: ordinary entries and stacks with the same meaning.

Source: stream-dse 2.1.1 (`stream/parser/mapping_factory.py`, `stream/workload/utils.py`). The size of a tile is that of
one core. All layers of a group that share the axis of a tile are cut into the same number of tiles: the size of the
axis, divided by the size of the tile and by the largest number of parts of the axis. docs/formats.md says what differs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from tilewright.base.errors import KeyPath, Problems, count_of
from tilewright.base.operator_groups import KNOWN_TYPES
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints, PartAdditions, TilingEntry
from tilewright.mapping.network_plans import NetworkPlan, PlanGroup, PlanLayer, PlanTile
from tilewright.peers.stream.fused_axes import FusedAxes, Loop, loops_in_order
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT

_MOST_NAMED = 3
_UNKNOWN_ORDER = "the order in which Stream 2.1.1 lists the loops of this operator is not known"


def applied(mapping: Mapping, workload: Workload, accelerator: MultiCoreAccelerator, problems: Problems) -> Mapping:
    """Mapping whose plan is replaced by entries and stacks for a network on an accelerator. All problems are reported
    in `problems`, and no error is raised. With problems, the only entry is `default`.
    """
    assert mapping.plan is not None
    before = len(problems.found)
    made = _Application(mapping.plan, workload, accelerator, problems)
    made.check_names()
    for place in range(len(mapping.plan.layers)):
        made.check_parts(place)
    tiles = [made.tiles(place) for place in range(len(mapping.plan.groups))]
    if len(problems.found) > before:
        return replace(mapping, entries=(MappingConstraints(DEFAULT),), plan=None)
    entries, places = made.entries({node_id: loops for found in tiles for node_id, loops in found.items()})
    made.tell()
    entries.append(MappingConstraints(DEFAULT))
    return replace(mapping, entries=tuple(entries), plan=None, stacks=made.stacks, places=(*places, -1))


@dataclass
class _Application:
    """Plan of a file, applied to a network on an accelerator."""

    plan: NetworkPlan
    workload: Workload
    accelerator: MultiCoreAccelerator
    problems: Problems
    _left_out: list[str] = field(default_factory=list)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Position of the first entry that selects a layer, by node id of the layer. Other layers are left out."""
        found = {}
        for node in self.workload.nodes:
            names = _names_of(node)
            place = next((place for place, one in enumerate(self.plan.layers) if one.name in names), None)
            if node.layer is not None and place is not None:
                found[node.node_id] = place
        return found

    @cached_property
    def nodes_of(self) -> dict[int, list[WorkloadNode]]:
        """Layers that each entry selects, by position of the entry."""
        found: dict[int, list[WorkloadNode]] = {place: [] for place in range(len(self.plan.layers))}
        for node in self.workload.nodes:
            if node.node_id in self.place_of:
                found[self.place_of[node.node_id]].append(node)
        return found

    def _of_layers(self, place: int) -> Problems:
        """Collector for the entry of a layer."""
        return self.problems.within(*self._root, place)

    @cached_property
    def _root(self) -> KeyPath:
        """Path of the list of layers: a file can be only this list."""
        return () if self.problems.places is not None and _is_list(self.problems) else ("layers",)

    def check_names(self) -> None:
        """Report names of entries that neither a layer nor an operator has, and cores that do not exist."""
        names = {name: None for node in self.workload.nodes for name in _names_of(node) if name}
        layers = list(dict.fromkeys(node.name for node in self.workload.nodes if node.layer is not None))
        cores = [str(core) for core in self.accelerator.onchip_core_ids]
        for place, entry in enumerate(self.plan.layers):
            told = self._of_layers(place)
            if entry.name not in names and entry.name not in KNOWN_TYPES:
                told.unknown_name(("name",), f"no layer of {self.workload.name} has this name", entry.name, layers)
            elif not self.nodes_of[place]:
                told.unused(("name",), "has no effect: it selects no layer with costs in this network", entry.name)
            for at, core in enumerate(entry.cores):
                if core not in self.accelerator.onchip_core_ids:
                    path = ("core_allocation", 0, at)
                    told.at(path, f"{self.accelerator.name} has no such core for layers", core, ", ".join(cores))

    def check_parts(self, place: int) -> None:
        """Report wrong cuts of an entry into parts, and a number of parts that does not match the cores."""
        entry, told = self.plan.layers[place], self._of_layers(place)
        for node in self.nodes_of[place]:
            for at, split in enumerate(entry.splits):
                path = ("inter_core_tiling", 0, at)
                found = self._loop(node, split.dimension, told.within(*path, "dim"))
                if found is not None and found[1] % split.parts:
                    message = _uneven(node, split.dimension, found, "parts")
                    told.at((*path, "split"), message, split.parts, _divisors(found[1]))
        count = math.prod(split.parts for split in entry.splits)
        if count > len(entry.cores):
            message = f"{count_of(count, 'part')} need as many cores, but {len(entry.cores)} are given"
            told.at(("core_allocation",), message, list(entry.cores), count_of(count, "core"))

    def _loop(self, node: WorkloadNode, position: int, told: Problems) -> tuple[str, int] | None:
        """Pair (name, size) of the loop at a position of a layer. None if there is no such loop; this is reported."""
        names = loops_in_order(node)
        if names is None:
            told.at((), f"{node.name}: {_UNKNOWN_ORDER}", node.operator_type, "no cuts of layers of this operator")
            return None
        assert node.layer is not None
        sizes = [node.layer.size_of.get(name, 1) for name in names]
        if position >= len(names):
            loops = ", ".join(
                f"D{at} ({name or 'one index'}, {size})"
                for at, (name, size) in enumerate(zip(names, sizes, strict=True))
            )
            told.at((), f"{node.name} has no such loop", f"D{position}", loops)
            return None
        return names[position], sizes[position]

    def _members(self, group: PlanGroup) -> list[WorkloadNode]:
        """Layers of a group, in the order of the network."""
        places = {place for place, entry in enumerate(self.plan.layers) if entry.name in group.layers}
        return [node for node in self.workload.nodes if self.place_of.get(node.node_id) in places]

    @cached_property
    def _members_of(self) -> list[list[WorkloadNode]]:
        return [self._members(group) for group in self.plan.groups]

    @property
    def stacks(self) -> tuple[tuple[int, ...], ...]:
        """Node ids of the layers of each group, and of each other layer that does work."""
        grouped = [tuple(node.node_id for node in members) for members in self._members_of if members]
        seen = {node_id for stack in grouped for node_id in stack}
        alone = [(node.node_id,) for node in self.workload.nodes if node.layer is not None and node.node_id not in seen]
        order = {node.node_id: place for place, node in enumerate(self.workload.nodes)}
        return tuple(sorted((*grouped, *alone), key=lambda stack: order[stack[0]]))

    def tiles(self, place: int) -> dict[int, list[TilingEntry]]:
        """Loops over tiles of each layer of a group, innermost first, by node id. Wrong tiles are reported."""
        group, nodes = self.plan.groups[place], self._members_of[place]
        told = self.problems.within("fused_groups", place)
        found: dict[int, list[TilingEntry]] = {node.node_id: [] for node in nodes}
        if not nodes:
            return found
        axes = FusedAxes(self.workload, tuple(nodes))
        parts = self._parts_of_axes(nodes, axes)
        sizes: dict[Loop, Fraction] = {}
        for at, tile in enumerate(group.tiles):
            part = told.within("intra_core_tiling", at)
            for node in (node for node in nodes if tile.layer in _names_of(node)):
                count = self._count(node, tile, axes, parts, part)
                loop = self._loop(node, tile.dimension, Problems()) if count else None
                if loop is None or not loop[0]:
                    continue
                source = (node.node_id, loop[0])
                axis, size = axes.axis_of(source), tile.size / axes.indices_of_step(source)
                if sizes.setdefault(axis, size) != size:
                    part.at(("tile",), "another tile of this axis has another size", tile.size)
                elif count > 1:
                    for node_id, name in axes.members(axis):
                        entry = TilingEntry(name, count)
                        if entry not in found[node_id]:
                            found[node_id].append(entry)
        return found

    def _parts_of_axes(self, nodes: Sequence[WorkloadNode], axes: FusedAxes) -> dict[Loop, int]:
        """Largest number of parts of each axis, over the layers of a group."""
        found: dict[Loop, int] = {}
        for node in nodes:
            for split in self.plan.layers[self.place_of[node.node_id]].splits:
                loop = self._loop(node, split.dimension, Problems())
                if loop is not None and loop[0]:
                    axis = axes.axis_of((node.node_id, loop[0]))
                    found[axis] = max(found.get(axis, 1), split.parts)
        return found

    def _count(
        self, node: WorkloadNode, tile: PlanTile, axes: FusedAxes, parts: dict[Loop, int], told: Problems
    ) -> int:
        """Number of tiles of the axis of a tile; 0 if the tile is wrong, which is reported."""
        loop = self._loop(node, tile.dimension, told.within("dim"))
        if loop is None:
            return 0
        name, size = loop
        if size % tile.size:
            told.at(("tile",), _uneven(node, tile.dimension, loop, "tiles"), tile.size, _divisors(size))
            return 0
        if not name:
            return 1
        source = (node.node_id, name)
        step, over = axes.indices_of_step(source), parts.get(axes.axis_of(source), 1)
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
            allowed = _divisors(int(most)) if most.denominator == 1 else f"no tile, or parts that divide {size}"
            told.at(("tile",), message, tile.size, allowed)
            return 0
        return size // (tile.size * over)

    def entries(self, tiles: dict[int, list[TilingEntry]]) -> tuple[list[MappingConstraints], list[int]]:
        """Pair (entries of the layers, positions of these entries in the file)."""
        alone = {stack[0] for stack in self.stacks if len(stack) == 1}
        found, places = [], []
        for node in self.workload.nodes:
            if node.node_id in self.place_of:
                place = self.place_of[node.node_id]
                given = tiles.get(node.node_id, [])
                found.append(self._entry(node, self.plan.layers[place], given, node.node_id in alone))
                places.append(place)
        return found, places

    def _entry(
        self, node: WorkloadNode, given: PlanLayer, tiles: Sequence[TilingEntry], is_alone: bool
    ) -> MappingConstraints:
        """Entry of a layer. A layer that is alone in its stack is not cut into tiles. Its tiles therefore become
        further parts on the same cores; tiles of a reduction are left out.
        """
        assert node.layer is not None
        loops = [(self._loop(node, split.dimension, Problems()), split.parts) for split in given.splits]
        between = [TilingEntry(loop[0], parts) for loop, parts in reversed(loops) if loop and parts > 1]
        written = _written(node)
        cores, is_fixed = given.cores, len(given.cores) == math.prod(loop.tiles for loop in between)  # type: ignore[misc]
        within = list(tiles)
        if is_alone and within:
            within = [loop for loop in tiles if loop.dimension in written and is_fixed]
            self._left_out += [f"{node.name}: {loop.dimension}, {loop.tiles}" for loop in tiles if loop not in within]
            cores *= math.prod(int(loop.tiles) for loop in within)
            between, within = [*between, *within], []
        uncut = next((name for name in node.layer.size_of if name in written), next(iter(node.layer.size_of)))
        return MappingConstraints(
            node.layer.name,
            core_allocation=cores,
            core_allocation_is_fixed=is_fixed,
            inter_core_tiling=tuple(between),
            # A layer without a loop over tiles would be cut into two tiles.
            intra_core_tiling=tuple(within) or (TilingEntry(uncut, 1),),
            reduction=PartAdditions() if any(loop.dimension not in written for loop in between) else None,
        )

    def tell(self) -> None:
        """Add notices on layers without an entry, on layers that several cores could run, and on tiles left out."""
        layers = [node for node in self.workload.nodes if node.layer is not None]
        missing = [node.name for node in layers if node.node_id not in self.place_of]
        if missing:
            told = (
                f"{count_of(len(missing), 'layer')} of {self.workload.name} ({_some(missing)}) have no entry; they are"
                " not cut, and any core can run them. Stream refuses such a file"
            )
            self.problems.notice(self._root, told)
        grouped = {node.node_id for members in self._members_of for node in members}
        apart = [node.name for node in layers if node.node_id in self.place_of and node.node_id not in grouped]
        if apart:
            told = f"{count_of(len(apart), 'layer')} ({_some(apart)}) are in no fused group; each is a stack of its own"
            self.problems.notice(self._root, told)
        for place, entry in enumerate(self.plan.layers):
            count = math.prod(split.parts for split in entry.splits)
            if count < len(entry.cores):
                told = (
                    f"{count_of(count, 'part')} and {len(entry.cores)} cores: each part runs on one of these cores; in"
                    " Stream, several cores compute the same part"
                )
                self._of_layers(place).notice(("core_allocation",), told)
        if self._left_out:
            told = f"tiles of a layer that is alone in its group are left out: {'; '.join(self._left_out)}"
            self.problems.notice(("fused_groups",), told)


def _is_list(problems: Problems) -> bool:
    written = getattr(problems.places, "data", None)
    return isinstance(written, list)


def _names_of(node: WorkloadNode) -> tuple[str, ...]:
    """Names by which an entry selects a node: those of the node and of the operator that it is a part of."""
    return tuple(name for name in (node.name, node.operator_type, node.origin, node.origin_type) if name)


def _written(node: WorkloadNode) -> set[str]:
    """Loops of a layer that index its output."""
    assert node.layer is not None
    relations = {one.data_dimension: [name for name, _ in one.terms] for one in node.layer.relations}
    output = dict(node.layer.operand_dimensions)[OUTPUT]
    return {loop for name in output for loop in relations.get(name, [name])}


def _uneven(node: WorkloadNode, position: int, loop: tuple[str, int], what: str) -> str:
    name, size = loop
    return f"D{position} ({name or 'one index'}) of {node.name} has size {size}, which these {what} do not divide"


def _divisors(size: int) -> str:
    """Divisors of a size, as text."""
    return ", ".join(str(one) for one in range(1, size + 1) if size % one == 0)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
