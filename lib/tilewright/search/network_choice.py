"""Choice between known mappings of the layers of a network, for the least EDP of the whole network.

The EDP of a network is the product of two sums over its layers, the energy and the latency. The mapping with the least
EDP for each layer therefore need not give the least EDP of the network. Let lambda be the energy of the network divided
by its latency. Suppose that every layer gets a mapping with the same or a smaller energy + lambda * latency. Then the
EDP of the network does not grow. The reason: among all points with the same energy + lambda * latency, the product is
largest where both terms are equal, and the two terms are equal at the present point of the network
(docs/proofs/network-bounds.md#mappings-for-the-edp-of-the-network).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tilewright.base.objectives import EDP, energy_delay_product
from tilewright.base.proof import ROUNDING, gap_to
from tilewright.search.run_bound import CLOSE_SLOPES, LayerBounds, Line, least_weighted_sums, run_bound

Result = TypeVar("Result")

GAPS_OF_A_LAYER = 2
"""Accepted gap of the EDP of the network, as a multiple of the accepted gap of a layer. The bounds of energy and of
latency both have gaps, and both gaps add to the gap of the EDP.
"""
MOST_ROUNDS = 3
"""Largest number of rounds. Each round searches some layers again. The weight of the latency, lambda, is then the ratio
energy / latency of the network with the mappings chosen so far.
"""
MOST_SEARCHES = 6
"""Largest number of searches of layers in all rounds together."""
EFFORT_SHARE = 8
"""Divisor of the effort: a search in a round gets the effort of its layer divided by this number."""
UNSEARCHED_SHARE = 0.5
"""Share of the accepted gap of the network that is left to the layers that are not searched again. The other layers get
the rest.
"""


class NetworkWeight(NamedTuple):
    """Weighted sum that the searches of one round minimise, and the gap at which they may end."""

    pj_a_cycle: float
    """Weight of the latency in pJ per cycle: the searches minimise energy + `pj_a_cycle` * latency."""
    largest_gap: float
    """Gap at which a search may end, as a share of the weighted sum."""


@dataclass(frozen=True)
class Found(Generic[Result]):
    """Mapping that a search has found for a layer."""

    energy_pj: float
    latency_cycles: float
    result: Result
    """Result of the search, such as the record of the layer."""
    line: Line | None = None
    """Lower bound that the search proves; None for the search with the objective of the layer itself."""

    def sum_pj(self, pj_a_cycle: float) -> float:
        """Energy + `pj_a_cycle` * latency of the mapping, in pJ."""
        return self.energy_pj + pj_a_cycle * self.latency_cycles


@dataclass
class NetworkLayer(Generic[Result]):
    """Distinct layer of a network, with its bounds and the mappings that are known for it."""

    bounds: LayerBounds
    """Lower bounds of energy, latency and EDP, and the number of times that the layer runs."""
    found: list[Found[Result]]
    """Mappings, in the order in which they were found. The first mapping is the best mapping for the objective of the
    layer itself."""
    place: int = 0
    """Index of the chosen mapping."""

    @property
    def chosen(self) -> Found[Result]:
        """Chosen mapping."""
        return self.found[self.place]

    def add(self, found: Found[Result]) -> None:
        """Add the mapping that a search found, and the line that the search proved (`Found.line`), if any."""
        self.found.append(found)
        if found.line is not None:
            self.bounds = replace(self.bounds, lines=(*self.bounds.lines, found.line))

    def gain_pj(self, pj_a_cycle: float) -> float:
        """Upper bound, in pJ, of the reduction of energy + `pj_a_cycle` * latency if the layer gets another mapping.
        The reduction is the total of all runs of the layer.
        """
        least = float(least_weighted_sums(self.bounds, np.array([pj_a_cycle]))[0])
        return self.bounds.count * max(0.0, self.chosen.sum_pj(pj_a_cycle) - least)

    def is_searched(self, pj_a_cycle: float) -> bool:
        """True if the layer was searched with nearly this weight."""
        return any(abs(line.pj_a_cycle - pj_a_cycle) < CLOSE_SLOPES * pj_a_cycle for line in self.bounds.lines)


Search = Callable[[Sequence[int], NetworkWeight], Sequence[Found[Result] | None]]
"""Function that searches layers for mappings with the least weighted sum. Its arguments are the indexes of the layers
and the weight. It returns one mapping per layer, or None for a layer without a mapping.
"""


@dataclass
class NetworkChoice(Generic[Result]):
    """Mappings of all layers of a network, chosen for the EDP of the network."""

    layers: Sequence[NetworkLayer[Result]]
    largest_gap: float
    """Gap of the EDP of the network at which no layer is searched again, as a share."""
    searches: int = field(default=0, init=False)
    """Number of searches of layers so far."""

    @property
    def totals(self) -> tuple[float, float]:
        """Pair (energy in pJ, latency in cycles) of the network."""
        pairs = [(layer.bounds.count, layer.chosen) for layer in self.layers]
        energy = sum(count * one.energy_pj for count, one in pairs)
        return energy, sum(count * one.latency_cycles for count, one in pairs)

    @property
    def gap(self) -> float:
        """Proven gap of the EDP of the network, as a share."""
        return gap_to(run_bound([layer.bounds for layer in self.layers], EDP), energy_delay_product(*self.totals))

    def run(self, search: Search[Result]) -> None:
        """Search layers again until the gap is small enough, or until a further search promises too little."""
        for _ in range(MOST_ROUNDS):
            energy, latency = self.totals
            if not energy or not latency or self.gap <= self.largest_gap:
                return
            places, weight = self._wanted(energy, energy / latency)
            if not places:
                return
            self.searches += len(places)
            for place, found in zip(places, search(places, weight), strict=True):
                if found is not None:
                    self.layers[place].add(found)
            self._choose()

    def _wanted(self, energy_pj: float, pj_a_cycle: float) -> tuple[list[int], NetworkWeight]:
        """Pair (indexes of the layers to search again, weight and gap of their searches).

        The gap of the EDP is about the sum of the possible gains divided by the energy. The layers with the largest
        gains are searched, until the gains of all other layers are at most UNSEARCHED_SHARE of the accepted gap. In all
        rounds together, there are at most MOST_SEARCHES searches.
        """
        gains = [layer.gain_pj(pj_a_cycle) for layer in self.layers]
        accepted = self.largest_gap * energy_pj
        rest, wanted = sum(gains), list[int]()
        for place in sorted(range(len(gains)), key=lambda place: (-gains[place], place)):
            if rest <= accepted * UNSEARCHED_SHARE or len(wanted) >= MOST_SEARCHES - self.searches:
                break
            if not self.layers[place].is_searched(pj_a_cycle):
                wanted.append(place)
                rest -= gains[place]
        sums = [self.layers[place].bounds.count * self.layers[place].chosen.sum_pj(pj_a_cycle) for place in wanted]
        share = accepted * (1 - UNSEARCHED_SHARE) / sum(sums) if wanted else 0.0
        return wanted, NetworkWeight(pj_a_cycle, min(share, self.largest_gap))

    def _choose(self) -> None:
        """Choose for each layer the mapping whose weighted sum of energy and latency is the smallest. Repeat the choice
        as long as the EDP of the network falls.
        """
        while True:
            before, places = self.totals, [layer.place for layer in self.layers]
            weight = before[0] / before[1]
            for layer in self.layers:
                sums = [one.sum_pj(weight) for one in layer.found]
                best = min(range(len(sums)), key=lambda place: (sums[place], place))
                if sums[best] < sums[layer.place] * (1 - ROUNDING):
                    layer.place = best
            if energy_delay_product(*self.totals) >= energy_delay_product(*before):
                for layer, place in zip(self.layers, places, strict=True):
                    layer.place = place
                return
