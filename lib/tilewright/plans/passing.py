"""Plans in which weights pass through all cores in pieces.

Each core runs a part of the rows of every layer. A bus or a link with multicast brings each piece of the weights to all
cores at once. Weights are therefore read only once, even if they do not fit the chip.
"""

from collections.abc import Iterator, Sequence

from tilewright.mapping.runnable import core_choice
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.cores import LayerCores
from tilewright.plans.evaluate import Task
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.space import PlanSpace

PASSING_DEPTHS = (10, 5, 3)
"""Values of `depth` that are tried. A core must have room for `depth` pieces of weights at the same time. If the
pieces are many and small, they arrive earlier and keep a bus busy, but an array reads its inputs again for each piece.
"""


def passing_tasks(problem: SystemProblem, space: PlanSpace) -> Iterator[Task]:
    """Tasks that evaluate plans with passing weights. Each plan is evaluated with up to two allocations: layers without
    weights run on the cores of the layers with weights, or on cores that can run no layer with weights.

    There are no tasks if weights need not pass through the cores (`are_weights_passed`).
    """
    if not are_weights_passed(space):
        return
    for plan in dict.fromkeys(passing_plan(space, depth) for depth in PASSING_DEPTHS):
        for cores in dict.fromkeys(allocations(problem, space, plan)):
            yield Task(plan, cores, as_given=True)


def are_weights_passed(space: PlanSpace) -> bool:
    """True if plans with passing weights are tried. They are not tried in three cases: the run fixes the stacks; for
    each layer, the cores together have room for all weights of this layer; or neither a bus nor a link with multicast
    brings data from the off-chip memory.
    """
    layers = [one for one in space.layers if one.weight_bits and one.machine is not None]
    is_large = any(one.weight_bits > one.cores * one.weight_room_bits for one in layers)
    is_heard = any(one.machine is not None and one.machine.is_heard for one in layers)
    return space.fixed.stacks is None and is_large and is_heard


def passing_plan(space: PlanSpace, depth: int) -> Plan:
    """Plan in which every layer is a separate stack. The weights of a layer are cut into pieces. The pieces are so
    small that a core has room for `depth` of them (`LayerSpace.passing`).

    A layer without weights is cut like an earlier layer: the last one that has weights and the same number of channels.
    Each part of the layer then reads whole parts of the earlier layer.
    """
    tiles: list[LayerTiles] = []
    pieces: dict[int, int] = {}
    for one in space.layers:
        size = one.size(one.channels[0]) if one.channels else 0
        tiles.append(one.passing(depth, 0 if one.weight_bits else pieces.get(size, 1)))
        if one.weight_bits and one.channels:
            counts = {loop.dimension: loop.tiles for loop in tiles[-1].between}
            found = counts.get(one.channels[0], 1)
            pieces[size] = found if isinstance(found, int) else 1
    return space.plan(tiles, range(len(space.layers)))


def allocations(problem: SystemProblem, space: PlanSpace, plan: Plan) -> Iterator[LayerCores]:
    """Cores of the parts, for up to two allocations. Parts along rows are assigned to the cores round-robin. In the
    first allocation, layers without weights run on cores that can run no layer with weights, if there are such cores.
    """
    accelerator = problem.accelerator
    allowed = []
    for one in space.layers:
        ids = core_choice(one.node, problem.mapping.constraints_for(one.layer), accelerator).core_ids
        allowed.append([accelerator.core_ids.index(core_id) for core_id in ids])
    weighted = {core for one, cores in zip(space.layers, allowed, strict=True) if one.weight_bits for core in cores}
    for apart in (True, False):
        chosen = []
        for one, tiles, cores in zip(space.layers, plan.tiles, allowed, strict=True):
            preferred = [core for core in cores if (core in weighted) is not apart] if not one.weight_bits else cores
            chosen.append(_in_turn(tiles, preferred or cores))
        yield tuple(chosen)


def _in_turn(tiles: LayerTiles, cores: Sequence[int]) -> tuple[int, ...]:
    count = 1
    for loop in tiles.between:
        count *= loop.tiles if isinstance(loop.tiles, int) else len(cores)
    return tuple(cores[part % len(cores)] for part in range(count))
