"""Kernels for memory allocation: the choice of the loops of a loop order that each operand keeps in each memory.

As in the memory allocator of zigzag-dse 3.9.1, memories are allocated one after another, from the array outwards. For
each memory, the allocator chooses the split of loops that moves the fewest bits over the boundary above the memory.

A *slice* of an operand is a tile that a memory could hold: slice n has all loops of the lower memories and the next n
loops. While a memory is allocated, the slices of its operands are in the last rows of `ws.slice_bits` and
`ws.slice_cost`.
"""

import math

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.control_kernel import check_control
from tilewright.cost.problem import IRRELEVANT, MAX_OPERANDS, PARTIAL, RELEVANT
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import (
    FITS,
    LOOPS_LEFT,
    NOT_EVEN,
    NOT_NESTED,
    SLICE_ROW,
    TOO_SMALL,
    TOO_SMALL_TOGETHER,
)

OUTPUT_INDEX = 0
ROOM_FOR_FINAL = SWITCHES.index("room_for_final_outputs")


@kernel
def allocate(problem, ws):
    """Allocate the loops of a loop order to memories and write `ws.bound`.

    Returns an outcome. If the loops do not fit, `ws.failure` has the memory, operand and level concerned.
    """
    start_tiles(problem, ws)
    for i in range(problem.held_memory_count):
        outcome = allocate_memory(problem, ws, problem.memory_order[i])
        if outcome != FITS:
            return outcome
    return check_control(problem, ws) if problem.has_control else FITS


@kernel
def start_tiles(problem, ws):
    """Set the current tile of each operand to the tile of the array: the data of one cycle, given by the spatial
    loops of the array."""
    for o in range(problem.operand_count):
        for d in range(problem.dimension_count):
            ws.dimension_size[o, d] = 1.0
        multiply_spatial_level(problem, ws, o, 0)


@kernel
def copy_tile(problem, ws, o):
    """Copy the current tile of operand `o` to the temporary row SLICE_ROW, in which candidate slices are computed."""
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = ws.dimension_size[o, d]


@kernel
def multiply_spatial_level(problem, ws, o, a):
    """Multiply the sizes of the current tile of operand `o` by the spatial factors of architecture level `a`. Level 0
    is the array; level m + 1 is memory level m. The factors are not rounded, and can be fractional."""
    for s in range(problem.spatial_start[o, a], problem.spatial_start[o, a + 1]):
        ws.dimension_size[o, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]


@kernel
def fail(ws, outcome, k, o, m, needed, limit):
    """Write to `ws.failure` and `ws.failure_bits` why a loop order does not fit: memory `k`, operand `o`, level `m`,
    needed bits and available bits. Returns `outcome`."""
    ws.failure[0] = k
    ws.failure[1] = o
    ws.failure[2] = m
    ws.failure_bits[0] = needed
    ws.failure_bits[1] = limit
    return outcome


@kernel
def storage_precision(problem, ws, o, m, first):
    """Bits per element of operand `o` at memory level `m`, if the loops from position `first` on are not allocated yet.

    An output has the precision of a partial sum if a further loop still adds to the output. A further loop is a loop
    that is not allocated yet, or a spatial loop above the memory.
    """
    if o != OUTPUT_INDEX:
        return problem.precision_bits[o]
    if problem.partial_above[o, m + 1]:
        return problem.precision_bits[o]
    for i in range(first, ws.loop_count):
        kind = problem.kind[o, ws.loop_dimension[i]]
        if kind == IRRELEVANT or (kind == PARTIAL and problem.switches[ROOM_FOR_FINAL]):
            return problem.precision_bits[o]
    return problem.final_precision_bits


@kernel
def whole_size(problem, ws, k, row, o, m, first):
    """Number of slices (nested tiles) of operand `o` in its topmost memory `k`; 0 if the whole operand does not fit
    into this memory. Each slice has one loop more than the slice before it, so the last slice is the whole operand.

    Only the size of the last slice is written, to row `row` of `ws.slice_bits`. `m` is the memory level of the operand.
    `first` is the position of the innermost loop that no lower memory keeps.
    """
    precision = storage_precision(problem, ws, o, m, first)
    copy_tile(problem, ws, o)
    for i in range(first, ws.loop_count):
        ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]
    bits = tile_elements_of(problem, ws, o, SLICE_ROW) * precision
    if bits > problem.memory_bits[k]:
        return 0
    ws.slice_bits[row, ws.loop_count - first] = bits
    return ws.loop_count - first + 1


@kernel
def cost_slices(ws, row, first, kept):
    """Write the costs of the first `kept` slices of an operand to row `row` of `ws.slice_cost`. The cost of a slice is
    the number of bits that move over the boundary above the memory: the size of the slice times the product of the
    loops outside it. `first` is the position of the innermost loop that no lower memory keeps.
    """
    remaining = 1.0
    for i in range(ws.loop_count - 1, first + kept - 2, -1):
        remaining *= ws.loop_size[i]
    for i in range(kept - 1, -1, -1):
        ws.slice_cost[row, i] = remaining * ws.slice_bits[row, i]
        if i > 0:
            remaining *= ws.loop_size[first + i - 1]


@kernel
def slice_sizes(problem, ws, k, row, o, m, first):
    """Write the sizes in bits of the slices of operand `o` in memory `k` to row `row` of `ws.slice_bits`. The sizes are
    written up to and including the first slice that does not fit. Slices are nested tiles: each has one loop more than
    the slice before it. In a memory below the topmost memory of the operand, a slice also does not fit if the control
    of the memory cannot run a loop of the slice (`control_kernel`).

    `m` is the memory level of the operand. `first` is the position of the innermost loop that no lower memory keeps.
    Returns the number of slices that fit. If the memory must be double-buffered, a slice that is not the whole operand
    counts twice.
    """
    limit = float(problem.memory_bits[k])
    precision = storage_precision(problem, ws, o, m, first)
    doubled = problem.force_double_buffering[k]
    is_ruled = problem.has_control and m < problem.level_count[o] - 1
    whole = 0.0
    if doubled:
        copy_tile(problem, ws, o)
        for i in range(first, ws.loop_count):
            ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]
        whole = tile_elements_of(problem, ws, o, SLICE_ROW) * precision
    copy_tile(problem, ws, o)
    kept = 0
    elements = tile_elements_of(problem, ws, o, SLICE_ROW)
    for i in range(first, ws.loop_count + 1):
        bits = elements * precision
        if doubled and i < ws.loop_count and bits < whole:
            bits *= 2
        ws.slice_bits[row, i - first] = bits
        if bits > limit:
            break
        kept += 1
        if i == ws.loop_count or (is_ruled and problem.no_tile[o, m, ws.loop_dimension[i]]):
            break
        d = ws.loop_dimension[i]
        ws.dimension_size[SLICE_ROW, d] *= ws.loop_size[i]
        if problem.kind[o, d] == RELEVANT and not problem.spatial_fractional:
            elements *= ws.loop_size[i]  # the factors are integers, so the product does not depend on the order
        elif problem.kind[o, d] != IRRELEVANT:
            elements = tile_elements_of(problem, ws, o, SLICE_ROW)
    return kept


@kernel
def allocate_memory(problem, ws, k):
    """Choose the loops that memory `k` keeps for each of its operands. Returns FITS, or an outcome with the reason why
    the loops do not fit."""
    held = held_operands(problem, k)
    if problem.holds_everything[k]:
        for j in range(held):
            ws.bound[problem.memory_operands[k, j], problem.memory_levels[k, j]] = ws.loop_count
        return FITS
    for j in range(held):
        if not list_slices(problem, ws, k, j, MAX_OPERANDS - held + j):
            o = problem.memory_operands[k, j]
            m = problem.memory_levels[k, j]
            needed = ws.slice_bits[MAX_OPERANDS - held + j, 0]
            return fail(ws, TOO_SMALL, k, o, m, needed, float(problem.memory_bits[k]))
    needed = choose_slices(problem, ws, k, held)
    if needed > problem.memory_bits[k]:
        o = problem.memory_operands[k, 0]
        m = problem.memory_levels[k, 0]
        return fail(ws, TOO_SMALL_TOGETHER, k, o, m, needed, float(problem.memory_bits[k]))
    for j in range(held):
        if not place_slice(problem, ws, k, j, MAX_OPERANDS - held + j):
            return LOOPS_LEFT
    return FITS


@kernel
def held_operands(problem, k):
    """Number of the layer's operands that memory `k` holds."""
    held = 0
    while held < problem.operand_count and problem.memory_operands[k, held] >= 0:
        held += 1
    return held


@kernel
def first_loop(problem, ws, k, j):
    """Position of the innermost loop that operand number `j` of memory `k` does not keep in a lower memory."""
    m = problem.memory_levels[k, j]
    return ws.bound[problem.memory_operands[k, j], m - 1] if m > 0 else 0


@kernel
def list_slices(problem, ws, k, j, row):
    """Write the sizes and costs of the slices of operand number `j` of memory `k` to row `row`. Returns False if no
    slice fits.

    In the topmost memory of an operand, the only candidate is the largest slice that fits.
    """
    o = problem.memory_operands[k, j]
    m = problem.memory_levels[k, j]
    first = first_loop(problem, ws, k, j)
    top = m == problem.level_count[o] - 1
    kept = 0
    if top and not problem.force_double_buffering[k]:
        kept = whole_size(problem, ws, k, row, o, m, first)
    if kept == 0:
        kept = slice_sizes(problem, ws, k, row, o, m, first)
    return offer_slices(ws, row, first, kept, top)


@kernel
def offer_slices(ws, row, first, kept, top):
    """Make slices 0 to `kept` - 1 of row `row` the candidates, and compute their costs. If `top` is true, only slice
    `kept` - 1 is a candidate, and its cost is 0. `first` is the position of the innermost loop that no lower memory
    keeps. Returns False if no slice fits (`kept` is 0).
    """
    if kept == 0:
        return False
    ws.slice_high[row] = kept
    ws.slice_low[row] = 0
    if top:
        ws.slice_low[row] = kept - 1
        ws.slice_cost[row, kept - 1] = 0.0
    else:
        cost_slices(ws, row, first, kept)
    return True


@kernel
def choose_slices(problem, ws, k, held):
    """Set `ws.slice_choice` to the combination of slices that fits memory `k` and has the lowest cost. A combination
    has one slice of each row; a row has the slices of one operand. Rows without an operand get one empty slice.

    Among combinations of equal cost, the last is chosen. If `problem.even` is set, only combinations with even level
    boundaries (`is_even`) can be chosen. If no such combination fits, no operand keeps a loop in the memory. Returns
    the size in bits of the combination with the first candidate of each row.
    """
    for row in range(MAX_OPERANDS - held):
        ws.slice_low[row] = 0
        ws.slice_high[row] = 1
        ws.slice_bits[row, 0] = 0.0
        ws.slice_cost[row, 0] = 0.0
    if problem.force_double_buffering[k] or problem.even or not costs_fall(ws):
        choose_of_all(problem, ws, k, held)
    else:
        choose_largest(problem, ws, k)
    low = ws.slice_low
    return ws.slice_bits[0, low[0]] + ws.slice_bits[1, low[1]] + ws.slice_bits[2, low[2]]


@kernel
def costs_fall(ws):
    """True if, in the last row of `ws.slice_cost`, a larger slice never costs more than a smaller one. A row has the
    slices of one operand.
    """
    fall = True
    for i in range(ws.slice_low[2] + 1, ws.slice_high[2]):
        fall = fall and ws.slice_cost[2, i] <= ws.slice_cost[2, i - 1]
    return fall


@kernel
def choose_of_all(problem, ws, k, held):
    """Try all combinations of slices, and write the cheapest to `ws.slice_choice`. A combination has one slice of each
    row; a row has the slices of one operand. A combination must fit memory `k`. If `problem.even` is set, it must also
    have even level boundaries (`is_even`). `held` is the number of operands in the memory.
    """
    limit = float(problem.memory_bits[k])
    best_cost = math.inf
    best0 = best1 = best2 = 0
    for i0 in range(ws.slice_low[0], ws.slice_high[0]):
        for i1 in range(ws.slice_low[1], ws.slice_high[1]):
            bits = ws.slice_bits[0, i0] + ws.slice_bits[1, i1]
            cost01 = ws.slice_cost[0, i0] + ws.slice_cost[1, i1]
            for i2 in range(ws.slice_low[2], ws.slice_high[2]):
                if bits + ws.slice_bits[2, i2] > limit:
                    if problem.force_double_buffering[k]:
                        continue
                    break  # if slices do not count twice, each slice is at least as large as the slice before it
                cost = cost01 + ws.slice_cost[2, i2]
                if cost <= best_cost and (not problem.even or is_even(problem, ws, k, held, i0, i1, i2)):
                    best_cost = cost
                    best0, best1, best2 = i0, i1, i2
    ws.slice_choice[0], ws.slice_choice[1], ws.slice_choice[2] = best0, best1, best2


@kernel
def choose_largest(problem, ws, k):
    """Write to `ws.slice_choice` the combination of slices that fits memory `k` and has the lowest cost. A combination
    has one slice of each row; a row has the slices of one operand.

    In the last row, a larger slice must never cost more than a smaller one (`costs_fall`). For given slices of the
    other rows, it is then enough to try the largest slice of the last row that fits beside these slices. If a slice of
    another row becomes larger, the largest slice that fits stays the same or becomes smaller.
    """
    limit = float(problem.memory_bits[k])
    best_cost = math.inf
    best0 = best1 = best2 = 0
    for i0 in range(ws.slice_low[0], ws.slice_high[0]):
        i2 = ws.slice_high[2] - 1
        for i1 in range(ws.slice_low[1], ws.slice_high[1]):
            bits = ws.slice_bits[0, i0] + ws.slice_bits[1, i1]
            while i2 >= ws.slice_low[2] and bits + ws.slice_bits[2, i2] > limit:
                i2 -= 1
            if i2 < ws.slice_low[2]:
                break
            cost = ws.slice_cost[0, i0] + ws.slice_cost[1, i1] + ws.slice_cost[2, i2]
            if cost <= best_cost:
                best_cost = cost
                best0, best1, best2 = i0, i1, i2
    ws.slice_choice[0], ws.slice_choice[1], ws.slice_choice[2] = best0, best1, best2


@kernel
def place_slice(problem, ws, k, j, row):
    """Let memory `k` keep the loops of the chosen slice of its operand number `j`, and write this to `ws.bound`. Extend
    the current tile of the operand by these loops, and by the spatial loops above the memory.

    Returns False if `k` is the topmost memory of the operand and does not keep all remaining loops. In this case, the
    reason is written to `ws.failure`, and the tile stays unchanged.
    """
    o = problem.memory_operands[k, j]
    m = problem.memory_levels[k, j]
    first = first_loop(problem, ws, k, j)
    end = first + ws.slice_choice[row]
    ws.bound[o, m] = end
    if m == problem.level_count[o] - 1 and end < ws.loop_count:
        needed = ws.slice_bits[row, ws.slice_choice[row] + 1]
        fail(ws, LOOPS_LEFT, k, o, m, needed, float(problem.memory_bits[k]))
        return False
    for i in range(first, end):
        ws.dimension_size[o, ws.loop_dimension[i]] *= ws.loop_size[i]
    multiply_spatial_level(problem, ws, o, m + 1)
    return True


@kernel
def is_even(problem, ws, k, held, i0, i1, i2):
    """True if the chosen slices make even level boundaries. Boundaries are uneven if one operand keeps a loop in memory
    `k`, and another operand of `k` keeps this loop above `k`. `i0`, `i1` and `i2` are the indices of the chosen slices
    in rows 0, 1 and 2.
    """
    for j in range(held):
        row = MAX_OPERANDS - held + j
        first = first_loop(problem, ws, k, j)
        end = first + (i0 if row == 0 else (i1 if row == 1 else i2))
        for other in range(held):
            row = MAX_OPERANDS - held + other
            other_end = first_loop(problem, ws, k, other) + (i0 if row == 0 else (i1 if row == 1 else i2))
            if other != j and end > first and end > other_end:
                return False
    return True


@kernel
def check_boundaries(problem, ws):
    """Check the level boundaries that the caller wrote to `ws.bound`, and return an outcome.

    The boundaries of an operand must not decrease from level to level, every loop must be in a memory, and each memory
    must be large enough. The sizes of tiles are those of `allocate`, so the check accepts every allocation that
    `allocate` makes.
    """
    start_tiles(problem, ws)
    for o in range(problem.operand_count):
        below = 0
        for m in range(problem.level_count[o]):
            bound = ws.bound[o, m]
            top = m == problem.level_count[o] - 1
            if bound < below or bound > ws.loop_count or (top and bound < ws.loop_count):
                return fail(ws, NOT_NESTED, problem.level_memory[o, m], o, m, 0.0, 0.0)
            below = bound
    for i in range(problem.held_memory_count):
        outcome = check_memory(problem, ws, problem.memory_order[i])
        if outcome != FITS:
            return outcome
    return check_control(problem, ws) if problem.has_control else FITS


@kernel
def check_memory(problem, ws, k):
    """Check that memory `k` has room for the loops that `ws.bound` gives it. If `problem.even` is set, also check that
    the level boundaries are even (`is_even`). Returns an outcome.
    """
    if problem.holds_everything[k]:
        return FITS
    held = held_operands(problem, k)
    needed = 0.0
    for row in range(MAX_OPERANDS):
        ws.slice_choice[row] = 0
    for j in range(held):
        needed += given_slice(problem, ws, k, j)
        first = first_loop(problem, ws, k, j)
        end = ws.bound[problem.memory_operands[k, j], problem.memory_levels[k, j]]
        ws.slice_choice[MAX_OPERANDS - held + j] = end - first
    o = problem.memory_operands[k, 0]
    m = problem.memory_levels[k, 0]
    if needed > problem.memory_bits[k]:
        return fail(ws, TOO_SMALL_TOGETHER, k, o, m, needed, float(problem.memory_bits[k]))
    choice = ws.slice_choice
    if problem.even and not is_even(problem, ws, k, held, choice[0], choice[1], choice[2]):
        return fail(ws, NOT_EVEN, k, o, m, 0.0, 0.0)
    return FITS


@kernel
def given_slice(problem, ws, k, j):
    """Extend the current tile of operand number `j` of memory `k` by the loops that `ws.bound` gives to the memory, and
    return the bits that the operand needs there. If the memory must be double-buffered, a tile that is not the whole
    operand counts twice.

    Afterwards, the current tile is also extended by the spatial loops above the memory. The returned bits do not
    include these loops.
    """
    o = problem.memory_operands[k, j]
    m = problem.memory_levels[k, j]
    first = first_loop(problem, ws, k, j)
    end = ws.bound[o, m]
    precision = storage_precision(problem, ws, o, m, first)
    for i in range(first, end):
        ws.dimension_size[o, ws.loop_dimension[i]] *= ws.loop_size[i]
    bits = tile_elements_of(problem, ws, o, o) * precision
    if problem.force_double_buffering[k] and end < ws.loop_count:
        copy_tile(problem, ws, o)
        for i in range(end, ws.loop_count):
            ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]
        if bits < tile_elements_of(problem, ws, o, SLICE_ROW) * precision:
            bits *= 2
    multiply_spatial_level(problem, ws, o, m + 1)
    return bits
