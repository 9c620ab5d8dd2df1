"""Allocations that spread the blocks of layers over some of the cores: round-robin, in groups of consecutive blocks, or
as a grid.
"""

import math
from collections.abc import Iterator, Sequence

from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.plans.arrangements import Shape, arrangements
from tilewright.plans.blocks import MOST_BLOCKS_A_CORE, core_counts
from tilewright.plans.cores import PartCores
from tilewright.plans.plan import Plan


def block_shapes(plan: Plan, space: AllocationSpace) -> dict[int, Shape]:
    """Shape of each layer, by position of the layer: the number of parts along each loop that is split between cores.
    If these numbers are not known (the mapping file gives a loop without a number), the shape is (number of parts,).
    """
    groups = [0] * len(plan.tiles)
    for layer, group in space.parts:
        groups[layer] = max(groups[layer], group + 1)
    found = {}
    for layer, (tiles, parts) in enumerate(zip(plan.tiles, groups, strict=True)):
        counts = tuple(loop.tiles for loop in tiles.between if isinstance(loop.tiles, int))
        is_known = len(counts) == len(tiles.between) and math.prod(counts) == parts
        found[layer] = counts if is_known and counts else (parts,)
    return found


def block_starts(
    space: AllocationSpace, shapes: dict[int, Shape], every_count: bool, start: PartCores | None = None
) -> Iterator[PartCores]:
    """Allocations that spread the layers in `shapes` over `n` cores, for several values of `n`, the largest value
    first. A layer runs on its `n` fastest cores. If it has fewer than `n` blocks or fewer than `n` allowed cores, it
    runs on fewer cores. For each `n`, there is one allocation for each arrangement of the blocks (`arrangements`). No
    allocation occurs twice.

    The values of `n` come from the layers in `shapes` that have several blocks. Each of these layers gives the
    following values:

    * the largest number of cores that the layer can use;
    * for each k from 1 to MOST_BLOCKS_A_CORE, the smallest number of cores with which no core runs more than k blocks
      of the layer.

    If `every_count` is true, each of these layers instead gives every number of cores with which no core runs more than
    MOST_BLOCKS_A_CORE blocks of the layer.

    Two kinds of parts are not spread: parts of layers outside `shapes`, and parts that are not allowed on their new
    core. A part that is not spread keeps its core in `start`. If `start` is None, it runs on its first allowed core.
    """
    members: dict[int, list[int]] = {layer: [] for layer in shapes}
    for part, (layer, _) in enumerate(space.parts):
        if layer in members:
            members[layer].append(part)
    cores_of = {layer: _by_speed(space, parts) for layer, parts in members.items() if parts}
    before = [choices[0] for choices in space.choices] if start is None else list(start)
    known = set()
    for count in _counts(members, cores_of, every_count):
        for way in range(_most_ways(shapes, count)):
            found = list(before)
            for layer, cores in cores_of.items():
                parts, used = members[layer], min(count, len(cores), len(members[layer]))
                ways = arrangements(shapes[layer], used)
                for part, place in zip(parts, ways[min(way, len(ways) - 1)], strict=True):
                    if cores[place] in space.choices[part]:
                        found[part] = cores[place]
            if (allocation := tuple(found)) not in known:
                known.add(allocation)
                yield allocation


def _by_speed(space: AllocationSpace, parts: Sequence[int]) -> list[int]:
    """Cores that can run the first of `parts`, sorted by the run time of this part, the shortest first."""
    first = parts[0]
    return sorted(space.choices[first], key=lambda core: (int(space.runtime_cycles[first, core]), core))


def _counts(members: dict[int, list[int]], cores_of: dict[int, list[int]], every_count: bool) -> list[int]:
    found: set[int] = set()
    for layer, cores in cores_of.items():
        parts = len(members[layer])
        if every_count:
            found.update(range(math.ceil(parts / MOST_BLOCKS_A_CORE), min(parts, len(cores)) + 1))
        elif parts > 1:
            found.update(core_counts(parts, len(cores)))
            found.add(min(parts, len(cores)))
    return sorted(found, reverse=True)


def _most_ways(shapes: dict[int, Shape], count: int) -> int:
    return max(len(arrangements(shape, min(count, math.prod(shape)))) for shape in shapes.values())
