"""Detours, and random changes of detours.

A layer has a detour if its results reach other cores through the off-chip memory.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.problem import SchedulingProblem

Layers = tuple[int, ...]
"""Positions of layers in the network, in rising order."""
BACK_PROBABILITY = 0.3
"""Probability that the first layer of a step is drawn from the layers with a detour. The step then removes detours."""
LARGE_PROBABILITY = 0.7
"""Probability that the first layer of a step is drawn in proportion to the bits that each layer produces
(`DetourSteps.bits`), because detours of layers with large results relieve a bus most. In all other draws, the layers
have equal probability. The probability does not apply to steps that are selected by BACK_PROBABILITY.
"""
RUNS = (1, 1, 1, 2, 3, 5, 8)
"""Numbers of consecutive layers that a step changes. Each step draws one of these numbers. Near the end of the network,
a step can change fewer layers.
"""


@dataclass(frozen=True)
class DetourSteps:
    """Random changes of the set of layers that send their results through the off-chip memory (detours), for one
    plan.
    """

    bits: Sequence[int]
    """Number of bits that each layer produces for other layers (one entry for each layer)."""

    def next(self, draw: random.Random, chosen: Layers) -> Layers:
        """Set of layers with detours after one step.

        The step changes consecutive layers. If the first of these layers has no detour, all of these layers get
        detours. Otherwise, all of them lose their detours.
        """
        first = self._first(draw, chosen)
        run = set(range(first, min(len(self.bits), first + draw.choice(RUNS))))
        return tuple(sorted(set(chosen) - run if first in chosen else run.union(chosen)))

    def _first(self, draw: random.Random, chosen: Layers) -> int:
        if chosen and draw.random() < BACK_PROBABILITY:
            return draw.choice(chosen)
        if any(self.bits) and draw.random() < LARGE_PROBABILITY:
            return draw.choices(range(len(self.bits)), self.bits)[0]
        return draw.randrange(len(self.bits))


def detour_steps(problem: SchedulingProblem) -> DetourSteps:
    """Generator of random changes of detours, for the network of a scheduling problem."""
    graph = problem.graph
    bits = np.zeros(int(graph.layer.max(initial=-1)) + 1, np.int64)
    is_made = np.zeros(len(graph.piece_bits), np.bool_)
    is_made[graph.need_piece] = True
    is_made &= graph.piece_producer >= 0
    np.add.at(bits, graph.layer[graph.piece_producer[is_made]], graph.piece_bits[is_made])
    return DetourSteps(tuple(bits.tolist()))
