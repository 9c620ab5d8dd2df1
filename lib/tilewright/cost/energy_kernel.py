"""Energy: word accesses of each link and their cost (compiled; zigzag-dse 3.9.1, energy)."""

import math

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import fail
from tilewright.cost.workspace import NO_PORT
from tilewright.hardware.core import FH, FL, TH, TL


@kernel
def word_accesses(problem, ws, o, m, x):
    """Accesses of full-width words on one link; transfers are rounded up per period to the smallest accessible part."""
    bits = ws.amount[0, o, m, x] * ws.precision[0, o, m, x]
    if bits == 0:
        return 0
    narrow = problem.bandwidth_min_bits[o, m, x]
    wide = problem.bandwidth_max_bits[o, m, x]
    parts = math.ceil(bits / narrow)
    return np.int64(parts * (narrow / wide) * ws.count[0, o, m, x] * problem.units[o, m + 1])


@kernel
def add_energy(problem, ws):
    """Fill `ws.words` and `ws.energy`; returns the memory energy, or a negative number where a port is missing.

    Summed over operands in equation order, levels from the inside out, reads before writes.
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
