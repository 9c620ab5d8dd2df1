"""Every distinct order of a multiset of loops, evaluated in a stream (compiled).

Orders come in cool-lex order (Williams 2009, "Loopless generation of multiset permutations using a constant number of
variables by prefix shifts"), as in the reference, so that equal results are told apart by the same rule: first wins.
"""

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.kernel import evaluate_order
from tilewright.cost.problem import MAX_LOOPS
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.mapping.temporal_ordering import ANY, GAP

LATENCY_OBJECTIVE, ENERGY_OBJECTIVE, EDP_OBJECTIVE = range(3)

STREAM_DTYPE = np.dtype(
    [
        ("objective", np.int64),
        ("length", np.int64),  # loops of an order
        ("symbol_dimension", np.int64, (MAX_LOOPS,)),  # [symbol] loop dimension
        ("symbol_size", np.int64, (MAX_LOOPS,)),  # [symbol] loop size
        ("order", np.int64, (MAX_LOOPS,)),  # symbols of the next order, innermost first
        ("pattern_length", np.int64),
        ("pattern_dimension", np.int64, (MAX_LOOPS,)),  # loop dimension, or GAP
        ("pattern_size", np.int64, (MAX_LOOPS,)),  # loop size, or ANY
        ("visited", np.int64),  # orders visited
        ("matching", np.int64),  # of these, orders that match the pattern
        ("fitting", np.int64),  # of these, orders that fit the core
        ("best_index", np.int64),  # position of the best among the fitting
        ("best_order", np.int64, (MAX_LOOPS,)),
        ("best_energy_pj", np.float64),
        ("best_latency_cycles", np.float64),
        ("last_outcome", np.int64),  # of the order evaluated last
        ("closest_outcome", np.int64),  # the failure that missed by least; kept until something fits
        ("closest_place", np.int64, (3,)),  # memory, operand, level
        ("closest_bits", np.float64, (2,)),  # needed, limit
        ("closest_ratio", np.float64),
    ],
    align=True,
)
"""A stream of orders: what to visit, where it is, and the best so far."""


@kernel
def next_order(stream, n):
    """Replace the order of `stream`, `n` symbols, by its successor in cool-lex order."""
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
def matches(ws, stream):
    """True if the order in `ws` matches the pattern, in which GAP stands for any run of loops."""
    p = i = 0
    gap = resume = -1
    while i < ws.loop_count:
        if p < stream.pattern_length and stream.pattern_dimension[p] == GAP:
            gap = p
            resume = i
            p += 1
        elif (
            p < stream.pattern_length
            and stream.pattern_dimension[p] == ws.loop_dimension[i]
            and (stream.pattern_size[p] == ANY or stream.pattern_size[p] == ws.loop_size[i])
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
def is_better(objective, energy, latency, best_energy, best_latency):
    """The reference's rule: smaller objective, then (not for EDP) the smaller other metric; else the earlier order."""
    if objective == LATENCY_OBJECTIVE:
        return latency < best_latency or (latency == best_latency and energy < best_energy)
    if objective == ENERGY_OBJECTIVE:
        return energy < best_energy or (energy == best_energy and latency < best_latency)
    return latency * energy < best_latency * best_energy


@kernel
def keep_closest_failure(ws, stream, outcome):
    """Keep the failure with the smallest ratio of what was needed to what there is."""
    limit = ws.failure_bits[1]
    ratio = ws.failure_bits[0] / limit if limit > 0 else 0.0
    if ratio < stream.closest_ratio:
        stream.closest_ratio = ratio
        stream.closest_outcome = outcome
        for i in range(3):
            stream.closest_place[i] = ws.failure[i]
        for i in range(2):
            stream.closest_bits[i] = ws.failure_bits[i]


@kernel
def search_block(problem, ws, stream, count):
    """Evaluate the next `count` orders of `stream`, leaving it at the one after."""
    n = stream.length
    ws.loop_count = n
    for _ in range(count):
        for i in range(n):
            ws.loop_dimension[i] = stream.symbol_dimension[stream.order[i]]
            ws.loop_size[i] = stream.symbol_size[stream.order[i]]
        stream.visited += 1
        if stream.pattern_length == 0 or matches(ws, stream):
            stream.matching += 1
            outcome = evaluate_order(problem, ws)
            stream.last_outcome = outcome
            if outcome == FITS:
                keep_better(ws, stream)
            elif stream.fitting == 0:
                keep_closest_failure(ws, stream, outcome)
        if n > 1:
            next_order(stream, n)


@kernel
def keep_better(ws, stream):
    """Keep the order just evaluated if it is the best so far."""
    energy = ws.totals[ENERGY]
    latency = ws.totals[LATENCY]
    if stream.fitting == 0 or is_better(
        stream.objective, energy, latency, stream.best_energy_pj, stream.best_latency_cycles
    ):
        stream.best_energy_pj = energy
        stream.best_latency_cycles = latency
        stream.best_index = stream.fitting
        for i in range(stream.length):
            stream.best_order[i] = stream.order[i]
    stream.fitting += 1
