"""Loops, lanes and tensors of a layer of a tile, for many tile sizes together
(docs/tiles/depth-first-bounds.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tilewright.hardware.core import DIRECTIONS
from tilewright.tiles.depth_first.chain import AXES, ChainLayer
from tilewright.tiles.depth_first.locations import MemoryPlaces
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT

Grid = np.ndarray
"""Array with one number for each tile, or with a single number for all tiles. If `TileLoops.is_sum` is true, the array
instead has one number for each possible pair (lanes along x, lanes along y)."""
EXACT = 1e-9
"""Relative tolerance within which a computed number of lanes counts as an integer."""


@dataclass(frozen=True)
class TileSizes:
    """Numbers of positions that the tiles of a layer make and read. `made` and `read` are pairs (x, y) of arrays
    [tile].
    """

    made: tuple[np.ndarray, np.ndarray]
    read: tuple[np.ndarray, np.ndarray]
    is_last: bool
    """True if the layer is the last layer of its stack."""


@dataclass
class TileLoops:
    """Loops, lanes and passes of one layer of a tile, computed for many tile sizes together.

    The lanes of a loop dimension are its iterations that run in parallel on the array. Their number is an average: the
    size of the dimension divided by the number of its passes. The product of lanes and passes is therefore the size of
    the dimension.

    If `is_sum` is true, tiles can have any size, and the numbers of lanes along x and y are not known. Arrays then have
    one value for each possible pair (lanes along x, lanes along y), in the order of `any_lanes`. A bound is the minimum
    over the pairs.
    """

    places: MemoryPlaces
    entry: ChainLayer
    tile: TileSizes
    stack_weight_bits: int
    """Number of bits of the weights, summed over the layers of the stack."""
    is_sum: bool = False
    """True if the sizes are sums over all tiles of the layer. The bounds then hold for the sum over all tiles, for any
    tile size.
    """
    passes: dict[str, Grid] = field(init=False)
    """Number of passes of each loop dimension: its number of iterations, divided by the number of iterations that the
    array runs in parallel.
    """
    lanes: dict[str, Grid] = field(init=False)

    def __post_init__(self) -> None:
        given = unrolled_factors(self.entry)
        self.passes, self.lanes = {}, {}
        few = any_lanes(self.entry)
        for name, size in self.entry.layer.loop_sizes:
            sizes = self._sizes(name, size)
            if self.is_sum and name in AXES:  # tiles can have any smaller number of lanes
                self.lanes[name] = few[AXES.index(name)]
                self.passes[name] = sizes / self.lanes[name]
                continue
            lanes = np.minimum(given.get(name, 1), np.maximum(sizes, 1))
            self.passes[name] = passes = np.ceil(sizes / lanes)
            self.lanes[name] = np.divide(sizes, passes, out=np.zeros_like(sizes), where=passes > 0)

    def _sizes(self, name: str, size: int) -> Grid:
        """Size of the loop dimension `name`. For an axis that is cut into tiles, the result has one number per tile;
        otherwise, the result has one number for all tiles, `size`.
        """
        if name in AXES:
            return self.tile.made[AXES.index(name)].astype(float)
        return np.full(1, float(size))

    # Loops and lanes.

    def product(self, of: dict[str, Grid], names: list[str]) -> Grid:
        """Elementwise product of the arrays in `of` for the dimensions `names`. Without names, the result is an array
        with the number 1.
        """
        result = np.ones(1)
        for name in names:
            result = result * of[name]
        return result

    def all_passes(self) -> Grid:
        """Number of cycles of the loops: the product of the passes of each loop."""
        return self.product(self.passes, list(self.passes))

    def irrelevant(self, operand: str) -> list[str]:
        """Dimensions that index an operand neither directly nor through a window."""
        own = dict(self.entry.layer.operand_dimensions)[operand]
        windows = [dict(r.terms) for r in self.entry.layer.relations if r.data_dimension in own]
        partial = {name for terms in windows for name in terms}
        return [name for name in self.passes if name not in own and name not in partial]

    def reduction(self) -> Grid:
        """Number of passes whose results are summed into each output."""
        return self.product(self.passes, self.irrelevant(OUTPUT))

    def stays(self, operand: str, still: frozenset[str]) -> Grid:
        """Largest number of consecutive passes that can use the same data of an operand. `still` has the operands that
        do not change along the innermost loop; for all other operands, the number is 1.
        """
        if operand not in still:
            return np.ones(1)
        result: Grid = np.maximum(self.product(self.passes, self.irrelevant(operand)), 1)
        return result

    def innermost(self) -> Iterator[tuple[frozenset[str], Grid]]:
        """Pairs (operands, truth values), one for each set of operands that can stay the same along the innermost loop.

        The truth value of a tile is True if the tile has a suitable innermost loop: a loop with more than one pass,
        along which exactly these operands do not change. Tiles with only one pass in total are covered by a pair with
        all operands. If `is_sum` is true, any tile can have loops along x and y, and no pair covers tiles with only one
        pass.
        """
        kinds: dict[frozenset[str], Grid] = {}
        for name, passes in self.passes.items():
            still = frozenset(o for o in self.entry.layer.operands if name in self.irrelevant(o))
            has_loop = np.ones(1, bool) if self.is_sum and name in AXES else passes > 1
            kinds[still] = kinds.get(still, np.zeros(1, bool)) | has_loop
        yield from kinds.items()
        if not self.is_sum:
            yield frozenset(self.entry.layer.operands), self.all_passes() <= 1

    def relevant_lanes(self, operand: str, memory: int) -> Grid:
        """Average number of lanes that use different data of an operand, among the lanes of one instance of a memory.

        If the lanes read the operand through a sliding window, the result is a lower bound of this number
        (`_window_lanes`). If the tile sizes are known, the number along an axis of the window is limited to the number
        of input positions that the tile reads along this axis.
        """
        own = dict(self.entry.layer.operand_dimensions)[operand]
        unrolled = self._unrolled(operand, memory, True)
        result = self.product(self.lanes, [name for name in own if name in unrolled])
        for relation in self.entry.layer.relations:
            if relation.data_dimension in own:
                there = [self.lanes[name] for name, _ in relation.terms if name in unrolled]
                if there:
                    axis = self.entry.data_dimensions.index(relation.data_dimension)
                    result = result * self._window_lanes(axis, there)
        return result

    def _window_lanes(self, axis: int, lanes: list[Grid]) -> Grid:
        """Lower bound of the number of different input positions that the lanes read along one axis of a window.
        `lanes` has the number of lanes of each loop of the window.

        Positions in the padding do not count.
        """
        most = np.maximum(*lanes) if len(lanes) == 2 else lanes[0]
        if not self.is_sum:
            there: Grid = np.minimum(most, np.maximum(self.tile.read[axis], 1))
            return there
        window = self.entry.window(axis)
        missing = (window.output_size - 1) * window.stride + window.extent - window.input_size
        return most if window.before == 0 and missing <= 0 else np.ones(1)

    def least_lanes(self, operand: str, memory: int, in_each: bool) -> Grid:
        """Lower bound of the number of elements in one transfer of an operand. The transfer is between one instance of
        a memory and the lanes that this instance serves.

        If `in_each` is true, the bound holds for every transfer. Otherwise, the bound holds only for the largest
        transfer. Lanes of dimensions that index the operand through a sliding window are not counted.
        """
        own = dict(self.entry.layer.operand_dimensions)[operand]
        unrolled = self._unrolled(operand, memory, True)
        result = np.ones(1)
        for name in own:
            if name in unrolled:
                lanes = self.lanes[name]
                whole = np.floor(lanes * (1 + EXACT)) if in_each else np.ceil(lanes * (1 - EXACT))
                result = result * np.maximum(whole, 1)
        return result

    def instances(self, operand: str, memory: int) -> Grid:
        """Number of used instances of a memory that holds an operand."""
        return self.product(self.lanes, self._unrolled(operand, memory, False))

    def _unrolled(self, operand: str, memory: int, served: bool) -> list[str]:
        """Loops that the mapping file unrolls over certain sides (dimensions) of the array.

        If `served` is true, the result has the loops over the sides that one instance of the memory serves, directly or
        through lower memories of the operand. If `served` is false, the result has the loops over all other sides.
        """
        own = self.places.inputs if operand == self.entry.input_operand else self.places.weights
        chain = self.places.outputs if operand == OUTPUT else own
        below = chain[: chain.index(memory) + 1]
        sides = {side for k in below for side in self.places.chain.core.memories[k].served_dimensions}
        given = self.entry.constraints.spatial_mapping
        return [loop for side, factors in given for loop, _ in factors if (side in sides) == served]

    # The tensors and their memories.

    def input_bits(self) -> Grid:
        """Number of bits of the input that the array must read at least once."""
        positions = np.ones(1)
        for axis in (0, 1):
            window, made, read = self.entry.window(axis), self.tile.made[axis], self.tile.read[axis]
            taps = np.where(made > 0, read, 0.0)
            if window.stride > 1 or not is_dense(self.entry, axis):
                taps = np.minimum(taps, np.maximum(made, 1.0))
            positions = positions * taps
        return positions * self.entry.input_bits

    def output_bits(self) -> Grid:
        """Number of bits of all final outputs of the tile."""
        result: Grid = self.tile.made[0] * self.tile.made[1] * float(self.entry.output_bits)
        return result

    def locations(self) -> tuple[list[Grid], list[Grid]]:
        """Pair of lists, the first for the input of the layer, the second for its output. A list has one array of truth
        values for each boundary between two neighbouring memories of this tensor, from inside to outside. A value is
        True if the tensor crosses the boundary in this tile, because it lies in a memory further out.
        """
        places = self.places
        held = self.tile.read[0] * self.tile.read[1] * float(self.entry.input_bits)
        inside = self._beyond(places.inputs, [held] * len(places.inputs))
        made = self.output_bits()
        if self.tile.is_last:
            return inside, [np.ones(1, bool)] * (len(places.outputs) - 1)
        needed = []
        for k in places.outputs:
            here = np.zeros(1, bool)
            if k in places.inputs:
                m = places.inputs.index(k)
                before = inside[m - 1] if m else np.ones(1, bool)
                after = inside[m] if m < len(inside) else np.zeros(1, bool)
                here = before & ~after
            needed.append(made + np.where(here, held, 0.0))
        return inside, self._beyond(places.outputs, needed)

    def _beyond(self, memories: tuple[int, ...], needed: list[Grid]) -> list[Grid]:
        """Arrays of truth values, one array for each memory in `memories` except the last. A value is True if the
        tensor of the tile lies further out than this memory.

        The tensor lies in the innermost memory that has only one instance and has room for the tensor. `needed` has the
        number of bits that the tensor needs in each memory. If `is_sum` is true, each memory with one instance has
        room, because tiles can be arbitrarily small.
        """
        found = []
        outside = np.ones(1, bool)
        for k, bits in zip(memories[:-1], needed, strict=False):
            if self.places.exist_once[k] and self.is_sum:
                outside = np.zeros(1, bool)  # tiles can be arbitrarily small
            elif self.places.exist_once[k]:
                outside = outside & (bits > self.places.sizes[k])
            found.append(outside)
        return found

    # Elements that replace each other in a memory.

    def sum_bits(self) -> float:
        """Number of bits that a sum takes while it moves between the array and the memories.

        If each output needs only one accumulation, a sum takes the bits of a final output. Otherwise, a sum takes the
        bits of a partial sum or of a final output, whichever is larger.
        """
        layer = self.entry.layer
        final = layer.bits_of[FINAL_OUTPUT]
        return float(max(layer.bits_of[OUTPUT], final) if self.reduction()[0] > 1 else final)

    def holds_one_output(self) -> bool:
        """True if the innermost memory of outputs has room for at most one output. A mapping then has no loop over
        outputs at this memory.
        """
        return 2 * self.sum_bits() > self.places.sizes[self.places.outputs[0]]

    def swaps_sums(self, still: frozenset[str]) -> bool:
        """True if the innermost memory of outputs swaps sums: the innermost loop changes to another sum in each pass,
        and the memory has no room for two sums.
        """
        return OUTPUT not in still and self.holds_one_output()

    def weights_move(self) -> bool:
        """True if the weights of the stack do not fit into the memory that the array reads, so that they come from the
        next memory.
        """
        memories = self.places.weights
        return len(memories) > 1 and self.stack_weight_bits > self.places.sizes[memories[0]]

    def holds_one_weight(self) -> bool:
        """True if the innermost memory of the weights has room for at most one weight."""
        bits = self.entry.layer.bits_of[str(self.entry.weight_operand)]
        return 2 * bits > self.places.sizes[self.places.weights[0]]

    # Ports.

    def port(self, operand: str, memory: int, direction: int) -> int | None:
        """Index of the port through which an operand moves in a direction; None if the memory has no such port."""
        link = dict(self.entry.constraints.memory_operand_links)[operand]
        return self.places.chain.core.memories[memory].port_of.get((link, DIRECTIONS[direction]))


def unrolled_factors(entry: ChainLayer) -> dict[str, int]:
    """Number of lanes of each loop dimension that the mapping file unrolls."""
    return {loop: factor for _, factors in entry.constraints.spatial_mapping for loop, factor in factors}


def any_lanes(entry: ChainLayer) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of lanes that a tile can have along the two axes, as two arrays of equal length, one for each axis.
    Together, the arrays list all pairs of numbers; the number along the first axis varies fastest.
    """
    given = unrolled_factors(entry)
    x, y = np.meshgrid(*[np.arange(1.0, given.get(name, 1) + 1) for name in AXES])
    return x.ravel(), y.ravel()


def is_dense(entry: ChainLayer, axis: int) -> bool:
    """True if the kernel of a layer is not dilated along an axis, so that the window has no gaps."""
    terms = [dict(r.terms) for r in entry.layer.relations if AXES[axis] in dict(r.terms)]
    taps = [entry.layer.size_of.get(name, 1) for own in terms for name in own if name != AXES[axis]]
    return entry.window(axis).extent == (taps[0] if taps else 1)
