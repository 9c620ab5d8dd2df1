"""Cuts of reductions between cores: the network gets parts and additions in place of each layer whose reduction is cut.

An entry of the mapping file cuts a reduction with a loop of `inter_core_tiling`, such as `C, 4`, and the key
`reduction`. The layer is then replaced by parts and additions (`partial_sums`), and the mapping gets an entry for each
part and each addition. If the file already has an entry for a part or an addition, the entry of the file takes
precedence. Networks and mappings that are already cut stay as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.base.errors import KeyPath, Problems, count_of
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import WILDCARD, Mapping, MappingConstraints, PartAdditions, TilingEntry
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import ONE_CORE, RING, TREE
from tilewright.multicore.nodes.partial_sums import (
    Range,
    Ranges,
    SummedLayer,
    reductions_of,
    share_axis,
    summed_layer,
    why_not_summed,
)
from tilewright.multicore.nodes.tiling import OuterLoop, counted_loops, dimension_names
from tilewright.workload.graph import Tensor, Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

MOST_ADDITIONS = 4096
"""Largest number of additions for one layer whose reduction is cut. Each addition is a separate layer."""
_SHAPE_TEXT = {ONE_CORE: "one after the other", TREE: "in a tree", RING: "in a ring"}


def cut_reductions(
    workload: Workload, mapping: Mapping, accelerator: MultiCoreAccelerator, problems: Problems
) -> tuple[Workload, Mapping]:
    """Network and mapping in which parts and additions replace each layer whose reduction is cut between cores.

    `problems` collects the problems of the mapping file. If the cut of a layer has a problem, the layer is not cut. Its
    entry then loses the loops over cores, so that later checks do not report the same problem again.
    """
    if not any(entry.reduction for entry in mapping.entries):
        return workload, mapping
    cutting = _Cutting(workload, mapping, accelerator, problems, failed=_too_many_parts(workload, mapping, problems))
    nodes: list[WorkloadNode] = []
    for node in workload.nodes:
        summed = cutting.replacement(node) if node.layer is not None else None
        nodes += [node] if summed is None else summed.nodes
    cutting.tell_without_effect()
    if not cutting.made and not cutting.failed:
        return workload, mapping
    names = dict.fromkeys((*mapping.cut_entries, *cutting.cut_entries))
    entries = tuple(_without_reductions(entry) if entry.name in cutting.failed else entry for entry in mapping.entries)
    own = {entry.name for entry in entries}
    added = tuple(entry for entry in cutting.made if entry.name not in own)
    network = replace(workload, nodes=tuple(nodes), tensors=(*workload.tensors, *cutting.tensors))
    return network, replace(mapping, entries=(*entries, *added), cut_entries=tuple(names))


def _too_many_parts(workload: Workload, mapping: Mapping, problems: Problems) -> set[str]:
    """Report a problem for each loop that cuts a reduction into more parts than the reduction has indices. If the
    mapping entry of a loop selects several layers, the loop is reported only if it makes too many parts for every one
    of these layers. Returns the names of the mapping entries with a problem.
    """
    sizes: dict[tuple[int, int], list[int]] = {}
    for node in workload.nodes:
        entry = None if node.layer is None else mapping.constraints_for(node.layer)
        if node.layer is None or entry is None or entry.reduction is None:
            continue
        names, reduced = dimension_names(node.layer, entry), reductions_of(node.layer)
        for position, loop in enumerate(entry.inter_core_tiling):
            if names.get(loop.dimension) in reduced:
                place = (mapping.entries.index(entry), position)
                sizes.setdefault(place, []).append(node.layer.size_of[names[loop.dimension]])
    failed = set()
    for (index, position), found in sizes.items():
        loop = mapping.entries[index].inter_core_tiling[position]
        if isinstance(loop.tiles, int) and loop.tiles > max(found):
            several = "" if len(found) == 1 else f" in any of the {len(found)} layers"
            message = f"more parts than {loop.dimension} has indices{several}"
            path = (index, "inter_core_tiling", position)
            problems.at(path, message, f"{loop.dimension}, {loop.tiles}", f"1 to {max(found)}")
            failed.add(mapping.entries[index].name)
    return failed


def _without_reductions(entry: MappingConstraints) -> MappingConstraints:
    return replace(entry, inter_core_tiling=(), core_allocation_is_fixed=False, reduction=None)


@dataclass(frozen=True)
class _LayerCut:
    """Cut of a layer by the loops over cores of its mapping entry. At least one of these loops cuts a reduction."""

    node: WorkloadNode
    index: int
    """Position of `entry` in the mapping."""
    entry: MappingConstraints
    between: tuple[tuple[TilingEntry, str], ...]
    """Pairs (loop of `inter_core_tiling`, dimension of the layer), innermost first. In the loop, `*` is already
    replaced by the number of tiles."""
    loops: tuple[OuterLoop | None, ...]
    """Outer loops that are made from the loops of `between`, in the same order. None for a loop with only one tile."""
    reduced: frozenset[str]
    """Dimensions of the layer that are reductions."""

    @property
    def sums(self) -> PartAdditions:
        assert self.entry.reduction is not None
        return self.entry.reduction

    @property
    def cut_loops(self) -> tuple[tuple[int, OuterLoop], ...]:
        """Pairs (position in `loops`, loop) of the loops that cut a reduction."""
        return tuple(
            (place, loop)
            for place, loop in enumerate(self.loops)
            if loop is not None and loop.dimension in self.reduced
        )

    @property
    def group_count(self) -> int:
        """Number of groups into which all loops over cores divide the layer."""
        count = 1
        for loop in self.loops:
            count *= 1 if loop is None else loop.count
        return count

    def parts(self) -> list[tuple[Ranges, tuple[int, ...]]]:
        """Parts of the layer, as pairs (ranges of the cut reductions, numbers of the groups in the part). In the order
        of the parts, the first cut loop changes fastest. A part with an empty range is left out.
        """
        found: list[tuple[Ranges, tuple[int, ...]]] = []
        cut = self.cut_loops
        count = 1
        for _, loop in cut:
            count *= loop.count
        for number in range(count):
            values, rest = {}, number
            for place, loop in cut:
                values[place], rest = rest % loop.count, rest // loop.count
            ranges = self._ranges(values)
            if all(start < end for start, end in ranges.values()):
                found.append((ranges, self._groups(values)))
        return found

    def _ranges(self, values: dict[int, int]) -> dict[str, Range]:
        """Range of each cut reduction, by dimension. `values` has the value of each cut loop, by position in `loops`.
        If several loops cut one dimension, the outer loops cut first."""
        layer = self.node.layer
        assert layer is not None
        ranges: dict[str, Range] = {}
        for place, loop in reversed(self.cut_loops):
            start, end = ranges.get(loop.dimension, (0, layer.size_of[loop.dimension]))
            start += values[place] * loop.tile_size
            ranges[loop.dimension] = (start, min(end, start + loop.tile_size))
        return ranges

    def _groups(self, values: dict[int, int]) -> tuple[int, ...]:
        """Numbers of the groups of the layer that are in a part. `values` identifies the part: the value of each cut
        loop, by position in `loops`. Groups are numbered so that the first loop over cores changes fastest."""
        groups, stride = [0], 1
        for place, loop in enumerate(self.loops):
            if loop is None:
                continue
            steps = (values[place],) if place in values else range(loop.count)
            groups = [group + stride * step for step in steps for group in groups]
            stride *= loop.count
        return tuple(groups)


@dataclass
class _Cutting:
    """State of `cut_reductions`, which goes through the layers of a network and cuts their reductions."""

    workload: Workload
    mapping: Mapping
    accelerator: MultiCoreAccelerator
    problems: Problems
    tensors: list[Tensor] = field(default_factory=list)
    made: list[MappingConstraints] = field(default_factory=list)
    """Mapping entries that were made for the parts and the additions of cut layers."""
    cut_entries: list[str] = field(default_factory=list)
    """Names of the mapping entries that cut a reduction of some layer."""
    failed: set[str] = field(default_factory=set)
    """Names of the mapping entries for which a problem was reported."""
    _idle: dict[int, MappingConstraints] = field(default_factory=dict)
    """Entries that have the key `reduction` and select a layer, by their position in the mapping. `tell_without_effect`
    reports each of these entries whose loops cut no reduction.
    """

    def __post_init__(self) -> None:
        self._next_id = max((node.node_id for node in self.workload.nodes), default=0) + 1
        self._names = {node.name for node in self.workload.nodes}
        self._place_of = {id(entry): place for place, entry in enumerate(self.mapping.entries)}

    def replacement(self, node: WorkloadNode) -> SummedLayer | None:
        """Nodes that replace a layer; None if its reduction is not cut, or if the cut has a problem."""
        assert node.layer is not None
        entry = self.mapping.constraints_for(node.layer)
        if entry.reduction is None or entry.name in self.failed:
            return None
        index = self._place_of[id(entry)]
        self._idle.setdefault(index, entry)
        cut = self._cut(node, index, entry)
        if cut is None:
            return None
        self.cut_entries.append(entry.name)
        before = len(self.problems.found)
        parts = cut.parts()
        self._check(cut, len(parts))
        if len(self.problems.found) > before:
            self.failed.add(entry.name)
            return None
        summed = summed_layer(node, self.workload, [part for part, _ in parts], cut.sums.shape, self._next_id)
        entries = [*self._part_entries(cut, summed, parts), *self._sum_entries(cut, summed, parts)]
        if len(self.problems.found) > before:
            self.failed.add(entry.name)
            return None
        self._next_id += len(summed.nodes)
        self.made += entries
        self.tensors += summed.tensors
        return summed

    def _cut(self, node: WorkloadNode, index: int, entry: MappingConstraints) -> _LayerCut | None:
        """Cut of a layer by the loops over cores of its mapping entry, which is at position `index` of the mapping.
        None if these loops cut no reduction, or if the partial sums of the layer cannot be added (see
        `why_not_summed`).

        If the entry selects the layer by its name, partial sums that cannot be added are a problem. For any other
        entry, no problem is reported: `loops_over_cores` later leaves out the loops that would cut a reduction of this
        layer.
        """
        layer = node.layer
        assert layer is not None
        names, cores = dimension_names(layer, entry), max(1, len(entry.core_allocation))
        between = tuple(
            (replace(loop, tiles=cores if loop.tiles == WILDCARD else loop.tiles), names[loop.dimension])
            for loop in entry.inter_core_tiling
            if loop.dimension in names
        )
        reduced = frozenset(reductions_of(layer))
        loops, told = counted_loops(layer, [(dimension, loop.tiles) for loop, dimension in between])
        cut = _LayerCut(node, index, entry, between, loops, reduced)
        if not cut.cut_loops:
            return None
        reason = why_not_summed(node)
        if reason:
            if entry.name == layer.name:
                self._problem(cut, reason)
                self.failed.add(entry.name)
            return None
        self.problems.notices += told
        return cut

    def _problem(self, cut: _LayerCut, message: str, allowed: str = "") -> None:
        """Report a problem of the first loop that cuts a reduction."""
        loop = cut.between[cut.cut_loops[0][0]][0]
        path = (cut.index, "inter_core_tiling", cut.entry.inter_core_tiling.index(self._written(cut, loop)))
        self.problems.at(path, f"{cut.node.name}: {message}", f"{loop.dimension}, {loop.tiles}", allowed)

    @staticmethod
    def _written(cut: _LayerCut, loop: TilingEntry) -> TilingEntry:
        """Loop as the mapping entry gives it, possibly with `*` as the number of tiles."""
        entry = cut.entry.inter_core_tiling
        return loop if loop in entry else replace(loop, tiles=WILDCARD)

    def _check(self, cut: _LayerCut, parts: int) -> None:
        """Report problems of a cut: too many additions, a wrong number of fixed cores, or a ring for outputs that have
        too few indices along every axis."""
        additions = (parts - 1) * (parts if cut.sums.shape == RING else 1)
        if additions > MOST_ADDITIONS:
            message = f"{parts:,} parts need {additions:,} additions of partial results, more than {MOST_ADDITIONS:,}"
            self._problem(cut, message, "fewer parts" if cut.sums.shape != RING else f"fewer parts, or shape: {TREE}")
        listed, groups = len(cut.entry.core_allocation), cut.group_count
        if cut.entry.core_allocation_is_fixed and listed not in (1, groups):
            path = (cut.index, "core_allocation")
            message = f"fixes {count_of(listed, 'core')}, but {cut.node.name} has {count_of(groups, 'group')}"
            self.problems.at(path, message, str(list(cut.entry.core_allocation)), f"1 core or {groups} cores")
        if cut.sums.shape == RING and share_axis(cut.node, self.workload, parts) is None:
            message = (
                f"a ring of {parts} parts needs an axis of the outputs of {cut.node.name} with at least {parts} indices"
            )
            self.problems.at((cut.index, "reduction", "shape"), message, RING, f"{ONE_CORE}, {TREE}")

    def _part_entries(
        self, cut: _LayerCut, summed: SummedLayer, parts: Sequence[tuple[Ranges, tuple[int, ...]]]
    ) -> list[MappingConstraints]:
        """Mapping entries of the parts of a layer, one for each part. The entry of a part is a copy of the layer's
        entry without the loops over cores that cut reductions. If the entry of the layer fixes one core for each group,
        each part gets only the cores of its groups. A problem is reported if the network already has a layer with the
        name of a part.
        """
        entry = cut.entry
        between = tuple(loop for loop, dimension in cut.between if dimension not in cut.reduced)
        found = []
        for node, (_, groups) in zip(summed.parts, parts, strict=True):
            self._check_name(cut, node.name)
            made = replace(entry, name=node.name, inter_core_tiling=between, reduction=None, part_of_entry=entry.name)
            found.append(replace(made, core_allocation=_cores_of(entry, groups)))
        return found

    def _sum_entries(
        self, cut: _LayerCut, summed: SummedLayer, parts: Sequence[tuple[Ranges, tuple[int, ...]]]
    ) -> list[MappingConstraints]:
        """Mapping entry for each addition. The options for the mapping on a single core come from the entry that the
        mapping file has for additions. The tilings are the loops of the layer's entry that cut outputs.

        An addition runs on the cores of the part `Addition.home` if four conditions are met:

        * The layer has fixed cores.
        * The cores of the part can run additions.
        * The key `reduction` names no core.
        * The shape in the key `reduction` is not `one_core`.

        Of the cores of the part, only the first one is used if the addition and the part have different numbers of
        groups. If a condition is not met, the addition runs on the cores that `_adding_cores` returns.
        """
        example = summed.sums[0]
        assert example.layer is not None
        written = set(dict(example.layer.operand_dimensions)[OUTPUT])
        base = self.mapping.constraints_for(replace(example.layer, name=""))
        names = dimension_names(_layer(cut.node), cut.entry)
        within = tuple(
            replace(loop, dimension=names[loop.dimension])
            for loop in cut.entry.intra_core_tiling
            if names.get(loop.dimension, "") in written
        )
        between = tuple(replace(loop, dimension=name) for loop, name in cut.between if name in written)
        base = replace(
            base,
            layer_dimension_names=(),
            reduction=None,
            core_allocation=(),
            core_allocation_is_fixed=False,
            part_of_entry=cut.entry.name,
        )
        ids = _adding_cores(cut, example, base, self.accelerator, self.problems)
        base = _on_cores(base, ids, self.accelerator)
        found = []
        for node, addition in zip(summed.sums, summed.additions, strict=True):
            self._check_name(cut, node.name)
            home = _cores_of(cut.entry, parts[addition.home][1])
            own = replace(
                base,
                name=node.name,
                inter_core_tiling=_possible(between, node),
                intra_core_tiling=_possible(within, node),
            )
            loops, _ = counted_loops(_layer(node), [(loop.dimension, loop.tiles) for loop in own.inter_core_tiling])
            if len(home) != math.prod(loop.count for loop in loops if loop is not None):
                home = home[:1]  # a share of a ring can be too small for as many groups as the layer has
            is_fixed = cut.sums.core is None and cut.sums.shape != ONE_CORE and cut.entry.core_allocation_is_fixed
            if is_fixed and set(home) <= set(ids):
                found.append(replace(own, core_allocation=home, core_allocation_is_fixed=True))
            else:
                found.append(replace(own, core_allocation=ids, core_allocation_is_fixed=len(ids) == 1))
        self._tell(cut, summed, ids)
        return found

    def _check_name(self, cut: _LayerCut, name: str) -> None:
        """Report a problem if the network already has a layer with the name of a part or an addition."""
        if name in self._names:
            self._problem(cut, f"the network already has a layer {name}; the cut needs this name for a part of a layer")

    def _tell(self, cut: _LayerCut, summed: SummedLayer, ids: Sequence[int]) -> None:
        """Add a notice on the parts and the additions of a layer."""
        layer = _layer(cut.node)
        dimensions = ", ".join(dict.fromkeys(loop.dimension for _, loop in cut.cut_loops))
        operations = sum(_layer(node).mac_count for node in summed.sums)
        cores = f"core{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"
        self.problems.notices.append(
            f"{cut.node.name}: {dimensions} is cut into {len(summed.parts)} parts; their partial sums of"
            f" {layer.bits_of[OUTPUT]} bits are added {_SHAPE_TEXT[cut.sums.shape]} on {cores}"
            f" ({count_of(operations, 'addition')})"
        )

    def tell_without_effect(self) -> None:
        """Add a notice for each mapping entry whose key `reduction` has no effect. The key has no effect if the loops
        of the entry cut no reduction of the layers that the entry selects.
        """
        for index, entry in self._idle.items():
            if entry.name not in self.cut_entries and entry.name not in self.failed:
                message = "has no effect: the inter_core_tiling of this entry does not cut a reduction of its layers"
                self.problems.unused((index, "reduction"), message)


def _layer(node: WorkloadNode) -> Layer:
    assert node.layer is not None
    return node.layer


def _possible(loops: Sequence[TilingEntry], node: WorkloadNode) -> tuple[TilingEntry, ...]:
    """Copies of `loops` for the node's layer. A number of tiles above the size of the dimension is reduced to this
    size.
    """
    sizes = _layer(node).size_of
    return tuple(
        loop if isinstance(loop.tiles, str) else replace(loop, tiles=min(loop.tiles, sizes[loop.dimension]))
        for loop in loops
    )


def _on_cores(base: MappingConstraints, ids: Sequence[int], accelerator: MultiCoreAccelerator) -> MappingConstraints:
    """Copy of an entry for the cores `ids`. The copy keeps a spatial hint only if at least one of these cores has the
    array dimension of the hint. The copy keeps the spatial mapping only if every array dimension of the mapping exists
    on at least one of these cores.
    """
    sides = {side for core_id in ids for side in accelerator.core_of[core_id].operational_array.size_of}
    hints = tuple((side, loops) for side, loops in base.spatial_mapping_hint if side in sides)
    given = base.spatial_mapping if all(side in sides for side, _ in base.spatial_mapping) else ()
    return replace(base, spatial_mapping=given, spatial_mapping_hint=hints)


def _cores_of(entry: MappingConstraints, groups: Sequence[int]) -> tuple[int, ...]:
    """Cores on which some groups of a layer can run. The loops over cores divide the layer into groups, and `groups`
    has the indexes of some groups. If the layer's mapping entry `entry` fixes one core for each group, the result has
    the cores of the groups in `groups`. Otherwise, the result has all cores that the entry lists.
    """
    cores = entry.core_allocation
    if not entry.core_allocation_is_fixed or len(cores) == 1:
        return cores
    return tuple(cores[group] for group in groups)


def _adding_cores(
    cut: _LayerCut, node: WorkloadNode, base: MappingConstraints, accelerator: MultiCoreAccelerator, problems: Problems
) -> tuple[int, ...]:
    """Ids of the cores that run the additions of a layer. There are three cases:

    * The mapping file names a core for the additions: this core.
    * Some cores of the layer's parts can run additions: these cores.
    * All other cases: all cores that can run additions.

    For the shape `one_core`, only the first of these cores is returned. A problem is reported, and the result is (), in
    two cases: the named core does not exist or cannot run additions, or no core can run additions.
    """
    given = cut.sums.core
    if given is not None:
        path: KeyPath = (cut.index, "reduction", "core")
        if given not in accelerator.place_of:
            known = list(accelerator.onchip_core_ids)
            nearest = min(known, key=lambda core_id: (abs(core_id - given), core_id), default=None)
            listed = ", ".join(map(str, known))
            problems.at(path, "no core has this id", given, listed, "" if nearest is None else str(nearest))
            return ()
        choice = core_choice(node, replace(base, core_allocation=(given,)), accelerator)
        for _, reason in choice.reasons:
            able = core_choice(node, base, accelerator).core_ids
            message = f"core {given} cannot add the partial sums of {cut.node.name}: it {reason}"
            problems.at(path, message, given, ", ".join(map(str, able)) or "none: no core can add")
        return choice.core_ids
    named = tuple(dict.fromkeys(cut.entry.core_allocation))
    of_parts = core_choice(node, replace(base, core_allocation=named), accelerator).core_ids if named else ()
    choice = core_choice(node, base, accelerator)
    ids = of_parts or choice.core_ids
    if not ids:
        reasons: dict[str, list[str]] = {}
        for core_id, reason in choice.reasons:
            reasons.setdefault(reason, []).append(str(core_id))
        told = "; ".join(f"core {', '.join(found)} {reason}" for reason, found in reasons.items())
        message = f"no core can add the partial sums of {cut.node.name}: {told}"
        problems.at((cut.index, "reduction"), message)
    return ids[:1] if cut.sums.shape == ONE_CORE else ids
