"""Lower bounds of the energy of a layer of a tile, for many sizes at once (docs/depth-first.md, "The optimum")."""

import numpy as np

from tilewright.depth_first.tile_loops import Grid, TileLoops
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.workload.layer import OUTPUT


def least_energy_pj(loops: TileLoops, with_weights: bool = True) -> Grid:
    """The least energy of the tile: what any order needs, and the least over which loop is the innermost.

    Without weights it is, for a sum over tiles, a multiple of their positions.
    """
    array = loops.places.chain.core.operational_array
    macs = loops.all_passes() * loops.product(loops.lanes, list(loops.lanes))
    energy = macs * array.unit_energy_pj + _energy_of_outputs_at_the_array(loops)
    inside, outside = loops.locations()
    inputs, outputs = loops.places.inputs, loops.places.outputs
    bits = loops.input_bits()
    for m, crosses in enumerate(inside):
        price = _bit_pj(loops, loops.entry.input_operand, inputs[m], FH)
        price += _bit_pj(loops, loops.entry.input_operand, inputs[m + 1], TL)
        energy = energy + np.where(crosses, bits * price, 0.0)
    made = loops.output_bits()
    for m, crosses in enumerate(outside[1:], 1):
        price = _bit_pj(loops, OUTPUT, outputs[m], TH) + _bit_pj(loops, OUTPUT, outputs[m + 1], FL)
        energy = energy + np.where(crosses, made * price, 0.0)
    least: Grid | None = None
    for still, exists in loops.innermost():
        cost = _energy_at_the_array(loops, loops.entry.input_operand, still)
        if loops.entry.weight_operand is not None and with_weights:
            cost = cost + _energy_at_the_array(loops, loops.entry.weight_operand, still)
            cost = cost + _energy_of_weights(loops, still)
        if outside:
            cost = cost + np.where(outside[0], _energy_of_outputs(loops, still, made), 0.0)
        cost = np.where(exists, cost, np.inf)
        least = cost if least is None else np.minimum(least, cost)
    assert least is not None
    return np.where(made > 0, energy + least, 0.0)


def _bit_pj(loops: TileLoops, operand: str, memory: int, direction: int) -> float:
    """Energy of a bit over a link, at the least in full words."""
    held, place = loops.places.chain.core.memories[memory], loops.port(operand, memory, direction)
    if place is None:
        return 0.0
    cost = held.read_energy_pj if direction in (TL, TH) else held.write_energy_pj
    return cost / held.ports[place].bandwidth_max_bits


def _lanes(loops: TileLoops, operand: str, memory: int) -> Grid:
    """Elements that all instances of a memory pass on for all lanes, on average."""
    result: Grid = loops.relevant_lanes(operand, memory) * loops.instances(operand, memory)
    return result


def _energy_at_the_array(loops: TileLoops, operand: str, still: frozenset[str]) -> Grid:
    """What the array reads of an input."""
    memories = loops.places.inputs if operand == loops.entry.input_operand else loops.places.weights
    bits = loops.entry.layer.bits_of[operand] * _lanes(loops, operand, memories[0])
    times = loops.all_passes() / loops.stays(operand, still)
    result: Grid = times * bits * _bit_pj(loops, operand, memories[0], TL)
    return result


def _energy_of_weights(loops: TileLoops, still: frozenset[str]) -> Grid:
    """What goes from the second memory of the weights to the first."""
    memories, operand = loops.places.weights, str(loops.entry.weight_operand)
    if not loops.weights_move():
        return np.zeros(1)
    below, above = _bit_pj(loops, operand, memories[0], FH), _bit_pj(loops, operand, memories[1], TL)
    if not loops.holds_one_weight():
        return np.full(1, loops.entry.weight_bits * (below + above))
    times = loops.all_passes() / loops.stays(operand, still) * loops.entry.layer.bits_of[operand]
    into, out = _lanes(loops, operand, memories[0]), _lanes(loops, operand, memories[1])
    result: Grid = times * (into * below + out * above)
    return result


def _energy_of_outputs_at_the_array(loops: TileLoops) -> Grid:
    """Each cycle the array writes sums, and reads back all but the first of each."""
    memory = loops.places.outputs[0]
    times = loops.all_passes() * _lanes(loops, OUTPUT, memory) * loops.sum_bits()
    write, read = _bit_pj(loops, OUTPUT, memory, FL), _bit_pj(loops, OUTPUT, memory, TL)
    result: Grid = times * (write + read * (1 - 1 / loops.reduction()))
    return result


def _energy_of_outputs(loops: TileLoops, still: frozenset[str], made: Grid) -> Grid:
    """What goes from the first memory of the outputs to the second, and comes back."""
    memories = loops.places.outputs
    up = (_bit_pj(loops, OUTPUT, memories[0], TH), _bit_pj(loops, OUTPUT, memories[1], FL))
    if not loops.swaps_sums(still):
        return made * (up[0] + up[1])
    down = (_bit_pj(loops, OUTPUT, memories[0], FH), _bit_pj(loops, OUTPUT, memories[1], TL))
    back = 1 - 1 / loops.reduction()
    lanes = [_lanes(loops, OUTPUT, memory) for memory in memories[:2]]
    each = [n * (u + back * d) for n, u, d in zip(lanes, up, down, strict=True)]
    result: Grid = loops.all_passes() * loops.sum_bits() * (each[0] + each[1])
    return result
