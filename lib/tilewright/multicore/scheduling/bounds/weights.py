"""Search for the weights of resources that give the largest lower bound."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import SLACK
from tilewright.multicore.scheduling.problem import Floats

Choice = TypeVar("Choice")


class Weighted(NamedTuple):
    """Lower bound, and the weights of resources that give it."""

    cycles: int
    weights: Floats
    """[resource] Weight; the weights sum to 1"""


def best_by_weights(
    resources: int,
    rounds: int,
    bound: Callable[[Floats], tuple[float, Choice]],
    load: Callable[[Choice], Floats],
    cycles_only: bool = False,
) -> Weighted:
    """Largest lower bound in cycles that a search over weights finds, rounded up.

    `bound` takes weights that sum to 1. It returns the bound that they give, and the choice that is cheapest at these
    weights. `load` returns the load that a choice puts on each resource. Any weights give a valid bound.

    The search makes `rounds` steps. Each step raises the weights of the most loaded resources. With `cycles_only`, the
    search ends when no weights can give one more cycle. The cycles are then the same as after all steps, but the
    weights can differ.
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
        if not loads.any() or (cycles_only and _cycles(best) >= ceiling.cycles_with(loads)):
            break
        logarithm += loads / loads.max() * (2.0 / math.sqrt(step))
    return Weighted(_cycles(best), weights)


class _Ceiling:
    """Upper limit of all bounds that any weights give, computed from the loads of choices.

    A bound is at most the weighted load of any choice. Therefore it is at most the largest load in any mix of choices.
    """

    def __init__(self, resources: int) -> None:
        self._mixes = np.zeros((2, resources))
        """[mix, resource] Sum of the loads so far. The first mix has each load once, and the second has each load times
        its step number
        """
        self._shares = np.zeros((2, 1))
        """[mix] Sum of the weights with which the mix has counted loads"""
        self._least = math.inf

    def cycles_with(self, loads: Floats) -> int:
        """Limit in cycles after one more choice with these loads, rounded up in the same way as bounds."""
        share = np.array([[1.0], [float(self._shares[0, 0]) + 1]])
        self._mixes += share * loads
        self._shares += share
        self._least = min(self._least, float(loads.max()), float((self._mixes / self._shares).max(axis=1).min()))
        return _cycles(self._least * (1 + SLACK / 10))


def _cycles(bound: float) -> int:
    """Bound that is rounded up to whole cycles."""
    return math.ceil(bound * (1 - SLACK))
