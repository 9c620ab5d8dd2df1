"""Quick lower bounds of stacks in tiles of all widths and heights: products of a number of each width and one of each
height (docs/depth-first.md, "The optimum").
"""

from dataclasses import dataclass

import numpy as np

from tilewright.depth_first.axis_kinds import AxisKinds, axis_kinds
from tilewright.depth_first.chain import AXES, Chain
from tilewright.depth_first.locations import Places
from tilewright.depth_first.tile_energy_bounds import least_energy_pj
from tilewright.depth_first.tile_latency_bounds import cycles_of_passes, loading_cycles
from tilewright.depth_first.tile_loops import EXACT, ROUNDING, TileLoops, TileSizes, any_lanes, unrolled_factors
from tilewright.depth_first.tiles import MODES


@dataclass(frozen=True)
class QuickBounds:
    """Lower bounds of the layers of a stack in a mode: [layer, width of a tile, height of a tile]."""

    energy_pj: np.ndarray
    latency_cycles: np.ndarray


@dataclass(frozen=True)
class _Along:
    """Sums over the tiles of a layer along an axis, for each size of tiles."""

    positions: np.ndarray
    passes: np.ndarray
    """[lanes - 1, size]: passes of tiles with so many lanes at most at a time."""
    tiles: np.ndarray
    """[lanes - 1, size]: tiles with so many lanes at most at a time."""
    least_tiles: np.ndarray
    """[lanes - 1, size]: tiles with so many lanes at least at a time."""


def quick_bounds(chain: Chain, first: int, last: int, mode: str, sizes: tuple[np.ndarray, np.ndarray]) -> QuickBounds:
    """The bounds of layers `first` to `last`; what the fetch of their input costs is left out."""
    keeps, places = MODES[mode], Places(chain)
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
    """What the tiles of a layer that makes a tensor add up to along an axis, with so many lanes at most."""
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
    """[size of a tile] the sum over its kinds."""
    result: np.ndarray = np.add.reduceat(values, kinds.start[:-1])
    return result
