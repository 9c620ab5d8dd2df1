"""Kernels that compute the energy and latency of one loop order, for batches, searches and breakdowns.

The energy of memory accesses is the number of word accesses of each link times the energy of an access, summed over the
links (as in zigzag-dse 3.9.1). The other energy terms are added. A link is (operand, memory level, direction).
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX, allocate, fail
from tilewright.cost.latency_kernel import add_latency
from tilewright.cost.ragged_kernel import average_parts
from tilewright.cost.reuse_kernel import (
    SKIP_FIRST_READ,
    count_cycles,
    merge_stationary_loops,
    record_data_movement,
    size_tiles,
)
from tilewright.cost.tile_kernel import WHOLE_TILES, rounded_up
from tilewright.cost.waiting_kernel import add_waiting
from tilewright.cost.workspace import (
    ENERGY,
    FITS,
    HELD,
    IDEAL_TEMPORAL,
    LATENCY,
    NO_PORT,
    OFFLOADING,
    ONLOADING,
    STALL,
    WIDE,
)
from tilewright.hardware.core import FH, FL, TH, TL


@kernel
def parts_of_transfer(problem, ws, o, m, x):
    """Number of parts of a word that one transfer of a link moves. A part is the smallest piece of a word that the port
    can access. The link is (operand `o`, memory level `m`, direction `x`).

    A part that is only partly needed counts as a whole part. The number is 0 if the link moves no data. In two cases,
    the transfers of a link can have different sizes, and the number is their average: with the switch `whole_tiles`,
    and for partial sums that are read back.
    """
    bits = ws.amount[0, o, m, x] * ws.precision[0, o, m, x]
    if bits == 0:
        return 0.0
    comes_back = o == OUTPUT_INDEX and (x == TL or x == FH)
    if comes_back and problem.has_output_windows and problem.switches[SKIP_FIRST_READ]:
        return ws.returned_parts[m, x]
    if problem.switches[WHOLE_TILES] and problem.ragged_count > 0:
        way = HELD if x == FH or x == TH else WIDE
        return average_parts(problem, ws, o, m, way, ws.precision[0, o, m, x], problem.bandwidth_min_bits[o, m, x])
    return float(math.ceil(bits / problem.bandwidth_min_bits[o, m, x]))


@kernel
def read_share(problem, ws, o):
    """Share of the reads of input `o` from its innermost memory that are still needed if zeros stop operations.

    A read is unnecessary only if zeros stop every operation that uses it. Operations of different cycles are stopped
    independently.
    """
    return 1.0 - problem.gate[o] ** (ws.period[0, o, 0, TL] // problem.cycles_per_operation)


@kernel
def words_of_parts(problem, ws, o, m, x, parts, wide):
    """Number of words of `wide` bits that a link accesses in the whole layer. The link is (operand `o`, memory level
    `m`, direction `x`). One transfer moves `parts` parts of a word; a part is the smallest piece of a word that the
    port can access.

    The number is rounded up with the switch `whole_tiles`, and rounded down without it.
    """
    if parts == 0:
        return 0
    words = parts * (problem.bandwidth_min_bits[o, m, x] / wide) * ws.count[0, o, m, x] * problem.units[o, m + 1]
    if m == 0 and x == TL and problem.gate[o] > 0.0:
        words *= read_share(problem, ws, o)
    return np.int64(rounded_up(words) if problem.switches[WHOLE_TILES] else words)


@kernel
def word_accesses(problem, ws, o, m, x):
    """Number of accesses on one link, counted in words of the full width of its port. The link is (operand `o`, memory
    level `m`, direction `x`).
    """
    parts = parts_of_transfer(problem, ws, o, m, x)
    return words_of_parts(problem, ws, o, m, x, parts, problem.bandwidth_max_bits[o, m, x])


@kernel
def add_energy(problem, ws):
    """Compute, for each link, the number of word accesses (`ws.words`) and their energy in pJ (`ws.energy`). Returns
    the sum of the energies in pJ, or a negative number if a port is missing.

    The order of addition is fixed: operands in the order of the equation, levels from the innermost outwards, reads
    before writes.
    """
    memory_energy = 0.0
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            k = problem.level_memory[o, m]
            for x in range(4):
                if ws.amount[0, o, m, x] * ws.precision[0, o, m, x] != 0 and problem.port_of[o, m, x] < 0:
                    fail(ws, NO_PORT, k, o, m, float(x), 0.0)
                    return -1.0
                words = word_accesses(problem, ws, o, m, x)
                ws.words[o, m, x] = words
                cost = problem.read_energy_pj[k] if x == TL or x == TH else problem.write_energy_pj[k]
                ws.energy[o, m, x] = words * cost
            reads = ws.energy[o, m, TH] + ws.energy[o, m, TL]
            writes = ws.energy[o, m, FH] + ws.energy[o, m, FL]
            memory_energy += reads + writes
    return memory_energy


@kernel
def add_terms(problem, ws, memory_energy):
    """Fill `ws.terms` with the energy terms in pJ, and write their sum to `ws.totals`.

    The caller must have written the latency to `ws.totals`, because some terms depend on the latency.
    """
    latency = ws.totals[LATENCY]
    energy = 0.0
    for t in range(problem.term_count):
        term = problem.term_fixed_pj[t] + problem.term_pj_a_cycle[t] * latency
        if t == problem.access_term:
            term += memory_energy
        ws.terms[t] = term
        energy += term
    ws.totals[ENERGY] = energy


@kernel
def evaluate_order(problem, ws):
    """Allocate the loops of one loop order to memories and compute the cost of the resulting mapping.

    The loop order in `ws` begins with the innermost loop. The results are written to `ws`. Returns an outcome, which is
    FITS or the reason why the loop order does not fit.
    """
    outcome = allocate(problem, ws)
    if outcome != FITS:
        return outcome
    return evaluate_allocation(problem, ws)


@kernel
def evaluate_allocation(problem, ws):
    """Compute the cost of the allocation in `ws.bound`. Returns the outcome FITS, or NO_PORT if a port is missing."""
    merge_stationary_loops(problem, ws)
    count_cycles(problem, ws)
    size_tiles(problem, ws, 0)
    record_data_movement(problem, ws, 0)
    integer = 0
    if problem.spatial_differs:
        integer = 1
        size_tiles(problem, ws, 1)
        record_data_movement(problem, ws, 1)
    memory_energy = add_energy(problem, ws)
    if memory_energy < 0:
        return NO_PORT
    total_cycles = ws.cycles[OUTPUT_INDEX, problem.level_count[OUTPUT_INDEX]]
    add_latency(problem, ws, integer, total_cycles)
    totals = ws.totals
    totals[IDEAL_TEMPORAL] = float(total_cycles)
    totals[LATENCY] = (
        totals[IDEAL_TEMPORAL] + totals[STALL] + totals[ONLOADING] + totals[OFFLOADING] + problem.fixed_cycles
    )
    if problem.has_waiting:
        add_waiting(problem, ws)
    add_terms(problem, ws, memory_energy)
    return FITS
