"""Model of Gemmini's driver and hardware: the tiles of a mapping, and their work for array, commands and memory.

These rules are taken from the generator and the driver (gemmini-dosa 67ca2f9, gemmini-rocc-tests 959b23f:
LoopConv.scala, ExecuteController.scala, DMA.scala, ReservationStation.scala). They are not fitted:

* The loops over DRAM run on the host. Each innermost iteration is a call. A call loads the weights and the inputs of a
  tile and computes. In the last step of a reduction, the call also stores outputs. No data are kept between calls. Two
  calls are in flight: one call loads data while the other call computes.
* A command computes up to `array` pixels of one row of the output. A command takes at least 4 cycles. The first command
  after new weights takes at least as many cycles as the array has rows, because it also loads the weights.
* Kernels of even size compute one more row and one more column. Matrix products are cut into blocks of the array.

The first part describes Gemmini as a core of tilewright, for an array of any size, and gives the cycles of the array
for a tile.

The cost model evaluates a tile like any other layer, with the loop order of the hardware (inner to outer OX, OY, B, C,
FX, FY, K). The time of the array is the sum of ideal time, spatial stall and temporal stall. It includes waiting for
weights that come too late.

The second part describes the requests, beats and cache lines with which Gemmini's DMA moves the rows of a tile.

A row (the channels of a pixel, or the output channels of a weight) is fetched in requests of 16, 32 or 64 bytes that
begin at a multiple of their size (generator: DMA.scala, StreamReader). Behind the bus are an L2 of 512 KB, an LLC of 4
MB and DRAM (defaults of the generator and of FireSim's memory model). The reuse distance decides which of them serves a
load. It is the number of bytes that the loops between two loads of the same data touch.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import yaml
from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer, parse_equation, parse_relation

from tilewright_evidence.court.case import DATA

HARDWARE = DATA / "hardware" / "gemmini_16.yaml"
DRAWN_ARRAY = 16
"""Number of rows and columns of the array in the hardware file. Other arrays are derived from it."""
BUS_BYTES = 16
"""Number of bytes of one beat of the DMA."""
EQUATION = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
DIMENSIONS = ("B", "K", "C", "OY", "OX", "FY", "FX")
HARDWARE_ORDER = ("OX", "OY", "B", "C", "FX", "FY", "K")
"""Loops within a tile, inner to outer."""
LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))


@cache
def gemmini_core(array: int) -> Core:
    """Core with `array` x `array` multipliers.

    The rows of the scratchpad and of the accumulators are as wide as the array.
    """
    document: dict[str, Any] = yaml.safe_load(HARDWARE.read_text())
    document["name"] = f"gemmini_{array}"
    document["operational_array"]["sizes"] = [array, array]
    memories = document["memories"]
    memories["accumulator"]["size"] = memories["accumulator"]["size"] * DRAWN_ARRAY // array
    for port in memories["scratchpad"]["ports"]:
        port["bandwidth_max"] = 8 * array
    return read_accelerator(document).cores[0]


@cache
def array_cycles(array: int, sizes: tuple[int, ...], stride: int) -> float:
    """Cycles in which the array computes a tile or waits for the scratchpad.

    `sizes` are the tile sizes, in the order of DIMENSIONS.
    """
    size = dict(zip(DIMENSIONS, sizes, strict=True))
    layer = Layer(
        name="tile",
        operator_type="Conv",
        operand_dimensions=parse_equation(EQUATION),
        loop_sizes=tuple(size.items()),
        relations=(parse_relation(f"ix={stride}*ox+1*fx"), parse_relation(f"iy={stride}*oy+1*fy")),
        precision_bits=(("W", 8), ("I", 8), ("O", 32), ("O_final", 8)),
        constant_operands=("W",),
    )
    lanes = {name: min(size[name], array) for name in ("K", "C")}
    unrolling = tuple((side, ((name, lanes[name]),)) for side, name in (("D1", "K"), ("D2", "C")) if lanes[name] > 1)
    left = {name: -(-size[name] // lanes.get(name, 1)) for name in HARDWARE_ORDER}
    order = tuple((name, left[name]) for name in HARDWARE_ORDER if left[name] > 1)
    record = evaluate(layer, gemmini_core(array), LINKS, unrolling, order, SearchOptions(model=CORRECTED.name))
    parts = record.latency_breakdown_cycles
    return parts["ideal"] + parts["spatial_stall"] + parts["temporal_stall"]


LINE_BYTES = 64
REQUEST_BYTES = (16, 32, 64)
L2_BYTES, LLC_BYTES = 512 * 1024, 4 * 1024 * 1024


@dataclass(frozen=True)
class RowTraffic:
    """Traffic of one row of a tile, on average over all tiles of a tensor."""

    beats: float
    """Number of beats of 16 bytes."""
    lines: float
    """Number of cache lines that no earlier row has touched. If the tile has complete rows, neighbouring rows share
    cache lines.
    """


@cache
def row_traffic(row_bytes: int, tile_bytes: int, most_bytes: int) -> RowTraffic:
    """Traffic of one row of a tile.

    The row has `tile_bytes` of the `row_bytes` of a row of the tensor. A command moves at most `most_bytes`.
    """
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
    """Pair (requests, beats) for `count` bytes from `start` on, on average over rows that are `stride` bytes apart."""
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
    """Shares of the loads of an operand that the LLC and DRAM serve."""

    llc: float
    dram: float


def served_from(
    relevant: frozenset[str], loops: Sequence[tuple[str, int]], footprints: Sequence[float], whole: float
) -> Served:
    """Shares of the loads of an operand by memory, with one load in each iteration of `loops` (inner to outer).

    `footprints[i]` is the number of bytes that the loops inside loop i touch. Each measurement follows another run. The
    first load of data therefore comes from the memory in which that run has left the data.
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
    """Innermost memory with room for a footprint: None for L2, False for the LLC, True for DRAM."""
    return None if footprint <= L2_BYTES else footprint > LLC_BYTES


def footprint_bytes(size: Mapping[str, int], stride: tuple[int, int], inputs: tuple[int, int]) -> float:
    """Bytes of weights, inputs and outputs of a piece of a layer.

    The input has at most `inputs` = (columns, rows) pixels.
    """
    weights = size["K"] * size["C"] * size["FX"] * size["FY"]
    columns = min(inputs[0], (size["OX"] - 1) * stride[0] + size["FX"])
    rows = min(inputs[1], (size["OY"] - 1) * stride[1] + size["FY"])
    return weights + size["B"] * size["C"] * columns * rows + size["B"] * size["OX"] * size["OY"] * size["K"]


LEAST_COMMAND_CYCLES = 4
OUTPUT_TRANSFERS = 2
"""Number of transfers of an output line that is not in the caches. The line is fetched before it is written, and
written back later.
"""
RELEVANT = {
    "W": frozenset(("K", "C", "FX", "FY")),
    "I": frozenset(("B", "C", "OY", "OX", "FY", "FX")),
    "O": frozenset(("B", "K", "OY", "OX")),
}


@dataclass(frozen=True)
class GemminiWork:
    """Layer as it really ran. It can differ from the description in the row of the set."""

    array: int
    size: Mapping[str, int]
    """Loop sizes. OX and OY are the sizes that ran."""
    tile: Mapping[str, int]
    order: tuple[str, ...]
    """Loops over DRAM, inner to outer."""
    stride: tuple[int, int]
    pad: int
    inputs: tuple[int, int]
    """Size of the input without padding, as (columns, rows)."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of tiles along each dimension."""
        return {name: -(-self.size[name] // self.tile[name]) for name in DIMENSIONS}


def work_of(row: Mapping[str, Any]) -> GemminiWork:
    """Layer that ran for a row of the set."""
    layer, array, tile = row["layer"], row["array"], dict(row["tile"])
    size = {name: layer[name] for name in DIMENSIONS}
    size["OX"], size["OY"] = row["executed_output"]
    if row["kind"] == "matmul":
        for name in ("OX", "K", "C"):
            tile[name] = max(array, tile[name] // array * array)
    tile = tile_within(tile, size)
    loops: list[Any] = next((memory["temporal"] for memory in row["mapping"] if memory["memory"] == "dram"), [])
    written = list(dict.fromkeys(name for name, _ in loops))
    order = (*written, *(name for name in DIMENSIONS if name not in written))
    stride = (layer["stride_x"], layer["stride_y"])
    return GemminiWork(array, size, tile, order, stride, layer["pad"], (layer["IX"], layer["IY"]))


def tile_within(tile: Mapping[str, int], size: Mapping[str, int]) -> dict[str, int]:
    """Tile sizes, limited to the sizes of the layer."""
    return {name: min(tile[name], size[name]) for name in DIMENSIONS}


@dataclass(frozen=True)
class Call:
    """Calls of one kind: their number, and the work of each of them."""

    count: int
    array_cycles: float
    commands: float
    command_rows: float
    """Number of pixels that go through the array, summed over all commands. A command counts as at least four pixels.
    """
    beats: float
    llc_lines: float
    """Number of cache lines that the LLC serves."""
    dram_lines: float
    bound_cycles: tuple[int, int]
    """Pair (least cycles of the array, least cycles of the bus)."""


@dataclass(frozen=True)
class _Axis:
    """Sizes of a tile along one axis of the image: outputs, kernel positions, and loaded input positions."""

    outputs: int
    kernel: int
    loaded: int
    bound_loaded: int


def calls_of(work: GemminiWork) -> list[Call]:
    """Kinds of calls of a layer, in the order of their first call."""
    columns, rows = _axis(work, 0), _axis(work, 1)
    parts = {name: Counter(_pieces(work.size[name], work.tile[name])) for name in ("K", "C", "B")}
    most = max(1, LINE_BYTES // work.array) * work.array
    traffic = _Traffic(
        row_traffic(work.size["K"], work.tile["K"], most),
        row_traffic(work.size["C"], work.tile["C"], most),
        *_served(work),
    )
    found = []
    for x, x_count in columns.items():
        for y, y_count in rows.items():
            for k, k_count in parts["K"].items():
                for c, c_count in parts["C"].items():
                    for b, b_count in parts["B"].items():
                        count = x_count * y_count * k_count * c_count * b_count
                        found.append(_call(work, count, (x, y), (k, c, b), traffic))
    return found


@dataclass(frozen=True)
class _Traffic:
    weights: RowTraffic
    inputs: RowTraffic
    served_weights: Served
    served_inputs: Served
    served_outputs: Served


def _call(
    work: GemminiWork, count: int, at: tuple[_Axis, _Axis], channels: tuple[int, int, int], traffic: _Traffic
) -> Call:
    (x, y), (k, c, b), array = at, channels, work.array
    commands_of_row = _pieces(x.outputs, array)
    executed = [max(pixels, LEAST_COMMAND_CYCLES) for pixels in commands_of_row]
    blocks = -(-k // array) * -(-c // array) * x.kernel * y.kernel
    rows = b * y.outputs * sum(executed)
    sizes = (b, k, c, y.outputs, sum(executed), y.kernel, x.kernel)
    # New weights hold up the first command alone, not all pixels of the tile as the cost model has it.
    late = rows + max(0, array - executed[0]) - max(rows, array)
    cycles = array_cycles(array, sizes, work.stride[0]) + blocks * late

    weight_rows = x.kernel * y.kernel * c * k / work.tile["K"]
    input_rows = b * x.loaded * y.loaded * c / work.tile["C"]
    whole = work.tile["K"] == work.size["K"]
    stored = b * x.outputs * y.outputs * (k / LINE_BYTES if whole else max(1.0, k / LINE_BYTES))
    counts = work.counts
    stored *= OUTPUT_TRANSFERS / (counts["C"] * counts["FX"] * counts["FY"])
    lines = (
        (weight_rows * traffic.weights.lines, traffic.served_weights),
        (input_rows * traffic.inputs.lines, traffic.served_inputs),
        (stored, traffic.served_outputs),
    )
    bus = x.kernel * y.kernel * c * -(-k // BUS_BYTES) + b * x.bound_loaded * y.bound_loaded * -(-c // BUS_BYTES)
    return Call(
        count=count,
        array_cycles=cycles,
        commands=blocks * b * y.outputs * len(executed),
        command_rows=blocks * rows,
        beats=weight_rows * traffic.weights.beats + input_rows * traffic.inputs.beats,
        llc_lines=sum(amount * served.llc for amount, served in lines),
        dram_lines=sum(amount * served.dram for amount, served in lines),
        bound_cycles=(blocks * b * y.outputs * x.outputs, bus),
    )


def _pieces(size: int, step: int) -> list[int]:
    """Sizes of the tiles along a dimension. A smaller remainder comes last."""
    return [step] * (size // step) + ([size % step] if size % step else [])


def _axis(work: GemminiWork, axis: int) -> Counter[_Axis]:
    """Number of tiles of each size along axis 0 (x) or 1 (y). Inputs in the padding are not loaded."""
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
            found[_Axis(outputs, positions, loaded, min(loaded, outputs * positions))] += 1
    return found


def _served(work: GemminiWork) -> tuple[Served, Served, Served]:
    """Shares of the loads that the LLC and DRAM serve, as a triple for weights, inputs and outputs."""
    counts = work.counts
    loops = [(name, counts[name]) for name in work.order]

    def footprint(inner: Sequence[tuple[str, int]]) -> float:
        inside = {name for name, _ in inner}
        sizes = {name: work.size[name] if name in inside else work.tile[name] for name in DIMENSIONS}
        return footprint_bytes(sizes, work.stride, work.inputs)

    footprints = [footprint(loops[:place]) for place in range(len(loops))]
    whole = footprint(loops)
    weights, inputs, outputs = (served_from(RELEVANT[name], loops, footprints, whole) for name in ("W", "I", "O"))
    return weights, inputs, outputs


def whole_layer_bounds(work: GemminiWork) -> tuple[int, int]:
    """Pair (least cycles of the array, least cycles of the bus) of a matrix product, over all tilings.

    The array computes all blocks, and the bus moves each operand once.
    """
    size, array = work.size, work.array
    blocks = -(-size["K"] // array) * -(-size["C"] // array)
    pixels = size["B"] * size["OX"] * size["OY"]
    data = pixels * size["C"] + size["K"] * size["C"]
    return blocks * pixels, -(-data // BUS_BYTES)


def peak_and_bus_cycles(work: GemminiWork) -> Iterator[float]:
    """Two terms of the roofline, in cycles: all multipliers are busy, or the bus moves each tensor once."""
    size = work.size
    yield prod(size.values()) / work.array**2
    pixels = prod(
        min(work.inputs[axis], (size[o] - 1) * work.stride[axis] + size[f]) for axis, (o, f) in enumerate(_AXES)
    )
    weights = size["K"] * size["C"] * size["FX"] * size["FY"]
    outputs = size["B"] * size["K"] * size["OX"] * size["OY"]
    yield max(weights + size["B"] * size["C"] * pixels, outputs) / BUS_BYTES


_AXES = (("OX", "FX"), ("OY", "FY"))
