"""Memory allocation: which loops of an order each operand keeps in each of its memories (compiled).

zigzag-dse 3.9.1, memory allocator: bottom-up over memories, the split that moves the fewest bits at each boundary.
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import FITS, LOOPS_LEFT, SLICE_ROW, TOO_SMALL, TOO_SMALL_TOGETHER

OUTPUT_INDEX = 0


@kernel
def allocate(problem, ws):
    """Fill `ws.bound`; returns an outcome, with `ws.failure` set unless it fits."""
    for o in range(problem.operand_count):
        for d in range(problem.dimension_count):
            ws.dimension_size[o, d] = 1.0
        multiply_spatial_level(problem, ws, o, 0)
    for i in range(problem.held_memory_count):
        outcome = allocate_memory(problem, ws, problem.memory_order[i])
        if outcome != FITS:
            return outcome
    return FITS


@kernel
def copy_tile(problem, ws, o):
    """Copy the running tile of operand `o` to the scratch row, on which slices are tried."""
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = ws.dimension_size[o, d]


@kernel
def multiply_spatial_level(problem, ws, o, a):
    """Enlarge the running tile of operand `o` by the spatial loops of architecture level `a` (fractional)."""
    for s in range(problem.spatial_start[o, a], problem.spatial_start[o, a + 1]):
        ws.dimension_size[o, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]


@kernel
def fail(ws, outcome, k, o, m, needed, limit):
    """Record why an order does not fit."""
    ws.failure[0] = k
    ws.failure[1] = o
    ws.failure[2] = m
    ws.failure_bits[0] = needed
    ws.failure_bits[1] = limit
    return outcome


@kernel
def storage_precision(problem, ws, o, m, first):
    """Bits per element of operand `o` in its memory level `m`, when loops from `first` on are still to be placed.

    An output is kept at partial-sum precision while an irrelevant loop remains.
    """
    if o != OUTPUT_INDEX:
        return problem.precision_bits[o]
    if problem.partial_above[o, m + 1]:
        return problem.precision_bits[o]
    for i in range(first, ws.loop_count):
        if problem.kind[o, ws.loop_dimension[i]] == IRRELEVANT:
            return problem.precision_bits[o]
    return problem.final_precision_bits


@kernel
def whole_size(problem, ws, k, j, o, m, first):
    """Number of slices if operand `o` fits whole into its topmost memory, else 0. Only the last size is stored."""
    precision = storage_precision(problem, ws, o, m, first)
    copy_tile(problem, ws, o)
    for i in range(first, ws.loop_count):
        ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]
    bits = tile_elements_of(problem, ws, o, SLICE_ROW) * precision
    if bits > problem.memory_bits[k]:
        return 0
    ws.slice_bits[j, ws.loop_count - first] = bits
    return ws.loop_count - first + 1


@kernel
def cost_slices(ws, j, first, kept):
    """Bits that move over the boundary above for each slice: its size times the loops that stay above."""
    remaining = 1.0
    for i in range(ws.loop_count - 1, first + kept - 2, -1):
        remaining *= ws.loop_size[i]
    for i in range(kept - 1, -1, -1):
        ws.slice_cost[j, i] = remaining * ws.slice_bits[j, i]
        if i > 0:
            remaining *= ws.loop_size[first + i - 1]


@kernel
def slice_sizes(problem, ws, k, j, o, m, first):
    """Sizes of operand `o` in memory `k` with 0, 1, .. more loops; returns how many sizes fit from the start.

    With forced double buffering a slice that is not the whole operand
    counts twice.
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
        ws.slice_bits[j, i - first] = bits
        if bits > limit:
            break
        kept += 1
        if i < ws.loop_count and problem.kind[o, ws.loop_dimension[i]] != IRRELEVANT:
            ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]
            elements = tile_elements_of(problem, ws, o, SLICE_ROW)
    return kept


@kernel
def allocate_memory(problem, ws, k):
    """Choose the loops that memory `k` keeps for each of its operands."""
    if problem.holds_everything[k]:
        for j in range(problem.operand_count):
            if problem.memory_operands[k, j] >= 0:
                ws.bound[problem.memory_operands[k, j], problem.memory_levels[k, j]] = ws.loop_count
        return FITS
    limit = float(problem.memory_bits[k])
    held = 0
    low0 = low1 = low2 = high0 = high1 = high2 = 0
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o < 0:
            break
        held += 1
        m = problem.memory_levels[k, j]
        first = ws.bound[o, m - 1] if m > 0 else 0
        top = m == problem.level_count[o] - 1
        kept = 0
        if top and not problem.force_double_buffering[k]:
            kept = whole_size(problem, ws, k, j, o, m, first)
        if kept == 0:
            kept = slice_sizes(problem, ws, k, j, o, m, first)
        if kept == 0:
            return fail(ws, TOO_SMALL, k, o, m, ws.slice_bits[j, 0], limit)
        low = kept - 1 if top else 0
        if top:
            ws.slice_cost[j, low] = 0.0
        else:
            cost_slices(ws, j, first, kept)
        if j == 0:
            low0, high0 = low, kept
        elif j == 1:
            low1, high1 = low, kept
        else:
            low2, high2 = low, kept
    if held == 1:
        high1 = high2 = 1
        ws.slice_bits[1, 0] = ws.slice_cost[1, 0] = 0.0
    if held <= 2:
        high2 = 1
        ws.slice_bits[2, 0] = ws.slice_cost[2, 0] = 0.0
    best0 = best1 = best2 = -1
    best_cost = math.inf
    total = ws.slice_bits[0, low0] + ws.slice_bits[1, low1] + ws.slice_bits[2, low2]
    if total > limit:
        o = problem.memory_operands[k, 0]
        return fail(ws, TOO_SMALL_TOGETHER, k, o, problem.memory_levels[k, 0], total, limit)
    for i0 in range(low0, high0):
        for i1 in range(low1, high1):
            bits01 = ws.slice_bits[0, i0] + ws.slice_bits[1, i1]
            cost01 = ws.slice_cost[0, i0] + ws.slice_cost[1, i1]
            for i2 in range(low2, high2):
                if bits01 + ws.slice_bits[2, i2] > limit:
                    if problem.force_double_buffering[k]:
                        continue
                    break  # without doubling, slices only grow
                cost = cost01 + ws.slice_cost[2, i2]
                if cost <= best_cost and (not problem.even or is_even(problem, ws, k, held, i0, i1, i2)):
                    best_cost = cost
                    best0, best1, best2 = i0, i1, i2
    if best0 < 0:
        best0 = best1 = best2 = 0
    for j in range(held):
        o = problem.memory_operands[k, j]
        m = problem.memory_levels[k, j]
        first = ws.bound[o, m - 1] if m > 0 else 0
        chosen = best0 if j == 0 else (best1 if j == 1 else best2)
        ws.bound[o, m] = first + chosen
        if m == problem.level_count[o] - 1 and first + chosen < ws.loop_count:
            return fail(ws, LOOPS_LEFT, k, o, m, ws.slice_bits[j, chosen + 1], limit)
        for i in range(first, first + chosen):
            ws.dimension_size[o, ws.loop_dimension[i]] *= ws.loop_size[i]
        multiply_spatial_level(problem, ws, o, m + 1)
    return FITS


@kernel
def is_even(problem, ws, k, held, i0, i1, i2):
    """True if no loop that one operand keeps in memory `k` stays above it for another operand of `k`."""
    for j in range(held):
        o = problem.memory_operands[k, j]
        m = problem.memory_levels[k, j]
        first = ws.bound[o, m - 1] if m > 0 else 0
        end = first + (i0 if j == 0 else (i1 if j == 1 else i2))
        for other in range(held):
            if other == j:
                continue
            p = problem.memory_operands[k, other]
            n = problem.memory_levels[k, other]
            other_end = (ws.bound[p, n - 1] if n > 0 else 0) + (i0 if other == 0 else (i1 if other == 1 else i2))
            if end > first and end > other_end and other_end < ws.loop_count:
                return False
    return True
