"""From one node to another, where there are no figures: the law of Stillmaker and Baas (Integration 58, 2017).

It fits inverters in simulations with predictive technology models from 180 to 7 nm. Between the nodes that it has,
factors are interpolated by logarithms. It is of logic: figures of SRAM that were measured improve much less below 22 nm
(docs/costs.md), which is why whoever asks is told that it was used.
"""

import math
from bisect import bisect_left
from functools import cache
from typing import NamedTuple

from tilewright.silicon.tables import NODES, rows

LAW = "Stillmaker and Baas 2017"


class NodeFigures(NamedTuple):
    """What a circuit has at a node, over that at others: only ratios mean something."""

    energy: float
    delay: float
    area: float


@cache
def _nodes() -> dict[float, NodeFigures]:
    """Node in nm -> its figures at its nominal supply, in rising order of nodes."""
    found = {}
    for row in rows(NODES):
        volts = float(row["supply_v"])
        delay = sum(float(row[f"delay_v{power}"]) * volts**power for power in range(4))
        energy = sum(float(row[f"energy_v{power}"]) * volts**power for power in range(3))
        found[float(row["node_nm"])] = NodeFigures(energy, delay, float(row["area"]))
    return dict(sorted(found.items()))


def known_nodes() -> tuple[float, float]:
    """The smallest and the largest node of the law, nm."""
    return min(_nodes()), max(_nodes())


def node_factors(from_nm: float, to_nm: float) -> NodeFigures:
    """What energy, delay and area are multiplied by from a node to another one, both within `known_nodes`."""
    return NodeFigures(*(new / old for old, new in zip(_figures(from_nm), _figures(to_nm), strict=True)))


def _figures(node_nm: float) -> NodeFigures:
    nodes = _nodes()
    if node_nm in nodes:
        return nodes[node_nm]
    known = list(nodes)
    place = bisect_left(known, node_nm)
    low, high = known[place - 1], known[place]
    share = math.log(node_nm / low) / math.log(high / low)
    return NodeFigures(*(a * (b / a) ** share for a, b in zip(nodes[low], nodes[high], strict=True)))
