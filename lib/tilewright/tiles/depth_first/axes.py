"""Tiles along one axis: which positions of each tensor a tile makes, reads again and keeps (DeFiNES, section II-III).

Positions of the last tensor are cut; what each layer before must make follows from the windows, backwards. Tensor 0 is
the input of the stack, tensor i + 1 the output of its layer i.
"""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class AxisWindow:
    """What a layer reads along an axis: output o reads inputs o * stride - before ... o * stride - before + extent - 1,
    as far as these exist."""

    stride: int
    extent: int
    before: int
    """Positions of padding before the first input."""
    input_size: int
    output_size: int


@dataclass(frozen=True)
class AxisTile:
    """One tile along an axis, in positions."""

    made: tuple[int, ...]
    """[tensor] made by this tile; of tensor 0: fetched. 0 where all that the tile needs is kept."""
    read: tuple[int, ...]
    """[layer] part of its input that is made or fetched by this tile, and kept from before."""
    reused: tuple[int, ...]
    """[layer] part of its input that is kept from the tile before."""
    kept: tuple[int, ...]
    """[layer] part of its input that is made by this tile and kept for the next one."""
    is_first: bool
    is_last: bool


def tile_ends(size: int, tile: int) -> list[int]:
    """Where tiles end: the remainder comes first (DeFiNES, section IV)."""
    tile = min(tile, size)
    first = size % tile or tile
    return list(range(first, size + 1, tile))


@lru_cache(maxsize=65536)
def axis_tiles(windows: tuple[AxisWindow, ...], tile: int, keeps: bool) -> tuple[AxisTile, ...]:
    """The tiles of a stack along an axis, in order; `keeps`: what the next tile needs too is kept, else made again."""
    count = len(windows)
    ends = tile_ends(windows[-1].output_size, tile)
    done = [0] * (count + 1)  # positions of each tensor before which all that is needed has been made
    steps: list[tuple[list[int], list[int], list[int]]] = []
    start = 0
    for end in ends:
        made, read, reused = [0] * (count + 1), [0] * count, [0] * count
        first, last = start, end
        for i in range(count, -1, -1):
            begin = max(first, done[i]) if keeps else first
            if i < count:
                read[i], reused[i] = last - first, begin - first
            made[i] = max(0, last - begin)
            if keeps:
                done[i] = max(done[i], last)
            if i == 0:
                break
            if made[i] == 0:  # nothing to make of it, so nothing to read for it either
                first = last = done[i - 1]
                continue
            window = windows[i - 1]
            low, high = begin * window.stride - window.before, (last - 1) * window.stride - window.before
            first = min(max(low, 0), window.input_size)
            last = max(first, min(high + window.extent, window.input_size))
        steps.append((made, [read[i] if made[i + 1] else 0 for i in range(count)], reused))
        start = end
    return tuple(_tile(steps, place, count, keeps) for place in range(len(steps)))


def _tile(steps: list[tuple[list[int], list[int], list[int]]], place: int, count: int, keeps: bool) -> AxisTile:
    made, read, reused = steps[place]
    is_last = place == len(steps) - 1
    kept = [0] * count
    if keeps and not is_last:
        kept = [min(made[i], steps[place + 1][2][i]) for i in range(count)]
    return AxisTile(tuple(made), tuple(read), tuple(reused), tuple(kept), place == 0, is_last)
