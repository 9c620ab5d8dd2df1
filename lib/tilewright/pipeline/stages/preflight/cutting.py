"""Preflight checks of tiles, of stacks, and of the data exchange between the cores of layers.

Tiles, stacks and the ends of stacks come from the mapping file or from options.

A mapping entry can ask for more tiles than a dimension has indices. Each tile then has one index. This is useful in a
mapping entry that applies to many layers. Such a number of tiles is an error only if it is too large for every layer to
which the mapping entry applies.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from tilewright.base.errors import InputError, KeyPath, Problem, Problems
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.hardware.system_paths import PathTable, path_table
from tilewright.hardware.yaml_checks import is_usual_loop
from tilewright.mapping.constraints import WILDCARD, Mapping, MappingConstraints, TilingEntry
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import ALL_TILES
from tilewright.multicore.nodes.needs import SPLIT_REDUCTION
from tilewright.multicore.nodes.partial_sums import reductions_of
from tilewright.multicore.nodes.stacks import LAYER_BY_LAYER, layer_stacks
from tilewright.multicore.nodes.tiling import (
    BY_LAYER,
    HintLoop,
    HintLoopOptions,
    Tiling,
    dimension_names,
    fixed_cores_mismatch,
    hint_loop_problems,
    hints_for,
)
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.preflight.cores import layers_of_entries
from tilewright.workload.graph import Workload, WorkloadNode


def check_tiles(problems: Problems, workload: Workload, mapping: Mapping) -> Mapping:
    """Report problems of the tilings in the mapping file, and return the mapping for later checks. In this mapping,
    loops over cores are removed from an entry that cuts a reduction but does not say how to add the partial sums.

    A number of tiles is an error if it is larger than the dimension in every layer of the mapping entry.

    If no layer of the mapping entry has the dimension of a tiling, a notice says that the tiling has no effect (Stream
    also ignores it). Such a tiling is an error instead if the entry has the name of a single layer, and no layer of the
    network has the dimension. Another check reports dimensions with unusual names.
    """
    layers = layers_of_entries(workload, mapping)
    kept = list(mapping.entries)
    for index, (entry, nodes) in enumerate(zip(mapping.entries, layers, strict=True)):
        for key in ("intra_core_tiling", "inter_core_tiling"):
            for position, loop in enumerate(getattr(entry, key)):
                sizes = _sizes(entry, nodes, loop.dimension)
                path = (index, key, position)
                # Dimensions that no usual layer has are reported by another check.
                if nodes and not sizes and is_usual_loop(loop.dimension):
                    _tell_missing_dimension(problems, path, entry, nodes, loop, workload)
                elif sizes and isinstance(loop.tiles, int) and loop.tiles > max(sizes):
                    message = _too_many(loop.dimension, sizes)
                    value, allowed = f"{loop.dimension}, {loop.tiles}", f"1 to {max(sizes)}, or {ALL_TILES}"
                    problems.at(path, message, value, allowed)
                elif key == "inter_core_tiling" and _splits_a_reduction(problems, path, entry, nodes, loop):
                    kept[index] = replace(entry, inter_core_tiling=(), core_allocation_is_fixed=False)
    return replace(mapping, entries=tuple(kept))


def _splits_a_reduction(
    problems: Problems, path: KeyPath, entry: MappingConstraints, nodes: Sequence[WorkloadNode], loop: TilingEntry
) -> bool:
    """True if a loop over cores cuts a reduction of a layer, and the mapping entry of the loop has the name of the
    layer but no key `reduction`. The loop is then reported as an error. An entry that selects the layer in another way
    causes no error: a later step leaves out the loop, and a note says so.
    """
    tiles = len(entry.core_allocation or ()) if loop.tiles == WILDCARD else loop.tiles
    for node in nodes:
        layer = node.layer
        if layer is None or layer.name != entry.name or entry.reduction is not None or tiles in (0, 1):
            continue
        names, reduced = dimension_names(layer, entry), reductions_of(layer)
        if names.get(loop.dimension) in reduced and layer.size_of[names[loop.dimension]] > 1:
            kept = [name for name, dimension in names.items() if dimension not in reduced]
            problems.at(path, SPLIT_REDUCTION, f"{loop.dimension}, {loop.tiles}", ", ".join(kept))
            return True
    return False


def _tell_missing_dimension(
    problems: Problems,
    path: KeyPath,
    entry: MappingConstraints,
    nodes: Sequence[WorkloadNode],
    loop: TilingEntry,
    workload: Workload,
) -> None:
    message = f"no layer that this entry selects has the loop dimension {loop.dimension}"
    layers = [node.layer for node in nodes if node.layer is not None]
    is_elsewhere = any(loop.dimension in size_of for size_of in _sizes_of(workload.layers_in_order))
    if any(layer.name == entry.name for layer in layers) and not is_elsewhere:
        known = dict.fromkeys(name for layer in layers for name in dimension_names(layer, entry))
        problems.at(path, message, f"{loop.dimension}, {loop.tiles}", ", ".join(known))
    else:
        problems.unused(path, message)


def check_hint_loops(problems: Problems, workload: Workload, options: TilingOptions) -> None:
    """Report an error for each hint loop that is too large for the dimension in every layer to which the loop
    applies.
    """
    hints = options.hints()
    nodes = [node for node in workload.nodes if node.layer is not None]
    for path, loops, members in _loops_by_layers(hints, nodes):
        for position, (name, size) in enumerate(loops):
            sizes = [size_of[name.upper()] for size_of in _sizes_of(members) if name.upper() in size_of]
            if sizes and size != ALL_TILES and int(size) > max(sizes):
                message, allowed = _too_many(name, sizes), f"1 to {max(sizes)}, or {ALL_TILES}"
                where = f"{path}[{position}]"
                problems.found.append(Problem(message, path=where, value=f"{name}, {size}", allowed=allowed))


def _loops_by_layers(
    hints: HintLoopOptions, nodes: Sequence[WorkloadNode]
) -> Iterator[tuple[str, Sequence[HintLoop], Sequence[WorkloadNode]]]:
    """Tuples (path of the hint loops in the options, hint loops, nodes of the layers to which these loops apply)."""
    loops = hints.hint_loops
    if hints.cn_define_mode != BY_LAYER:
        yield "hint_loops", hints_for(nodes[0], hints) if nodes else (), nodes
    elif isinstance(loops, Table):
        for ids, found in loops.items():
            yield f"hint_loops[{ids}]", found, [node for node in nodes if node.network_id in ids]
    else:
        for place, listed in enumerate(loops):
            members = [node for node in nodes if sum(cut <= node.network_id for cut in hints.layer_cutoffs) == place]
            yield f"hint_loops[{place}]", listed, members  # type: ignore[misc]


def _sizes_of(nodes: Sequence[WorkloadNode]) -> list[dict[str, int]]:
    return [node.layer.size_of for node in nodes if node.layer is not None]


def _sizes(entry: MappingConstraints, nodes: Sequence[WorkloadNode], dimension: str) -> list[int]:
    """Sizes of a dimension, one for each layer that has this dimension. `dimension` is the name that the entry uses."""
    sizes = []
    for node in nodes:
        assert node.layer is not None
        name = dimension_names(node.layer, entry).get(dimension)
        if name is not None:
            sizes.append(node.layer.size_of[name])
    return sizes


def _too_many(dimension: str, sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return f"more tiles than {dimension} has indices"
    return f"more tiles than {dimension} has indices, in each of the {len(sizes)} layers"


def check_exchange(problems: Problems, problem: SystemProblem) -> None:
    """Report an error for each pair (producer, consumer) of layers between which data cannot flow. For such a pair, no
    allowed core of the producer can send data to an allowed core of the consumer, neither over links nor through the
    off-chip memory.

    A single pair of cores that can exchange data is enough, because the search for an allocation finds it.
    """
    table, off_chip = path_table(problem.accelerator), problem.accelerator.offchip_core_id
    entries = problem.mapping.entries
    choice_of: dict[int, tuple[int, ...]] = {}
    for node in problem.workload.nodes:
        if node.layer is not None:
            entry = problem.mapping.constraints_for(node.layer)
            choice_of[node.node_id] = core_choice(node, entry, problem.accelerator).core_ids
    node_of = {node.node_id: node for node in problem.workload.nodes}
    for producer, consumer in layer_pairs(problem.workload):
        senders, receivers = choice_of[producer], choice_of[consumer]
        if not senders or not receivers or _can_exchange(table, off_chip, senders, receivers):
            continue
        layer = node_of[consumer].layer
        assert layer is not None
        index = entries.index(problem.mapping.constraints_for(layer))
        message = (
            f"no data can get from {node_of[producer].name} on core {_listed(senders)}"
            f" to {node_of[consumer].name} on core {_listed(receivers)}"
        )
        allowed = "cores with a path between them, or with paths to and from the off-chip core"
        problems.at((index, "core_allocation"), message, allowed=allowed)


def layer_pairs(workload: Workload) -> list[tuple[int, int]]:
    """Pairs (node id of the producer, node id of the consumer) of layers between which data flow, directly or through
    nodes that are not layers.
    """
    pairs: dict[tuple[int, int], None] = {}
    behind: dict[int, tuple[int, ...]] = {}
    for node in workload.nodes:
        found = dict.fromkeys(
            layer for source in dict.fromkeys(source for _, source in node.sources) for layer in behind.get(source, ())
        )
        if node.layer is not None:
            pairs.update(dict.fromkeys((producer, node.node_id) for producer in found))
        behind[node.node_id] = _seen_from_behind(node, tuple(found))
    return list(pairs)


def _seen_from_behind(node: WorkloadNode, sources: tuple[int, ...]) -> tuple[int, ...]:
    return (node.node_id,) if node.layer is not None else sources


def _can_exchange(table: PathTable, off_chip: int | None, senders: Sequence[int], receivers: Sequence[int]) -> bool:
    def joined(sender: int, receiver: int) -> bool:
        if table.has_path(sender, receiver):
            return True
        return off_chip is not None and table.has_path(sender, off_chip) and table.has_path(off_chip, receiver)

    return any(joined(sender, receiver) for sender in senders for receiver in receivers)


def _listed(core_ids: Sequence[int]) -> str:
    return ", ".join(map(str, core_ids))


def check_cutting(
    problems: Problems,
    workload: Workload,
    mapping: Mapping | None,
    accelerator: MultiCoreAccelerator | None,
    options: TilingOptions | None,
) -> Tiling | None:
    """Tiling of the network. All errors in tiles and stacks are added to `problems`. None if the cutoffs, the stacks or
    the lists of fixed cores have errors, or if the tiling cannot be computed.

    `mapping`, `accelerator` or `options` is None if this input has errors of its own. Checks that need the input are
    then left out, and the result is None.
    """
    if options is None:
        return None
    if options.cn_define_mode is not None:
        check_hint_loops(problems, workload, options)
    elif mapping is not None:
        mapping = check_tiles(problems, workload, mapping)
    if mapping is not None:
        _note_overruled_groups(problems, mapping, options)
    before = len(problems.found)
    check_cutoffs(problems, workload, options)
    if mapping is None or accelerator is None:
        if options.cn_define_mode is not None:
            problems.found += hint_loop_problems(options.hints(), [node for node in workload.nodes if node.layer])
        problems.attempt(layer_stacks, workload, options.mode, options.layer_stacks, options.stack_cutoffs)
        return None
    tiling = _tiling(problems, workload, mapping, accelerator, options)
    if options.cn_define_mode is not None:
        _note_tilings_of_no_effect(problems, mapping)
        if tiling is not None:
            _check_fixed_lists(problems, workload, mapping, options, tiling)
    if tiling is not None:
        note_interleaved_stacks(problems, workload, tiling)
    return tiling if len(problems.found) == before else None


def check_cutoffs(problems: Problems, workload: Workload, options: TilingOptions) -> None:
    """Report an error for each number in `layer_cutoffs` or `stack_cutoffs` that is larger than the id of the last
    layer. Without this check, such a cutoff would silently have no effect.
    """
    last = max((node.network_id for node in workload.nodes if node.layer is not None), default=None)
    if last is None:
        return
    for name in ("layer_cutoffs", "stack_cutoffs"):
        for place, cutoff in enumerate(getattr(options, name)):
            if cutoff > last:
                path, allowed = f"{name}[{place}]", f"0 to {last}, the last layer of {workload.name}"
                problems.found.append(Problem("no layer has this id", "", 0, path, str(cutoff), allowed))


def note_interleaved_stacks(problems: Problems, workload: Workload, tiling: Tiling) -> None:
    """Add a notice if stacks cannot run one after another because they wait for each other: each of these stacks has a
    layer that reads results of another of these stacks.
    """
    stack_of = {node_id: place for place, stack in enumerate(tiling.stacks) for node_id in stack}
    before: dict[int, set[int]] = {place: set() for place in range(len(tiling.stacks))}
    for producer, consumer in layer_pairs(workload):
        if stack_of[producer] != stack_of[consumer]:
            before[stack_of[consumer]].add(stack_of[producer])
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        stacks = [str(list(tiling.stacks[place])) for place in sorted(set(error.args[1]))]
        problems.notices.append(
            f"with the option layer_stacks, {' and '.join(stacks)} cannot run one after another,"
            " because each of these stacks waits for results of another of them"
        )


def _note_overruled_groups(problems: Problems, mapping: Mapping, options: TilingOptions) -> None:
    """Add a notice if an option gives the stacks although the mapping file has fused groups."""
    if not mapping.stacks or options.takes_stacks_of(mapping):
        return
    cutoffs_or_mode = "stack_cutoffs" if options.stack_cutoffs else f"mode: {options.mode}"
    name = "layer_stacks" if options.layer_stacks is not None else cutoffs_or_mode
    problems.notice(("fused_groups",), f"the groups give only the tiles, because {name} decides the stacks")


def _note_tilings_of_no_effect(problems: Problems, mapping: Mapping) -> None:
    for index, entry in enumerate(mapping.entries):
        for key in ("intra_core_tiling", "inter_core_tiling"):
            if getattr(entry, key) and entry.name not in mapping.cut_entries:
                problems.unused((index, key), "has no effect, because the option cn_define_mode is given")


def _tiling(
    problems: Problems,
    workload: Workload,
    mapping: Mapping,
    accelerator: MultiCoreAccelerator,
    options: TilingOptions,
) -> Tiling | None:
    """Tiling of the network; None if it cannot be computed. All errors are added to `problems`. If the computation
    fails and the options define stacks, the tiling is computed again without the options for stacks.
    """
    parts = (workload, mapping, accelerator)
    try:
        return network_tiling(*parts, options)
    except InputError as error:
        _record(problems, mapping, error)
    if options.layer_stacks is not None or options.stack_cutoffs:
        try:
            return network_tiling(*parts, replace(options, layer_stacks=None, stack_cutoffs=()))
        except InputError as error:
            _record(problems, mapping, error)
    return None


def _record(problems: Problems, mapping: Mapping, error: InputError) -> None:
    """Add all problems of an InputError to `problems`. If the path of a problem is the name of a mapping entry, it is
    replaced by the path of `core_allocation` in this entry.
    """
    index_of = {entry.name: index for index, entry in enumerate(mapping.entries)}
    for one in error.problems:
        if one.path in index_of:
            path = (index_of[one.path], "core_allocation")
            problems.at(path, one.message, one.value or None, one.allowed, one.nearest)
        else:
            problems.found.append(one)


def _check_fixed_lists(
    problems: Problems, workload: Workload, mapping: Mapping, options: TilingOptions, tiling: Tiling
) -> None:
    """Report an error for each layer whose list of fixed cores has a wrong length. A list must have one core for each
    group of the layer (CNs that must run on the same core), or one core for all groups.

    With `mode: lbl`, a layer with a single group gives a notice instead of an error: the layer runs on one of the
    listed cores.
    """
    for node in workload.nodes:
        if node.layer is None:
            continue
        entry = mapping.constraints_for(node.layer)
        groups = tiling.of_node[node.node_id].group_count
        message = fixed_cores_mismatch(node, entry, groups)
        if not message:
            continue
        path = (mapping.entries.index(entry), "core_allocation")
        if options.mode == LAYER_BY_LAYER and groups == 1:
            problems.notice(path, "layers with a single group run on one of the listed cores, not on all of them")
        else:
            listed = str(list(entry.core_allocation))
            problems.at(path, message, listed, "one core for each group, or one for all")
