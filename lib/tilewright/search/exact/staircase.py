"""Known points of a Pareto front as a staircase, and the distance (miss) of other mappings from these points.

The distance is computed from lower bounds of the energy and latency of the other mappings.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tilewright.base.objectives import energy_delay_product
from tilewright.search.exact.bounds_kernel import TOLERANCE
from tilewright.search.exact.rounds import Incumbent
from tilewright.search.front import Values, on_staircase, unmatched

ROUNDED = 2 * TOLERANCE
"""Largest distance (miss) of a mapping from the known points that counts as 0, as a fraction. Rounding errors alone can
cause such a distance.
"""
UNLIMITED = 1e300
"""Limit in pJ cycles that is above the EDP of every mapping."""


@dataclass
class Staircase:
    """Known mappings of a layer that no other known mapping dominates, by ascending latency.

    `least_energy_pj` and `least_latency_cycles` are lower bounds of the energy and of the latency over all mappings of
    the layer.
    """

    least_energy_pj: float
    least_latency_cycles: float
    points: list[Incumbent] = field(default_factory=list)
    energy: Values = field(default_factory=lambda: np.zeros(0))
    """Energies of the points in pJ."""
    latency: Values = field(default_factory=lambda: np.zeros(0))
    """Latencies of the points in cycles."""

    def add(self, found: Iterable[Incumbent]) -> None:
        """Add mappings, and drop all mappings that another mapping dominates."""
        points = [*self.points, *found]
        energy = np.array([one.energy_pj for one in points])
        latency = np.array([one.latency_cycles for one in points])
        kept = on_staircase(energy, latency)
        self.points = [points[place] for place in kept.tolist()]
        self.energy, self.latency = energy[kept], latency[kept]

    def misses(self, energy_pj: Values, latency_cycles: Values) -> Values:
        """Distance (miss) of mappings from the points: array [mapping]. The arguments are lower bounds of the energy
        (pJ) and the latency (cycles) of each mapping.

        The miss is the smallest fraction x such that some point exceeds each of the two bounds by at most the fraction
        x. A miss as small as a rounding error counts as 0.
        """
        energy = np.maximum(energy_pj, self.least_energy_pj)
        latency = np.maximum(latency_cycles, self.least_latency_cycles)
        share = unmatched(energy, latency, self.energy, self.latency)
        return np.where(share <= ROUNDED, 0.0, share)

    def miss(self, energy_pj: float, latency_cycles: float) -> float:
        """Distance (miss) from the points to mappings with the lower bounds `energy_pj` and `latency_cycles`. The miss
        is the smallest fraction x such that some point exceeds each of the two bounds by at most the fraction x. The
        miss is 0 if a point is at least as good as both bounds.
        """
        return float(self.misses(np.array([energy_pj]), np.array([latency_cycles]))[0])

    def largest_product(self, tolerance: float) -> float:
        """Limit of the EDP in pJ cycles. Each mapping whose EDP exceeds the limit is matched by a known point within
        `tolerance`."""
        if not len(self.energy) or self.end_miss > tolerance:
            return UNLIMITED
        corners = energy_delay_product(self.energy[:-1], self.latency[1:])
        return float(corners.max(initial=0.0))

    @property
    def end_miss(self) -> float:
        """Larger of two relative differences: from the lower bound of the energy to the least energy of the points, and
        from the lower bound of the latency to the least latency of the points.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self.energy[-1] / np.float64(self.least_energy_pj), self.latency[0] / self.least_latency_cycles
        share = max(1.0 if np.isnan(one) else float(one) for one in ratios) - 1
        return 0.0 if share <= ROUNDED else share
