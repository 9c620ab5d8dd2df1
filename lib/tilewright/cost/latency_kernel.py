"""Compiled latency model: transfer windows, double buffers and stalls of each port (zigzag-dse 3.9.1, latency).

The union of transfer windows on a port is computed from the nesting of their periods, not on a time line: every period
is a product of the inner loops of one order, so each divides the next. The run time does not grow with cycle counts.

zigzag-dse 3.9.1 gives the free capacity to double buffers of operands in order. The switch `best_double_buffers` gives
it to the operands that reduce the stall most. This module lists the possible sets of operands and picks the best one.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.allocation_kernel import ROOM_FOR_FINAL, storage_precision
from tilewright.cost.loading_kernel import add_loading, computing_transfers
from tilewright.cost.workspace import MAX_BUFFER_SETS, STALL
from tilewright.hardware.core import FL, TL

BEST_BUFFERS = SWITCHES.index("best_double_buffers")


@kernel
def measure_utilization(problem, ws):
    """Utilization of each memory: per operand and with the operands that share it, total and effective.

    The effective part leaves out what outer relevant loops replace while the memory is in use.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            size = problem.memory_bits[problem.level_memory[o, m]]
            elements = ws.tile_elements[0, o, m + 1]
            precision = ws.tile_precision[0, o, m + 1]
            if problem.switches[ROOM_FOR_FINAL]:
                precision = storage_precision(problem, ws, o, m, ws.bound[o, m - 1] if m > 0 else 0)
            ws.utilization[o, m] = elements * precision / size
            ws.effective_bits[o, m] = kept_bits(problem, elements, precision, ws.top_relevant[o, m + 1])
            ws.effective[o, m] = ws.effective_bits[o, m] / size
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        shared = 0.0
        effective = 0.0
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                shared += ws.utilization[o, problem.memory_levels[k, j]]
                effective += ws.effective[o, problem.memory_levels[k, j]]
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                ws.shared_utilization[o, problem.memory_levels[k, j]] = shared
                ws.shared_effective[o, problem.memory_levels[k, j]] = effective


@kernel
def decide_double_buffers(problem, ws):
    """Decide which tiles are double-buffered: capacity must be free, and each decision takes its share of it."""
    for o in range(problem.operand_count):
        ws.double_buffered[o, 0] = False
        for m in range(problem.level_count[o]):
            room_taken = ws.shared_effective[o, m]
            if room_taken <= 0.5:
                ws.double_buffered[o, m + 1] = True
            elif ws.effective[o, m] <= 1 - room_taken:
                ws.double_buffered[o, m + 1] = True
                k = problem.level_memory[o, m]
                for j in range(problem.operand_count):
                    other = problem.memory_operands[k, j]
                    if other >= 0:
                        ws.shared_effective[other, problem.memory_levels[k, j]] += ws.effective[o, m]
            else:
                ws.double_buffered[o, m + 1] = False


@kernel
def kept_bits(problem, elements, precision, replaced):
    """Bits of a tile, without the part that its outermost relevant loops replace while the tile is in use.

    `replaced` is the product of those loops. The reference rounds bits down, so its result depends on the unit of size;
    the repaired model rounds elements up (B43).
    """
    if problem.switches[BEST_BUFFERS]:
        return -(-elements // replaced) * precision
    return elements * precision // replaced


@kernel
def room_for_second_tiles(problem, ws, k):
    """Free bits of memory `k`: its size minus the effective bits of its operands."""
    room = problem.memory_bits[k]
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            room -= ws.effective_bits[o, problem.memory_levels[k, j]]
    return room


@kernel
def list_buffer_sets(problem, ws, k):
    """List the largest sets of operands whose second tiles fit together into memory `k`: bit masks, descending.

    Subsets of a listed set are left out; the empty set is listed only if no other fits.
    """
    room = room_for_second_tiles(problem, ws, k)
    held = 0
    for j in range(problem.operand_count):
        if problem.memory_operands[k, j] >= 0:
            held |= 1 << problem.memory_operands[k, j]
    count = 0
    for mask in range((1 << problem.operand_count) - 1, -1, -1):
        if mask & held != mask or count == MAX_BUFFER_SETS:
            continue
        needed = 0
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0 and (mask >> o) & 1:
                needed += ws.effective_bits[o, problem.memory_levels[k, j]]
        listed = mask == 0 and count > 0
        for i in range(count):
            listed = listed or ws.buffer_set[k, i] & mask == mask
        if not listed and (needed <= room or mask == 0):
            ws.buffer_set[k, count] = mask
            count += 1
    ws.buffer_set_count[k] = count


@kernel
def begin_buffer_choices(problem, ws):
    """Choose the first set of each memory; returns the number of memories that have several sets."""
    choices = 0
    for o in range(problem.operand_count):
        ws.double_buffered[o, 0] = False
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        list_buffer_sets(problem, ws, k)
        ws.buffer_choice[k] = 0
        choices += ws.buffer_set_count[k] > 1
    return choices


@kernel
def next_buffer_choice(problem, ws):
    """Advance to the next choice of sets, the last memory varying fastest; False after the last choice."""
    for i in range(problem.held_memory_count - 1, -1, -1):
        k = problem.memory_order[i]
        ws.buffer_choice[k] += 1
        if ws.buffer_choice[k] < ws.buffer_set_count[k]:
            return True
        ws.buffer_choice[k] = 0
    return False


@kernel
def keep_buffer_choice(problem, ws):
    """Store the present choice as the best one."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        ws.best_choice[k] = ws.buffer_choice[k]


@kernel
def recall_buffer_choice(problem, ws):
    """Restore the stored choice."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        ws.buffer_choice[k] = ws.best_choice[k]


@kernel
def apply_buffer_choice(problem, ws):
    """Double-buffer the operands of the chosen sets."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        mask = ws.buffer_set[k, ws.buffer_choice[k]]
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                ws.double_buffered[o, problem.memory_levels[k, j] + 1] = (mask >> o) & 1


@kernel
def buffer_wherever_possible(problem, ws):
    """Double-buffer every operand whose second tile fits alone: a lower bound of the stall of all choices."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        room = room_for_second_tiles(problem, ws, k)
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                m = problem.memory_levels[k, j]
                ws.double_buffered[o, m + 1] = ws.effective_bits[o, m] <= room


CONSISTENT_UNION = SWITCHES.index("consistent_window_union")


@kernel
def time_links(problem, ws, v):
    """Cycles that one transfer of each link takes."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                wide = problem.bandwidth_max_bits[o, m, x]
                bits = ws.amount[v, o, m, x] * ws.precision[v, o, m, x]
                ws.transfer_cycles[o, m, x] = np.int64(math.ceil(bits / wide)) if wide > 0 else 0


@kernel
def allow_links(problem, ws, v):
    """Cycles that one transfer of each link may take without stalling the array."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                buffered = ws.double_buffered[o, m] if x == TL or x == FL else ws.double_buffered[o, m + 1]
                ws.allowed_cycles[o, m, x] = ws.period[v, o, m, x] if buffered else ws.window[v, o, m, x]


@kernel
def stall_of_ports(problem, ws, v):
    """Stall of the worst port in cycles; writes each port's stall or slack to `ws.port_stall`."""
    stall = 0
    for p in range(problem.port_count):
        count = 0
        positive = 0
        negative = 0
        windows = 0
        for s in range(problem.port_start[p], problem.port_start[p + 1]):
            o = problem.service_operand[s]
            m = problem.service_level[s]
            x = problem.service_direction[s]
            periods = ws.count[v, o, m, x]
            if periods <= 0:
                continue
            repeats = computing_transfers(problem, o, x, periods)
            slack = (ws.transfer_cycles[o, m, x] - ws.allowed_cycles[o, m, x]) * repeats
            if slack > 0:
                positive += slack
            else:
                negative += slack
            windows += ws.allowed_cycles[o, m, x] * repeats
            insert_activity(ws, count, ws.allowed_cycles[o, m, x], ws.period[v, o, m, x], periods)
            count += 1
        union = 0
        value = positive + negative
        if count > 1:
            union = window_union(problem, ws, count)
            value = positive + max(0, negative + windows - union)
        ws.port_union[p] = union
        ws.port_stall[p] = value
        stall = max(stall, value)
    return stall


@kernel
def insert_activity(ws, count, allowed, period, periods):
    """Insert one activity into the scratch list, sorted by period; among equal periods in order of arrival."""
    i = count
    while i > 0 and ws.activity[i - 1, 1] > period:
        for column in range(4):
            ws.activity[i, column] = ws.activity[i - 1, column]
        i -= 1
    ws.activity[i, 0] = allowed
    ws.activity[i, 1] = period
    ws.activity[i, 2] = periods
    ws.activity[i, 3] = 0


@kernel
def marked_until(ws, count, time):
    """Cycles before `time` that at least one of the `count` activities of shortest period may use.

    Reads the results of `window_union` for these activities: column 2 has the cycles of an activity's own window that
    shorter activities use, column 3 the union over one of its periods.
    """
    marked = 0
    for i in range(count - 1, -1, -1):
        period = ws.activity[i, 1]
        marked += (time // period) * ws.activity[i, 3]
        time = time % period
        allowed = ws.activity[i, 0]
        if time <= allowed:
            return marked + time
        marked += allowed - ws.activity[i, 2]
    return marked


@kernel
def window_union(problem, ws, count):
    """Union in cycles of the allowed windows of a port's activities, over the whole layer.

    Column 3 of an activity becomes the union, over one of its periods, of all activities up to it. Column 2 becomes the
    cycles of its window that the shorter activities use; it first holds the number of periods of the longest activity.
    """
    longest = count - 1
    while longest > 0 and ws.activity[longest - 1, 1] == ws.activity[longest, 1]:
        longest -= 1
    repeats = ws.activity[longest, 2]
    excluded = 0
    for i in range(count):
        allowed = ws.activity[i, 0]
        period = ws.activity[i, 1]
        inside = marked_until(ws, i, allowed)
        before = marked_until(ws, i, period)
        if i > 0:
            shorter = ws.activity[i - 1, 1]
            excluded += (period // shorter - 1) * ws.activity[i - 1, 3]
        ws.activity[i, 2] = inside
        ws.activity[i, 3] = allowed + before - inside
    if problem.switches[CONSISTENT_UNION]:
        return excluded + (ws.total_cycles // ws.activity[count - 1, 1] - 1) * ws.activity[count - 1, 3]
    return ws.activity[count - 1, 3] * repeats


@kernel
def least_stall(problem, ws, v):
    """Least stall in cycles over all choices of double buffers; of equal choices, the first."""
    choices = begin_buffer_choices(problem, ws)
    bound = 0
    if choices > 0:
        buffer_wherever_possible(problem, ws)
        allow_links(problem, ws, v)
        bound = stall_of_ports(problem, ws, v)
    best = -1
    more = True
    while more and (best < 0 or best > bound):
        apply_buffer_choice(problem, ws)
        allow_links(problem, ws, v)
        stall = stall_of_ports(problem, ws, v)
        if best < 0 or stall < best:
            best = stall
            keep_buffer_choice(problem, ws)
        more = choices > 0 and next_buffer_choice(problem, ws)
    recall_buffer_choice(problem, ws)
    apply_buffer_choice(problem, ws)
    allow_links(problem, ws, v)
    return stall_of_ports(problem, ws, v)


@kernel
def add_latency(problem, ws, v, total_cycles):
    """Write stall, on-loading and off-loading cycles to `ws.totals`."""
    measure_utilization(problem, ws)
    time_links(problem, ws, v)
    ws.total_cycles = total_cycles
    if problem.switches[BEST_BUFFERS]:
        stall = least_stall(problem, ws, v)
    else:
        decide_double_buffers(problem, ws)
        allow_links(problem, ws, v)
        stall = stall_of_ports(problem, ws, v)
    ws.totals[STALL] = stall
    add_loading(problem, ws, v, float(total_cycles + stall))
