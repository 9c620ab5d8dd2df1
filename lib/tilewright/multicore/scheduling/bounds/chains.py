"""Rows of CNs each of which waits for the one before, between whose runs the phases of a schedule lie
(docs/proofs.md#bounds, "Phases")."""

from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import changes
from tilewright.multicore.scheduling.bounds.paths import LongestPaths
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem

_ALL_OF = 64
"""CNs of a graph up to which all are looked at."""
_PARTS_OF_LAYER = 8
"""Else those of each layer that can start first and last, and those that divide it into so many parts between."""
_MOST_LOOKED_AT = 1000
_MOST_EDGES = 2 * 10**7
"""Edges of a graph times CNs that are looked at."""
_WORTH_OF_CN = 1 / 32
"""Share of all cycles that a CN of a row counts as, whatever its own; found by trying."""


@dataclass(frozen=True, eq=False)
class NodeChain:
    """CNs each of which waits for the one before, and where all others lie between their starts."""

    cns: Integers
    """CN i runs in phase 2 i + 1; phases of even number lie before, between and after"""
    first: Integers
    """[cn] phase before which it does not start"""
    last: Integers
    """[cn] phase in which it ends at the latest"""
    arrives: Integers
    """[cn] last phase in which what it reads can be on its way: the one before where it is one of the row"""


def chain_of(problem: SchedulingProblem, paths: LongestPaths, count: int) -> NodeChain:
    """The row of up to `count` CNs, of those that are looked at, that parts most pairs of others."""
    first = np.zeros(problem.graph.node_count, np.int64)
    kept = _best_row(problem, paths, count)
    last = np.full(problem.graph.node_count, 2 * len(kept), np.int64)
    around = [tuple(marked.copy() for marked in paths.around(cn)) for cn in kept]
    for number, (_, after) in enumerate(around):
        first[after] = 2 * number + 2
    for number, (before, _) in reversed(list(enumerate(around))):
        last[before] = 2 * number
    first[kept] = last[kept] = 2 * np.arange(len(kept)) + 1
    arrives = last.copy()
    arrives[kept] -= 1
    return NodeChain(np.array(kept, np.int64), first, last, arrives)


def _best_row(problem: SchedulingProblem, paths: LongestPaths, count: int) -> list[int]:
    """Up to `count` CNs in a row that part most pairs: a CN that one of the row waits for, and one that waits for it.

    A pair counts as much as the product of its cycles. What CNs of a row wait for grows along it: each but the first
    adds the pairs of what the one before does not wait for. A CN of the row has a share of all cycles itself, so that
    one that few others run beside is worth something next to another one. Of equal rows the one whose last CN waits
    for the fewest others, then the one of fewest CNs.
    """
    looked_at = _looked_at(problem, paths)
    before = np.zeros((len(looked_at), len(looked_at)), np.bool_)
    number, waited, following = (np.zeros(len(looked_at)) for _ in range(3))
    for place, cn in enumerate(looked_at.tolist()):
        ends_before, starts_after = paths.around(cn)
        before[place] = ends_before[looked_at]
        number[place] = np.count_nonzero(ends_before)
        waited[place], following[place] = paths.runtime[ends_before].sum(), paths.runtime[starts_after].sum()
    order = np.lexsort((looked_at, number))  # who waits for another CN waits for more
    looked_at, before = looked_at[order], before[np.ix_(order, order)]
    waited, following = waited[order], following[order]
    own = (waited + following) * (float(paths.runtime.sum()) * _WORTH_OF_CN)
    best = np.full((len(looked_at), count), -np.inf)
    """[place, n] pairs of the best row of n + 1 CNs that ends there"""
    behind = np.full((len(looked_at), count), -1, np.int64)
    best[:, 0] = waited * following + own
    for place in range(len(looked_at)):
        others = np.flatnonzero(before[place])
        if len(others):
            added = (waited[place] - waited[others]) * following[place] + own[place]
            rows = best[others, :-1] + added[:, None]
            best[place, 1:], behind[place, 1:] = rows.max(axis=0), others[rows.argmax(axis=0)]
    place, length = divmod(int(best.argmax()), count)
    row = []
    while length >= 0:
        row.append(int(looked_at[place]))
        place, length = int(behind[place, length]), length - 1
    return row[::-1]


def _looked_at(problem: SchedulingProblem, paths: LongestPaths) -> Integers:
    """CNs for the row: all of a small graph, else some of each layer, evenly over the network where it is large."""
    layer, head = problem.graph.layer, paths.head
    if len(layer) <= _ALL_OF:
        return np.arange(len(layer))
    order = np.lexsort((head, layer))
    begin = np.flatnonzero(changes(layer[order]))
    size = np.diff(np.append(begin, len(order)))
    steps = np.arange(_PARTS_OF_LAYER + 1)
    some: Integers = np.unique(order[(begin[:, None] + (size[:, None] - 1) * steps // _PARTS_OF_LAYER)])
    some = some[np.lexsort((some, head[some]))]
    most = int(np.clip(_MOST_EDGES // max(1, len(problem.edges[1])), 1, _MOST_LOOKED_AT))
    return some[np.unique(np.linspace(0, len(some) - 1, most).round().astype(np.int64))] if len(some) > most else some
