"""A chain of simulated annealing over loop orders (compiled), with the acceptance rule of zigzag-dse 3.9.1."""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.kernel import evaluate_order
from tilewright.cost.problem import MAX_LOOPS
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.search.loma_kernel import matches
from tilewright.search.objective_kernel import POWER_FIELDS, ranks_before, value_of

PROPOSALS = 64
"""Neighbours drawn until one matches the pattern; if none does, the iteration visits no neighbour."""

CHAIN_DTYPE = np.dtype(
    [
        *POWER_FIELDS,
        ("length", np.int64),  # loops of an order
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [loop]
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [loop]
        ("pattern_length", np.int64),
        ("pattern_dimension", np.int64, (MAX_LOOPS,)),  # loop dimension, or GAP
        ("pattern_size", np.int64, (MAX_LOOPS,)),  # loop size, or ANY
        ("order", np.int64, (MAX_LOOPS,)),  # current order, or the neighbour being visited; innermost first
        ("previous_order", np.int64, (MAX_LOOPS,)),  # order before the neighbour was made
        ("current_value", np.float64),  # objective of the current order
        ("best_order", np.int64, (MAX_LOOPS,)),
        ("best_energy_pj", np.float64),
        ("best_latency_cycles", np.float64),
        ("random_state", np.uint64),
        ("temperature", np.float64),
        ("cooling", np.float64),  # factor on the temperature for each iteration
        ("evaluations", np.int64),
    ],
    align=True,
)
"""Chain: its loops, the pattern, its current order, and the best so far. It starts at a fitting order."""

# SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_SHIFT_27, _SHIFT_30, _SHIFT_31 = np.uint64(27), np.uint64(30), np.uint64(31)
_SHIFT_11, _SHIFT_32 = np.uint64(11), np.uint64(32)
_UNIT = 2.0**-53


@kernel
def random_bits(chain):
    """Next 64 random bits; all random numbers of a chain come from its own state."""
    chain.random_state = chain.random_state + _STEP
    bits = chain.random_state
    bits = (bits ^ (bits >> _SHIFT_30)) * _FIRST_FACTOR
    bits = (bits ^ (bits >> _SHIFT_27)) * _SECOND_FACTOR
    return bits ^ (bits >> _SHIFT_31)


@kernel
def random_below(chain, count):
    """Random integer from 0 to below `count`, which must be small."""
    return np.int64(((random_bits(chain) >> _SHIFT_32) * np.uint64(count)) >> _SHIFT_32)


@kernel
def random_fraction(chain):
    """Random number from 0 to below 1."""
    return float(random_bits(chain) >> _SHIFT_11) * _UNIT


@kernel
def swap_loops(chain):
    """Exchange two different loops of the order; returns True."""
    i = random_below(chain, chain.length)
    j = random_below(chain, chain.length)
    while chain.order[i] == chain.order[j]:
        i = random_below(chain, chain.length)
        j = random_below(chain, chain.length)
    loop = chain.order[i]
    chain.order[i] = chain.order[j]
    chain.order[j] = loop
    return True


@kernel
def move_loop(chain):
    """Move one loop to another position; False if the order is unchanged."""
    source = random_below(chain, chain.length)
    target = random_below(chain, chain.length)
    loop = chain.order[source]
    step = 1 if target > source else -1
    changed = False
    i = source
    while i != target:
        changed = changed or chain.order[i + step] != loop
        chain.order[i] = chain.order[i + step]
        i += step
    chain.order[target] = loop
    return changed


@kernel
def propose(chain):
    """Change the order to a neighbour that matches the pattern; False if none was found."""
    for i in range(chain.length):
        chain.previous_order[i] = chain.order[i]
    for _ in range(PROPOSALS):
        changed = swap_loops(chain) if random_below(chain, 2) == 0 else move_loop(chain)
        if changed and (chain.pattern_length == 0 or matches(chain)):
            return True
        restore(chain)
    return False


@kernel
def restore(chain):
    """Restore the order before the neighbour."""
    for i in range(chain.length):
        chain.order[i] = chain.previous_order[i]


@kernel
def anneal(problem, ws, chain, count):
    """Visit `count` more neighbours of the chain. Orders that do not fit the core are never accepted."""
    n = chain.length
    ws.loop_count = n
    for _ in range(count):
        if propose(chain):
            for i in range(n):
                ws.loop_dimension[i] = chain.loop_dimension[chain.order[i]]
                ws.loop_size[i] = chain.loop_size[chain.order[i]]
            chain.evaluations += 1
            if evaluate_order(problem, ws) == FITS and accept(ws, chain):
                keep_better(ws, chain)
            else:
                restore(chain)
        chain.temperature *= chain.cooling


@kernel
def accept(ws, chain):
    """True if the chain accepts the neighbour.

    It does so always if the neighbour is no worse, else at random, with lower probability at lower temperature.
    """
    value = value_of(chain, ws.totals[ENERGY], ws.totals[LATENCY])
    gain = chain.current_value / value - 1.0
    if value > chain.current_value and random_fraction(chain) >= math.exp(gain / chain.temperature):
        return False
    chain.current_value = value
    return True


@kernel
def keep_better(ws, chain):
    """Keep the current order if it is the best so far."""
    energy = ws.totals[ENERGY]
    latency = ws.totals[LATENCY]
    if ranks_before(chain, energy, latency, chain.best_energy_pj, chain.best_latency_cycles):
        chain.best_energy_pj = energy
        chain.best_latency_cycles = latency
        for i in range(chain.length):
            chain.best_order[i] = chain.order[i]
