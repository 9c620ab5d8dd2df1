"""Preflight: where layer stacks and lists of hint loops end, and whether stacks can run one after the other."""

from graphlib import CycleError, TopologicalSorter

from tilewright.errors import Problem, Problems
from tilewright.fusion.outer_loops import Tiling
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.stages.preflight_exchange import layer_pairs
from tilewright.workload.graph import Workload


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
