"""Objectives of searches, declared here and nowhere else, and the seed of all their random numbers.

An objective is a product of powers of energy and latency, so that it never falls where one of them grows: from a lower
bound of each follows one of the objective, which is what certificates of the exact search rest on.
"""

from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from tilewright.base.parameters import Count, Parameters

if TYPE_CHECKING:
    import numpy as np

Objective = Literal["latency", "energy", "EDP"]
Number = TypeVar("Number", float, "np.ndarray")


@dataclass(frozen=True, eq=False, repr=False)
class Goal(Parameters):
    """What a search goes by."""

    objective: Objective = "latency"
    """What is minimised: latency, energy or EDP (their product)."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Chance(Parameters):
    """The random numbers of a search: equal seeds give equal results."""

    seed: Count = 0
    """Where the random numbers of salsa, and of the search for an allocation, start."""


class Powers(NamedTuple):
    """An objective: energy to one power times latency to another, whole numbers that are not both 0."""

    energy: int = 0
    latency: int = 0

    def value(self, energy_pj: Number, latency_cycles: Number) -> Number:
        """Value of one mapping, or of columns of them."""
        return reduce(mul, [energy_pj] * self.energy + [latency_cycles] * self.latency)


OBJECTIVES: dict[str, Powers] = {
    "latency": Powers(latency=1),
    "energy": Powers(energy=1),
    "EDP": Powers(energy=1, latency=1),
}
"""Objectives by name, in the order in which they are listed."""
EDP = OBJECTIVES["EDP"]
REDUCTION_OF = {objective: f"Minimal{objective[0].upper()}{objective[1:]}" for objective in OBJECTIVES}
"""Objective -> the stage that keeps the best."""


def energy_delay_product(energy_pj: Number, latency_cycles: Number) -> Number:
    """EDP in pJ cycles, of one thing or of columns; only what checks results multiplies on its own."""
    return EDP.value(energy_pj, latency_cycles)


def ranking(objective: str, energy_pj: Number, latency_cycles: Number) -> tuple[Number, ...]:
    """What mappings are compared by under an objective, the most important first; of one mapping or of columns.

    The reference's rule: the objective, then the metric that it leaves out; the smaller wins, of equal ones the first.
    """
    powers = OBJECTIVES[objective]
    value = powers.value(energy_pj, latency_cycles)
    if powers.energy == 0:
        return value, energy_pj
    return (value, latency_cycles) if powers.latency == 0 else (value,)
