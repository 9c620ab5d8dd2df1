"""Lower bounds of the cost of depth-first stacks, for all tile sizes together
(docs/tiles/depth-first-bounds.md).

Tiles of one kind make and read equal numbers of positions along an axis. A part of a stack consists of all tiles that
have the same kind along x and the same kind along y. The bounds of many parts are computed with a few vector operations
for each layer. A quick bound is a sum of products of two factors: one factor depends only on the width of tiles, and
the other only on their height.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.base.profile import SWITCHES, ModelProfile
from tilewright.base.proof import ROUNDING
from tilewright.cost.energy_terms import further_energy_terms
from tilewright.cost.latency_terms import further_latency_terms
from tilewright.cost.waiting import waiting_keys
from tilewright.hardware.core import DIGITAL
from tilewright.tiles.depth_first.axes import axis_tiles
from tilewright.tiles.depth_first.chain import AXES, Chain
from tilewright.tiles.depth_first.locations import MODES, MemoryPlaces
from tilewright.tiles.depth_first.stack_cost import hops_between
from tilewright.tiles.depth_first.tile_bounds import (
    cycles_of_passes,
    least_energy_pj,
    least_latency_cycles,
    loading_cycles,
)
from tilewright.tiles.depth_first.tile_loops import (
    EXACT,
    Grid,
    TileLoops,
    TileSizes,
    any_lanes,
    is_dense,
    unrolled_factors,
)


@dataclass(frozen=True)
class AxisKinds:
    """Kinds of tiles along an axis. Tiles of one tile size are of the same kind if they make equal numbers of positions
    of each tensor, and each layer reads equal numbers of input positions. In the arrays, the kinds of one tile size are
    consecutive.
    """

    made: np.ndarray
    """Number of positions that a tile of a kind makes, as an array [kind, tensor]."""
    read: np.ndarray
    """Number of input positions of each layer that a tile reads, as an array [kind, layer]."""
    count: np.ndarray
    """Number of tiles of each kind, as an array [kind]."""
    start: np.ndarray
    """Index of the first kind of each tile size, as an array with one entry for each tile size. At its end, there is
    one more entry: the number of kinds.
    """


def axis_kinds(chain: Chain, first: int, last: int, axis: int, keeps: bool, tiles: list[int]) -> AxisKinds:
    """Kinds of tiles along an axis for each tile size in `tiles`. The tiles are those of the layers `first` to `last`.

    If `keeps` is true, a tile keeps all positions that the next tile also needs.
    """
    windows = chain.windows(first, last, axis)
    made: list[tuple[int, ...]] = []
    read: list[tuple[int, ...]] = []
    count: list[int] = []
    start = [0]
    for tile in tiles:
        counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for one in axis_tiles(windows, tile, keeps):
            key = (one.made, one.read)
            counts[key] = counts.get(key, 0) + 1
        made += [own for own, _ in counts]
        read += [taken for _, taken in counts]
        count += counts.values()
        start.append(len(count))
    return AxisKinds(np.array(made, float), np.array(read, float), np.array(count, float), np.array(start))


PARTS_AT_ONCE = 16384
"""Largest number of parts that are computed together, so that their data fit into the cache of a processor. If a single
tile size has more parts, all its parts are still computed together. A part consists of all tiles of a stack that have
the same kind along x and the same kind along y."""
Excluded = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Function that excludes tile sizes of a stack.

The arguments are lower bounds of the energy in pJ, and lower bounds of the latency in cycles: one array each, with one
number for each tile size. The result is an array with True for each tile size that cannot be part of a better schedule.
"""


@dataclass(frozen=True)
class StackBounds:
    """Lower bounds of a stack in one mode, as arrays [tile size]. Bounds for each layer of the stack are arrays [layer,
    tile size].
    """

    energy_pj: Grid
    latency_cycles: Grid


def check_boundable(chain: Chain, profile: ModelProfile) -> None:
    """Raise InputError if the proofs of the bounds do not cover a chain. The error lists all reasons."""
    problems = []
    if not all(getattr(profile, name) for name in SWITCHES):
        problems.append(
            Problem("an optimum can be proven only under the model `corrected`", path="model", value=profile.name)
        )
    kind = chain.core.operational_array.kind
    if kind != DIGITAL:
        problems.append(
            Problem("an optimum can be proven only for digital arrays", path="operational_array", value=kind)
        )
    waiting = waiting_keys(chain.core) if chain.core.waits else ()
    if further := [*further_energy_terms(chain.core), *waiting, *further_latency_terms(chain.core)]:
        message = "an optimum can be proven only without static power, without waiting, and without terms of plug-ins"
        problems.append(Problem(message, path=chain.core.name, value=", ".join(further)))
    sides = {name for name, _ in chain.core.operational_array.dimensions}
    for entry in chain.layers:
        given = entry.constraints.spatial_mapping
        loops = [loop for _, factors in given for loop, _ in factors]
        if {name for name, _ in given} != sides or len(set(loops)) < len(loops) or any(len(f) > 1 for _, f in given):
            text = "the optimum needs a mapping file with one loop, or no loop ([]), for each side of the array"
            problems.append(Problem(text, path=f"{entry.layer.name}.spatial_mapping"))
    if problems:
        raise InputError(problems)


@dataclass(frozen=True)
class _Parts:
    """Parts of a stack in tiles. A part has all tiles of one kind along x and one kind along y.

    `owner` is an array [part] with the index of the tile size of a part. `times` is an array [part] with the number of
    tiles of a part.
    """

    owner: np.ndarray
    times: np.ndarray
    made: tuple[np.ndarray, np.ndarray]
    """Numbers of positions that a tile of a part makes: one array [part, tensor] for x and one for y."""
    read: tuple[np.ndarray, np.ndarray]

    def of(self, some: np.ndarray) -> "_Parts":
        """Parts that the mask `some` selects."""
        made, read = ((of[0][some], of[1][some]) for of in (self.made, self.read))
        return _Parts(self.owner[some], self.times[some], made, read)

    def total(self, values: np.ndarray, count: int) -> np.ndarray:
        """Sum of `values` over all tiles, as an array with one number for each of the `count` tile sizes. A part
        consists of equal tiles, and `values` has the value of one tile for each part.
        """
        return np.bincount(self.owner, self.times * values, count)


def _parts(chain: Chain, first: int, last: int, mode: str, tiles: np.ndarray) -> Iterator[tuple[slice, _Parts]]:
    """Pairs (slice, parts), one for each batch of tile sizes. The slice selects the batch from `tiles`. The parts are
    the groups of equal tiles into which these tile sizes cut the stack.
    """
    kinds, places = [], []
    for axis, keeps in enumerate(MODES[mode]):
        sizes, which = np.unique(tiles[:, axis], return_inverse=True)
        kinds.append(axis_kinds(chain, first, last, axis, keeps, sizes.tolist()))
        places.append(which)
    begin = [own.start[at] for own, at in zip(kinds, places, strict=True)]
    counts = [own.start[at + 1] - own.start[at] for own, at in zip(kinds, places, strict=True)]
    many = counts[0] * counts[1]
    ends = np.cumsum(many)
    start = 0
    while start < len(tiles):
        reach = (ends[start - 1] if start else 0) + PARTS_AT_ONCE
        stop = max(start + 1, int(np.searchsorted(ends, reach, "right")))
        some = slice(start, stop)
        owner = np.repeat(np.arange(stop - start), many[some])
        place = np.arange(len(owner)) - np.repeat(np.cumsum(many[some]) - many[some], many[some])
        high = counts[1][some][owner]
        own = (begin[0][some][owner] + place // high, begin[1][some][owner] + place % high)
        made, read = ((of[0][own[0]], of[1][own[1]]) for of in ([k.made for k in kinds], [k.read for k in kinds]))
        yield some, _Parts(owner, kinds[0].count[own[0]] * kinds[1].count[own[1]], made, read)
        start = stop


def stack_bounds(
    chain: Chain,
    first: int,
    last: int,
    mode: str,
    tiles: np.ndarray,
    known: StackBounds | None = None,
    excluded: Excluded | None = None,
    needs: tuple[int, int] = (1, 1),
) -> StackBounds:
    """Lower bounds of a stack of layers `first` to `last` in a mode. `tiles` is an array [place, 2] with the width and
    the height of each tile size.

    `known` has bounds [layer, place] that were computed earlier. These bounds are improved layer by layer, but only for
    tile sizes that are not yet excluded by the function `excluded`. `needs` has one number for the energy and one for
    the latency: 0 if the bounds of this quantity are not needed.
    """
    places, layers = MemoryPlaces(chain), chain.layers[first : last + 1]
    if known is None:
        known = StackBounds(*np.zeros((2, len(layers), len(tiles))))
    energy, latency = known.energy_pj.sum(axis=0), known.latency_cycles.sum(axis=0)
    weight_bits = sum(entry.weight_bits for entry in layers)
    largest_first = sorted(range(len(layers)), key=lambda i: -max(layers[i].input_bits, layers[i].output_bits))
    for some, parts in _parts(chain, first, last, mode, tiles):
        count = some.stop - some.start
        one, cycles = _fetched(places, first, parts.made[0][:, 0] * parts.made[1][:, 0])
        energy[some] += parts.total(one, count) * (1 - ROUNDING)
        latency[some] += parts.total(cycles, count) * (1 - ROUNDING)
        for i in largest_first:
            if excluded is not None:
                left = ~excluded(energy[some], latency[some])
                parts = parts.of(left[parts.owner])
            if not len(parts.owner):
                break
            sizes = TileSizes(
                (parts.made[0][:, i + 1], parts.made[1][:, i + 1]),
                (parts.read[0][:, i], parts.read[1][:, i]),
                i == len(layers) - 1,
            )
            loops = TileLoops(places, layers[i], sizes, weight_bits)
            if needs[0]:
                better = parts.total(least_energy_pj(loops), count) * (1 - ROUNDING)
                energy[some] += np.maximum(better - known.energy_pj[i, some], 0)
            if needs[1]:
                better = parts.total(least_latency_cycles(loops), count) * (1 - ROUNDING)
                latency[some] += np.maximum(better - known.latency_cycles[i, some], 0)
    return StackBounds(energy * (1 - ROUNDING), latency * (1 - ROUNDING))


def _fetched(places: MemoryPlaces, first: int, positions: Grid) -> tuple[Grid, Grid]:
    """Pair (energy in pJ, cycles) of the copy that fetches the input of a stack. `positions` is the number of input
    positions that the copy fetches."""
    chain = places.chain
    bits = positions * chain.layers[first].input_bits
    energy, cycles = np.zeros(bits.shape), np.zeros(bits.shape)
    room_below = -1.0
    for k in places.outputs:
        if places.exist_once[k] or k == places.top:
            lies_here = (bits > room_below) & ((bits <= places.sizes[k]) | (k == places.top))
            for hop in hops_between(chain.core, chain.output, places.top, chain.output, k):
                price = hop.read.word_pj / hop.read.wide_bits + hop.write.word_pj / hop.write.wide_bits
                energy += np.where(lies_here, bits * price, 0.0)
                cycles += np.where(lies_here, bits / min(hop.read.wide_bits, hop.write.wide_bits), 0.0)
            room_below = max(room_below, float(places.sizes[k]))
    return energy, cycles


def stack_floor(chain: Chain, first: int, last: int) -> tuple[float, float]:
    """Lower bounds (energy in pJ, latency in cycles) of a stack over all tile sizes and modes.

    The bounds are computed for tiles of one position that keep all data. Such tiles make the fewest positions in total,
    because larger tiles also make positions in the gaps between windows. The input of the stack must be read once from
    the outermost memory. The least energy of this read is added, unless the reads of the array already include it.
    """
    places = MemoryPlaces(chain)
    made = [_least_made(chain, first, last, axis) for axis in (0, 1)]
    weight_bits = sum(entry.weight_bits for entry in chain.layers[first : last + 1])
    energy = cycles = 0.0
    for i, entry in enumerate(chain.layers[first : last + 1]):
        outputs, inputs = ([np.array([own[j]]) for own in made] for j in (i + 1, i))
        sizes = TileSizes((outputs[0], outputs[1]), (inputs[0], inputs[1]), first + i == last)
        loops = TileLoops(places, entry, sizes, weight_bits, is_sum=True)
        energy += float(least_energy_pj(loops).min())
        cycles += float(least_latency_cycles(loops).min())
    if any(places.exist_once[k] for k in places.inputs[:-1]):  # else the reads of the array include this energy
        positions = 1
        for axis, own in enumerate(made):
            has_no_gaps = chain.layers[first].window(axis).stride == 1 and is_dense(chain.layers[first], axis)
            positions *= own[0] if has_no_gaps else min(own[0], own[1])
        energy += chain.layers[first].input_bits * positions * _least_bit_pj(chain, places.top, reads=True)
    return energy * (1 - ROUNDING), cycles * (1 - ROUNDING)


def _least_made(chain: Chain, first: int, last: int, axis: int) -> list[int]:
    """Lower bound of the number of positions that all tiles together make along an axis, for each tensor. The bound
    holds for any tile size."""
    tiles = axis_tiles(chain.windows(first, last, axis), 1, True)
    return [sum(counts) for counts in zip(*[tile.made for tile in tiles], strict=True)]


def _least_bit_pj(chain: Chain, memory: int, reads: bool) -> float:
    """Least energy in pJ to read or write one bit of activations, over the ports of a memory."""
    held = chain.core.memories[memory]
    cost = held.read_energy_pj if reads else held.write_energy_pj
    found = [
        cost / held.ports[place].bandwidth_max_bits
        for (operand, direction), place in held.port_of.items()
        if operand in (chain.activation, chain.output) and (direction in ("tl", "th")) == reads
    ]
    return min(found, default=0.0)


@dataclass(frozen=True)
class QuickBounds:
    """Lower bounds of the layers of a stack in one mode, as arrays [layer, width of a tile, height of a tile]. These
    bounds are quick to compute, but weaker than the bounds of `stack_bounds`.
    """

    energy_pj: np.ndarray
    latency_cycles: np.ndarray


@dataclass(frozen=True)
class _Along:
    """Numbers of positions, passes and tiles of one layer along one axis, summed over the tiles of each tile size. In
    one pass, the hardware array makes at most one position per lane along the axis. `positions` has the numbers of
    positions that the layer makes, as an array [tile size].
    """

    positions: np.ndarray
    passes: np.ndarray
    """Number of passes of the hardware array, as a NumPy array [n - 1, tile size]. Row n - 1 counts the passes of the
    tiles that use n lanes per pass (average over the passes, rounded up).
    """
    tiles: np.ndarray
    """Number of tiles, as an array [n - 1, tile size]. Row n - 1 counts the tiles with n lanes per pass. The number of
    lanes is the average over the passes of a tile, rounded up."""
    least_tiles: np.ndarray
    """Number of tiles, as an array [n - 1, tile size]. Row n - 1 counts the tiles with n lanes per pass. The number of
    lanes is the average over the passes of a tile, rounded down."""


def quick_bounds(chain: Chain, first: int, last: int, mode: str, sizes: tuple[np.ndarray, np.ndarray]) -> QuickBounds:
    """Quick lower bounds of the energy and the latency of layers `first` to `last` in a mode. `sizes` has the widths of
    tiles and the heights of tiles; each combination of a width and a height gets bounds. The copy that fetches the
    input of the first layer is not included."""
    keeps, places = MODES[mode], MemoryPlaces(chain)
    kinds = [axis_kinds(chain, first, last, axis, keeps[axis], sizes[axis].tolist()) for axis in (0, 1)]
    energy, latency = (np.zeros((last - first + 1, len(sizes[0]), len(sizes[1]))) for _ in range(2))
    for i, entry in enumerate(chain.layers[first : last + 1]):
        lanes = any_lanes(entry)
        given = [unrolled_factors(entry).get(name, 1) for name in AXES]
        x, y = (_sums(kinds[axis], i + 1, given[axis]) for axis in (0, 1))
        nothing = (np.zeros(1), np.zeros(1))
        one = TileSizes((np.ones(1), np.ones(1)), nothing, first + i == last)
        alone = least_energy_pj(TileLoops(places, entry, one, 0, is_sum=True), with_weights=False).min()
        energy[i] = alone * np.outer(x.positions, y.positions)
        loops = TileLoops(places, entry, TileSizes(lanes, nothing, first + i == last), 0, is_sum=True)
        each, spared = cycles_of_passes(loops)
        for cycles, own, other in (
            (each, x.passes, y.passes),
            (-spared, x.tiles, y.tiles),
            (loading_cycles(loops), x.least_tiles, y.least_tiles),
        ):
            table = np.broadcast_to(cycles, given[0] * given[1]).reshape(given[1], given[0])
            latency[i] += own.T @ table.T @ other
    return QuickBounds(energy * (1 - ROUNDING), latency * (1 - ROUNDING))


def _sums(kinds: AxisKinds, tensor: int, factor: int) -> _Along:
    """Counts for one layer along an axis: positions, passes and tiles. Each count is given for each tile size, summed
    over all tiles of the axis.

    `tensor` is the index of the layer's output in `kinds.made`. `factor` is the largest number of lanes of the layer
    along the axis.
    """
    made, count = kinds.made[:, tensor], kinds.count
    passes = np.ceil(made / np.minimum(factor, np.maximum(made, 1)))
    lanes = np.divide(made, passes, out=np.zeros_like(made), where=passes > 0)
    most, least = np.ceil(lanes * (1 - EXACT)), np.floor(lanes * (1 + EXACT))
    every = range(1, factor + 1)
    return _Along(
        _by_size(kinds, made * count),
        np.array([_by_size(kinds, np.where(most == n, passes * count, 0.0)) for n in every]),
        np.array([_by_size(kinds, np.where(most == n, count, 0.0)) for n in every]),
        np.array([_by_size(kinds, np.where(least == n, count, 0.0)) for n in every]),
    )


def _by_size(kinds: AxisKinds, values: np.ndarray) -> np.ndarray:
    """Sum of `values` over the kinds of each tile size, as an array [tile size]."""
    result: np.ndarray = np.add.reduceat(values, kinds.start[:-1])
    return result
