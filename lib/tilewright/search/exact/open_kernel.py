"""Lower bounds of the cost of open boundaries, including the time for which they use ports (compiled).

docs/proofs/exact-search.md, 3 to 5, has the proofs. A boundary is open until the search has placed it. An open boundary
costs at least the minimum over all multisets of loops that can still lie below it. A boundary is contested if the
allocator chooses its position only for the complete order. The path of a label (partial loop order) is the list of its
placed loops. A contested boundary lies either on this path or above a loop that is not placed yet. Its possible
positions on the path are called candidates.

A lower bound of the time of a port is a sum: the time while the array computes, and the loading time before and after.
Small tiles load fast but move often, and data that do not move during the computation move before or after it. The
bound of such a sum is therefore sharper than the sum of separate bounds (docs/proofs/exact-latency.md, 4).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.loading_kernel import PORT_TIME, SERIAL_HALF_SHARED, computing_transfers, onloading
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.search.exact.labels_kernel import keeps_sums
from tilewright.search.exact.lattice_record import LINK_TL, MAX_BUSY_PORTS, NO_PORT
from tilewright.search.exact.sums_kernel import FAR, IMPOSSIBLE, repeats_at, whole_at
from tilewright.search.exact.tables_kernel import direction_of, most_precision, symbol_at, tile_bits_of


@kernel
def is_open(problem, x, o):
    """True if operand `o` has a boundary that is not placed yet."""
    return x.child_level[o] < problem.level_count[o] - 1


@kernel
def least_point(x, o):
    """Lattice point of the loops that are certain to lie below the next boundary of operand `o`. The next boundary is
    the innermost boundary that is not placed yet.

    If the place of this boundary depends on the complete order (`contested`), only the loops below the last placed
    boundary of the operand are certain. Otherwise, all placed loops are certain.
    """
    b = x.first_boundary[o] + x.child_level[o]
    return x.child_start[o] if x.contested[b] else x.child_lattice


@kernel
def gather_candidates(problem, x, o, placed):
    """Write the candidates of operand `o` to the record (`CANDIDATE_FIELDS`). The uppermost boundary of the operand is
    contested: the allocator chooses its position only when the order is complete. The `placed` loops of the child, the
    partial loop order that is being made, form a path of lattice points (multisets of loops). Each point of this path
    at which the boundary can lie is a candidate.

    The slice of a point is the tile of the operand with the loops up to this point of the path. The first slice that
    exceeds the memory ends the candidates: the point of this slice and all later points of the path are no candidates.
    A second rule applies if larger slices never cost more (`x.never_costlier`). If a slice then fits next to all data
    of the other operands of the memory, points with smaller slices are no candidates.
    """
    m = problem.level_count[o] - 2
    k = problem.level_memory[o, m]
    beside = 0.0
    for j in range(problem.operand_count):
        other = problem.memory_operands[k, j]
        if other >= 0 and other != o:
            level = problem.memory_levels[k, j]
            bits = most_precision(problem, other, level)
            beside += x.elements[x.first_level[other] + level, x.lattice_size - 1] * bits
    ordered = x.never_costlier[o] and not problem.force_double_buffering[k] and not problem.even
    point = 0
    x.candidate_count[o] = 0
    x.may_come[o] = 1
    for i in range(placed + 1):
        if i > 0:
            point += x.stride[symbol_at(x, i - 1)]
        if i < placed and x.cycles[point] < x.cycles[x.child_start[o]]:
            continue
        bits = tile_bits_of(problem, x, o, m, point, keeps_sums(x, o, m))
        if bits > problem.memory_bits[k]:
            x.may_come[o] = 0
            return
        if ordered and bits + beside <= problem.memory_bits[k]:
            x.candidate_count[o] = 0
        x.candidate[o, x.candidate_count[o]] = point
        x.candidate_count[o] += 1


@kernel
def is_gathered(problem, x, o):
    """True if `gather_candidates` lists the possible positions of the next boundary of operand `o`. The function does
    so if this boundary is the uppermost boundary of the operand and is contested.
    """
    m = x.child_level[o]
    return m == problem.level_count[o] - 2 and x.contested[x.first_boundary[o] + m]


@kernel
def energy_of_open(problem, x, o):
    """Least energy in pJ of the open boundaries of operand `o`, which are the boundaries that the search has not placed
    yet.
    """
    b = x.first_boundary[o] + x.child_level[o]
    if not is_gathered(problem, x, o):
        return x.energy_to_go[b, least_point(x, o)]
    least = x.energy_to_go[b, x.child_lattice] if x.may_come[o] else math.inf
    for i in range(x.candidate_count[o]):
        least = min(least, x.link_energy[b, x.candidate[o, i]])
    return least


@kernel
def load_of_open(problem, x, o, m, q):
    """Least loading time in cycles of link `q` of the boundary above level `m` of operand `o`. This boundary is not
    placed yet.

    If the switch `every_transfer_takes_port_time` of the model is on, the result is the time of one full transfer. The
    caller then decides which part of this time can be hidden.
    """
    b = x.first_boundary[o] + m
    if not is_gathered(problem, x, o):
        return x.load_to_go[b, q, least_point(x, o)]
    least = x.load_to_go[b, q, x.child_lattice] if x.may_come[o] else FAR
    for i in range(x.candidate_count[o]):
        point = x.candidate[o, i]
        load = x.link_cycles[b, q, point]
        if x.link_count[b, q, point] <= 1 and not problem.switches[PORT_TIME]:
            load = min(load, x.load_to_go[b, q, point])
        least = min(least, load)
    return least


@kernel
def cycles_of_open(problem, x, o, r, everything):
    """Least cycles for which the open boundaries of operand `o` keep one port busy. The port is number `r` in the list
    `busy_port` of the operand's next boundary, which is its innermost open boundary.

    The cycles include transfers while the array computes. If `everything` is true, the cycles also include on- and
    off-loading.
    """
    b = x.first_boundary[o] + x.child_level[o]
    gathered = is_gathered(problem, x, o)
    point = x.child_lattice if gathered else least_point(x, o)
    least = x.traffic_to_go[b, r, point] if everything else x.busy_to_go[b, r, point]
    if not gathered:
        return least
    least = least if x.may_come[o] else FAR
    for i in range(x.candidate_count[o]):
        least = min(least, candidate_cycles(problem, x, o, r, x.candidate[o, i], everything))
    return least


@kernel
def candidate_cycles(problem, x, o, r, point, everything):
    """Cycles for which the next boundary of operand `o` keeps one port busy if the boundary lies at `point`. The port
    is number `r` in the list `busy_port` of this boundary.

    Only transfers during the computation count, or all transfers if `everything` is true.
    """
    b = x.first_boundary[o] + x.child_level[o]
    cycles = 0
    for q in range(4):
        m = x.child_level[o] + (1 if q >= LINK_TL else 0)
        if problem.port_of[o, m, direction_of(q)] == x.busy_port[b, r]:
            count = x.link_count[b, q, point]
            transfers = count if everything else computing_transfers(problem, o, direction_of(q), count)
            cycles += x.link_cycles[b, q, point] * max(0, transfers)
    return cycles


@kernel
def whole_transfer(problem, x, o):
    """Cycles to move the whole tensor of operand `o` once over the port of its topmost memory.

    The result is IMPOSSIBLE if the tensor is split into tiles in every completion.
    """
    if not is_open(problem, x, o):
        return whole_at(problem, x, o, x.child_boundary[x.first_boundary[o] + problem.level_count[o] - 2])
    if is_gathered(problem, x, o) and not x.may_come[o]:
        return IMPOSSIBLE
    return x.top_whole[o]


@kernel
def least_repeats(x, o, point):
    """Minimum of each result of `repeats_at` over all positions of the topmost boundary above the loops of `point`."""
    return x.top_load[o, point], x.top_busy[o, point], x.top_joint[o, point], x.top_bandwidth[o, point]


@kernel
def gathered_repeats(problem, x, o):
    """Minimum of each of the four results of `repeats_at` over all possible positions of the topmost boundary of
    operand `o`. This boundary is contested: its position depends on the complete order.

    The possible positions are the candidates among the loops placed so far. If the field `may_come` of the operand is
    true, positions above loops that are not placed yet count, too.
    """
    load, busy, joint, bandwidth = FAR, FAR, FAR, math.inf
    if x.may_come[o]:
        load, busy, joint, bandwidth = least_repeats(x, o, x.child_lattice)
    for i in range(x.candidate_count[o]):
        one, rest, both, wide = repeats_at(problem, x, o, x.candidate[o, i])
        if wide < math.inf:
            load = min(load, one)
            busy = min(busy, rest)
            joint = min(joint, both)
            bandwidth = min(bandwidth, wide)
    return load, busy, joint, bandwidth


@kernel
def repeated_transfers(problem, x, o):
    """Minimum of each result of `repeats_at` for the topmost boundary of operand `o`, over all completions."""
    if not is_open(problem, x, o):
        return repeats_at(problem, x, o, x.child_boundary[x.first_boundary[o] + problem.level_count[o] - 2])
    if is_gathered(problem, x, o):
        return gathered_repeats(problem, x, o)
    if x.child_level[o] == problem.level_count[o] - 2:
        return least_repeats(x, o, least_point(x, o))
    return least_repeats(x, o, x.child_start[o] if x.any_contested else x.child_lattice)


@kernel
def loading_of(problem, ws, x, o, levels):
    """Lower bound, in cycles, of the on-loading or off-loading time of operand `o`, from `ws.load`. Only the `levels`
    lowest boundaries of the operand count.
    """
    cycles = 0.0
    up = TH if o == OUTPUT_INDEX else TH + 1
    down = FL if o == OUTPUT_INDEX else TL
    for m in range(levels):
        if x.adds_up[x.first_boundary[o] + m]:
            cycles += max(ws.load[o, m, up], ws.load[o, m + 1, down])
    return cycles


@kernel
def joint_of_open(problem, x, o, p):
    """Lower bound in cycles of a sum over the open boundaries of operand `o`. The sum has two terms: the time for which
    the boundaries keep port `p` busy while the array computes, and the loading time of the boundaries.
    """
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
    return x.joint_to_go[b, NO_PORT, point]


@kernel
def bound_port(problem, ws, x, p, counted):
    """Lower bound in cycles of the latency, not counting the drain, from the busy time of port `p` and loading times.

    The loading times of input `counted` and of the output are added to the busy time. Small tiles load fast but move
    often, so one bound for the sum of both times is sharper than the sum of a bound for each time.
    """
    cycles = float(x.port_busy_cycles[p])
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
    """Largest value of `bound_port` in cycles, over all inputs and over all ports that serve an open link
    (`open_ports`); 0 if no port serves an open link.

    `ws.load` holds the least loading times of the known links in cycles.
    """
    bound = 0.0
    for p in range(problem.port_count):
        if x.port_open[p]:
            for counted in range(1, problem.operand_count):
                bound = max(bound, bound_port(problem, ws, x, p, counted))
    return bound


@kernel
def bound_traffic(problem, ws, x, v, p):
    """Lower bound in cycles of the latency without the drain, from the traffic of port `p`. The bound is the time of
    all transfers over this port plus the loading time over the other ports.

    The bound is valid if the switch `every_transfer_takes_port_time` of the model is on (docs/proofs/exact-latency.md,
    4). `ws.load` holds the least loading times of all links. The result is 0 if the port serves an input and transfers
    of the two inputs can overlap.
    """
    cycles = float(x.port_all_cycles[p])
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
        return 0.0  # transfers of the two inputs can overlap
    shared, individual = onloading_beside(problem, ws, 1 if first else 2, p)
    if problem.operand_count > 2 and problem.port_shared_by_inputs[p]:
        other_shared, other_individual = onloading_beside(problem, ws, 2 if first else 1, p)
        return cycles + beside + shared + other_shared + min(individual, other_individual)
    return cycles + beside + shared + individual


@kernel
def onloading_beside(problem, ws, o, p):
    """On-loading time in cycles of input `o` that does not use port `p`, as a tuple (shared, individual).

    The time is a sum over pairs of neighbouring memories; the array counts as the neighbour of the innermost memory.
    Pairs that move the input over port `p` on one of their sides do not count. `shared` is the sum over the pairs with
    a port that both inputs use, and `individual` is the sum over all other pairs.
    """
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
    """Off-loading time in cycles that does not use port `p`. The time is a sum over pairs of neighbouring memories; the
    array counts as the neighbour of the innermost memory. Pairs that move the output over port `p` on one of their
    sides do not count.
    """
    cycles = ws.load[OUTPUT_INDEX, 0, FL] if problem.port_of[OUTPUT_INDEX, 0, FL] != p else 0.0
    for m in range(problem.level_count[OUTPUT_INDEX] - 1):
        if problem.port_of[OUTPUT_INDEX, m, TH] != p and problem.port_of[OUTPUT_INDEX, m + 1, FL] != p:
            cycles += max(ws.load[OUTPUT_INDEX, m, TH], ws.load[OUTPUT_INDEX, m + 1, FL])
    return cycles


@kernel
def bound_top_port(problem, x, p, counted, shortest):
    """Lower bound in cycles of the latency without the drain, from the use of port `p` of topmost memories.

    Each tensor moves either once as a whole or in repeated transfers; the bound is the minimum over all combinations of
    these choices. For input `counted` and the output, the bound includes the transfers before or after the computation.
    For any other input, the bound includes only transfers during the computation. `shortest` is a lower bound of the
    cycles in which the array computes or stalls.
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
            if not can:
                break
            whole = ((choice >> o) & 1) == 1
            if x.top_port[o] != p:
                can = can and not whole
                continue
            counts = o == OUTPUT_INDEX or o == counted
            if whole:
                load = whole_transfer(problem, x, o)
                can = can and load != IMPOSSIBLE
                single += load if counts else 0
                continue
            load, after, both, bandwidth = repeated_transfers(problem, x, o)
            can = can and bandwidth < math.inf
            wide = problem.bandwidth_max_bits[o, problem.level_count[o] - 1, FL if o == OUTPUT_INDEX else TL]
            band += bandwidth / wide
            if counts:
                loads += load
                joint += both
            else:
                busy += after
        if can:
            computing = max(shortest + loads, joint + busy)
            taken = min(1.0, band)
            moving = single + max(loads + taken * shortest, taken * (joint + busy))
            least = min(least, max(float(computing), moving))
    return least


@kernel
def bound_top(problem, ws, x, shortest):
    """Lower bound in cycles of the latency without the drain: the largest of the bounds that follow from the ports of
    topmost memories.

    `shortest` is a lower bound of the cycles in which the array computes or stalls. `ws.load` holds the least loading
    times of all links.
    """
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
