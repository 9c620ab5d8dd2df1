"""Kernels that analyse a mapping: stationary loops, the tile of each level, and the data that each link moves.

The analysis follows zigzag-dse 3.9.1. A link is (operand, memory level, direction).
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT, PARTIAL, RELEVANT
from tilewright.cost.returns_kernel import count_returns
from tilewright.cost.tile_kernel import (
    WHOLE_TILES,
    multiply_loop,
    multiply_positions,
    multiply_relevant,
    rounded_up,
    start_windows,
)
from tilewright.cost.workspace import HELD, SLICE_ROW, WIDE
from tilewright.hardware.core import FH, FL, TH, TL

SKIP_FIRST_READ = SWITCHES.index("skip_first_accumulation_read")
WIDE_UNTIL_ADDED = SWITCHES.index("wide_until_added")


@kernel
def merge_stationary_loops(problem, ws):
    """Move the innermost irrelevant loops of each memory level to the level below, because they do not change the data.

    One pass from the outermost level inwards is enough: afterwards, only the lowest level can have an irrelevant
    innermost loop.
    """
    for o in range(problem.operand_count):
        levels = problem.level_count[o]
        for m in range(levels):
            ws.merged[o, m] = ws.bound[o, m]
        for m in range(levels - 1, 0, -1):
            while ws.merged[o, m - 1] < ws.merged[o, m]:
                if problem.kind[o, ws.loop_dimension[ws.merged[o, m - 1]]] != IRRELEVANT:
                    break
                ws.merged[o, m - 1] += 1


@kernel
def count_cycles(problem, ws):
    """Compute numbers of cycles and of reuse, and write them to the workspace.

    There are three numbers for each operand and architecture level. `cycles` is the number of cycles in which all loops
    up to this level run once. `top_relevant` is the product of the outermost relevant loops of the level.
    `top_irrelevant` is the product of the outermost irrelevant loops of the level.

    For each operand, `stationary_cycles` is the number of consecutive cycles in which the array reuses the same data of
    the operand. The number is the product of the irrelevant innermost loops in the lowest memory level of the operand,
    times the cycles of one operation.
    """
    iterations = problem.cycles_per_operation
    ws.iterations[0] = iterations
    for i in range(ws.loop_count):
        iterations *= ws.loop_size[i]
        ws.iterations[i + 1] = iterations
    for o in range(problem.operand_count):
        ws.cycles[o, 0] = problem.cycles_per_operation
        ws.top_relevant[o, 0] = 1
        ws.top_irrelevant[o, 0] = 1
        first = 0
        for m in range(problem.level_count[o]):
            end = ws.merged[o, m]
            ws.cycles[o, m + 1] = ws.iterations[end]
            ws.top_relevant[o, m + 1] = top_run(problem, ws, o, RELEVANT, first, end)
            ws.top_irrelevant[o, m + 1] = top_run(problem, ws, o, IRRELEVANT, first, end)
            first = end
        stationary = problem.cycles_per_operation
        for i in range(ws.merged[o, 0]):
            if problem.kind[o, ws.loop_dimension[i]] != IRRELEVANT:
                break
            stationary *= ws.loop_size[i]
        ws.stationary_cycles[o] = stationary


@kernel
def top_run(problem, ws, o, kind, first, end):
    """Product of the consecutive outermost loops of a level that have kind `kind`. The product ends before the first
    loop of another kind, from the outside inwards.

    The loops of the level are at the positions from `first` to `end - 1`.
    """
    product = 1
    for i in range(end - 1, first - 1, -1):
        if problem.kind[o, ws.loop_dimension[i]] != kind:
            break
        product *= ws.loop_size[i]
    return product


@kernel
def size_tiles(problem, ws, v):
    """Compute the tile of one instance, for each operand and architecture level: its number of elements, and its bits
    per element. `v` is the variant of the spatial factors: 0 fractional, 1 integer."""
    mark_partial_sums(problem, ws, v)
    for o in range(problem.operand_count):
        if problem.switches[WHOLE_TILES]:
            size_whole_tiles(problem, ws, v, o)
            set_precisions(problem, ws, v, o)
            continue
        start_windows(problem, ws)
        ws.tile_elements[v, o, 0] = 1
        elements = 1.0
        first = 0
        for m in range(problem.level_count[o]):
            level = 1.0
            for i in range(first, ws.merged[o, m]):
                level = multiply_relevant(problem, ws, o, ws.loop_dimension[i], float(ws.loop_size[i]), level)
            for s in range(problem.spatial_start[o, m], problem.spatial_start[o, m + 1]):
                level = multiply_relevant(
                    problem, ws, o, problem.spatial_dimension[o, s], problem.spatial_factor[v, o, s], level
                )
            elements *= level
            ws.tile_elements[v, o, m + 1] = np.int64(np.rint(elements))
            first = ws.merged[o, m]
        set_precisions(problem, ws, v, o)


@kernel
def set_precisions(problem, ws, v, o):
    """Set the bits per element of the tiles of operand `o` at each architecture level. Outputs have the width of final
    outputs at a level that passes no partial sums upward. In all other cases, an operand has the width that it has in
    the computation.
    """
    for a in range(problem.level_count[o] + 1):
        bits = problem.precision_bits[o]
        if o == OUTPUT_INDEX and not ws.partial_sum[v, a]:
            bits = problem.final_precision_bits
        ws.tile_precision[v, o, a] = bits


@kernel
def size_whole_tiles(problem, ws, v, o):
    """Compute the numbers of elements of the tiles of operand `o`, with each dimension rounded up to a whole number.
    The function is called only if the switch `whole_tiles` is on.

    At each memory level, there are two tiles: the tile that one instance holds, and the wide tile. The wide tile has
    all elements that the instances of the next inner memory take from one instance in one period. An element that
    several instances take counts once.
    """
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = 1.0
    first = 0
    for m in range(problem.level_count[o]):
        for s in range(problem.spatial_start[o, m], problem.spatial_start[o, m + 1]):
            ws.dimension_size[SLICE_ROW, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]
        ws.wide_tile[o, m] = count_elements(problem, ws, o, m, WIDE)
        for i in range(first, ws.merged[o, m]):
            ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]
        first = ws.merged[o, m]
        ws.tile_elements[v, o, m + 1] = count_elements(problem, ws, o, m, HELD)
    ws.tile_elements[v, o, 0] = 1


@kernel
def count_elements(problem, ws, o, m, way):
    """Number of elements of operand `o` in the largest tile of the kind `way` (HELD or WIDE) at memory level `m`. The
    sizes of the tile are in row SLICE_ROW of `ws.dimension_size`, and each size is rounded up.

    If a dimension has fractional spatial factors, the sizes are also written to `ws.ragged_size`, not rounded.
    """
    whole = 1.0
    i = 0
    while problem.relevant_dimensions[o, i] >= 0:
        whole *= rounded_up(ws.dimension_size[SLICE_ROW, problem.relevant_dimensions[o, i]])
        i += 1
    if problem.ragged_count > 0:
        for d in range(problem.dimension_count):
            ws.ragged_size[way, o, m, d] = ws.dimension_size[SLICE_ROW, d]
    return np.int64(multiply_positions(problem, ws, o, SLICE_ROW, whole))


@kernel
def mark_partial_sums(problem, ws, v):
    """Mark the levels that pass partial sums upward. For each level, also compute the number of accumulations of an
    output at this level and all levels above it."""
    o = OUTPUT_INDEX
    levels = problem.level_count[o]
    start_windows(problem, ws)
    first = 0
    for a in range(levels + 1):
        relevant = 1.0
        irrelevant = 1.0
        flag = False
        end = ws.merged[o, a - 1] if a > 0 else 0
        for i in range(first, end):
            relevant, irrelevant, met = multiply_loop(
                problem, ws, o, ws.loop_dimension[i], float(ws.loop_size[i]), relevant, irrelevant
            )
            flag = flag or met
        in_space = False
        for s in range(problem.spatial_start[o, a], problem.spatial_start[o, a + 1]):
            relevant, irrelevant, met = multiply_loop(
                problem, ws, o, problem.spatial_dimension[o, s], problem.spatial_factor[v, o, s], relevant, irrelevant
            )
            in_space = in_space or met
        ws.reuse_above[v, a] = irrelevant
        ws.partial_sum[v, a] = flag or in_space
        ws.adds_in_space[v, a] = in_space
        first = end
    if problem.switches[WHOLE_TILES] and problem.has_output_windows:
        mark_window_sums(problem, ws, v)
    ws.reuse_above[v, levels + 1] = 1.0
    ws.reuse_above[v, levels + 2] = 1.0
    above = False
    for a in range(levels, -1, -1):
        ws.reuse_above[v, a] *= ws.reuse_above[v, a + 1]
        here = ws.partial_sum[v, a]
        ws.partial_sum[v, a] = above
        above = above or here


@kernel
def mark_window_sums(problem, ws, v):
    """Mark the levels whose loops add to outputs, if sliding windows address the outputs.

    Irrelevant loops add to outputs. The window loops of a level also add to outputs if they multiply the number of
    iterations by a larger factor than the number of window positions.
    """
    o = OUTPUT_INDEX
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = 1.0
    iterations = 1.0
    positions = 1.0
    first = 0
    for a in range(problem.level_count[o] + 1):
        flag = False
        end = ws.merged[o, a - 1] if a > 0 else 0
        for i in range(first, end):
            d = ws.loop_dimension[i]
            ws.dimension_size[SLICE_ROW, d] *= ws.loop_size[i]
            flag = flag or problem.kind[o, d] == IRRELEVANT
        now, places = window_iterations(problem, ws, o)
        flag = flag or now * positions > iterations * places
        in_space = False
        for s in range(problem.spatial_start[o, a], problem.spatial_start[o, a + 1]):
            d = problem.spatial_dimension[o, s]
            ws.dimension_size[SLICE_ROW, d] *= problem.spatial_factor[0, o, s]
            in_space = in_space or (problem.kind[o, d] == IRRELEVANT and problem.spatial_factor[0, o, s] > 1)
        iterations, positions = window_iterations(problem, ws, o)
        in_space = in_space or iterations * places > now * positions
        ws.partial_sum[v, a] = flag or in_space
        ws.adds_in_space[v, a] = in_space
        first = end


@kernel
def window_iterations(problem, ws, o):
    """Pair (number of iterations of all window loops of operand `o`, number of window positions that these iterations
    touch), for the tile sizes in row SLICE_ROW of `ws.dimension_size`.
    """
    iterations = 1.0
    for d in range(problem.dimension_count):
        if problem.kind[o, d] == PARTIAL:
            iterations *= math.ceil(ws.dimension_size[SLICE_ROW, d] - 1e-9)
    return iterations, multiply_positions(problem, ws, o, SLICE_ROW, 1.0)


@kernel
def record_link(problem, ws, v, o, m, x, amount, precision, period, total, bandwidth, top_irrelevant):
    """Write the data movement of one link: elements per period, bits per element, cycles of a period, number of
    periods, bandwidth in bits per cycle, and transfer window in cycles.

    As in the reference, `ws.bandwidth` is truncated to whole bits per operation, then rounded up to whole bits per
    cycle.
    """
    ws.amount[v, o, m, x] = amount
    ws.precision[v, o, m, x] = precision
    ws.period[v, o, m, x] = period
    ws.count[v, o, m, x] = np.int64(total / period)  # the quotient is exact, because every period divides the total
    cycles = problem.cycles_per_operation
    ws.bandwidth[v, o, m, x] = (np.int64(bandwidth * cycles) + cycles - 1) // cycles
    ws.exact_bandwidth[v, o, m, x] = bandwidth
    ws.window[v, o, m, x] = np.int64(period / top_irrelevant)


@kernel
def clear_link(ws, v, o, m, x):
    """Set all numbers of the data movement of one link to 0."""
    ws.amount[v, o, m, x] = 0
    ws.precision[v, o, m, x] = 0
    ws.period[v, o, m, x] = 0
    ws.count[v, o, m, x] = 0
    ws.bandwidth[v, o, m, x] = 0
    ws.exact_bandwidth[v, o, m, x] = 0.0
    ws.window[v, o, m, x] = 0


@kernel
def record_data_movement(problem, ws, v):
    """Compute and write the data movement of every link."""
    for o in range(problem.operand_count):
        is_output = o == OUTPUT_INDEX
        top = problem.level_count[o] - 1
        total = ws.cycles[o, top + 1]
        for m in range(top + 1):
            low_period = ws.cycles[o, m]
            if m == 0 and not is_output and problem.same_data_is_no_access:
                low_period = ws.stationary_cycles[o]
            low_tile = ws.tile_elements[v, o, m]
            low_rate = low_tile * ws.tile_precision[v, o, m] / low_period
            high_period = ws.cycles[o, m + 1]
            high_tile = ws.tile_elements[v, o, m + 1]
            high_rate = high_tile * ws.tile_precision[v, o, m + 1] / high_period
            boost = problem.boost[v, o, m]
            low_amount = low_tile * boost
            low_bandwidth = low_rate * boost
            if problem.switches[WHOLE_TILES]:
                low_amount = ws.wide_tile[o, m]
                low_bandwidth = low_amount * ws.tile_precision[v, o, m] / low_period
            down = FL if is_output else TL
            up = TH if is_output else FH
            record_link(problem, ws, v, o, m, down, low_amount, problem.precision_bits[o], low_period, total,
                        low_bandwidth, ws.top_irrelevant[o, m])  # fmt: skip
            clear_link(ws, v, o, m, TL if is_output else FL)
            clear_link(ws, v, o, m, FH if is_output else TH)
            if m == top:
                clear_link(ws, v, o, m, up)
            else:
                record_link(problem, ws, v, o, m, up, high_tile, problem.precision_bits[o], high_period, total,
                            high_rate, ws.top_irrelevant[o, m + 1])  # fmt: skip
            if is_output:
                record_partial_sums(problem, ws, v, m, m == top)


@kernel
def record_partial_sums(problem, ws, v, m, is_top):
    """Set the bits per element of outputs on two links of memory level `m`: the link from the level below (FL) and the
    link to the level above (TH). `is_top` is true if there is no level above.

    If a link moves partial sums, also write the data movement of their read-backs to the link in the opposite direction
    (TL or FH).
    """
    o = OUTPUT_INDEX
    partial_low = is_accumulated_above(problem, ws, v, m)
    ws.precision[v, o, m, FL] = problem.sum_bits[m, FL] if partial_low else problem.final_precision_bits
    if ws.partial_sum[v, m]:
        copy_link(ws, v, o, m, FL, TL)
        ws.precision[v, o, m, TL] = problem.precision_bits[o] if partial_low else 0
        skip_first_accumulation(problem, ws, v, m, TL, m)
    if partial_low:
        widen_sums(problem, ws, v, m, FL)
    if is_top:
        return
    partial_high = is_accumulated_above(problem, ws, v, m + 1)
    added_later = partial_high or (problem.switches[WIDE_UNTIL_ADDED] and ws.adds_in_space[v, m + 1] != 0)
    ws.precision[v, o, m, TH] = problem.sum_bits[m, TH] if added_later else problem.final_precision_bits
    if ws.partial_sum[v, m + 1]:
        copy_link(ws, v, o, m, TH, FH)
        ws.precision[v, o, m, FH] = problem.precision_bits[o] if partial_high else 0
        skip_first_accumulation(problem, ws, v, m, FH, m + 1)
    if added_later:
        widen_sums(problem, ws, v, m, TH)


@kernel
def widen_sums(problem, ws, v, m, x):
    """Correct the bandwidth of partial sums that move upwards over link `x` of memory level `m`: they have `sum_bits`
    bits on this link. This number differs from the width of a partial sum only on links with compressed final outputs.
    """
    o = OUTPUT_INDEX
    if problem.sum_bits[m, x] != problem.precision_bits[o]:
        ws.exact_bandwidth[v, o, m, x] *= problem.sum_bits[m, x] / problem.precision_bits[o]
        ws.bandwidth[v, o, m, x] = np.int64(math.ceil(ws.exact_bandwidth[v, o, m, x]))


@kernel
def is_accumulated_above(problem, ws, v, a):
    """True if architecture level `a` passes partial sums upward, because loops above the level add to the outputs.

    Without the switch `whole_tiles`, the result depends on the average number of accumulations of an output above the
    level, as in the reference. All outputs can then count as final although some are accumulated further (fault B41,
    docs/model.md).
    """
    if problem.switches[WHOLE_TILES]:
        return ws.partial_sum[v, a] != 0
    return np.int64(problem.output_elements * (ws.reuse_above[v, a + 1] - 1)) != 0


@kernel
def copy_link(ws, v, o, m, source, target):
    """Copy the data movement of link `source` to link `target`, except the bits per element. `target` reads partial
    sums back: it has the same numbers of elements and periods as `source`, which moved the partial sums away.
    """
    ws.amount[v, o, m, target] = ws.amount[v, o, m, source]
    ws.period[v, o, m, target] = ws.period[v, o, m, source]
    ws.count[v, o, m, target] = ws.count[v, o, m, source]
    ws.bandwidth[v, o, m, target] = ws.bandwidth[v, o, m, source]
    ws.exact_bandwidth[v, o, m, target] = ws.exact_bandwidth[v, o, m, source]
    ws.window[v, o, m, target] = ws.window[v, o, m, source]


@kernel
def skip_first_accumulation(problem, ws, v, m, x, level):
    """Remove the first accumulation of every output from the read-backs, if `skip_first_accumulation_read` is on.

    Of the Z periods of a link, Z/V begin a new output. V is the product of the temporal irrelevant loops in memory
    levels from `level` outwards. If windows address the outputs, a tile can have both new and old outputs;
    `count_returns` counts them.
    """
    if not problem.switches[SKIP_FIRST_READ]:
        return
    o = OUTPUT_INDEX
    if problem.has_output_windows:
        count_returns(problem, ws, v, m, x)
        if ws.count[v, o, m, x] == 0:
            clear_link(ws, v, o, m, x)
        return
    visits = 1
    first = ws.merged[o, level - 1] if level > 0 else 0
    for i in range(first, ws.merged[o, problem.level_count[o] - 1]):
        if problem.kind[o, ws.loop_dimension[i]] == IRRELEVANT:
            visits *= ws.loop_size[i]
    ws.count[v, o, m, x] -= ws.count[v, o, m, x] // visits
    if ws.count[v, o, m, x] == 0:
        clear_link(ws, v, o, m, x)
