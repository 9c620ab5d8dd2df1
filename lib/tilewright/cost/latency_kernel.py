"""Latency: transfer windows, stalls per port, loading before and after (compiled; zigzag-dse 3.9.1, latency).

The union of transfer windows on a port is computed from the nesting of their periods (every period is a product of the
inner loops of one order, so each divides the next), not on a time line: the cost does not grow with cycle counts.
"""

import math

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.workspace import OFFLOADING, ONLOADING, STALL
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.profile import SWITCHES

SERIAL_HALF_SHARED = SWITCHES.index("serial_half_shared_loading")
CONSISTENT_UNION = SWITCHES.index("consistent_window_union")
LEVEL_FLOOR = SWITCHES.index("per_level_loading_floor")


@kernel
def measure_utilization(problem, ws):
    """Share of each memory that each operand takes, alone and with its neighbours, whole and effective.

    Effective: without the part that outer relevant loops replace while the memory is in use.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            size = problem.memory_bits[problem.level_memory[o, m]]
            bits = ws.tile_elements[0, o, m + 1] * ws.tile_precision[0, o, m + 1]
            ws.utilization[o, m] = bits / size
            ws.effective[o, m] = (bits // ws.top_relevant[o, m + 1]) / size
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
    """Where the next tile can be written while the present one is in use; room once promised is taken."""
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
def time_links(problem, ws, v):
    """Cycles that one transfer of each link takes, and cycles it may take without stopping the array."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                wide = problem.bandwidth_max_bits[o, m, x]
                bits = ws.amount[v, o, m, x] * ws.precision[v, o, m, x]
                ws.transfer_cycles[o, m, x] = np.int64(math.ceil(bits / wide)) if wide > 0 else 0
                buffered = ws.double_buffered[o, m] if x == TL or x == FL else ws.double_buffered[o, m + 1]
                ws.allowed_cycles[o, m, x] = ws.period[v, o, m, x] if buffered else ws.window[v, o, m, x]


@kernel
def stall_of_ports(problem, ws, v):
    """Stall of the worst port; each port's own stall or slack goes to `ws.port_stall`. Returns the stall."""
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
            slack = (ws.transfer_cycles[o, m, x] - ws.allowed_cycles[o, m, x]) * (periods - 1)
            if slack > 0:
                positive += slack
            else:
                negative += slack
            windows += ws.allowed_cycles[o, m, x] * (periods - 1)
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
    """Insert one activity into the scratch list, sorted by period, first come first on ties."""
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
    """Cycles before `time` that some of the `count` activities of shortest period may use.

    Reads what `window_union` has stored for them: column 2 the cycles marked inside the activity's own window by the
    shorter ones, column 3 the union over one of its periods.
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
    """Union of the allowed windows of a port's activities over the whole layer.

    Column 3 of an activity becomes the union over one of its periods of all activities up to it; column 2 the cycles
    that the shorter ones mark inside its window (the number of periods of the longest one is kept aside first).
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
        return excluded + (repeats - 1) * ws.activity[count - 1, 3]
    return ws.activity[count - 1, 3] * repeats


@kernel
def load_ports(problem, ws, v, busy_cycles):
    """Cycles of loading on each link.

    A tensor that moves as a whole once may move during the computation in the spare time of its port, down to the
    part without which the computation cannot begin; larger loads first.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                ws.load[o, m, x] = 0.0
    for p in range(problem.port_count):
        whole = 0
        required = 0.0
        wide = 0
        for s in range(problem.port_start[p], problem.port_start[p + 1]):
            o = problem.service_operand[s]
            m = problem.service_level[s]
            x = problem.service_direction[s]
            wide = problem.bandwidth_max_bits[o, m, x]
            if o == OUTPUT_INDEX and (x == TL or x == FH):
                continue
            if ws.count[v, o, m, x] > 1:
                ws.load[o, m, x] = ws.transfer_cycles[o, m, x]
                if problem.switches[LEVEL_FLOOR]:
                    required += ws.exact_bandwidth[v, o, m, x]
                else:
                    required += ws.bandwidth[v, o, m, x]
            elif ws.count[v, o, m, x] == 1:
                insert_load(
                    ws, whole, float(ws.transfer_cycles[o, m, x]), float(loading_floor(problem, ws, v, o, m, x)), s
                )
                whole += 1
        if whole == 0:
            continue
        spare = max(0.0, ((wide - required) / wide) * busy_cycles)
        for i in range(whole):
            reduction = min(max(0.0, ws.loading[i] - ws.loading_floor[i]), spare)
            spare -= reduction
            s = ws.loading_service[i]
            o = problem.service_operand[s]
            ws.load[o, problem.service_level[s], problem.service_direction[s]] = ws.loading[i] - reduction


@kernel
def loading_floor(problem, ws, v, o, m, x):
    """Cycles of the first tile, which must be there before computing starts.

    The reference takes the tile of one innermost memory at every level (B19); `per_level_loading_floor` takes those of
    all distinct innermost memories that this link feeds.
    """
    wide = problem.bandwidth_max_bits[o, m, x]
    bits = ws.tile_elements[v, o, 1] * ws.tile_precision[v, o, 1]
    if problem.switches[LEVEL_FLOOR]:
        for a in range(1, m + 1):
            bits *= problem.boost[v, o, a]
        bits = min(bits, ws.amount[v, o, m, x] * ws.precision[v, o, m, x])
    return math.ceil(bits / wide)


@kernel
def insert_load(ws, count, cycles, floor, service):
    """Insert one whole-tensor load into the scratch list, largest first, first come first on ties."""
    i = count
    while i > 0 and ws.loading[i - 1] < cycles:
        ws.loading[i] = ws.loading[i - 1]
        ws.loading_floor[i] = ws.loading_floor[i - 1]
        ws.loading_service[i] = ws.loading_service[i - 1]
        i -= 1
    ws.loading[i] = cycles
    ws.loading_floor[i] = floor
    ws.loading_service[i] = service


@kernel
def onloading_of_input(problem, ws, o):
    """(shared, half-shared, individual) on-loading cycles of one input: a sum over pairs of neighbouring memories.

    Shared: both ports also serve the other input. The reference keeps only the last half-shared pair (B16).
    """
    shared = half_shared = individual = 0.0
    for m in range(problem.level_count[o] - 1):
        cycles = max(ws.load[o, m, FH], ws.load[o, m + 1, TL])
        below = problem.port_of[o, m, FH]
        above = problem.port_of[o, m + 1, TL]
        flags = 0
        if below >= 0 and problem.port_shared_by_inputs[below]:
            flags += 1
        if above >= 0 and problem.port_shared_by_inputs[above]:
            flags += 1
        if flags == 2:
            shared += cycles
        elif flags == 0:
            individual += cycles
        elif problem.switches[SERIAL_HALF_SHARED]:
            shared += cycles
        else:
            half_shared = cycles
    return shared, half_shared, individual


@kernel
def onloading(problem, ws):
    """On-loading cycles: shared links of two inputs take turns, their other links work at the same time.

    A single input uses all its links one after another; the reference counts only its individual ones (B16).
    """
    sx, hx, ix = onloading_of_input(problem, ws, 1)
    if problem.operand_count == 2:
        return sx + ix if problem.switches[SERIAL_HALF_SHARED] else ix
    sy, hy, iy = onloading_of_input(problem, ws, 2)
    return min(sx + max(sy + hy + iy, hx + ix), sy + max(sx + hx + ix, hy + iy))


@kernel
def offloading(problem, ws):
    """Off-loading cycles: the last outputs climb from level to level."""
    cycles = 0.0
    for m in range(problem.level_count[OUTPUT_INDEX] - 1):
        cycles += max(ws.load[OUTPUT_INDEX, m, TH], ws.load[OUTPUT_INDEX, m + 1, FL])
    return cycles


@kernel
def add_latency(problem, ws, v, total_cycles):
    """Fill stall, on-loading and off-loading of `ws.totals`."""
    measure_utilization(problem, ws)
    decide_double_buffers(problem, ws)
    time_links(problem, ws, v)
    stall = stall_of_ports(problem, ws, v)
    load_ports(problem, ws, v, float(total_cycles + stall))
    ws.totals[STALL] = stall
    ws.totals[ONLOADING] = onloading(problem, ws)
    ws.totals[OFFLOADING] = offloading(problem, ws)
