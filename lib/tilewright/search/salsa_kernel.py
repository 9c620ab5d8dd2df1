"""Simulated annealing over loop orders (compiled), with the acceptance rule of zigzag-dse 3.9.1.

A chain is one run of simulated annealing. Each iteration proposes a neighbour, which is the current order with two
loops exchanged or one loop moved.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.kernel import evaluate_order
from tilewright.cost.problem import MAX_LOOPS
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.search.loma_kernel import matches
from tilewright.search.objective_kernel import POWER_FIELDS, ranks_before, value_of

PROPOSALS = 64
"""Largest number of random neighbours that an iteration tries until a neighbour matches the pattern. If none of them
matches, the iteration evaluates no neighbour."""

CHAIN_DTYPE = np.dtype(
    [
        *POWER_FIELDS,
        ("length", np.int64),  # number of loops in an order
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [loop]
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [loop]
        ("pattern_length", np.int64),
        ("pattern_dimension", np.int64, (MAX_LOOPS,)),  # loop dimension, or GAP
        ("pattern_size", np.int64, (MAX_LOOPS,)),  # loop size, or ANY
        ("order", np.int64, (MAX_LOOPS,)),  # current order or the proposed neighbour, innermost loop first
        ("previous_order", np.int64, (MAX_LOOPS,)),  # current order while `order` is the proposed neighbour
        ("current_value", np.float64),  # objective of the current order
        ("best_order", np.int64, (MAX_LOOPS,)),
        ("best_energy_pj", np.float64),
        ("best_latency_cycles", np.float64),
        ("random_state", np.uint64),
        ("temperature", np.float64),
        ("cooling", np.float64),  # factor by which each iteration multiplies the temperature
        ("evaluations", np.int64),  # number of neighbours that were evaluated
    ],
    align=True,
)
"""Chain, which is one run of simulated annealing: the loops, the pattern, the current order and the best order so far.
The first order of a chain must fit the core.
"""

# SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_SHIFT_27, _SHIFT_30, _SHIFT_31 = np.uint64(27), np.uint64(30), np.uint64(31)
_SHIFT_11, _SHIFT_32 = np.uint64(11), np.uint64(32)
_UNIT = 2.0**-53


@kernel
def random_bits(chain):
    """Next 64 random bits of a chain. The bits depend only on the random state of the chain."""
    chain.random_state = chain.random_state + _STEP
    bits = chain.random_state
    bits = (bits ^ (bits >> _SHIFT_30)) * _FIRST_FACTOR
    bits = (bits ^ (bits >> _SHIFT_27)) * _SECOND_FACTOR
    return bits ^ (bits >> _SHIFT_31)


@kernel
def random_below(chain, count):
    """Random integer from 0 to `count` - 1. `count` must be much smaller than 2**32."""
    return np.int64(((random_bits(chain) >> _SHIFT_32) * np.uint64(count)) >> _SHIFT_32)


@kernel
def random_fraction(chain):
    """Random number from 0 (included) to 1 (excluded)."""
    return float(random_bits(chain) >> _SHIFT_11) * _UNIT


@kernel
def swap_loops(chain):
    """Exchange two different loops at random positions of the order. Return True, because the order always changes."""
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
    """Move the loop at a random position to another random position. Return False if the order does not change."""
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
    """Replace the order by a random neighbour that matches the pattern. Return False if no such neighbour is found."""
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
    """Replace the proposed neighbour by the previous order."""
    for i in range(chain.length):
        chain.order[i] = chain.previous_order[i]


@kernel
def anneal(problem, ws, chain, count):
    """Run `count` more iterations of the chain. Orders that do not fit the core are never accepted."""
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
    """True if the chain accepts the neighbour as its current order.

    A neighbour that is not worse than the current order is always accepted. A worse neighbour is accepted at random;
    the probability falls with the temperature.
    """
    value = value_of(chain, ws.totals[ENERGY], ws.totals[LATENCY])
    gain = chain.current_value / value - 1.0
    if value > chain.current_value and random_fraction(chain) >= math.exp(gain / chain.temperature):
        return False
    chain.current_value = value
    return True


@kernel
def keep_better(ws, chain):
    """Store the current order as the best order if it is better than all earlier orders."""
    energy = ws.totals[ENERGY]
    latency = ws.totals[LATENCY]
    if ranks_before(chain, energy, latency, chain.best_energy_pj, chain.best_latency_cycles):
        chain.best_energy_pj = energy
        chain.best_latency_cycles = latency
        for i in range(chain.length):
            chain.best_order[i] = chain.order[i]
