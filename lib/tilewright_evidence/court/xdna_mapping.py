"""Conversion of matrix products on AMD XDNA and XDNA2 into layers, mappings and hardware files of tilewright.

A chip is described as one array. Its first two sides are the rows and columns of cores; its other sides are the
multipliers of a core. The mapping has the tiles of the measurement (Taka et al., section 4):

* The rows of the output are divided among rows of cores, and its columns among columns of cores. The reduction is a
  temporal loop.
* A core keeps a tile of outputs in its memory. In each step, its kernel multiplies a tile of inputs by a tile of
  weights, and adds the products to these outputs, block by block. The sums of a block are loaded and stored in each
  step.
* The memory tiles hold the inputs and weights of some steps.
"""

from copy import deepcopy
from functools import cache
from typing import NamedTuple

import yaml
from tilewright.base.units import parse_frequency_mhz
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator

from tilewright_evidence.court.case import DATA
from tilewright_evidence.court.mapped_layer import MappedLayer, YamlTable, product_layer

DIMENSIONS = ("B", "K", "C")
"""Loop dimensions of a product: rows of the output, columns of the output, reduction."""
FORMATS = {"int8-int8": (8, 8), "int8-int16": (8, 16), "int8-int32": (8, 32), "bf16-bf16": (16, 16)}
"""Pair (bits of an input or weight, bits of an output), by name of the precision."""
BF16 = "bf16-bf16"
SUM_BITS_OF_FILE = 16
"""Number of bits of an output for which the accumulators in the unchanged hardware files are sized."""


class Tiles(NamedTuple):
    """Tile sizes of a product, in elements. The first two are the rows and columns of the output in a core. The others
    are the lengths of the reduction in a core and in the memory tiles.
    """

    rows: int
    depth: int
    columns: int
    depth_in_l2: int

    def steps_in_l2(self, depth: int) -> int:
        """Largest number of steps of a core whose data the memory tiles hold at the same time. Along the reduction, the
        total length of these steps must be at most `depth_in_l2`, and must divide `depth`, the length of the whole
        reduction.
        """
        most = max(1, self.depth_in_l2 // self.depth)
        return next(steps for steps in range(most, 0, -1) if depth % (steps * self.depth) == 0)


@cache
def written_document(device: str) -> YamlTable:
    """Content of the hardware file of a device."""
    document: YamlTable = yaml.safe_load((DATA / "hardware" / f"{device.lower()}.yaml").read_text())
    return document


def clock_mhz(device: str) -> float:
    """Clock frequency in the hardware file, in MHz."""
    return parse_frequency_mhz(written_document(device)["clock_frequency"])


def xdna_document(device: str, precision: str) -> YamlTable:
    """Hardware file of a device, with accumulators for products of a precision. In every precision, the accumulators
    have room for the same number of outputs as in the unchanged file.
    """
    document = deepcopy(written_document(device))
    document["memories"]["accumulators"]["size"] = _outputs(device) * FORMATS[precision][1]
    return document


def _outputs(device: str) -> int:
    """Number of outputs for which the accumulators have room."""
    size: int = written_document(device)["memories"]["accumulators"]["size"]
    return size // SUM_BITS_OF_FILE


@cache
def xdna_core(device: str, precision: str) -> Core:
    """Core in the hardware file that `xdna_document` returns."""
    return read_accelerator(xdna_document(device, precision)).cores[0]


def lanes_of(device: str, precision: str) -> tuple[int, int, int]:
    """Numbers of multipliers of a core that a product uses, as a triple (along the reduction, along the rows of the
    output, along the columns of the output).
    """
    depth, high, wide = written_document(device)["operational_array"]["sizes"][2:]
    return depth, high, wide // 2 if (device, precision) == ("XDNA", BF16) else wide


def misfits(device: str, sizes: tuple[int, int, int], tiles: Tiles, precision: str) -> list[str]:
    """Reasons why a product does not fit its tiles. Its sizes (m, k, n) must be multiples of the tiles on all cores,
    and the tiles must be multiples of the numbers of multipliers.
    """
    rows, columns = written_document(device)["operational_array"]["sizes"][:2]
    depth, high, wide = lanes_of(device, precision)
    pairs = {
        "m": (sizes[0], tiles.rows * rows),
        "k": (sizes[1], tiles.depth),
        "n": (sizes[2], tiles.columns * columns),
        "m_ct": (tiles.rows, high),
        "k_ct": (tiles.depth, depth),
        "n_ct": (tiles.columns, wide),
    }
    found = [
        f"{name} {size} (allowed: multiples of {step})"
        for name, (size, step) in pairs.items()
        if not step or size % step
    ]
    if not found and not _blocks(device, tiles, precision):
        found = [f"no block of {_outputs(device)} outputs divides m_ct {tiles.rows} and n_ct {tiles.columns}"]
    return found


def _blocks(device: str, tiles: Tiles, precision: str) -> list[tuple[int, int]]:
    """Blocks (rows, columns) of outputs that divide a tile and fill the accumulators, the best block first. Blocks
    whose number of columns is twice the number of multipliers along the columns (`lanes_of`) come before all other
    blocks. Within each of these two groups, squarer blocks come first.
    """
    _, high, wide = lanes_of(device, precision)
    outputs = _outputs(device)
    found = [
        (outputs // columns, columns)
        for columns in range(wide, outputs + 1, wide)
        if outputs % columns == 0 and outputs // columns % high == 0
        if tiles.rows % (outputs // columns) == 0 and tiles.columns % columns == 0
    ]
    return sorted(found, key=lambda one: (one[1] != 2 * wide, max(one) / min(one), one))


@cache
def mapping_of(device: str, sizes: tuple[int, int, int], tiles: Tiles, precision: str) -> MappedLayer:
    """Mapping of a product of sizes (m, k, n) with its tiles."""
    rows, columns = written_document(device)["operational_array"]["sizes"][:2]
    depth, high, wide = lanes_of(device, precision)
    block_high, block_wide = _blocks(device, tiles, precision)[0]
    steps = tiles.steps_in_l2(sizes[1])
    levels = (
        (("K", block_wide // wide), ("B", block_high // high), ("C", tiles.depth // depth)),
        (("B", tiles.rows // block_high), ("K", tiles.columns // block_wide)),
        (("C", steps),),
        (("C", sizes[1] // (tiles.depth * steps)),),
        (("K", sizes[2] // (tiles.columns * columns)), ("B", sizes[0] // (tiles.rows * rows))),
    )
    ends, order = [], []
    for loops in levels:
        order += [loop for loop in loops if loop[1] > 1]
        ends.append(len(order))
    block, kernel, in_l2, reduced, total = ends
    boundaries = (("O", (block, reduced, reduced, total)), ("W", (kernel, in_l2, total)), ("I", (kernel, in_l2, total)))
    sides = (("D1", "B", rows), ("D2", "K", columns), ("D3", "C", depth), ("D4", "B", high), ("D5", "K", wide))
    input_bits, output_bits = FORMATS[precision]
    layer = product_layer(
        {"B": sizes[0], "K": sizes[2], "C": sizes[1]},
        (("W", input_bits), ("I", input_bits), ("O", output_bits), ("O_final", output_bits)),
    )
    unrolling = tuple((side, ((name, count),)) for side, name, count in sides)
    return MappedLayer(layer, unrolling, tuple(order), boundaries, xdna_core(device, precision))
