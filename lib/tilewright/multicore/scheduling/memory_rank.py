"""Priority of CNs for the candidate selection `memory`: CNs that soon free much memory run first."""

from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class MemoryRank:
    """Data from which the priority order of each allocation is computed. The order depends only on the cores on which
    the allocation runs each layer. Further cores that are allowed for the layer have no influence.
    """

    by_turn: Integers
    """Position of the CN in the priority order if the groups of every layer take turns (one entry for each CN)"""
    by_group: Integers
    """Position of the CN in the priority order if the groups of a layer run one after another, each to its end (one
    entry for each CN)
    """
    shared_bits: Integers
    """Total bits of the constants that several CNs of the layer need (one entry for each layer and operand)"""
    orders_prefetch = False
    """False: constants are prefetched in the order of the CNs. The priority of the CNs has no influence."""

    def of(self, problem: SchedulingProblem, allocation: Integers) -> Integers:
        """Position of the CN in the priority order (one entry for each CN).

        CNs are sorted by stack (earliest first), then by layer (last layer first). Within a layer, two orders of its
        groups are possible. The choice depends on the constants that several CNs of the layer need.

        If the constants of a layer fit the memories of the cores that run it, the groups take turns: all groups run
        their first CN, then all groups run their second CN. As a result, the tiles for which the next layers wait are
        complete as early as possible.

        If the constants do not fit, each group runs to its end before the next group begins, so that its constants are
        fetched only once.
        """
        fits = np.all(self.shared_bits <= _smallest_memory(problem, allocation, len(self.shared_bits)), axis=1)
        # In both orders, the CNs of a layer occupy the same set of positions among all CNs.
        return np.where(fits[problem.graph.layer], self.by_turn, self.by_group)


def memory_rank(problem: SchedulingProblem) -> MemoryRank:
    """Data of a problem from which the priority order of each allocation is computed."""
    graph = problem.graph
    turn = _place_in_group(graph.layer, graph.group)
    return MemoryRank(
        by_turn=_ranks(problem, turn, graph.group),
        by_group=_ranks(problem, graph.group, np.zeros_like(turn)),
        shared_bits=_shared_constants(problem),
    )


def _ranks(problem: SchedulingProblem, first: Integers, second: Integers) -> Integers:
    """Position of the CN in a sorted list (one entry for each CN). The sort keys are stack, layer (last layer first),
    `first`, `second`, and CN number.
    """
    graph = problem.graph
    number = np.arange(graph.node_count)
    rank = np.empty(graph.node_count, np.int64)
    rank[np.lexsort((number, second, first, -graph.layer, graph.stack))] = number
    return rank


def _place_in_group(layer: Integers, group: Integers) -> Integers:
    """Position of the CN within its group: number of CNs of the group that have smaller numbers (one entry for each
    CN).
    """
    count = len(layer)
    order = np.lexsort((np.arange(count), group, layer))
    is_first = np.append(True, (np.diff(layer[order]) != 0) | (np.diff(group[order]) != 0))[:count]
    starts = np.flatnonzero(is_first)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
    return place


def _shared_constants(problem: SchedulingProblem) -> Integers:
    """Total bits of the constants that several CNs of the layer need (one entry for each layer and operand)."""
    graph = problem.graph
    layers = int(graph.layer.max(initial=-1)) + 1
    constant = graph.piece_producer[graph.need_piece] < 0
    layer, piece, operand = (
        column[constant] for column in (graph.layer[problem.need_cn], graph.need_piece, graph.need_operand)
    )
    operands = problem.system.core_memory.shape[1]
    # One row for each (layer, operand, piece), with the number of CNs that need the piece by this operand.
    pieces = len(graph.piece_bits)
    key, needs = np.unique((layer * operands + operand) * pieces + piece, return_counts=True)
    key = key[needs > 1]
    bits = np.zeros(layers * operands, np.int64)
    np.add.at(bits, key // max(pieces, 1), graph.piece_bits[key % max(pieces, 1)])
    return bits.reshape(layers, operands)


def _smallest_memory(problem: SchedulingProblem, allocation: Integers, layers: int) -> Integers:
    """Capacity in bits of the smallest memory for the operand among all cores that run the layer (one entry for each
    layer and operand).
    """
    system = problem.system
    huge = np.iinfo(np.int64).max
    memory = system.core_memory
    capacity = np.where(memory < 0, huge, system.memory_capacity_bits[memory])
    core = np.clip(allocation, 0, system.core_count - 1)  # cores that do not exist are reported later
    runs = np.bincount(problem.graph.layer * system.core_count + core, minlength=layers * system.core_count) > 0
    layer, core = np.divmod(np.flatnonzero(runs), system.core_count)
    smallest = np.full((layers, memory.shape[1]), huge, np.int64)
    np.minimum.at(smallest, layer, capacity[core])
    return smallest
