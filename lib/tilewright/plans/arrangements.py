"""Arrangements of the parts of a layer on cores: round-robin, in groups of consecutive parts, or as a grid."""

import itertools
import math

Shape = tuple[int, ...]
"""Number of parts of a layer along each loop that divides the layer into parts, innermost loop first."""


def arrangements(shape: Shape, cores: int) -> list[tuple[int, ...]]:
    """Arrangements of the parts of a layer on numbered cores. An arrangement lists the core of each part. The index of
    the innermost loop over parts changes fastest along the list.

    The arrangements are of three kinds:

    * Round-robin: the parts are dealt to the cores one after another.
    * Consecutive: each core gets consecutive parts.
    * Grid, if several loops cut the layer: the cores form a grid, and each core runs a rectangle of neighbouring parts.

    If several loops cut the layer, each of the first two kinds occurs twice, for two orders of the parts. In one order,
    the index of the innermost loop changes fastest. In the other order, the index of the outermost loop changes
    fastest.
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
    """Grids of exactly `cores` cores, as numbers of cores along each loop. Every core of a grid gets a part, and no
    core gets more parts than in a round-robin arrangement.
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
