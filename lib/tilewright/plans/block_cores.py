"""Allocations of the blocks of layers to some of the cores: round-robin, consecutive blocks together, or as a grid."""

import math
from collections.abc import Iterator, Sequence

from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.plans.arrangements import Shape, arrangements
from tilewright.plans.blocks import MOST_BLOCKS_A_CORE, core_counts
from tilewright.plans.cores import PartCores
from tilewright.plans.plan import Plan


def block_shapes(plan: Plan, space: AllocationSpace) -> dict[int, Shape]:
    """Numbers of parts along the loops of each layer, by position of the layer.

    A layer gets a shape with one dimension if its loops do not determine the number of its parts. An example is a loop
    without a number in the mapping file.
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
    """Allocations in which the layers in `shapes` run on the same number of cores, for several numbers of cores.

    A layer runs on its fastest cores. Each number of cores is the smallest with which a core runs at most 1, 2, ...
    blocks of some layer. With `every_count`, all numbers between the smallest and the largest are used. Other layers
    keep their cores in `start`, or run on their first allowed core if `start` is None.
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
    """Cores that are allowed for the first of these parts, ordered by their runtime for this part."""
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
