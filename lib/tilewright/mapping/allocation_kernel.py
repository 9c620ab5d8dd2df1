"""Memory allocation: which loops of an order each operand keeps in each of its memories (compiled).

zigzag-dse 3.9.1, memory allocator: bottom-up over memories, the split that moves the fewest bits at each boundary.
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import FITS, LOOPS_LEFT, TOO_SMALL, TOO_SMALL_TOGETHER

OUTPUT_INDEX = 0


@kernel
def allocate(problem, ws, loop_dimension, loop_size, loop_count):
    """Fill `ws.bound`; returns an outcome, with `ws.failure` set unless it fits."""
    ws.dimension_size[:] = 1.0
    for o in range(problem.operand_count):
        multiply_spatial_level(problem, ws, o, 0)
    for i in range(problem.held_memory_count):
        outcome = allocate_memory(problem, ws, problem.memory_order[i], loop_dimension, loop_size, loop_count)
        if outcome != FITS:
            return outcome
    return FITS


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
def storage_precision(problem, o, m, loop_dimension, first, loop_count):
    """Bits per element of operand `o` in its memory level `m`, when loops from `first` on are still to be placed.

    An output is kept at partial-sum precision while an irrelevant loop remains.
    """
    if o != OUTPUT_INDEX:
        return problem.precision_bits[o]
    if problem.partial_above[o, m + 1]:
        return problem.precision_bits[o]
    for i in range(first, loop_count):
        if problem.kind[o, loop_dimension[i]] == IRRELEVANT:
            return problem.precision_bits[o]
    return problem.final_precision_bits


@kernel
def slice_sizes(problem, ws, k, j, o, m, first, loop_dimension, loop_size, loop_count):
    """Sizes of operand `o` in memory `k` with 0, 1, .. more loops; returns how many sizes fit from the start.

    With forced double buffering a slice that is not the whole operand
    counts twice.
    """
    limit = float(problem.memory_bits[k])
    precision = storage_precision(problem, o, m, loop_dimension, first, loop_count)
    doubled = problem.force_double_buffering[k]
    whole = 0.0
    size = ws.slice_dimension_size
    if doubled:
        size[:] = ws.dimension_size[o]
        for i in range(first, loop_count):
            size[loop_dimension[i]] *= loop_size[i]
        whole = tile_elements_of(problem, o, size) * precision
    size[:] = ws.dimension_size[o]
    kept = 0
    for i in range(first, loop_count + 1):
        bits = tile_elements_of(problem, o, size) * precision
        if doubled and i < loop_count and bits < whole:
            bits *= 2
        ws.slice_bits[j, i - first] = bits
        if bits > limit:
            break
        kept += 1
        if i < loop_count:
            size[loop_dimension[i]] *= loop_size[i]
    return kept


@kernel
def allocate_memory(problem, ws, k, loop_dimension, loop_size, loop_count):
    """Choose the loops that memory `k` keeps for each of its operands."""
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
        kept = slice_sizes(problem, ws, k, j, o, m, first, loop_dimension, loop_size, loop_count)
        if kept == 0:
            return fail(ws, TOO_SMALL, k, o, m, ws.slice_bits[j, 0], limit)
        top = m == problem.level_count[o] - 1
        remaining = 1.0
        for i in range(first, loop_count):
            remaining *= loop_size[i]
        for i in range(kept):
            ws.slice_cost[j, i] = 0.0 if top else remaining * ws.slice_bits[j, i]
            if first + i < loop_count:
                remaining /= loop_size[first + i]
        low = kept - 1 if top else 0
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
                    continue
                cost = cost01 + ws.slice_cost[2, i2]
                if cost <= best_cost and (not problem.even or is_even(problem, ws, k, held, i0, i1, i2, loop_count)):
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
        if m == problem.level_count[o] - 1 and first + chosen < loop_count:
            return fail(ws, LOOPS_LEFT, k, o, m, ws.slice_bits[j, chosen + 1], limit)
        for i in range(first, first + chosen):
            ws.dimension_size[o, loop_dimension[i]] *= loop_size[i]
        multiply_spatial_level(problem, ws, o, m + 1)
    return FITS


@kernel
def is_even(problem, ws, k, held, i0, i1, i2, loop_count):
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
            if end > first and end > other_end and other_end < loop_count:
                return False
    return True
