"""Every distinct order of a multiset of loops, made block by block (compiled).

Orders come in cool-lex order (Williams 2009, "Loopless generation of multiset permutations using a constant number of
variables by prefix shifts"), as in the reference, so that equal results are told apart by the same rule: first wins.
"""

import numpy as np

from tilewright.compiled import kernel
from tilewright.cost.problem import MAX_LOOPS
from tilewright.mapping.temporal_ordering import ANY, GAP

STREAM_DTYPE = np.dtype(
    [
        ("length", np.int64),  # loops of an order
        ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [loop]
        ("loop_size", np.int64, (MAX_LOOPS,)),  # [loop]
        ("order", np.int64, (MAX_LOOPS,)),  # loops of the next order, innermost first
        ("pattern_length", np.int64),
        ("pattern_dimension", np.int64, (MAX_LOOPS,)),  # loop dimension, or GAP
        ("pattern_size", np.int64, (MAX_LOOPS,)),  # loop size, or ANY
        ("visits_allowed", np.int64),  # orders that the next call may visit at most
        ("visited", np.int64),  # orders that the last call visited
        ("rows", np.int64),  # orders that the last call wrote
    ],
    align=True,
)
"""A stream of orders: which loops, where it is, and what orders must match."""


@kernel
def next_order(stream, n):
    """Replace the order of `stream`, `n` loops, by its successor in cool-lex order."""
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
def matches(stream):
    """True if the order of `stream` matches the pattern, in which GAP stands for any run of loops."""
    p = i = 0
    gap = resume = -1
    while i < stream.length:
        if p < stream.pattern_length and stream.pattern_dimension[p] == GAP:
            gap = p
            resume = i
            p += 1
        elif (
            p < stream.pattern_length
            and stream.pattern_dimension[p] == stream.loop_dimension[stream.order[i]]
            and (stream.pattern_size[p] == ANY or stream.pattern_size[p] == stream.loop_size[stream.order[i]])
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
def fill_block(stream, block, count):
    """Write the next orders of `stream` that match its pattern into `block`, at most `count`."""
    n = stream.length
    rows = 0
    visited = 0
    while rows < count and visited < stream.visits_allowed:
        if stream.pattern_length == 0 or matches(stream):
            for i in range(n):
                block.orders[rows * n + i] = stream.order[i]
            rows += 1
        visited += 1
        if n > 1:
            next_order(stream, n)
    stream.rows = rows
    stream.visited = visited
