"""Energy: word accesses of each link and their cost (compiled; zigzag-dse 3.9.1, energy)."""

import math

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import fail
from tilewright.cost.tile_kernel import WHOLE_TILES, rounded_up
from tilewright.cost.workspace import ENERGY, LATENCY, LOW, MEAN, NO_PORT, WHOLE
from tilewright.hardware.core import FH, FL, TH, TL


@kernel
def word_accesses(problem, ws, o, m, x):
    """Accesses of full-width words on one link; transfers are rounded up per period to the smallest accessible part.

    With whole tiles, periods in which fewer lanes work move fewer parts: these are interpolated between the least and
    the most elements at a time, which is exact for one dimension that lanes do not divide. The last word is a whole
    one.
    """
    bits = ws.amount[0, o, m, x] * ws.precision[0, o, m, x]
    if bits == 0:
        return 0
    narrow = problem.bandwidth_min_bits[o, m, x]
    wide = problem.bandwidth_max_bits[o, m, x]
    parts = float(math.ceil(bits / narrow))
    if not problem.switches[WHOLE_TILES]:
        return np.int64(parts * (narrow / wide) * ws.count[0, o, m, x] * problem.units[o, m + 1])
    held = x == FH or x == TH
    low = ws.held_tile[LOW, o, m + 1] if held else ws.wide_tile[LOW, o, m]
    mean = ws.held_tile[MEAN, o, m + 1] if held else ws.wide_tile[MEAN, o, m]
    whole = ws.held_tile[WHOLE, o, m + 1] if held else ws.wide_tile[WHOLE, o, m]
    if whole > low:
        least = float(math.ceil(rounded_up(low * ws.precision[0, o, m, x]) / narrow))
        parts = least + (parts - least) * (mean - low) / (whole - low)
    return np.int64(rounded_up(parts * (narrow / wide) * ws.count[0, o, m, x] * problem.units[o, m + 1]))


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


@kernel
def add_terms(problem, ws, memory_energy):
    """Fill `ws.terms` and their sum, the energy; the latency is known by now."""
    latency = ws.totals[LATENCY]
    energy = 0.0
    for t in range(problem.term_count):
        term = problem.term_fixed_pj[t] + problem.term_pj_a_cycle[t] * latency
        if t == problem.access_term:
            term += memory_energy
        ws.terms[t] = term
        energy += term
    ws.totals[ENERGY] = energy
