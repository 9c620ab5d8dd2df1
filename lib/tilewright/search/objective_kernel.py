"""Objectives (`tilewright.base.objectives`) in compiled searches.

The record of a search holds the objective as its two powers.
"""

import numpy as np

from tilewright.base.compiled import kernel

POWER_FIELDS = (("energy_power", np.int64), ("latency_power", np.int64))
"""Fields for the objective in the record of a search."""


@kernel
def value_of(search, energy, latency):
    """Value of the objective."""
    value = 1.0
    for _ in range(search.energy_power):
        value *= energy
    for _ in range(search.latency_power):
        value *= latency
    return value


@kernel
def ranks_before(search, energy, latency, best_energy, best_latency):
    """True if energy and latency are better than the best: by the objective, then by the other metric."""
    value = value_of(search, energy, latency)
    best = value_of(search, best_energy, best_latency)
    if value != best:
        return value < best
    return (search.energy_power == 0 and energy < best_energy) or (search.latency_power == 0 and latency < best_latency)


@kernel
def root(value, power):
    """Number whose `power`-th power is `value`."""
    return value if power == 1 else value ** (1.0 / power)
