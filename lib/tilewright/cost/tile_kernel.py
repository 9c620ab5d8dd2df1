"""Tile sizes: elements of an operand for given loop sizes, and the split of sliding-window loops (compiled).

As in zigzag-dse 3.9.1, partially relevant loops are decoupled into a relevant and an irrelevant part.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.problem import IRRELEVANT, PARTIAL, RELEVANT

EXACT_WINDOWS = SWITCHES.index("exact_window_sizes")
WHOLE_TILES = SWITCHES.index("whole_tiles")
NOISE = 1e-12
"""Relative tolerance within which a product of floating-point factors counts as a whole number."""


@kernel
def rounded_up(value):
    """The whole number that equals `value` up to rounding errors, else the next one above."""
    return math.ceil(value * (1 - NOISE))


@kernel
def rounded_down(value):
    """The whole number that equals `value` up to rounding errors, else the next one below; at least 1."""
    return max(1, math.floor(value * (1 + NOISE)))


@kernel
def window_positions(problem, r, first, second):
    """Distinct positions that window relation `r` touches for tile sizes (first, second), at most its full size.

    Tile sizes are truncated to integers as in the reference, or rounded up under `exact_window_sizes` and
    `whole_tiles`.
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
    """Elements of operand `o` in a tile with the loop sizes of row `row` of `ws.dimension_size`.

    The number is fractional where lanes do not divide a dimension; under `whole_tiles` each dimension is whole.
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
    """Product of `elements` and the window positions of operand `o` in a tile with the loop sizes of row `row`."""
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
    """Distinct positions in all windows of operand `o` together, where some windows share loops.

    Windows that share loops, directly or through others, form a group. Iterations of a group that touch the same
    position lie one step apart. The distinct positions are therefore the iterations that have no iteration one step
    before them.
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
    """Reset the state of the previous operand's windows."""
    for r in range(problem.relation_count):
        for i in range(2):
            ws.window_size[r, i] = 1.0
            ws.window_before[r, i] = 1.0


@kernel
def widen_window(problem, ws, o, r, d, size):
    """Multiply a loop over `d` into window `r` of operand `o`.

    Returns the distinct positions of the window, or 0 if it has no such loop.
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
    """Multiply one loop into the product of relevant loops, decoupling windows; returns the product."""
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
    """Multiply one loop into the products of relevant and irrelevant loops, decoupling windows.

    Returns the two products, and whether an irrelevant part above 1 was met.
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
