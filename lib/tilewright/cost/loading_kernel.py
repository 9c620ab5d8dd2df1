"""Kernels for on-loading and off-loading, which are the transfers before and after the computation of the array.

The loading model is that of zigzag-dse 3.9.1. The model has two faults: some transfers take no port time, and one cycle
of computation can hide loading on several ports of a chain. The switch `every_transfer_takes_port_time` repairs both
faults (B42, docs/model.md).
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
    """Number of transfers of a link that take place while the array computes. `count` is the number of all transfers of
    the link.

    The first transfer of an input is on-loading, and the last transfer of an output is off-loading. All read-backs of
    partial sums take place while the array computes; the reference leaves out one read-back (fault B42, docs/model.md).
    """
    if problem.switches[PORT_TIME] and o == OUTPUT_INDEX and (x == TL or x == FH):
        return count
    return count - 1


@kernel
def add_loading(problem, ws, v, busy_cycles):
    """Compute the cycles of on-loading and off-loading and write them to `ws.totals`.

    `busy_cycles` is the number of cycles of the computation, including stalls.
    """
    if problem.switches[PORT_TIME]:
        share_port_time(problem, ws, v, busy_cycles)
        return
    load_ports(problem, ws, v, busy_cycles)
    ws.totals[ONLOADING] = onloading(problem, ws)
    ws.totals[OFFLOADING] = offloading(problem, ws)


@kernel
def share_port_time(problem, ws, v, busy_cycles):
    """Compute on-loading and off-loading in cycles with the switch `every_transfer_takes_port_time` (fault B42,
    docs/model.md).

    Loading that overlaps with the computation is hidden, in total at most `busy_cycles` cycles. A port hides loading
    only in cycles without a transfer of the computation. Loading that is not hidden first counts as on-loading, at most
    for as many cycles as on-loading takes without hiding. The remaining cycles count as off-loading.
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
    """Compute an upper and a lower bound of the loading cycles of each link.

    The upper bound hides no loading. The lower bound hides as much loading as possible. A tensor that moves in a single
    transfer can be loaded while the array computes, except for its first tile. The computation cannot begin without the
    first tile. Other tensors, and transfers to or from the array, cannot be hidden.
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
    """Set the loading cycles of each link: to their lower bound if `hidden` is true, else to their upper bound."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                ws.load[o, m, x] = ws.floor_load[o, m, x] if hidden else ws.full_load[o, m, x]


@kernel
def port_computing_cycles(problem, ws, v, p):
    """Cycles that all transfers on port `p` take while the array computes."""
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
    """Set the loading cycles of each link on port `p` to their upper bound. Returns False if the loading cycles of no
    link change.
    """
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
    """Compute the loading cycles of each link if the switch `every_transfer_takes_port_time` is off.

    A tensor that moves in a single transfer can be loaded during the computation, in the spare time of its port. Only
    its first tile must be loaded before the computation, which cannot begin without this tile. The spare time of a port
    goes to its largest loads first.
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
            own = problem.bandwidth_max_bits[o, m, x]
            if wide == 0:
                wide = own
            if o == OUTPUT_INDEX and (x == TL or x == FH):
                continue
            if ws.count[v, o, m, x] > 1:
                ws.load[o, m, x] = ws.transfer_cycles[o, m, x]
                # The links of a port have different widths only if some of them move compressed data.
                if problem.switches[LEVEL_FLOOR]:
                    required += ws.exact_bandwidth[v, o, m, x] * (wide / own)
                else:
                    required += ws.bandwidth[v, o, m, x] * (wide / own)
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
    """Cycles to load the part of a tensor that must be present before the computation starts (`first_tile_cycles`).

    In the reference, this part is the tile of one innermost memory, at every level (fault B19, docs/model.md). With the
    switch `per_level_loading_floor`, this part has the tiles of all innermost memories that the link feeds with
    different data, but at most one transfer of the link.
    """
    cycles = first_tile_cycles(problem, ws, v, o, m, x)
    if problem.switches[LEVEL_FLOOR]:
        bits = ws.amount[v, o, m, x] * ws.precision[v, o, m, x]
        cycles = min(cycles, math.ceil(bits / problem.bandwidth_max_bits[o, m, x]))
    return cycles


@kernel
def first_tile_cycles(problem, ws, v, o, m, x):
    """Cycles to move the first tile over a link. The first tile is the part of a tensor that must be present before the
    computation starts. The first tile can be larger than one transfer of the link.

    Without the switch `per_level_loading_floor`, the first tile is the tile of one innermost memory. With this switch,
    the first tile has the tiles of all innermost memories that the link feeds with different data.
    """
    at_lanes = o == OUTPUT_INDEX and m == 0 and x == TH and problem.switches[WIDE_UNTIL_ADDED]
    bits = ws.tile_elements[v, o, 1] * (ws.precision[v, o, m, x] if at_lanes else ws.tile_precision[v, o, 1])
    if problem.switches[LEVEL_FLOOR]:
        for a in range(1, m + 1):
            bits *= problem.boost[v, o, a]
    wide = problem.bandwidth_max_bits[o, m, x]
    return math.ceil(bits / wide) if wide > 0 else 0


@kernel
def insert_load(ws, count, cycles, floor, service):
    """Insert the load of a whole tensor into the list `ws.loading`. The largest load is first in the list.

    Equal loads stay in the order in which they are inserted.
    """
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
    """On-loading cycles of an input, as a triple (shared, half-shared, individual). Each number is for one class of
    pairs of neighbouring memories.

    A pair has two ports. The pair is shared if both ports also serve the other input, half-shared if exactly one port
    does, and otherwise individual. The reference counts only the outermost half-shared pair, and leaves out the first
    transfer to the array (faults B16 and B42, docs/model.md). With the switch `serial_half_shared_loading`, half-shared
    pairs count as shared.
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
    """On-loading cycles of all inputs together.

    Two inputs load over shared links one after the other, and over their individual links in parallel. A single input
    loads over all its links one after the other. For a single input, the reference counts only the individual links
    (fault B16, docs/model.md).
    """
    sx, hx, ix = onloading_of_input(problem, ws, 1)
    if problem.operand_count == 2:
        return sx + ix if problem.switches[SERIAL_HALF_SHARED] else ix
    sy, hy, iy = onloading_of_input(problem, ws, 2)
    return min(sx + max(sy + hy + iy, hx + ix), sy + max(sx + hx + ix, hy + iy))


@kernel
def offloading(problem, ws):
    """Off-loading cycles, in which the last outputs move up from one memory level to the next.

    With the switch `every_transfer_takes_port_time` (fault B42, docs/model.md), the transfer from the array also
    counts.
    """
    cycles = ws.load[OUTPUT_INDEX, 0, FL] if problem.switches[PORT_TIME] else 0.0
    for m in range(problem.level_count[OUTPUT_INDEX] - 1):
        cycles += max(ws.load[OUTPUT_INDEX, m, TH], ws.load[OUTPUT_INDEX, m + 1, FL])
    return cycles
