"""Lower bound of the objective of a whole network, from lower bounds of its layers.

Layers run one after another, so energies and latencies add. The EDP of a network is the product of its total energy and
its total latency. The sum of the EDPs of the layers can be far below this product. The bound therefore starts from the
least energy, the least latency and the least EDP of each layer. The points (energy, latency) that do not contradict
these three minima form a convex set. The sum of the sets of all layers is convex, too. Lines around this sum form a
convex polygon. A product of powers is quasi-concave, so its least value over the polygon lies at a corner
(docs/proofs/network-bounds.md#bound-of-a-network).

A search for the least energy + slope x latency of a layer proves a *line*: no mapping of the layer lies below the line.
Each line makes the convex set of the layer smaller.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.base.objectives import EDP, Powers
from tilewright.base.proof import ROUNDING

LINES = 400
"""Number of lines around the sum of the layers' convex sets, each with a different slope. These lines form the polygon
whose corners give the bound (see the module). More lines make the bound tighter. Any number of lines gives a valid
bound."""
CLOSE_SLOPES = 1e-3
"""Relative difference below which two slopes count as equal."""


@dataclass(frozen=True)
class FrontEnd:
    """Energy and latency of the mapping at one end of the Pareto front of a layer. For a network, these values are sums
    over its layers."""

    energy_pj: float
    latency_cycles: float
    lower_bound: float = 0.0
    """Lower bound of the metric that is smallest at this end of the front: energy in pJ or latency in cycles."""

    def plus(self, other: "FrontEnd", count: int) -> "FrontEnd":
        """Sum of two terms: this end, and `count` times the end `other`."""
        return FrontEnd(
            self.energy_pj + other.energy_pj * count,
            self.latency_cycles + other.latency_cycles * count,
            self.lower_bound + other.lower_bound * count,
        )


@dataclass(frozen=True)
class FrontEnds:
    """Both ends of a Pareto front of energy and latency, and the chosen mapping between the ends."""

    energy: FrontEnd
    """Mapping of least energy."""
    latency: FrontEnd
    """Mapping of least latency."""
    chosen: FrontEnd
    """Mapping that the search chose for the objective. This mapping can be compared with the mappings at both ends."""

    def plus(self, other: "FrontEnds", count: int) -> "FrontEnds":
        """Ends of the Pareto front of a network after one more layer is added. The layer runs `count` times, and
        `other` has the ends of its front. The energies, latencies and bounds of the layer are multiplied by `count` and
        added to the values of the network.
        """
        return FrontEnds(
            self.energy.plus(other.energy, count),
            self.latency.plus(other.latency, count),
            self.chosen.plus(other.chosen, count),
        )


NO_ENDS = FrontEnds(FrontEnd(0.0, 0.0), FrontEnd(0.0, 0.0), FrontEnd(0.0, 0.0))
"""Ends of a network without layers."""


@dataclass(frozen=True)
class LayerBounds:
    """Lower bounds of a layer over the mappings that were searched."""

    energy_pj: float
    latency_cycles: float
    value: float
    """Lower bound of the objective of the layer."""
    count: int = 1
    """Number of times that the layer runs."""
    lines: tuple["Line", ...] = ()
    """Proven lower bounds of weighted sums of energy and latency."""


class Line(NamedTuple):
    """Proven lower bound of a weighted sum: every mapping has energy + `pj_a_cycle` * latency >= `level_pj`."""

    pj_a_cycle: float
    """Weight of the latency in pJ per cycle."""
    level_pj: float
    """Lower bound of the sum in pJ."""


def least_weighted_sums(layer: LayerBounds, slopes: np.ndarray) -> np.ndarray:
    """Lower bounds in pJ of energy + slope * latency of one run of a layer, one for each slope in pJ per cycle.

    `layer.value` is the bound of the EDP.
    """
    energy, latency = layer.energy_pj, layer.latency_cycles
    if energy > 0 and latency > 0:
        value = max(layer.value, EDP.value(energy, latency))
        # Point of the set that is least in energy + slope x latency: on its curve of equal EDP, or at an end of it.
        at = np.clip(np.sqrt(slopes * value), energy, value / latency)
        level: np.ndarray = at + slopes * value / at
    else:
        level = 2 * np.sqrt(slopes * layer.value)
    if not layer.lines:
        return level
    # The least sum is a concave function of the slope, so it is at least the linear interpolation between known bounds.
    known = _majorant([Line(0.0, energy), *layer.lines])
    weights, levels = np.array(known).T
    beyond = levels[-1] + np.maximum(slopes - weights[-1], 0.0) * latency
    between = np.interp(slopes, weights, levels)
    raised: np.ndarray = np.maximum(level, np.where(slopes > weights[-1], beyond, between))
    return raised


def _majorant(points: Sequence[Line]) -> list[Line]:
    """Points of the least concave function that is nowhere below the given points, by ascending weight."""
    hull: list[Line] = []
    for point in sorted(points, key=lambda one: (one.pj_a_cycle, -one.level_pj)):
        if hull and point.pj_a_cycle == hull[-1].pj_a_cycle:
            continue
        while len(hull) > 1 and _is_below(hull[-1], hull[-2], point):
            hull.pop()
        hull.append(point)
    return hull


def _is_below(middle: Line, left: Line, right: Line) -> bool:
    """True if `middle` is not above the straight line between `left` and `right`."""
    rise = (right.level_pj - left.level_pj) * (middle.pj_a_cycle - left.pj_a_cycle)
    return (middle.level_pj - left.level_pj) * (right.pj_a_cycle - left.pj_a_cycle) <= rise


def run_bound(layers: Sequence[LayerBounds], powers: Powers) -> float:
    """Lower bound of the objective of a network whose energy and latency are sums over `layers`; 0 if there is no
    layer.

    For EDP, the bound uses the bounds of energy and of latency of the layers if both are above 0 for every layer.
    Otherwise, the bound follows only from the bounds of the objective (`LayerBounds.value`).
    """
    if powers == EDP and layers and all(layer.energy_pj > 0 and layer.latency_cycles > 0 for layer in layers):
        return _bound_of_edp(layers) * (1 - ROUNDING)
    root = 1.0 / sum(powers)
    # Hölder's inequality, with s = sum(powers): the product of powers of the sums is at least T**s, where T is the sum
    # of the layers' values ** (1 / s).
    total = math.fsum(layer.count * layer.value**root for layer in layers)
    return float(total ** sum(powers)) * (1 - ROUNDING)


def _bound_of_edp(layers: Sequence[LayerBounds]) -> float:
    """Lower bound in pJ cycles of the EDP of a network.

    The least energy, the least latency, the least EDP and the lines of a layer leave a convex set of possible points
    (energy, latency). A polygon bounds the sum of the sets of all layers. The result is the least product of energy and
    latency over this polygon.
    """
    counts = np.array([layer.count for layer in layers], float)
    energy = np.array([layer.energy_pj for layer in layers], float)
    latency = np.array([layer.latency_cycles for layer in layers], float)
    value = np.maximum(np.array([layer.value for layer in layers], float), EDP.value(energy, latency))
    least_energy, least_latency = float(counts @ energy), float(counts @ latency)
    highest = value / latency  # energy where the curve of equal EDP meets the least latency
    slopes = _with_slopes_of_lines(_slopes(energy, highest, value), layers)
    level = np.column_stack([least_weighted_sums(layer, slopes) for layer in layers]) @ counts
    if any(layer.lines for layer in layers):
        # Lines with the slopes that remain are all sides of one polygon, so neighbouring lines meet at its corners.
        sides = _majorant([Line(*side) for side in zip(slopes.tolist(), level.tolist(), strict=True)])
        slopes, level = np.array(sides).T
    return _least_product(slopes, level, least_energy, least_latency)


def _with_slopes_of_lines(slopes: np.ndarray, layers: Sequence[LayerBounds]) -> np.ndarray:
    """Ascending slopes in pJ per cycle: the slopes of the layers' lines, and the slopes in `slopes`. A slope that is
    closer than CLOSE_SLOPES to the slope of a line is left out, because rounding errors would move the corner between
    the two lines.
    """
    kept: list[float] = []
    own = sorted({line.pj_a_cycle for layer in layers for line in layer.lines})
    for slope in (*own, *slopes.tolist()):
        if not any(abs(slope - one) < CLOSE_SLOPES * one for one in kept[: len(own)]):
            kept.append(slope)
    return np.array(sorted(kept))


def _slopes(energy: np.ndarray, highest: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Slopes, in pJ per cycle, of lines around the convex set of possible points (energy, latency) of a network. On a
    line, energy + slope x latency is constant. The slopes are a geometric series. The series begins at half the
    flattest slope that the curve of any layer has, and ends at twice the steepest slope.

    The arguments have one number per layer. The curve of a layer has the points whose EDP is `value` and whose energy
    is between `energy` and `highest`.
    """
    first, last = float((energy**2 / value).min()), float((highest**2 / value).max())
    return np.geomspace(first / 2, last * 2, LINES)


def _least_product(slopes: np.ndarray, level: np.ndarray, least_energy: float, least_latency: float) -> float:
    """Least EDP in pJ cycles over the corners of a polygon.

    The sides of the polygon are energy >= `least_energy`, latency >= `least_latency`, and energy + slope x latency >=
    level for each slope in `slopes` with its level in `level`.
    """
    latency = (level[1:] - level[:-1]) / (slopes[1:] - slopes[:-1])
    energy = level[1:] - slopes[1:] * latency
    corners = [
        (least_energy, (level[0] - least_energy) / slopes[0]),
        *zip(energy.tolist(), latency.tolist(), strict=True),
        (level[-1] - slopes[-1] * least_latency, least_latency),
    ]
    return float(min(max(one, least_energy) * max(other, least_latency) for one, other in corners))
