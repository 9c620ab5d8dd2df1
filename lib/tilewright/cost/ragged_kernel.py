"""Transfers over fractions of lanes: how much they move on average over all periods and lanes (compiled).

Where lanes do not divide a dimension, its passes take turns between the whole numbers next to their average: 49
positions in 4 passes are 13, 12, 12, 12. A tile above the lanes so has one of two sizes. Of lanes that have tiles of
their own, the last one of a pass has what is left. Sizes of different dimensions do not depend on each other.
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import multiply_positions, rounded_down, rounded_up
from tilewright.cost.workspace import SLICE_ROW, WIDE


@kernel
def average_parts(problem, ws, o, m, way, precision, narrow):
    """Parts of `narrow` bits in a transfer of a tile whose sizes are fractions, on average."""
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
    """The sizes that tiles have in a dimension, each with its share of all tiles, of which there are as many as passes
    and average lanes say.

    An irrelevant dimension has one, with as many tiles as there are lanes that work at all.
    """
    size = ws.ragged_size[way, o, m, d]
    irrelevant = problem.kind[o, d] == IRRELEVANT
    ws.size_count[d] = 1
    ws.size_kind[d, 0] = size
    ws.size_share[d, 0] = 1.0
    low = rounded_down(size)
    if rounded_up(size) > low:
        if not irrelevant:
            set_size(ws, d, 0, float(low), 1.0 - (size - low))
            set_size(ws, d, 1, low + 1.0, size - low)
            ws.size_count[d] = 2
        return
    size = float(rounded_up(size))
    ws.size_kind[d, 0] = size
    if irrelevant and m == 0 and way == WIDE and o != OUTPUT_INDEX and problem.same_data_is_no_access:
        size *= iterations_in_place(problem, ws, o, d)
    if problem.ragged_level[o, d] <= m or size == 1:
        return
    span = ws.pass_length[o, d]
    low = rounded_down(span)
    more = span - low if rounded_up(span) > low else 0.0
    tiles = span / size
    full = (1.0 - more) * (low // size) + more * ((low + 1) // size)
    rest, other = low % size, (low + 1) % size
    if irrelevant:
        full += (1.0 - more) * (rest > 0) + more * (other > 0)
        ws.size_share[d, 0] = full / tiles
        return
    set_size(ws, d, 0, size, full / tiles)
    set_size(ws, d, 1, float(rest), (1.0 - more) / tiles if rest > 0 else 0.0)
    set_size(ws, d, 2, float(other), more / tiles if other > 0 else 0.0)
    ws.size_count[d] = 3


@kernel
def set_size(ws, d, kind, size, share):
    """Write one size of a dimension."""
    ws.size_kind[d, kind] = size
    ws.size_share[d, kind] = share


@kernel
def iterations_in_place(problem, ws, o, d):
    """Iterations of a dimension during which an input stays at the multipliers."""
    iterations = 1.0
    for i in range(ws.merged[o, 0]):
        if problem.kind[o, ws.loop_dimension[i]] != IRRELEVANT:
            break
        if ws.loop_dimension[i] == d:
            iterations *= ws.loop_size[i]
    return iterations


@kernel
def tile_of_sizes(problem, ws, o):
    """Elements of operand `o` with the whole sizes at hand."""
    elements = 1.0
    i = 0
    while problem.relevant_dimensions[o, i] >= 0:
        elements *= ws.dimension_size[SLICE_ROW, problem.relevant_dimensions[o, i]]
        i += 1
    return multiply_positions(problem, ws, o, SLICE_ROW, elements)
