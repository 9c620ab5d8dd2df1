"""A reduction of one's own: the least energy among the mappings that are fast enough."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tilewright.pipeline.stages import CostedBatch, Reduction


@dataclass(frozen=True)
class MinimalEnergyUnderLatency(Reduction):
    """Keeps the mapping with the least energy among those that take at most `latency_bound_cycles` cycles."""

    latency_bound_cycles: float
    """Cycles that a layer may take."""

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Energy (infinite for mappings that are too slow), then latency, which decides between equal energies."""
        fast_enough = costs.latency_cycles <= self.latency_bound_cycles
        return np.where(fast_enough, costs.energy_pj, np.inf), costs.latency_cycles

    def refusal(self) -> str:
        """Reason in the tally for a spatial mapping without an order that is fast enough."""
        return f"every mapping that fits takes more than {self.latency_bound_cycles:g} cycles"
