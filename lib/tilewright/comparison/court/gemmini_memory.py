"""What Gemmini's DMA asks of memory: requests, beats and cache lines of the rows of a tile.

A row (the channels of a pixel, or the output channels of a weight) is fetched in requests of 16, 32 or 64 bytes that
begin at a multiple of their size (generator: DMA.scala, StreamReader). Behind the bus are an L2 of 512 KB, an LLC of
4 MB and DRAM (defaults of the generator and of FireSim's memory model). From which of them a load is served is decided
by reuse distance: the bytes that the loops between two loads of the same data touch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

LINE_BYTES = 64
REQUEST_BYTES = (16, 32, 64)
L2_BYTES, LLC_BYTES = 512 * 1024, 4 * 1024 * 1024


@dataclass(frozen=True)
class RowTraffic:
    """What a row of a tile costs on average over the tiles of a tensor."""

    beats: float
    """Of 16 bytes."""
    lines: float
    """Cache lines that are touched anew: neighbours share them if the tile has whole rows."""


@cache
def row_traffic(row_bytes: int, tile_bytes: int, most_bytes: int) -> RowTraffic:
    """Traffic of a row of `tile_bytes` out of rows of `row_bytes`, moved in commands of at most `most_bytes`."""
    requests = beats = 0.0
    starts = range(0, row_bytes, tile_bytes)
    for start in starts:
        width = min(tile_bytes, row_bytes - start)
        for offset in range(0, width, most_bytes):
            one = _aligned(start + offset, row_bytes, min(most_bytes, width - offset))
            requests, beats = requests + one[0], beats + one[1]
    whole = tile_bytes >= row_bytes
    return RowTraffic(beats / len(starts), row_bytes / LINE_BYTES if whole else requests / len(starts))


@cache
def _aligned(start: int, stride: int, count: int) -> tuple[float, float]:
    """Requests and beats of `count` bytes from `start` on, on average over rows that are `stride` bytes apart."""
    period = LINE_BYTES // math.gcd(stride, LINE_BYTES)
    requests = beats = 0
    for row in range(period):
        place, left = (start + row * stride) % LINE_BYTES, count
        while left > 0:
            got, size = max((min(size - place % size, left), -size) for size in REQUEST_BYTES)
            requests, beats = requests + 1, beats - size // REQUEST_BYTES[0]
            place, left = (place + got) % LINE_BYTES, left - got
    return requests / period, beats / period


@dataclass(frozen=True)
class Served:
    """Shares of the loads of an operand that L2 misses."""

    llc: float
    dram: float


def served_from(
    relevant: frozenset[str], loops: Sequence[tuple[str, int]], footprints: Sequence[float], whole: float
) -> Served:
    """Where the loads of an operand come from, one load in each iteration of `loops` (inner to outer).

    `footprints[i]` are the bytes that the loops inside of loop i touch. The first load of data finds it where the run
    before has left it: there is one in these measurements.
    """
    total = math.prod(size for _, size in loops)
    again = 0
    loads: dict[bool | None, float] = {None: 0.0, False: 0.0, True: 0.0}
    for place, (name, size) in enumerate(loops):
        if name in relevant:
            continue
        outside = math.prod(other for _, other in loops[place + 1 :])
        inside = math.prod(other for inner, other in loops[:place] if inner in relevant)
        count = (size - 1) * outside * inside
        loads[_level(footprints[place])] += count
        again += count
    loads[_level(whole)] += total - again
    return Served(loads[False] / total, loads[True] / total)


def _level(footprint: float) -> bool | None:
    """None: L2; False: LLC; True: DRAM."""
    return None if footprint <= L2_BYTES else footprint > LLC_BYTES


def footprint_bytes(size: Mapping[str, int], stride: tuple[int, int], inputs: tuple[int, int]) -> float:
    """Bytes of weights, inputs (of at most `inputs` pixels, x and y) and outputs of a piece of a layer."""
    weights = size["K"] * size["C"] * size["FX"] * size["FY"]
    columns = min(inputs[0], (size["OX"] - 1) * stride[0] + size["FX"])
    rows = min(inputs[1], (size["OY"] - 1) * stride[1] + size["FY"])
    return weights + size["B"] * size["C"] * columns * rows + size["B"] * size["OX"] * size["OY"] * size["K"]
