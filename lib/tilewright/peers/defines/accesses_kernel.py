"""Search for the loop order of least energy according to the cost model of DeFiNES (compiled).

The data movement is computed by the cost model of tilewright with the profile
`zigzag-3.9.1+round_up_spatial_factors`. Two results are computed as in DeFiNES: the accesses to the upper of two
adjacent memories, and the times of on-loading and off-loading.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX, allocate
from tilewright.cost.kernel import evaluate_allocation
from tilewright.cost.loading_kernel import onloading
from tilewright.cost.problem import MAX_LEVELS, MAX_OPERANDS
from tilewright.cost.workspace import FITS, IDEAL_TEMPORAL, STALL
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.search.loma_kernel import load_row

FOUND_DTYPE = np.dtype(
    [
        ("row", np.int64),  # number of the order in the block, or -1 if no order fits
        ("energy_pj", np.float64),
        ("words", np.float64, (MAX_OPERANDS, MAX_LEVELS, 4)),  # [o, m, x] Accesses in full-width words
        ("total_cycles", np.float64),
        ("stall_cycles", np.float64),
        ("onloading_cycles", np.float64),
        ("offloading_cycles", np.float64),
    ],
    align=True,
)
"""Type of a record for the loop order of least energy in a block. The record has the position of the order in the
block, its energy, its cycles, and its accesses by operand, memory level and direction.
"""


@kernel
def find_least_energy(problem, ws, block, found, count):
    """Find the order of least energy among the first `count` orders of `block`. Of orders with equal energy, the first
    counts.

    The order is written to `found` if `found` holds no order or an order with a higher energy.
    """
    ws.loop_count = block.length
    for row in range(count):
        load_row(problem, ws, block, row)
        if allocate(problem, ws) == FITS and evaluate_allocation(problem, ws) == FITS:
            energy = 0.0
            for o in range(problem.operand_count):
                for m in range(problem.level_count[o]):
                    k = problem.level_memory[o, m]
                    read, write = problem.read_energy_pj[k], problem.write_energy_pj[k]
                    reads = words_of_link(problem, ws, o, m, TH) * read + words_of_link(problem, ws, o, m, TL) * read
                    writes = words_of_link(problem, ws, o, m, FH) * write + words_of_link(problem, ws, o, m, FL) * write
                    energy += reads + writes
            energy += problem.fixed_energy_pj
            if found.row < 0 or energy < found.energy_pj:
                keep_order(problem, ws, found, row, energy)


@kernel
def keep_order(problem, ws, found, row, energy):
    """Write the order in the workspace to `found`: its number in the block (`row`), its energy in pJ, its accesses and
    its cycles.
    """
    found.row = row
    found.energy_pj = energy
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            for x in range(4):
                found.words[o, m, x] = words_of_link(problem, ws, o, m, x)
                ws.load[o, m, x] = float(ws.transfer_cycles[o, m, x])
    found.total_cycles = ws.totals[IDEAL_TEMPORAL]
    found.stall_cycles = ws.totals[STALL]
    found.onloading_cycles = onloading(problem, ws)
    top = problem.level_count[OUTPUT_INDEX] - 1
    last = 0.0
    if top > 0:
        # Each memory below adds only one cycle, because all memories off-load at the same time, one cycle apart.
        last = max(ws.load[OUTPUT_INDEX, top - 1, TH], ws.load[OUTPUT_INDEX, top, FL]) + top - 1
    found.offloading_cycles = last


@kernel
def words_of_link(problem, ws, o, m, x):
    """Number of accesses to memory level `m` of operand `o` in direction `x`, in full-width words. The number can be
    fractional.

    A transfer to or from the level below takes the number of cycles that the narrower of the two ports needs. In each
    of these cycles, the upper memory is accessed once; an access covers at least the smallest accessible part of a
    word.
    """
    bits = float(ws.amount[0, o, m, x] * ws.precision[0, o, m, x])
    if bits == 0 or problem.bandwidth_max_bits[o, m, x] == 0:
        return 0.0
    narrow, wide = problem.bandwidth_min_bits[o, m, x], problem.bandwidth_max_bits[o, m, x]
    cycles = 1.0
    if m > 0 and (x == TL or x == FL):
        below = problem.bandwidth_max_bits[o, m - 1, FH if x == TL else TH] * problem.boost[0, o, m]
        whole = bits
        bits = min(bits, float(below), float(wide))
        cycles = float(math.ceil(whole / bits))
    return math.ceil(bits / narrow) * (narrow / wide) * ws.count[0, o, m, x] * problem.units[o, m + 1] * cycles
