"""Conversion of matrix products on Tenstorrent chips into layers, mappings and hardware files of tilewright.

A chip is described as one array. Its first two sides are the rows and columns of cores; its other sides are the
multipliers of a core. A memory that serves the first two sides sends equal data to many cores in one transfer
(multicast).

The program of the measurements fixes the mapping of a product:

* The rows of the output are divided among rows of cores, and its columns among columns of cores.
* A core computes its part of the output in blocks, and each block in steps along the reduction. For each step, one core
  of each row sends inputs to the row, and one core of each column reads weights and sends them to the column.
* Within a step, a core computes subblocks of at most eight tiles of 32 x 32 outputs, whose sums stay in registers.
"""

import csv
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import yaml
from tilewright.base.units import parse_frequency_mhz, parse_size_bits
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator

from tilewright_evidence.court.case import DATA
from tilewright_evidence.court.mapped_layer import MappedLayer, YamlTable, product_layer, with_times, without_keys

DIMENSIONS = ("B", "K", "C")
"""Loop dimensions of a product: rows of the output, columns of the output, reduction."""
TILE = 32
FORMATS = {"BFLOAT16": (16, 16), "BFLOAT8_B": (9, 8.5), "BFLOAT4_B": (5, 4.5)}
"""Pair (bits of an element in the layer, exact bits of an element), by format. The exact number includes the element's
share of a common exponent. A layer allows only whole bits, so its number is rounded up.
"""
PASSES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
"""Number of passes over the multipliers for one product of two tiles, by fidelity. A pass multiplies only some bits of
the elements. In the mapping, a product with p passes uses 1 / p of the multipliers along the reduction.
"""
SUM_BITS = 16
CALL, COMMAND, REQUEST, UNPACK = (
    "call_cycles",
    "command_latency_cycles",
    "request_latency_cycles",
    "bandwidth_max of l1.r_port_1",
)
"""Numbers of the hardware file that are fitted to measurements."""
SUBBLOCKS = (
    *((4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6), (5, 1), (1, 5)),
    *((2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1)),
)
"""Sizes of subblocks in tiles, as pairs (rows, columns), in the order in which the program tries them."""
DEFAULT_BLOCK = 16
"""Threshold, in tiles, for dividing the output only by columns. The library does this if the output has at most this
number of rows of tiles, and more than this number of columns of tiles.
"""


class Place(NamedTuple):
    """Format of a product, and memories of its inputs and outputs: the L1 memories of the cores (True), or the DRAM
    (False).
    """

    dtype: str
    inputs_in_l1: bool
    outputs_in_l1: bool
    one_row: bool = False
    """True if the output is divided only by columns. One core then sends the inputs to all cores."""


@dataclass(frozen=True)
class GridPlan:
    """Division of a product among cores, and into blocks in time. Sizes are in tiles of 32 x 32 elements."""

    rows: int
    """Number of parts into which the rows of the output are divided. Each row of cores computes one part."""
    columns: int
    block: tuple[int, int, int]
    """Size of a block on a core: rows of the output, columns of the output, and length of a step along the
    reduction.
    """
    blocks: tuple[int, int, int]
    """Numbers of blocks on a core along rows and columns, and number of steps along the reduction."""
    subblock: tuple[int, int]


@cache
def written_document(device: str) -> YamlTable:
    """Content of the hardware file of a device."""
    document: YamlTable = yaml.safe_load((DATA / "hardware" / f"tenstorrent_{device}.yaml").read_text())
    return document


@cache
def _written_shards() -> YamlTable:
    """Description of a memory for each device, by name of the device. This one memory stands for the L1 memories of all
    cores.
    """
    document: YamlTable = yaml.safe_load((DATA / "hardware" / "tenstorrent_shards.yaml").read_text())
    return document


@cache
def clock_mhz(device: str) -> float:
    """Clock frequency in the hardware file, in MHz."""
    return parse_frequency_mhz(written_document(device)["clock_frequency"])


def written_values(device: str) -> dict[str, float]:
    """Values that the hardware file has for the fitted numbers, by name of the number."""
    document = written_document(device)
    return {
        CALL: document[CALL],
        COMMAND: document["operational_array"][COMMAND],
        REQUEST: document["memories"]["dram"][REQUEST],
        UNPACK: _unpack_port(document)["bandwidth_max"],
    }


def _unpack_port(document: YamlTable) -> YamlTable:
    port: YamlTable = document["memories"]["l1"]["ports"][0]
    return port


def tenstorrent_document(device: str, place: Place, values: Mapping[str, float] | None = None) -> YamlTable:
    """Hardware file of a device for products whose inputs and outputs lie in the memories of `place`. `values` has new
    values for the fitted numbers, by name of the number.
    """
    document = deepcopy(written_document(device))
    chosen = written_values(device) | dict(values or {})
    memories, dram = document["memories"], document["memories"]["dram"]
    document[CALL] = chosen[CALL]
    document["operational_array"][COMMAND] = chosen[COMMAND]
    dram[REQUEST] = chosen[REQUEST]
    tile = TILE * TILE * FORMATS[place.dtype][0]
    dram["burst"] = -(-tile // -(-tile // parse_size_bits(dram["burst"])))
    _unpack_port(document)["bandwidth_max"] = round(chosen[UNPACK])
    kept_in_l1 = {"I1": place.inputs_in_l1, "O": place.outputs_in_l1}
    if any(kept_in_l1.values()):
        shards = deepcopy(_written_shards()[device])
        for operand, is_kept in kept_in_l1.items():
            _without(dram if is_kept else shards, operand)
        del memories["dram"]
        memories |= {"shards": shards, "dram": dram}  # from the inside to the outside
    return document


def _without(memory: YamlTable, operand: str) -> None:
    """Remove an operand from the description of a memory, and from the ports of this memory."""
    memory["operands"] = [one for one in memory["operands"] if one != operand]
    for port in memory["ports"]:
        port["allocation"] = [link for link in port["allocation"] if not link.startswith(f"{operand},")]
    memory["ports"] = [port for port in memory["ports"] if port["allocation"]]


@cache
def tenstorrent_core(
    device: str, place: Place, values: tuple[tuple[str, float], ...] = (), *, alone: bool = False
) -> Core:
    """Core in the hardware file that `tenstorrent_document` returns. `values` are pairs (name of a fitted number, new
    value). If `alone` is true, the keys of calls, commands and requests are first removed from the file.
    """
    document = tenstorrent_document(device, place, dict(values))
    if len(values) > 1 and not alone:
        widths = tuple((name, value) for name, value in values if name == UNPACK)
        return with_times(tenstorrent_core(device, place, widths), document)
    return read_accelerator(without_keys(document) if alone else document).cores[0]


@cache
def _written_blocks() -> dict[tuple[str, int, int, int], tuple[int, int, int]]:
    """Numbers of blocks in the program of the measurements, by (format, m, k, n). The sizes m, k and n describe the
    part of a product on one core. For other sizes, a core has one block, and the reduction has one step for each column
    of cores.
    """
    with (DATA / "hardware" / "tenstorrent_plans.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        (row["dtype"], int(row["m"]), int(row["k"]), int(row["n"])): (
            int(row["reduction_blocks"]),
            int(row["row_blocks"]),
            int(row["column_blocks"]),
        )
        for row in rows
    }


def manual_plan(sizes: tuple[int, int, int], grid: tuple[int, int], dtype: str, *, outputs_in_l1: bool) -> GridPlan:
    """Plan that the program of the measurements gives for a product of sizes (m, k, n) on a grid (columns, rows)."""
    (m, k, n), (columns, rows) = sizes, grid
    depth, high, wide = _written_blocks().get((dtype, m // rows, k // columns, n // columns), (1, 1, 1))
    block = (m // rows // TILE // high, n // columns // TILE // wide, k // columns // TILE // depth)
    return GridPlan(rows, columns, block, (high, wide, columns * depth), _subblock(*block[:2], one_row=outputs_in_l1))


def _subblock(rows: int, columns: int, *, one_row: bool) -> tuple[int, int]:
    """Largest subblock that divides a block of `rows` x `columns` tiles. If `one_row` is true, the subblock has one row
    of tiles.
    """
    return next(
        (high, wide)
        for high, wide in SUBBLOCKS
        if rows % high == 0 and columns % wide == 0 and not (one_row and high != 1)
    )


def default_plan(device: str, sizes: tuple[int, int, int], grid: tuple[int, int], dtype: str) -> tuple[GridPlan, Place]:
    """Pair (plan, place of the data). The library chooses this plan for a product of sizes (m, k, n) on a grid
    (columns, rows). All operands lie in the DRAM.
    """
    (m, k, n), (columns, rows) = (tuple(size // TILE for size in sizes)), grid
    if m <= DEFAULT_BLOCK < n:
        cores = min(columns * rows, n)
        used = next(one for one in range(min(columns, cores), 0, -1) if cores % one == 0 and cores // one <= rows)
        depth = 2 if k % 2 == 0 else 1
        block = (m, -(-n // (columns * rows)), depth)
        plan = GridPlan(cores // used, used, block, (1, 1, k // depth), _subblock(*block[:2], one_row=False))
        return plan, Place(dtype, inputs_in_l1=False, outputs_in_l1=False, one_row=True)
    depth = k // columns if k % columns == 0 else 1
    part = -(-m // rows), -(-n // columns)
    high, wide = next(one for one in _blocks_by_size(*part) if _fits(device, *one, depth, dtype))
    plan = GridPlan(
        rows,
        columns,
        (high, wide, depth),
        (part[0] // high, part[1] // wide, k // depth),
        _subblock(high, wide, one_row=False),
    )
    return plan, Place(dtype, inputs_in_l1=False, outputs_in_l1=False)


def _blocks_by_size(rows: int, columns: int) -> list[tuple[int, int]]:
    """Blocks that divide a part of `rows` x `columns` tiles, the largest first. Of blocks with equal sizes, the
    squarest comes first.
    """
    found = [
        (high, wide)
        for high in range(1, rows + 1)
        if rows % high == 0
        for wide in range(1, columns + 1)
        if columns % wide == 0
    ]
    return sorted(found, key=lambda one: (-one[0] * one[1], max(one) / min(one), one))


def _fits(device: str, rows: int, columns: int, depth: int, dtype: str) -> bool:
    """True if the L1 memory of a core has room for all data of a block: inputs and weights of two steps, the outputs,
    and their sums.
    """
    bits = FORMATS[dtype][1]
    tiles = 2 * (rows + columns) * depth + rows * columns
    size = (tiles * bits + rows * columns * SUM_BITS) * TILE * TILE
    return size < parse_size_bits(written_document(device)["memories"]["l1"]["size"])


@cache
def mapping_of(device: str, plan: GridPlan, place: Place, fidelity: str, width: float) -> MappedLayer:
    """Mapping of a product with the blocks of `plan`. The core comes from the hardware file of `device`, with the
    memories and the format of `place`. `width` is the width of the port from L1 to the registers, in bits per cycle.
    """
    _, _, depth, high, wide = written_document(device)["operational_array"]["sizes"]
    lanes = depth // PASSES[fidelity]
    in_tile = (("B", TILE // high), ("K", TILE // wide), ("C", TILE // lanes))
    sub_high, sub_wide = plan.subblock
    # The operand with fewer repetitions in a subblock stays in its registers.
    in_subblock = (("B", sub_high), ("K", sub_wide)) if sub_high > sub_wide else (("K", sub_wide), ("B", sub_high))
    in_step = (("C", plan.block[2]), ("B", plan.block[0] // sub_high), ("K", plan.block[1] // sub_wide))
    levels = (in_tile, in_subblock[:1], (*in_subblock[1:], in_step[0]), in_step[1:], (("C", plan.blocks[2]),))
    outside = (("K", plan.blocks[1]), ("B", plan.blocks[0]))
    ends, order = [], []
    for loops in (*levels, outside):
        order += [loop for loop in loops if loop[1] > 1]
        ends.append(len(order))
    tile, reused, subblock, step, block, total = ends
    inputs_stay = in_subblock[0][0] == "K"
    inputs = (reused if inputs_stay else tile, step, total)
    weights = (tile if inputs_stay else reused, step, total)
    outputs = (subblock, block, total)
    rows_divide = "K" if place.one_row else "B"
    of_grid = (("D1", rows_divide, plan.rows), ("D2", "K", plan.columns))
    sides = (*of_grid, ("D3", "C", lanes), ("D4", "B", high), ("D5", "K", wide))
    unrolling = tuple((side, ((name, count),)) for side, name, count in sides if count > 1)
    size = dict.fromkeys(DIMENSIONS, 1)
    for name, count in (*order, *((name, count) for _, name, count in sides)):
        size[name] *= count
    bits = FORMATS[place.dtype][0]
    layer = product_layer(size, (("W", bits), ("I", bits), ("O", SUM_BITS), ("O_final", bits)))
    boundaries = (("O", outputs), ("W", weights), ("I", inputs))
    bare = tenstorrent_core(device, place, ((UNPACK, width),), alone=True)
    return MappedLayer(layer, unrolling, tuple(order), boundaries, bare)
