"""Branch and bound over loop orders from the inside out, one generation of labels after another (compiled).

A label is a partial loop order. A generation holds the labels with the same number of placed loops. Each label is
extended by every remaining loop. If level boundaries are free, each extension is tried with every choice of levels that
are closed before the loop. Labels are merged if they agree in everything that affects the cost of their completions;
the label with the lower energy is kept. Labels whose bound is no better than the best known mapping are pruned
(docs/proofs/exact-search.md).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX, check_boundaries
from tilewright.cost.control_kernel import begins_order
from tilewright.cost.kernel import evaluate_allocation, evaluate_order
from tilewright.cost.problem import IRRELEVANT, PARTIAL, RELEVANT
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.mapping.temporal import ANY
from tilewright.search.exact.bounds_kernel import TOLERANCE, bound_by_parent, bound_child, is_given_up
from tilewright.search.exact.known_kernel import is_matched
from tilewright.search.exact.labels_kernel import (
    hash_child,
    keeps_sums,
    load_child,
    number_classes,
    same_as_child,
    set_keys,
    start_search,
    store_child,
)
from tilewright.search.exact.lattice_record import BEGUN, LABELS, NOT_BEGUN, PATH_BITS, PATH_SYMBOLS, PATH_WORDS
from tilewright.search.exact.rules_kernel import ROUNDING, mark_greedy, mark_memories, mark_possible
from tilewright.search.exact.selection_kernel import keep_best_labels
from tilewright.search.exact.sums_kernel import sum_elements, sum_up
from tilewright.search.exact.tables_kernel import count_at, fill_point, least_bits_of, symbol_at, tile_bits_of
from tilewright.search.loma_kernel import matches
from tilewright.search.objective_kernel import value_of

REFUSED = -1
"""Outcome of `evaluate_leaf` for a loop order that does not match the required temporal ordering."""


@kernel
def bits_beside(problem, x, k, closing):
    """Lower bound of the bits that the operands other than `closing` take in memory `k`."""
    bits = 0.0
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o < 0 or o == closing:
            continue
        m = problem.memory_levels[k, j]
        top = m == problem.level_count[o] - 1
        if top and (x.child_level[o] < m or not x.free):
            bits += least_bits_of(problem, x, o, m, x.lattice_size - 1)
        elif top:
            bits += tile_bits_of(problem, x, o, m, x.lattice_size - 1, keeps_sums(x, o, m))
        elif m < x.child_level[o]:
            bits += tile_bits_of(problem, x, o, m, x.child_boundary[x.first_boundary[o] + m], keeps_sums(x, o, m))
        else:
            bits += least_bits_of(problem, x, o, m, x.child_start[o])
    return bits


@kernel
def may_fit(problem, x, o, m, point):
    """Return False if the tile of operand `o` at its level `m` certainly does not fit with the loops of `point`;
    otherwise True."""
    k = problem.level_memory[o, m]
    if problem.holds_everything[k]:
        return True
    limit = problem.memory_bits[k] * (1 + ROUNDING)
    bits = tile_bits_of(problem, x, o, m, point, keeps_sums(x, o, m))
    if bits > limit:
        return False
    if m < problem.level_count[o] - 1 and not x.shares[x.first_boundary[o] + m]:
        return True
    return bits + bits_beside(problem, x, k, o) <= limit


@kernel
def close_level(problem, x, o):
    """Place the next boundary of operand `o` directly above the loops placed so far. Return False if a tile does not
    fit."""
    m = x.child_level[o]
    b = x.first_boundary[o] + m
    point = x.child_lattice
    if not x.possible[b, point] or not may_fit(problem, x, o, m, point):
        return False
    x.child_boundary[b] = point
    x.child_top_irrelevant[b] = x.child_run_product[o] if x.child_run_kind[o] == IRRELEVANT else 1
    x.child_top_relevant[b] = x.child_run_product[o] if x.child_run_kind[o] == RELEVANT else 1
    x.child_energy += x.link_energy[b, point]
    x.child_level[o] = m + 1
    x.child_start[o] = point
    x.child_run_kind[o] = -1
    x.child_run_product[o] = 1
    top = problem.level_count[o] - 1
    if x.free and m + 1 == top:  # the bits per output element in the topmost memory are now known
        return may_fit(problem, x, o, top, x.lattice_size - 1)
    return True


@kernel
def close_filled(problem, x, j):
    """Close levels before one more loop of symbol `j` is placed, as the greedy allocator does. A level is closed if its
    tile would not fit its memory with this loop, or if its memory cannot have this loop. Closing a level places the
    boundary above it. A symbol is a pair (loop dimension, size).

    Only levels marked as `filled` are closed. Return False if the tile of a level does not fit even without the loop.
    """
    bigger = x.child_lattice + x.stride[j]
    for o in range(problem.operand_count):
        while x.child_level[o] < problem.level_count[o] - 1:
            m = x.child_level[o]
            if not x.filled[x.first_boundary[o] + m]:
                break
            bits = tile_bits_of(problem, x, o, m, bigger, keeps_sums(x, o, m))
            can_have = not problem.no_tile[o, m, x.loop_dimension[j]]
            if can_have and bits <= problem.memory_bits[problem.level_memory[o, m]]:
                break
            if not close_level(problem, x, o):
                return False
    return True


@kernel
def place_loop(problem, x, j):
    """Append one loop of symbol `j`, a pair (loop dimension, size), to the child (the partial loop order that is being
    made) as its new outermost loop.
    """
    d = x.loop_dimension[j]
    for o in range(problem.operand_count):
        kind = problem.kind[o, d]
        if kind != IRRELEVANT and o != OUTPUT_INDEX and x.child_stationary[o] < 0:
            x.child_stationary[o] = x.child_lattice
            x.child_energy += x.array_energy[o, x.child_lattice]
        if kind == PARTIAL:
            x.child_run_product[o] = 1
        elif kind == x.child_run_kind[o]:
            x.child_run_product[o] *= x.loop_size[j]
        else:
            x.child_run_product[o] = x.loop_size[j]
        x.child_run_kind[o] = kind
    placed = x.generation
    x.child_path[placed // PATH_SYMBOLS] |= j << (PATH_BITS * (placed % PATH_SYMBOLS))
    x.child_lattice += x.stride[j]


@kernel
def obeys_control(problem, x, j):
    """Return False if the control of the core (`control_kernel`) cannot have a loop of symbol `j`, a pair (loop
    dimension, size), as the next loop of the child. The child is the partial loop order that is being made. Otherwise,
    update the places of the child in loop orders and return True.

    Levels that the greedy allocator chooses only for a complete order are not checked here, but in `evaluate_leaf`.
    """
    d = x.loop_dimension[j]
    for o in range(problem.operand_count):
        m = x.child_level[o]
        known = m == problem.level_count[o] - 1 or not x.contested[x.first_boundary[o] + m]
        if known and problem.no_tile[o, m, d]:
            return False
    if x.any_contested:
        return True
    for r in range(problem.ordered_count):
        begun = x.child_ordered[r] != NOT_BEGUN
        for o in range(problem.operand_count):
            begun = begun or begins_order(problem, r, o, x.child_level[o], d)
        if begun and problem.order_place[r, d] >= 0:
            if problem.order_place[r, d] < x.child_ordered[r]:
                return False
            x.child_ordered[r] = problem.order_place[r, d]
        elif begun and x.child_ordered[r] == NOT_BEGUN:
            x.child_ordered[r] = BEGUN
    return True


@kernel
def finish_child(problem, x):
    """Place the open boundaries of each operand directly above the placed loops, from the inside out. Stop at the first
    contested boundary of the operand: its position depends on the complete order, so it is left open. Return False if a
    tile does not fit.
    """
    for o in range(problem.operand_count):
        if o != OUTPUT_INDEX and x.child_stationary[o] < 0:
            x.child_stationary[o] = x.child_lattice
            x.child_energy += x.array_energy[o, x.child_lattice]
        while x.child_level[o] < problem.level_count[o] - 1:
            if x.contested[x.first_boundary[o] + x.child_level[o]]:
                break
            if not close_level(problem, x, o):
                return False
    return True


@kernel
def loops_in(x, point):
    """Number of loops in the multiset at a point of the lattice."""
    loops = 0
    for j in range(x.symbol_count):
        loops += count_at(x, point, j)
    return loops


@kernel
def begin_levels_early(problem, ws):
    """Move each boundary of the output in `ws` inwards, past the irrelevant loops that lie directly below the boundary.

    The cost does not change: before and after the move, the model counts these loops in the level below the boundary.
    """
    for m in range(problem.level_count[OUTPUT_INDEX] - 1):
        bound = ws.bound[OUTPUT_INDEX, m]
        while bound > 0 and problem.kind[OUTPUT_INDEX, ws.loop_dimension[bound - 1]] == IRRELEVANT:
            bound -= 1
        ws.bound[OUTPUT_INDEX, m] = bound


@kernel
def evaluate_leaf(problem, ws, x):
    """Compute the cost of the child with the cost model. The child is the loop order that is being made, and is
    complete.

    Return an outcome of the cost model, or REFUSED if the order does not match the required temporal ordering.
    """
    ws.loop_count = x.loop_count
    for i in range(x.loop_count):
        j = symbol_at(x, i)
        x.order[i] = j
        ws.loop_dimension[i] = x.loop_dimension[j]
        ws.loop_size[i] = x.loop_size[j]
    if x.pattern_length > 0 and not matches(x):
        return REFUSED
    if not x.free:
        return evaluate_order(problem, ws)
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o] - 1):
            ws.bound[o, m] = loops_in(x, x.child_boundary[x.first_boundary[o] + m])
        ws.bound[o, problem.level_count[o] - 1] = x.loop_count
    if x.wide_final:
        begin_levels_early(problem, ws)
    outcome = check_boundaries(problem, ws)
    return outcome if outcome != FITS else evaluate_allocation(problem, ws)


@kernel
def take_leaf(problem, ws, x):
    """Compute the cost of the child, the complete loop order that was just made. Store the child as the best known
    mapping if it is better.
    """
    if evaluate_leaf(problem, ws, x) != FITS:
        return
    energy = ws.totals[ENERGY]
    latency = ws.totals[LATENCY]
    value = value_of(x, energy, latency)
    if value < x.child_bound * (1 - TOLERANCE):
        x.broken += 1
    if value < x.best:
        x.best = value
        x.best_energy = energy
        x.best_latency = latency
        x.improved = 1
        for w in range(PATH_WORDS):
            x.best_path[w] = x.child_path[w]
        for b in range(x.boundary_count):
            x.best_boundary[b] = x.child_boundary[b]


@kernel
def find_slot(problem, x):
    """Slot for the child (the label that is being made) in the hash table of the newest labels: the slot of an equal
    label, or a free slot if there is no equal label. A label is a partial loop order.
    """
    g = 1 - x.current
    set_keys(problem, x)
    slot = hash_child(problem, x) & (x.bucket_count - 1)
    while x.bucket[slot] > 0 and not same_as_child(problem, x, g, x.bucket[slot] - 1):
        slot = (slot + 1) & (x.bucket_count - 1)
    return slot


@kernel
def append_child(problem, x):
    """Add the child (the label that is being made) as the last label of the next generation. A label is a partial loop
    order. If the generation is full, the child is dropped.
    """
    g = 1 - x.current
    if x.label_count[g] >= LABELS:
        x.dropped_bound = min(x.dropped_bound, x.child_bound)
        return
    store_child(problem, x, g, x.label_count[g])
    x.label_count[g] += 1


@kernel
def insert_child(problem, x, slot):
    """Add the child (the label that is being made) to the next generation. A label is a partial loop order. If `slot`
    holds an equal label, the child replaces this label; callers make sure that the child has the lower energy. If
    `slot` is free and the generation is full, the child is dropped.
    """
    g = 1 - x.current
    if x.bucket[slot] > 0:
        store_child(problem, x, g, x.bucket[slot] - 1)
        return
    if x.label_count[g] < LABELS:
        x.bucket[slot] = x.label_count[g] + 1
        x.slot[x.slot_count] = slot
        x.slot_count += 1
    append_child(problem, x)


@kernel
def follow_pattern(x, j):
    """True if the required temporal ordering allows a loop of symbol `j` as the next loop. A symbol is a pair (loop
    dimension, size).
    """
    i = x.generation
    if i >= x.given_length:
        return True
    size = x.pattern_size[i]
    return x.pattern_dimension[i] == x.loop_dimension[j] and (size == ANY or size == x.loop_size[j])


@kernel
def is_known(problem, x):
    """True if a known point of a front matches the bounds of the child, the partial loop order that is being made. The
    sweep then drops the child.
    """
    latency = x.child_latency_bound
    return is_matched(x, x.child_energy_bound + problem.energy_pj_a_cycle * latency, latency)


@kernel
def may_improve(problem, x):
    """Begin the bounds of the child (the partial loop order that is being made). Return False if its first bounds
    already show that no completion is better than the best known mapping, or if a known point of a front matches them.
    Such a child needs neither a hash nor a latency bound of its own.
    """
    bound_by_parent(problem, x, x.generation + 1)
    return x.child_bound < x.best and not is_known(problem, x)


@kernel
def add_child(problem, ws, x, j):
    """Append loop `j` to the child (the partial loop order that is being made), and compute its bounds. Keep the child
    if it can beat the best known mapping.

    The levels to close below the loop are already closed. If the order of the child is complete, its cost is computed.
    A sweep for a front keeps the complete order instead, and computes its cost later.
    """
    x.nodes += 1
    if problem.has_control and not obeys_control(problem, x, j):
        return
    place_loop(problem, x, j)
    if x.child_lattice == x.lattice_size - 1:
        if finish_child(problem, x) and may_improve(problem, x):
            bound_child(problem, ws, x)
            if x.sweeps and not is_given_up(x, x.child_bound) and not is_known(problem, x):
                append_child(problem, x)
            elif not x.sweeps and not is_given_up(x, x.child_bound):
                take_leaf(problem, ws, x)
        return
    if not may_improve(problem, x):
        return
    slot = find_slot(problem, x)
    if x.bucket[slot] > 0 and x.child_energy >= x.label_energy[1 - x.current, x.bucket[slot] - 1]:
        return
    bound_child(problem, ws, x)
    if not is_given_up(x, x.child_bound) and not is_known(problem, x):
        insert_child(problem, x, slot)


@kernel
def close_some(problem, x, c0, c1, c2):
    """Close `c0`, `c1` and `c2` levels of operands 0, 1 and 2. Closing a level places the boundary above it. Return
    False if a tile does not fit.
    """
    fits = True
    for _ in range(c0):
        fits = fits and close_level(problem, x, 0)
    for _ in range(c1):
        fits = fits and close_level(problem, x, 1)
    for _ in range(c2):
        fits = fits and close_level(problem, x, 2)
    return fits


@kernel
def closable(problem, x, o, d):
    """Number of levels of operand `o` that can be closed below a loop over dimension `d`. Closing a level places the
    boundary above it.

    The number is 0 if the loop is irrelevant to the operand, because the loop then reuses the operand's data.
    """
    if o >= problem.operand_count or problem.kind[o, d] == IRRELEVANT:
        return 0
    return problem.level_count[o] - 1 - x.child_level[o]


@kernel
def extend_freely(problem, ws, x, g, i, j):
    """Extend label (partial loop order) `i` of generation `g` by loop `j`, once for each choice of the levels that are
    closed directly below the loop. Closing a level places the boundary above it.
    """
    load_child(problem, x, g, i)
    d = x.loop_dimension[j]
    most0 = closable(problem, x, 0, d)
    most1 = closable(problem, x, 1, d)
    most2 = closable(problem, x, 2, d)
    for c0 in range(most0 + 1):
        for c1 in range(most1 + 1):
            for c2 in range(most2 + 1):
                load_child(problem, x, g, i)
                if not close_some(problem, x, c0, c1, c2):
                    break
                add_child(problem, ws, x, j)


@kernel
def extend_greedily(problem, ws, x, g, i, j):
    """Extend label (partial loop order) `i` of generation `g` by loop `j`. Before that, close the levels that have no
    room for the loop, as the greedy allocator does. Closing a level places the boundary above it.
    """
    load_child(problem, x, g, i)
    if close_filled(problem, x, j):
        add_child(problem, ws, x, j)


@kernel
def empty_buckets(x):
    """Empty the hash table of the newest labels (partial loop orders)."""
    for i in range(x.slot_count):
        x.bucket[x.slot[i]] = 0
    x.slot_count = 0


@kernel
def fill_tables(problem, ws, x, count):
    """Fill the tables of the cost model for `count` lattice points (multisets of loops), from point `x.cursor` on."""
    end = min(x.lattice_size, x.cursor + count)
    for point in range(x.cursor, end):
        fill_point(problem, ws, x, point)
    x.cursor = end


@kernel
def mark_tables(problem, ws, x, count):
    """Compute the smallest tile sizes, and the properties of memories and boundaries (`MARK_FIELDS`). The tables of all
    lattice points (multisets of loops) must be filled (`fill_tables`). `count` is not used.
    """
    if x.uncertain:
        x.keep_paths = True  # labels whose loops were placed in different orders are then never merged
    sum_elements(problem, x)
    mark_memories(problem, x)
    if not x.free:
        mark_greedy(problem, x)
    mark_possible(problem, x)


@kernel
def sum_tables(problem, ws, x, count):
    """Compute the minima (`LEAST_FIELDS`) for the operand with number `count`. The minimum at a lattice point covers
    this point and all points with larger multisets. The classes of lattice points are computed later, by `begin`.
    """
    sum_up(problem, x, count)


@kernel
def begin(problem, ws, x, count):
    """Make the first generation of labels (partial loop orders): only the label of the empty order.

    The generation is empty if the search drops this label because of its lower bound.
    """
    start_search(problem, x)
    x.generation = 0
    x.current = 0
    x.cursor = 0
    x.dropped_bound = math.inf
    x.label_count[1] = 0
    x.label_count[0] = 0
    empty_buckets(x)
    bound_by_parent(problem, x, 0)
    bound_child(problem, ws, x)
    if not is_given_up(x, x.child_bound):
        if not x.classes_known:
            number_classes(x)
        store_child(problem, x, 0, 0)
        x.label_count[0] = 1


@kernel
def expand_label(problem, ws, x, i):
    """Extend label (partial loop order) `i` of the current generation by every possible loop."""
    g = x.current
    if is_given_up(x, x.label_bound[g, i]):
        return
    for j in range(x.symbol_count):
        if count_at(x, x.label_lattice[g, i], j) < x.multiplicity[j] and follow_pattern(x, j):
            if x.free:
                extend_freely(problem, ws, x, g, i, j)
            else:
                extend_greedily(problem, ws, x, g, i, j)


@kernel
def next_generation(problem, ws, x, count):
    """Go on to the next generation: the newest labels (partial loop orders) become the labels of the current
    generation. `count` is not used.
    """
    g = x.current
    x.label_count[g] = 0
    x.current = 1 - g
    x.cursor = 0
    x.generation += 1
    empty_buckets(x)


@kernel
def expand_labels(problem, ws, x, count):
    """Extend the next `count` labels (partial loop orders), from label `x.cursor` of the current generation on, by
    every possible loop.

    If `x.width` is 0, the function ends at the end of the generation. Otherwise, the function goes on with the next
    generation, of which `x.width` labels are kept.
    """
    for _ in range(count):
        if x.cursor < x.label_count[x.current]:
            expand_label(problem, ws, x, x.cursor)
            x.cursor += 1
        if x.cursor == x.label_count[x.current]:
            if x.width == 0 or x.label_count[x.current] == 0:
                return
            keep_best_labels(problem, x, 1 - x.current)
            next_generation(problem, ws, x, 0)
