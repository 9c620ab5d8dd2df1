"""Kernels that count read-backs of partial sums if sliding windows address the outputs.

Tiles then share outputs. Some outputs of a tile were left in a memory above by earlier tiles, and are read back. The
other outputs of the tile are new. For example, let `ox = ix + fx`, with the loop FX inside the tile and the loop IX
directly outside the tile. Each further tile then has one new output.

The outputs are counted tile by tile, for each group of windows that share loops. The number of new outputs of a tile is
the product over all groups. The distance of two iterations that touch the same output is a multiple of `group_step`.
The loop order decides which iteration is first.
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT, PARTIAL, RELEVANT
from tilewright.cost.ragged_kernel import list_sizes
from tilewright.cost.tile_kernel import rounded_up
from tilewright.cost.workspace import HELD, MAX_SHARES, WIDE
from tilewright.hardware.core import FH

NEARLY = 1e-9


@kernel
def count_returns(problem, ws, v, m, x):
    """Subtract the new outputs from the read-backs over one link of memory level `m`.

    Three numbers of the link are written: largest number of elements in a transfer, number of transfers, and average
    number of word parts in a transfer.
    """
    parent = m + 1 if x == FH else m
    size_tile(problem, ws, m, x)
    visits, periods = count_visits(problem, ws, parent)
    silent = 1
    lanes = 1.0
    for group in range(problem.relation_count):
        ws.share_count[group] = 0
        if problem.group_positions[OUTPUT_INDEX, group] > 0:
            list_digits(problem, ws, group, m, parent)
            silent *= share_out(problem, ws, group, parent)
            lanes *= lanes_of(ws)
    others = ws.count[v, OUTPUT_INDEX, m, x] // periods
    units = problem.units[OUTPUT_INDEX, m + 1]
    narrow = problem.bandwidth_min_bits[OUTPUT_INDEX, m, x]
    way = HELD if x == FH else WIDE
    most, parts = sum_shares(problem, ws, m, way, visits, ws.precision[v, OUTPUT_INDEX, m, x], max(1, narrow))
    ws.amount[v, OUTPUT_INDEX, m, x] = most
    ws.count[v, OUTPUT_INDEX, m, x] -= others // visits * silent
    if ws.count[v, OUTPUT_INDEX, m, x] > 0:
        total = parts * others * units / lanes
        ws.returned_parts[m, x] = total / (ws.count[v, OUTPUT_INDEX, m, x] * units)


@kernel
def size_tile(problem, ws, m, x):
    """Write to `ws.tile_size` the sizes of the tile of outputs that is read back, one size for each loop dimension.

    If `x` is FH, the level above sends partial sums back to memory level `m`, and the tile has the outputs that one
    instance of level `m` holds. If `x` is TL, level `m` sends partial sums back to the level below, and the tile has
    the outputs that all instances below one instance of level `m` read in one period.
    """
    o = OUTPUT_INDEX
    for d in range(problem.dimension_count):
        ws.tile_size[d] = 1.0
    for s in range(problem.spatial_start[o, m + 1]):
        ws.tile_size[problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]
    end = ws.merged[o, m] if x == FH else (ws.merged[o, m - 1] if m > 0 else 0)
    for i in range(end):
        ws.tile_size[ws.loop_dimension[i]] *= ws.loop_size[i]


@kernel
def count_visits(problem, ws, parent):
    """Pair (number of visits to an output, number of periods of the window loops). The first is the product of the
    irrelevant loops, and the second is the product of the window loops. Both count only temporal loops from memory
    level `parent` outwards.
    """
    o = OUTPUT_INDEX
    visits = 1
    periods = 1
    first = ws.merged[o, parent - 1] if parent > 0 else 0
    for i in range(first, ws.merged[o, problem.level_count[o] - 1]):
        kind = problem.kind[o, ws.loop_dimension[i]]
        if kind == IRRELEVANT:
            visits *= ws.loop_size[i]
        if kind == PARTIAL:
            periods *= ws.loop_size[i]
    return visits, periods


@kernel
def list_digits(problem, ws, group, m, parent):
    """Write the loops of a group of windows to `ws.digit`, innermost loop first. Only loops outside the tile are
    written.
    """
    o = OUTPUT_INDEX
    ws.digit_count = 0
    for d in range(problem.dimension_count):
        ws.visit[d] = 0
    for a in range(parent, problem.level_count[o] + 1):
        # First the lanes between memories a - 1 and a, then the loops of memory a. Lanes inside the tile are left out.
        if a > m:
            for s in range(problem.spatial_start[o, a], problem.spatial_start[o, a + 1]):
                if problem.dimension_group[o, problem.spatial_dimension[o, s]] == group:
                    factor = problem.spatial_factor[0, o, s]
                    add_digit(ws, problem.spatial_dimension[o, s], rounded_up(factor), factor, a, 1)
        if a < problem.level_count[o]:
            first = ws.merged[o, a - 1] if a > 0 else 0
            for i in range(first, ws.merged[o, a]):
                if problem.dimension_group[o, ws.loop_dimension[i]] == group:
                    add_digit(ws, ws.loop_dimension[i], ws.loop_size[i], float(ws.loop_size[i]), a, 0)


@kernel
def add_digit(ws, d, count, factor, level, is_lane):
    """Append a loop over dimension `d` to the list `ws.digit`. The loop is outside all loops that are already in the
    list.
    """
    stride = ws.tile_size[d]
    for i in range(ws.digit_count):
        if ws.digit[i].dimension == d:
            stride *= ws.digit[i].factor
    digit = ws.digit[ws.digit_count]
    digit.dimension, digit.count, digit.factor, digit.stride = d, count, factor, stride
    digit.level, digit.is_lane, digit.value = level, is_lane, 0
    ws.digit_count += 1


@kernel
def lanes_of(ws):
    """Average number of busy lanes: the product of the spatial loops in `ws.digit`."""
    lanes = 1.0
    for i in range(ws.digit_count):
        if ws.digit[i].is_lane:
            lanes *= ws.digit[i].factor
    return lanes


@kernel
def next_value(ws, lanes):
    """Advance to the next values of the temporal loops if `lanes` is 0, or of the spatial loops if `lanes` is 1.

    Returns False after the last values; all values are then 0 again.
    """
    for i in range(ws.digit_count):
        digit = ws.digit[i]
        if digit.is_lane == lanes:
            digit.value += 1
            if digit.value < digit.count:
                return True
            digit.value = 0
    return False


@kernel
def share_out(problem, ws, group, parent):
    """Count the tiles of a group of windows by the pair (number of positions, number of new positions), and write the
    counts to `ws.share`.

    Returns the number of periods in which the tiles of all lanes have only new positions.
    """
    silent = 0
    more = True
    while more:
        all_new = True
        another = True
        while another:
            place_tile(problem, ws, group)
            positions, fresh = count_new(problem, ws, group, parent)
            if positions > 0:
                add_share(ws, group, float(positions), float(fresh))
            all_new = all_new and positions == fresh
            another = next_value(ws, 1)
        silent += all_new
        more = next_value(ws, 0)
    return silent


@kernel
def add_share(ws, group, positions, fresh):
    """Count one more tile with `positions` positions, of which `fresh` are new, in the table `ws.share`.

    The table has one row for each pair (`positions`, `fresh`). If only one row is free, this row counts the tiles of
    all further pairs. The last row has the number of positions of the first of these tiles, and no new positions.
    """
    count = ws.share_count[group]
    for i in range(count):
        if ws.share[group, i, 0] == positions and ws.share[group, i, 1] == fresh:
            ws.share[group, i, 2] += 1.0
            return
    if count == MAX_SHARES:
        ws.share[group, count - 1, 2] += 1.0
        return
    full = count == MAX_SHARES - 1
    ws.share[group, count, 0] = positions
    ws.share[group, count, 1] = 0.0 if full else fresh
    ws.share[group, count, 2] = 1.0
    ws.share_count[group] = count + 1


@kernel
def place_tile(problem, ws, group):
    """Compute the range of iterations of a tile in each dimension of a group: the first iteration, and the iteration
    after the last. The current values of the loops in `ws.digit` select the tile."""
    for d in range(problem.dimension_count):
        if problem.dimension_group[OUTPUT_INDEX, d] != group:
            continue
        start = 0.0
        limit = math.inf
        for i in range(ws.digit_count - 1, -1, -1):
            digit = ws.digit[i]
            if digit.dimension == d:
                if digit.is_lane:  # in a partly filled pass, the lanes end at the end of the dimension
                    limit = min(limit, start + digit.factor * digit.stride)
                start += digit.value * digit.stride
        ws.tile_low[d] = math.ceil(start - NEARLY)
        ws.tile_high[d] = math.ceil(min(start + ws.tile_size[d], limit) - NEARLY)


@kernel
def count_new(problem, ws, group, parent):
    """Pair (number of positions of the current tile, number of new positions among them). A position is new if no
    earlier iteration touched its output and left it in a memory from which the tile reads.
    """
    positions = 0
    fresh = 0
    for d in range(problem.dimension_count):
        if problem.dimension_group[OUTPUT_INDEX, d] == group:
            ws.visit[d] = ws.tile_low[d]
            if ws.tile_low[d] >= ws.tile_high[d]:
                return 0, 0
    more = True
    while more:
        if not is_in_tile(problem, ws, group, -1):
            positions += 1
            fresh += not was_visited(problem, ws, group, parent)
        more = False
        for d in range(problem.dimension_count):
            if problem.dimension_group[OUTPUT_INDEX, d] == group and not more:
                ws.visit[d] += 1
                more = ws.visit[d] < ws.tile_high[d]
                if not more:
                    ws.visit[d] = ws.tile_low[d]
    return positions, fresh


@kernel
def is_in_tile(problem, ws, group, times):
    """True if the tile contains the iteration that is `times` times `group_step` away from the current iteration."""
    for d in range(problem.dimension_count):
        if problem.dimension_group[OUTPUT_INDEX, d] == group:
            at = ws.visit[d] + times * problem.group_step[OUTPUT_INDEX, d]
            if at < ws.tile_low[d] or at >= ws.tile_high[d]:
                return False
    return True


@kernel
def was_visited(problem, ws, group, parent):
    """True if an earlier iteration touches the same output as the current iteration, and leaves it in a memory from
    which the tile reads it.
    """
    for direction in (-1, 1):
        times = direction
        while is_in_layer(problem, ws, group, times):
            find_values(ws, times, problem)
            if came_earlier(problem, ws, parent):
                return True
            times += direction
    return False


@kernel
def is_in_layer(problem, ws, group, times):
    """True if the layer has an iteration that is `times` times `group_step` away from the current iteration."""
    for d in range(problem.dimension_count):
        if problem.dimension_group[OUTPUT_INDEX, d] == group:
            at = ws.visit[d] + times * problem.group_step[OUTPUT_INDEX, d]
            if at < 0 or at >= size_of(ws, d):
                return False
    return True


@kernel
def size_of(ws, d):
    """Number of iterations of dimension `d` in the whole layer."""
    size = ws.tile_size[d]
    for i in range(ws.digit_count):
        if ws.digit[i].dimension == d:
            size *= ws.digit[i].factor
    return math.ceil(size - NEARLY)


@kernel
def find_values(ws, times, problem):
    """Compute the value of each loop in another iteration: the iteration that is `times` times `group_step` away from
    the current one. The values are written to the field `other` of `ws.digit`."""
    for d in range(problem.dimension_count):
        left = float(ws.visit[d] + times * problem.group_step[OUTPUT_INDEX, d])
        for i in range(ws.digit_count - 1, -1, -1):
            if ws.digit[i].dimension == d:
                value = math.floor((left + NEARLY) / ws.digit[i].stride)
                ws.digit[i].other = value
                left -= value * ws.digit[i].stride


@kernel
def came_earlier(problem, ws, parent):
    """True if the iteration in `ws.digit.other` runs before the current tile, and leaves its outputs in a memory that
    the tile also uses.

    The check goes through the memory levels. The iteration and the tile use the same memory of a level if all loops
    above the level have equal values for both. The outermost temporal loop of the level whose values differ then
    decides which of the two runs first.
    """
    for level in range(parent, problem.level_count[OUTPUT_INDEX]):
        shared = True
        order = 0
        for i in range(ws.digit_count):
            digit = ws.digit[i]
            above = digit.level > level
            if above and digit.other != digit.value:
                shared = False
            if digit.level == level and not digit.is_lane and digit.other != digit.value:
                order = -1 if digit.other < digit.value else 1  # the outermost loop with different values decides
        if shared and order < 0:
            return True
    return False


@kernel
def is_ragged(problem, d):
    """True if dimension `d` has a fractional spatial factor."""
    found = False
    for i in range(problem.ragged_count):
        found = found or problem.ragged_dimension[i] == d
    return found


@kernel
def sum_shares(problem, ws, m, way, visits, precision, narrow):
    """Pair (largest, average). `largest` is the largest number of elements that one transfer reads back. `average` is
    the average number of word parts of `narrow` bits that all tiles together read back in one iteration of the
    irrelevant loops.

    The irrelevant loops have `visits` iterations. In the first iteration, only outputs with a partial sum are read
    back. In every other iteration, the whole tile is read back. A dimension outside all windows can have two sizes
    (`list_sizes`).
    """
    choices = 1
    for d in range(problem.dimension_count):
        ws.size_count[d] = 1
        ws.size_kind[d, 0] = ws.tile_size[d]
        ws.size_share[d, 0] = 1.0
        if is_ragged(problem, d) and problem.kind[OUTPUT_INDEX, d] != PARTIAL:
            list_sizes(problem, ws, OUTPUT_INDEX, m, way, d)
        choices *= ws.size_count[d]
    for group in range(problem.relation_count):
        choices *= max(1, ws.share_count[group])
    most = 0
    parts = 0.0
    for choice in range(choices):
        left = choice
        tile = fresh = number = 1.0
        for d in range(problem.dimension_count):
            kind = left % ws.size_count[d]
            left //= ws.size_count[d]
            number *= ws.size_share[d, kind]
            if problem.kind[OUTPUT_INDEX, d] == RELEVANT:
                tile *= ws.size_kind[d, kind]
                fresh *= ws.size_kind[d, kind]
        for group in range(problem.relation_count):
            if ws.share_count[group] > 0:
                kind = left % ws.share_count[group]
                left //= ws.share_count[group]
                tile *= ws.share[group, kind, 0]
                fresh *= ws.share[group, kind, 1]
                number *= ws.share[group, kind, 2]
        if number > 0:
            most = max(most, int(tile if visits > 1 else tile - fresh))
            first = math.ceil((tile - fresh) * precision / narrow)
            parts += number * (first + (visits - 1) * math.ceil(tile * precision / narrow)) / visits
    return most, parts
