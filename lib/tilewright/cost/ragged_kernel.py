"""Kernels that compute the average size of a transfer if the number of lanes does not divide a dimension.

A pass is one iteration of the temporal loops. The number of positions in a pass is one of the two integers next to the
average. For example, 49 positions in 4 passes are 13, 12, 12 and 12 positions. A tile therefore has one of two sizes in
this dimension. The sizes in different dimensions are independent. If each lane has its own tile, a lane counts with the
share of passes in which it works.
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import multiply_positions, rounded_down, rounded_up
from tilewright.cost.workspace import SLICE_ROW


@kernel
def average_parts(problem, ws, o, m, way, precision, narrow):
    """Average number of parts of `narrow` bits in a transfer of a tile of operand `o`. The tile belongs to memory level
    `m`. Its kind is `way`: HELD or WIDE. Its sizes can be fractional."""
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
    """List the sizes of tiles in dimension `d`: one or two sizes. The sizes are written to `ws.size_kind`, and the
    share of tiles with each size to `ws.size_share`."""
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
    """Write one of the two sizes of the tiles in dimension `d`, and the share of the tiles that have this size. `kind`
    (0 or 1) is the number of the size.
    """
    ws.size_kind[d, kind] = size
    ws.size_share[d, kind] = share


@kernel
def tile_of_sizes(problem, ws, o):
    """Number of elements of operand `o` in a tile with the sizes in row SLICE_ROW of `ws.dimension_size`."""
    elements = 1.0
    i = 0
    while problem.relevant_dimensions[o, i] >= 0:
        elements *= ws.dimension_size[SLICE_ROW, problem.relevant_dimensions[o, i]]
        i += 1
    return multiply_positions(problem, ws, o, SLICE_ROW, elements)
