"""The least that the open boundaries of a label can still cost (compiled; docs/exact.md, 3 and 5).

A boundary that the search has yet to place costs at least the least over all larger multisets. One that the allocator
places in its own way, by the whole order, lies on the path or is still to come: there the candidates are gathered.
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.loading_kernel import PORT_TIME, computing_transfers
from tilewright.hardware.core import TL
from tilewright.search.exact_labels_kernel import keeps_sums
from tilewright.search.exact_record import LINK_FL, LINK_TL
from tilewright.search.exact_sums_kernel import FAR
from tilewright.search.exact_tables_kernel import direction_of, most_precision, symbol_at, tile_bits_of


@kernel
def is_open(problem, x, o):
    """True while operand `o` has a boundary to place."""
    return x.child_level[o] < problem.level_count[o] - 1


@kernel
def least_point(x, o):
    """The multiset that the next boundary of operand `o` holds at least."""
    b = x.first_boundary[o] + x.child_level[o]
    return x.child_start[o] if x.contested[b] else x.child_lattice


@kernel
def gather_candidates(problem, x, o, placed):
    """Where on the path of the child the contested, uppermost boundary of operand `o` may lie, `placed` loops long.

    The allocator never stops below a slice that fits beside the whole of all other operands of the memory: it would
    not cost more. It never goes past the first slice that does not fit alone.
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
    """True if the open boundary of operand `o` has its candidates gathered."""
    m = x.child_level[o]
    return m == problem.level_count[o] - 2 and x.contested[x.first_boundary[o] + m]


@kernel
def energy_of_open(problem, x, o):
    """The least energy of the open boundaries of operand `o`."""
    b = x.first_boundary[o] + x.child_level[o]
    if not is_gathered(problem, x, o):
        return x.energy_to_go[b, least_point(x, o)]
    least = x.energy_to_go[b, x.child_lattice] if x.may_come[o] else math.inf
    for i in range(x.candidate_count[o]):
        least = min(least, x.link_energy[b, x.candidate[o, i]])
    return least


@kernel
def load_of_open(problem, x, o, m, q):
    """The least loading time of a link of an open boundary of operand `o`, the one above level `m`.

    Where every transfer takes port time this is one transfer, of which the caller says what can be hidden.
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
    """The least time that port number `r` of the open boundaries of operand `o` is busy with them.

    While the array computes, or with the transfers of on- and off-loading (`everything`).
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
    """Cycles that port number `r` spends on a contested boundary at a point, in all or while the array computes."""
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
def fixed_transfers(problem, x, o, whole, point):
    """Set `x.moved_*` for a topmost boundary at a point; False if it does not move the tensor that way."""
    b = x.first_boundary[o] + problem.level_count[o] - 2
    main = LINK_FL if o == OUTPUT_INDEX else LINK_TL
    x.moved_load = x.link_cycles[b, main, point]
    repeats = x.link_count[b, main, point] - 1
    if whole:
        return repeats == 0
    x.moved_busy = x.moved_load * repeats
    back = x.link_count[b, LINK_TL, point] - 1
    if o == OUTPUT_INDEX and back > 0 and problem.port_of[o, problem.level_count[o] - 1, TL] == x.top_port[o]:
        x.moved_busy += x.link_cycles[b, LINK_TL, point] * back
    x.moved_joint = x.moved_busy + x.moved_load
    x.moved_bandwidth = x.link_bandwidth[b, main, point]
    return repeats > 0


@kernel
def gathered_transfers(problem, x, o, whole):
    """Set `x.moved_*` to the least over the candidates of a contested boundary, and over what may still come."""
    if whole:
        x.moved_load = x.top_whole[o]
        return x.may_come[o] and x.top_whole[o] >= 0
    load = x.top_load[o, x.child_lattice] if x.may_come[o] else FAR
    busy = x.top_busy[o, x.child_lattice] if x.may_come[o] else FAR
    joint = x.top_joint[o, x.child_lattice] if x.may_come[o] else FAR
    bandwidth = x.top_bandwidth[o, x.child_lattice] if x.may_come[o] else math.inf
    for i in range(x.candidate_count[o]):
        if fixed_transfers(problem, x, o, False, x.candidate[o, i]):
            load = min(load, x.moved_load)
            busy = min(busy, x.moved_busy)
            joint = min(joint, x.moved_joint)
            bandwidth = min(bandwidth, x.moved_bandwidth)
    x.moved_load = load
    x.moved_busy = busy
    x.moved_joint = joint
    x.moved_bandwidth = bandwidth
    return bandwidth < math.inf


@kernel
def top_transfers(problem, x, o, whole):
    """Set `x.moved_*` to what operand `o` moves at least over the port of its topmost memory; False if it cannot.

    `whole`: once, as a whole; else in repeated transfers.
    """
    b = x.first_boundary[o] + problem.level_count[o] - 2
    if is_open(problem, x, o) and is_gathered(problem, x, o):
        return gathered_transfers(problem, x, o, whole)
    if is_open(problem, x, o):
        x.moved_load = x.top_whole[o]
        if whole:
            return x.top_whole[o] >= 0
        lowest = x.child_level[o] == problem.level_count[o] - 2
        point = least_point(x, o) if lowest else (x.child_start[o] if x.any_contested else x.child_lattice)
        x.moved_load = x.top_load[o, point]
        x.moved_busy = x.top_busy[o, point]
        x.moved_joint = x.top_joint[o, point]
        x.moved_bandwidth = x.top_bandwidth[o, point]
        return x.moved_bandwidth < math.inf
    return fixed_transfers(problem, x, o, whole, x.child_boundary[b])
