"""Plans in which weights pass through all cores, and the layers of a stack advance at the same pace.

Layers of equal depth form a stack. Each path that ends at a layer has a number of layers with weights, and this number
includes the layer itself. The depth of the layer is the largest of these numbers. For example, two matrix products of
the same input have equal depths. Elementwise layers that join the results of the products have this depth, too.

Corresponding pieces of the layers of a stack run one after another, so that only few intermediate results exist at the
same time. If the inputs of a layer leave little room for the weights, the pieces of weights are cut into smaller steps
along the reduction.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from tilewright.mapping.constraints import TilingEntry
from tilewright.multicore.nodes.partial_sums import reductions_of, why_not_summed
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.blocks import part_bits, part_counts
from tilewright.plans.evaluate import Task
from tilewright.plans.passing import allocations, are_weights_passed
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.space import LEAST_PASSING, LayerSpace, PlanSpace
from tilewright.workload.relevancy import outputs_have_windows

ADVANCING_DEPTHS = (5, 10)
"""Values of `depth` that are tried. A core must have room for `depth` pieces of weights at the same time."""
PROGRESS = "progress"
"""Rule by which cores choose their next node in the plans of this module (option `scheduler_candidate_selection`)."""


def advancing_tasks(problem: SystemProblem, space: PlanSpace) -> Iterator[Task]:
    """Tasks that evaluate plans whose layers advance together. There are no tasks in two cases: weights need not pass
    through the cores (`are_weights_passed`), or the run fixes a rule of candidate selection other than `progress`.
    """
    if space.fixed.selection not in (None, PROGRESS) or not are_weights_passed(space):
        return
    plans = (advancing_plan(problem, space, width, depth) for width in _widths(space) for depth in ADVANCING_DEPTHS)
    for plan in dict.fromkeys(plans):
        *_, cores = allocations(problem, space, plan)  # pieces that advance together need not move between cores
        yield Task(plan, cores, as_given=True)


def advancing_plan(problem: SystemProblem, space: PlanSpace, width: int, depth: int) -> Plan:
    """Plan in which pieces of weights have `width` channels, and a core has room for `depth` of these pieces."""
    tiles: list[LayerTiles] = []
    pieces: dict[int, int] = {}
    for one in space.layers:
        size = one.size(one.channels[0]) if one.channels else 0
        if one.weight_bits:
            tiles.append(stepped(one, width, depth) or one.passing(depth))
            counts = {loop.dimension: loop.tiles for loop in tiles[-1].between}
            found = counts.get(one.channels[0], 1) if one.channels else 1
            pieces[size] = found if isinstance(found, int) else 1
        else:
            tiles.append(one.passing(depth, pieces.get(size, 1)))
    plan = space.plan(tiles, range(len(space.layers)), PROGRESS)
    return replace(plan, stacks=advancing_stacks(problem, space))


def advancing_stacks(problem: SystemProblem, space: PlanSpace) -> tuple[tuple[int, ...], ...]:
    """Ids of the layers of each stack. Layers of equal depth form a stack. The depth of a layer is the largest number
    of layers with weights on a path from the inputs of the network to this layer, the layer itself included.
    """
    weighted = {one.node.node_id for one in space.layers if one.weight_bits}
    depth: dict[int, int] = {}
    stacks: dict[int, list[int]] = {}
    for node in problem.workload.nodes:
        before = max((depth[source] for _, source in node.sources), default=0)
        depth[node.node_id] = before + (node.node_id in weighted)
        if node.layer is not None:
            stacks.setdefault(depth[node.node_id], []).append(node.node_id)
    return tuple(tuple(stacks[number]) for number in sorted(stacks))


def stepped(one: LayerSpace, width: int, depth: int) -> LayerTiles | None:
    """Tiles of a layer with weights: one part of the rows (or of the batch) for each core, and pieces of `width`
    channels.

    A core must have room for the inputs and outputs of a piece together with `depth` pieces of the weights. If a core
    has too little room, the pieces are cut into steps along the reduction. The number of steps is the smallest
    sufficient number. The result is None in three cases: no number of steps is sufficient, the mapping file fixes parts
    or tiles, or the layer lacks the dimensions for these cuts.
    """
    across = one.rows or one.third
    if one.between is not None or one.within is not None or not across or not one.channels:
        return None
    channel, rooms = one.channels[0], () if one.machine is None else one.machine.rooms
    rows, pieces = min(one.filling, one.size(across)), math.ceil(one.size(channel) / width)
    part = {across: math.ceil(one.size(across) / rows), channel: math.ceil(one.size(channel) / pieces)}
    whole, reduction = part_bits(one.layer, part), step_dimension(one)
    for steps in part_counts(one.size(reduction), one.size(reduction)) if reduction else (1,):
        step = {**part, reduction: math.ceil(one.size(reduction) / steps)} if steps > 1 else part
        bits = part_bits(one.layer, step)
        taken = {name: depth * bits[name] if name in one.layer.constant_operands else of for name, of in whole.items()}
        if all(sum(taken[name] for name in held) <= room for room, held in rooms):
            loops = ((across, rows), (channel, pieces))
            between = tuple(TilingEntry(name, count) for name, count in loops if count > 1)
            return LayerTiles(between, (TilingEntry(reduction, steps),) if steps > 1 else one.rows_within(1))
    return None


def step_dimension(one: LayerSpace) -> str:
    """Dimension along which steps cut a layer: the longest reduction of a sum of products; '' if there is none."""
    if why_not_summed(one.node) or outputs_have_windows(one.layer):
        return ""
    sizes = {name: one.size(name) for name in reductions_of(one.layer) if one.size(name) > 1}
    return max(sizes, key=lambda name: sizes[name], default="")


def stepped_dimensions(space: PlanSpace) -> list[frozenset[str]]:
    """Reductions that the plans of this module can cut into steps, one set for each layer."""
    if not are_weights_passed(space):
        return [frozenset() for _ in space.layers]
    return [frozenset((step_dimension(one),)) - {""} if one.weight_bits else frozenset[str]() for one in space.layers]


def _widths(space: PlanSpace) -> list[int]:
    """Numbers of channels that are tried for a piece: the number of channels that fill an array, half of this number,
    and LEAST_PASSING. Numbers below LEAST_PASSING are replaced by LEAST_PASSING. Half is a compromise: wide pieces use
    the array better, but a core has room for fewer wide pieces.
    """
    unit = max((unit for one in space.layers if one.weight_bits for unit in one.units), default=1)
    return list(dict.fromkeys(max(LEAST_PASSING, width) for width in (unit // 2, unit, LEAST_PASSING)))
