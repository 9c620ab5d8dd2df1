"""Search for the weights of resources, such as cores and links, that give the largest lower bound of the latency.

The load of a resource is the number of cycles in which it is busy. Loads depend on a choice, such as the core of each
CN. A schedule takes at least the load of its busiest resource. This load is at least the weighted mean of the loads of
all resources. For any weights, the smallest weighted mean over all choices is therefore a lower bound of the latency.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import SLACK
from tilewright.multicore.scheduling.problem import Floats

Choice = TypeVar("Choice")


class ArrayContent(NamedTuple):
    """Content of an array in a form that can be compared and can be the key of a table."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> "ArrayContent":
        """Content of an array."""
        return cls(array.shape, array.dtype.str, array.tobytes())

    def array(self) -> np.ndarray:
        """Array with this content. The array is read-only."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


class Weighted(NamedTuple):
    """Lower bound, and the weights of resources that give it."""

    cycles: int
    weights: Floats
    """Weight (one entry for each resource); the weights sum to 1"""


def best_by_weights(
    resources: int,
    rounds: int,
    bound: Callable[[Floats], tuple[float, Choice]],
    load: Callable[[Choice], Floats],
    cycles_only: bool = False,
    known: int = 0,
) -> Weighted:
    """Largest lower bound in cycles that a search over weights finds, rounded up. Any weights give a valid bound.

    `bound` takes weights that sum to 1, and returns their bound and the choice that is cheapest at these weights.
    `load` returns the load that a choice puts on each resource.

    The search makes `rounds` steps. Each step raises the weights of the most loaded resources. With `cycles_only`, the
    search can end earlier:

    * If no weights can give one more cycle, the search ends. The bound is then the same as after all steps, but the
      weights can differ.
    * If no weights can give more than `known` cycles, the search ends. The result can be too small, but it is at most
      `known`.
    """
    logarithm, average, best = np.zeros(resources), np.zeros(resources), 0.0
    weights: Floats = np.full(resources, 1.0 / max(resources, 1))
    ceiling = _Ceiling(resources)
    for step in range(1, rounds + 1):
        weight = np.exp(logarithm - logarithm.max())
        weight /= weight.sum()
        average += (weight - average) / step
        by_average, _ = bound(average / average.sum())
        by_weight, cheapest = bound(weight)
        if max(by_average, by_weight) > best:
            best, weights = max((by_average, average / average.sum()), (by_weight, weight), key=lambda found: found[0])
        loads = load(cheapest)
        if not loads.any() or (cycles_only and max(_cycles(best), known) >= ceiling.cycles_with(loads)):
            break
        logarithm += loads / loads.max() * (2.0 / math.sqrt(step))
    return Weighted(_cycles(best), weights)


class _Ceiling:
    """Limit of a lower bound: whatever weights the resources have, the bound that follows does not exceed this limit.
    The limit is computed from the loads that some choices put on the resources. A choice fixes how all work is done,
    such as the core of each CN.

    For given weights, each choice has a weighted mean of its loads, and the bound is the smallest of these means. A mix
    of choices has mean loads: the load of a resource is the mean of its loads under several choices. The bound is at
    most the weighted mean of the loads of any choice or mix. The weights sum to 1, so this mean is at most the largest
    load. The bound is therefore at most the largest load of any choice or mix.
    """

    def __init__(self, resources: int) -> None:
        self._mixes = np.zeros((2, resources))
        """Two weighted sums of the loads of all choices so far: array of shape (2, resources). In the first sum, the
        factor of a choice is 1; in the second sum, the factor is the number of the search step that found the choice
        """
        self._shares = np.zeros((2, 1))
        """Sum of the factors over all choices so far: array of shape (2, 1), one row for each of the two sums in
        `_mixes`
        """
        self._least = math.inf

    def cycles_with(self, loads: Floats) -> int:
        """Limit in cycles that no lower bound exceeds, whatever the weights are. The limit follows from the loads of
        all choices so far, to which the new choice with the loads `loads` is added. It is rounded as lower bounds are.
        """
        share = np.array([[1.0], [float(self._shares[0, 0]) + 1]])
        self._mixes += share * loads
        self._shares += share
        self._least = min(self._least, float(loads.max()), float((self._mixes / self._shares).max(axis=1).min()))
        return _cycles(self._least * (1 + SLACK / 10))


def _cycles(bound: float) -> int:
    """Bound in whole cycles, rounded up."""
    return math.ceil(bound * (1 - SLACK))
