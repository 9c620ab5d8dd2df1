"""Preflight: what is wrong with how a network is cut, by a mapping file or by options: tiles, stacks, their ends."""

from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from tilewright.errors import InputError, Problem, Problems
from tilewright.fusion.hint_loops import hint_loop_problems
from tilewright.fusion.mapped_tiling import fixed_cores_mismatch
from tilewright.fusion.outer_loops import Tiling
from tilewright.fusion.stacks import LAYER_BY_LAYER, layer_stacks
from tilewright.fusion.tiling_options import TilingOptions, network_tiling
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.stages.preflight_exchange import layer_pairs
from tilewright.stages.preflight_tiles import check_hint_loops, check_tiles
from tilewright.workload.graph import Workload


def check_cutting(
    problems: Problems,
    workload: Workload,
    mapping: Mapping | None,
    accelerator: MultiCoreAccelerator | None,
    options: TilingOptions | None,
) -> Tiling | None:
    """Record what is wrong with tiles and stacks; the tiling if there is one.

    A mapping, an accelerator and options that cannot be used themselves are None: what depends on them is left out.
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
    """Record cutoffs behind the last layer: nothing would be cut there, without a word."""
    ids = [node.node_id for node in workload.nodes if node.layer is not None]
    if not ids:
        return
    for name in ("layer_cutoffs", "stack_cutoffs"):
        for place, cutoff in enumerate(getattr(options, name)):
            if cutoff > ids[-1]:
                path, allowed = f"{name}[{place}]", f"0 to {ids[-1]}, the last layer of {workload.name}"
                problems.found.append(Problem("no layer has this id", "", 0, path, str(cutoff), allowed))


def note_interleaved_stacks(problems: Problems, workload: Workload, tiling: Tiling) -> None:
    """Note stacks that cannot run one after the other: a layer of one reads what the other makes, and the reverse."""
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
            f"layer_stacks: {' and '.join(stacks)} wait for each other, so that they cannot run one after the other:"
            " another layer stands between layers of one stack"
        )


def _note_tilings_of_no_effect(problems: Problems, mapping: Mapping) -> None:
    keys = ("intra_core_tiling", "inter_core_tiling")
    named = [key for key in keys if any(getattr(entry, key) for entry in mapping.entries)]
    if named:
        problems.notices.append(f"cn_define_mode is given: {', '.join(named)} of the mapping file play no part")


def _tiling(
    problems: Problems,
    workload: Workload,
    mapping: Mapping,
    accelerator: MultiCoreAccelerator,
    options: TilingOptions,
) -> Tiling | None:
    """The tiling, of which all problems are recorded; where only its stacks are wrong, with other stacks; else None."""
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
    """Record the problems of an error; those of an entry of the mapping file get its place."""
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
    """A list of fixed cores has one for each group of its layers, or one for all of them.

    Of a network cut layer by layer, whatever the mapping file says, the list is a choice: there is only one group.
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
            problems.notice(path, "the fixed cores are a choice for layers of one group")
        else:
            listed = str(list(entry.core_allocation))
            problems.at(path, message, listed, "one core for each group, or one for all")
