"""Generation and evaluation of all distinct orders of a multiset of loops, block by block (compiled).

The orders are generated in cool-lex order (Williams 2009, "Loopless generation of multiset permutations using a
constant number of variables by prefix shifts"), as in the reference. If several orders are equally good, the first
order is chosen, so ties are broken as in the reference.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import allocate, check_boundaries
from tilewright.cost.kernel import evaluate_allocation
from tilewright.cost.problem import MAX_LEVELS, MAX_LOOPS, MAX_OPERANDS
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.mapping.temporal import ANY, GAP

STREAM_DTYPE = np.dtype(
    [
        ("length", np.int64),  # number of loops in an order
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [loop]
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [loop]
        ("order", np.int64, (MAX_LOOPS,)),  # [position] Loop of the next order, innermost loop first
        ("pattern_length", np.int64),
        ("pattern_dimension", np.int64, (MAX_LOOPS,)),  # loop dimension, or GAP
        ("pattern_size", np.int64, (MAX_LOOPS,)),  # loop size, or ANY
        ("visits_allowed", np.int64),  # maximal number of orders that the next call can visit
        ("visited", np.int64),  # number of orders that the last call visited
        ("rows", np.int64),  # number of orders that the last call wrote
    ],
    align=True,
)
"""Stream of loop orders: the loops, the next order, and the pattern that orders must match."""


@kernel
def next_order(stream, n):
    """Replace the current order of `stream`, which has `n` loops, by the next order in cool-lex order."""
    prefix = 1
    while prefix < n and stream.order[prefix] <= stream.order[prefix - 1]:
        prefix += 1
    source = n - 1
    if prefix <= n - 2:
        source = prefix + 1 if stream.order[prefix + 1] <= stream.order[prefix - 1] else prefix
    moved = stream.order[source]
    for i in range(source, 0, -1):
        stream.order[i] = stream.order[i - 1]
    stream.order[0] = moved


@kernel
def matches(stream):
    """True if the order of `stream` matches the pattern, in which GAP stands for any sequence of loops."""
    p = i = 0
    gap = resume = -1
    while i < stream.length:
        if p < stream.pattern_length and stream.pattern_dimension[p] == GAP:
            gap = p
            resume = i
            p += 1
        elif (
            p < stream.pattern_length
            and stream.pattern_dimension[p] == stream.loop_dimension[stream.order[i]]
            and (stream.pattern_size[p] == ANY or stream.pattern_size[p] == stream.loop_size[stream.order[i]])
        ):
            p += 1
            i += 1
        elif gap >= 0:
            resume += 1
            i = resume
            p = gap + 1
        else:
            return False
    while p < stream.pattern_length and stream.pattern_dimension[p] == GAP:
        p += 1
    return p == stream.pattern_length


@kernel
def fill_block(stream, block, count):
    """Write the next orders of `stream` that match its pattern, at most `count` orders, into `block`."""
    n = stream.length
    rows = 0
    visited = 0
    while rows < count and visited < stream.visits_allowed:
        if stream.pattern_length == 0 or matches(stream):
            for i in range(n):
                block.orders[rows * n + i] = stream.order[i]
            rows += 1
        visited += 1
        if n > 1:
            next_order(stream, n)
    stream.rows = rows
    stream.visited = visited


BATCH_ORDERS = 16384
"""Number of orders that are generated and evaluated between two checks of the clock and of stop requests."""
BOUNDARIES = MAX_OPERANDS * MAX_LEVELS

BLOCK_DTYPE = np.dtype(
    [
        ("length", np.int64),  # number of loops in an order
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [loop]
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [loop]
        ("bounded", np.int8),  # True if level boundaries are given, False if memories are allocated greedily
        ("orders", np.int8, (BATCH_ORDERS * MAX_LOOPS,)),  # [row * length + position] Loop, innermost loop first
        ("boundaries", np.int8, (BATCH_ORDERS * BOUNDARIES,)),  # [row * BOUNDARIES + operand * MAX_LEVELS + level]
        ("energy_pj", np.float64, (BATCH_ORDERS,)),  # [row]
        ("latency_cycles", np.float64, (BATCH_ORDERS,)),  # [row]
        ("outcome", np.int8, (BATCH_ORDERS,)),  # [row]
        ("fitting", np.int64),  # number of orders that fit
        # Failure with the smallest ratio of required to available bits. It is updated until the first order fits.
        ("closest_outcome", np.int64),
        ("closest_place", np.int64, (3,)),  # memory, operand, level
        ("closest_bits", np.float64, (2,)),  # required bits, available bits
        ("closest_ratio", np.float64),
    ],
    align=True,
)
"""Layout of a block of orders. The orders are stored without gaps, so a block of short orders uses little memory."""


@kernel
def cost_block(problem, ws, block, count):
    """Compute the costs of the first `count` orders of `block`; `ws` then holds the breakdown of the last order."""
    ws.loop_count = block.length
    for row in range(count):
        outcome = allocate_row(problem, ws, block, row)
        if outcome == FITS:
            outcome = evaluate_allocation(problem, ws)
        block.outcome[row] = outcome
        if outcome == FITS:
            block.fitting += 1
            block.energy_pj[row] = ws.totals[ENERGY]
            block.latency_cycles[row] = ws.totals[LATENCY]
        else:
            block.energy_pj[row] = math.inf
            block.latency_cycles[row] = math.inf
            if block.fitting == 0:
                keep_closest_failure(ws, block, outcome)


@kernel
def allocate_row(problem, ws, block, row):
    """Write the order in row `row` of `block` and its level boundaries into the workspace. Return FITS, or the reason
    why the order does not fit.

    If the block has level boundaries, these are used; otherwise, the allocator computes the boundaries.
    """
    load_row(problem, ws, block, row)
    return check_boundaries(problem, ws) if block.bounded else allocate(problem, ws)


@kernel
def load_row(problem, ws, block, row):
    """Write the order in row `row` of `block` into the workspace, and also its level boundaries if the block has
    boundaries.
    """
    start = row * block.length
    for i in range(block.length):
        loop = block.orders[start + i]
        ws.loop_dimension[i] = block.loop_dimension[loop]
        ws.loop_size[i] = block.loop_size[loop]
    if block.bounded:
        start = row * BOUNDARIES
        for o in range(problem.operand_count):
            for m in range(problem.level_count[o]):
                ws.bound[o, m] = block.boundaries[start + o * MAX_LEVELS + m]


@kernel
def keep_closest_failure(ws, block, outcome):
    """Store in `block` the failure that `ws` holds, if it is the closest failure so far: the failure with the smallest
    ratio of required to available bits. `outcome` is the kind of the failure.
    """
    limit = ws.failure_bits[1]
    ratio = ws.failure_bits[0] / limit if limit > 0 else 0.0
    if ratio < block.closest_ratio:
        block.closest_ratio = ratio
        block.closest_outcome = outcome
        for i in range(3):
            block.closest_place[i] = ws.failure[i]
        for i in range(2):
            block.closest_bits[i] = ws.failure_bits[i]
