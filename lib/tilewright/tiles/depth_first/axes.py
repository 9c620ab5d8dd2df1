"""Tiles along one axis, with the positions of each tensor that a tile makes, reads again and keeps (DeFiNES, sections
II-III).

The output of the last layer is cut into tiles. The windows of the layers then determine, from the last layer back to
the first, which positions each layer must make. Tensor 0 is the input of the stack, and tensor i + 1 is the output of
layer i of the stack.
"""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class AxisWindow:
    """Window that a layer reads along an axis.

    For output o, the window has the inputs from o * stride - before to o * stride - before + extent - 1. Inputs outside
    the tensor are left out.
    """

    stride: int
    extent: int
    before: int
    """Number of padding positions before the first input."""
    input_size: int
    output_size: int


@dataclass(frozen=True)
class AxisTile:
    """Tile along one axis, described by numbers of positions."""

    made: tuple[int, ...]
    """Number of positions that this tile makes, for each tensor. Positions of tensor 0, the input of the stack, are
    fetched instead. The number is 0 if previous tiles have kept all positions of the tensor that this tile needs.
    """
    read: tuple[int, ...]
    """Number of input positions that each layer reads: positions that this tile makes or fetches, and positions that
    the previous tile has kept."""
    reused: tuple[int, ...]
    """Number of input positions of each layer that were kept from the previous tile."""
    kept: tuple[int, ...]
    """Number of input positions of each layer that are kept for the next tile."""
    is_first: bool
    is_last: bool


def tile_ends(size: int, tile: int) -> list[int]:
    """End positions of the tiles along an axis. If `tile` does not divide `size`, the first tile is smaller than the
    others (DeFiNES, section IV).
    """
    tile = min(tile, size)
    first = size % tile or tile
    return list(range(first, size + 1, tile))


@lru_cache(maxsize=65536)
def axis_tiles(windows: tuple[AxisWindow, ...], tile: int, keeps: bool) -> tuple[AxisTile, ...]:
    """Tiles of a stack along an axis, in order.

    If `keeps` is true, positions that the next tile also needs are kept. Otherwise, the next tile makes these positions
    again.
    """
    count = len(windows)
    ends = tile_ends(windows[-1].output_size, tile)
    done = [0] * (count + 1)  # [tensor] all needed positions before this one have been made
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
            if made[i] == 0:  # a layer that makes no positions reads none
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
