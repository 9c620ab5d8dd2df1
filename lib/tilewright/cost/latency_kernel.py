"""Latency: transfer windows and stalls per port (compiled; zigzag-dse 3.9.1, latency).

The union of transfer windows on a port is computed from the nesting of their periods (every period is a product of the
inner loops of one order, so each divides the next), not on a time line: the cost does not grow with cycle counts.
"""

import math

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.buffers_kernel import (
    BEST_BUFFERS,
    apply_buffer_choice,
    begin_buffer_choices,
    buffer_wherever_possible,
    decide_double_buffers,
    keep_buffer_choice,
    measure_utilization,
    next_buffer_choice,
    recall_buffer_choice,
)
from tilewright.cost.loading_kernel import add_loading, computing_transfers
from tilewright.cost.workspace import STALL
from tilewright.hardware.core import FL, TL
from tilewright.profile import SWITCHES

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
    """Cycles that one transfer of each link may take without stopping the array."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
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
        return excluded + (ws.total_cycles // ws.activity[count - 1, 1] - 1) * ws.activity[count - 1, 3]
    return ws.activity[count - 1, 3] * repeats


@kernel
def least_stall(problem, ws, v):
    """The stall with the double buffers that let the array wait least; the first such choice counts."""
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
    """Fill stall, on-loading and off-loading of `ws.totals`."""
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
