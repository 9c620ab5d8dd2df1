"""Lower bounds of the cost of every completion of a label, a partial loop order (compiled).

docs/proofs/exact-search.md, 3 and 4, has the proofs.

For the latency, the code of the cost model (double buffers, port stalls, loading) runs on the links of placed
boundaries. Links of boundaries that are not placed yet (open links) contribute their minimum.
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.latency_kernel import BEST_BUFFERS, buffer_wherever_possible, decide_double_buffers, stall_of_ports
from tilewright.cost.loading_kernel import (
    PORT_TIME,
    bound_loads,
    computing_transfers,
    first_tile_cycles,
    load_ports,
    offloading,
    onloading,
    set_loads,
)
from tilewright.hardware.core import FL, TH, TL
from tilewright.search.exact.known_kernel import is_matched, longest_unknown
from tilewright.search.exact.labels_kernel import effective_bits_of
from tilewright.search.exact.lattice_record import LINK_TL, MAX_BUSY_PORTS
from tilewright.search.exact.open_kernel import (
    bound_ports,
    bound_top,
    bound_traffic,
    cycles_of_open,
    energy_of_open,
    gather_candidates,
    is_gathered,
    is_open,
    load_of_open,
)
from tilewright.search.exact.tables_kernel import direction_of
from tilewright.search.objective_kernel import root, value_of

ENDLESS = 1e18
TOLERANCE = 1e-9
"""Relative tolerance. Bounds and costs contain rounding errors, so smaller improvements do not count."""


@kernel
def bound_energy(problem, x):
    """Lower bound in pJ of the energy: the energy of closed boundaries plus the least energy of open boundaries.

    Each operand contributes its own minimum. Terms that grow with latency are not included.
    """
    energy = problem.fixed_energy_pj + x.child_energy
    for o in range(problem.operand_count):
        if is_open(problem, x, o):
            energy += energy_of_open(problem, x, o)
        if o != OUTPUT_INDEX and x.child_stationary[o] < 0:
            energy += x.array_energy_to_go[o, x.child_lattice]
    return energy


@kernel
def write_link(problem, ws, x, v, o, m, d, count, cycles, period, allowed, bandwidth):
    """Write the numbers of one known link to the workspace fields that the latency model reads."""
    ws.count[v, o, m, d] = count
    ws.transfer_cycles[o, m, d] = cycles
    ws.period[v, o, m, d] = period
    ws.allowed_cycles[o, m, d] = allowed
    ws.bandwidth[v, o, m, d] = bandwidth
    ws.exact_bandwidth[v, o, m, d] = bandwidth


@kernel
def all_tiles_known(problem, x, k):
    """True if all tiles in memory `k` are known. The tile of an operand is known if the boundary above its level is
    closed. A topmost level has no boundary above it, so its tile never counts as known.
    """
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            m = problem.memory_levels[k, j]
            if m >= x.child_level[o] or m == problem.level_count[o] - 1:
                return False
    return True


@kernel
def effective_share(problem, ws, k):
    """Share of memory `k` that the effective tiles of all its operands fill together, as the sum of their shares in
    `ws.effective`.

    An effective tile leaves out the part that is overwritten when the outermost relevant loops of the tile advance.
    """
    share = 0.0
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            share += ws.effective[o, problem.memory_levels[k, j]]
    return share


@kernel
def write_shares(problem, ws, x):
    """Compute the share of its memory that each effective tile fills, and the sum of these shares for each memory. An
    effective tile leaves out the part that is overwritten when its outermost relevant loops advance.

    The share of a tile is 0 if the boundary above the tile is open.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            ws.effective[o, m] = 0.0
            ws.effective_bits[o, m] = 0
            if m < x.child_level[o] and m < problem.level_count[o] - 1:
                b = x.first_boundary[o] + m
                bits = effective_bits_of(problem, x, b)
                ws.effective_bits[o, m] = bits
                ws.effective[o, m] = bits / problem.memory_bits[problem.level_memory[o, m]]
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        share = effective_share(problem, ws, k)
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                ws.shared_effective[o, problem.memory_levels[k, j]] = share


@kernel
def decide_buffers(problem, ws, x):
    """Decide which tiles are double-buffered, so that the bound stays valid for every completion.

    If all tiles of a memory are known, the function decides as the model does. Otherwise, the function is optimistic: a
    tile is double-buffered if its second copy fits next to all known tiles when no other tile has a second copy.

    If the model searches for the best set of double buffers (`BEST_BUFFERS`), the function is optimistic for all
    memories, because the model finds this set only for complete mappings.
    """
    if problem.switches[BEST_BUFFERS]:
        for o in range(problem.operand_count):
            ws.double_buffered[o, 0] = False
        buffer_wherever_possible(problem, ws)
        return
    decide_double_buffers(problem, ws)
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        if all_tiles_known(problem, x, k):
            continue
        share = effective_share(problem, ws, k)
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                m = problem.memory_levels[k, j]
                ws.double_buffered[o, m + 1] = share <= 0.5 or ws.effective[o, m] <= 1 - share


@kernel
def write_array_links(problem, ws, x, v, o, total):
    """Write the links between the array and the innermost memory of operand `o`, if their numbers are already known.

    The link of an input is unknown as long as further loops can extend the time during which the array keeps its data.
    The link is also unknown if the data are loaded only once and the size of the first tile is not known.
    """
    if o == OUTPUT_INDEX:
        once = problem.cycles_per_operation
        write_link(
            problem, ws, x, v, o, 0, FL, x.output_count[FL], x.array_cycles[o, FL], once, once, x.array_bandwidth[o, 0]
        )
        write_link(problem, ws, x, v, o, 0, TL, x.output_count[TL], x.array_cycles[o, TL], once, once, 0.0)
    elif x.child_stationary[o] >= 0:
        point = x.child_stationary[o]
        count = x.array_count[o, point]
        if count == 1 and x.child_level[o] == 0 and is_open(problem, x, o) and not problem.switches[PORT_TIME]:
            return  # the data are loaded only once, but the size of the first tile is not known
        period = total // count
        write_link(
            problem, ws, x, v, o, 0, TL, count, x.array_cycles[o, TL], period, period, x.array_bandwidth[o, point]
        )


@kernel
def write_known_links(problem, ws, x, v, total):
    """Write the transfers, times and bandwidth of every known link to the workspace. Unknown links are written as links
    that move no data. `total` is the number of cycles in which the array computes.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for d in range(4):
                ws.count[v, o, m, d] = 0
        ws.tile_precision[v, o, 1] = 1
        ws.tile_elements[v, o, 1] = x.least_tile_bits[o]
        write_array_links(problem, ws, x, v, o, total)
        for m in range(min(x.child_level[o], problem.level_count[o] - 1)):
            b = x.first_boundary[o] + m
            point = x.child_boundary[b]
            if m == 0:
                ws.tile_elements[v, o, 1] = x.tile_bits[b, point]
            period = x.cycles[point]
            allowed = period
            if not ws.double_buffered[o, m + 1]:
                allowed = int(period / x.child_top_irrelevant[b])
            for q in range(4):
                level = m + (1 if q >= LINK_TL else 0)
                d = direction_of(q)
                count = x.link_count[b, q, point]
                cycles = x.link_cycles[b, q, point]
                write_link(
                    problem, ws, x, v, o, level, d, count, cycles, period, allowed, x.link_bandwidth[b, q, point]
                )
                ws.amount[v, o, level, d] = x.link_bits[b, q, point]
                ws.precision[v, o, level, d] = 1


@kernel
def open_ports(problem, x):
    """Mark the ports that serve open links, and sum the least cycles of the open links of each port (the fields
    `port_*` of `PORT_FIELDS`).

    A link is open if its boundary is not placed yet. A link that loads an input into the array is also open as long as
    the loops during which the array keeps the data are not known.
    """
    for p in range(problem.port_count):
        x.port_open[p] = 0
        x.port_open_cycles[p] = 0
        x.port_busy_cycles[p] = 0
        x.port_all_cycles[p] = 0
    for o in range(problem.operand_count):
        if o != OUTPUT_INDEX and x.child_stationary[o] < 0 and problem.port_of[o, 0, TL] >= 0:
            p = problem.port_of[o, 0, TL]
            x.port_open[p] = 1
            x.port_busy_cycles[p] += x.array_cycles[o, TL] * (x.array_count_to_go[o, x.child_lattice] - 1)
            x.port_open_cycles[p] += x.array_cycles[o, TL] * (x.array_count_to_go[o, x.child_lattice] - 1)
            x.port_all_cycles[p] += x.array_cycles[o, TL] * x.array_count_to_go[o, x.child_lattice]
        if is_open(problem, x, o):
            b = x.first_boundary[o] + x.child_level[o]
            for r in range(MAX_BUSY_PORTS):
                p = x.busy_port[b, r]
                if p >= 0:
                    x.port_open[p] = 1
                    x.port_open_cycles[p] += cycles_of_open(problem, x, o, r, False)
                    if problem.switches[PORT_TIME]:
                        x.port_all_cycles[p] += cycles_of_open(problem, x, o, r, True)


@kernel
def bound_stall(problem, ws, x, v, total):
    """Lower bound of the stall in cycles.

    For a port whose links are all known, the bound is the exact stall. For any other port, the bound follows from the
    times of the known links and the least times of the open links.
    """
    open_ports(problem, x)
    stall_of_ports(problem, ws, v)
    stall = 0
    for p in range(problem.port_count):
        value = ws.port_stall[p]
        if x.port_open[p]:
            first = 0
            second = x.port_open_cycles[p] - total
            for s in range(problem.port_start[p], problem.port_start[p + 1]):
                o = problem.service_operand[s]
                m = problem.service_level[s]
                d = problem.service_direction[s]
                repeats = computing_transfers(problem, o, d, ws.count[v, o, m, d])
                if repeats > 0:
                    x.port_busy_cycles[p] += ws.transfer_cycles[o, m, d] * repeats
                    late = ws.transfer_cycles[o, m, d] - ws.allowed_cycles[o, m, d]
                    if late > 0:
                        first += late * repeats
                        second += ws.allowed_cycles[o, m, d] * repeats
                    else:
                        second += ws.transfer_cycles[o, m, d] * repeats
            value = first + max(0, second)
        stall = max(stall, value)
    return stall


@kernel
def loading_at(problem, ws, x, v, busy):
    """Lower bound in cycles of on- and off-loading if computation with stalls takes `busy` cycles."""
    load_ports(problem, ws, v, busy)
    for o in range(problem.operand_count):
        if is_open(problem, x, o):
            for m in range(x.child_level[o], problem.level_count[o] - 1):
                for q in range(4):
                    ws.load[o, m + (1 if q >= LINK_TL else 0), direction_of(q)] = load_of_open(problem, x, o, m, q)
    return onloading(problem, ws) + offloading(problem, ws)


@kernel
def keep_loads(problem, ws, x):
    """Copy the loading times of all links, in cycles, from `ws.load` to `x.load_at_shortest`."""
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for d in range(4):
                x.load_at_shortest[o, m, d] = ws.load[o, m, d]


@kernel
def shrinking_ports(problem, ws, x):
    """Number of ports with a link that loads faster if the computation takes longer. The loading times in cycles are in
    `x.load_at_shortest` for the shortest computation, and in `ws.load` for the longest computation.

    Data cross a boundary over two links, and the slower link determines the loading time. A link therefore counts only
    if it can be the slower link.
    """
    ports = 0
    for p in range(problem.port_count):
        counts = False
        for s in range(problem.port_start[p], problem.port_start[p + 1]):
            o = problem.service_operand[s]
            m = problem.service_level[s]
            d = problem.service_direction[s]
            if x.load_at_shortest[o, m, d] > ws.load[o, m, d]:
                upward = d == TH or d == (TH + 1)
                other = m + 1 if upward else m - 1
                if other < 0 or other >= problem.level_count[o]:
                    continue
                opposite = (FL if o == OUTPUT_INDEX else TL) if upward else (TH if o == OUTPUT_INDEX else TH + 1)
                if x.load_at_shortest[o, m, d] > ws.load[o, other, opposite]:
                    counts = True
        if counts:
            ports += 1
    return ports


@kernel
def longest_computation(problem, x, energy):
    """Largest latency in cycles with which a completion of at least `energy` pJ can beat the best known mapping."""
    if x.latency_power == 0:
        return min(ENDLESS, max(0.0, root(x.best, x.energy_power) - energy) / problem.energy_pj_a_cycle)
    power = x.best
    for _ in range(x.energy_power):
        power /= energy
    return min(ENDLESS, root(power, x.latency_power))


@kernel
def is_beaten(x, value):
    """True if a mapping with the objective `value` is worse than the best known mapping, or better by at most the gap.
    The gap is the largest improvement that the search may miss.
    """
    return value == math.inf or value >= x.best * x.best_share


@kernel
def is_given_up(x, value):
    """True if the search drops a label (partial loop order) whose lower bound is `value` (see `is_beaten`).

    If `value` is still below the objective of the best known mapping, a completion of the dropped label can be slightly
    better than this mapping. The smallest such `value` is stored in `x.dropped_bound`.
    """
    if not is_beaten(x, value):
        return False
    if value < x.best * (1 - TOLERANCE):
        x.dropped_bound = min(x.dropped_bound, value)
    return True


@kernel
def bound_port_times(problem, ws, x, v, shortest):
    """Lower bound in cycles of the latency without the drain and other fixed cycles, for a model in which the switch
    `every_transfer_takes_port_time` is on. The bound is the largest of several lower bounds, each of which is a sum of
    minima. `shortest` is a lower bound of the cycles in which the array computes or stalls.
    """
    bound_loads(problem, ws, v)
    for o in range(problem.operand_count):
        if o != OUTPUT_INDEX and x.child_stationary[o] < 0:
            ws.full_load[o, 0, TL] = x.array_cycles[o, TL]
            ws.floor_load[o, 0, TL] = x.array_cycles[o, TL]
        if is_open(problem, x, o):
            for m in range(x.child_level[o], problem.level_count[o] - 1):
                for q in range(4):
                    d = direction_of(q)
                    if (d == FL or d == TH) == (o == OUTPUT_INDEX):
                        level = m + (1 if q >= LINK_TL else 0)
                        load = load_of_open(problem, x, o, m, q)
                        ws.full_load[o, level, d] = load
                        ws.floor_load[o, level, d] = min(load, first_tile_cycles(problem, ws, v, o, level, d))
    set_loads(problem, ws, False)
    bound = onloading(problem, ws) + offloading(problem, ws)
    set_loads(problem, ws, True)
    bound = max(bound, shortest + onloading(problem, ws) + offloading(problem, ws))
    bound = max(bound, bound_ports(problem, ws, x))
    for p in range(problem.port_count):
        bound = max(bound, bound_traffic(problem, ws, x, v, p))
    return bound


@kernel
def bound_latency(problem, ws, x, energy):
    """Lower bound in cycles of the latency of completions that need at least `energy` pJ.

    If the first terms of the bound are enough to drop the label (partial loop order), the function leaves out the
    remaining terms.
    """
    longest = longest_unknown(x, energy, longest_computation(problem, x, energy))
    v = 1 if problem.spatial_differs else 0
    total = x.cycles[x.lattice_size - 1]
    write_shares(problem, ws, x)
    decide_buffers(problem, ws, x)
    write_known_links(problem, ws, x, v, total)
    ws.total_cycles = total
    stall = bound_stall(problem, ws, x, v, total)
    shortest = float(total + stall)
    least = shortest + problem.fixed_cycles
    most = energy + problem.energy_pj_a_cycle * least
    if is_beaten(x, value_of(x, most, least)) or is_matched(x, most, least):
        return shortest + problem.fixed_cycles  # the remaining terms cannot change the outcome
    if problem.switches[PORT_TIME]:
        return bound_port_times(problem, ws, x, v, shortest) + problem.fixed_cycles
    loading = loading_at(problem, ws, x, v, shortest)
    if longest > shortest:
        keep_loads(problem, ws, x)
        less = loading_at(problem, ws, x, v, longest)
        if less < loading:
            ports = shrinking_ports(problem, ws, x)
            if ports > 1:
                loading = less + (loading - less) / ports
    bound = max(shortest + loading, bound_top(problem, ws, x, shortest))
    return max(bound, bound_ports(problem, ws, x)) + problem.fixed_cycles


@kernel
def bound_by_parent(problem, x, placed):
    """Compute two bounds of the child, the partial loop order that is being made: the energy bound, and a first bound
    of the objective. The child has `placed` loops.

    `x.child_energy_bound` is in pJ and has no terms that grow with latency. `x.child_bound` takes the latency bound of
    the label (partial loop order) that the child extends: all completions of the child are completions of this label,
    too. If the latency does not count, `x.child_bound` is complete.
    """
    if x.any_contested:
        for o in range(problem.operand_count):
            if is_open(problem, x, o) and is_gathered(problem, x, o):
                gather_candidates(problem, x, o, placed)
    energy = bound_energy(problem, x)
    latency = x.child_latency_bound if x.latency_counts else 1.0
    x.child_energy_bound = energy
    x.child_bound = energy
    if energy < math.inf:
        x.child_bound = value_of(x, energy + problem.energy_pj_a_cycle * latency, latency)


@kernel
def bound_child(problem, ws, x):
    """Complete the bounds that `bound_by_parent` began: `x.child_latency_bound` (cycles), if the latency counts and a
    completion fits, and `x.child_bound` (the objective).
    """
    energy = x.child_energy_bound
    if energy == math.inf or not x.latency_counts:
        return
    latency = max(x.child_latency_bound, bound_latency(problem, ws, x, energy))
    x.child_latency_bound = latency
    x.child_bound = value_of(x, energy + problem.energy_pj_a_cycle * latency, latency)
