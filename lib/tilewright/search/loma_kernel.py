"""Every distinct order of a multiset of loops, evaluated in a stream (compiled).

Orders come in cool-lex order (Williams 2009, "Loopless generation of multiset permutations using a constant number of
variables by prefix shifts"), as in the reference, so that equal results are told apart by the same rule: first wins.
"""

from tilewright.compiled import kernel
from tilewright.cost.kernel import evaluate_order
from tilewright.cost.workspace import ENERGY, FITS, LATENCY
from tilewright.mapping.temporal_ordering import ANY, GAP

# `state` columns: orders visited, orders that match the constraints, orders that fit, index among the fitting of the
# best one (0-based), outcome of the last one evaluated.
VISITED, MATCHING, FITTING, BEST_INDEX, LAST_OUTCOME, STATE_COUNT = range(6)
LATENCY_OBJECTIVE, ENERGY_OBJECTIVE, EDP_OBJECTIVE = range(3)


@kernel
def next_order(order):
    """Replace `order` (symbols as integers) by its successor in cool-lex order."""
    n = order.shape[0]
    prefix = 1
    while prefix < n and order[prefix] <= order[prefix - 1]:
        prefix += 1
    source = n - 1
    if prefix <= n - 2:
        source = prefix + 1 if order[prefix + 1] <= order[prefix - 1] else prefix
    moved = order[source]
    for i in range(source, 0, -1):
        order[i] = order[i - 1]
    order[0] = moved


@kernel
def matches(ws, pattern_dimension, pattern_size):
    """True if the order matches the pattern; GAP stands for any run of loops (greedy, first gap from inside)."""
    p = i = 0
    gap = resume = -1
    while i < ws.loop_count:
        if p < pattern_dimension.shape[0] and pattern_dimension[p] == GAP:
            gap = p
            resume = i
            p += 1
        elif (
            p < pattern_dimension.shape[0]
            and pattern_dimension[p] == ws.loop_dimension[i]
            and (pattern_size[p] == ANY or pattern_size[p] == ws.loop_size[i])
        ):
            p += 1
            i += 1
        elif gap >= 0:
            resume += 1
            i = resume
            p = gap + 1
        else:
            return False
    while p < pattern_dimension.shape[0] and pattern_dimension[p] == GAP:
        p += 1
    return p == pattern_dimension.shape[0]


@kernel
def is_better(objective, energy, latency, best_energy, best_latency):
    """The reference's rule: smaller objective, then (not for EDP) the smaller other metric; else the earlier order."""
    if objective == LATENCY_OBJECTIVE:
        return latency < best_latency or (latency == best_latency and energy < best_energy)
    if objective == ENERGY_OBJECTIVE:
        return energy < best_energy or (energy == best_energy and latency < best_latency)
    return latency * energy < best_latency * best_energy


@kernel
def copy_order(source, target):
    """Copy an order."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel
def keep_closest_failure(ws, outcome, closest, closest_place):
    """Keep the failure with the smallest ratio of what was needed to what there is."""
    limit = ws.failure_bits[1]
    ratio = ws.failure_bits[0] / limit if limit > 0 else 0.0
    if ratio < closest[0]:
        closest[0] = ratio
        closest[1] = ws.failure_bits[0]
        closest[2] = limit
        closest_place[0] = outcome
        for i in range(3):
            closest_place[i + 1] = ws.failure[i]


@kernel
def search_block(
    problem, ws, objective, symbol_dimension, symbol_size, pattern_dimension, pattern_size,
    order, count, state, best, best_order, closest, closest_place,
):  # fmt: skip
    """Evaluate `count` orders from `order` on, leaving `order` at the next one.

    `best` is (energy_pj, latency_cycles) of the best so far; `state` as described above. `closest` (needed / limit,
    needed, limit) and `closest_place` (outcome, memory, operand, level) keep the failure that missed by least.
    """
    n = order.shape[0]
    ws.loop_count = n
    constrained = pattern_dimension.shape[0] > 0
    for _ in range(count):
        for i in range(n):
            ws.loop_dimension[i] = symbol_dimension[order[i]]
            ws.loop_size[i] = symbol_size[order[i]]
        state[VISITED] += 1
        if not constrained or matches(ws, pattern_dimension, pattern_size):
            state[MATCHING] += 1
            outcome = evaluate_order(problem, ws)
            state[LAST_OUTCOME] = outcome
            if outcome == FITS:
                energy = ws.totals[ENERGY]
                latency = ws.totals[LATENCY]
                if state[FITTING] == 0 or is_better(objective, energy, latency, best[0], best[1]):
                    best[0] = energy
                    best[1] = latency
                    copy_order(order, best_order)
                    state[BEST_INDEX] = state[FITTING]
                state[FITTING] += 1
            elif state[FITTING] == 0:
                keep_closest_failure(ws, outcome, closest, closest_place)
        if n > 1:
            next_order(order)


