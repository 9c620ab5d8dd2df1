"""Conversion of the rows in the set `gemmini-rtl` into layers, mappings and hardware files of tilewright, and a lower
bound of the cycles for each row.

The layer and the mapping of a row describe the program that Gemmini's driver runs for the mapping in the set. The rules
come from the source code of the generator and of the driver (gemmini-dosa 67ca2f9, gemmini-rocc-tests 959b23f:
LoopConv.scala, ExecuteController.scala):

* The loops over DRAM run on the host. Each innermost iteration is a call, whose loops run in a fixed order.
* A call spreads the channels of its tile over the array. If the tile has more channels than the array, the call takes
  several passes, which share the channels evenly.
* For kernels of even size, the driver computes one more row and one more column of the output.
* The tiles of matrix products are counted in blocks of 16 elements, at least one in each dimension. Each block becomes
  a block of the size of the array: on an array of 4 x 4, a tile of 32 elements runs as tiles of 8. The measurements
  confirm this count: they take 125 cycles for each call.
* With its own tiling, the driver first searches for the tile, on the host (`gemmini_tiles`).
* Partial sums stay in the accumulators until the last step of the reduction.

The cost model evaluates the mapping on the hardware file `gemmini_16.yaml`, which has the times of calls, commands and
requests. For arrays of other sizes, `gemmini_document` derives a file from `gemmini_16.yaml`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import yaml
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.workload.layer import Layer, parse_equation, parse_relation

from tilewright_evidence.court.case import DATA
from tilewright_evidence.court.gemmini_tiles import BLOCK, driver_tile
from tilewright_evidence.court.mapped_layer import MappedLayer, YamlTable, with_times, without_keys

HARDWARE = DATA / "hardware" / "gemmini_16.yaml"
DRAWN_ARRAY = 16
"""Number of rows, and number of columns, of the array in `gemmini_16.yaml`. The hardware files for other array sizes
are derived from this file.
"""
BUS_BYTES = 16
"""Number of bytes of one beat of the DMA."""
EQUATION = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
DIMENSIONS = ("B", "K", "C", "OY", "OX", "FY", "FX")
HARDWARE_ORDER = ("OX", "OY", "B", "C", "FX", "FY", "K")
"""Loops within a tile, inner to outer."""
REUSING_WEIGHTS = ("OX", "OY", "B")
"""Loops whose iterations all use the same weights."""
REDUCTIONS = ("C", "FX", "FY")
SUM_BITS = 32
"""Bits of a partial sum."""
COMMAND_LATENCY, CALL, LLC, DRAM = "command_latency_cycles", "call_cycles", "llc_latency_cycles", "dram_latency_cycles"
STORE = "store_latency_cycles"
PRODUCT_CALL, CANDIDATE = "product_call_cycles", "candidate_cycles"
"""Names of fitted numbers that no hardware file contains. PRODUCT_CALL replaces CALL for matrix products, which have a
separate driver program. CANDIDATE is the time for each tile that the driver tries in its search. The time of the whole
search is `start_cycles` in the hardware file.
"""
PRODUCT_CALL_CYCLES, CANDIDATE_CYCLES = 135, 631
"""Fitted values of PRODUCT_CALL and CANDIDATE, in cycles."""


@cache
def written_document() -> YamlTable:
    """Content of `gemmini_16.yaml`, the hardware file of Gemmini with 16 x 16 multipliers."""
    document: YamlTable = yaml.safe_load(HARDWARE.read_text())
    return document


def accumulator_bits(array: int) -> int:
    """Capacity in bits of the accumulators of one column, in an array of `array` x `array` multipliers. The capacity of
    all columns together is the same for every array size.
    """
    return int(written_document()["memories"]["accumulator"]["size"]) * DRAWN_ARRAY // array


def written_values() -> dict[str, float]:
    """Values that the hardware file has for the fitted numbers, by name of the number."""
    document = written_document()
    dram = document["memories"]["dram"]
    return {
        COMMAND_LATENCY: document["operational_array"]["command_latency_cycles"],
        CALL: document["call_cycles"],
        PRODUCT_CALL: PRODUCT_CALL_CYCLES,
        CANDIDATE: CANDIDATE_CYCLES,
        STORE: dram["store_latency_cycles"],
        LLC: dram["caches"][1]["request_latency_cycles"],
        DRAM: dram["request_latency_cycles"],
    }


@dataclass(frozen=True)
class Program:
    """Program of the driver that runs a layer."""

    is_product: bool = False
    """True if the program runs matrix products, not convolutions."""
    candidates: int = 0
    """Number of tiles that the driver tries before it issues the first call. 0 if the tile is given."""


CONVOLUTION = Program()
"""Program for convolutions with given tiles."""


def gemmini_document(
    array: int, values: Mapping[str, float] | None = None, program: Program = CONVOLUTION
) -> YamlTable:
    """Hardware file of Gemmini with `array` x `array` multipliers, whose host runs `program`.

    A row of the scratchpad and a row of the accumulators have `array` elements. A command computes at most `array`
    pixels, and its latency is proportional to `array`. A request stores the outputs of one pixel and at most `array`
    channels. `values` has new values for the fitted numbers, by name of the number. Without `values`, the file keeps
    the values of `gemmini_16.yaml`.
    """
    document = deepcopy(written_document())
    chosen = written_values() | dict(values or {})
    document["name"] = f"gemmini_{array}"
    document["call_cycles"] = chosen[PRODUCT_CALL if program.is_product else CALL]
    if program.candidates:
        document["start_cycles"] = chosen[CANDIDATE] * program.candidates
    unit, memories = document["operational_array"], document["memories"]
    unit["sizes"] = [array, array]
    unit["command_iterations"] = array
    unit["command_latency_cycles"] = chosen[COMMAND_LATENCY] * array / DRAWN_ARRAY
    memories["accumulator"]["size"] = accumulator_bits(array)
    for port in memories["scratchpad"]["ports"]:
        port["bandwidth_max"] = 8 * array
    memories["dram"]["request_latency_cycles"] = chosen[DRAM]
    memories["dram"]["store_latency_cycles"] = chosen[STORE]
    memories["dram"]["store_burst"] = f"{array} B"
    memories["dram"]["caches"][1]["request_latency_cycles"] = chosen[LLC]
    return document


@cache
def gemmini_core(
    array: int,
    values: tuple[tuple[str, float], ...] = (),
    program: Program = CONVOLUTION,
    alone: bool = False,
) -> Core:
    """Core of Gemmini with `array` x `array` multipliers, whose host runs `program`. `values` are pairs (name, value)
    that replace fitted numbers. If `alone` is true, the file is used without the keys of calls, commands and requests
    (`without_keys`).

    Calls with equal numbers return the same object. Numbers that the program does not use are ignored in this
    comparison.
    """
    unread = {CALL if program.is_product else PRODUCT_CALL} | (set() if program.candidates else {CANDIDATE})
    if any(name in unread for name, _ in values):
        return gemmini_core(array, tuple(pair for pair in values if pair[0] not in unread), program, alone)
    document = gemmini_document(array, dict(values), program)
    if values and not alone:
        return with_times(gemmini_core(array, (), program), document)
    return read_accelerator(without_keys(document) if alone else document).cores[0]


@dataclass(frozen=True)
class GemminiWork:
    """Layer as it was run in the measurement. It can differ from the description in the row of the set."""

    array: int
    size: Mapping[str, int]
    """Size of each loop dimension. OX and OY are the sizes of the output that the measured run computed."""
    tile: Mapping[str, int]
    order: tuple[str, ...]
    """Dimensions of the loops over the tiles, inner to outer. These loops run on the host."""
    stride: tuple[int, int]
    pad: int
    inputs: tuple[int, int]
    """Size of the input as (columns, rows), without padding."""
    program: Program = CONVOLUTION

    @property
    def counts(self) -> dict[str, int]:
        """Number of tiles along each dimension."""
        return {name: -(-self.size[name] // self.tile[name]) for name in DIMENSIONS}


def work_of(row: Mapping[str, Any]) -> GemminiWork:
    """Layer as Gemmini ran it in the measurement of a row."""
    layer, array, tile = row["layer"], row["array"], dict(row["tile"])
    is_product = row["kind"] == "matmul"
    size = {name: layer[name] for name in DIMENSIONS}
    size["OX"], size["OY"] = row["executed_output"]
    if is_product:
        for name in ("OX", "K", "C"):
            tile[name] = max(1, tile[name] // BLOCK) * array
    tile = tile_within(tile, size)
    loops: list[Any] = next((memory["temporal"] for memory in row["mapping"] if memory["memory"] == "dram"), [])
    written = list(dict.fromkeys(name for name, _ in loops))
    order = (*written, *(name for name in DIMENSIONS if name not in written))
    stride = (layer["stride_x"], layer["stride_y"])
    inputs = (layer["IX"], layer["IY"])
    return GemminiWork(array, size, tile, order, stride, layer["pad"], inputs, Program(is_product))


def in_default_tiling(work: GemminiWork, tile: Mapping[str, int], order: tuple[str, ...]) -> GemminiWork:
    """Convolution with the tile that the driver finds by itself. The driver searches for this tile first."""
    _, candidates = driver_tile(work.size, work.stride[0])
    return replace(work, tile=tile_within(tile, work.size), order=order, program=Program(candidates=candidates))


def tile_within(tile: Mapping[str, int], size: Mapping[str, int]) -> dict[str, int]:
    """Tile sizes, limited to the sizes of the layer."""
    return {name: min(tile[name], size[name]) for name in DIMENSIONS}


def mapping_of(work: "GemminiWork") -> MappedLayer:
    """Mapping that runs a layer with equal tiles.

    The mapping has the same number of tiles along each dimension as the measured run. If the tiles of the run are not
    equal, the mapping makes them equal, and rounds their size up. The channels of a tile are spread evenly over the
    passes that the array needs, and are rounded up to fill all passes. The driver never moves partial sums to DRAM. The
    mapping moves them only if the accumulators have no room for them.
    """
    passes, lanes, counts = {}, {}, work.counts
    for name in DIMENSIONS:
        tile = -(-work.size[name] // counts[name])
        passes[name], lanes[name] = tile, 1
        if name in ("K", "C"):
            passes[name] = -(-tile // work.array)
            lanes[name] = -(-tile // passes[name])
    inner = [(name, passes[name]) for name in HARDWARE_ORDER if passes[name] > 1]
    outer = [(name, counts[name]) for name in work.order if counts[name] > 1]
    last = max((place for place, (name, _) in enumerate(outer, 1) if name in REDUCTIONS), default=0)
    sums = prod(count for name, count in (*inner, *outer[:last]) if name not in REDUCTIONS)
    if sums * SUM_BITS > accumulator_bits(work.array):
        last = 0
    weights = next((place for place, (name, _) in enumerate(inner) if name not in REUSING_WEIGHTS), len(inner))
    total = len(inner) + len(outer)
    size = {name: counts[name] * passes[name] * lanes[name] for name in DIMENSIONS}
    sides = (("D1", "K"), ("D2", "C"))
    return MappedLayer(
        Layer(
            name="layer",
            operator_type="Conv",
            operand_dimensions=parse_equation(EQUATION),
            loop_sizes=tuple(size.items()),
            relations=(
                parse_relation(f"ix={work.stride[0]}*ox+1*fx"),
                parse_relation(f"iy={work.stride[1]}*oy+1*fy"),
            ),
            precision_bits=(("W", 8), ("I", 8), ("O", 32), ("O_final", 8)),
            data_dimension_sizes=(("IX", work.inputs[0]), ("IY", work.inputs[1])),
            constant_operands=("W",),
        ),
        tuple((side, ((name, lanes[name]),)) for side, name in sides if lanes[name] > 1),
        (*inner, *outer),
        (("O", (len(inner) + last, total)), ("W", (weights, len(inner), total)), ("I", (len(inner), total))),
        gemmini_core(work.array, alone=True),
    )


@dataclass(frozen=True)
class Call:
    """Group of calls whose tiles have equal sizes: the number of these calls, and lower bounds of the cycles of each
    call.
    """

    count: int
    array_cycles: int
    """Lower bound of the cycles in which the array computes one call."""
    bus_cycles: int
    """Lower bound of the cycles in which the bus loads the inputs and weights of one call."""


@dataclass(frozen=True)
class _Axis:
    """Sizes of a tile along one axis of the image: outputs, kernel positions, and loaded input positions."""

    outputs: int
    kernel: int
    loaded: int


def calls_of(work: GemminiWork) -> list[Call]:
    """Calls of a layer, as groups of calls whose tiles have equal sizes."""
    columns, rows = _axis(work, 0), _axis(work, 1)
    parts = {name: Counter(_pieces(work.size[name], work.tile[name])) for name in ("K", "C", "B")}
    found = []
    for x, x_count in columns.items():
        for y, y_count in rows.items():
            for k, k_count in parts["K"].items():
                for c, c_count in parts["C"].items():
                    for b, b_count in parts["B"].items():
                        count = x_count * y_count * k_count * c_count * b_count
                        found.append(_call(work.array, count, (x, y), (k, c, b)))
    return found


def _call(array: int, count: int, at: tuple[_Axis, _Axis], channels: tuple[int, int, int]) -> Call:
    (x, y), (k, c, b) = at, channels
    blocks = -(-k // array) * -(-c // array) * x.kernel * y.kernel
    bus = x.kernel * y.kernel * c * -(-k // BUS_BYTES) + b * x.loaded * y.loaded * -(-c // BUS_BYTES)
    return Call(count, blocks * b * y.outputs * x.outputs, bus)


def _pieces(size: int, step: int) -> list[int]:
    """Sizes of the tiles along a dimension. If the last tile is smaller, its size comes last."""
    return [step] * (size // step) + ([size % step] if size % step else [])


def _axis(work: GemminiWork, axis: int) -> Counter[_Axis]:
    """Tiles along the x axis (`axis` 0) or the y axis (`axis` 1) of the image: sizes of a tile (`_Axis`) -> number of
    tiles with these sizes. `_Axis.loaded` does not count input positions in the padding, because they are not loaded.
    """
    output, kernel = (("OX", "FX"), ("OY", "FY"))[axis]
    stride, inputs = work.stride[axis], work.inputs[axis]
    found: Counter[_Axis] = Counter()
    begins = range(0, work.size[output], work.tile[output])
    for begin, outputs in zip(begins, _pieces(work.size[output], work.tile[output]), strict=True):
        taps = range(0, work.size[kernel], work.tile[kernel])
        for tap, positions in zip(taps, _pieces(work.size[kernel], work.tile[kernel]), strict=True):
            low = begin * stride - work.pad + tap
            high = low + (outputs - 1) * stride + positions
            loaded = max(0, min(high, inputs) - max(low, 0))
            # 1 x 1 kernels with stride 2 fetch every other pixel.
            loaded = -(-loaded // stride) if work.size[kernel] == 1 and stride == 2 else loaded
            found[_Axis(outputs, positions, min(loaded, outputs * positions))] += 1
    return found


def whole_layer_bounds(work: GemminiWork) -> tuple[int, int]:
    """Lower bounds for a matrix product with any tiling, as a pair (cycles of the array, cycles of the bus).

    The array computes all blocks, and the bus loads inputs and weights once.
    """
    size, array = work.size, work.array
    blocks = -(-size["K"] // array) * -(-size["C"] // array)
    pixels = size["B"] * size["OX"] * size["OY"]
    data = pixels * size["C"] + size["K"] * size["C"]
    return blocks * pixels, -(-data // BUS_BYTES)


def peak_and_bus_cycles(work: GemminiWork) -> Iterator[float]:
    """Two terms of the roofline, as a pair (cycles of the array, cycles of the bus). In the first, all multipliers are
    always busy. In the second, the bus moves each tensor once, with reads and writes at the same time.
    """
    size = work.size
    yield prod(size.values()) / work.array**2
    pixels = prod(
        min(work.inputs[axis], (size[o] - 1) * work.stride[axis] + size[f]) for axis, (o, f) in enumerate(_AXES)
    )
    weights = size["K"] * size["C"] * size["FX"] * size["FY"]
    outputs = size["B"] * size["K"] * size["OX"] * size["OY"]
    yield max(weights + size["B"] * size["C"] * pixels, outputs) / BUS_BYTES


_AXES = (("OX", "FX"), ("OY", "FY"))
