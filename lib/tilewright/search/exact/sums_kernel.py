"""Least costs of each boundary and of the boundaries above it, over all larger multisets (compiled).

A larger multiset of a lattice point contains all loops of the point. The lower bounds of the search use these minima
(docs/proofs/exact-search.md, 3 and 4).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.loading_kernel import PORT_TIME, computing_transfers
from tilewright.hardware.core import FH, FL, TL
from tilewright.search.exact.lattice_record import LINK_FH, LINK_FL, LINK_TH, LINK_TL, MAX_BUSY_PORTS, NO_PORT
from tilewright.search.exact.tables_kernel import direction_of

FAR = 1 << 58
"""Number of cycles that stands for an impossible case. A sum of a few such numbers does not overflow."""
IMPOSSIBLE = -1
"""Number of cycles that marks a transfer of the whole tensor at once as impossible, because the tensor is tiled."""


@kernel
def spread(x, table, i):
    """Replace the number of each lattice point in row `i` of a table [i, point]. The new number is the minimum over the
    point and all points with larger multisets.
    """
    for j in range(x.symbol_count):
        stride = x.stride[j]
        block = stride * (x.multiplicity[j] + 1)
        for first in range(0, x.lattice_size, block):
            for point in range(first + block - stride - 1, first - 1, -1):
                table[i, point] = min(table[i, point], table[i, point + stride])


@kernel
def spread_row(x, table, i, r):
    """Replace the number of each lattice point in row [`i`, `r`] of a table [i, r, point] by the minimum over this
    point and all points with larger multisets.
    """
    for j in range(x.symbol_count):
        stride = x.stride[j]
        block = stride * (x.multiplicity[j] + 1)
        for first in range(0, x.lattice_size, block):
            for point in range(first + block - stride - 1, first - 1, -1):
                table[i, r, point] = min(table[i, r, point], table[i, r, point + stride])


@kernel
def sum_elements(problem, x):
    """Compute two kinds of minima:

    * `x.least_elements`: for each tile and each lattice point, the smallest number of elements over this point and all
      points with larger multisets;
    * `x.least_tile_bits`: for each operand with several memory levels, the smallest number of bits of its innermost
      tile over all points.
    """
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
    """Compute, for each lattice point, the least energy in pJ and the least number of periods of the link between
    operand `o` and the array. A link makes one transfer in each period. The minimum covers all multisets of loops that
    contain the loops of the point and during which the array can keep the data of the operand. If there is no such
    multiset, the energy is infinite and the number of periods is FAR.
    """
    for point in range(x.lattice_size):
        x.array_energy_to_go[o, point] = x.array_energy[o, point] if x.stays[o, point] else math.inf
        x.array_count_to_go[o, point] = x.array_count[o, point] if x.stays[o, point] else FAR
    spread(x, x.array_energy_to_go, o)
    spread(x, x.array_count_to_go, o)


@kernel
def sum_energy(x, b, upper):
    """Compute, for each lattice point (multiset of loops), the least energy in pJ of boundary `b` plus the boundaries
    of its operand above it. The minimum covers all possible positions of boundary `b` for which the loops below it
    include the loops of the point. If there is no such position, the energy is infinite.

    `upper` is the next boundary of the operand above `b`, or -1.
    """
    for point in range(x.lattice_size):
        energy = x.link_energy[b, point] + (x.energy_to_go[upper, point] if upper >= 0 else 0.0)
        x.energy_to_go[b, point] = energy if x.possible[b, point] else math.inf
    spread(x, x.energy_to_go, b)


@kernel
def first_load(problem, x, b, q):
    """Least cycles in which link `q` of boundary `b` moves its first tile; 0 if the link has no port. The first tile
    has at least the size of the smallest innermost tile of the operand.
    """
    o = x.boundary_operand[b]
    wide = problem.bandwidth_max_bits[o, x.boundary_level[b] + (1 if q >= LINK_TL else 0), direction_of(q)]
    return math.ceil(x.least_tile_bits[o] / wide) if wide > 0 else 0


@kernel
def least_load(x, b, q, point, first):
    """Least loading time in cycles of link `q` of boundary `b`, if the boundary is at lattice point (multiset of loops)
    `point`.

    A link makes one transfer in each period. With several periods, the result is the time of one transfer. With one
    period, the result is the smaller of two times: the time of this transfer, and `first`, the time of the first tile.
    Without a period, the result is 0.
    """
    if x.link_count[b, q, point] > 1:
        return x.link_cycles[b, q, point]
    return min(x.link_cycles[b, q, point], first) if x.link_count[b, q, point] == 1 else 0


@kernel
def add_pairs(problem, x, b, table, r):
    """Add the least loading time of boundary `b`, in cycles, to row [`b`, `r`] of a table. Nothing is added if
    `adds_up` is not set for `b`.

    The loading time is the time to move a tile between the memories on the two sides of the boundary.
    """
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
    """Number of ports (0 to 2) between levels `m` and `m` + 1 of input `o` that also serve the other input."""
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
    """True if the loading time between levels `m` and `m` + 1 of operand `o` is certainly part of on- or off-loading.

    The loading time of an input is uncertain in two cases:

    * The layer has two inputs, exactly one of the two ports between the levels also serves the other input, and the
      same is true for a pair of levels further out. The reference counts only the outermost such pair.
    * The layer has one input, and at least one of the two ports also serves the other input operand of the core.
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
    """Compute the least loading time in cycles of each link of boundary `b`, for each lattice point (multiset of
    loops). The minimum covers the possible positions of the boundary at which all loops of the point lie below the
    boundary; 0 if there is no such position. If the switch `every_transfer_takes_port_time` of the model is on, the
    time of a full transfer is used.

    The function also sets `adds_up` of the boundary (`LEAST_FIELDS`).
    """
    x.adds_up[b] = surely_adds_up(problem, x.boundary_operand[b], x.boundary_level[b])
    for q in range(4):
        first = first_load(problem, x, b, q)
        for point in range(x.lattice_size):
            load = least_load(x, b, q, point, first)
            # With PORT_TIME, the table holds the time of a full transfer. `bound_port_times` limits the time to the
            # first tile, whose size has a sharper bound if the innermost boundary is already placed.
            alone = x.link_cycles[b, q, point] if problem.switches[PORT_TIME] and load > 0 else load
            x.load_to_go[b, q, point] = alone if x.possible[b, point] else FAR
        spread_row(x, x.load_to_go, b, q)
        for point in range(x.lattice_size):
            if x.load_to_go[b, q, point] == FAR:
                x.load_to_go[b, q, point] = 0


@kernel
def close_chain(x, b, table, r):
    """Replace the number of each lattice point in row [`b`, `r`] of a table [boundary, r, point]. The new number is the
    minimum over the point and all points with larger multisets at which boundary `b` can lie; FAR if there is no such
    point.
    """
    for point in range(x.lattice_size):
        table[b, r, point] = min(table[b, r, point], FAR) if x.possible[b, point] else FAR
    spread_row(x, table, b, r)


@kernel
def begin_row(x, b, r, table, upper, above):
    """Set row [`b`, `r`] of a table to row [`upper`, `above`] of the same table, or to 0 if `above` is -1."""
    for point in range(x.lattice_size):
        table[b, r, point] = table[upper, above, point] if above >= 0 else 0


@kernel
def add_port(x, b, p, count):
    """Add port `p` to the list of boundary `b` if the list has room and does not contain the port.

    Return the number of ports of the boundary, which can exceed the room in the list.
    """
    for r in range(min(count, MAX_BUSY_PORTS)):
        if x.busy_port[b, r] == p:
            return count
    if count < MAX_BUSY_PORTS:
        x.busy_port[b, count] = p
    return count + 1


@kernel
def list_ports(problem, x, b, upper):
    """Write to `x.busy_port` the ports that move data over boundary `b` or over the boundaries of the same operand
    above it. `upper` is the next boundary above, or -1. Return False if there are more than MAX_BUSY_PORTS such ports.
    """
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
    """Add the cycles for which boundary `b` keeps port `p` busy to row [`b`, `r`] of a table. The row has one number
    for each lattice point (multiset of loops).

    The cycles include transfers while the array computes. If `everything` is true, the cycles also include on- and
    off-loading.
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
    """Index of port `p` in the list of boundary `b`; -1 if the list does not contain the port or `b` is -1."""
    if b >= 0:
        for r in range(MAX_BUSY_PORTS):
            if x.busy_port[b, r] == p:
                return r
    return -1


@kernel
def sum_ports(problem, x, b, upper):
    """Compute, for each lattice point (multiset of loops), least times in cycles. Each time is a sum over boundary `b`
    and the boundaries of the same operand above `b`:

    * `joint_to_go`, row NO_PORT: the loading time;
    * `busy_to_go`, one row for each port: the time for which the port is busy while the array computes;
    * `joint_to_go`, one row for each port: the sum of the busy time and the loading time;
    * `traffic_to_go`, one row for each port: the busy time with on- and off-loading. This field is computed only if the
      switch `every_transfer_takes_port_time` of the model is on.

    The loading time of a boundary counts only if `adds_up` is set for the boundary. `upper` is the next boundary of the
    operand above `b`, or -1.
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
    """Cycles to move the whole tensor of operand `o` once over the boundary below its topmost memory, if this boundary
    is at the lattice point (multiset of loops) `point`.

    The result is IMPOSSIBLE if the boundary at `point` divides the tensor into several tiles.
    """
    b = x.first_boundary[o] + problem.level_count[o] - 2
    main = LINK_FL if o == OUTPUT_INDEX else LINK_TL
    return x.link_cycles[b, main, point] if x.link_count[b, main, point] == 1 else IMPOSSIBLE


@kernel
def repeats_at(problem, x, o, point):
    """Use of the port of the topmost memory of operand `o`, if the topmost boundary of the operand is at lattice point
    (multiset of loops) `point`. The memory sends an input, or receives an output, over this port.

    The four results are the cycles of one transfer, the cycles of all transfers after the first period, the sum of
    these two, and the average bandwidth in bits per cycle. The bandwidth is infinite if there is only one transfer.
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
    """Compute the least use of the port of the topmost memory of operand `o`, over all larger multisets of each lattice
    point.

    The tensor moves either once as a whole or in repeated transfers. For the first case, the function writes the cycles
    to `x.top_whole`. For the second case, the function writes the least results of `repeats_at` to `x.top_load`,
    `x.top_busy`, `x.top_joint` and `x.top_bandwidth`.
    """
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
    """Compute the least costs of the link between operand `o` and the array, and of the boundaries of the operand. The
    costs are stored for each lattice point, as minima over the point and all points with larger multisets. If
    `latency_counts` is False, the times are left out.

    If a boundary has too many ports, the function stops, and `most_busy_ports` exceeds MAX_BUSY_PORTS.
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
