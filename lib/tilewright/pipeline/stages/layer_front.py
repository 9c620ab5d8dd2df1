"""Search for the Pareto front of a layer: repeated exact searches for the least energy + weight x latency, with proofs.

The *miss* of a front is a proven share x, such as 0.01: for every mapping of the layer, the front has a point with at
most 1 + x times the mapping's energy and at most 1 + x times its latency.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tilewright.base.proof import ROUNDING
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.items import SpatialCandidate, TemporalProblem
from tilewright.pipeline.stages.temporal import Best, with_boundaries
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import Boundaries
from tilewright.search.exact.front_sweep import OBJECTIVE as SWEPT
from tilewright.search.exact.front_sweep import FrontSweep
from tilewright.search.exact.rounds import Incumbent, Watch
from tilewright.search.exact.staircase import Staircase
from tilewright.search.front import (
    COMPLETE,
    THINNED,
    BoundedFront,
    FrontPoint,
    PointMapping,
    SupportingLine,
    columns,
    misses,
    on_staircase,
)

if TYPE_CHECKING:
    from tilewright.mapping.constraints import TemporalOrderingEntry
    from tilewright.search.exact.choice import Choice
    from tilewright.search.exact.search import ExactResult

MOST_MISSED = 0.01
"""Largest accepted miss (see the module) of the front of a network, as a fraction."""
MISS = (1 + MOST_MISSED) / (1 + THINNED) - 1
"""Largest accepted miss of the front of a layer, as a fraction. The search for this front ends when its miss is at most
MISS. Later, some points of the network's front are dropped, which increases the miss by at most THINNED. The miss of
the network's front is then at most MOST_MISSED.

The miss is an upper limit of the distance between the front found and the true front
(docs/proofs/network-front.md#sweeps).
"""
MOST_SEARCHES = 24
"""Limit on the number of searches between the two ends of a front."""
MOST_USELESS = 3
"""Limit on unsuccessful searches: after this many of them, there are no further searches between the two ends of the
front. A search is unsuccessful if its best mapping and its lower bound are further apart than MISS (relative gap).
"""
FEW_LABELS, MORE_LABELS = 50_000, 50_000
"""Limits of the effort of a sweep, roughly in labels (partial loop orders). If the first sweep reaches the miss MISS
with at most FEW_LABELS, a second sweep with at most MORE_LABELS tries to complete the front.
"""
LATENCY_SHARE = 40
"""Divisor of the effort of the layer: the search for the least latency gets the effort divided by this number. This
search can be short, because the later sweeps find and prove the least latency just as cheaply. The search for the least
energy is cheap for most layers, and gets the full effort.
"""
SWEEP_FACTOR, LONG_SWEEP_FACTOR = 5, 16
"""Factors of the effort of the layer. The first sweep gets SWEEP_FACTOR times the effort. If the miss still exceeds
MISS after this sweep, a second sweep gets LONG_SWEEP_FACTOR times the effort.
"""
EFFORT_SHARE, GAP = 4, 0.002
"""Limits of one search between the two ends of the front. The search gets the effort of the layer divided by
EFFORT_SHARE. It ends when the relative gap between its best mapping and its lower bound is at most GAP.
"""


@dataclass(frozen=True)
class FrontSource:
    """Spatial mappings of a layer, for one of the searches that find the Pareto front. Each of these searches makes the
    spatial mappings again, because their order, and so their indices, depend on the objective of the search.
    """

    choices: Iterable["Choice"]
    made: Callable[[int], SpatialCandidate]
    """Function from the index of a spatial mapping in this search to the spatial mapping."""
    problem: Callable[[int], TemporalProblem | None]
    """Function from the index of a spatial mapping in this search to its temporal problem."""


class NewSource(Protocol):
    """Function that begins a search over the spatial mappings of a layer."""

    def __call__(self, objective: str, pj_a_cycle: float, known: Staircase | None = None, /) -> FrontSource:
        """Spatial mappings for one search that minimises `objective`. Each cycle of latency counts as `pj_a_cycle` pJ
        of additional energy.

        For a sweep, `known` has the known points of a front. The bounds of the spatial mappings then hold for every
        objective. First come the spatial mappings whose bounds are furthest from the points.
        """


@dataclass(frozen=True)
class Met:
    """Mapping that a search has evaluated. The energy can have a rounding error: the search computes energy + weight x
    latency, and the energy is this sum minus weight x latency.
    """

    energy_pj: float
    latency_cycles: float
    source: FrontSource
    incumbent: Incumbent


@dataclass
class FrontSearch:
    """Search for the Pareto front of one layer. `new_source` begins a new search over the same spatial mappings."""

    new_source: "NewSource"
    """Function that begins a search over the spatial mappings of the layer."""
    mapper: Best
    starts: int
    ordering: tuple["TemporalOrderingEntry", ...]
    control: Control
    met: list[Met] = field(default_factory=list)
    lines: list[SupportingLine] = field(default_factory=list)
    least_latency_cycles: float = 0.0

    def run(self, found: "ExactResult", source: FrontSource) -> BoundedFront | None:
        """Front of the layer; None if the search for the least latency or the search for the least energy finds no
        mapping.

        `found` is the result of an earlier search, the search for the objective of the run. `source` has the spatial
        mappings of that search. The mappings of `found` are the first known points.
        """
        self.take(found, source, 0.0)
        gap = min(self.mapper.largest_gap, MISS)
        latency, energy = self.search("latency", 0.0, LATENCY_SHARE, gap), self.search("energy", 0.0, 1, gap)
        if latency is None or energy is None:
            return None
        self.least_latency_cycles = latency.lower_bound
        self.lines = [SupportingLine(0.0, energy.lower_bound)]
        effort = self.mapper.effort
        missed, spent = self._sweep(MISS, None if effort is None else SWEEP_FACTOR * effort)
        if missed > MISS and effort is not None:
            missed = min(missed, self._sweep(MISS, LONG_SWEEP_FACTOR * effort)[0])
        if missed > MISS:
            self._search_lines()
        elif missed > COMPLETE and spent <= FEW_LABELS:
            missed = min(missed, self._sweep(0.0, MORE_LABELS)[0])
        self._raise_ends(missed)
        lines = tuple(sorted(self.lines, key=lambda line: line.pj_a_cycle))
        swept = missed if math.isfinite(missed) else None
        return BoundedFront(self._points(), lines, self.least_latency_cycles, swept)

    def _sweep(self, tolerance: float, effort: int | None) -> tuple[float, int]:
        """Pair (miss, effort spent) after a sweep. The miss is the proven upper limit of the distance between the front
        found and the true front.

        A sweep is one branch and bound over energy and latency together, which stops at a distance of `tolerance`. The
        mappings that it finds are added to `met`.
        """
        limits = replace(self.mapper, effort=effort).limits
        known = self._known()
        source = self.new_source("", 0.0, known)
        watch = Watch.start(SWEPT, limits, self.control.stop, self.control.advance)
        missed = FrontSweep(source.choices, self.ordering, self.mapper, watch, known, tolerance).run()
        self.met += [
            Met(one.energy_pj, one.latency_cycles, source, one) for one in known.points if one.order is not None
        ]
        self.met = [self.met[place] for place in self._staircase()]
        return missed, watch.spent

    def _known(self) -> Staircase:
        """Known points of the front, with the lower bounds of energy and latency that are proven so far."""
        known = Staircase(self.lines[0].level_pj, self.least_latency_cycles)
        known.add(Incumbent(None, None, one.energy_pj, one.latency_cycles) for one in self.met)
        return known

    def _raise_ends(self, missed: float) -> None:
        """Raise the lower bounds of latency and energy by means of `missed`, the proven miss of the front. The
        smallest latency among the known mappings, divided by 1 + `missed`, is a lower bound of the latency. The
        smallest energy among the known mappings, divided by 1 + `missed`, is a lower bound of the energy.
        """
        share = (1 - 2 * ROUNDING) / (1 + missed)
        first, last = self.met[0], self.met[-1]
        self.least_latency_cycles = max(self.least_latency_cycles, first.latency_cycles * share)
        self.lines[0] = SupportingLine(0.0, max(self.lines[0].level_pj, last.energy_pj * share))

    def _search_lines(self) -> None:
        """Search mappings between the known points of the front, by at most MOST_SEARCHES searches.

        Each search weights the latency by the slope that `_next_weight` gives. It adds a supporting line to `lines`,
        and the mappings that it evaluates to `met`. The function ends early if there is no such slope, or if a search
        finds no mapping. It also ends after MOST_USELESS searches whose gap stayed above MISS, because the lines of
        such searches cannot prove a miss of MISS or less.
        """
        useless = 0
        for _ in range(MOST_SEARCHES):
            weight = self._next_weight()
            if weight is None or useless >= MOST_USELESS:
                break
            result = self.search("energy", weight, EFFORT_SHARE, min(self.mapper.largest_gap, GAP))
            if result is None:
                break
            useless += result.gap > MISS
            self.lines.append(SupportingLine(weight, result.lower_bound * (1 - ROUNDING)))

    def search(self, objective: str, pj_a_cycle: float, effort_share: int, largest_gap: float) -> "ExactResult | None":
        """Result of a search for the least `objective`; None if the search finds no mapping. Each cycle of latency
        counts as `pj_a_cycle` pJ of additional energy.

        The search gets the effort of the layer divided by `effort_share`. It ends when the relative gap between its
        best mapping and its lower bound is at most `largest_gap`. Mappings that the search evaluates are added to
        `met`.
        """
        effort = None if self.mapper.effort is None else self.mapper.effort // effort_share
        mapper = replace(self.mapper, objective=objective, effort=effort, largest_gap=largest_gap)
        source = self.new_source(objective, pj_a_cycle)
        found = mapper.search(iter(source.choices), self.starts, self.ordering, self.control)
        if found is not None:
            self.take(found, source, pj_a_cycle)
        return found

    def take(self, found: "ExactResult", source: FrontSource, pj_a_cycle: float) -> None:
        """Add to `met` all mappings that a search has evaluated, and remove all dominated mappings from it."""
        self.met += [
            Met(one.energy_pj - pj_a_cycle * one.latency_cycles, one.latency_cycles, source, one) for one in found.met
        ]
        self.met = [self.met[place] for place in self._staircase()]

    def _staircase(self) -> list[int]:
        energy = np.array([one.energy_pj for one in self.met])
        latency = np.array([one.latency_cycles for one in self.met])
        return [int(place) for place in on_staircase(energy, latency)]

    def _next_weight(self) -> float | None:
        """Weight of the latency, in pJ per cycle, for the next search; None if no further search is useful.

        The weight is the slope between two neighbouring points of the front. For every mapping between such a pair of
        points, one of the two points exceeds energy and latency of the mapping by at most the miss of the pair, a
        fraction (`misses`). Two kinds of pairs are left out: pairs with a miss of at most MISS, and pairs whose slope
        already has a supporting line. Of the remaining pairs, the pair with the largest miss is chosen.
        """
        points = [FrontPoint(one.energy_pj, one.latency_cycles) for one in self.met]
        gaps = misses(points, self.lines, self.least_latency_cycles)[1:-1]
        energy, latency = columns(points)
        for place in sorted(range(len(gaps)), key=lambda place: -gaps[place]):
            if gaps[place] <= MISS:
                break
            weight = float((energy[place] - energy[place + 1]) / (latency[place + 1] - latency[place]))
            goal = float((energy + weight * latency).min())
            if not any(abs(line.pj_a_cycle - weight) <= GAP * weight for line in self.lines) and goal > 0:
                return weight
        return None

    def _points(self) -> tuple[FrontPoint, ...]:
        """Points of the front, with the costs that the cost model computes for their mappings."""
        found = [self.point(one) for one in self.met]
        return tuple(found[place] for place in on_staircase(*columns(found)).tolist())

    def point(self, one: Met) -> FrontPoint:
        """Point of the front for a mapping that a search has evaluated. The cost model computes its energy and latency
        again.
        """
        incumbent = one.incumbent
        problem = one.source.problem(incumbent.candidate)
        assert problem is not None
        assert incumbent.order is not None
        boundaries = None if incumbent.boundaries is None else [incumbent.boundaries]
        batch = OrderBatch.of_orders(problem, [incumbent.order], boundaries)
        if self.mapper.allocation == "free":
            batch = with_boundaries(batch)
        costs = cost_orders(batch)
        mapping = PointMapping(
            one.source.made(incumbent.candidate).unrolling, batch.loop_order(0), _as_tuples(batch.level_boundaries(0))
        )
        return FrontPoint(float(costs.energy_pj[0]), float(costs.latency_cycles[0]), mapping)


def _as_tuples(boundaries: Boundaries | None) -> tuple[tuple[int, ...], ...] | None:
    return None if boundaries is None else tuple(tuple(bounds) for bounds in boundaries)
