"""Kernels of the latency model of zigzag-dse 3.9.1: transfer windows, double buffers and stalls of each port.

A transfer window is the part of a period in which a transfer can take place without a stall of the array. Every period
is a product of innermost loops of the same loop order, so each period divides the next longer period. The union of the
windows on a port is computed from this nesting, not by stepping through the cycles. The run time therefore does not
grow with the number of cycles.

In zigzag-dse 3.9.1, operands get the free capacity of a memory for double buffers in a fixed order. With the switch
`best_double_buffers`, the module lists the possible sets of double-buffered operands, and takes the set with the
smallest stall.
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
    """Compute two shares of the memory for each operand and memory level: the share that the tile of this operand
    fills, and the share that the tiles of all operands in the memory fill together.

    Both shares are computed a second time with effective sizes. The effective size of a tile leaves out the part that
    is overwritten when the outermost relevant loops of the memory level advance.
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
    """Decide for each tile whether it is double-buffered. The switch `best_double_buffers` must be off.

    All sizes here are effective sizes (`measure_utilization`). A tile is double-buffered if all tiles together fill at
    most half of the memory, or if a second copy of the tile fits into the free part of the memory. A second copy in the
    free part leaves less room for later tiles.
    """
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
    """Effective bits of a tile with `elements` elements of `precision` bits. Effective bits leave out the part of the
    tile that is overwritten when the outermost relevant loops of its memory level advance. `replaced` is the product of
    these loops.

    zigzag-dse 3.9.1 rounds the number of bits down. Its result therefore depends on the unit of sizes. With the switch
    `best_double_buffers` (fault B43, docs/model.md), the number of elements is rounded up.
    """
    if problem.switches[BEST_BUFFERS]:
        return -(-elements // replaced) * precision
    return elements * precision // replaced


@kernel
def room_for_second_tiles(problem, ws, k):
    """Free bits of memory `k`: the size of the memory minus the effective bits of the tiles of all its operands."""
    room = problem.memory_bits[k]
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            room -= ws.effective_bits[o, problem.memory_levels[k, j]]
    return room


@kernel
def list_buffer_sets(problem, ws, k):
    """List the largest sets of operands that memory `k` can double-buffer together. The sets are written to
    `ws.buffer_set[k]`, as bit masks in descending order, and their number to `ws.buffer_set_count[k]`.

    A subset of a listed set is not listed itself. The empty set is therefore listed only if no other set fits.
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
    """List, for each memory, the sets of operands that can be double-buffered together, and choose the first set.
    Returns the number of memories with more than one set.
    """
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
    """Advance to the next choice. A choice has one set of operands for each memory; the set of the last memory changes
    fastest. Returns False if there is no next choice."""
    for i in range(problem.held_memory_count - 1, -1, -1):
        k = problem.memory_order[i]
        ws.buffer_choice[k] += 1
        if ws.buffer_choice[k] < ws.buffer_set_count[k]:
            return True
        ws.buffer_choice[k] = 0
    return False


@kernel
def keep_buffer_choice(problem, ws):
    """Store the current choice (one set of operands for each memory) as the best choice."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        ws.best_choice[k] = ws.buffer_choice[k]


@kernel
def recall_buffer_choice(problem, ws):
    """Make the stored best choice (one set of operands for each memory) the current choice."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        ws.buffer_choice[k] = ws.best_choice[k]


@kernel
def apply_buffer_choice(problem, ws):
    """Double-buffer the operands in the chosen set of each memory, and no other operands."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        mask = ws.buffer_set[k, ws.buffer_choice[k]]
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                ws.double_buffered[o, problem.memory_levels[k, j] + 1] = (mask >> o) & 1


@kernel
def buffer_wherever_possible(problem, ws):
    """Double-buffer every operand for which the free part of its memory has room for a second tile. Second tiles of
    other operands are ignored.

    The resulting stall is a lower bound on the stall of every choice of sets.
    """
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
    """Compute the cycles that one transfer of each link takes. `v` is the variant of the spatial factors: 0 fractional,
    1 integer.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                wide = problem.bandwidth_max_bits[o, m, x]
                bits = ws.amount[v, o, m, x] * ws.precision[v, o, m, x]
                ws.transfer_cycles[o, m, x] = np.int64(math.ceil(bits / wide)) if wide > 0 else 0


@kernel
def allow_links(problem, ws, v):
    """Compute, for each link, the largest number of cycles that one transfer can take without a stall of the array. `v`
    is the variant of the spatial factors: 0 fractional, 1 integer.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                buffered = ws.double_buffered[o, m] if x == TL or x == FL else ws.double_buffered[o, m + 1]
                ws.allowed_cycles[o, m, x] = ws.period[v, o, m, x] if buffered else ws.window[v, o, m, x]


@kernel
def stall_of_ports(problem, ws, v):
    """Largest stall over all ports, in cycles; 0 if no port has a stall. The stall (positive) or slack (negative) of
    each port is written to `ws.port_stall`. `v` is the variant of the spatial factors: 0 fractional, 1 integer.
    """
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
    """Insert one link of a port into the first `count` rows of `ws.activity`, which are sorted by period. The columns
    of a row are: allowed cycles of a transfer, cycles of a period, number of periods, and 0.

    Links with equal periods stay in the order in which they are inserted.
    """
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
    """Number of cycles before `time` that are in a transfer window of at least one of the first `count` links of
    `ws.activity`. Each transfer window begins when a period of its link begins.

    The first `count` links have the shortest periods. For these links, `window_union` has already written two columns.
    Column 2: cycles in one window of the link that are also in windows of earlier rows. Column 3: cycles in one period
    of the link that are in a window of this row or of earlier rows.
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
    """Number of cycles of the whole layer that are in a transfer window of at least one link. The links are the first
    `count` rows of `ws.activity`. If the switch `consistent_window_union` is on (fault B17, docs/model.md), the first
    window of each link is not counted.

    When the function begins, column 2 of `ws.activity` has the number of periods of each link. The function overwrites
    columns 2 and 3. Column 2 gets the cycles in one window of the link that are also in windows of earlier rows. Column
    3 gets the cycles in one period of the link that are in a window of this row or of earlier rows.
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
    """Smallest stall in cycles over all choices of double buffers. The first choice with this stall is applied. `v` is
    the variant of the spatial factors: 0 fractional, 1 integer.
    """
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
    """Compute stall, on-loading and off-loading in cycles and write them to `ws.totals`. `v` is the variant of the
    spatial factors: 0 fractional, 1 integer.
    """
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
