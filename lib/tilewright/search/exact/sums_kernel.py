"""The least that each boundary and those above it can still cost, from every point of the lattice on (compiled).

These are the minima over everything larger on which the lower bounds rest (docs/exact.md, 3 and 4).
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.loading_kernel import PORT_TIME, computing_transfers
from tilewright.hardware.core import FH, FL, TL
from tilewright.search.exact.lattice_record import LINK_FH, LINK_FL, LINK_TH, LINK_TL, MAX_BUSY_PORTS
from tilewright.search.exact.tables_kernel import direction_of
from tilewright.search.salsa_kernel import ENERGY_OBJECTIVE

FAR = 1 << 58
"""Cycles of what cannot be; sums of a few of them do not overflow."""


@kernel
def spread_whole(x):
    """Replace every number of `x.whole` by the least over all points that contain its own."""
    for j in range(x.symbol_count):
        stride = x.stride[j]
        block = stride * (x.multiplicity[j] + 1)
        for first in range(0, x.lattice_size, block):
            for point in range(first + block - stride - 1, first - 1, -1):
                x.whole[point] = min(x.whole[point], x.whole[point + stride])


@kernel
def spread_real(x):
    """Replace every number of `x.real` by the least over all points that contain its own."""
    for j in range(x.symbol_count):
        stride = x.stride[j]
        block = stride * (x.multiplicity[j] + 1)
        for first in range(0, x.lattice_size, block):
            for point in range(first + block - stride - 1, first - 1, -1):
                x.real[point] = min(x.real[point], x.real[point + stride])


@kernel
def sum_elements(problem, x):
    """The least tiles above each point, and the least innermost tile of each operand."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            row = x.first_level[o] + m
            for point in range(x.lattice_size):
                x.real[point] = x.elements[row, point]
            spread_real(x)
            for point in range(x.lattice_size):
                x.least_elements[row, point] = x.real[point]
        if problem.level_count[o] > 1:
            b = x.first_boundary[o]
            least = x.tile_bits[b, 0]
            for point in range(x.lattice_size):
                least = min(least, x.tile_bits[b, point])
            x.least_tile_bits[o] = least


@kernel
def sum_array(problem, x, o):
    """Least energy and number of periods of the link to the array."""
    for point in range(x.lattice_size):
        x.real[point] = x.array_energy[o, point] if x.stays[o, point] else math.inf
        x.whole[point] = x.array_count[o, point] if x.stays[o, point] else FAR
    spread_real(x)
    spread_whole(x)
    for point in range(x.lattice_size):
        x.array_energy_to_go[o, point] = x.real[point]
        x.array_count_to_go[o, point] = x.whole[point]


@kernel
def sum_energy(x, b, upper):
    """Least energy of boundary `b` and those above it; `upper` is the next one, -1 without."""
    for point in range(x.lattice_size):
        energy = x.link_energy[b, point] + (x.energy_to_go[upper, point] if upper >= 0 else 0.0)
        x.real[point] = energy if x.possible[b, point] else math.inf
    spread_real(x)
    for point in range(x.lattice_size):
        x.energy_to_go[b, point] = x.real[point]


@kernel
def least_load(x, b, q, point, first):
    """Loading time of a link: one transfer of a repeated one, at least the first tile of a single one."""
    if x.link_count[b, q, point] > 1:
        return x.link_cycles[b, q, point]
    return min(x.link_cycles[b, q, point], first) if x.link_count[b, q, point] == 1 else 0


@kernel
def shared_ports(problem, o, m):
    """How many of the two ports between levels m and m + 1 of an input serve the other input too."""
    shared = 0
    p = problem.port_of[o, m, FH]
    if p >= 0 and problem.port_shared_by_inputs[p]:
        shared += 1
    p = problem.port_of[o, m + 1, TL]
    if p >= 0 and problem.port_shared_by_inputs[p]:
        shared += 1
    return shared


@kernel
def surely_adds_up(problem, o, m):
    """Whether loading between two levels is part of on- or off-loading for sure.

    Of the pairs of memories with one port that both inputs share the reference keeps the last one only.
    """
    if o == OUTPUT_INDEX:
        return True
    shared = shared_ports(problem, o, m)
    if problem.operand_count == 2:
        return shared == 0
    if shared == 1:
        for level in range(m + 1, problem.level_count[o] - 1):
            if shared_ports(problem, o, level) == 1:
                return False
    return True


@kernel
def sum_loads(problem, x, b):
    """Least loading time of each link of a boundary; `x.pair` is the loading between its memories that is sure."""
    o = x.boundary_operand[b]
    m = x.boundary_level[b]
    x.adds_up[b] = surely_adds_up(problem, o, m)
    for point in range(x.lattice_size):
        x.pair[point] = 0
    for q in range(4):
        wide = problem.bandwidth_max_bits[o, m + (1 if q >= LINK_TL else 0), direction_of(q)]
        first = math.ceil(x.least_tile_bits[o] / wide) if wide > 0 else 0
        paired = (q == LINK_TH or q == LINK_FL) if o == OUTPUT_INDEX else (q == LINK_FH or q == LINK_TL)
        paired = paired and x.adds_up[b]
        for point in range(x.lattice_size):
            load = least_load(x, b, q, point, first)
            # Where loads can be hidden on their own, the first tile is known better later, when its boundary is.
            alone = x.link_cycles[b, q, point] if problem.switches[PORT_TIME] and load > 0 else load
            x.whole[point] = alone if x.possible[b, point] else FAR
            if paired:
                x.pair[point] = max(x.pair[point], load)
        spread_whole(x)
        for point in range(x.lattice_size):
            x.load_to_go[b, q, point] = 0 if x.whole[point] == FAR else x.whole[point]


@kernel
def close_chain(x, b):
    """Let `x.whole` be the least of itself over larger multisets at which boundary `b` may lie."""
    for point in range(x.lattice_size):
        x.whole[point] = min(x.whole[point], FAR) if x.possible[b, point] else FAR
    spread_whole(x)


@kernel
def sum_pairs(x, b, upper):
    """Least loading over a boundary and those above it."""
    for point in range(x.lattice_size):
        x.whole[point] = x.pair[point] + (x.pairs_to_go[upper, point] if upper >= 0 else 0)
    close_chain(x, b)
    for point in range(x.lattice_size):
        x.pairs_to_go[b, point] = x.whole[point]


@kernel
def add_port(x, b, p, count):
    """Add a port to those of a boundary unless it is there; how many there are then, also beyond the room."""
    for r in range(min(count, MAX_BUSY_PORTS)):
        if x.busy_port[b, r] == p:
            return count
    if count < MAX_BUSY_PORTS:
        x.busy_port[b, count] = p
    return count + 1


@kernel
def list_ports(problem, x, b, upper):
    """The ports that a boundary and those above it move data over; False if they are too many."""
    o = x.boundary_operand[b]
    count = 0
    for r in range(MAX_BUSY_PORTS):
        x.busy_port[b, r] = -1
    if upper >= 0:
        for r in range(MAX_BUSY_PORTS):
            if x.busy_port[upper, r] >= 0:
                count = add_port(x, b, x.busy_port[upper, r], count)
    for q in range(4):
        p = problem.port_of[o, x.boundary_level[b] + (1 if q >= LINK_TL else 0), direction_of(q)]
        if p >= 0 and (o == OUTPUT_INDEX or q == LINK_FH or q == LINK_TL):
            count = add_port(x, b, p, count)
    x.most_busy_ports = max(x.most_busy_ports, count)
    return count <= MAX_BUSY_PORTS


@kernel
def add_port_times(problem, x, b, p, everything):
    """Add to `x.whole` the cycles that a port spends on a boundary while the array computes, or with loading."""
    o = x.boundary_operand[b]
    for q in range(4):
        served = problem.port_of[o, x.boundary_level[b] + (1 if q >= LINK_TL else 0), direction_of(q)]
        if served == p and (o == OUTPUT_INDEX or q == LINK_FH or q == LINK_TL):
            for point in range(x.lattice_size):
                count = x.link_count[b, q, point]
                transfers = count if everything else computing_transfers(problem, o, direction_of(q), count)
                x.whole[point] += x.link_cycles[b, q, point] * max(0, transfers)


@kernel
def rank_of(x, b, p):
    """Where port `p` stands among those of a boundary, -1 if it does not or there is no boundary."""
    if b >= 0:
        for r in range(MAX_BUSY_PORTS):
            if x.busy_port[b, r] == p:
                return r
    return -1


@kernel
def sum_ports(problem, x, b, upper):
    """Least time of each port of a boundary and those above it, alone and with the loading that is sure."""
    for r in range(MAX_BUSY_PORTS):
        p = x.busy_port[b, r]
        if p < 0:
            break
        above = rank_of(x, upper, p)
        for point in range(x.lattice_size):
            x.whole[point] = x.busy_to_go[upper, above, point] if above >= 0 else 0
        add_port_times(problem, x, b, p, False)
        close_chain(x, b)
        for point in range(x.lattice_size):
            x.busy_to_go[b, r, point] = x.whole[point]
            more = x.pairs_to_go[upper, point] if upper >= 0 else 0
            x.whole[point] = x.pair[point] + (x.joint_to_go[upper, above, point] if above >= 0 else more)
        add_port_times(problem, x, b, p, False)
        close_chain(x, b)
        for point in range(x.lattice_size):
            x.joint_to_go[b, r, point] = x.whole[point]
            x.whole[point] = x.traffic_to_go[upper, above, point] if above >= 0 else 0
        if problem.switches[PORT_TIME]:
            add_port_times(problem, x, b, p, True)
            close_chain(x, b)
            for point in range(x.lattice_size):
                x.traffic_to_go[b, r, point] = x.whole[point]


@kernel
def top_number(problem, x, o, b, point, which):
    """Cycles of repeated transfers over the port of the topmost memory: busy (0), one transfer (1), both (2)."""
    main = LINK_FL if o == OUTPUT_INDEX else LINK_TL
    load = x.link_cycles[b, main, point]
    busy = load * (x.link_count[b, main, point] - 1)
    if o == OUTPUT_INDEX and problem.port_of[o, problem.level_count[o] - 1, TL] == x.top_port[o]:
        busy += x.link_cycles[b, LINK_TL, point] * max(0, x.link_count[b, LINK_TL, point] - 1)
    return busy if which == 0 else (load if which == 1 else busy + load)


@kernel
def sum_top(problem, x, o):
    """What an operand moves over the port of its topmost memory: once as a whole, or in repeated transfers."""
    top = problem.level_count[o] - 1
    x.top_port[o] = -1
    x.top_whole[o] = -1
    p = problem.port_of[o, top, FL if o == OUTPUT_INDEX else TL]
    if top == 0 or p < 0:
        return
    b = x.first_boundary[o] + top - 1
    main = LINK_FL if o == OUTPUT_INDEX else LINK_TL
    full = x.lattice_size - 1
    x.top_port[o] = p
    if x.possible[b, full] and x.link_count[b, main, full] == 1:
        x.top_whole[o] = x.link_cycles[b, main, full]
    for which in range(3):
        for point in range(x.lattice_size):
            repeated = x.possible[b, point] and x.link_count[b, main, point] > 1
            x.whole[point] = min(FAR, top_number(problem, x, o, b, point, which)) if repeated else FAR
        spread_whole(x)
        for point in range(x.lattice_size):
            if which == 0:
                x.top_busy[o, point] = x.whole[point]
            elif which == 1:
                x.top_load[o, point] = x.whole[point]
            else:
                x.top_joint[o, point] = x.whole[point]
    for point in range(x.lattice_size):
        repeated = x.possible[b, point] and x.link_count[b, main, point] > 1
        x.real[point] = x.link_bandwidth[b, main, point] if repeated else math.inf
    spread_real(x)
    for point in range(x.lattice_size):
        x.top_bandwidth[o, point] = x.real[point]


@kernel
def sum_up(problem, x, o):
    """All minima of one operand; of latency only where it counts.

    Too many ports of a boundary are told by `most_busy_ports`.
    """
    sum_array(problem, x, o)
    upper = -1
    for m in range(problem.level_count[o] - 2, -1, -1):
        b = x.first_boundary[o] + m
        sum_energy(x, b, upper)
        if not list_ports(problem, x, b, upper):
            return
        if x.objective != ENERGY_OBJECTIVE:
            sum_loads(problem, x, b)
            sum_pairs(x, b, upper)
            sum_ports(problem, x, b, upper)
        upper = b
    if x.objective != ENERGY_OBJECTIVE and not problem.switches[PORT_TIME]:
        sum_top(problem, x, o)
