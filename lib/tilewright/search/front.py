"""Pareto fronts of energy and latency, for a layer and for a network whose layers run one after another.

A front has points and supporting lines. Each point is a mapping that was found. Each line is a proof: for every
mapping, energy + weight x latency is at least the level of the line (docs/proofs/network-front.md). The lines
bound the distance of the points from the complete front. The *miss* is this distance as a fraction: for every mapping,
some point exceeds its energy and its latency each by at most this fraction.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tilewright.base.artifacts.codec import LEFT_OUT, decode
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import energy_delay_product
from tilewright.base.proof import CLOSE, ROUNDING
from tilewright.mapping.constraints import Unrolling
from tilewright.search.run_bound import FrontEnd, FrontEnds

Values = npt.NDArray[np.float64]
MOST_POINTS = 200
"""Limit of the number of points in a network's front; a longer front is thinned out."""
THINNED = 0.001
"""Largest fraction of energy or latency that may be lost when points of a front are dropped: for each dropped point,
some kept point costs at most this fraction more. The loss can be larger if more than MOST_POINTS points would remain.
"""
COMPLETE = 2e-9
"""Largest distance (miss) of a front from the complete front, as a fraction, at which the front counts as complete.
Rounding errors alone can cause such a distance.
"""
_HALVINGS = 5
"""Number of bisection steps in the search for the smallest loss at which few enough points remain."""
_MOST_SUMS = 16_000
"""Limit of the number of points that are kept each time the front of a further layer is added."""
_MOST_WEIGHTS = 128
"""Limit of the number of supporting lines in a network's front."""


@dataclass(frozen=True)
class PointMapping:
    """Mapping of a layer at one point of its front."""

    spatial_mapping: Unrolling
    loop_order: tuple[tuple[str, int], ...]
    """Loops, innermost first."""
    level_boundaries: tuple[tuple[int, ...], ...] | None = field(default=None, metadata=LEFT_OUT)
    """Level boundaries, one tuple per operand with one number per memory level: the number of loops in this level and
    in all levels below it. None if loops are allocated greedily."""


@dataclass(frozen=True)
class FrontPoint:
    """Point of a front: the energy and latency of a mapping that was found."""

    energy_pj: float
    latency_cycles: float
    mapping: PointMapping | None = field(default=None, metadata=LEFT_OUT)
    """Mapping of the layer; None for a point of a network."""
    of_layers: tuple[int, ...] = field(default=(), metadata=LEFT_OUT)
    """Chosen point of each layer, as an index into the front of that layer, in the order of `layer_index`; () for a
    point of the front of a layer."""


@dataclass(frozen=True)
class SupportingLine:
    """Supporting line that is proven: every covered mapping has energy + `pj_a_cycle` x latency of at least
    `level_pj`."""

    pj_a_cycle: float
    level_pj: float


@dataclass(frozen=True)
class BoundedFront:
    """Points that no other known point dominates, from the least latency to the least energy, with proven bounds."""

    points: tuple[FrontPoint, ...]
    lines: tuple[SupportingLine, ...]
    """Proven lines, by ascending weight. The first line has weight 0, so its level is the lower bound of the energy."""
    least_latency_cycles: float
    """Lower bound of the latency in cycles."""
    swept_miss: float | None = field(default=None, metadata=LEFT_OUT)
    """Proven upper limit of the distance (miss) of the points from the complete front, as a fraction; None without a
    proof. For a layer, sweeps over partial loop orders prove the limit. For a network, the limit follows from the
    misses of its layers and the loss by dropping points.
    """

    @property
    def largest_miss(self) -> float:
        """Proven upper bound of the distance (miss) of the points from the complete front, as a fraction x. For every
        mapping that the proofs cover, some point has at most 1 + x times the energy and at most 1 + x times the latency
        of the mapping.
        """
        by_lines = max(misses(self.points, self.lines, self.least_latency_cycles))
        return by_lines if self.swept_miss is None else min(by_lines, self.swept_miss)

    @property
    def is_complete(self) -> bool:
        """True if the points are the complete front. Then, for each mapping that the proofs cover, some point has at
        most its energy and at most its latency, apart from rounding errors.
        """
        return self.largest_miss <= COMPLETE

    @property
    def stated_miss(self) -> float | None:
        """`largest_miss` as a JSON value; None if the miss is infinite because a lower bound is 0."""
        return self.largest_miss if math.isfinite(self.largest_miss) else None

    @property
    def knee(self) -> int:
        """Index of the knee, which is the point farthest below the straight line between both ends of the front. If the
        front has fewer than three points, the knee is the point of least EDP.
        """
        return _knee(*columns(self.points))

    @property
    def ends(self) -> FrontEnds:
        """Both ends of the front, with their lower bounds. The field `FrontEnds.chosen` has the knee of the front, not
        a mapping that a search chose for an objective.
        """
        last, first, knee = self.points[-1], self.points[0], self.points[self.knee]
        return FrontEnds(
            FrontEnd(last.energy_pj, last.latency_cycles, self.lines[0].level_pj),
            FrontEnd(first.energy_pj, first.latency_cycles, self.least_latency_cycles),
            FrontEnd(knee.energy_pj, knee.latency_cycles),
        )

    def point_at(self, energy_pj: float, latency_cycles: float) -> int | None:
        """Index of the point with this energy and latency, up to rounding; None if no point has them."""
        for place, one in enumerate(self.points):
            if math.isclose(one.energy_pj, energy_pj, rel_tol=CLOSE) and math.isclose(
                one.latency_cycles, latency_cycles, rel_tol=CLOSE
            ):
                return place
        return None

    def support(self, weights: Values) -> Values:
        """Largest level in pJ that the bounds of this front prove for each weight in `weights` (pJ per cycle): array
        [weight]. The level is a lower bound of energy + weight x latency over all mappings.

        Two lines together prove a line for each weight between their weights. The lower bound of the latency counts as
        a line with an infinite weight.
        """
        own = np.array([line.pj_a_cycle for line in self.lines])
        level = np.array([line.level_pj for line in self.lines])
        found = np.zeros(len(weights))
        for place, weight in enumerate(weights.tolist()):
            low, high = own <= weight, own >= weight
            best = (level[low] + (weight - own[low]) * self.least_latency_cycles).max()
            if high.any():
                share = (weight - own[low][:, None]) / np.maximum(own[high] - own[low][:, None], np.finfo(float).tiny)
                best = max(best, (level[low][:, None] * (1 - share) + level[high] * share).max())
            found[place] = best
        return found


def front_of(stated: JsonObject) -> BoundedFront:
    """Front of a layer or of a network, read from the JSON object `stated`. The record of a layer and the summary of a
    network have such objects. Values that can be computed from the front are not read from the object.
    """
    names = ("points", "lines", "least_latency_cycles", "swept_miss")
    return decode(BoundedFront, {name: stated[name] for name in names if name in stated})


def columns(points: Sequence[FrontPoint]) -> tuple[Values, Values]:
    """Energies in pJ and latencies in cycles of the points, as two arrays."""
    return np.array([one.energy_pj for one in points]), np.array([one.latency_cycles for one in points])


def misses(points: Sequence[FrontPoint], lines: Sequence[SupportingLine], least_latency_cycles: float) -> list[float]:
    """Largest distance (miss) of a mapping from the points, as a fraction, in each interval of the front: before the
    first point, between neighbours, after the last point.

    If neither of two neighbours matches a mapping, the mapping has less energy than the first and less latency than the
    second. The proven lines limit how much energy and latency can fall below these values at the same time. A miss is
    infinite if no bound is proven.
    """
    energy, latency = columns(points)
    weight = np.array([line.pj_a_cycle for line in lines])[:, None]
    level = np.array([line.level_pj for line in lines])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_lines = ((energy[:-1] + weight * latency[1:]) / level).min(axis=0)
        of_ends = [
            latency[0] / np.float64(least_latency_cycles),
            np.float64(energy[-1]) / np.float64(lines[0].level_pj),
        ]
        of_corners = np.minimum.reduce(
            [of_lines, energy[:-1] / lines[0].level_pj, latency[1:] / np.float64(least_latency_cycles)]
        )
    shares = (of_ends[0], *of_corners.tolist(), of_ends[1])
    return [0.0 if math.isnan(one) else max(0.0, float(one) - 1) for one in shares]  # 0 / 0: nothing to miss


def on_staircase(energy: Values, latency: Values) -> npt.NDArray[np.int64]:
    """Indexes of the points that no other point dominates, by ascending latency; of equal points, the first one."""
    order: npt.NDArray[np.int64] = np.lexsort((energy, latency))
    least = np.minimum.accumulate(energy[order])
    is_less = np.ones(len(order), dtype=np.bool_)
    is_less[1:] = energy[order][1:] < least[:-1]
    found: npt.NDArray[np.int64] = order[is_less]
    return found


def network_front(layers: Sequence[tuple[BoundedFront, int]]) -> BoundedFront:
    """Pareto front of a network. The energies and latencies of its points are sums over the layers. `layers` has pairs
    (front of a layer, number of repeats of the layer); all repeats of a layer share one mapping.

    Points are dropped until only few points remain (THINNED, MOST_POINTS). `BoundedFront.largest_miss` includes the
    loss by dropping them.
    """
    energy, latency = np.zeros(1), np.zeros(1)
    steps: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    share, thinned = THINNED / (2 * max(1, len(layers))), 1.0
    for front, count in layers:
        own_energy, own_latency = columns(front.points)
        sums = (energy[:, None] + count * own_energy).ravel(), (latency[:, None] + count * own_latency).ravel()
        kept = on_staircase(*sums)
        chosen, used = _thinned(sums[0][kept], sums[1][kept], share, _MOST_SUMS)
        kept, thinned = kept[chosen], thinned * (1 + used)
        steps.append(np.divmod(kept, len(own_energy)))  # type: ignore[arg-type]
        energy, latency = sums[0][kept], sums[1][kept]
    chosen, used = _thinned(energy, latency, THINNED / 2, MOST_POINTS)
    points = [
        FrontPoint(float(energy[place]), float(latency[place]), None, _choice(steps, int(place))) for place in chosen
    ]
    swept = (1 + _network_miss(layers)) * thinned * (1 + used) - 1
    weights = _weights([front for front, _ in layers])
    levels = sum((count * front.support(weights) for front, count in layers), np.zeros(len(weights)))
    least = math.fsum(count * front.least_latency_cycles for front, count in layers)
    pairs = zip(weights.tolist(), (levels * (1 - ROUNDING)).tolist(), strict=True)
    lines = tuple(SupportingLine(*pair) for pair in pairs)
    return BoundedFront(tuple(points), lines, least * (1 - ROUNDING), swept if math.isfinite(swept) else None)


def _choice(steps: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]], place: int) -> tuple[int, ...]:
    """Indexes of points that add up to one point of the network: for each layer, the position of one point in the front
    of the layer. `place` is the position of the point of the network in the last list of sums.

    The fronts of the layers are added one after another. Each addition makes a list of sums. `steps` has a pair of
    arrays for each layer, with one entry for each sum. The first array has the position of the sum before this layer
    was added. The second array has the index of the point that this layer added.
    """
    found = []
    for before, own in reversed(steps):
        found.append(int(own[place]))
        place = int(before[place])
    return tuple(reversed(found))


def _weights(fronts: Sequence[BoundedFront]) -> Values:
    """Weights in pJ per cycle of the supporting lines of a network, ascending: all different weights of the lines of
    its layers. One of these weights is 0. If there are more than _MOST_WEIGHTS weights, the result is an evenly spaced
    selection of them.
    """
    found = sorted({line.pj_a_cycle for front in fronts for line in front.lines})
    places = np.unique(np.linspace(0, len(found) - 1, min(len(found), _MOST_WEIGHTS)).round().astype(int))
    weights: Values = np.array(found)[places]
    return weights


def _thinned(energy: Values, latency: Values, share: float, most: int) -> tuple[list[int], float]:
    """Pair (indexes of the kept points, largest miss). The miss of a dropped point is its distance from the kept points
    (`unmatched`). At most `most` points are kept. Both ends of the front, the point of least EDP and the knee are
    always kept.

    For each dropped point, some kept point is better in energy or in latency, and worse in the other metric by at most
    the fraction `share`. If more than `most` points would remain, a larger fraction is used, which bisection finds.
    This fraction is at most 1 + 2^-_HALVINGS times the smallest sufficient fraction.
    """
    always = {0, int(np.argmin(energy_delay_product(energy, latency))), _knee(energy, latency), len(energy) - 1}
    most = max(most, len(always))
    chosen = _covering(energy, latency, share, always)
    if len(chosen) > most:
        while len(chosen) > most:
            share *= 2
            chosen = _covering(energy, latency, share, always)
        step = share / 4
        for _ in range(_HALVINGS):
            fewer = _covering(energy, latency, share - step, always)
            if len(fewer) <= most:
                share, chosen = share - step, fewer
            step /= 2
    return chosen, float(unmatched(energy, latency, energy[chosen], latency[chosen]).max(initial=0.0))


def _covering(energy: Values, latency: Values, share: float, always: set[int]) -> list[int]:
    """Indexes of few points that match all points of a staircase within the fraction `share`. The points in `always`
    are always included; they must contain both ends.

    The function takes the first point A that is not matched yet. It chooses the last point B whose latency exceeds the
    latency of A by at most the fraction `share`. B matches A and all points between A and B, because all these points
    have more energy than B. B also matches a later point if the energy of B exceeds the energy of the later point by at
    most the fraction `share`.
    """
    last_before = np.searchsorted(latency, latency * (1 + share), side="right") - 1
    last_after = np.searchsorted(-energy, -energy / (1 + share), side="right") - 1
    forward, backward = last_after.tolist(), last_before.tolist()
    kept, place = set(always), forward[0] + 1
    while place < len(forward) and backward[place] < len(forward) - 1:
        chosen = backward[place]
        kept.add(chosen)
        place = forward[chosen] + 1
    return sorted(kept)


def _knee(energy: Values, latency: Values) -> int:
    """Index of the point of a staircase that is farthest below the straight line between both ends. If the staircase
    has fewer than three points, the result is the point of least EDP.
    """
    if len(energy) < 3:
        return int(np.argmin(energy_delay_product(energy, latency)))
    sums = (energy - energy[-1]) / (energy[0] - energy[-1]) + (latency - latency[0]) / (latency[-1] - latency[0])
    return int(np.argmin(sums))


def _network_miss(layers: Sequence[tuple[BoundedFront, int]]) -> float:
    """Upper limit, as a fraction, of the distance (miss) between any mapping of the network and the network's front. A
    point of this front is a sum of points of the layers. Layers with a small share of the network's energy and latency
    add little to the limit.
    """
    count = np.array([count for _, count in layers], dtype=np.float64)
    missed = np.array([front.largest_miss for front, _ in layers], dtype=np.float64)
    least_pj = np.array([front.lines[0].level_pj for front, _ in layers], dtype=np.float64)
    most_pj = np.array([front.points[0].energy_pj for front, _ in layers], dtype=np.float64)
    least_cycles = np.array([front.least_latency_cycles for front, _ in layers], dtype=np.float64)
    most_cycles = np.array([front.points[-1].latency_cycles for front, _ in layers], dtype=np.float64)
    of_energy = _largest_excess(count * least_pj, count * most_pj, missed)
    return max(of_energy, _largest_excess(count * least_cycles, count * most_cycles, missed))


def _largest_excess(least: Values, most: Values, missed: Values) -> float:
    """Largest fraction by which the total cost of points can exceed the total cost of the mappings that they match.

    A mapping of layer i can have any cost x[i] >= `least`[i]. The point that matches this mapping costs at most (1 +
    `missed`[i]) x[i], and at most `most`[i], the largest cost of any point of this layer. The fraction is the sum of
    the excesses divided by the sum of all x. The fraction is largest if each x has one of two values: `least`, or the
    cost above which `most` limits the point (Dinkelbach, On nonlinear fractional programming, 1967).
    """
    limit = np.maximum(least, most / (1 + missed))
    found = 0.0
    for _ in range(len(least) + 1):
        cost = np.where(missed > found, limit, least)
        with np.errstate(invalid="ignore"):  # an infinite miss: 0 x infinity
            matching = np.where(np.isinf(missed), np.inf, (1 + missed) * cost)
        excess = np.maximum(0.0, np.minimum(matching, most) - cost)
        total = math.fsum(cost)
        share = math.fsum(excess) / total if total > 0 else (math.inf if excess.any() else 0.0)
        if share <= found:
            break
        found = share
    return found


def unmatched(energy: Values, latency: Values, point_energy: Values, point_latency: Values) -> Values:
    """Distance (miss) of each pair (energy in pJ, latency in cycles) from the points: array [pair].

    The miss of a pair is the smallest number x such that some point has at most (1 + x) times the energy and at most (1
    + x) times the latency of the pair. The miss is negative if some point is better than the pair in both energy and
    latency. The points must form a staircase, sorted by ascending latency.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Along the staircase, the ratio of energies falls and the ratio of latencies grows. The least value of the
        # larger ratio is where they cross.
        place = np.searchsorted(-point_energy / point_latency, -energy / latency)
        after = np.append(point_latency, np.inf)[place] / latency
        before = np.append(np.inf, point_energy)[place] / energy
    share: Values = np.minimum(after, np.where(np.isnan(before), 1.0, before)) - 1  # 0 / 0: nothing to miss
    return share
