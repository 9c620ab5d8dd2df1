"""On-loading and off-loading: what must come before the array starts, and go after it ends (compiled; zigzag-dse
3.9.1).

`every_transfer_takes_port_time` repairs what of it the reference counts twice or not at all (docs/model.md).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.reuse_kernel import WIDE_UNTIL_ADDED
from tilewright.cost.workspace import OFFLOADING, ONLOADING
from tilewright.hardware.core import FH, FL, TH, TL

SERIAL_HALF_SHARED = SWITCHES.index("serial_half_shared_loading")
LEVEL_FLOOR = SWITCHES.index("per_level_loading_floor")
PORT_TIME = SWITCHES.index("every_transfer_takes_port_time")


@kernel
def computing_transfers(problem, o, x, count):
    """Transfers of a link while the array computes: all but the first of an input and the last of an output.

    Partial sums that come back are no on-loading, so that all their transfers are; the reference leaves one out (B42).
    """
    if problem.switches[PORT_TIME] and o == OUTPUT_INDEX and (x == TL or x == FH):
        return count
    return count - 1


@kernel
def add_loading(problem, ws, v, busy_cycles):
    """Fill on-loading and off-loading of `ws.totals` for a computation of so many cycles."""
    if problem.switches[PORT_TIME]:
        share_port_time(problem, ws, v, busy_cycles)
        return
    load_ports(problem, ws, v, busy_cycles)
    ws.totals[ONLOADING] = onloading(problem, ws)
    ws.totals[OFFLOADING] = offloading(problem, ws)


@kernel
def share_port_time(problem, ws, v, busy_cycles):
    """On-loading and off-loading where every transfer takes the time of its port (switch B42).

    While the array computes no more of the loading can be hidden than it computes, and on each port no more than what
    that has left. What is not hidden counts as on-loading as far as that can be.
    """
    bound_loads(problem, ws, v)
    set_loads(problem, ws, False)
    all_on = onloading(problem, ws)
    all_off = offloading(problem, ws)
    set_loads(problem, ws, True)
    on = onloading(problem, ws)
    off = offloading(problem, ws)
    visible = max(busy_cycles + on + off, all_on + all_off)
    for p in range(problem.port_count):
        busy = port_computing_cycles(problem, ws, v, p)
        if load_fully(problem, ws, p):
            visible = max(visible, busy + onloading(problem, ws) + offloading(problem, ws))
            set_loads(problem, ws, True)
    rest = visible - busy_cycles - on - off
    more = min(rest, all_on - on)
    ws.totals[ONLOADING] = on + more
    ws.totals[OFFLOADING] = off + rest - more


@kernel
def bound_loads(problem, ws, v):
    """Cycles of loading on each link, if nothing of it is hidden and if all that can be hidden is.

    Only a tensor that moves as a whole once can go on while the array computes, down to the part without which nothing
    can begin; what goes to or comes from the array itself cannot.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                loads = ws.count[v, o, m, x] > 0 and (o != OUTPUT_INDEX or x == TH or x == FL)
                full = float(ws.transfer_cycles[o, m, x]) if loads else 0.0
                ws.full_load[o, m, x] = full
                ws.floor_load[o, m, x] = full
                at_array = m == 0 and (x == TL or x == FL)
                if full > 0 and ws.count[v, o, m, x] == 1 and not at_array:
                    ws.floor_load[o, m, x] = min(full, float(loading_floor(problem, ws, v, o, m, x)))


@kernel
def set_loads(problem, ws, hidden):
    """Let all of the loading be hidden that can be, or nothing."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                ws.load[o, m, x] = ws.floor_load[o, m, x] if hidden else ws.full_load[o, m, x]


@kernel
def port_computing_cycles(problem, ws, v, p):
    """Cycles of all transfers of a port while the array computes."""
    cycles = 0
    for s in range(problem.port_start[p], problem.port_start[p + 1]):
        o = problem.service_operand[s]
        m = problem.service_level[s]
        x = problem.service_direction[s]
        count = ws.count[v, o, m, x]
        if count > 0:
            cycles += ws.transfer_cycles[o, m, x] * computing_transfers(problem, o, x, count)
    return float(cycles)


@kernel
def load_fully(problem, ws, p):
    """Let nothing be hidden on one port; False if nothing could be anyway."""
    changed = False
    for s in range(problem.port_start[p], problem.port_start[p + 1]):
        o = problem.service_operand[s]
        m = problem.service_level[s]
        x = problem.service_direction[s]
        if ws.full_load[o, m, x] > ws.load[o, m, x]:
            ws.load[o, m, x] = ws.full_load[o, m, x]
            changed = True
    return changed


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
    cycles = first_tile_cycles(problem, ws, v, o, m, x)
    if problem.switches[LEVEL_FLOOR]:
        bits = ws.amount[v, o, m, x] * ws.precision[v, o, m, x]
        cycles = min(cycles, math.ceil(bits / problem.bandwidth_max_bits[o, m, x]))
    return cycles


@kernel
def first_tile_cycles(problem, ws, v, o, m, x):
    """Cycles of the first tile over a link, also where that is more than one transfer."""
    at_lanes = o == OUTPUT_INDEX and m == 0 and x == TH and problem.switches[WIDE_UNTIL_ADDED]
    bits = ws.tile_elements[v, o, 1] * (ws.precision[v, o, m, x] if at_lanes else ws.tile_precision[v, o, 1])
    if problem.switches[LEVEL_FLOOR]:
        for a in range(1, m + 1):
            bits *= problem.boost[v, o, a]
    wide = problem.bandwidth_max_bits[o, m, x]
    return math.ceil(bits / wide) if wide > 0 else 0


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

    Shared: both ports also serve the other input. The reference keeps only the last half-shared pair (B16), and leaves
    out the first transfer to the array (B42).
    """
    shared = half_shared = individual = 0.0
    if problem.switches[PORT_TIME]:
        p = problem.port_of[o, 0, TL]
        if p >= 0 and problem.port_shared_by_inputs[p]:
            shared += ws.load[o, 0, TL]
        else:
            individual += ws.load[o, 0, TL]
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
    """Off-loading cycles: the last outputs climb from level to level, under B42 from the array on."""
    cycles = ws.load[OUTPUT_INDEX, 0, FL] if problem.switches[PORT_TIME] else 0.0
    for m in range(problem.level_count[OUTPUT_INDEX] - 1):
        cycles += max(ws.load[OUTPUT_INDEX, m, TH], ws.load[OUTPUT_INDEX, m + 1, FL])
    return cycles
