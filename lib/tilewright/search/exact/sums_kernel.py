"""Least cost of each boundary and those above it, from every point of the lattice on (compiled).

The lower bounds use these minima over all larger multisets (docs/proofs.md#exact-search, 3 and 4).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.loading_kernel import PORT_TIME, computing_transfers
from tilewright.hardware.core import FH, FL, TL
from tilewright.search.exact.lattice_record import LINK_FH, LINK_FL, LINK_TH, LINK_TL, MAX_BUSY_PORTS, NO_PORT
from tilewright.search.exact.tables_kernel import direction_of

FAR = 1 << 58
"""Cycles that stand for impossible; sums of a few of them do not overflow."""
IMPOSSIBLE = -1
"""Marks the transfer of a whole tensor as impossible because the tensor is always tiled."""


@kernel
def spread(x, table, i):
    """Replace every number of row `i` of a table [i, point] by the minimum over all points that contain its point."""
    for j in range(x.symbol_count):
        stride = x.stride[j]
        block = stride * (x.multiplicity[j] + 1)
        for first in range(0, x.lattice_size, block):
            for point in range(first + block - stride - 1, first - 1, -1):
                table[i, point] = min(table[i, point], table[i, point + stride])


@kernel
def spread_row(x, table, i, r):
    """`spread` for row `i`, `r` of a table [i, r, point]."""
    for j in range(x.symbol_count):
        stride = x.stride[j]
        block = stride * (x.multiplicity[j] + 1)
        for first in range(0, x.lattice_size, block):
            for point in range(first + block - stride - 1, first - 1, -1):
                table[i, r, point] = min(table[i, r, point], table[i, r, point + stride])


@kernel
def sum_elements(problem, x):
    """Compute the least tiles above each point, and the least innermost tile of each operand."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            row = x.first_level[o] + m
            for point in range(x.lattice_size):
                x.least_elements[row, point] = x.elements[row, point]
            spread(x, x.least_elements, row)
        if problem.level_count[o] > 1:
            b = x.first_boundary[o]
            least = x.tile_bits[b, 0]
            for point in range(x.lattice_size):
                least = min(least, x.tile_bits[b, point])
            x.least_tile_bits[o] = least


@kernel
def sum_array(problem, x, o):
    """Compute least energy and number of periods of the link to the array."""
    for point in range(x.lattice_size):
        x.array_energy_to_go[o, point] = x.array_energy[o, point] if x.stays[o, point] else math.inf
        x.array_count_to_go[o, point] = x.array_count[o, point] if x.stays[o, point] else FAR
    spread(x, x.array_energy_to_go, o)
    spread(x, x.array_count_to_go, o)


@kernel
def sum_energy(x, b, upper):
    """Compute least energy of boundary `b` and those above it; `upper` is the next boundary, -1 without one."""
    for point in range(x.lattice_size):
        energy = x.link_energy[b, point] + (x.energy_to_go[upper, point] if upper >= 0 else 0.0)
        x.energy_to_go[b, point] = energy if x.possible[b, point] else math.inf
    spread(x, x.energy_to_go, b)


@kernel
def first_load(problem, x, b, q):
    """Least cycles in which link `q` of a boundary brings the first tile."""
    o = x.boundary_operand[b]
    wide = problem.bandwidth_max_bits[o, x.boundary_level[b] + (1 if q >= LINK_TL else 0), direction_of(q)]
    return math.ceil(x.least_tile_bits[o] / wide) if wide > 0 else 0


@kernel
def least_load(x, b, q, point, first):
    """Loading time of a link: one transfer if transfers repeat, else at least the first tile (`first`)."""
    if x.link_count[b, q, point] > 1:
        return x.link_cycles[b, q, point]
    return min(x.link_cycles[b, q, point], first) if x.link_count[b, q, point] == 1 else 0


@kernel
def add_pairs(problem, x, b, table, r):
    """Add to row `b`, `r` of a table the least loading between the memories of a boundary, if it certainly counts."""
    if not x.adds_up[b]:
        return
    up = LINK_TH if x.boundary_operand[b] == OUTPUT_INDEX else LINK_FH
    down = LINK_FL if x.boundary_operand[b] == OUTPUT_INDEX else LINK_TL
    first_up = first_load(problem, x, b, up)
    first_down = first_load(problem, x, b, down)
    for point in range(x.lattice_size):
        table[b, r, point] += max(least_load(x, b, up, point, first_up), least_load(x, b, down, point, first_down))


@kernel
def shared_ports(problem, o, m):
    """Number of the two ports between levels m and m + 1 of an input that serve the other input too."""
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
    """True if loading between two levels is certainly part of on- or off-loading.

    The reference keeps only the last of the pairs of memories of which one port is shared by both inputs.
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
    """Compute least loading times of the links of a boundary.

    Also compute whether the loading between its memories certainly counts.
    """
    x.adds_up[b] = surely_adds_up(problem, x.boundary_operand[b], x.boundary_level[b])
    for q in range(4):
        first = first_load(problem, x, b, q)
        for point in range(x.lattice_size):
            load = least_load(x, b, q, point, first)
            # Where loads can be hidden individually, a better bound of the first tile is known once its boundary is.
            alone = x.link_cycles[b, q, point] if problem.switches[PORT_TIME] and load > 0 else load
            x.load_to_go[b, q, point] = alone if x.possible[b, point] else FAR
        spread_row(x, x.load_to_go, b, q)
        for point in range(x.lattice_size):
            if x.load_to_go[b, q, point] == FAR:
                x.load_to_go[b, q, point] = 0


@kernel
def close_chain(x, b, table, r):
    """Set row `b`, `r` of a table to its minimum over larger multisets at which boundary `b` may lie."""
    for point in range(x.lattice_size):
        table[b, r, point] = min(table[b, r, point], FAR) if x.possible[b, point] else FAR
    spread_row(x, table, b, r)


@kernel
def begin_row(x, b, r, table, upper, above):
    """Begin row `b`, `r` of a table with row `above` of the boundary `upper`, or 0 if `upper` is -1."""
    for point in range(x.lattice_size):
        table[b, r, point] = table[upper, above, point] if above >= 0 else 0


@kernel
def add_port(x, b, p, count):
    """Add a port to the list of a boundary unless it is there; returns the count, which may exceed the room."""
    for r in range(min(count, MAX_BUSY_PORTS)):
        if x.busy_port[b, r] == p:
            return count
    if count < MAX_BUSY_PORTS:
        x.busy_port[b, count] = p
    return count + 1


@kernel
def list_ports(problem, x, b, upper):
    """List the ports over which a boundary and those above it move data; False if they are too many."""
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
def add_port_times(problem, x, b, p, everything, table, r):
    """Add to row `b`, `r` of a table the cycles that port `p` spends on a boundary.

    The transfers are those while the array computes, or with `everything` also those of on- and off-loading.
    """
    o = x.boundary_operand[b]
    for q in range(4):
        served = problem.port_of[o, x.boundary_level[b] + (1 if q >= LINK_TL else 0), direction_of(q)]
        if served == p and (o == OUTPUT_INDEX or q == LINK_FH or q == LINK_TL):
            for point in range(x.lattice_size):
                count = x.link_count[b, q, point]
                transfers = count if everything else computing_transfers(problem, o, direction_of(q), count)
                table[b, r, point] += x.link_cycles[b, q, point] * max(0, transfers)


@kernel
def rank_of(x, b, p):
    """Index of port `p` among those of a boundary; -1 if it is not there, or without boundary."""
    if b >= 0:
        for r in range(MAX_BUSY_PORTS):
            if x.busy_port[b, r] == p:
                return r
    return -1


@kernel
def sum_ports(problem, x, b, upper):
    """Compute least times of each port of a boundary and those above it.

    They are port time alone, port time with the loading that certainly counts, and this loading alone.
    """
    begin_row(x, b, NO_PORT, x.joint_to_go, upper, NO_PORT if upper >= 0 else -1)
    add_pairs(problem, x, b, x.joint_to_go, NO_PORT)
    close_chain(x, b, x.joint_to_go, NO_PORT)
    for r in range(MAX_BUSY_PORTS):
        p = x.busy_port[b, r]
        if p < 0:
            break
        above = rank_of(x, upper, p)
        begin_row(x, b, r, x.busy_to_go, upper, above)
        add_port_times(problem, x, b, p, False, x.busy_to_go, r)
        close_chain(x, b, x.busy_to_go, r)
        begin_row(x, b, r, x.joint_to_go, upper, NO_PORT if upper >= 0 and above < 0 else above)
        add_pairs(problem, x, b, x.joint_to_go, r)
        add_port_times(problem, x, b, p, False, x.joint_to_go, r)
        close_chain(x, b, x.joint_to_go, r)
        if problem.switches[PORT_TIME]:
            begin_row(x, b, r, x.traffic_to_go, upper, above)
            add_port_times(problem, x, b, p, True, x.traffic_to_go, r)
            close_chain(x, b, x.traffic_to_go, r)


@kernel
def whole_at(problem, x, o, point):
    """Cycles to move the whole tensor once over a topmost boundary at a point; IMPOSSIBLE if the tensor is tiled."""
    b = x.first_boundary[o] + problem.level_count[o] - 2
    main = LINK_FL if o == OUTPUT_INDEX else LINK_TL
    return x.link_cycles[b, main, point] if x.link_count[b, main, point] == 1 else IMPOSSIBLE


@kernel
def repeats_at(problem, x, o, point):
    """Cycles over a topmost boundary at a point: one transfer, all after the first period, both; and the bandwidth.

    The bandwidth is infinite if the tensor does not move in repeated transfers.
    """
    b = x.first_boundary[o] + problem.level_count[o] - 2
    main = LINK_FL if o == OUTPUT_INDEX else LINK_TL
    load = x.link_cycles[b, main, point]
    repeats = x.link_count[b, main, point] - 1
    busy = load * repeats
    if o == OUTPUT_INDEX and problem.port_of[o, problem.level_count[o] - 1, TL] == x.top_port[o]:
        busy += x.link_cycles[b, LINK_TL, point] * max(0, x.link_count[b, LINK_TL, point] - 1)
    bandwidth = x.link_bandwidth[b, main, point] if repeats > 0 else math.inf
    return load, busy, busy + load, bandwidth


@kernel
def sum_top(problem, x, o):
    """Compute what an operand moves over the port of its topmost memory: once as a whole, or in repeated transfers."""
    top = problem.level_count[o] - 1
    x.top_port[o] = -1
    x.top_whole[o] = IMPOSSIBLE
    p = problem.port_of[o, top, FL if o == OUTPUT_INDEX else TL]
    if top == 0 or p < 0:
        return
    b = x.first_boundary[o] + top - 1
    x.top_port[o] = p
    if x.possible[b, x.lattice_size - 1]:
        x.top_whole[o] = whole_at(problem, x, o, x.lattice_size - 1)
    for point in range(x.lattice_size):
        load, busy, joint, bandwidth = repeats_at(problem, x, o, point)
        repeated = x.possible[b, point] and bandwidth < math.inf
        x.top_load[o, point] = min(FAR, load) if repeated else FAR
        x.top_busy[o, point] = min(FAR, busy) if repeated else FAR
        x.top_joint[o, point] = min(FAR, joint) if repeated else FAR
        x.top_bandwidth[o, point] = bandwidth if repeated else math.inf
    spread(x, x.top_load, o)
    spread(x, x.top_busy, o)
    spread(x, x.top_joint, o)
    spread(x, x.top_bandwidth, o)


@kernel
def sum_up(problem, x, o):
    """Compute all minima of one operand; those of latency only where latency counts.

    `most_busy_ports` tells if a boundary has too many ports.
    """
    sum_array(problem, x, o)
    upper = -1
    for m in range(problem.level_count[o] - 2, -1, -1):
        b = x.first_boundary[o] + m
        sum_energy(x, b, upper)
        if not list_ports(problem, x, b, upper):
            return
        if x.latency_counts:
            sum_loads(problem, x, b)
            sum_ports(problem, x, b, upper)
        upper = b
    if x.latency_counts and not problem.switches[PORT_TIME]:
        sum_top(problem, x, o)
