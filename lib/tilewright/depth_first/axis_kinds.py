"""Kinds of tiles along an axis, for many sizes of tiles at once."""

from dataclasses import dataclass

import numpy as np

from tilewright.depth_first.axes import axis_tiles
from tilewright.depth_first.chain import Chain


@dataclass(frozen=True)
class AxisKinds:
    """Kinds of tiles along an axis, those of a size of tiles one after the other."""

    made: np.ndarray
    """[kind, tensor]"""
    read: np.ndarray
    """[kind, layer]"""
    count: np.ndarray
    """[kind] tiles of it."""
    start: np.ndarray
    """[size of a tile] where its kinds begin, and one more: where the last ones end."""


def axis_kinds(chain: Chain, first: int, last: int, axis: int, keeps: bool, tiles: list[int]) -> AxisKinds:
    """The kinds of tiles of layers `first` to `last` along an axis; `keeps`: what neighbours need too is kept."""
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
