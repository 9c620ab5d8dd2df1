"""Cores of blocks: allocations of the blocks of layers to some of the cores, in turn, in runs, or as a grid."""

import itertools
import math
from collections.abc import Iterator, Sequence

from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.plans.blocks import MOST_BLOCKS_A_CORE, core_counts
from tilewright.plans.cores import PartCores
from tilewright.plans.plan import Plan

Shape = tuple[int, ...]
"""Numbers of parts along the loops over the parts of a layer, innermost first."""


def block_shapes(plan: Plan, space: AllocationSpace) -> dict[int, Shape]:
    """Shape of the parts of each layer, by position of the layer. A layer has one dimension of parts if the numbers of
    its loops do not give the number of its parts, for example because the mapping file has a loop without a number.
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
    """Allocations of the layers in `shapes` to the same number of cores, for several numbers of cores.

    A layer runs on its fastest cores. The numbers are the smallest with which a core runs at most 1, 2, ... blocks of
    some layer; with `every_count`, they are all numbers between. Other layers keep their cores in `start`; without
    `start`, they run on the first core that is allowed.
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
    """Cores that are allowed for the first of some parts, the fastest first."""
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


def arrangements(shape: Shape, cores: int) -> list[tuple[int, ...]]:
    """Arrangements of the parts of a layer on numbered cores. An arrangement has the core of each part, in the order of
    the parts (the innermost loop counts fastest).

    Parts go to the cores in turn, or consecutive parts go to the same core; for both, parts are counted along the
    innermost or along the outermost loop. If several loops cut the layer, the cores also form grids, each core of which
    runs a rectangle of neighbouring parts.
    """
    parts = math.prod(shape)
    places = [tuple(reversed(place)) for place in itertools.product(*map(range, reversed(shape)))]
    orders: list[list[int]] = [list(range(parts))]
    if len(shape) > 1:
        by_outermost = sorted(range(parts), key=lambda part: places[part])
        orders.append([0] * parts)
        for number, part in enumerate(by_outermost):
            orders[1][part] = number
    found = [tuple(number % cores for number in order) for order in orders]
    found += [tuple(number * cores // parts for number in order) for order in orders]
    for sides in _grids(shape, cores):
        strides = [math.prod(sides[:axis]) for axis in range(len(sides))]
        found.append(
            tuple(
                sum(at * side // of * stride for at, side, of, stride in zip(place, sides, shape, strides, strict=True))
                for place in places
            )
        )
    return list(dict.fromkeys(found))


def _grids(shape: Shape, cores: int) -> list[Shape]:
    """Sides of grids of exactly this number of cores, if each core of the grid gets a part, and none gets more parts
    than it would in turn.
    """
    if len(shape) < 2:
        return []
    sides = (tuple(one for one in range(1, min(size, cores) + 1) if cores % one == 0) for size in shape)
    most = math.ceil(math.prod(shape) / cores)
    return [
        grid
        for grid in itertools.product(*sides)
        if math.prod(grid) == cores
        and math.prod(math.ceil(size / side) for size, side in zip(shape, grid, strict=True)) <= most
    ]
