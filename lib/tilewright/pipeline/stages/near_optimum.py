"""Choice of a mapping near the optimum.

If the objective is energy, a mapping with slightly more energy than the optimum can have much less latency. If the
objective is latency, a mapping with slightly more latency can have much less energy.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.base.objectives import OBJECTIVES
from tilewright.pipeline.stages.items import SpatialCandidate
from tilewright.pipeline.stages.layer_front import FrontSearch, FrontSource
from tilewright.search.front import FrontPoint

if TYPE_CHECKING:
    from tilewright.search.exact.search import ExactResult

GAP_SHARE = 0.02
"""Factor in the stop criterion of the search for a mapping near the optimum: the search may end if its relative gap is
at most GAP_SHARE x (accepted loss of the objective, as a fraction).

The search minimises a weighted sum of energy and latency. In this sum, the other measure has a small weight (latency if
the objective is energy, energy if the objective is latency). At the stop criterion, the gap of the sum is as large as
a gap of about GAP_SHARE in the other measure alone.
"""
EFFORT_SHARE = 8
"""Divisor of the layer's effort: the search for a mapping near the optimum gets the effort divided by this number."""


@dataclass(frozen=True)
class NearOptimum:
    """Mapping of a layer that replaces the best mapping. Its objective is near the optimum, and its other measure is
    smaller: the latency if the objective is energy, the energy if the objective is latency.
    """

    result: "ExactResult"
    """Result of the search for the objective, with the mapping near the optimum in place of the best mapping. The lower
    bound is unchanged.
    """
    candidate: SpatialCandidate
    """Spatial mapping of the mapping near the optimum."""


def near_optimum(search: FrontSearch, found: "ExactResult", source: FrontSource, share: float) -> NearOptimum | None:
    """Mapping near the optimum that has the smallest value of the other measure: latency if the objective is energy,
    energy if the objective is latency.

    The objective of the mapping is at most 1 + `share` times the objective of `found`, the result of the search for the
    objective. The mapping comes from one of up to three searches: the search for the objective, the search for the
    Pareto front, and a search for the least weighted sum of energy and latency. None if no such mapping has less of the
    other measure than `found`.
    """
    objective = search.mapper.objective
    by_energy = bool(OBJECTIVES[objective].energy)
    if not search.met:
        search.take(found, source, 0.0)
    # With these ratios of (weight x latency) to energy, the least weighted sum has at most `share` more of the measure
    # of the objective than `found`.
    ratio = share if by_energy else 1 / share
    search.search("energy", ratio * found.energy_pj / found.latency_cycles, EFFORT_SHARE, share * GAP_SHARE)
    limit, other = _measures(found, by_energy)
    best, chosen = (other, limit), None
    for met in search.met:
        point = search.point(met)
        own, its_other = _measures(point, by_energy)
        # Less of the other measure at an equal or larger objective: otherwise the search would have kept this mapping.
        if limit <= own <= limit * (1 + share) and its_other < other and (its_other, own) < best:
            best, chosen = (its_other, own), (met, point)
    if chosen is None:
        return None
    met, point = chosen
    assert met.incumbent.order is not None, "a search keeps only mappings with a loop order"
    value = OBJECTIVES[objective].value(point.energy_pj, point.latency_cycles)
    result = replace(
        found,
        order=met.incumbent.order,
        boundaries=met.incumbent.boundaries,
        value=value,
        energy_pj=point.energy_pj,
        latency_cycles=point.latency_cycles,
    )
    return NearOptimum(result, met.source.made(met.incumbent.candidate))


def _measures(one: "ExactResult | FrontPoint", by_energy: bool) -> tuple[float, float]:
    """Pair (measure that is the objective, other measure) of a mapping. The measures are the energy in pJ and the
    latency in cycles; with `by_energy`, the energy comes first.
    """
    return (one.energy_pj, one.latency_cycles) if by_energy else (one.latency_cycles, one.energy_pj)
