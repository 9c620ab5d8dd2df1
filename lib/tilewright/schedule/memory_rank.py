"""The order in which candidate selection `memory` takes CNs: what frees most memory soonest goes first."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tilewright.schedule.problem import SchedulingProblem

Integers = npt.NDArray[np.int64]


def memory_rank(problem: "SchedulingProblem") -> Integers:
    """[cn] place in the order: earliest stack, deepest layer, then by the weights of the layer, then first CN.

    Where the constants that CNs of a layer share fit into the memories that may hold them, all groups do their first
    CN, then all their second: the tiles that the next layers wait for are complete as soon as can be. Where they do
    not, one group after the other runs to its end, so that its constants come once.
    """
    graph = problem.graph
    by_group = ~_shared_constants_fit(problem)[graph.layer]
    number = np.arange(graph.node_count)
    first = np.where(by_group, graph.group, _place_in_group(graph.layer, graph.group))
    second = np.where(by_group, 0, graph.group)
    rank = np.empty(graph.node_count, np.int64)
    rank[np.lexsort((number, second, first, -graph.layer, graph.stack))] = number
    return rank


def _place_in_group(layer: Integers, group: Integers) -> Integers:
    """[cn] how many CNs of its group have a smaller number."""
    count = len(layer)
    order = np.lexsort((np.arange(count), group, layer))
    is_first = np.append(True, (np.diff(layer[order]) != 0) | (np.diff(group[order]) != 0))[:count]
    starts = np.flatnonzero(is_first)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
    return place


def _shared_constants_fit(problem: "SchedulingProblem") -> npt.NDArray[np.bool_]:
    """[layer] whether the constants that more than one of its CNs need fit every memory of a core that may run it."""
    graph = problem.graph
    layers = int(graph.layer.max(initial=-1)) + 1
    constant = graph.piece_producer[graph.need_piece] < 0
    layer, piece, operand = (
        column[constant] for column in (graph.layer[problem.need_cn], graph.need_piece, graph.need_operand)
    )
    operands = problem.system.core_memory.shape[1]
    # One row for each (layer, operand, piece), with the number of CNs that have the need.
    pieces = len(graph.piece_bits)
    key, needs = np.unique((layer * operands + operand) * pieces + piece, return_counts=True)
    key = key[needs > 1]
    bits = np.zeros(layers * operands, np.int64)
    np.add.at(bits, key // max(pieces, 1), graph.piece_bits[key % max(pieces, 1)])
    fits: npt.NDArray[np.bool_] = np.all(bits.reshape(layers, operands) <= _smallest_memory(problem, layers), axis=1)
    return fits


def _smallest_memory(problem: "SchedulingProblem", layers: int) -> Integers:
    """[layer, operand] bits of the smallest memory for the operand on a core that can run a CN of the layer."""
    graph, system = problem.graph, problem.system
    huge = np.iinfo(np.int64).max
    memory = system.core_memory
    capacity = np.where(memory < 0, huge, system.memory_capacity_bits[memory])
    rows = len(problem.costs.runtime_cycles)
    pair = np.unique(graph.layer * rows + graph.cost_row)
    smallest = np.full((layers, memory.shape[1]), huge, np.int64)
    for core in range(system.core_count):
        runs = np.zeros(layers, np.bool_)
        runs[pair[problem.costs.runtime_cycles[pair % rows, core] >= 0] // rows] = True
        smallest[runs] = np.minimum(smallest[runs], capacity[core])
    return smallest
