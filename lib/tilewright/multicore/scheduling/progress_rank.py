"""Priority of CNs for the candidate selection `progress`: all layers of a stack advance at the same pace."""

from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class ProgressRank:
    """Priority order of CNs, which is the same for every allocation."""

    rank: Integers
    """Position of the CN in the priority order (one entry for each CN)"""
    orders_prefetch = True
    """True: constants are prefetched in the priority order, not in the order of the CNs. Otherwise the constants of the
    first layer of a stack would fill the memories before any constant of the second layer arrives.
    """

    def of(self, problem: SchedulingProblem, allocation: Integers) -> Integers:
        """Position of the CN in the priority order (one entry for each CN)."""
        return self.rank


def progress_rank(problem: SchedulingProblem) -> ProgressRank:
    """Priority order of the CNs of a problem.

    CNs are sorted by stack (earliest first), then by progress. The progress of a CN is the share of the CNs of its
    layer that come before it. Ties are broken by layer (last layer first), then by CN number. If a reduction is cut
    into steps, the steps of an output tile follow one another directly. Then the partial sums of only few tiles exist
    at the same time.
    """
    graph = problem.graph
    count, number = graph.node_count, np.arange(graph.node_count)
    order = np.lexsort((number, _first_step(problem), graph.layer))
    sizes = np.bincount(graph.layer)
    place = np.empty(count, np.int64)
    place[order] = number - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Correctly rounded quotients of equal fractions are equal.
    share = place / sizes[graph.layer]
    rank = np.empty(count, np.int64)
    rank[np.lexsort((number, -graph.layer, share, graph.stack))] = number
    return ProgressRank(rank)


def _first_step(problem: SchedulingProblem) -> Integers:
    """First step of the output tile of the CN (one entry for each CN). If the CN does not add to the partial sums of an
    earlier step, the first step is the CN itself.
    """
    graph = problem.graph
    count = graph.node_count
    producer, reader = graph.piece_producer[graph.need_piece], problem.need_cn
    continues = (producer >= 0) & (graph.layer[np.maximum(producer, 0)] == graph.layer[reader])
    before = np.full(count, count)
    np.minimum.at(before, reader[continues], producer[continues])
    first = np.where(before < count, before, np.arange(count))
    for _ in range(count.bit_length()):  # each round doubles the number of steps that are followed
        first = first[first]
    return first
