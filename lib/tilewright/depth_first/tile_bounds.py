"""Lower bounds of what a layer of a tile costs, for many sizes at once (docs/depth-first.md, "The optimum")."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tilewright.depth_first.chain import AXES, ChainLayer
from tilewright.depth_first.locations import Places
from tilewright.hardware.core import DIRECTIONS, FH, FL, TH, TL
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT

Grid = np.ndarray
"""[width of a tile, height of a tile]"""


@dataclass(frozen=True)
class TileSizes:
    """Positions of a tile of a layer: [axis][size of a tile]."""

    made: tuple[np.ndarray, np.ndarray]
    read: tuple[np.ndarray, np.ndarray]
    is_last: bool
    """Whether the layer is the last one of its stack."""


@dataclass
class LayerBound:
    """Bounds of one tile of a layer, for all sizes.

    Lanes of a dimension count as they are on average, its size over its passes, so that a product of lanes and passes
    is that of the sizes.
    """

    places: Places
    entry: ChainLayer
    tile: TileSizes
    stack_weight_bits: int
    """Of all layers of its stack."""
    is_sum: bool = False
    """Whether sizes are those of the whole layer, and bounds hold for the sum over any tiles that it is cut into."""
    _passes: dict[str, Grid] = field(init=False)
    _lanes: dict[str, Grid] = field(init=False)

    def __post_init__(self) -> None:
        given = unrolled_factors(self.entry)
        self._passes, self._lanes = {}, {}
        for name, size in self.entry.layer.loop_sizes:
            sizes = self._sizes(name, size)
            lanes = np.minimum(given.get(name, 1), np.maximum(sizes, 1))
            passes = np.ceil(sizes / lanes)
            if self.is_sum and name in AXES:
                passes = sizes / given.get(name, 1)
            self._passes[name] = passes
            self._lanes[name] = np.divide(sizes, passes, out=np.zeros_like(sizes), where=passes > 0)

    def _sizes(self, name: str, size: int) -> Grid:
        """A loop dimension in each tile, as a grid that broadcasts."""
        if name == AXES[0]:
            return self.tile.made[0][:, np.newaxis].astype(float)
        if name == AXES[1]:
            return self.tile.made[1][np.newaxis, :].astype(float)
        return np.full((1, 1), float(size))

    # What the tile is.

    def _product(self, of: dict[str, Grid], names: list[str]) -> Grid:
        result = np.ones((1, 1))
        for name in names:
            result = result * of[name]
        return result

    def _all_passes(self) -> Grid:
        return self._product(self._passes, list(self._passes))

    def _irrelevant(self, operand: str) -> list[str]:
        """Dimensions that do not index an operand, also not through a window. One of size 1 makes no loops."""
        own = dict(self.entry.layer.operand_dimensions)[operand]
        windows = [dict(r.terms) for r in self.entry.layer.relations if r.data_dimension in own]
        partial = {name for terms in windows for name in terms}
        return [name for name in self._passes if name not in own and name not in partial]

    def _relevant_lanes(self, operand: str, sides: list[str]) -> Grid:
        """Lanes over which data of an operand differ, of some sides of the array; of a window the larger of its two."""
        own = dict(self.entry.layer.operand_dimensions)[operand]
        unrolled = self._unrolled(sides)
        result = self._product(self._lanes, [name for name in own if name in unrolled])
        for relation in self.entry.layer.relations:
            if relation.data_dimension in own:
                there = [self._lanes[name] for name, _ in relation.terms if name in unrolled]
                result = result * (np.maximum(*there) if len(there) == 2 else there[0] if there else 1.0)
        return result

    def _unrolled(self, sides: list[str]) -> list[str]:
        """The loops that are unrolled over some sides of the array."""
        given = self.entry.constraints.spatial_mapping
        return [loop for side, factors in given for loop, _ in factors if side in sides]

    def _sides(self, memory: int) -> tuple[list[str], list[str]]:
        """Sides of the array that a memory serves, and those that it does not."""
        served = self.places.chain.core.memories[memory].served_dimensions
        sides = [name for name, _ in self.places.chain.core.operational_array.dimensions]
        return [s for s in sides if s in served], [s for s in sides if s not in served]

    def _instances(self, memory: int) -> Grid:
        """Instances of a memory that are at work."""
        _, others = self._sides(memory)
        return self._product(self._lanes, self._unrolled(others))

    # What an access costs.

    def _bit_pj(self, operand: str, memory: int, direction: int) -> float:
        """Energy of a bit over a link, at the least in full words."""
        held = self.places.chain.core.memories[memory]
        link = dict(self.entry.constraints.memory_operand_links)[operand]
        place = held.port_of.get((link, DIRECTIONS[direction]))
        if place is None:
            return 0.0
        cost = held.read_energy_pj if direction in (TL, TH) else held.write_energy_pj
        return cost / held.ports[place].bandwidth_max_bits

    # The tensors and where they lie.

    def _input_bits(self) -> Grid:
        """What the array must have seen of the input at least."""
        positions = np.ones((1, 1))
        for axis in (0, 1):
            window, made, read = self.entry.window(axis), self.tile.made[axis], self.tile.read[axis]
            taps = np.where(made > 0, read, 0.0)
            if window.stride > 1 or not is_dense(self.entry, axis):
                taps = np.minimum(taps, np.maximum(made, 1.0))
            positions = positions * (taps[:, np.newaxis] if axis == 0 else taps[np.newaxis, :])
        return positions * self.entry.input_bits

    def _tensor(self, which: tuple[np.ndarray, np.ndarray], bits: int) -> Grid:
        return np.outer(which[0], which[1]) * float(bits)

    def _beyond(self, memories: tuple[int, ...], needed: list[Grid]) -> list[Grid]:
        """[memory but the last] whether a tensor lies further out, by the rule of the lowest memory with room."""
        found = []
        outside = np.ones((1, 1), bool)
        for k, bits in zip(memories[:-1], needed, strict=False):
            if self.places.exist_once[k] and self.is_sum:
                outside = np.zeros((1, 1), bool)  # tiles may be as small as they like
            elif self.places.exist_once[k]:
                outside = outside & (bits > self.places.sizes[k])
            found.append(outside)
        return found

    def _locations(self) -> tuple[list[Grid], list[Grid]]:
        """Whether input and output cross each boundary between two of their memories."""
        places = self.places
        held = self._tensor(self.tile.read, self.entry.input_bits)
        inside = self._beyond(places.inputs, [held] * len(places.inputs))
        made = self._tensor(self.tile.made, self.entry.output_bits)
        if self.tile.is_last:
            return inside, [np.ones((1, 1), bool)] * (len(places.outputs) - 1)
        needed = []
        for k in places.outputs:
            here = np.zeros((1, 1), bool)
            if k in places.inputs:
                m = places.inputs.index(k)
                before = inside[m - 1] if m else np.ones((1, 1), bool)
                after = inside[m] if m < len(inside) else np.zeros((1, 1), bool)
                here = before & ~after
            needed.append(made + np.where(here, held, 0.0))
        return inside, self._beyond(places.outputs, needed)

    # Energy.

    def energy_pj(self) -> Grid:
        """The least energy of the tile: what any order needs, and the least over which loop is the innermost."""
        array = self.places.chain.core.operational_array
        macs = self._product(self._passes, list(self._passes)) * self._product(self._lanes, list(self._lanes))
        energy = macs * array.unit_energy_pj + self._energy_of_outputs_at_the_array()
        inside, outside = self._locations()
        inputs, outputs = self.places.inputs, self.places.outputs
        bits = self._input_bits()
        for m, crosses in enumerate(inside):
            price = self._bit_pj(self.entry.input_operand, inputs[m], FH)
            price += self._bit_pj(self.entry.input_operand, inputs[m + 1], TL)
            energy = energy + np.where(crosses, bits * price, 0.0)
        made = self._tensor(self.tile.made, self.entry.output_bits)
        for m, crosses in enumerate(outside[1:], 1):
            price = self._bit_pj(OUTPUT, outputs[m], TH) + self._bit_pj(OUTPUT, outputs[m + 1], FL)
            energy = energy + np.where(crosses, made * price, 0.0)
        least: Grid | None = None
        for still, exists in self._innermost():
            cost = self._energy_at_the_array(self.entry.input_operand, still)
            if self.entry.weight_operand is not None:
                cost = cost + self._energy_at_the_array(self.entry.weight_operand, still)
                cost = cost + self._energy_of_weights(still)
            if outside:
                cost = cost + np.where(outside[0], self._energy_of_outputs(still, made), 0.0)
            cost = np.where(exists, cost, np.inf)
            least = cost if least is None else np.minimum(least, cost)
        assert least is not None
        done = self._tensor(self.tile.made, 1) > 0
        return np.where(done, energy + least, 0.0)

    def _innermost(self) -> Iterator[tuple[frozenset[str], Grid]]:
        """Which operands the innermost loop leaves as they are, and in which tiles there is such a loop."""
        kinds: dict[frozenset[str], Grid] = {}
        for name, passes in self._passes.items():
            still = frozenset(o for o in self.entry.layer.operands if name in self._irrelevant(o))
            has_loop = np.ones((1, 1), bool) if self.is_sum and name in AXES else passes > 1
            kinds[still] = kinds.get(still, np.zeros((1, 1), bool)) | has_loop
        yield from kinds.items()
        if not self.is_sum:
            yield frozenset(self.entry.layer.operands), self._all_passes() <= 1

    def _stays(self, operand: str, still: frozenset[str]) -> Grid:
        """The most cycles, in passes, that the innermost loops can leave an operand as it is."""
        if operand not in still:
            return np.ones((1, 1))
        return self._product(self._passes, self._irrelevant(operand))

    def _energy_at_the_array(self, operand: str, still: frozenset[str]) -> Grid:
        """What the array reads of an input."""
        memories = self.places.inputs if operand == self.entry.input_operand else self.places.weights
        sides, _ = self._sides(memories[0])
        bits = self.entry.layer.bits_of[operand] * self._relevant_lanes(operand, sides) * self._instances(memories[0])
        times = self._all_passes() / np.maximum(self._stays(operand, still), 1)
        result: Grid = times * bits * self._bit_pj(operand, memories[0], TL)
        return result

    def _holds_one(self, operand: str, memory: int, bits: int) -> bool:
        """Whether a memory has no room for two elements of an operand, so that no loop over them is below it."""
        return 2 * bits > self.places.sizes[memory]

    def _energy_of_weights(self, still: frozenset[str]) -> Grid:
        """What goes from the second memory of the weights to the first."""
        memories, operand = self.places.weights, str(self.entry.weight_operand)
        bits = self.entry.layer.bits_of[operand]
        if not self._weights_move():
            return np.zeros((1, 1))
        below, above = self._bit_pj(operand, memories[0], FH), self._bit_pj(operand, memories[1], TL)
        if not self._holds_one(operand, memories[0], bits):
            return np.full((1, 1), self.entry.weight_bits * (below + above))
        times = self._all_passes() / np.maximum(self._stays(operand, still), 1) * bits
        sides, _ = self._sides(memories[0])
        into = self._relevant_lanes(operand, sides) * self._instances(memories[0])
        sides, _ = self._sides(memories[1])
        out = self._relevant_lanes(operand, sides) * self._instances(memories[1])
        result: Grid = times * (into * below + out * above)
        return result

    def _weights_move(self) -> bool:
        """Whether weights come from a second memory; else they may stay where the array reads them."""
        memories = self.places.weights
        return len(memories) > 1 and self.stack_weight_bits > self.places.sizes[memories[0]]

    def _swaps_sums(self, still: frozenset[str]) -> bool:
        """Whether the innermost loop changes the sums in a first memory that has no room for others."""
        layer = self.entry.layer
        sums = max(layer.bits_of[OUTPUT], layer.bits_of[FINAL_OUTPUT])
        return OUTPUT not in still and self._holds_one(OUTPUT, self.places.outputs[0], sums)

    def _sums(self) -> tuple[Grid, Grid]:
        """(accumulations over time of each output, bits of a sum that is handed on before the last of them)."""
        layer = self.entry.layer
        reduction = self._product(self._passes, self._irrelevant(OUTPUT))
        sums, final = max(layer.bits_of[OUTPUT], layer.bits_of[FINAL_OUTPUT]), layer.bits_of[FINAL_OUTPUT]
        return reduction, np.where(reduction > 1, float(sums), float(final))

    def _energy_of_outputs_at_the_array(self) -> Grid:
        """Each cycle the array writes sums, and reads back all but the first of each."""
        memory = self.places.outputs[0]
        reduction, bits = self._sums()
        sides, _ = self._sides(memory)
        lanes = self._relevant_lanes(OUTPUT, sides) * self._instances(memory)
        times = self._all_passes() * lanes * bits
        write, read = self._bit_pj(OUTPUT, memory, FL), self._bit_pj(OUTPUT, memory, TL)
        result: Grid = times * (write + np.where(reduction > 1, read * (1 - 1 / np.maximum(reduction, 1)), 0.0))
        return result

    def _energy_of_outputs(self, still: frozenset[str], made: Grid) -> Grid:
        """What goes from the first memory of the outputs to the second, and comes back."""
        memories = self.places.outputs
        up = (self._bit_pj(OUTPUT, memories[0], TH), self._bit_pj(OUTPUT, memories[1], FL))
        if not self._swaps_sums(still):
            return made * (up[0] + up[1])
        down = (self._bit_pj(OUTPUT, memories[0], FH), self._bit_pj(OUTPUT, memories[1], TL))
        reduction, bits = self._sums()
        lanes = []
        for memory in memories[:2]:
            sides, _ = self._sides(memory)
            lanes.append(self._relevant_lanes(OUTPUT, sides) * self._instances(memory))
        back = np.where(reduction > 1, 1 - 1 / np.maximum(reduction, 1), 0.0)
        each = [n * (u + back * d) for n, u, d in zip(lanes, up, down, strict=True)]
        result: Grid = self._all_passes() * bits * (each[0] + each[1])
        return result

    # Latency.

    def latency_cycles(self) -> Grid:
        """Cycles of the loops, or of the port that is busy longest, with the innermost loop that takes the least."""
        least: Grid | None = None
        inside, outside = self._locations()
        for still, exists in self._innermost():
            busy = self._all_passes() * 1.0
            ports: dict[tuple[int, int], Grid] = {}
            for (memory, place), cycles in self._busy_links(still, inside, outside):
                ports[memory, place] = ports.get((memory, place), np.zeros((1, 1))) + cycles
                busy = np.maximum(busy, ports[memory, place])
            busy = np.where(exists, busy, np.inf)
            least = busy if least is None else np.minimum(least, busy)
        assert least is not None
        return np.where(self._tensor(self.tile.made, 1) > 0, least, 0.0)

    def _busy_links(
        self, still: frozenset[str], inside: list[Grid], outside: list[Grid]
    ) -> Iterator[tuple[tuple[int, int], Grid]]:
        """Ports, each with cycles that it is busy for one link at least."""
        passes = self._all_passes()
        own, inputs, outputs = self.entry.input_operand, self.places.inputs, self.places.outputs
        yield from self._times(own, inputs[0], TL, passes / np.maximum(self._stays(own, still), 1))
        operand = self.entry.weight_operand
        if operand is not None:
            weights = self.places.weights
            times = passes / np.maximum(self._stays(operand, still), 1)
            yield from self._times(operand, weights[0], TL, times)
            bits = self.entry.layer.bits_of[operand]
            if self._weights_move() and self._holds_one(operand, weights[0], bits):
                yield from self._times(operand, weights[0], FH, times)
                yield from self._times(operand, weights[1], TL, times)
        reduction, _ = self._sums()
        back = np.where(reduction > 1, passes * (1 - 1 / np.maximum(reduction, 1)), 0.0)
        yield from self._times(OUTPUT, outputs[0], FL, passes)
        yield from self._times(OUTPUT, outputs[0], TL, back)
        bits_in, made = self._input_bits(), self._tensor(self.tile.made, self.entry.output_bits)
        for m, crosses in enumerate(inside):
            yield from self._bits(own, inputs[m], FH, np.where(crosses, bits_in, 0.0))
            yield from self._bits(own, inputs[m + 1], TL, np.where(crosses, bits_in, 0.0))
        for m, crosses in enumerate(outside):
            if m == 0 and self._swaps_sums(still):
                for direction, memory, times in (
                    (TH, outputs[0], passes),
                    (FL, outputs[1], passes),
                    (FH, outputs[0], back),
                    (TL, outputs[1], back),
                ):
                    yield from self._times(OUTPUT, memory, direction, np.where(crosses, times, 0.0))
                continue
            yield from self._bits(OUTPUT, outputs[m], TH, np.where(crosses, made, 0.0))
            yield from self._bits(OUTPUT, outputs[m + 1], FL, np.where(crosses, made, 0.0))

    def _times(self, operand: str, memory: int, direction: int, times: Grid) -> Iterator[tuple[tuple[int, int], Grid]]:
        """A link that moves something so many times: each takes a cycle at least."""
        place = self._port(operand, memory, direction)
        if place is not None and self._element_bits(operand):
            yield (memory, place), times

    def _bits(self, operand: str, memory: int, direction: int, bits: Grid) -> Iterator[tuple[tuple[int, int], Grid]]:
        """A link of a memory that exists once, over which so many bits go."""
        place = self._port(operand, memory, direction)
        if place is not None and self.places.exist_once[memory]:
            yield (memory, place), bits / self.places.chain.core.memories[memory].ports[place].bandwidth_max_bits

    def _element_bits(self, operand: str) -> int:
        return self.entry.layer.bits_of[FINAL_OUTPUT if operand == OUTPUT else operand]

    def _port(self, operand: str, memory: int, direction: int) -> int | None:
        link = dict(self.entry.constraints.memory_operand_links)[operand]
        return self.places.chain.core.memories[memory].port_of.get((link, DIRECTIONS[direction]))


def unrolled_factors(entry: ChainLayer) -> dict[str, int]:
    """Loop dimension -> lanes that the mapping file gives it."""
    return {loop: factor for _, factors in entry.constraints.spatial_mapping for loop, factor in factors}


def is_dense(entry: ChainLayer, axis: int) -> bool:
    """Whether the kernel of a layer has as many positions along an axis as it reaches over, so is not dilated."""
    terms = [dict(r.terms) for r in entry.layer.relations if AXES[axis] in dict(r.terms)]
    taps = [entry.layer.size_of.get(name, 1) for own in terms for name in own if name != AXES[axis]]
    return entry.window(axis).extent == (taps[0] if taps else 1)
