"""Workspace of a kernel: arrays for the full breakdown of a loop order.

The evaluation of the loop order fills these arrays.
"""

import numpy as np

from tilewright.cost.problem import (
    MAX_DIMENSIONS,
    MAX_LEVELS,
    MAX_LOOPS,
    MAX_MEMORIES,
    MAX_OPERANDS,
    MAX_PORTS,
    MAX_RELATIONS,
    MAX_SERVICES,
    MAX_SPATIAL_LOOPS,
    MAX_TERMS,
    new_record,
)

# Positions in `totals`. The energy is in pJ, all other totals are in cycles.
(
    ENERGY,
    LATENCY,
    IDEAL_TEMPORAL,
    STALL,
    ONLOADING,
    OFFLOADING,
    TOTAL_COUNT,
) = range(7)

# Positions in `waiting`, in the order of `waiting.WAITING_TERMS`. All are in cycles.
CALL_WAITING, COMMAND_WAITING, REQUEST_WAITING, WAITING_COUNT = range(4)

SLICE_ROW = MAX_OPERANDS
"""Row of `dimension_size` that holds temporary tile sizes."""

HELD, WIDE = range(2)
"""Kinds of tiles of a memory level. HELD: the tile that one instance of the memory holds. WIDE: all elements that the
instances of the next inner memory take from one instance in one period."""

MAX_DIGITS = MAX_LOOPS + MAX_SPATIAL_LOOPS
MAX_SHARES = 256

# Largest number of sets of three operands if no set is a subset of another set.
MAX_BUFFER_SETS = 3

# Outcomes of an evaluation. If the outcome is not FITS, `failure` has the memory, the operand and the level concerned.
# NOT_NESTED and NOT_EVEN occur only if the level boundaries are given, TILE_RULE and ORDER_RULE only if the core has
# rules of its control (`control_kernel`).
FITS, TOO_SMALL, TOO_SMALL_TOGETHER, LOOPS_LEFT, NO_PORT, NOT_NESTED, NOT_EVEN, TILE_RULE, ORDER_RULE = range(9)


_O, _D, _R, _M, _A = MAX_OPERANDS, MAX_DIMENSIONS, MAX_RELATIONS, MAX_LEVELS, MAX_LEVELS + 2
_K, _B = MAX_MEMORIES, MAX_BUFFER_SETS

WINDOW_DIGIT = np.dtype(
    [
        ("dimension", np.int64),
        ("count", np.int64),
        ("stride", np.float64),  # iterations of the dimension between two values of the loop
        ("factor", np.float64),  # size of the loop, not rounded up
        ("level", np.int64),  # memory level of a temporal loop, or architecture level of a spatial loop
        ("is_lane", np.int64),  # 1 for a spatial loop, 0 for a temporal loop
        ("value", np.int64),  # current value of the loop
        ("other", np.int64),  # value of the loop in another iteration
    ],
    align=True,
)
"""Layout of the record for one loop over a dimension of a sliding window."""

WORKSPACE_DTYPE = np.dtype(
    [
        ("loop_count", np.int64),
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [i] dimensions of the loop order, innermost loop first
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [i] sizes of the loops
        ("bound", np.int64, (_O, _M)),  # [o, m] number of temporal loops that are allocated to levels 0 to m
        ("merged", np.int64, (_O, _M)),  # [o, m] value of `bound` after stationary loops are merged into lower levels
        ("dimension_size", np.float64, (_O + 1, _D)),  # [o, d] current tile sizes; the last row is temporary
        ("slice_low", np.int64, (_O,)),  # [row] first candidate slice of an operand of the memory
        ("slice_high", np.int64, (_O,)),  # [row] number after the last candidate slice
        ("slice_choice", np.int64, (_O,)),  # [row] chosen slice
        ("slice_bits", np.float64, (_O, MAX_LOOPS + 2)),  # [row, i] bits of the slice with i more loops
        ("slice_cost", np.float64, (_O, MAX_LOOPS + 2)),  # [row, i] bits that move if the memory keeps this slice
        ("window_size", np.float64, (_R, 2)),  # [r, i] current sizes of the two loops of a sliding window
        ("window_before", np.float64, (_R, 2)),  # [r, 2] distinct positions of the window so far, and their reuse
        ("iterations", np.int64, (MAX_LOOPS + 1,)),  # [i] cycles of the i innermost loops
        ("stationary_cycles", np.int64, (_O,)),  # [o] cycles in which the array reuses the same data of the operand
        ("cycles", np.int64, (_O, _A)),  # [o, a] cycles in which all loops up to architecture level a run once
        ("top_relevant", np.int64, (_O, _A)),  # [o, a] product of the outermost relevant loops of level a
        ("top_irrelevant", np.int64, (_O, _A)),  # [o, a] product of the outermost irrelevant loops of level a
        ("tile_elements", np.int64, (2, _O, _A)),  # [v, o, a] elements of a tile
        ("tile_precision", np.int64, (2, _O, _A)),  # [v, o, a] bits per element of a tile that moves upward
        ("wide_tile", np.int64, (_O, _M)),  # [o, m] elements of the WIDE tile (switch `whole_tiles`)
        ("ragged_size", np.float64, (2, _O, _M, _D)),  # [HELD | WIDE, o, m, d] fractional sizes of a tile
        ("size_count", np.int64, (_D,)),  # [d] number of different sizes of a tile in a dimension (1 or 2)
        ("size_kind", np.float64, (_D, 2)),  # [d, kind] sizes of a tile
        ("size_share", np.float64, (_D, 2)),  # [d, kind] share of the tiles that have the size
        # Fields for outputs that are addressed by sliding windows. They tell which outputs of a tile come back.
        ("digit_count", np.int64),
        ("digit", WINDOW_DIGIT, (MAX_DIGITS,)),  # loops that select a tile in a group of windows, innermost loop first
        ("tile_size", np.float64, (_D,)),  # [d] size of a tile of outputs
        ("tile_low", np.int64, (_D,)),  # [d] first iteration of the tile
        ("tile_high", np.int64, (_D,)),  # [d] iteration after the last iteration of the tile
        ("visit", np.int64, (_D,)),  # [d] current iteration
        ("share_count", np.int64, (_R,)),  # [group] number of kinds of tiles
        ("share", np.float64, (_R, MAX_SHARES, 3)),  # [group, kind, 3] positions, new positions, number of tiles
        ("returned_parts", np.float64, (_M, 4)),  # [m, x] average parts of a word in a transfer of sums that come back
        ("partial_sum", np.int8, (2, _A)),  # [v, a] True if level a passes partial sums upward
        ("adds_in_space", np.int8, (2, _A)),  # [v, a] True if lanes between levels a and a + 1 add up outputs
        ("reuse_above", np.float64, (2, _A + 2)),  # [v, a] accumulations of an output at level a and above
        ("amount", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] elements per period
        ("precision", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] bits per element
        ("period", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] cycles of a period
        ("count", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] number of periods with a transfer
        ("bandwidth", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] average bits per cycle, truncated
        ("exact_bandwidth", np.float64, (2, _O, _M, 4)),  # [v, o, m, x] average bits per cycle
        ("window", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] allowed cycles of a transfer without double buffering
        ("words", np.int64, (_O, _M, 4)),  # [o, m, x] number of word accesses
        ("energy", np.float64, (_O, _M, 4)),  # [o, m, x] energy of the accesses in pJ
        ("utilization", np.float64, (_O, _M)),  # [o, m] share of the memory that the operand fills
        ("shared_utilization", np.float64, (_O, _M)),  # [o, m] share that all operands of the memory fill together
        ("effective", np.float64, (_O, _M)),  # [o, m] share of the memory that the kept part of the tile fills
        ("effective_bits", np.int64, (_O, _M)),  # [o, m] bits of the kept part of the tile
        ("shared_effective", np.float64, (_O, _M)),  # [o, m] sum of `effective` over all operands of the memory
        ("double_buffered", np.int8, (_O, _A)),  # [o, a] True if the tile is double-buffered
        ("buffer_set", np.int64, (_K, _B)),  # [k, j] largest sets of operands whose second tiles fit, as bit masks
        ("buffer_set_count", np.int64, (_K,)),  # [k] number of these sets
        ("buffer_choice", np.int64, (_K,)),  # [k] index of the current set
        ("best_choice", np.int64, (_K,)),  # [k] index of the set with the least stall so far
        ("total_cycles", np.int64),  # cycles of all temporal loops
        ("transfer_cycles", np.int64, (_O, _M, 4)),  # [o, m, x] cycles of one transfer
        ("allowed_cycles", np.int64, (_O, _M, 4)),  # [o, m, x] largest cycles of a transfer that cause no stall
        ("port_stall", np.int64, (MAX_PORTS,)),  # [p] cycles of stall (positive) or slack (negative)
        ("port_union", np.int64, (MAX_PORTS,)),  # [p] cycles of the union of all transfer windows
        ("activity", np.int64, (MAX_SERVICES, 4)),  # [j, 4] temporary: allowed cycles, period, count, union
        ("loading", np.float64, (MAX_SERVICES,)),  # [j] temporary: cycles to load a whole tensor
        ("loading_floor", np.float64, (MAX_SERVICES,)),  # [j] temporary: cycles to load the first tile of the tensor
        ("loading_service", np.int64, (MAX_SERVICES,)),  # [j] temporary: service that loads the tensor
        ("load", np.float64, (_O, _M, 4)),  # [o, m, x] cycles of loading before or after the computation
        ("full_load", np.float64, (_O, _M, 4)),  # [o, m, x] value of `load` if no loading is hidden
        ("floor_load", np.float64, (_O, _M, 4)),  # [o, m, x] value of `load` if as much loading as possible is hidden
        ("terms", np.float64, (MAX_TERMS,)),  # [t] energy terms in pJ
        ("totals", np.float64, (TOTAL_COUNT,)),  # totals at the positions ENERGY, LATENCY and so on
        ("waiting", np.float64, (WAITING_COUNT,)),  # [t] waiting terms of the latency; not written without waiting
        ("failure", np.int64, (3,)),  # memory k, operand o and level m concerned
        ("failure_bits", np.float64, (2,)),  # bits that are needed, and bits of the memory
    ],
    align=True,
)
"""Layout of a workspace. `PROBLEM_DTYPE` explains most axes of the arrays. Of the other axes, `row` is the row of an
operand in `allocation_kernel`, `group` is a group of sliding windows that share loops, and `i`, `j` and `kind` are
positions in a list.
"""

Workspace = np.record
"""Record with the layout `WORKSPACE_DTYPE`."""


def new_workspace() -> Workspace:
    """New workspace, which fits every problem."""
    return new_record(WORKSPACE_DTYPE)
