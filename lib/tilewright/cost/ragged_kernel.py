"""Average size of transfers of tiles over fractions of lanes (compiled).

If the lanes do not divide a dimension, the size of a pass alternates between the two whole numbers next to the average:
49 positions in 4 passes are 13, 12, 12, 12. A tile of these lanes thus has one of two sizes. Sizes of different
dimensions are independent. Lanes that have tiles of their own count by the passes in which they work.
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import multiply_positions, rounded_down, rounded_up
from tilewright.cost.workspace import SLICE_ROW


@kernel
def average_parts(problem, ws, o, m, way, precision, narrow):
    """Average number of parts of `narrow` bits in a transfer of a tile that has fractional sizes."""
    choices = 1
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = ws.ragged_size[way, o, m, d]
    for i in range(problem.ragged_count):
        d = problem.ragged_dimension[i]
        list_sizes(problem, ws, o, m, way, d)
        choices *= ws.size_count[d]
    average = 0.0
    for choice in range(choices):
        share = 1.0
        left = choice
        for i in range(problem.ragged_count):
            d = problem.ragged_dimension[i]
            kind = left % ws.size_count[d]
            left //= ws.size_count[d]
            share *= ws.size_share[d, kind]
            ws.dimension_size[SLICE_ROW, d] = ws.size_kind[d, kind]
        if share > 0:
            average += share * math.ceil(tile_of_sizes(problem, ws, o) * precision / narrow)
    return average


@kernel
def list_sizes(problem, ws, o, m, way, d):
    """List the sizes that tiles have in a dimension, each with its share of all tiles."""
    size = ws.ragged_size[way, o, m, d]
    low = rounded_down(size)
    ws.size_count[d] = 1
    set_size(ws, d, 0, size, 1.0)
    if rounded_up(size) > low and problem.kind[o, d] != IRRELEVANT:
        set_size(ws, d, 0, float(low), 1.0 - (size - low))
        set_size(ws, d, 1, low + 1.0, size - low)
        ws.size_count[d] = 2
    elif rounded_up(size) == low:
        set_size(ws, d, 0, float(low), 1.0)


@kernel
def set_size(ws, d, kind, size, share):
    """Write one size of a dimension."""
    ws.size_kind[d, kind] = size
    ws.size_share[d, kind] = share


@kernel
def tile_of_sizes(problem, ws, o):
    """Elements of operand `o` in a tile of the whole sizes that are set."""
    elements = 1.0
    i = 0
    while problem.relevant_dimensions[o, i] >= 0:
        elements *= ws.dimension_size[SLICE_ROW, problem.relevant_dimensions[o, i]]
        i += 1
    return multiply_positions(problem, ws, o, SLICE_ROW, elements)
