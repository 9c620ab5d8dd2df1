"""Kernels that compute the elements of an operand for given loop sizes, and that split the loops of sliding windows.

As in zigzag-dse 3.9.1, a loop of a sliding window is split into a relevant factor and an irrelevant factor.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.problem import IRRELEVANT, PARTIAL, RELEVANT

EXACT_WINDOWS = SWITCHES.index("exact_window_sizes")
WHOLE_TILES = SWITCHES.index("whole_tiles")
NOISE = 1e-12
"""Relative tolerance. A product of floating-point factors counts as an integer if it is this close to the integer."""


@kernel
def rounded_up(value):
    """Integer that is equal to `value` up to rounding errors. If there is no such integer, the next larger integer."""
    return math.ceil(value * (1 - NOISE))


@kernel
def rounded_down(value):
    """Integer that is equal to `value` up to rounding errors. If there is no such integer, the next smaller integer.
    The result is at least 1.
    """
    return max(1, math.floor(value * (1 + NOISE)))


@kernel
def window_positions(problem, r, first, second):
    """Number of distinct positions that the sliding window of relation `r` touches, at most the size of its dimension.

    `first` and `second` are the tile sizes in the two loops of the window. Fractional sizes are truncated to integers,
    as in the reference. With the switch `exact_window_sizes` or `whole_tiles`, fractional sizes are rounded up.
    """
    exact = problem.switches[EXACT_WINDOWS]
    up = exact or problem.switches[WHOLE_TILES]
    a = np.int64(math.ceil(first - 1e-9)) if up else np.int64(first)
    b = np.int64(math.ceil(second - 1e-9)) if up else np.int64(second)
    outer = b - problem.relation_period[r, 0]
    inner = a - problem.relation_period[r, 1]
    if exact:
        inner = max(0, inner)
    return min(problem.relation_size[r], a * b - max(0, outer) * inner)


@kernel
def tile_elements_of(problem, ws, o, row):
    """Number of elements of operand `o` in a tile with the loop sizes in row `row` of `ws.dimension_size`.

    The number is fractional if the lanes do not divide a dimension. If the switch `whole_tiles` is on, the size of each
    dimension is rounded up.
    """
    elements = 1.0
    whole = problem.switches[WHOLE_TILES] and problem.spatial_fractional
    i = 0
    while problem.relevant_dimensions[o, i] >= 0:
        size = ws.dimension_size[row, problem.relevant_dimensions[o, i]]
        elements *= rounded_up(size) if whole else size
        i += 1
    return multiply_positions(problem, ws, o, row, elements)


@kernel
def multiply_positions(problem, ws, o, row, elements):
    """Product of `elements` and the number of window positions of operand `o` in a tile with the loop sizes in row
    `row` of `ws.dimension_size`."""
    if problem.windows_share_loops[o]:
        return elements * joint_positions(problem, ws, o, row)
    for r in range(problem.relation_count):
        if problem.relation_used[o, r]:
            d1 = problem.relation_dimension[r, 0]
            d2 = problem.relation_dimension[r, 1]
            first = ws.dimension_size[row, d1] if d1 >= 0 else 1.0
            second = ws.dimension_size[row, d2] if d2 >= 0 else 1.0
            elements *= window_positions(problem, r, first, second)
    return elements


@kernel
def joint_positions(problem, ws, o, row):
    """Number of distinct positions that the windows of operand `o` touch together, for the tile sizes in row `row` of
    `ws.dimension_size`. The function is for operands with windows that share loops.

    Windows that share loops, directly or through other windows, form a group. Two iterations of a group that touch the
    same position differ by a multiple of the vector `group_step`. A position is counted only once, at the first
    iteration of the tile that touches the position. The iteration one `group_step` before this first iteration is
    outside the tile. The number for a group is at most the number of its positions in the whole layer. The result is
    the product over all groups.
    """
    positions = 1.0
    for group in range(problem.relation_count):
        if problem.group_positions[o, group] == 0:
            continue
        touched = 1.0
        again = 1.0
        for d in range(problem.dimension_count):
            if problem.dimension_group[o, d] == group:
                size = math.ceil(ws.dimension_size[row, d] - 1e-9)
                touched *= size
                again *= max(0, size - abs(problem.group_step[o, d]))
        positions *= min(float(problem.group_positions[o, group]), touched - again)
    return positions


@kernel
def start_windows(problem, ws):
    """Reset the sizes of all windows to 1, before the loops of an operand are multiplied into the windows."""
    for r in range(problem.relation_count):
        for i in range(2):
            ws.window_size[r, i] = 1.0
            ws.window_before[r, i] = 1.0


@kernel
def widen_window(problem, ws, o, r, d, size):
    """Multiply the size of a loop over dimension `d` into the sizes of window `r` of operand `o`.

    Returns the number of distinct positions of the enlarged window. Returns 0 if the operand does not use the window,
    or if `d` is not a dimension of the window.
    """
    if not problem.relation_used[o, r]:
        return 0.0
    if problem.relation_dimension[r, 0] == d:
        ws.window_size[r, 0] *= size
    elif problem.relation_dimension[r, 1] == d:
        ws.window_size[r, 1] *= size
    else:
        return 0.0
    return float(window_positions(problem, r, ws.window_size[r, 0], ws.window_size[r, 1]))


@kernel
def multiply_relevant(problem, ws, o, d, size, relevant):
    """Product of `relevant` and the size of a loop over dimension `d`. An irrelevant loop counts as 1, and a window
    loop counts with its relevant factor."""
    kind = problem.kind[o, d]
    if kind == RELEVANT:
        return relevant * size
    if kind == PARTIAL:
        for r in range(problem.relation_count):
            positions = widen_window(problem, ws, o, r, d, size)
            if positions != 0.0:
                relevant *= positions / ws.window_before[r, 0]
                ws.window_before[r, 0] = positions
    return relevant


@kernel
def multiply_loop(problem, ws, o, d, size, relevant, irrelevant):
    """Multiply the size of one loop over dimension `d` into the product `relevant` of the relevant loops and the
    product `irrelevant` of the irrelevant loops.

    A window loop is split into a relevant and an irrelevant factor. Returns a triple: both products, and True if the
    loop has an irrelevant factor larger than 1.
    """
    kind = problem.kind[o, d]
    if kind == RELEVANT:
        return relevant * size, irrelevant, False
    if kind == IRRELEVANT:
        return relevant, irrelevant * size, size > 1.0
    met = False
    if kind == PARTIAL:
        for r in range(problem.relation_count):
            positions = widen_window(problem, ws, o, r, d, size)
            if positions == 0.0:
                continue
            reuse = ws.window_size[r, 0] * ws.window_size[r, 1] / positions
            reuse_loop = reuse / ws.window_before[r, 1]
            relevant *= positions / ws.window_before[r, 0]
            irrelevant *= reuse_loop
            met = met or reuse_loop > 1.0
            ws.window_before[r, 0] = positions
            ws.window_before[r, 1] = reuse
    return relevant, irrelevant, met
