"""Reloads of a schedule: bits of each layer that are moved more than once.

The step `reloads` of the search for plans changes a random layer. The probability of a layer is proportional to its
reloads.
"""

import numpy as np

from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule


def moved_again_bits(problem: SchedulingProblem, schedule: Schedule) -> tuple[int, ...]:
    """Number of bits of each layer's data that links move again. All moves count except the first move of a piece of
    data. Constants count for the first layer that reads them. Results count for the layer that produces them. A
    multicast is one move. `schedule` must contain logs.
    """
    graph, transfers = problem.graph, schedule.transfers
    moves = np.bincount(transfers["piece"][transfers["broadcast_of"] < 0], minlength=len(graph.piece_bits))
    again = graph.piece_bits * np.maximum(moves - 1, 0)
    layer = np.full(len(again), -1, np.int64)
    layer[graph.need_piece[::-1]] = graph.layer[
        problem.need_cn[::-1]
    ]  # constants belong to the first of several readers
    is_made = graph.piece_producer >= 0
    layer[is_made] = graph.layer[graph.piece_producer[is_made]]
    found = np.zeros(int(graph.layer.max(initial=-1)) + 1, np.int64)
    np.add.at(found, layer[layer >= 0], again[layer >= 0])
    return tuple(found.tolist())
