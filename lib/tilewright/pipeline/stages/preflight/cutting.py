"""Preflight of tiles and stacks, and of the data exchange between the cores of layers.

Tiles, stacks and the ends of stacks come from a mapping file or from options. If an entry asks for more tiles than the
dimension of a layer has indices, each tile has size one. This is useful in an entry for many layers. If the number of
tiles is too large for every layer of the entry, this is an error.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from tilewright.base.errors import InputError, KeyPath, Problem, Problems
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.hardware.system_paths import PathTable, path_table
from tilewright.hardware.yaml_checks import is_usual_loop
from tilewright.mapping.constraints import Mapping, MappingConstraints, TilingEntry
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import ALL_TILES
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


def check_tiles(problems: Problems, workload: Workload, mapping: Mapping) -> None:
    """Record an error for each number of tiles that is larger than the dimension in every layer of the entry, and for
    each dimension that no layer of the entry has.

    A missing dimension is an error only if the entry has the name of a layer and no other layer of the network has the
    dimension. Otherwise the missing dimension is noted as input without effect, as in Stream.
    """
    layers = layers_of_entries(workload, mapping)
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


def _tell_missing_dimension(
    problems: Problems,
    path: KeyPath,
    entry: MappingConstraints,
    nodes: Sequence[WorkloadNode],
    loop: TilingEntry,
    workload: Workload,
) -> None:
    message = f"no layer that this entry is for has {loop.dimension}"
    layers = [node.layer for node in nodes if node.layer is not None]
    is_elsewhere = any(loop.dimension in size_of for size_of in _sizes_of(workload.layers_in_order))
    if any(layer.name == entry.name for layer in layers) and not is_elsewhere:
        known = dict.fromkeys(name for layer in layers for name in dimension_names(layer, entry))
        problems.at(path, message, f"{loop.dimension}, {loop.tiles}", ", ".join(known))
    else:
        problems.unused(path, message)


def check_hint_loops(problems: Problems, workload: Workload, options: TilingOptions) -> None:
    """Record an error for each hint loop that is larger than the dimension in every layer to which the loop applies."""
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
    """Triples (path of the hint loops in the options, hint loops, nodes of the layers to which they apply)."""
    loops = hints.hint_loops
    if hints.cn_define_mode != BY_LAYER:
        yield "hint_loops", hints_for(nodes[0], hints) if nodes else (), nodes
    elif isinstance(loops, Table):
        for ids, found in loops.items():
            yield f"hint_loops[{ids}]", found, [node for node in nodes if node.node_id in ids]
    else:
        for place, listed in enumerate(loops):
            members = [node for node in nodes if sum(cut <= node.node_id for cut in hints.layer_cutoffs) == place]
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
    return f"more tiles than {dimension} has indices in any of the {len(sizes)} layers"


def check_exchange(problems: Problems, problem: SystemProblem) -> None:
    """Record an error for each pair of layers that exchange data, if no core of the first layer can send data to a core
    of the second layer, neither over links nor through the off-chip memory.

    If at least one pair of cores can exchange data, there is no error, because the search for an allocation finds these
    cores.
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
    """Pairs (node id of the producer, node id of the consumer) of layers between which data flow. The data can flow
    through nodes without a layer.
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
    """Tiling of the network; None if tiles or stacks have errors, which are recorded.

    `mapping`, `accelerator` or `options` is None if it has errors. The checks that need this input are then left out.
    """
    if options is None:
        return None
    if options.cn_define_mode is not None:
        check_hint_loops(problems, workload, options)
    elif mapping is not None:
        check_tiles(problems, workload, mapping)
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
    """Record an error for each stack cutoff after the last layer. Without this check, such a cutoff would silently cut
    nothing.
    """
    ids = [node.node_id for node in workload.nodes if node.layer is not None]
    if not ids:
        return
    for name in ("layer_cutoffs", "stack_cutoffs"):
        for place, cutoff in enumerate(getattr(options, name)):
            if cutoff > ids[-1]:
                path, allowed = f"{name}[{place}]", f"0 to {ids[-1]}, the last layer of {workload.name}"
                problems.found.append(Problem("no layer has this id", "", 0, path, str(cutoff), allowed))


def note_interleaved_stacks(problems: Problems, workload: Workload, tiling: Tiling) -> None:
    """Add a notice on stacks that cannot run one after another, because each of them has a layer that reads results of
    another of these stacks.
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
            f"layer_stacks: {' and '.join(stacks)} cannot run one after another,"
            " because each of these stacks waits for results of another of them"
        )


def _note_tilings_of_no_effect(problems: Problems, mapping: Mapping) -> None:
    for index, entry in enumerate(mapping.entries):
        for key in ("intra_core_tiling", "inter_core_tiling"):
            if getattr(entry, key):
                problems.unused((index, key), "has no effect, because cn_define_mode is given")


def _tiling(
    problems: Problems,
    workload: Workload,
    mapping: Mapping,
    accelerator: MultiCoreAccelerator,
    options: TilingOptions,
) -> Tiling | None:
    """Tiling of the network; None if it cannot be made. All errors are recorded. If only the stacks are wrong, the
    tiling has default stacks.
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
    """Record all problems of an InputError. If a problem is about an entry of the mapping file, the path of the entry
    is added to the problem.
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
    """Record an error for each list of fixed cores with a wrong length. A list must have one core for each group of a
    layer, or one core for all groups.

    With `mode: lbl`, a layer has only one group, even if the mapping file splits the layer. In this case, a list with
    several cores is not an error: it lists the allowed cores.
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
            problems.notice(path, "for layers with a single group, the listed cores are only the allowed cores")
        else:
            listed = str(list(entry.core_allocation))
            problems.at(path, message, listed, "one core for each group, or one for all")
