"""Choice among mappings near the optimum of energy or latency: the one with the least of the other measure."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.base.objectives import OBJECTIVES
from tilewright.pipeline.stages.items import SpatialCandidate
from tilewright.pipeline.stages.layer_front import FrontSearch, FrontSource
from tilewright.search.front import FrontPoint

if TYPE_CHECKING:
    from tilewright.search.exact.search import ExactResult

GAP_SHARE = 0.02
"""Largest gap of the search for a mapping near the optimum, as a share of the accepted loss. The other measure of its
result is then at most about this share above the least one."""
EFFORT_SHARE = 8
"""Divisor of the effort of the layer for this search."""


@dataclass(frozen=True)
class NearOptimum:
    """Mapping near the optimum of a layer, which takes the place of the best mapping."""

    result: "ExactResult"
    """Result of the search with this mapping in place of the best one. The lower bound is the same."""
    candidate: SpatialCandidate
    """Spatial mapping of the mapping."""


def near_optimum(search: FrontSearch, found: "ExactResult", source: FrontSource, share: float) -> NearOptimum | None:
    """Mapping with the least of the other measure among those that the searches of a layer met.

    Its energy (or latency, by the objective) is at most `share` above that of `found`, the result of the search for the
    objective. The searches are this one, the search for the front if it was done, and a search for the least weighted
    sum of both measures. None if no such mapping has less of the other measure than `found`.
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
    assert met.incumbent.order is not None, "a search keeps only mappings with an order"
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
    """(measure of the objective, other measure) of a mapping."""
    return (one.energy_pj, one.latency_cycles) if by_energy else (one.latency_cycles, one.energy_pj)
