"""Search of Gemmini's driver for the tile of a convolution, and the number of tiles that it tries.

For each layer, the driver searches on the host before it issues the first call. This module restates the search of
`tiled_conv_auto` in the driver (gemmini-rocc-tests 959b23f, gemmini.h). The driver was compiled for a scratchpad of 256
KB and accumulators of 64 KB, each used in two halves.
"""

from collections.abc import Mapping

TILED = ("B", "OY", "OX", "K", "FY", "FX", "C")
"""Loop dimensions of a tile, in the order in which the search tries them."""
BLOCK = 16
"""Number of channels in a row of the scratchpad and of the accumulators."""
SCRATCHPAD_ROWS = 256 * 1024 // BLOCK // 2
SUM_BYTES = 4
ACCUMULATOR_ROWS = 64 * 1024 // (BLOCK * SUM_BYTES) // 2
_CHANNELS = ("K", "C")


def driver_tile(size: Mapping[str, int], stride: int) -> tuple[dict[str, int], int]:
    """Pair (tile that the driver chooses for a convolution, number of tiles that it tries).

    The driver begins with the whole layer. It shrinks the longest dimension until the tile fits: channels by whole
    blocks, other dimensions by one. Columns are not shrunk below one block as long as rows can be shrunk. The driver
    then grows the columns. At last, it grows all dimensions in turn, by one each time, until no dimension can grow.
    """
    tile = {name: size[name] for name in TILED}
    tried = 0
    while not _fits(tile, stride):
        longest = max((name for name in TILED if not _keeps(tile, name)), key=lambda name: tile[name])
        tile[longest] = _shrunk(longest, tile[longest])
        tried += 1
    for grown in (("OX",), TILED):
        grows = True
        while grows:
            grows = False
            for name in grown:
                larger = {**tile, name: tile[name] + 1}
                if larger[name] > size[name]:
                    continue
                tried += 1
                if _fits(larger, stride):
                    tile, grows = larger, True
    return tile, tried


def _keeps(tile: Mapping[str, int], name: str) -> bool:
    """True if the search does not shrink this dimension of a tile."""
    return name == "OX" and tile["OX"] <= BLOCK and tile["OY"] > 1


def _shrunk(name: str, size: int) -> int:
    """Next smaller size of a dimension of the tile."""
    if name not in _CHANNELS:
        return size - 1
    return max(1, (size - 1) // BLOCK * BLOCK)


def _fits(tile: Mapping[str, int], stride: int) -> bool:
    """True if a tile fits: its inputs and weights into a half of the scratchpad, and its outputs into a half of the
    accumulators.
    """
    # The driver counts a whole stride for the last output, too.
    rows, columns = (tile[o] * stride + tile[f] - 1 for o, f in (("OY", "FY"), ("OX", "FX")))
    inputs = tile["B"] * rows * columns
    weights = _blocks(tile["K"]) * tile["FX"] * tile["FY"] * tile["C"]
    outputs = _blocks(tile["K"]) * tile["B"] * tile["OY"] * tile["OX"]
    return _blocks(tile["C"]) * inputs + weights <= SCRATCHPAD_ROWS and outputs <= ACCUMULATOR_ROWS


def _blocks(channels: int) -> int:
    return -(-channels // BLOCK)
