"""Lower bounds of a layer on a core that hold for every spatial mapping, computed before any mapping is made."""

import math
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from tilewright.base.profile import SWITCHES, ModelProfile
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_elements

Links = tuple[tuple[str, str], ...]
"""Pairs (layer operand, memory operand)."""


class TensorFloors(NamedTuple):
    """Lower bounds of energy and latency. They follow from the fact that each tensor passes its topmost memory at
    least once."""

    energy_pj: float = 0.0
    """Lower bound in pJ of the energy of the accesses to topmost memories."""
    cycles: float = 0.0
    """Lower bound of the cycles in which the busiest port of a topmost memory is busy."""


NO_FLOORS = TensorFloors()
"""Bounds of 0, which are valid for every layer."""


@lru_cache(maxsize=1024)
def tensor_floors(layer: Layer, core: Core, links: Links, profile: ModelProfile) -> TensorFloors:
    """Lower bounds from the accesses to the topmost memory of each operand.

    Every input is read from this memory at least once, and every output is written to this memory at least once. The
    data move in full words of the port (docs/model.md#what-can-be-relied-on). The bounds rest on some switches of the
    model profile. If one of these switches is off, the bounds are 0.
    """
    if not all(getattr(profile, name) for name in SWITCHES):
        return NO_FLOORS
    energies, cycles = [], defaultdict[tuple[int, int], float](float)
    for operand, memory_operand in links:
        levels = memory_hierarchy(core).memories_of(memory_operand)
        if operand not in layer.operands or not levels:
            continue
        memory, way = core.memories[levels[-1]], "fl" if operand == OUTPUT else "tl"
        port = memory.port_of.get((memory_operand, way))
        if port is None:
            continue
        bits = operand_elements(layer, operand, profile) * layer.bits_of[FINAL_OUTPUT if operand == OUTPUT else operand]
        words = bits / memory.ports[port].bandwidth_max_bits
        energies.append(words * (memory.write_energy_pj if operand == OUTPUT else memory.read_energy_pj))
        # Along an array dimension that the memory does not serve, several instances of the memory work in parallel.
        sides = core.operational_array.dimensions
        instances = math.prod(size for name, size in sides if name not in memory.served_dimensions)
        cycles[levels[-1], port] += words / instances
    return TensorFloors(math.fsum(energies), max(cycles.values(), default=0.0))
