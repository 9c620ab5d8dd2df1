"""Multiply-accumulate unit of the library of costs, scaled to other process nodes."""

from tilewright.hardware.silicon.library import entries
from tilewright.hardware.silicon.memory_cost import node_factors

MULTIPLIER = "mac-int8-45nm"
"""Name of the entry of the cost library that has the energy and area of a multiply-accumulate unit of 8 bits."""


def multiplier_energy_pj(node_nm: float) -> float:
    """Energy in pJ of one multiply-accumulate of 8 bits. The node must be within `known_nodes`."""
    unit = entries()[MULTIPLIER]
    assert unit.node_nm is not None
    assert unit.energy_pj is not None
    return unit.energy_pj * node_factors(unit.node_nm, node_nm).energy
