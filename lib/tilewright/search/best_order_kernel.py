"""Search for the best order of at most six loops, with few runs of the cost model (compiled).

A boundary of an operand separates the loops of one of its memory levels from the loops of the next level. The set of
loops below a boundary, regardless of their order, is the *state* of the boundary. The tiles, transfers and accesses
over a boundary depend only on its state. There are at most 64 states, and tables hold the accesses for each state.

A *row* has one state for each boundary. Each loop order has a row, and the accesses of the order are sums over the
tables. These sums give a lower bound of the energy. The busiest port gives a lower bound of the latency. The cost model
is run only for orders that these bounds do not exclude.

Rows depend on the capacities of memories, but not on energies or port widths. Accesses for states depend on port
widths, but not on capacities or energies. Designs with the same capacities therefore share the rows, and designs with
the same port widths share the accesses.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.base.record_pointer import RecordPointer
from tilewright.cost.allocation_kernel import (
    OUTPUT_INDEX,
    choose_slices,
    first_loop,
    held_operands,
    multiply_spatial_level,
    offer_slices,
    storage_precision,
)
from tilewright.cost.kernel import evaluate_order, word_accesses
from tilewright.cost.latency_kernel import CONSISTENT_UNION, time_links
from tilewright.cost.loading_kernel import PORT_TIME, computing_transfers
from tilewright.cost.problem import IRRELEVANT, MAX_LEVELS, MAX_OPERANDS, MAX_SERVICES, MAX_TERMS, PROBLEM_DTYPE
from tilewright.cost.reuse_kernel import count_cycles, merge_stationary_loops, record_data_movement, size_tiles
from tilewright.cost.tile_kernel import WHOLE_TILES, tile_elements_of
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.hardware.core import FH, TH, TL
from tilewright.search.objective_kernel import POWER_FIELDS, ranks_before

MOST_LOOPS = 6
STATES = 2**MOST_LOOPS
MISFIT = -1
MARGIN = 1e-9
"""Relative margin by which bounds are reduced. The margin is larger than the rounding error of a sum of accesses."""

CANDIDATE_DTYPE = np.dtype(
    [
        ("problem", np.int64),  # address of a record of PROBLEM_DTYPE
        ("orders", np.int64),  # address of int8 [order, position]: loop, innermost loop first
        # Address of int8 [order, row_length]: states by operand and boundary. MISFIT as the first state: does not fit.
        ("rows", np.int64),
        ("accesses", np.int64),  # address of float64 [service, state, 2]: word accesses, and cycles of transfers
        ("bounds", np.int64),  # address of float64 [order, 2]: lower bounds of energy (pJ) and latency (cycles)
        ("order_count", np.int64),
        ("length", np.int64),  # number of loops in an order
        ("row_length", np.int64),
        ("depth", np.int64),  # number of places in a row for the boundaries of one operand
        ("kinds", np.int64),  # number of different loops
        ("loop_dimension", np.int64, (MOST_LOOPS,)),  # [loop]
        ("loop_size", np.int64, (MOST_LOOPS,)),  # [loop]
        ("repeats", np.int64, (MOST_LOOPS,)),  # [loop] Number of times that an order contains the loop
        ("rows_are_known", np.int8),
        ("accesses_are_known", np.int8),
    ],
    align=True,
)
"""Spatial mapping of a layer, with the orders of the temporal loops and their bounds."""

SEARCH_DTYPE = np.dtype(
    [
        ("candidates", np.int64),  # address of records of CANDIDATE_DTYPE
        *POWER_FIELDS,
        ("best_candidate", np.int64),  # -1 if no order fits
        ("best_row", np.int64),
        ("best_energy", np.float64),  # pJ
        ("best_latency", np.float64),  # cycles
        ("costed", np.int64),  # number of runs of the cost model
    ],
    align=True,
)
"""Record of the search for the best order of a layer: the inputs, and the result."""

TABLES_DTYPE = np.dtype(
    [
        ("state_count", np.int64),
        ("step", np.int64, (MOST_LOOPS,)),  # [loop] Increase of the state number if the loop is added to a state
        ("state", np.int64, (MOST_LOOPS + 1,)),  # [position] State of the loops below the position in the current order
        ("elements", np.float64, (MAX_OPERANDS, MAX_LEVELS, STATES)),  # [o, m, state] Elements of the tile in level m
        # [o, boundary, state] Energy in pJ of the accesses to the memories on both sides of the boundary.
        ("energy", np.float64, (MAX_OPERANDS, MAX_LEVELS, STATES)),
        ("service_place", np.int64, (MAX_SERVICES,)),  # [service] Position of its boundary in a row
    ],
    align=True,
)
"""Tables for the current spatial mapping, by state (set of loops below a boundary). Boundary `b` of an operand is just
below its level `b`.
"""

problem_at = RecordPointer(PROBLEM_DTYPE)
candidate_at = RecordPointer(CANDIDATE_DTYPE)
small_integer = RecordPointer(np.dtype([("value", np.int8)]))
floating = RecordPointer(np.dtype([("value", np.float64)]))


@kernel
def find_best(search, tables, ws, count):
    """Find the best loop order over `count` spatial mappings, and write it to `search`. Of equally good orders, the
    first one wins. If no order fits, `search.best_candidate` is -1. On return, `ws` has the breakdown of the cost of
    the best order.
    """
    search.best_candidate = -1
    search.costed = 0
    seed_candidate = seed_row = -1
    for c in range(count):
        candidate = candidate_at(search.candidates, c)
        number_states(candidate, tables)
        if not candidate.rows_are_known:
            place_orders(problem_at(candidate.problem, 0), ws, tables, candidate)
            candidate.rows_are_known = True
        if not candidate.accesses_are_known:
            count_accesses(problem_at(candidate.problem, 0), ws, tables, candidate)
            candidate.accesses_are_known = True
        row = bound_orders(problem_at(candidate.problem, 0), tables, candidate, search)
        if row >= 0 and (seed_row < 0 or bound_ranks_before(search, c, row, seed_candidate, seed_row)):
            seed_candidate = c
            seed_row = row
    if seed_row < 0:
        return
    found_energy = found_latency = math.inf
    if cost_row(search, ws, seed_candidate, seed_row):
        found_energy = ws.totals[ENERGY]
        found_latency = ws.totals[LATENCY]
    for c in range(count):
        candidate = candidate_at(search.candidates, c)
        for row in range(candidate.order_count):
            energy = floating(candidate.bounds, 2 * row).value
            latency = floating(candidate.bounds, 2 * row + 1).value
            if energy == math.inf or ranks_before(search, found_energy, found_latency, energy, latency):
                continue
            if search.best_candidate >= 0 and not ranks_before(
                search, energy, latency, search.best_energy, search.best_latency
            ):
                continue
            if cost_row(search, ws, c, row):
                energy = ws.totals[ENERGY]
                latency = ws.totals[LATENCY]
                if search.best_candidate < 0 or ranks_before(
                    search, energy, latency, search.best_energy, search.best_latency
                ):
                    search.best_candidate = c
                    search.best_row = row
                    search.best_energy = energy
                    search.best_latency = latency
    if search.best_candidate >= 0:
        clear_figures(ws)
        cost_row(search, ws, search.best_candidate, search.best_row)


@kernel
def clear_figures(ws):
    """Set the energies, accesses and loading times in the workspace to 0. Otherwise, values of an earlier problem with
    more operands or levels would remain.
    """
    for o in range(MAX_OPERANDS):
        for m in range(MAX_LEVELS):
            for x in range(4):
                ws.words[o, m, x] = 0
                ws.energy[o, m, x] = 0.0
                ws.transfer_cycles[o, m, x] = 0
                ws.load[o, m, x] = 0.0
    for t in range(MAX_TERMS):
        ws.terms[t] = 0.0


@kernel
def bound_ranks_before(search, c, row, other_c, other_row):
    """True if order `row` of candidate `c` comes before order `other_row` of candidate `other_c`, when the lower bounds
    of both orders are compared by the objective. A candidate is a spatial mapping.
    """
    one = candidate_at(search.candidates, c)
    other = candidate_at(search.candidates, other_c)
    return ranks_before(
        search,
        floating(one.bounds, 2 * row).value,
        floating(one.bounds, 2 * row + 1).value,
        floating(other.bounds, 2 * other_row).value,
        floating(other.bounds, 2 * other_row + 1).value,
    )


@kernel
def cost_row(search, ws, c, row):
    """Compute the cost of order number `row` of candidate (spatial mapping) number `c` with the cost model. `ws` then
    has the breakdown of the cost. Return False if the order does not fit the core.
    """
    candidate = candidate_at(search.candidates, c)
    load_order(ws, candidate, row)
    search.costed += 1
    return evaluate_order(problem_at(candidate.problem, 0), ws) == FITS


@kernel
def load_order(ws, candidate, row):
    """Write order number `row` of a candidate (spatial mapping) into the workspace."""
    n = candidate.length
    ws.loop_count = n
    for i in range(n):
        loop = small_integer(candidate.orders, row * n + i).value
        ws.loop_dimension[i] = candidate.loop_dimension[loop]
        ws.loop_size[i] = candidate.loop_size[loop]


@kernel
def number_states(candidate, tables):
    """Assign a number to each state. A state is the set of loops below a boundary; it can contain the same loop several
    times. The number is in mixed radix, with one digit for each different loop. The digit counts how many times the
    state contains the loop.
    """
    count = 1
    for loop in range(candidate.kinds):
        tables.step[loop] = count
        count *= candidate.repeats[loop] + 1
    tables.state_count = count


@kernel
def load_state(ws, candidate, tables, state):
    """Write to the workspace an order whose innermost loops are the loops of `state`, a set of loops below a boundary.
    Return the number of loops in the state.

    The order of the loops is arbitrary, both inside the state and above it.
    """
    inside = 0
    for loop in range(candidate.kinds):
        for _ in range(state // tables.step[loop] % (candidate.repeats[loop] + 1)):
            ws.loop_dimension[inside] = candidate.loop_dimension[loop]
            ws.loop_size[inside] = candidate.loop_size[loop]
            inside += 1
    i = inside
    for loop in range(candidate.kinds):
        own = state // tables.step[loop] % (candidate.repeats[loop] + 1)
        for _ in range(candidate.repeats[loop] - own):
            ws.loop_dimension[i] = candidate.loop_dimension[loop]
            ws.loop_size[i] = candidate.loop_size[loop]
            i += 1
    ws.loop_count = i
    return inside


# rows of states -------------------------------------------------------------------------------------------------------


@kernel
def place_orders(problem, ws, tables, candidate):
    """Compute the row of each order of a candidate (spatial mapping). The row has the state of each level boundary that
    the allocator chooses for the order; a state is the set of loops below a boundary. If an order does not fit, its row
    begins with MISFIT.
    """
    size_states(problem, ws, tables, candidate)
    for row in range(candidate.order_count):
        load_order(ws, candidate, row)
        tables.state[0] = 0
        for i in range(candidate.length):
            loop = small_integer(candidate.orders, row * candidate.length + i).value
            tables.state[i + 1] = tables.state[i] + tables.step[loop]
        start = row * candidate.row_length
        if not place_loops(problem, ws, tables):
            small_integer(candidate.rows, start).value = MISFIT
            continue
        merge_stationary_loops(problem, ws)
        for o in range(problem.operand_count):
            still = 0
            if o != OUTPUT_INDEX and problem.same_data_is_no_access:
                while still < ws.merged[o, 0] and problem.kind[o, ws.loop_dimension[still]] == IRRELEVANT:
                    still += 1
            small_integer(candidate.rows, start + o * candidate.depth).value = tables.state[still]
            for m in range(problem.level_count[o] - 1):
                state = tables.state[ws.merged[o, m]]
                small_integer(candidate.rows, start + o * candidate.depth + m + 1).value = state


@kernel
def size_states(problem, ws, tables, candidate):
    """Compute, for every state, the number of elements of the tile of each operand at each memory level. A state is the
    set of loops below a boundary.
    """
    for state in range(tables.state_count):
        inside = load_state(ws, candidate, tables, state)
        for o in range(problem.operand_count):
            for d in range(problem.dimension_count):
                ws.dimension_size[o, d] = 1.0
            for i in range(inside):
                ws.dimension_size[o, ws.loop_dimension[i]] *= ws.loop_size[i]
            for m in range(problem.level_count[o]):
                multiply_spatial_level(problem, ws, o, m)
                tables.elements[o, m, state] = tile_elements_of(problem, ws, o, o)


@kernel
def place_loops(problem, ws, tables):
    """Compute the level boundaries that the allocator would choose, and write them to `ws.bound`. Return False if
    the order does not fit."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        held = held_operands(problem, k)
        if problem.holds_everything[k]:
            for j in range(held):
                ws.bound[problem.memory_operands[k, j], problem.memory_levels[k, j]] = ws.loop_count
            continue
        for j in range(held):
            if not list_known_slices(problem, ws, tables, k, j, MAX_OPERANDS - held + j):
                return False
        if choose_slices(problem, ws, k, held) > problem.memory_bits[k]:
            return False
        for j in range(held):
            o = problem.memory_operands[k, j]
            m = problem.memory_levels[k, j]
            end = first_loop(problem, ws, k, j) + ws.slice_choice[MAX_OPERANDS - held + j]
            ws.bound[o, m] = end
            if m == problem.level_count[o] - 1 and end < ws.loop_count:
                return False
    return True


@kernel
def list_known_slices(problem, ws, tables, k, j, row):
    """Write the sizes and costs of slices, taken from the tables, to row `row` of the workspace. Return False if no
    slice fits.

    A slice is a tile that memory `k` could keep for its operand number `j`. The allocator computes the same values.
    """
    o = problem.memory_operands[k, j]
    m = problem.memory_levels[k, j]
    first = first_loop(problem, ws, k, j)
    n = ws.loop_count
    limit = float(problem.memory_bits[k])
    precision = storage_precision(problem, ws, o, m, first)
    doubled = problem.force_double_buffering[k]
    whole = tables.elements[o, m, tables.state[n]] * precision
    top = m == problem.level_count[o] - 1
    kept = 0
    if top and not doubled and whole <= limit:
        ws.slice_bits[row, n - first] = whole
        kept = n - first + 1
    if kept == 0:
        for i in range(first, n + 1):
            bits = tables.elements[o, m, tables.state[i]] * precision
            if doubled and i < n and bits < whole:
                bits *= 2
            ws.slice_bits[row, i - first] = bits
            if bits > limit:
                break
            kept += 1
    return offer_slices(ws, row, first, kept, top)


# lower bounds ---------------------------------------------------------------------------------------------------------


@kernel
def bound_orders(problem, tables, candidate, search):
    """Compute the lower bounds of energy and latency of every order of a candidate (spatial mapping). The bounds are
    infinite for an order that does not fit.

    Return the index of the order whose bounds are best under the objective (the first of several), or -1 if no order
    fits.
    """
    place_services(problem, tables, candidate)
    price_states(problem, tables, candidate)
    cycles = float(computing_cycles(problem, candidate))
    ports = problem.switches[PORT_TIME] and problem.switches[CONSISTENT_UNION] and problem.switches[WHOLE_TILES]
    best = -1
    best_energy = best_latency = math.inf
    for row in range(candidate.order_count):
        start = row * candidate.row_length
        energy = latency = math.inf
        if small_integer(candidate.rows, start).value != MISFIT:
            latency = cycles
            if ports:
                latency = max(latency, busiest_port(problem, tables, candidate, start))
            latency = (latency + problem.fixed_cycles) * (1 - MARGIN)
            energy = problem.fixed_energy_pj + problem.energy_pj_a_cycle * latency
            for o in range(problem.operand_count):
                for b in range(problem.level_count[o]):
                    state = small_integer(candidate.rows, start + o * candidate.depth + b).value
                    energy += tables.energy[o, b, state]
            energy *= 1 - MARGIN
            if best < 0 or ranks_before(search, energy, latency, best_energy, best_latency):
                best = row
                best_energy = energy
                best_latency = latency
        floating(candidate.bounds, 2 * row).value = energy
        floating(candidate.bounds, 2 * row + 1).value = latency
    return best


@kernel
def busiest_port(problem, tables, candidate, start):
    """Cycles for which the busiest port transfers data while the array computes. The number is a lower bound of the
    latency. `start` is the position in `rows` at which the row of the order begins."""
    most = 0.0
    for p in range(problem.port_count):
        cycles = 0.0
        for s in range(problem.port_start[p], problem.port_start[p + 1]):
            place = tables.service_place[s]
            if place >= 0:
                state = small_integer(candidate.rows, start + place).value
                cycles += floating(candidate.accesses, 2 * (s * tables.state_count + state) + 1).value
        most = max(most, cycles)
    return most


@kernel
def computing_cycles(problem, candidate):
    """Cycles in which the array computes: the cycles per operation times the product of all loop sizes."""
    cycles = problem.cycles_per_operation
    for loop in range(candidate.kinds):
        for _ in range(candidate.repeats[loop]):
            cycles *= candidate.loop_size[loop]
    return cycles


@kernel
def price_states(problem, tables, candidate):
    """Compute the least energy in pJ of the accesses over each boundary, for each state (set of loops below the
    boundary).
    """
    for o in range(problem.operand_count):
        for b in range(problem.level_count[o]):
            for state in range(tables.state_count):
                tables.energy[o, b, state] = 0.0
    for s in range(problem.port_start[problem.port_count]):
        place = tables.service_place[s]
        if place >= 0:
            o = problem.service_operand[s]
            k = problem.level_memory[o, problem.service_level[s]]
            x = problem.service_direction[s]
            cost = problem.read_energy_pj[k] if x == TL or x == TH else problem.write_energy_pj[k]
            for state in range(tables.state_count):
                words = floating(candidate.accesses, 2 * (s * tables.state_count + state)).value
                tables.energy[o, place - o * candidate.depth, state] += words * cost


@kernel
def count_accesses(problem, ws, tables, candidate):
    """Compute lower bounds of the number of word accesses and of the transfer cycles, for each service and each state.

    A service is one link that uses a port. A state is the set of loops below a boundary. To compute the data movement
    in a state, the function places the boundaries of all operands directly above the loops of the state.
    """
    for state in range(tables.state_count):
        inside = load_state(ws, candidate, tables, state)
        for o in range(problem.operand_count):
            for m in range(problem.level_count[o]):
                ws.merged[o, m] = inside
            ws.merged[o, problem.level_count[o] - 1] = ws.loop_count
        count_cycles(problem, ws)
        size_tiles(problem, ws, 0)
        record_data_movement(problem, ws, 0)
        for o in range(problem.operand_count):
            if o != OUTPUT_INDEX and problem.same_data_is_no_access:
                ws.count[0, o, 0, TL] = np.int64(ws.iterations[ws.loop_count] / ws.iterations[inside])
        time_links(problem, ws, 0)
        for s in range(problem.port_start[problem.port_count]):
            o = problem.service_operand[s]
            m = problem.service_level[s]
            x = problem.service_direction[s]
            count = ws.count[0, o, m, x]
            cycles = 0
            if count > 0 and not comes_back_in_windows(problem, o, x):
                cycles = ws.transfer_cycles[o, m, x] * computing_transfers(problem, o, x, count)
            place = 2 * (s * tables.state_count + state)
            floating(candidate.accesses, place).value = least_words(problem, ws, o, m, x)
            floating(candidate.accesses, place + 1).value = float(cycles)


@kernel
def comes_back_in_windows(problem, o, x):
    """True if the link of operand `o` in direction `x` reads back a number of partial sums that depends on the order of
    the loops above the boundary. The state (the set of loops below the boundary) alone does not determine this number.
    """
    return problem.has_output_windows and o == OUTPUT_INDEX and (x == TL or x == FH)


@kernel
def place_services(problem, tables, candidate):
    """Write `tables.service_place`: for each service, the state on which its transfers depend. A service is a link that
    uses a port. The state is given by its position in a row, which has one state for each boundary. The position is -1
    if the transfers depend on no state.
    """
    for s in range(problem.port_start[problem.port_count]):
        o = problem.service_operand[s]
        x = problem.service_direction[s]
        border = problem.service_level[s]
        if x == TH or x == FH:
            border += 1
        tables.service_place[s] = -1
        if border < problem.level_count[o]:
            tables.service_place[s] = o * candidate.depth + border


@kernel
def least_words(problem, ws, o, m, x):
    """Lower bound of the number of word accesses over a link.

    If the number of lanes is fractional, a rounding error of an average can change the number by one word. The bound is
    then one word smaller. If `comes_back_in_windows` holds, the bound is 0.
    """
    if comes_back_in_windows(problem, o, x):
        return 0.0
    words = float(word_accesses(problem, ws, o, m, x))
    if problem.spatial_fractional:
        words = max(0.0, words - 1.0)
    return words
