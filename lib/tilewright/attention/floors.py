"""Lower bounds of what a layer of a tile costs, whatever its mapping (docs/attention.md, "The bounds")."""

import math
from functools import lru_cache

from tilewright.attention.costs import AttentionCosts
from tilewright.attention.program import LayerProblem
from tilewright.attention.shape import tile_layer
from tilewright.depth_first.tile_loops import ROUNDING
from tilewright.hardware.core import DIRECTIONS, FH, FL, TH, TL, Core
from tilewright.hardware.hierarchy import instance_count, memory_hierarchy
from tilewright.mapping.constraints import MappingConstraints
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer


def floor(costs: AttentionCosts, problem: LayerProblem) -> tuple[float, float]:
    """(energy in pJ, latency in cycles) that no mapping of a layer of a tile is below.

    Each operation is paid for; each element passes each boundary between the memories from the array to where its
    tensor lies, at least once; and the layer takes the passes of the array, or as long as some port is busy.
    """
    template = costs.attention.templates()[problem.layer]
    layer = tile_layer(template, problem.layer, costs.attention.shape, problem.tile)
    given, core = costs.constraints(problem.layer), costs.core
    energy = layer.mac_count * core.operational_array.unit_energy_pj
    busy: dict[tuple[int, int], float] = {}
    links = dict(given.memory_operand_links)
    for operand, outermost in problem.reach:
        bits = _elements(layer, operand) * _least_bits(layer, operand)
        for memory, direction in _crossings(core, links[operand], outermost, operand == OUTPUT):
            held = core.memories[memory]
            place = held.port_of.get((links[operand], DIRECTIONS[direction]))
            if place is None:  # nothing says what passing here costs
                continue
            words = bits / held.ports[place].bandwidth_max_bits
            energy += words * (held.read_energy_pj if direction in (TL, TH) else held.write_energy_pj)
            if instance_count(core, memory) == 1:
                busy[memory, place] = busy.get((memory, place), 0.0) + words
    cycles = max(_passes(layer, core, given), max(busy.values(), default=0.0))
    return energy * (1 - ROUNDING), cycles * (1 - ROUNDING)


def _elements(layer: Layer, operand: str) -> int:
    return math.prod(layer.size_of[dimension] for dimension in dict(layer.operand_dimensions)[operand])


def _least_bits(layer: Layer, operand: str) -> int:
    """Of an element, on its way as a sum or as a result."""
    return min(layer.bits_of[operand], layer.bits_of[FINAL_OUTPUT]) if operand == OUTPUT else layer.bits_of[operand]


@lru_cache(maxsize=4096)
def _crossings(core: Core, operand: str, outermost: int, is_output: bool) -> tuple[tuple[int, int], ...]:
    """(memory, direction) of each access between the array and the memory where a tensor lies."""
    chain = memory_hierarchy(core).memories_of(operand)
    chain = chain[: chain.index(outermost) + 1]
    if is_output:
        return tuple([(k, FL) for k in chain] + [(k, TH) for k in chain[:-1]])
    return tuple([(k, TL) for k in chain] + [(k, FH) for k in chain[:-1]])


def _passes(layer: Layer, core: Core, given: MappingConstraints) -> int:
    """The cycles of the array at the least: by the loops that the mapping file lays on it, where that says it for all
    its sides, else by the number of its units."""
    sides = {name for name, _ in core.operational_array.dimensions}
    if {name for name, _ in given.spatial_mapping} != sides:
        return math.ceil(layer.mac_count / core.operational_array.unit_count)
    lanes: dict[str, int] = {}
    for _, factors in given.spatial_mapping:
        for loop, factor in factors:
            lanes[loop] = lanes.get(loop, 1) * factor
    return math.prod(math.ceil(size / lanes.get(loop, 1)) for loop, size in layer.loop_sizes)
