"""Chains of CNs that divide a schedule into phases (docs/proofs/bounds-phases.md, "Phases").

Each CN of a chain waits for the previous CN of the chain. The phases of the schedule are the runs of these CNs, and the
times before, between and after the runs.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import changes
from tilewright.multicore.scheduling.bounds.paths import LongestPaths
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem

_ALL_OF = 64
"""Largest number of CNs of a graph in which every CN is a candidate for the chain. In larger graphs, only some CNs are
candidates. The runs of the CNs of a chain divide the schedule into phases.
"""
_PARTS_OF_LAYER = 8
"""Number of sections into which the candidates divide each layer if the graph has more than `_ALL_OF` CNs. Two
candidates of a layer are the CN with the earliest possible start and the CN with the latest possible start. All other
candidates are CNs at equal distances between these two.
"""
_MOST_LOOKED_AT = 1000
"""Largest number of CNs that are candidates for a chain."""
_MOST_EDGES = 2 * 10**7
"""Upper limit for (number of edges of a graph) x (number of candidates). Large graphs therefore get fewer candidates.
"""
_WORTH_OF_CN = 1 / 32
"""Substitute for the runtime of a CN of the chain, as a share of the total runtime of all CNs. The substitute is used
in the weights of the pairs that this CN forms with CNs before and after it (`_best_row`). The value was found by
experiments.
"""


@dataclass(frozen=True, eq=False)
class NodeChain:
    """Chain of CNs, with the phases in which each CN of the problem can run."""

    cns: Integers
    """CNs of the chain. CN i of the chain runs in phase 2 i + 1. The even phases are the times before, between and
    after these runs
    """
    first: Integers
    """First phase in which the CN can start (one entry for each CN)"""
    last: Integers
    """Last phase in which the CN can end (one entry for each CN)"""
    arrives: Integers
    """Last phase in which the inputs of the CN can arrive (one entry for each CN). For a CN outside the chain, this
    phase is `last`. For a CN of the chain, it is the phase before the run of the CN. If data that fit a core may stream
    (`LongestPaths.may_stream`), it is the phase of the run
    """


def chain_of(problem: SchedulingProblem, paths: LongestPaths, count: int) -> NodeChain:
    """Chain of up to `count` candidates. The pairs of CNs that it separates have the largest total weight.

    A CN c of the chain separates the pair (a, b) if a must end before c starts, and b can start only after c ends. The
    weight of a pair follows from the runtimes of its two CNs (`_best_row`).
    """
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
    if not paths.may_stream:
        arrives[kept] -= 1
    return NodeChain(np.array(kept, np.int64), first, last, arrives)


def _best_row(problem: SchedulingProblem, paths: LongestPaths, count: int) -> list[int]:
    """Chain of up to `count` candidates (`_looked_at`). The pairs of CNs that the chain separates have the largest
    total weight.

    A CN c of the chain separates the pair (a, b) if a must end before c starts, and b can start only after c ends. The
    weight of (a, b) is the product of the runtimes of a and b. All predecessors of c are also predecessors of the next
    CN of the chain. To count each pair once, the next CN adds only pairs (a, b) in which a is not a predecessor of c.

    CN c also forms pairs with the CNs before and after it. In the weight of these pairs, `_WORTH_OF_CN` replaces the
    runtime of c. Therefore c adds value even if it is next to another CN of the chain.

    Ties between chains are broken in three steps: fewest predecessors of the last CN, then lowest number of the last
    CN, then fewest CNs.
    """
    looked_at = _looked_at(problem, paths)
    before = np.zeros((len(looked_at), len(looked_at)), np.bool_)
    number, waited, following = (np.zeros(len(looked_at)) for _ in range(3))
    for place, cn in enumerate(looked_at.tolist()):
        ends_before, starts_after = paths.around(cn)
        before[place] = ends_before[looked_at]
        number[place] = np.count_nonzero(ends_before)
        waited[place], following[place] = paths.runtime[ends_before].sum(), paths.runtime[starts_after].sum()
    order = np.lexsort((looked_at, number))  # a CN has more predecessors than each CN for which it waits
    looked_at, before = looked_at[order], before[np.ix_(order, order)]
    waited, following = waited[order], following[order]
    own = (waited + following) * (float(paths.runtime.sum()) * _WORTH_OF_CN)
    best = np.full((len(looked_at), count), -np.inf)
    """Values of the best chains: array of shape (candidates, `count`). The entry (c, n) is the value of the best chain
    of n + 1 CNs that ends with candidate c
    """
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
    """Candidates for the chain. If the graph has at most `_ALL_OF` CNs, all CNs are candidates. Otherwise, some CNs of
    each layer are candidates. If these are too many, only CNs at equal distances in the order of their earliest
    possible start are kept.
    """
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
