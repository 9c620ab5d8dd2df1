"""What the orders of a problem cost under many unit energies and word widths at once (compiled; docs/fronts.md).

A loop order moves the same data whatever an access costs and however wide a word is. So orders are allocated and costed
once, those that move the same data become one *row*, and rows are priced for each *variant* of the hardware.
"""

import math

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import allocate, check_boundaries
from tilewright.cost.kernel import evaluate_allocation, evaluate_order, parts_of_transfer, words_of_parts
from tilewright.cost.loading_kernel import PORT_TIME, SERIAL_HALF_SHARED, computing_transfers
from tilewright.cost.problem import MAX_PORTS, MAX_TERMS
from tilewright.cost.tile_kernel import WHOLE_TILES
from tilewright.cost.workspace import FITS, IDEAL_TEMPORAL, LATENCY, LOW, MEAN, WHOLE
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.search.loma_kernel import BATCH_ORDERS, keep_closest_failure, load_row

MAX_ROWS = 1024
MAX_WIDTHS = 16
MAX_VARIANTS = 1024
MAX_PLACES = 16
"""Memory levels of all operands together."""
BUCKETS = 4096
NUMBERS = 5
"""Numbers of the key of a row for each link: bits of a transfer, transfers, least, average and most elements."""
KEY_LENGTH = MAX_PLACES * 4 * NUMBERS
NO_ROW = -1
UNKNOWN = -1.0

FIGURES_DTYPE = np.dtype(
    [
        ("place_count", np.int64),
        ("place_operand", np.int64, (MAX_PLACES,)),  # [place] o
        ("place_level", np.int64, (MAX_PLACES,)),  # [place] m
        ("width_count", np.int64),
        ("reference", np.int64),  # the width that the problem has, NO_ROW if none of these
        ("wide", np.int64, (MAX_WIDTHS, MAX_PLACES, 4)),  # [width, place, x] bits; 0 without port
        ("variant_count", np.int64),
        ("variant_width", np.int64, (MAX_VARIANTS,)),  # [variant]
        ("read_pj", np.float64, (MAX_VARIANTS, MAX_PLACES)),  # [variant, place] of a word
        ("write_pj", np.float64, (MAX_VARIANTS, MAX_PLACES)),
        ("term_fixed_pj", np.float64, (MAX_VARIANTS, MAX_TERMS)),  # [variant, t]
        ("term_pj_a_cycle", np.float64, (MAX_VARIANTS, MAX_TERMS)),
        ("energy_power", np.int64),  # of the objective
        ("latency_power", np.int64),
        ("orders", np.int64),  # seen so far
        ("fitting", np.int64),  # of these, those that fit
        ("row_count", np.int64),
        ("bucket", np.int32, (BUCKETS,)),  # row, or NO_ROW
        ("key", np.float64, (KEY_LENGTH,)),  # of the order at hand
        ("row_key", np.float64, (MAX_ROWS, KEY_LENGTH)),
        ("row_words", np.int64, (MAX_ROWS, MAX_WIDTHS, MAX_PLACES, 4)),  # [row, width, place, x] word accesses
        ("row_busy", np.float64, (MAX_ROWS, MAX_WIDTHS)),  # [row, width] cycles that its orders take at least
        ("row_energy", np.float64, (MAX_ROWS,)),  # scratch: of the variant at hand
        ("row_latency", np.float64, (MAX_ROWS,)),  # least at the reference
        ("row_order", np.int64, (MAX_ROWS,)),  # the first order with that
        ("row_last", np.int64, (MAX_ROWS,)),  # its last order in the block
        ("order_before", np.int64, (BATCH_ORDERS,)),  # [order of the block] the one of its row before it, or NO_ROW
        ("exact_latency", np.float64, (MAX_ROWS, MAX_WIDTHS)),  # [row, width] of its fastest order; UNKNOWN
        ("exact_order", np.int64, (MAX_ROWS, MAX_WIDTHS)),  # the first order with that
        ("bandwidth_max_bits", np.int64, (MAX_PLACES, 4)),  # [place, x] those of the problem
        ("values_all", np.int8),  # bool: best orders at every width are asked for, not at the reference alone
        ("port_cycles", np.float64, (MAX_PORTS,)),  # scratch
        ("least_energy_pj", np.float64, (MAX_VARIANTS,)),  # [variant] of all orders
        ("least_latency_cycles", np.float64, (MAX_WIDTHS,)),  # [width] of all orders
        (
            "best_energy_pj",
            np.float64,
            (MAX_VARIANTS,),
        ),  # [variant] of the best order, at the reference
        ("best_latency_cycles", np.float64, (MAX_VARIANTS,)),
        ("best_value", np.float64, (MAX_VARIANTS,)),  # of the objective
        ("best_second", np.float64, (MAX_VARIANTS,)),  # of what it leaves out
        ("best_order", np.int64, (MAX_VARIANTS,)),
    ],
    align=True,
)
"""Variants of the hardware, and what is known of the orders of a layer for each."""


@kernel
def collect_orders(problem, ws, block, figures, count):
    """Cost the first `count` orders of `block` and add them to the rows; the spatial mapping must stay the same.

    Rows are priced when there is no more room for them, and at the end of the block.
    """
    ws.loop_count = block.length
    for row in range(count):
        load_row(problem, ws, block, row)
        outcome = check_boundaries(problem, ws) if block.bounded else allocate(problem, ws)
        if outcome == FITS:
            outcome = evaluate_allocation(problem, ws)
        if outcome == FITS:
            figures.fitting += 1
            block.fitting += 1
            add_order(problem, ws, block, figures, row)
        elif block.fitting == 0:
            keep_closest_failure(ws, block, outcome)
    price_rows(problem, ws, block, figures, figures.orders)
    figures.orders += count


@kernel
def add_order(problem, ws, block, figures, place):
    """Make the order in the workspace, at a place of the block, a row, or find the row that moves the same data."""
    bucket = write_key(problem, ws, figures)
    row = figures.bucket[bucket]
    while row != NO_ROW and not has_key(figures, row):
        bucket = (bucket + 1) % BUCKETS
        row = figures.bucket[bucket]
    latency = ws.totals[LATENCY]
    if row == NO_ROW:
        if figures.row_count == MAX_ROWS:
            price_rows(problem, ws, block, figures, figures.orders)
            load_row(problem, ws, block, place)
            evaluate_order(problem, ws)  # what it has left in the workspace is that of others now
            bucket = write_key(problem, ws, figures)
        row = figures.row_count
        figures.row_count += 1
        figures.bucket[bucket] = row
        begin_row(problem, ws, figures, row)
        figures.row_latency[row] = latency
        figures.row_order[row] = place
        figures.row_last[row] = NO_ROW
    elif latency < figures.row_latency[row]:
        figures.row_latency[row] = latency
        figures.row_order[row] = place
    figures.order_before[place] = figures.row_last[row]
    figures.row_last[row] = place


@kernel
def write_key(problem, ws, figures):
    """Write all that word accesses are computed from; returns the bucket to look in first."""
    digest = np.uint64(14695981039346656037)
    i = 0
    whole_tiles = problem.switches[WHOLE_TILES]
    for place in range(figures.place_count):
        o = figures.place_operand[place]
        m = figures.place_level[place]
        for x in range(4):
            amount = ws.amount[0, o, m, x]
            figures.key[i] = float(amount * ws.precision[0, o, m, x])
            figures.key[i + 1] = float(ws.count[0, o, m, x])
            figures.key[i + 2] = 0.0
            figures.key[i + 3] = 0.0
            figures.key[i + 4] = 0.0
            if whole_tiles and amount != 0:
                held = x == FH or x == TH
                figures.key[i + 2] = ws.held_tile[LOW, o, m + 1] if held else ws.wide_tile[LOW, o, m]
                figures.key[i + 3] = ws.held_tile[MEAN, o, m + 1] if held else ws.wide_tile[MEAN, o, m]
                figures.key[i + 4] = ws.held_tile[WHOLE, o, m + 1] if held else ws.wide_tile[WHOLE, o, m]
            for j in range(NUMBERS):
                digest = (digest ^ np.uint64(np.int64(figures.key[i + j] * 64.0))) * np.uint64(1099511628211)
                digest ^= digest >> np.uint64(29)
            i += NUMBERS
    return np.int64(digest % np.uint64(BUCKETS))


@kernel
def has_key(figures, row):
    """Whether a row has the key of the order at hand."""
    i = 0
    while i < figures.place_count * 4 * NUMBERS and figures.row_key[row, i] == figures.key[i]:
        i += 1
    return i == figures.place_count * 4 * NUMBERS


@kernel
def begin_row(problem, ws, figures, row):
    """Write what is the same for all orders of a row."""
    for i in range(figures.place_count * 4 * NUMBERS):
        figures.row_key[row, i] = figures.key[i]
    for place in range(figures.place_count):
        o = figures.place_operand[place]
        m = figures.place_level[place]
        for x in range(4):
            parts = parts_of_transfer(problem, ws, o, m, x)
            words = 0
            wide = 0
            for b in range(figures.width_count):
                if figures.wide[b, place, x] != wide:
                    wide = figures.wide[b, place, x]
                    words = words_of_parts(problem, ws, o, m, x, parts, wide)
                figures.row_words[row, b, place, x] = words
    for b in range(figures.width_count):
        figures.row_busy[row, b] = busy_cycles(problem, ws, figures, b)
        figures.exact_latency[row, b] = UNKNOWN


@kernel
def busy_cycles(problem, ws, figures, b):
    """Cycles that an order which moves this data takes at least where words are no wider than those of the problem.

    Where every transfer takes port time, no port moves its data in less than its transfers take: all of them where
    loads of inputs that share a port follow one another, else those while the array computes (docs/fronts.md). If not
    even that, all passes and the drain are sure.
    """
    if not problem.switches[PORT_TIME] or problem.spatial_differs:
        return ws.totals[IDEAL_TEMPORAL] + problem.drain_cycles
    for p in range(problem.port_count):
        figures.port_cycles[p] = float(problem.drain_cycles)
    for place in range(figures.place_count):
        o = figures.place_operand[place]
        m = figures.place_level[place]
        for x in range(4):
            count = ws.count[0, o, m, x]
            wide = figures.wide[b, place, x]
            if count > 0 and wide > 0:
                bits = ws.amount[0, o, m, x] * ws.precision[0, o, m, x]
                transfers = count
                if not problem.switches[SERIAL_HALF_SHARED]:
                    transfers = computing_transfers(problem, o, x, count)
                cycles = np.int64(math.ceil(bits / wide)) * transfers
                figures.port_cycles[problem.port_of[o, m, x]] += float(cycles)
    busy = 0.0
    for p in range(problem.port_count):
        busy = max(busy, figures.port_cycles[p])
    return busy


@kernel
def least_latency(problem, figures, row, b):
    """Cycles that no order of a row takes less than, at the widths of `b`; those of the fastest where they are known.

    Latency does not fall when words get narrower where every transfer takes port time.
    """
    if figures.exact_latency[row, b] != UNKNOWN:
        return figures.exact_latency[row, b]
    if problem.switches[PORT_TIME]:
        return max(figures.row_latency[row], figures.row_busy[row, b])
    return figures.row_busy[row, b]


@kernel
def price_rows(problem, ws, block, figures, first):
    """Take all rows into what is known of each variant, and begin anew; `first` orders came before the block."""
    for row in range(figures.row_count):
        if figures.reference != NO_ROW:
            figures.exact_latency[row, figures.reference] = figures.row_latency[row]
            figures.exact_order[row, figures.reference] = figures.row_order[row]
    for b in range(figures.width_count):
        find_fastest(problem, ws, block, figures, b)
    for variant in range(figures.variant_count):
        b = figures.variant_width[variant]
        is_valued = figures.values_all or b == figures.reference
        hopeful = NO_ROW
        least = math.inf
        for row in range(figures.row_count):
            bound = least_latency(problem, figures, row, b)
            energy = energy_of_row(problem, figures, row, variant, bound)
            figures.row_energy[row] = energy
            figures.least_energy_pj[variant] = min(figures.least_energy_pj[variant], energy)
            value = objective_of(figures, energy, bound)
            if value < least:
                least = value
                hopeful = row
        if is_valued and hopeful != NO_ROW:
            value_row(problem, ws, block, figures, hopeful, variant, first)
            for row in range(figures.row_count):
                bound = least_latency(problem, figures, row, b)
                if objective_of(figures, figures.row_energy[row], bound) <= figures.best_value[variant]:
                    value_row(problem, ws, block, figures, row, variant, first)
    figures.row_count = 0
    for i in range(BUCKETS):
        figures.bucket[i] = NO_ROW


@kernel
def find_fastest(problem, ws, block, figures, b):
    """Find the least latency of all orders at a width.

    Orders are costed at it where their bound is less than what is known, the row that promises most first.
    """
    hopeful = NO_ROW
    least = math.inf
    for row in range(figures.row_count):
        bound = least_latency(problem, figures, row, b)
        if bound < least:
            least = bound
            hopeful = row
    if hopeful == NO_ROW:
        return
    best = min(figures.least_latency_cycles[b], fastest_of_row(problem, ws, block, figures, hopeful, b))
    for row in range(figures.row_count):
        if least_latency(problem, figures, row, b) < best:
            best = min(best, fastest_of_row(problem, ws, block, figures, row, b))
    figures.least_latency_cycles[b] = best


@kernel
def fastest_of_row(problem, ws, block, figures, row, b):
    """Latency of the fastest order of a row at a width."""
    if figures.exact_latency[row, b] == UNKNOWN:
        cost_row(problem, ws, block, figures, row, b)
    return figures.exact_latency[row, b]


@kernel
def value_row(problem, ws, block, figures, row, variant, first):
    """Compare the best order of a row with the best of a variant; orders are costed at its width if they are not."""
    b = figures.variant_width[variant]
    latency = fastest_of_row(problem, ws, block, figures, row, b)
    energy = energy_of_row(problem, figures, row, variant, latency)
    keep_better(figures, variant, energy, latency, first + figures.exact_order[row, b])


@kernel
def cost_row(problem, ws, block, figures, row, b):
    """Find the fastest order of a row at a width, the first one of equals."""
    write_width(problem, figures, b)
    place = figures.row_last[row]
    best = math.inf
    found = place
    while place != NO_ROW:
        load_row(problem, ws, block, place)
        if block.bounded:
            evaluate_allocation(problem, ws)
        else:
            evaluate_order(problem, ws)
        if ws.totals[LATENCY] <= best:
            best = ws.totals[LATENCY]
            found = place
        place = figures.order_before[place]
    figures.exact_latency[row, b] = best
    figures.exact_order[row, b] = found
    write_width(problem, figures, NO_ROW)


@kernel
def write_width(problem, figures, b):
    """Give the problem the words of a width; NO_ROW: its own again."""
    for place in range(figures.place_count):
        o = figures.place_operand[place]
        m = figures.place_level[place]
        for x in range(4):
            wide = figures.bandwidth_max_bits[place, x] if b == NO_ROW else figures.wide[b, place, x]
            problem.bandwidth_max_bits[o, m, x] = wide


@kernel
def energy_of_row(problem, figures, row, variant, latency):
    """Energy of a row: to the last bit that of the cost model, which adds up in the same order."""
    b = figures.variant_width[variant]
    memory_energy = 0.0
    for place in range(figures.place_count):
        read = figures.read_pj[variant, place]
        write = figures.write_pj[variant, place]
        reads = figures.row_words[row, b, place, TH] * read + figures.row_words[row, b, place, TL] * read
        writes = figures.row_words[row, b, place, FH] * write + figures.row_words[row, b, place, FL] * write
        memory_energy += reads + writes
    energy = 0.0
    for t in range(problem.term_count):
        term = figures.term_fixed_pj[variant, t] + figures.term_pj_a_cycle[variant, t] * latency
        if t == problem.access_term:
            term += memory_energy
        energy += term
    return energy


@kernel
def objective_of(figures, energy, latency):
    """What is minimised."""
    value = 1.0
    for _ in range(figures.energy_power):
        value *= energy
    for _ in range(figures.latency_power):
        value *= latency
    return value


@kernel
def keep_better(figures, variant, energy, latency, order):
    """Keep a mapping where it is better by the rule of searches: objective, what it leaves out, the first found."""
    value = objective_of(figures, energy, latency)
    second = 0.0
    if figures.energy_power == 0:
        second = energy
    elif figures.latency_power == 0:
        second = latency
    if value > figures.best_value[variant]:
        return
    if value == figures.best_value[variant]:
        if second > figures.best_second[variant]:
            return
        if second == figures.best_second[variant] and order > figures.best_order[variant]:
            return
    figures.best_value[variant] = value
    figures.best_second[variant] = second
    figures.best_order[variant] = order
    figures.best_energy_pj[variant] = energy
    figures.best_latency_cycles[variant] = latency
