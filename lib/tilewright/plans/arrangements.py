"""Arrangements of the parts of a layer on cores: round-robin, consecutive parts together, or as a grid."""

import itertools
import math

Shape = tuple[int, ...]
"""Numbers of parts along each loop over the parts of a layer; the innermost loop comes first."""


def arrangements(shape: Shape, cores: int) -> list[tuple[int, ...]]:
    """Arrangements of the parts of a layer on numbered cores. An arrangement lists the core of each part; the index of
    the innermost loop counts fastest.

    Parts are dealt to the cores round-robin, or consecutive parts share a core. Both arrangements exist for two orders
    of the parts: innermost loop first, and outermost loop first. If several loops cut the layer, the cores also form
    grids. Each core of a grid runs a rectangle of neighbouring parts.
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
    """Numbers of cores along each loop, for grids of exactly this number of cores. Every core of a grid gets a part,
    and no core gets more parts than in a round-robin arrangement.
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
