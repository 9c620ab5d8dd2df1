"""Lower bounds of the energy and the latency of a layer on a core, computed before any mapping is made.

The bounds hold for every spatial mapping.
"""

import math
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from tilewright.base.profile import SWITCHES, ModelProfile
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.mapping.zeros import least_read_share, least_sizes, plain_width
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_elements

Links = tuple[tuple[str, str], ...]
"""Links of a layer to a core, as pairs (layer operand, memory operand)."""


class TensorFloors(NamedTuple):
    """Lower bounds of energy and latency that follow from one fact: each tensor passes its topmost memory at least
    once."""

    energy_pj: float = 0.0
    """Lower bound in pJ of the energy of the accesses to topmost memories."""
    cycles: float = 0.0
    """Lower bound of the busy time in cycles of the busiest port among the ports of all topmost memories."""


NO_FLOORS = TensorFloors()
"""Bounds of 0, which are valid for every layer."""


@lru_cache(maxsize=1024)
def tensor_floors(layer: Layer, core: Core, links: Links, profile: ModelProfile) -> TensorFloors:
    """Lower bounds from the accesses to the topmost memory of each operand.

    Every input is read from this memory at least once, and every output is written to this memory at least once. The
    data move in full words of the port (docs/model/guarantees.md#what-can-be-relied-on). These statements are known to
    hold only if all switches of the model profile are on. Otherwise, the bounds are 0.
    """
    if not all(getattr(profile, name) for name in SWITCHES):
        return NO_FLOORS
    energies, cycles = [], defaultdict[tuple[int, int], float](float)
    sizes = least_sizes(layer, core, dict(links))
    for operand, memory_operand in links:
        levels = memory_hierarchy(core).memories_of(memory_operand)
        if operand not in layer.operands or not levels:
            continue
        memory, way = core.memories[levels[-1]], "fl" if operand == OUTPUT else "tl"
        port = memory.port_of.get((memory_operand, way))
        if port is None:
            continue
        bits = operand_elements(layer, operand, profile) * layer.bits_of[FINAL_OUTPUT if operand == OUTPUT else operand]
        words = bits / plain_width(memory.ports[port].bandwidth_max_bits, sizes.get((operand, levels[-1]), 1.0))
        taken = least_read_share(layer, core, dict(links), operand) if len(levels) == 1 else 1.0
        energies.append(words * (memory.write_energy_pj if operand == OUTPUT else memory.read_energy_pj) * taken)
        # Along an array dimension that the memory does not serve, several instances of the memory work in parallel.
        sides = core.operational_array.dimensions
        instances = math.prod(size for name, size in sides if name not in memory.served_dimensions)
        cycles[levels[-1], port] += words / instances
    return TensorFloors(math.fsum(energies), max(cycles.values(), default=0.0))
