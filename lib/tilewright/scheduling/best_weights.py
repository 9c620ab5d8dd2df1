"""The best of the bounds that weights on resources give (docs/bounds.md, "Work per core" and "Link traffic")."""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from tilewright.scheduling.cn_classes import SLACK
from tilewright.scheduling.problem import Floats

Choice = TypeVar("Choice")


def best_by_weights(
    resources: int,
    rounds: int,
    bound: Callable[[Floats], tuple[float, Choice]],
    load: Callable[[Choice], Floats],
) -> int:
    """The largest bound in cycles by weights that sum to 1, rounded up.

    `bound` gives the bound by weights and what is cheapest with them, `load` the load of each resource by that. Any
    weights are right; these come from `rounds` steps towards what is loaded the most.
    """
    logarithm, average, best = np.zeros(resources), np.zeros(resources), 0.0
    for step in range(1, rounds + 1):
        weight = np.exp(logarithm - logarithm.max())
        weight /= weight.sum()
        average += (weight - average) / step
        by_average, _ = bound(average / average.sum())
        by_weight, cheapest = bound(weight)
        best = max(best, by_average, by_weight)
        loads = load(cheapest)
        if not loads.any():
            break
        logarithm += loads / loads.max() * (2.0 / math.sqrt(step))
    return math.ceil(best * (1 - SLACK))
