"""Loop orders of a problem, grouped by the data that they move (compiled).

The orders run on cores that differ only in memory sizes, word widths and energies.

A loop order with its loops allocated to the memories of a core is an *allocation*. On two cores, an order moves the
same data if its loops are allocated in the same way and the same tiles are double-buffered. With the same word widths,
the order then also takes the same time. The cost model is therefore run only for the first of such cores.

Allocations that move the same data form one *row*. All allocations of a row have the same energy of word accesses,
whatever the energy of each access is. docs/proofs/fronts.md has the proof.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.kernel import evaluate_allocation, parts_of_transfer, words_of_parts
from tilewright.cost.latency_kernel import BEST_BUFFERS, room_for_second_tiles
from tilewright.cost.loading_kernel import PORT_TIME, SERIAL_HALF_SHARED, computing_transfers
from tilewright.cost.problem import MAX_LEVELS, MAX_MEMORIES, MAX_OPERANDS, MAX_PORTS
from tilewright.cost.workspace import IDEAL_TEMPORAL, LATENCY
from tilewright.search.loma_kernel import BATCH_ORDERS, load_row

MAX_ALLOCATIONS = 32768
MAX_ROWS = 2048
MAX_WIDTHS = 16
MAX_PLACES = MAX_OPERANDS * MAX_LEVELS
"""Largest number of places. A place is a pair (operand, memory level) in this module."""
BUCKETS = 8192
NUMBERS = 3
"""Number of values for each link in the key of a row.

The values are the bits of a transfer, the number of transfers, and the average number of word parts that a transfer
moves. A word part is the smallest number of bits that the port can access.
"""
KEY_LENGTH = MAX_PLACES * 4 * NUMBERS
NONE = -1
UNKNOWN = -1.0
ANY_BITS = 2**62
"""Number of bits that exceeds every memory."""

MOVED_DATA_DTYPE = np.dtype(
    [
        ("place_count", np.int64),
        ("place_operand", np.int64, (MAX_PLACES,)),  # [place] o
        ("place_level", np.int64, (MAX_PLACES,)),  # [place] m
        ("width_count", np.int64),
        ("widest", np.int64),  # number of the set of widths that equals the widths of the problem, or NONE
        ("wide", np.int64, (MAX_WIDTHS, MAX_PLACES, 4)),  # [width, place, x] Word width in bits, 0 without a port
        ("bandwidth_max_bits", np.int64, (MAX_PLACES, 4)),  # [place, x] Word width of the problem in bits
        # Fields that are known from all cores so far, for one block of orders.
        ("room", np.int64),  # largest number of rows, and of allocations, that are stored
        ("allocation_count", np.int64),
        ("last_of_order", np.int64, (BATCH_ORDERS,)),  # [order] Its most recently found allocation, or NONE
        ("before", np.int64, (MAX_ALLOCATIONS,)),  # [allocation] Previous allocation of the same order, or NONE
        ("order", np.int64, (MAX_ALLOCATIONS,)),  # [allocation] Number of its order in the block
        ("row", np.int64, (MAX_ALLOCATIONS,)),  # [allocation] Number of its row
        ("bound", np.int8, (MAX_ALLOCATIONS, MAX_PLACES)),  # [allocation, place] Number of loops below the boundary
        # [allocation, held memory] Range of memory sizes in bits with which the same tiles can be double-buffered:
        # from `least_bits` to below `below_bits`.
        ("least_bits", np.int64, (MAX_ALLOCATIONS, MAX_MEMORIES)),
        ("below_bits", np.int64, (MAX_ALLOCATIONS, MAX_MEMORIES)),
        ("widest_latency", np.float64, (MAX_ALLOCATIONS,)),  # [allocation] Cycles with the widths of the problem
        ("latency", np.float64, (MAX_ALLOCATIONS, MAX_WIDTHS)),  # [allocation, width] Cycles, or UNKNOWN
        ("row_count", np.int64),
        ("bucket", np.int32, (BUCKETS,)),  # hash table of rows: number of a row, or NONE
        ("key", np.float64, (KEY_LENGTH,)),  # key of the current order
        ("row_key", np.float64, (MAX_ROWS, KEY_LENGTH)),
        ("row_words", np.int64, (MAX_ROWS, MAX_WIDTHS, MAX_PLACES, 4)),  # [row, width, place, x] Word accesses
        ("row_busy", np.float64, (MAX_ROWS, MAX_WIDTHS)),  # [row, width] Lower bound of the cycles of its allocations
        ("port_cycles", np.float64, (MAX_PORTS,)),  # scratch
        # Fields for the current core.
        ("core", np.int64),  # number of the current core
        ("used_count", np.int64),  # number of rows that the current core uses
        ("used", np.int64, (MAX_ROWS,)),  # numbers of the rows that the current core uses
        ("core_of_row", np.int64, (MAX_ROWS,)),  # [row] Number of the last core that used the row
        ("last_of_row", np.int64, (MAX_ROWS,)),  # [row] Most recently found allocation of the current core in the row
        ("used_before", np.int64, (MAX_ALLOCATIONS,)),  # [allocation] Previous allocation of the core in the same row
        # [row] Least cycles of the allocations of the core in the row, with the widths of the problem.
        ("row_latency", np.float64, (MAX_ROWS,)),
        # [row, width] Cycles of the fastest allocation of the core in the row, or UNKNOWN.
        ("exact_latency", np.float64, (MAX_ROWS, MAX_WIDTHS)),
        ("exact_order", np.int64, (MAX_ROWS, MAX_WIDTHS)),  # [row, width] First order with this latency
    ],
    align=True,
)
"""Record of the allocations and rows that are known so far for a block of loop orders. An allocation is a loop order
whose loops are allocated to memories. A row is a group of allocations that move the same data.
"""


@kernel
def forget(moved, count):
    """Delete all known allocations and rows, before a new block of `count` orders."""
    moved.allocation_count = 0
    moved.row_count = 0
    moved.core = 0
    moved.used_count = 0
    for i in range(BUCKETS):
        moved.bucket[i] = NONE
    for i in range(count):
        moved.last_of_order[i] = NONE


@kernel
def begin_core(moved):
    """Prepare the record for the next core, which uses no rows yet."""
    moved.core += 1
    moved.used_count = 0


@kernel
def is_full(moved):
    """True if the record has no room for another row or another allocation."""
    room = moved.room
    return moved.row_count >= min(room, MAX_ROWS) or moved.allocation_count >= min(room, MAX_ALLOCATIONS)


@kernel
def find_allocation(problem, ws, moved, order):
    """Number of the known allocation of `order` that equals the allocation of this order in the workspace; NONE if no
    known allocation is equal.
    """
    found = moved.last_of_order[order]
    while found != NONE and not is_same(problem, ws, moved, found):
        found = moved.before[found]
    return found


@kernel
def is_same(problem, ws, moved, found):
    """True if the known allocation `found` has the level boundaries in the workspace, and its tiles can be
    double-buffered in the same way with the memory sizes of the problem.
    """
    for place in range(moved.place_count):
        if moved.bound[found, place] != ws.bound[moved.place_operand[place], moved.place_level[place]]:
            return False
    for i in range(problem.held_memory_count):
        bits = problem.memory_bits[problem.memory_order[i]]
        if bits < moved.least_bits[found, i] or bits >= moved.below_bits[found, i]:
            return False
    return True


@kernel
def add_allocation(problem, ws, moved, order):
    """Store the allocation of `order` that is in the workspace. The last run of the cost model must have been for this
    allocation. Return the number of the allocation.
    """
    added = moved.allocation_count
    moved.allocation_count += 1
    moved.before[added] = moved.last_of_order[order]
    moved.last_of_order[order] = added
    moved.order[added] = order
    for place in range(moved.place_count):
        moved.bound[added, place] = ws.bound[moved.place_operand[place], moved.place_level[place]]
    for i in range(problem.held_memory_count):
        write_sizes(problem, ws, moved, added, i)
    moved.row[added] = find_row(problem, ws, moved)
    moved.widest_latency[added] = ws.totals[LATENCY]
    for b in range(moved.width_count):
        moved.latency[added, b] = ws.totals[LATENCY] if b == moved.widest else UNKNOWN
    return added


@kernel
def write_sizes(problem, ws, moved, added, i):
    """Write the range of sizes of a memory at which the same tiles can be double-buffered as at its current size. The
    range belongs to allocation `added`, and the memory has the index `i` in `problem.memory_order`.

    The second tiles of double buffers must fit next to the first tiles. The range begins at `least_bits`, the smallest
    size at which all sets of second tiles that fit at the current size still fit. The range ends below `below_bits`,
    the smallest size at which a further set fits. Under the reference's rule for double buffers, the range has only the
    current size.
    """
    k = problem.memory_order[i]
    size = problem.memory_bits[k]
    if not problem.switches[BEST_BUFFERS]:
        moved.least_bits[added, i] = size
        moved.below_bits[added, i] = size + 1
        return
    room = room_for_second_tiles(problem, ws, k)
    fitting = -ANY_BITS
    other = ANY_BITS
    for chosen in range(1, 1 << problem.operand_count):
        needed = 0
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0 and (chosen >> j) & 1:
                needed += ws.effective_bits[o, problem.memory_levels[k, j]]
        if needed <= room:
            fitting = max(fitting, needed)
        else:
            other = min(other, needed)
    moved.least_bits[added, i] = fitting + size - room
    moved.below_bits[added, i] = other + size - room


@kernel
def find_row(problem, ws, moved):
    """Row of the allocation in the workspace. A new row is made if no known allocation moves the same data."""
    bucket = write_key(problem, ws, moved)
    row = moved.bucket[bucket]
    while row != NONE and not has_key(moved, row):
        bucket = (bucket + 1) % BUCKETS
        row = moved.bucket[bucket]
    if row == NONE:
        row = moved.row_count
        moved.row_count += 1
        moved.bucket[bucket] = row
        begin_row(problem, ws, moved, row)
    return row


@kernel
def write_key(problem, ws, moved):
    """Write the key of the allocation that is in the workspace to `moved.key`. Return the bucket at which a search for
    the key begins.

    The key contains the values from which word accesses are computed.
    """
    digest = np.uint64(14695981039346656037)
    i = 0
    for place in range(moved.place_count):
        o = moved.place_operand[place]
        m = moved.place_level[place]
        for x in range(4):
            amount = ws.amount[0, o, m, x]
            moved.key[i] = float(amount * ws.precision[0, o, m, x])
            moved.key[i + 1] = float(ws.count[0, o, m, x])
            moved.key[i + 2] = parts_of_transfer(problem, ws, o, m, x) if amount != 0 else 0.0
            for j in range(NUMBERS):
                digest = (digest ^ np.uint64(np.int64(moved.key[i + j] * 64.0))) * np.uint64(1099511628211)
                digest ^= digest >> np.uint64(29)
            i += NUMBERS
    return np.int64(digest % np.uint64(BUCKETS))


@kernel
def has_key(moved, row):
    """True if the key of `row` equals the key of the current order."""
    i = 0
    while i < moved.place_count * 4 * NUMBERS and moved.row_key[row, i] == moved.key[i]:
        i += 1
    return i == moved.place_count * 4 * NUMBERS


@kernel
def begin_row(problem, ws, moved, row):
    """Write the fields of the new row `row` that are the same for all its allocations. The workspace must hold the data
    movement of one of these allocations.
    """
    moved.core_of_row[row] = 0
    for i in range(moved.place_count * 4 * NUMBERS):
        moved.row_key[row, i] = moved.key[i]
    for place in range(moved.place_count):
        o = moved.place_operand[place]
        m = moved.place_level[place]
        for x in range(4):
            parts = parts_of_transfer(problem, ws, o, m, x)
            words = 0
            wide = 0
            for b in range(moved.width_count):
                if moved.wide[b, place, x] != wide:
                    wide = moved.wide[b, place, x]
                    words = words_of_parts(problem, ws, o, m, x, parts, wide)
                moved.row_words[row, b, place, x] = words
    for b in range(moved.width_count):
        moved.row_busy[row, b] = busy_cycles(problem, ws, moved, b)


@kernel
def busy_cycles(problem, ws, moved, b):
    """Lower bound in cycles of the latency of all orders that move the data in the workspace, with set `b` of word
    widths. No word of `b` may be wider than the word of the same port in the problem.

    There are two cases (docs/proofs/fronts.md):

    * Every transfer takes port time, and `spatial_differs` is false: the bound is the transfer time of the busiest port
      plus the fixed cycles (such as the drain). All transfers count if the loads of inputs that share a port follow one
      another. If these loads overlap, only the transfers while the array computes count.
    * All other problems: the bound is the number of cycles in which the array computes plus the fixed cycles.
    """
    if not problem.switches[PORT_TIME] or problem.spatial_differs:
        return ws.totals[IDEAL_TEMPORAL] + problem.fixed_cycles
    for p in range(problem.port_count):
        moved.port_cycles[p] = float(problem.fixed_cycles)
    for place in range(moved.place_count):
        o = moved.place_operand[place]
        m = moved.place_level[place]
        for x in range(4):
            count = ws.count[0, o, m, x]
            wide = moved.wide[b, place, x]
            if count > 0 and wide > 0:
                bits = ws.amount[0, o, m, x] * ws.precision[0, o, m, x]
                transfers = count
                if not problem.switches[SERIAL_HALF_SHARED]:
                    transfers = computing_transfers(problem, o, x, count)
                cycles = np.int64(math.ceil(bits / wide)) * transfers
                moved.port_cycles[problem.port_of[o, m, x]] += float(cycles)
    busy = 0.0
    for p in range(problem.port_count):
        busy = max(busy, moved.port_cycles[p])
    return busy


@kernel
def use_allocation(moved, found):
    """Add allocation number `found`, which is already stored, to the allocations that the current core uses. Also add
    the row of the allocation to the rows that the core uses, and update the least latency of this row.
    """
    row = moved.row[found]
    if moved.core_of_row[row] != moved.core:
        moved.core_of_row[row] = moved.core
        moved.used[moved.used_count] = row
        moved.used_count += 1
        moved.last_of_row[row] = NONE
        moved.row_latency[row] = moved.widest_latency[found]
        for b in range(moved.width_count):
            moved.exact_latency[row, b] = UNKNOWN
    moved.used_before[found] = moved.last_of_row[row]
    moved.last_of_row[row] = found
    moved.row_latency[row] = min(moved.row_latency[row], moved.widest_latency[found])


@kernel
def least_latency(problem, moved, row, b):
    """Lower bound in cycles of the latency of all orders in a row, with set number `b` of word widths. A known exact
    minimum is the result. A row is a group of orders that move the same data.

    If the switch `every_transfer_takes_port_time` of the model is on, narrower words never reduce the latency. The
    latency with the widest words is then a lower bound, too.
    """
    if moved.exact_latency[row, b] != UNKNOWN:
        return moved.exact_latency[row, b]
    if problem.switches[PORT_TIME]:
        return max(moved.row_latency[row], moved.row_busy[row, b])
    return moved.row_busy[row, b]


@kernel
def fastest_of_row(problem, ws, block, moved, row, b):
    """Latency in cycles of the fastest order of a row, with set number `b` of word widths. A row is a group of orders
    that move the same data.

    `moved.exact_order` then holds the number of the first order with this latency.
    """
    if moved.exact_latency[row, b] == UNKNOWN:
        found = moved.last_of_row[row]
        best = latency_of(problem, ws, block, moved, found, b)
        order = moved.order[found]
        found = moved.used_before[found]
        while found != NONE:
            latency = latency_of(problem, ws, block, moved, found, b)
            if latency < best or (latency == best and moved.order[found] < order):
                best = latency
                order = moved.order[found]
            found = moved.used_before[found]
        moved.exact_latency[row, b] = best
        moved.exact_order[row, b] = order
    return moved.exact_latency[row, b]


@kernel
def latency_of(problem, ws, block, moved, found, b):
    """Latency in cycles of allocation number `found` with set number `b` of word widths.

    The cost model is run if the latency is not known yet.
    """
    if moved.latency[found, b] == UNKNOWN:
        write_width(problem, moved, b)
        load_row(problem, ws, block, moved.order[found])
        for place in range(moved.place_count):
            ws.bound[moved.place_operand[place], moved.place_level[place]] = moved.bound[found, place]
        evaluate_allocation(problem, ws)
        moved.latency[found, b] = ws.totals[LATENCY]
        write_width(problem, moved, NONE)
    return moved.latency[found, b]


@kernel
def write_width(problem, moved, b):
    """Write set number `b` of word widths to the problem. NONE restores the original widths of the problem."""
    for place in range(moved.place_count):
        o = moved.place_operand[place]
        m = moved.place_level[place]
        for x in range(4):
            wide = moved.bandwidth_max_bits[place, x] if b == NONE else moved.wide[b, place, x]
            problem.bandwidth_max_bits[o, m, x] = wide
