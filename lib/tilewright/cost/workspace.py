"""Arrays that a kernel writes while it evaluates one loop order; afterwards they hold its full breakdown."""

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

# Positions in `totals`. Energies in pJ, the rest in cycles.
(
    ENERGY,
    LATENCY,
    IDEAL_TEMPORAL,
    STALL,
    ONLOADING,
    OFFLOADING,
    TOTAL_COUNT,
) = range(7)

SLICE_ROW = MAX_OPERANDS

HELD, WIDE = range(2)
"""Kinds of tiles of a memory level: what one instance holds, and what all instances below take from it at once."""

MAX_DIGITS = MAX_LOOPS + MAX_SPATIAL_LOOPS
MAX_SHARES = 256

# Upper bound of the number of sets of three operands of which none contains another.
MAX_BUFFER_SETS = 3

# Outcome of an evaluation; `failure` has the memory and the operand concerned. The last two occur only with explicit
# level boundaries.
FITS, TOO_SMALL, TOO_SMALL_TOGETHER, LOOPS_LEFT, NO_PORT, NOT_NESTED, NOT_EVEN = range(7)


_O, _D, _R, _M, _A = MAX_OPERANDS, MAX_DIMENSIONS, MAX_RELATIONS, MAX_LEVELS, MAX_LEVELS + 2
_K, _B = MAX_MEMORIES, MAX_BUFFER_SETS

WINDOW_DIGIT = np.dtype(
    [
        ("dimension", np.int64),
        ("count", np.int64),
        ("stride", np.float64),  # iterations of the dimension between two values
        ("factor", np.float64),  # not rounded up
        ("level", np.int64),  # memory level of a temporal loop; architecture level of a spatial one
        ("is_lane", np.int64),
        ("value", np.int64),
        ("other", np.int64),  # value in another iteration
    ],
    align=True,
)
"""A loop over a dimension of a window."""

WORKSPACE_DTYPE = np.dtype(
    [
        ("loop_count", np.int64),
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [i] the order that is evaluated, innermost loop first
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [i]
        ("bound", np.int64, (_O, _M)),  # [o, m] temporal loops allocated up to and including level m
        ("merged", np.int64, (_O, _M)),  # [o, m] the same after merging stationary loops down
        ("dimension_size", np.float64, (_O + 1, _D)),  # [o, d] running tile sizes; last row: scratch for slices
        ("slice_low", np.int64, (_O,)),  # first candidate slice of each operand of a memory
        ("slice_high", np.int64, (_O,)),  # one after the last candidate
        ("slice_choice", np.int64, (_O,)),
        ("slice_bits", np.float64, (_O, MAX_LOOPS + 2)),  # [row, i] size of one operand of a memory with i more loops
        ("slice_cost", np.float64, (_O, MAX_LOOPS + 2)),  # [row, i]
        ("window_size", np.float64, (_R, 2)),  # [r, 2] running sizes of sliding windows
        ("window_before", np.float64, (_R, 2)),  # [r, 2] distinct positions and reuse so far
        ("iterations", np.int64, (MAX_LOOPS + 1,)),  # product of the innermost loops
        ("stationary_cycles", np.int64, (_O,)),  # [o] innermost stationarity at the array
        ("cycles", np.int64, (_O, _A)),  # [o, a] cycles in which the loops below arch level a run once
        ("top_relevant", np.int64, (_O, _A)),  # [o, a]
        ("top_irrelevant", np.int64, (_O, _A)),  # [o, a]
        ("tile_elements", np.int64, (2, _O, _A)),  # [v, o, a]
        ("tile_precision", np.int64, (2, _O, _A)),  # [v, o, a]
        ("wide_tile", np.int64, (_O, _M)),  # [o, m] whole tiles: elements that all below memory m take
        ("ragged_size", np.float64, (2, _O, _M, _D)),  # [HELD | WIDE, o, m, d] sizes of tiles with fractions of lanes
        ("size_count", np.int64, (_D,)),  # [d] sizes of a tile in a dimension (1 or 2)
        ("size_kind", np.float64, (_D, 2)),  # [d, kind] a size
        ("size_share", np.float64, (_D, 2)),  # [d, kind] its share
        # Outputs addressed by windows: which elements of a tile have been there before.
        ("digit_count", np.int64),
        ("digit", WINDOW_DIGIT, (MAX_DIGITS,)),  # loops that choose a tile in a group of windows, inner to outer
        ("tile_size", np.float64, (_D,)),  # [d] of the tile
        ("tile_low", np.int64, (_D,)),  # [d] first iteration of the tile, and the one after its last
        ("tile_high", np.int64, (_D,)),
        ("visit", np.int64, (_D,)),  # [d] an iteration
        ("share_count", np.int64, (_R,)),  # [group] kinds of tiles
        ("share", np.float64, (_R, MAX_SHARES, 3)),  # [group, kind] positions, new ones among them, number of tiles
        ("returned_parts", np.float64, (_M, 4)),  # [m, x] parts of a transfer of sums that come back, on average
        ("partial_sum", np.int8, (2, _A)),  # [v, a] bool, of the output
        ("adds_in_space", np.int8, (2, _A)),  # [v, a] bool: lanes between levels a and a + 1 add up outputs
        ("reuse_above", np.float64, (2, _A + 2)),  # [v, a] output accumulations at level a and above
        ("amount", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] elements per period
        ("precision", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] bits
        ("period", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] cycles
        ("count", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] periods
        ("bandwidth", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] average bits per cycle, truncated
        ("exact_bandwidth", np.float64, (2, _O, _M, 4)),  # [v, o, m, x] average bits per cycle
        ("window", np.int64, (2, _O, _M, 4)),  # [v, o, m, x] cycles a transfer may take without double buffering
        ("words", np.int64, (_O, _M, 4)),  # [o, m, x] word accesses
        ("energy", np.float64, (_O, _M, 4)),  # [o, m, x] pJ
        ("utilization", np.float64, (_O, _M)),  # [o, m] share of the memory that the operand fills
        ("shared_utilization", np.float64, (_O, _M)),  # [o, m] share that all operands of the memory fill together
        ("effective", np.float64, (_O, _M)),  # [o, m] effective share of the operand
        ("effective_bits", np.int64, (_O, _M)),  # [o, m] the same in bits
        ("shared_effective", np.float64, (_O, _M)),  # [o, m]
        ("double_buffered", np.int8, (_O, _A)),  # [o, a] bool
        ("buffer_set", np.int64, (_K, _B)),  # [k, j] largest sets of operands that fit twice, as bit masks
        ("buffer_set_count", np.int64, (_K,)),  # [k]
        ("buffer_choice", np.int64, (_K,)),  # [k] the current set
        ("best_choice", np.int64, (_K,)),  # [k] the set of least stall so far
        ("total_cycles", np.int64),  # cycles of all temporal loops
        ("transfer_cycles", np.int64, (_O, _M, 4)),  # [o, m, x] cycles of one transfer
        ("allowed_cycles", np.int64, (_O, _M, 4)),  # [o, m, x] cycles that a transfer may take without a stall
        ("port_stall", np.int64, (MAX_PORTS,)),  # [p] stall (positive) or slack
        ("port_union", np.int64, (MAX_PORTS,)),  # [p] union of transfer windows
        ("activity", np.int64, (MAX_SERVICES, 4)),  # [j, 4] scratch: allowed, period, count, union per period
        ("loading", np.float64, (MAX_SERVICES,)),  # [j] scratch
        ("loading_floor", np.float64, (MAX_SERVICES,)),  # [j] scratch
        ("loading_service", np.int64, (MAX_SERVICES,)),  # [j] scratch
        ("load", np.float64, (_O, _M, 4)),  # [o, m, x] cycles of loading before or after the steady state
        ("full_load", np.float64, (_O, _M, 4)),  # [o, m, x] the same if none of it is hidden
        ("floor_load", np.float64, (_O, _M, 4)),  # [o, m, x] the same if all that can be hidden is
        ("terms", np.float64, (MAX_TERMS,)),  # [t] pJ
        ("totals", np.float64, (TOTAL_COUNT,)),  # [TOTAL_COUNT]
        ("failure", np.int64, (3,)),  # [memory, operand, level]
        ("failure_bits", np.float64, (2,)),  # [needed, limit]
    ],
    align=True,
)
"""Layout of a workspace. Axes as in `PROBLEM_DTYPE`; `v` is 0 for fractional and 1 for integer spatial factors."""

Workspace = np.record
"""A record of `WORKSPACE_DTYPE`."""


def new_workspace() -> Workspace:
    """A workspace for any problem."""
    return new_record(WORKSPACE_DTYPE)
