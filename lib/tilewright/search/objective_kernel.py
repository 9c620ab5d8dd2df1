"""Objectives (`tilewright.base.objectives`) in compiled searches.

The record of a search stores an objective as two exponents: the power of energy and the power of latency.
"""

import numpy as np

from tilewright.base.compiled import kernel

POWER_FIELDS = (("energy_power", np.int64), ("latency_power", np.int64))
"""Fields of the record of a search that store its objective."""


@kernel
def value_of(search, energy, latency):
    """Value of the objective: the product of `energy` (pJ) and `latency` (cycles), each raised to its exponent."""
    value = 1.0
    for _ in range(search.energy_power):
        value *= energy
    for _ in range(search.latency_power):
        value *= latency
    return value


@kernel
def ranks_before(search, energy, latency, best_energy, best_latency):
    """True if `energy` and `latency` are better than the best values by the objective.

    If the objective uses only energy or only latency, the other metric breaks ties.
    """
    value = value_of(search, energy, latency)
    best = value_of(search, best_energy, best_latency)
    if value != best:
        return value < best
    return (search.energy_power == 0 and energy < best_energy) or (search.latency_power == 0 and latency < best_latency)


@kernel
def root(value, power):
    """Number whose `power`-th power is `value`."""
    return value if power == 1 else value ** (1.0 / power)
