"""Lower bounds of what stacks cost depth-first, for all sizes of tiles at once (docs/depth-first.md, "The optimum").

Every term is a product of a number of the widths of tiles and one of their heights, so a bound of a thousand widths
and a thousand heights is a few products of vectors for each layer and each pair of kinds of tiles.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.cost.energy_terms import ENERGY_TERMS
from tilewright.depth_first.axes import axis_tiles
from tilewright.depth_first.chain import AXES, Chain
from tilewright.depth_first.copies import hops_between
from tilewright.depth_first.locations import Places
from tilewright.depth_first.tile_bounds import Grid, LayerBound, TileSizes, is_dense, unrolled_factors
from tilewright.depth_first.tiles import MODES
from tilewright.errors import InputError, Problem
from tilewright.hardware.core import DIGITAL
from tilewright.profile import SWITCHES, ModelProfile

ROUNDING = 1e-9
"""Relative: bounds are lowered by as much, so that sums of numbers in another order are never below them."""


@dataclass(frozen=True)
class StackBounds:
    """Lower bounds of a stack in a mode."""

    energy_pj: Grid
    latency_cycles: Grid


@dataclass(frozen=True)
class _Kinds:
    """Kinds of tiles along an axis: [kind, size of a tile, tensor or layer]."""

    made: np.ndarray
    read: np.ndarray
    count: np.ndarray
    """[kind, size of a tile]"""


def check_boundable(chain: Chain, profile: ModelProfile) -> None:
    """Raise InputError for all that the bounds are not proven for."""
    problems = []
    if not all(getattr(profile, name) for name in SWITCHES):
        problems.append(Problem("the optimum is proven for the model `corrected`", path="model", value=profile.name))
    if chain.core.operational_array.kind != DIGITAL or ENERGY_TERMS.names:
        problems.append(Problem("the optimum is proven for digital arrays without further terms of the energy"))
    sides = {name for name, _ in chain.core.operational_array.dimensions}
    for entry in chain.layers:
        given = entry.constraints.spatial_mapping
        loops = [loop for _, factors in given for loop, _ in factors]
        if {name for name, _ in given} != sides or len(set(loops)) < len(loops) or any(len(f) > 1 for _, f in given):
            text = "the optimum needs a mapping file that gives each side of the array one loop, or none as []"
            problems.append(Problem(text, path=f"{entry.layer.name}.spatial_mapping"))
    if problems:
        raise InputError(problems)


def stack_bounds(chain: Chain, first: int, last: int, mode: str, sizes: tuple[np.ndarray, np.ndarray]) -> StackBounds:
    """The bounds of layers `first` to `last` in a mode, for each width and height of tiles."""
    keeps = MODES[mode]
    x, y = (_kinds(chain, first, last, axis, keeps[axis], sizes[axis].tolist()) for axis in (0, 1))
    shape = (x.count.shape[1], y.count.shape[1])
    energy, latency = np.zeros(shape), np.zeros(shape)
    weight_bits = sum(entry.weight_bits for entry in chain.layers[first : last + 1])
    for a in range(len(x.count)):
        for b in range(len(y.count)):
            times = np.outer(x.count[a], y.count[b])
            if not times.any():
                continue
            one, cycles = _fetched(chain, first, np.outer(x.made[a, :, 0], y.made[b, :, 0]))
            for i in range(last - first + 1):
                made, read = (x.made[a, :, i + 1], y.made[b, :, i + 1]), (x.read[a, :, i], y.read[b, :, i])
                tile = TileSizes(made, read, i == last - first)
                layer = LayerBound(Places(chain), chain.layers[first + i], tile, weight_bits)
                one, cycles = one + layer.energy_pj(), cycles + layer.latency_cycles()
            energy += times * one
            latency += times * cycles
    return StackBounds(energy * (1 - ROUNDING), latency * (1 - ROUNDING))


def least_passes(chain: Chain, first: int, last: int, mode: str, sizes: tuple[np.ndarray, np.ndarray]) -> Grid:
    """Cycles of the loops of a stack alone, for each width and height of tiles: a quick bound of the latency."""
    keeps = MODES[mode]
    x, y = (_kinds(chain, first, last, axis, keeps[axis], sizes[axis].tolist()) for axis in (0, 1))
    cycles = np.zeros((len(sizes[0]), len(sizes[1])))
    for i, entry in enumerate(chain.layers[first : last + 1]):
        given = unrolled_factors(entry)
        along = []
        for name, kinds in zip(AXES, (x, y), strict=True):
            made = kinds.made[:, :, i + 1]
            passes = np.ceil(made / np.minimum(given.get(name, 1), np.maximum(made, 1)))
            along.append((passes * kinds.count).sum(axis=0))
        rest = [np.ceil(size / min(given.get(d, 1), size)) for d, size in entry.layer.loop_sizes if d not in AXES]
        cycles += np.outer(along[0], along[1]) * float(np.prod(rest))
    return cycles * (1 - ROUNDING)


def _kinds(chain: Chain, first: int, last: int, axis: int, keeps: bool, tiles: list[int]) -> _Kinds:
    windows = chain.windows(first, last, axis)
    size, layers = len(tiles), len(windows)
    found: list[dict[tuple[tuple[int, ...], tuple[int, ...]], int]] = []
    for tile in tiles:
        counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for one in axis_tiles(windows, tile, keeps):
            key = (one.made, one.read)
            counts[key] = counts.get(key, 0) + 1
        found.append(counts)
    most = max(map(len, found))
    made, read = np.zeros((most, size, layers + 1)), np.zeros((most, size, layers))
    count = np.zeros((most, size))
    for place, counts in enumerate(found):
        for kind, ((own, taken), times) in enumerate(counts.items()):
            made[kind, place], read[kind, place], count[kind, place] = own, taken, times
    return _Kinds(made, read, count)


def _fetched(chain: Chain, first: int, positions: Grid) -> tuple[Grid, Grid]:
    """Energy and cycles of the copy that fetches the input of a stack."""
    places = Places(chain)
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
    """Lower bounds of energy and latency of a stack, whatever its tiles and mode.

    Tiles together make at least what tiles of one position make that keep everything, and read all of its input from
    the outermost memory. Larger tiles also make what windows with gaps between them skip.
    """
    places = Places(chain)
    made = [_least_made(chain, first, last, axis) for axis in (0, 1)]
    weight_bits = sum(entry.weight_bits for entry in chain.layers[first : last + 1])
    energy = cycles = 0.0
    for i, entry in enumerate(chain.layers[first : last + 1]):
        outputs, inputs = ([np.array([own[j]]) for own in made] for j in (i + 1, i))
        sizes = TileSizes((outputs[0], outputs[1]), (inputs[0], inputs[1]), first + i == last)
        layer = LayerBound(places, entry, sizes, weight_bits, is_sum=True)
        energy += float(layer.energy_pj()[0, 0])
        cycles += float(layer.latency_cycles()[0, 0])
    positions = 1
    for axis, own in enumerate(made):
        positions *= own[0] if is_dense(chain.layers[first], axis) else min(own[0], own[1])
    energy += chain.layers[first].input_bits * positions * _least_bit_pj(chain, places.top, reads=True)
    return energy * (1 - ROUNDING), cycles * (1 - ROUNDING)


def _least_made(chain: Chain, first: int, last: int, axis: int) -> list[int]:
    """[tensor] positions along an axis that any tiles make."""
    tiles = axis_tiles(chain.windows(first, last, axis), 1, True)
    return [sum(counts) for counts in zip(*[tile.made for tile in tiles], strict=True)]


def _least_bit_pj(chain: Chain, memory: int, reads: bool) -> float:
    """Energy of a bit of activations that is read from, or written to, a memory, through its cheapest port."""
    held = chain.core.memories[memory]
    cost = held.read_energy_pj if reads else held.write_energy_pj
    found = [
        cost / held.ports[place].bandwidth_max_bits
        for (operand, direction), place in held.port_of.items()
        if operand in (chain.activation, chain.output) and (direction in ("tl", "th")) == reads
    ]
    return min(found, default=0.0)
