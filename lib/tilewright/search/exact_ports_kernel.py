"""Lower bounds of latency from what must pass a port, while the array computes or before and after (compiled).

Small tiles load fast but move often, and what does not move during the computation moves outside it: bounds of such
sums are sharper than sums of bounds (docs/exact.md, 4).
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.hardware.core import FL, TH, TL
from tilewright.search.exact_open_kernel import busy_of_open, is_gathered, is_open, least_point, top_transfers
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
                return busy_of_open(problem, x, o, r)
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
                        cycles += busy_of_open(problem, x, o, r)
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
