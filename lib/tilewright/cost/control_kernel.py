"""Kernels for the rules of the control of a core: loops that a memory can step through, and their order.

The hardware file gives the rules (docs/model/control.md). The rules are checked for complete mappings: a loop order
with its level boundaries.
"""

from tilewright.base.compiled import kernel
from tilewright.cost.problem import PARTIAL, RELEVANT
from tilewright.cost.workspace import FITS, ORDER_RULE, TILE_RULE


@kernel
def steps_through(problem, o, d):
    """True if a loop over dimension `d` steps through data of operand `o`: the loop is relevant to the operand, or
    belongs to one of its sliding windows."""
    kind = problem.kind[o, d]
    return kind == RELEVANT or kind == PARTIAL


@kernel
def begins_order(problem, r, o, m, d):
    """True if rule `r` of loop orders can begin at a loop over dimension `d` in level `m` of operand `o`. The rule
    begins at the innermost such loop, and covers this loop and all loops outside it.
    """
    return m >= problem.ordered_level[r, o] and steps_through(problem, o, d)


@kernel
def check_control(problem, ws):
    """Check the allocation in `ws.bound` against the rules of the control, and return an outcome. If a rule is broken,
    `ws.failure` has the memory, the operand and the level. The loop dimension is in `ws.failure_bits`.
    """
    for o in range(problem.operand_count):
        first = 0
        for m in range(problem.level_count[o]):
            for i in range(first, ws.bound[o, m]):
                d = ws.loop_dimension[i]
                if problem.no_tile[o, m, d]:
                    return fail_rule(ws, TILE_RULE, problem.level_memory[o, m], o, m, d)
            first = ws.bound[o, m]
    for r in range(problem.ordered_count):
        outcome = check_order_of(problem, ws, r)
        if outcome != FITS:
            return outcome
    return FITS


@kernel
def check_order_of(problem, ws, r):
    """Check the loop order in `ws` against rule `r` of loop orders, and return an outcome (see `check_control`)."""
    begun = False
    last = -1
    for i in range(ws.loop_count):
        d = ws.loop_dimension[i]
        for o in range(problem.operand_count):
            begun = begun or begins_order(problem, r, o, level_of_loop(problem, ws, o, i), d)
        place = problem.order_place[r, d]
        if begun and place >= 0:
            if place < last:
                return fail_rule(ws, ORDER_RULE, problem.ordered_memory[r], 0, 0, d)
            last = place
    return FITS


@kernel
def level_of_loop(problem, ws, o, i):
    """Memory level of operand `o` that has the loop at position `i`."""
    m = 0
    while m < problem.level_count[o] - 1 and ws.bound[o, m] <= i:
        m += 1
    return m


@kernel
def fail_rule(ws, outcome, k, o, m, d):
    """Write to `ws` that a mapping breaks a rule: memory `k`, operand `o`, level `m`, loop dimension `d`. Returns
    `outcome`."""
    ws.failure[0] = k
    ws.failure[1] = o
    ws.failure[2] = m
    ws.failure_bits[0] = float(d)
    ws.failure_bits[1] = 0.0
    return outcome
