"""Spatial mapping of a layer before its mapping problem is made, with the lower bounds that are known at this time."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.hardware.core import Core
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact import rounds
from tilewright.search.exact.floors import TensorFloors
from tilewright.search.front import Values
from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class Choice:
    """Spatial mapping that the search can try. Its mapping problem, which is the input of the cost model, is made only
    when the search needs it."""

    index: int
    """Index among the spatial mappings of the layer."""
    passes: float
    """Lower bound of the number of temporal iterations for any loop order of this spatial mapping."""
    rest_passes: float
    """Lower bound of the number of temporal iterations, for any loop order of this or any later spatial mapping."""
    layer: Layer
    core: Core
    floors: TensorFloors
    """Lower bounds that hold for every mapping of the layer."""
    make: Callable[[], PreparedProblem | None]
    """Function that makes the problem of this spatial mapping.

    If the spatial mapping has no loop orders, the function reports the reason and returns None.
    """
    pj_a_cycle: float = 0.0
    """Energy in pJ that is added for each cycle of the latency, in the problems that the function `make` returns."""
    least: float = 0.0
    """Lower bound of the searched objective for any loop order of this spatial mapping. This bound applies in addition
    to the bound that follows from `passes`."""
    rest_least: float = 0.0
    """Lower bound of the searched objective, for any loop order of this spatial mapping or of any later one. This bound
    applies in addition to the bound that follows from `rest_passes`."""

    pairs: tuple[Values, Values] | None = None
    """Lower bounds as pairs (energy in pJ, latency in cycles), in two arrays [pair]. Each mapping with this spatial
    mapping has at least the energy and at least the latency of one of these pairs. None if unknown.
    """
    rest_miss: float = math.inf
    """Upper limit, as a fraction, of the distance (miss) of this and all later spatial mappings from the known points
    of a front. The limit holds for the points that were known when the choices were sorted.
    """

    def bound(self, objective: str) -> float:
        """Lower bound of the objective for any loop order of this spatial mapping."""
        return max(self.least, self.of_passes(self.passes, objective))

    def rest_bound(self, objective: str) -> float:
        """Lower bound of the objective, for any loop order of this spatial mapping or of any later one."""
        return max(self.rest_least, self.of_passes(self.rest_passes, objective))

    def priced(self, pj_a_cycle: float) -> "Choice":
        """Copy of this spatial mapping in which each cycle of the latency adds `pj_a_cycle` to the energy. This changed
        energy is a weighted sum of energy and latency. Its lower bound gives a supporting line of the Pareto front.

        The bounds `least` and `rest_least` do not change: the caller must have computed them for this weighted sum.
        """
        if not pj_a_cycle:
            return self

        def make() -> PreparedProblem | None:
            problem = self.make()
            if problem is None:
                return None
            arrays = problem.arrays.copy()
            arrays.term_pj_a_cycle[0] += pj_a_cycle
            arrays.energy_pj_a_cycle += pj_a_cycle
            return replace(problem, arrays=arrays)

        return replace(self, make=make, pj_a_cycle=self.pj_a_cycle + pj_a_cycle)

    def of_passes(self, passes: float, objective: str) -> float:
        """Lower bound of the objective `objective` for any loop order with at least `passes` temporal iterations."""
        return rounds.bound_of_passes(self.layer, self.core, passes, self.floors, objective, self.pj_a_cycle)
