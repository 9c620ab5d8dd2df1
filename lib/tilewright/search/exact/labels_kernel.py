"""Compiled functions that read, write and merge labels of the exact search (docs/proofs/exact-labels.md, 5).

A label is a partial loop order. A lattice point is a multiset of loops. Lattice points at which the cost numbers of a
boundary are equal form a class. Two labels that differ only by points of the same class are merged.
"""

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX, ROOM_FOR_FINAL
from tilewright.cost.latency_kernel import kept_bits
from tilewright.cost.loading_kernel import computing_transfers
from tilewright.cost.problem import IRRELEVANT, PARTIAL
from tilewright.search.exact.lattice_record import CLASS_SLOTS, NOT_BEGUN, PATH_WORDS
from tilewright.search.exact.tables_kernel import direction_of, least_precision, most_precision, storage_bits

EARLY = 1 << 62
"""Flag in `key_runs` that the output level above the boundary can begin early (see `begins_early`). The flag is larger
than all other values of the field.
"""


@kernel
def load_child(problem, x, g, i):
    """Copy label (partial loop order) `i` of generation `g` to the child, the label that is being made."""
    x.child_lattice = x.label_lattice[g, i]
    x.child_energy = x.label_energy[g, i]
    x.child_latency_bound = x.label_latency_bound[g, i]
    for o in range(problem.operand_count):
        x.child_level[o] = x.label_level[g, i, o]
        x.child_start[o] = x.label_start[g, i, o]
        x.child_stationary[o] = x.label_stationary[g, i, o]
        x.child_run_kind[o] = x.label_run_kind[g, i, o]
        x.child_run_product[o] = x.label_run_product[g, i, o]
    for b in range(x.boundary_count):
        x.child_boundary[b] = x.label_boundary[g, i, b]
        x.child_top_irrelevant[b] = x.label_top_irrelevant[g, i, b]
        x.child_top_relevant[b] = x.label_top_relevant[g, i, b]
    for w in range(PATH_WORDS):
        x.child_path[w] = x.label_path[g, i, w]
    for r in range(problem.ordered_count):
        x.child_ordered[r] = x.label_ordered[g, i, r]


@kernel
def store_child(problem, x, g, i):
    """Copy the child, the label that is being made, to label `i` of generation `g`. A label is a partial loop order."""
    x.label_lattice[g, i] = x.child_lattice
    x.label_energy[g, i] = x.child_energy
    x.label_bound[g, i] = x.child_bound
    x.label_energy_bound[g, i] = x.child_energy_bound
    x.label_latency_bound[g, i] = x.child_latency_bound
    for o in range(problem.operand_count):
        x.label_level[g, i, o] = x.child_level[o]
        x.label_start[g, i, o] = x.child_start[o]
        x.label_stationary[g, i, o] = x.child_stationary[o]
        x.label_run_kind[g, i, o] = x.child_run_kind[o]
        x.label_run_product[g, i, o] = x.child_run_product[o]
    for b in range(x.boundary_count):
        x.label_boundary[g, i, b] = x.child_boundary[b]
        x.label_top_irrelevant[g, i, b] = x.child_top_irrelevant[b]
        x.label_top_relevant[g, i, b] = x.child_top_relevant[b]
        x.label_key[g, i, b] = x.child_key[b]
        x.label_key_runs[g, i, b] = x.child_key_runs[b]
    for w in range(PATH_WORDS):
        x.label_path[g, i, w] = x.child_path[w]
    for r in range(problem.ordered_count):
        x.label_ordered[g, i, r] = x.child_ordered[r]


@kernel
def start_search(problem, x):
    """Initialise the child, which is the label that is being made, as the label of the empty loop order."""
    x.child_lattice = 0
    x.child_energy = x.array_energy[OUTPUT_INDEX, 0]
    x.child_latency_bound = 0.0
    for o in range(problem.operand_count):
        x.child_level[o] = 0
        x.child_start[o] = 0
        x.child_stationary[o] = -1
        x.child_run_kind[o] = -1
        x.child_run_product[o] = 1
    for b in range(x.boundary_count):
        x.child_boundary[b] = -1
        x.child_top_irrelevant[b] = 1
        x.child_top_relevant[b] = 1
        x.child_key[b] = -1
        x.child_key_runs[b] = 0
    for w in range(PATH_WORDS):
        x.child_path[w] = 0
    for r in range(problem.ordered_count):
        x.child_ordered[r] = NOT_BEGUN


@kernel
def start_of(x, o, m):
    """Lattice point with the multiset of the loops below level `m` of operand `o`; -1 if the boundary below this level
    is not placed yet.
    """
    return x.child_boundary[x.first_boundary[o] + m - 1] if m > 0 else 0


@kernel
def begins_early(x, m):
    """True if output level `m` + 1 can begin early: its lower boundary can move inwards, past some loops of level `m`,
    at the same cost. The move is possible if the loops directly below the boundary are irrelevant for outputs.

    The cost stays the same because the model counts these loops in level `m` before and after the move. After the move,
    level `m` + 1 keeps partial sums, which can need less room than final outputs.
    """
    level = m
    while True:
        b = x.first_boundary[OUTPUT_INDEX] + level
        if x.child_top_irrelevant[b] > 1:
            return True
        if level == 0 or x.child_boundary[b - 1] != x.child_boundary[b]:
            return False
        level -= 1


@kernel
def keeps_sums(x, o, m):
    """True if operand `o` is the output and its level `m` keeps partial sums, judged by temporal loops only."""
    if o != OUTPUT_INDEX:
        return False
    return x.sums_open[start_of(x, o, m)] != 0 or (x.wide_final != 0 and m > 0 and begins_early(x, m - 1))


@kernel
def top_is_open(problem, x, o):
    """True if the number of bits of operand `o` in its topmost memory is not known yet.

    The bits per output element in the topmost memory depend on where the topmost level begins.
    """
    top = problem.level_count[o] - 1
    return x.child_level[o] < top and most_precision(problem, o, top) != least_precision(problem, o, top)


@kernel
def partner_is_open(problem, x, b):
    """True if the memory below boundary `b` holds another operand whose number of bits there is not known yet."""
    k = problem.level_memory[x.boundary_operand[b], x.boundary_level[b]]
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0 and o != x.boundary_operand[b]:
            m = problem.memory_levels[k, j]
            if m == problem.level_count[o] - 1:
                if top_is_open(problem, x, o):
                    return True
            elif m >= x.child_level[o]:
                return True
    return False


@kernel
def effective_bits_of(problem, x, b):
    """Bits of the tile below a closed boundary, without the part that is overwritten when the loops above the
    boundary advance."""
    o = x.boundary_operand[b]
    point = x.child_boundary[b]
    precision = x.held_precision[b, point]
    if problem.switches[ROOM_FOR_FINAL]:
        precision = storage_bits(problem, o, x.boundary_level[b], keeps_sums(x, o, x.boundary_level[b]))
    return kept_bits(problem, x.held_elements[b, point], precision, x.child_top_relevant[b])


@kernel
def late_cycles(problem, x, b):
    """Longest stall in cycles among the links of a boundary.

    The function is valid only if no link of the boundary shares its port and the memory below is not shared.
    """
    point = x.child_boundary[b]
    allowed = x.cycles[point]
    k = problem.level_memory[x.boundary_operand[b], x.boundary_level[b]]
    if effective_bits_of(problem, x, b) * 2 > problem.memory_bits[k]:
        allowed = int(allowed / x.child_top_irrelevant[b])
    worst = 0
    for q in range(4):
        transfers = computing_transfers(problem, x.boundary_operand[b], direction_of(q), x.link_count[b, q, point])
        if transfers > 0:
            worst = max(worst, (x.link_cycles[b, q, point] - allowed) * transfers)
    return worst


@kernel
def set_keys(problem, x):
    """Compute the keys of each closed boundary. The keys are those numbers of the boundary that can still affect the
    cost of a completion.
    """
    for b in range(x.boundary_count):
        x.child_key[b] = -1
        x.child_key_runs[b] = 0
        if x.child_boundary[b] < 0:
            continue
        number = 2 * x.class_of[b, x.child_boundary[b]]
        if x.boundary_operand[b] == OUTPUT_INDEX:
            number += keeps_sums(x, OUTPUT_INDEX, x.boundary_level[b])
        if x.wide_final and x.boundary_operand[b] == OUTPUT_INDEX and begins_early(x, x.boundary_level[b]):
            x.child_key_runs[b] = EARLY
        if not x.latency_counts:
            x.child_key[b] = number if x.shares[b] and partner_is_open(problem, x, b) else 0
            continue
        x.child_key[b] = number
        k = problem.level_memory[x.boundary_operand[b], x.boundary_level[b]]
        if x.simple[b]:
            x.child_key_runs[b] |= late_cycles(problem, x, b)
        elif not x.always_buffered[k]:
            x.child_key_runs[b] |= (x.child_top_irrelevant[b] << 31) | x.child_top_relevant[b]


@kernel
def run_number(problem, x, kind, product, level, o):
    """Identifier of the group of outermost consecutive loops that have the same relevancy to operand `o`, in its
    current level `level`. `kind` is this relevancy. `product` is the product of the loop sizes.

    Two groups have different identifiers only if they can affect the cost of completions differently. A group affects
    this cost by its kind and product, or because it allows the next output level to begin early.
    """
    if not x.latency_counts or x.always_buffered[problem.level_memory[o, level]]:
        return 1 if x.wide_final and o == OUTPUT_INDEX and kind == IRRELEVANT else 0
    if kind == PARTIAL or kind < 0:
        return 1
    return product * 4 + kind


@kernel
def stationary_number(x, o, point):
    """Identifier of the multiset `point`: the loops during which the array keeps the data of input `o`. If `point` is
    negative, the multiset can still grow, and the identifier is -1.

    Multisets have different identifiers only if they can affect the cost of completions differently.
    """
    if point < 0:
        return -1
    return 0 if not x.latency_counts else x.array_count[o, point]


@kernel
def mix(number, value):
    """Hash value that combines the hash value `number` with `value`."""
    number = (number ^ value) * 0x100000001B3
    return number ^ ((number >> 29) & 0x7FFFFFFFF)


@kernel
def hash_child(problem, x):
    """Hash of the child, which is the label that is being made. The hash is computed from properties that
    `same_as_child` compares, so labels that can be merged have the same hash.
    """
    number = mix(1469598103934665603, x.child_lattice)
    number = mix(number, x.sums_open[x.child_start[OUTPUT_INDEX]])
    for o in range(problem.operand_count):
        level = x.child_level[o]
        number = mix(number, level)
        number = mix(number, run_number(problem, x, x.child_run_kind[o], x.child_run_product[o], level, o))
        if o != OUTPUT_INDEX:
            number = mix(number, stationary_number(x, o, x.child_stationary[o]))
    for b in range(x.boundary_count):
        number = mix(number, x.child_key[b])
        number = mix(number, x.child_key_runs[b])
    for r in range(problem.ordered_count):
        number = mix(number, x.child_ordered[r])
    if x.keep_paths:
        for w in range(PATH_WORDS):
            number = mix(number, x.child_path[w])
    return number


@kernel
def same_as_child(problem, x, g, i):
    """True if label (partial loop order) `i` of generation `g` can be merged with the child, the label that is being
    made. This is the case if both labels have the same completions, and each completion adds the same cost to both
    labels.
    """
    if x.label_lattice[g, i] != x.child_lattice:
        return False
    if x.sums_open[x.label_start[g, i, OUTPUT_INDEX]] != x.sums_open[x.child_start[OUTPUT_INDEX]]:
        return False
    for o in range(problem.operand_count):
        level = x.child_level[o]
        if x.label_level[g, i, o] != level:
            return False
        theirs = run_number(problem, x, x.label_run_kind[g, i, o], x.label_run_product[g, i, o], level, o)
        if theirs != run_number(problem, x, x.child_run_kind[o], x.child_run_product[o], level, o):
            return False
        if o != OUTPUT_INDEX:
            theirs = stationary_number(x, o, x.label_stationary[g, i, o])
            if theirs != stationary_number(x, o, x.child_stationary[o]):
                return False
    for b in range(x.boundary_count):
        if x.label_key[g, i, b] != x.child_key[b] or x.label_key_runs[g, i, b] != x.child_key_runs[b]:
            return False
    for r in range(problem.ordered_count):
        if x.label_ordered[g, i, r] != x.child_ordered[r]:
            return False
    if x.keep_paths:
        for w in range(PATH_WORDS):
            if x.label_path[g, i, w] != x.child_path[w]:
                return False
    if x.uncertain:
        for b in range(x.boundary_count):
            if x.label_boundary[g, i, b] != x.child_boundary[b]:
                return False
    return True


@kernel
def tile_matters(x, b):
    """True if the size of a tile, as the allocator counts it, can affect completions after boundary `b` above the tile
    is closed.
    """
    return x.shares[b] or not x.latency_counts


@kernel
def periods_of(x, b, q, point):
    """Number of periods of link `q` of boundary `b` at a lattice point (multiset of loops). The link makes one transfer
    in each period. At a simple boundary, all numbers of 2 or more have the same effect on completions, so the function
    returns 2 for them.
    """
    count = x.link_count[b, q, point]
    return min(count, 2) if x.simple[b] else count


@kernel
def hash_numbers(x, b, row, point):
    """Hash of the integers that `same_numbers` compares, for boundary `b` at a lattice point (multiset of loops)."""
    number = mix(1469598103934665603, int(x.elements[row, point]) if tile_matters(x, b) else 0)
    if not x.latency_counts:
        return number
    number = mix(number, x.tile_bits[b, point])
    if not x.simple[b]:
        number = mix(number, x.cycles[point])
        number = mix(number, x.held_elements[b, point])
    for q in range(4):
        number = mix(number, x.link_bits[b, q, point])
        number = mix(number, periods_of(x, b, q, point))
    return number


@kernel
def same_numbers(x, b, row, point, other):
    """True if boundary `b` has the same numbers at the lattice points (multisets of loops) `point` and `other`. Only
    numbers that can affect the cost of completions are compared. `row` is the row of `x.elements` for the level below
    the boundary.
    """
    if tile_matters(x, b) and x.elements[row, point] != x.elements[row, other]:
        return False
    if not x.latency_counts:
        return True
    if x.tile_bits[b, point] != x.tile_bits[b, other]:
        return False
    if not x.simple[b]:
        if x.cycles[point] != x.cycles[other]:
            return False
        if x.held_elements[b, point] != x.held_elements[b, other]:
            return False
        if x.held_precision[b, point] != x.held_precision[b, other]:
            return False
        for q in range(4):
            if x.link_bandwidth[b, q, point] != x.link_bandwidth[b, q, other]:
                return False
    for q in range(4):
        if x.link_bits[b, q, point] != x.link_bits[b, q, other]:
            return False
        if periods_of(x, b, q, point) != periods_of(x, b, q, other):
            return False
    return True


@kernel
def number_classes(x):
    """Assign each lattice point (multiset of loops) to a class of each boundary. Points at which a boundary has equal
    numbers are in the same class.
    """
    slots = 2
    while slots < 2 * x.lattice_size and slots < CLASS_SLOTS:
        slots *= 2
    for b in range(x.boundary_count):
        row = x.first_level[x.boundary_operand[b]] + x.boundary_level[b]
        for slot in range(slots):
            x.class_slot[slot] = -1
        classes = 0
        for point in range(x.lattice_size):
            slot = hash_numbers(x, b, row, point) & (slots - 1)
            while x.class_slot[slot] >= 0 and not same_numbers(x, b, row, point, x.class_slot[slot]):
                slot = (slot + 1) & (slots - 1)
            if x.class_slot[slot] >= 0:
                x.class_of[b, point] = x.class_of[b, x.class_slot[slot]]
            else:
                x.class_slot[slot] = point
                x.class_of[b, point] = classes
                classes += 1
    x.classes_known = True
