"""Memory allocation: which loops of a loop order each operand keeps in each of its memories (compiled).

As the memory allocator of zigzag-dse 3.9.1: memories are taken from the array outwards, and at each boundary the split
that moves the fewest bits is chosen.
"""

import math

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
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
    """Allocate the loops of an order to memories and write `ws.bound`.

    Returns an outcome; where the loops do not fit, `ws.failure` has the reason.
    """
    start_tiles(problem, ws)
    for i in range(problem.held_memory_count):
        outcome = allocate_memory(problem, ws, problem.memory_order[i])
        if outcome != FITS:
            return outcome
    return FITS


@kernel
def start_tiles(problem, ws):
    """Set the running tile of each operand to the elements that the array uses in one cycle."""
    for o in range(problem.operand_count):
        for d in range(problem.dimension_count):
            ws.dimension_size[o, d] = 1.0
        multiply_spatial_level(problem, ws, o, 0)


@kernel
def copy_tile(problem, ws, o):
    """Copy the running tile of operand `o` to the scratch row, where candidate slices are tried."""
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = ws.dimension_size[o, d]


@kernel
def multiply_spatial_level(problem, ws, o, a):
    """Multiply the running tile of operand `o` by the spatial loops (fractional) of architecture level `a`."""
    for s in range(problem.spatial_start[o, a], problem.spatial_start[o, a + 1]):
        ws.dimension_size[o, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]


@kernel
def fail(ws, outcome, k, o, m, needed, limit):
    """Write to `ws.failure` why an order does not fit: memory `k`, operand `o`, level `m`, sizes in bits."""
    ws.failure[0] = k
    ws.failure[1] = o
    ws.failure[2] = m
    ws.failure_bits[0] = needed
    ws.failure_bits[1] = limit
    return outcome


@kernel
def storage_precision(problem, ws, o, m, first):
    """Bits per element of operand `o` at memory level `m`, while loops from position `first` on are not allocated yet.

    An output is kept at partial-sum precision while an irrelevant loop remains.
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
    """Number of candidate slices if the whole operand `o` fits into its topmost memory, else 0.

    Only the size of the last slice is stored.
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
    """Compute the bits that each slice moves over the boundary above: slice size times the loops outside the slice."""
    remaining = 1.0
    for i in range(ws.loop_count - 1, first + kept - 2, -1):
        remaining *= ws.loop_size[i]
    for i in range(kept - 1, -1, -1):
        ws.slice_cost[row, i] = remaining * ws.slice_bits[row, i]
        if i > 0:
            remaining *= ws.loop_size[first + i - 1]


@kernel
def slice_sizes(problem, ws, k, row, o, m, first):
    """Sizes in bits of operand `o` in memory `k` with 0, 1, ..

    more loops; returns how many of them, from the first, fit.

    With forced double buffering, a slice that is not the whole operand counts twice.
    """
    limit = float(problem.memory_bits[k])
    precision = storage_precision(problem, ws, o, m, first)
    doubled = problem.force_double_buffering[k]
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
        if i == ws.loop_count:
            break
        d = ws.loop_dimension[i]
        ws.dimension_size[SLICE_ROW, d] *= ws.loop_size[i]
        if problem.kind[o, d] == RELEVANT and not problem.spatial_fractional:
            elements *= ws.loop_size[i]  # integers: the product is exact in any order
        elif problem.kind[o, d] != IRRELEVANT:
            elements = tile_elements_of(problem, ws, o, SLICE_ROW)
    return kept


@kernel
def allocate_memory(problem, ws, k):
    """Choose the loops that memory `k` keeps for each of its operands."""
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
    """Position of the first loop that operand number `j` of memory `k` keeps in no memory below."""
    m = problem.memory_levels[k, j]
    return ws.bound[problem.memory_operands[k, j], m - 1] if m > 0 else 0


@kernel
def list_slices(problem, ws, k, j, row):
    """Fill row `row` with slice sizes and costs of operand number `j` of memory `k`; False if no slice fits.

    In its topmost memory an operand has one candidate, the largest slice.
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
    """Make the fitting slices of row `row` candidates, with their costs; False if no slice fits."""
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
    """Set `ws.slice_choice` to the cheapest combination of slices that fits; of equal ones, the last.

    Rows of operands that the memory does not hold get one empty slice. Returns the bits of the smallest combination. If
    an even choice is required and no combination is even, each operand keeps no loop.
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
    """True if, in the last row, a larger slice never costs more than a smaller one."""
    fall = True
    for i in range(ws.slice_low[2] + 1, ws.slice_high[2]):
        fall = fall and ws.slice_cost[2, i] <= ws.slice_cost[2, i - 1]
    return fall


@kernel
def choose_of_all(problem, ws, k, held):
    """Choose the cheapest combination by trying all of them."""
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
                    break  # without doubling, slices only grow
                cost = cost01 + ws.slice_cost[2, i2]
                if cost <= best_cost and (not problem.even or is_even(problem, ws, k, held, i0, i1, i2)):
                    best_cost = cost
                    best0, best1, best2 = i0, i1, i2
    ws.slice_choice[0], ws.slice_choice[1], ws.slice_choice[2] = best0, best1, best2


@kernel
def choose_largest(problem, ws, k):
    """Choose the cheapest combination where a larger slice of the last row never costs more.

    Then only the largest slice of the last row that fits needs to be tried. This largest slice never grows when the
    slices of the rows before grow.
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
    """Keep the chosen loops of operand number `j` in memory `k`; False if loops remain above its topmost memory."""
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
    """True if operands of memory `k` share one boundary: no loop is kept in `k` by one and above `k` by another."""
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
    """Check the given `ws.bound`: boundaries are nested, every loop is placed, each memory is large enough.

    Returns an outcome. Tiles are counted as in the allocator, so that each allocation of the allocator passes.
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
    return FITS


@kernel
def check_memory(problem, ws, k):
    """True if memory `k` has room for the loops that `ws.bound` gives it, with even boundaries where required."""
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
    """Bits of operand number `j` of memory `k` with its loops in `ws.bound`; also enlarges its running tile."""
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
