"""Lower bounds of latency from what must pass a port, while the array computes or before and after (compiled).

Small tiles load fast but move often, and what does not move during the computation moves outside it: bounds of such
sums are sharper than sums of bounds (docs/exact.md, 4).
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.loading_kernel import SERIAL_HALF_SHARED, onloading
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.search.exact_open_kernel import cycles_of_open, is_gathered, is_open, least_point, top_transfers
from tilewright.search.exact_record import MAX_BUSY_PORTS


@kernel
def loading_of(problem, ws, x, o, levels):
    """Least on- or off-loading of an operand over its lowest boundaries, from the loads in `ws`."""
    cycles = 0.0
    up = TH if o == OUTPUT_INDEX else TH + 1
    down = FL if o == OUTPUT_INDEX else TL
    for m in range(levels):
        if x.adds_up[x.first_boundary[o] + m]:
            cycles += max(ws.load[o, m, up], ws.load[o, m + 1, down])
    return cycles


@kernel
def joint_of_open(problem, x, o, p):
    """The least sum of the time that port `p` spends on the open boundaries of an operand, and of their loading."""
    b = x.first_boundary[o] + x.child_level[o]
    if is_gathered(problem, x, o):
        for r in range(MAX_BUSY_PORTS):
            if x.busy_port[b, r] == p:
                return cycles_of_open(problem, x, o, r, False)
        return 0
    point = least_point(x, o)
    for r in range(MAX_BUSY_PORTS):
        if x.busy_port[b, r] == p:
            return x.joint_to_go[b, r, point]
    return x.pairs_to_go[b, point]


@kernel
def bound_port(problem, ws, x, p, counted):
    """Least latency without drain from the time one port is busy, and the loading of input `counted` and the output.

    Small tiles load fast but move often; a bound of the sum is sharper than the sum of the bounds.
    """
    cycles = float(x.port_known[p])
    for o in range(problem.operand_count):
        adds = o == OUTPUT_INDEX or o == counted
        if is_open(problem, x, o):
            if adds:
                cycles += joint_of_open(problem, x, o, p)
            else:
                b = x.first_boundary[o] + x.child_level[o]
                for r in range(MAX_BUSY_PORTS):
                    if x.busy_port[b, r] == p:
                        cycles += cycles_of_open(problem, x, o, r, False)
        if adds:
            cycles += loading_of(problem, ws, x, o, min(x.child_level[o], problem.level_count[o] - 1))
    return cycles


@kernel
def bound_ports(problem, ws, x):
    """The largest bound from an open port; `ws.load` holds least loads of the known links."""
    bound = 0.0
    for p in range(problem.port_count):
        if x.port_open[p]:
            for counted in range(1, problem.operand_count):
                bound = max(bound, bound_port(problem, ws, x, p, counted))
    return bound


@kernel
def bound_traffic(problem, ws, x, v, p):
    """Least latency without drain from all that passes one port, and the loading that other ports add to that.

    Holds where every transfer takes port time (docs/exact.md, 4); `ws.load` holds least loads of all links.
    """
    cycles = float(x.port_traffic[p])
    first = second = False
    for s in range(problem.port_start[p], problem.port_start[p + 1]):
        o = problem.service_operand[s]
        m = problem.service_level[s]
        d = problem.service_direction[s]
        cycles += ws.transfer_cycles[o, m, d] * max(0, ws.count[v, o, m, d])
        first = first or o == 1
        second = second or o == 2
    beside = offloading_beside(problem, ws, p)
    if not first and not second:
        return cycles + beside + onloading(problem, ws)
    if not problem.switches[SERIAL_HALF_SHARED]:
        return 0.0  # transfers of both inputs may overlap
    shared, individual = onloading_beside(problem, ws, 1 if first else 2, p)
    if problem.operand_count > 2 and problem.port_shared_by_inputs[p]:
        other_shared, other_individual = onloading_beside(problem, ws, 2 if first else 1, p)
        return cycles + beside + shared + other_shared + min(individual, other_individual)
    return cycles + beside + shared + individual


@kernel
def onloading_beside(problem, ws, o, p):
    """(shared, individual) on-loading cycles of one input, over pairs of memories that do not use port `p`."""
    shared = individual = 0.0
    q = problem.port_of[o, 0, TL]
    if q != p:
        if q >= 0 and problem.port_shared_by_inputs[q]:
            shared += ws.load[o, 0, TL]
        else:
            individual += ws.load[o, 0, TL]
    for m in range(problem.level_count[o] - 1):
        below = problem.port_of[o, m, FH]
        above = problem.port_of[o, m + 1, TL]
        if below == p or above == p:
            continue
        cycles = max(ws.load[o, m, FH], ws.load[o, m + 1, TL])
        if (below >= 0 and problem.port_shared_by_inputs[below]) or (
            above >= 0 and problem.port_shared_by_inputs[above]
        ):
            shared += cycles
        else:
            individual += cycles
    return shared, individual


@kernel
def offloading_beside(problem, ws, p):
    """Off-loading cycles over pairs of memories that do not use port `p`."""
    cycles = ws.load[OUTPUT_INDEX, 0, FL] if problem.port_of[OUTPUT_INDEX, 0, FL] != p else 0.0
    for m in range(problem.level_count[OUTPUT_INDEX] - 1):
        if problem.port_of[OUTPUT_INDEX, m, TH] != p and problem.port_of[OUTPUT_INDEX, m + 1, FL] != p:
            cycles += max(ws.load[OUTPUT_INDEX, m, TH], ws.load[OUTPUT_INDEX, m + 1, FL])
    return cycles


@kernel
def bound_top_port(problem, x, p, counted, shortest):
    """Least latency without drain, from all that moves over the port of topmost memories.

    What of a tensor does not move while the array computes, moves before or after: for input `counted` and the output
    both parts are added. Tensors move whole or in repeated transfers; the least over all such choices counts.
    """
    least = math.inf
    for choice in range(1 << problem.operand_count):
        busy = 0
        loads = 0
        joint = 0
        single = 0
        band = 0.0
        can = True
        for o in range(problem.operand_count):
            whole = ((choice >> o) & 1) == 1
            if x.top_port[o] != p:
                can = can and not whole
                continue
            can = can and top_transfers(problem, x, o, whole)
            if not can:
                break
            counts = o == OUTPUT_INDEX or o == counted
            if whole:
                single += x.moved_load if counts else 0
                continue
            wide = problem.bandwidth_max_bits[o, problem.level_count[o] - 1, FL if o == OUTPUT_INDEX else TL]
            band += x.moved_bandwidth / wide
            if counts:
                loads += x.moved_load
                joint += x.moved_joint
            else:
                busy += x.moved_busy
        if can:
            computing = max(shortest + loads, joint + busy)
            taken = min(1.0, band)
            moving = single + max(loads + taken * shortest, taken * (joint + busy))
            least = min(least, max(float(computing), moving))
    return least


@kernel
def bound_top(problem, ws, x, shortest):
    """The largest of the bounds from the ports of topmost memories; `ws.load` holds least loads of all links."""
    bound = 0.0
    for o in range(problem.operand_count):
        p = x.top_port[o]
        if p < 0:
            continue
        for counted in range(1, problem.operand_count):
            top = problem.level_count[counted] - 2
            if top >= 0 and x.adds_up[x.first_boundary[counted] + top]:
                least = bound_top_port(problem, x, p, counted, shortest)
            else:
                least = bound_top_port(problem, x, p, -1, shortest)
            least += loading_of(problem, ws, x, counted, top)
            bound = max(bound, least + loading_of(problem, ws, x, OUTPUT_INDEX, problem.level_count[OUTPUT_INDEX] - 2))
        if o == OUTPUT_INDEX and x.top_port[1] == p and x.top_port[problem.operand_count - 1] == p:
            break
    return bound
