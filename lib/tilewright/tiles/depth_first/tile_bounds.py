"""Lower bounds of energy and latency of a layer of a tile, for many tile sizes together
(docs/tiles/depth-first-bounds.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.tiles.depth_first.tile_loops import Grid, TileLoops
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT


def least_energy_pj(loops: TileLoops, with_weights: bool = True) -> Grid:
    """Lower bound of the energy, in pJ, for one layer of a tile.

    The bound is a sum: the energy that every loop order needs, plus the least extra energy over all choices of the
    innermost loop. If `with_weights` is false, the energy of moving weights is left out. The bound for a sum over tiles
    is then proportional to the number of output positions.
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
    """Least energy in pJ to move one bit of an operand into or out of a memory: the energy of a full word divided by
    its bits. 0 if the memory has no port for this operand and direction.
    """
    held, place = loops.places.chain.core.memories[memory], loops.port(operand, memory, direction)
    if place is None:
        return 0.0
    cost = held.read_energy_pj if direction in (TL, TH) else held.write_energy_pj
    return cost / held.ports[place].bandwidth_max_bits


def _lanes(loops: TileLoops, operand: str, memory: int) -> Grid:
    """Average number of elements of an operand that all instances of a memory together transfer at a time."""
    result: Grid = loops.relevant_lanes(operand, memory) * loops.instances(operand, memory)
    return result


def _energy_at_the_array(loops: TileLoops, operand: str, still: frozenset[str]) -> Grid:
    """Energy in pJ of the accesses by which the array reads an input operand. `still` has the operands that do not
    change along the innermost loop.
    """
    memories = loops.places.inputs if operand == loops.entry.input_operand else loops.places.weights
    bits = loops.entry.layer.bits_of[operand] * _lanes(loops, operand, memories[0])
    times = loops.all_passes() / loops.stays(operand, still)
    result: Grid = times * bits * _bit_pj(loops, operand, memories[0], TL)
    return result


def _energy_of_weights(loops: TileLoops, still: frozenset[str]) -> Grid:
    """Energy in pJ of moving weights from their second innermost memory to their innermost memory."""
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
    """Energy in pJ of the sums that move between the array and the innermost memory of outputs.

    In each cycle, the array writes sums to this memory. The array also reads sums back, except for the first sum of
    each output.
    """
    memory = loops.places.outputs[0]
    times = loops.all_passes() * _lanes(loops, OUTPUT, memory) * loops.sum_bits()
    write, read = _bit_pj(loops, OUTPUT, memory, FL), _bit_pj(loops, OUTPUT, memory, TL)
    result: Grid = times * (write + read * (1 - 1 / loops.reduction()))
    return result


def _energy_of_outputs(loops: TileLoops, still: frozenset[str], made: Grid) -> Grid:
    """Energy in pJ of moving `made` bits of outputs from their innermost memory to the next one.

    If the innermost memory swaps sums (`swaps_sums`), a sum moves in each pass. The energy then includes moving partial
    sums back. `still` has the operands that do not change along the innermost loop.
    """
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


Port = tuple[int, int]
"""Port, as (memory, index of the port)."""


@dataclass(frozen=True)
class _Exchange:
    """Transfers of an operand through one port. Each transfer moves one element for each lane."""

    operand: str
    port: Port
    times: Grid
    cycles: Grid
    """Least number of cycles of a transfer."""
    is_waited_for: bool
    """True if the array waits for all cycles of a transfer except one, because a memory near the array has no room for
    a second element.
    """
    comes_back: bool = False
    """True if the transfers move partial sums back to the array. All these transfers take place while the array
    computes.
    """


def least_latency_cycles(loops: TileLoops) -> Grid:
    """Lower bound of the latency of a tile in cycles: the least value over the choices of the innermost loop.

    The value of a choice is the larger of two numbers. The first is the cycles of the loops, plus waiting, loading and
    off-loading. The second is the busy time of the busiest port.
    """
    least: Grid | None = None
    inside, outside = loops.locations()
    around = np.zeros(1) if loops.is_sum else loading_cycles(loops)
    for still, exists in loops.innermost():
        busy: dict[Port, Grid] = {}
        waiting: dict[Port, Grid] = {}
        for one in _exchanges(loops, still, outside):
            busy[one.port] = busy.get(one.port, np.zeros(1)) + one.times * one.cycles
            if one.is_waited_for:
                times = one.times if loops.is_sum or one.comes_back else np.maximum(one.times - 1, 0)
                waiting[one.port] = waiting.get(one.port, np.zeros(1)) + times * (one.cycles - 1)
        for port, cycles in _tensors(loops, still, inside, outside):
            busy[port] = busy.get(port, np.zeros(1)) + cycles
        stall = np.zeros(1)
        for cycles in waiting.values():
            stall = np.maximum(stall, cycles)
        result = loops.all_passes() + stall + around
        for cycles in busy.values():
            result = np.maximum(result, cycles)
        result = np.where(exists, result, np.inf)
        least = result if least is None else np.minimum(least, result)
    assert least is not None
    return np.where(loops.output_bits() > 0, least, 0.0)


def cycles_of_passes(loops: TileLoops) -> tuple[Grid, Grid]:
    """Pair (cycles, spared cycles) for a tile with one pass along x and one pass along y. Each of the two is an array
    with one value for each choice of lanes along x and y (`any_lanes`), or with one value for all choices.

    The cycles are a lower bound of the runtime: the cycles of the loops, plus the cycles in which the array waits for
    transfers. Waiting for weights is left out. The first transfers of a tile cause no waiting, but the cycles include
    waiting for them. The spared cycles are an upper bound of this excess. A tile with n passes along x and y takes at
    least n times the cycles, minus the spared cycles once.
    """
    least: Grid | None = None
    first = np.zeros(1)
    _, outside = loops.locations()
    for still, exists in loops.innermost():
        waiting: dict[Port, Grid] = {}
        spared: dict[Port, Grid] = {}
        for one in _exchanges(loops, still, outside):
            if one.is_waited_for and one.operand != loops.entry.weight_operand:
                waiting[one.port] = waiting.get(one.port, np.zeros(1)) + one.times * (one.cycles - 1)
                if not one.comes_back:
                    spared[one.port] = spared.get(one.port, np.zeros(1)) + (one.cycles - 1)
        stall = np.zeros(1)
        for port, cycles in waiting.items():
            stall = np.maximum(stall, cycles)
            first = np.maximum(first, spared.get(port, np.zeros(1)))
        result = np.where(exists, loops.all_passes() + stall, np.inf)
        least = result if least is None else np.minimum(least, result)
    assert least is not None
    return least, first


def _exchanges(loops: TileLoops, still: frozenset[str], outside: list[Grid]) -> Iterator[_Exchange]:
    """Transfers to and from the array.

    If the innermost memory of weights or of outputs holds only one element, the transfers between this memory and the
    next one are included.
    """
    passes = loops.all_passes()
    own, outputs = loops.entry.input_operand, loops.places.outputs
    bits = float(loops.entry.layer.bits_of[own])
    yield from _link(loops, own, loops.places.inputs[0], TL, passes / loops.stays(own, still), bits, own not in still)
    operand = loops.entry.weight_operand
    if operand is not None:
        weights, bits = loops.places.weights, float(loops.entry.layer.bits_of[operand])
        times = passes / loops.stays(operand, still)
        yield from _link(loops, operand, weights[0], TL, times, bits, operand not in still)
        if loops.weights_move() and loops.holds_one_weight():
            yield from _link(loops, operand, weights[0], FH, times, bits, True)
            yield from _link(loops, operand, weights[1], TL, times, bits, True)
    reduction, bits = loops.reduction(), loops.sum_bits()
    back = passes * (1 - 1 / reduction)
    yield from _link(loops, OUTPUT, outputs[0], FL, passes, bits, True)
    yield from _link(loops, OUTPUT, outputs[0], TL, back, bits, True, True)
    if not outside or not loops.holds_one_output():
        return
    swaps = loops.swaps_sums(still)
    if not swaps:
        bits = float(loops.entry.layer.bits_of[FINAL_OUTPUT])
    up = np.where(outside[0], passes if swaps else passes / reduction, 0.0)
    yield from _link(loops, OUTPUT, outputs[0], TH, up, bits, True)
    yield from _link(loops, OUTPUT, outputs[1], FL, up, bits, True)
    if swaps:
        down = np.where(outside[0], back, 0.0)
        yield from _link(loops, OUTPUT, outputs[0], FH, down, bits, True, True)
        yield from _link(loops, OUTPUT, outputs[1], TL, down, bits, True, True)


def _link(
    loops: TileLoops,
    operand: str,
    memory: int,
    direction: int,
    times: Grid,
    bits: float,
    is_waited_for: bool,
    comes_back: bool = False,
) -> Iterator[_Exchange]:
    """Transfers of an operand through one port of a memory. `direction` is an index of DIRECTIONS. If the memory has no
    port for this operand and direction, or if `bits` is 0, there are no transfers.

    There are `times` transfers. Each transfer moves one element of `bits` bits for every lane. `is_waited_for` and
    `comes_back` become the attributes of `_Exchange` with these names.
    """
    place = loops.port(operand, memory, direction)
    if place is not None and bits:
        cycles = _cycles(loops, memory, place, loops.least_lanes(operand, memory, False) * bits)
        yield _Exchange(operand, (memory, place), times, cycles, is_waited_for, comes_back)


def _cycles(loops: TileLoops, memory: int, place: int, bits: Grid) -> Grid:
    """Number of cycles in which port number `place` of a memory transfers `bits` bits, at least 1."""
    wide = loops.places.chain.core.memories[memory].ports[place].bandwidth_max_bits
    return np.maximum(np.ceil(bits / wide), 1)


def _tensors(
    loops: TileLoops, still: frozenset[str], inside: list[Grid], outside: list[Grid]
) -> Iterator[tuple[Port, Grid]]:
    """Pairs (port, cycles) for moving the whole input and the whole output. Input and output each move once over every
    boundary between two memories that they cross. Weights are not included.

    If the innermost memory of outputs holds only one output, the boundary above this memory is left out, because
    `_exchanges` has its transfers.
    """
    own, inputs, outputs = loops.entry.input_operand, loops.places.inputs, loops.places.outputs
    bits_in, made = loops.input_bits(), loops.output_bits()
    for m, crosses in enumerate(inside):
        yield from _bits(loops, own, inputs[m], FH, np.where(crosses, bits_in, 0.0))
        yield from _bits(loops, own, inputs[m + 1], TL, np.where(crosses, bits_in, 0.0))
    for m, crosses in enumerate(outside):
        if m or not loops.holds_one_output():
            yield from _bits(loops, OUTPUT, outputs[m], TH, np.where(crosses, made, 0.0))
            yield from _bits(loops, OUTPUT, outputs[m + 1], FL, np.where(crosses, made, 0.0))


def _bits(loops: TileLoops, operand: str, memory: int, direction: int, bits: Grid) -> Iterator[tuple[Port, Grid]]:
    """Pair (port, cycles) for moving `bits` bits through the port that the operand uses.

    There is no pair if the memory has no such port, or if the memory has several instances.
    """
    place = loops.port(operand, memory, direction)
    if place is not None and loops.places.exist_once[memory]:
        yield (memory, place), bits / loops.places.chain.core.memories[memory].ports[place].bandwidth_max_bits


def loading_cycles(loops: TileLoops) -> Grid:
    """Least number of cycles of loading and off-loading that do not overlap with computation.

    Loading ends when the first elements of all operands are in the array. Off-loading is counted only for the last
    outputs.
    """
    inside, outside = loops.locations()
    layer, places = loops.entry.layer, loops.places
    own, operand = loops.entry.input_operand, loops.entry.weight_operand
    on = _first(loops, own, places.inputs[0], TL)
    for m, crosses in enumerate(inside):
        pair = np.maximum(_first(loops, own, places.inputs[m], FH), _first(loops, own, places.inputs[m + 1], TL))
        on = on + np.where(crosses, pair, 0.0)
    if operand is not None:
        other = _first(loops, operand, places.weights[0], TL)
        if loops.weights_move():
            below, above = places.weights[:2]
            other = other + np.maximum(_first(loops, operand, below, FH), _first(loops, operand, above, TL))
        on = np.maximum(on, other)
    bits, holds_one = float(layer.bits_of[FINAL_OUTPUT]), loops.holds_one_output()
    off = _first(loops, OUTPUT, places.outputs[0], FL, True)
    for m, crosses in enumerate(outside):
        exact = m == 0 and holds_one
        arrives = _first(loops, OUTPUT, places.outputs[m + 1], FL, exact)
        off = off + np.where(crosses, np.maximum(_first(loops, OUTPUT, places.outputs[m], TH), arrives), 0.0)
    return np.where(bits > 0, on + off, on)


def _first(loops: TileLoops, operand: str, memory: int, direction: int, exact: bool = False) -> Grid:
    """Least number of cycles of one transfer through a port. The transfer moves the first elements of an input, or the
    last elements of the output: one element for each lane. 0 if the memory has no port for this transfer.

    By default, the result is a lower bound for every transfer. If `exact` is true, it is a lower bound only for the
    largest transfer.
    """
    place = loops.port(operand, memory, direction)
    bits = loops.entry.layer.bits_of[FINAL_OUTPUT if operand == OUTPUT else operand]
    if place is None or not bits:
        return np.zeros(1)
    return _cycles(loops, memory, place, loops.least_lanes(operand, memory, not exact) * float(bits))
