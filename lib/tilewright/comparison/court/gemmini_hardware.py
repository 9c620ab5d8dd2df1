"""Gemmini in tilewright's terms: its core for an array of any size, and the cycles of the array for a tile.

The cost model costs a tile as it costs any layer, with the loop order of the hardware (inner to outer OX, OY, B, C, FX,
FY, K). Time within the array is its ideal time, spatial stall and temporal stall; weights that come too late are in it.
"""

from functools import cache
from typing import Any

import yaml

from tilewright.comparison.court.rows import DATA
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.profile import CORRECTED
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.equation import parse_equation, parse_relation
from tilewright.workload.layer import Layer

HARDWARE = DATA / "hardware" / "gemmini_16.yaml"
DRAWN_ARRAY = 16
"""Array of the hardware file; others are scaled from it."""
BUS_BYTES = 16
"""Of a beat of the DMA."""
EQUATION = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
DIMENSIONS = ("B", "K", "C", "OY", "OX", "FY", "FX")
HARDWARE_ORDER = ("OX", "OY", "B", "C", "FX", "FY", "K")
"""Loops within a tile, inner to outer."""
LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))


@cache
def gemmini_core(array: int) -> Core:
    """The core with `array` x `array` multipliers: rows of scratchpad and accumulators are as wide as the array."""
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
    """Cycles in which the array computes a tile or waits for its scratchpad; sizes in the order of DIMENSIONS."""
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
