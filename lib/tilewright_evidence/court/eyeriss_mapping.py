"""Conversion of the layers of Eyeriss v1 into layers, mappings and hardware files of tilewright.

The file `eyeriss_v1_mappings.csv` has the shape and the mapping of each layer. The mappings of AlexNet are from table
III of the paper (Chen et al., IEEE JSSC 52(1), 2017). The mappings of VGG-16 are not published. They are chosen by
`chosen_mapping`, and can differ from the mappings of the chip.

A unit computes one row of outputs from one row of a kernel and one row of inputs (row stationary). In a pass over the
array, each unit processes `n` images, `q` channels and `p` kernels, and the array computes `e` rows of outputs. The
channels are divided among `r` sets of units, and the kernels among `t` sets. The buffer keeps the sums of `m` kernels
until all channels are added.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from typing import Any

import yaml
from tilewright.base.profile import CORRECTED
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.hardware.zero_checks import RUN_LENGTH, ZERO_GATING
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer, parse_equation, parse_relation

from tilewright_evidence.court.case import DATA
from tilewright_evidence.court.mapped_layer import LINKS, YamlTable

HARDWARE = DATA / "hardware" / "eyeriss_v1.yaml"
MAPPINGS = DATA / "hardware" / "eyeriss_v1_mappings.csv"
EQUATION = "O[g][b][k][oy][ox]+=W[g][k][c][fy][fx]*I[g][b][c][iy][ix]"
BITS = 16
BUFFER_BITS = 25 * 512 * 64
"""Capacity of the global buffer, which inputs and partial sums share."""
ROWS, COLUMNS = 12, 14
FILTER_SPAD, SUM_SPAD, INPUT_SPAD = 224, 24, 12
"""Numbers of elements for which one unit has room: weights, partial sums, and inputs."""


@dataclass(frozen=True)
class Shape:
    """Shape of a convolution with square inputs. Channels and filters are counted for one group. The size of the input
    includes its padding.
    """

    groups: int
    stride: int
    kernel: int
    channels: int
    filters: int
    output: int
    padded_input: int

    @property
    def macs_of_image(self) -> int:
        """Number of multiply-accumulates for one image."""
        return self.groups * self.filters * self.channels * self.output**2 * self.kernel**2

    def elements(self, images: int) -> dict[str, int]:
        """Number of elements of each operand. Inputs include their padding."""
        inputs = self.groups * self.channels * self.padded_input**2 * images
        outputs = self.groups * self.filters * self.output**2 * images
        return {"I": inputs, "O": outputs, "W": self.groups * self.filters * self.channels * self.kernel**2}


@dataclass(frozen=True)
class RowStationary:
    """Row-stationary mapping of a layer. The letters are from table III of the paper. The top of this module explains
    them.
    """

    m: int
    n: int
    e: int
    p: int
    q: int
    r: int
    t: int


@cache
def layers() -> Mapping[tuple[str, str], tuple[Shape, RowStationary]]:
    """Shape and mapping of each layer, by (network, layer)."""
    with MAPPINGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["network"], row["layer"]): (
            Shape(**{name: int(row[name]) for name in Shape.__dataclass_fields__}),
            RowStationary(**{name: int(row[name]) for name in RowStationary.__dataclass_fields__}),
        )
        for row in rows
    }


@cache
def eyeriss_core(*, with_keys: bool = True, is_first: bool = False) -> Core:
    """Core of Eyeriss v1. If `with_keys` is false, the keys of gating and compression are removed from its hardware
    file. If `is_first` is true, inputs are not compressed, as for the first layer of a network.
    """
    document: YamlTable = yaml.safe_load(HARDWARE.read_text())
    if not with_keys:
        del document["operational_array"][ZERO_GATING], document["memories"]["dram"][RUN_LENGTH]
    elif is_first:
        document["memories"]["dram"][RUN_LENGTH]["operands"] = ["O"]
    return read_accelerator(document).cores[0]


@dataclass(frozen=True)
class EyerissWork:
    """Layer, images and mapping of a measurement, in the form that the command `evaluate` takes."""

    shape: Shape
    mapping: RowStationary
    images: int
    zeros: tuple[tuple[str, float], ...] = ()
    """Shares of zeros, as in `Layer.zeros`."""

    @property
    def loops(self) -> tuple[tuple[str, int], ...]:
        """Temporal loops, inner to outer, including loops of size 1.

        On the chip, a row of inputs slides through a unit, which has no room for the whole row. The cost model has no
        sliding buffers, so the hardware file gives a unit room for the whole row. If no loop over images lies
        between the loop over the row and the next loop over kernels, the model could keep the row in the unit for the
        next kernels. To prevent this, the outermost part of the loop over the row is a separate loop outside the memory
        of the unit.
        """
        shape, own = self.shape, self.mapping
        columns = shape.output
        outer = _least_factor(columns) if own.n == 1 and own.m > own.p * own.t else 1
        return (
            ("K", own.p),
            ("C", own.q),
            ("FX", shape.kernel),
            ("OX", columns // outer),
            ("OX", outer),
            ("B", own.n),
            ("K", -(-own.m // (own.p * own.t))),
            ("C", -(-shape.channels // (own.q * own.r))),
            ("OY", -(-shape.output // own.e)),
            ("B", self.images // own.n),
            ("K", -(-shape.filters // own.m)),
            ("G", shape.groups),
        )

    @property
    def unrolling(self) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
        """Spatial mapping: the unrolled loops on each side of the array.

        A set of units has one row for each row of the kernel, and one column for each row of outputs. A set that is
        wider than the array is cut into pieces, which lie below each other. Several sets lie below each other, or side
        by side if the array is not high enough.
        """
        own, kernel = self.mapping, self.shape.kernel
        pieces = -(-own.e // COLUMNS)
        lanes = {"FY": kernel, "OY": pieces, "C": own.r, "K": own.t}
        below = prod(lanes.values()) <= ROWS
        sides = {"D1": lanes if below else {"FY": kernel}, "D2": {"OY": -(-own.e // pieces)}}
        if not below:
            sides["D2"] |= {"C": own.r, "K": own.t}
        return tuple((side, tuple((d, f) for d, f in one.items() if f > 1)) for side, one in sides.items())

    @property
    def order(self) -> tuple[tuple[str, int], ...]:
        """Temporal loops, inner to outer, without those of size 1."""
        return tuple(loop for loop in self.loops if loop[1] > 1)

    @property
    def boundaries(self) -> dict[str, tuple[int, ...]]:
        """Boundaries of each operand: one number for each memory, innermost first. The number counts the loops in this
        memory and in all memories inside this memory.
        """

        def count(end: int) -> int:
            return sum(size > 1 for _, size in self.loops[:end])

        total = len(self.order)
        return {
            "O": (count(3), count(8), total),
            "W": (count(3), count(6), total),
            "I": (count(4), count(4), count(7), total),
        }

    def layer(self, *, with_zeros: bool = True) -> Layer:
        """Layer in the form of the cost model. Its channels and kernels are rounded up to whole passes. Its rows of
        outputs are not rounded.
        """
        size = {"G": 1, "B": 1, "K": 1, "C": 1, "OY": 1, "OX": 1, "FY": 1, "FX": 1}
        for name, count in (*self.loops, *(loop for _, factors in self.unrolling for loop in factors)):
            size[name] *= count
        size["OY"] = self.shape.output
        return self._layer_of(size, with_zeros=with_zeros)

    def whole_layer(self) -> Layer:
        """Layer in the form of the cost model, with the exact sizes of `shape`."""
        own = self.shape
        size = {"G": own.groups, "B": self.images, "K": own.filters, "C": own.channels}
        window = {"OY": own.output, "OX": own.output, "FY": own.kernel, "FX": own.kernel}
        return self._layer_of(size | window, with_zeros=True)

    def _layer_of(self, size: Mapping[str, int], *, with_zeros: bool) -> Layer:
        stride = self.shape.stride
        return Layer(
            name="layer",
            operator_type="Conv",
            operand_dimensions=parse_equation(EQUATION),
            loop_sizes=tuple(size.items()),
            relations=(parse_relation(f"ix={stride}*ox+1*fx"), parse_relation(f"iy={stride}*oy+1*fy")),
            precision_bits=(("W", BITS), ("I", BITS), ("O", BITS), ("O_final", BITS)),
            data_dimension_sizes=(("IX", self.shape.padded_input), ("IY", self.shape.padded_input)),
            constant_operands=("W",),
            zeros=self.zeros if with_zeros else (),
        )

    def record(self, *, with_keys: bool = True, is_first: bool = False) -> LayerRecord:
        """Record of the layer, as the command `evaluate` makes it. If `with_keys` is false, zeros save nothing. If
        `is_first` is true, inputs are not compressed. Raises MappingError if the mapping does not fit.
        """
        core = eyeriss_core(with_keys=with_keys, is_first=is_first)
        options = SearchOptions(model=CORRECTED.name)
        layer = self.layer(with_zeros=with_keys)
        return evaluate(layer, core, LINKS, self.unrolling, self.order, options, self.boundaries)

    def point(self) -> Mapping[str, Any]:
        """Mapping as the JSON object of one line in a file of points, which the command `evaluate` reads."""
        return {
            "layer": "layer",
            "spatial_mapping": {side: dict(factors) for side, factors in self.unrolling},
            "loop_order": [list(loop) for loop in self.order],
            "memory_operand_links": dict(LINKS),
            "level_boundaries": {operand: list(found) for operand, found in self.boundaries.items()},
        }


def traffic_bytes(record: LayerRecord, core: Core) -> dict[str, float]:
    """Bytes that cross the ports of the buffers and of the DRAM, by memory and operand, such as `dram I`.

    Only the directions that the measurement counts are included. For the buffer of inputs, these are reads by the
    array. For the buffer of sums, they are reads and writes by the array, and reads towards the DRAM. For the DRAM,
    they are all reads and writes.
    """
    found: dict[str, float] = {}
    counted = {"buffer O": ("tl", "fl", "th"), "buffer I": ("tl",), "dram": ("tl", "fl")}
    for operand, names in record.memory_levels.items():
        for level, name in enumerate(names):
            memory = next(one for one in core.memories if one.name == name)
            for way in counted.get(name, counted.get(f"{name} {operand}", ())):
                port = memory.port_of.get((record.memory_operand_links[operand], way))
                if port is not None:
                    bits = record.word_accesses[operand][level][way] * memory.ports[port].bandwidth_max_bits
                    found[f"{name} {operand}"] = found.get(f"{name} {operand}", 0.0) + bits / 8
    return found


def row_stationary_mappings(shape: Shape, images: int, e: int) -> Iterator[RowStationary]:
    """Mappings that the published rules allow for a layer with 3 x 3 kernels and `e` rows of outputs in a pass.

    There are three rules. The weights, sums and inputs of a pass fit into a unit. The sets fit into the array. The sums
    of `m` kernels and the inputs of a pass fit into the buffer together. In the mappings, `p` and `m` are powers of
    two, `r` and `t` use all rows of the array, and `n` is one image or all images.
    """
    powers = [2**power for power in range(10)]
    for p, q, r, n in product([one for one in powers if one <= SUM_SPAD], (1, 2, 3, 4), (1, 2, 4), {1, images}):
        t = ROWS // shape.kernel // r
        if p * q * shape.kernel > FILTER_SPAD or q * shape.kernel > INPUT_SPAD or q * r > shape.channels:
            continue
        inputs = n * q * r * ((e - 1) * shape.stride + shape.kernel) * shape.padded_input
        for m in powers:
            sums = m * n * e * shape.output
            if m % (p * t) == 0 and m <= shape.filters and (inputs + sums) * BITS <= BUFFER_BITS:
                yield RowStationary(m, n, e, p, q, r, t)


def chosen_mapping(work: EyerissWork) -> RowStationary:
    """Mapping with the least energy of chip and DRAM, by the cost model without savings from zeros. The candidates are
    the `row_stationary_mappings` with the `e` of the mapping in `work`. Of equal mappings, the first is taken.
    """

    def energy_pj(mapping: RowStationary) -> float:
        return replace(work, mapping=mapping, zeros=()).record().energy_pj

    return min(row_stationary_mappings(work.shape, work.images, work.mapping.e), key=energy_pj)


def _least_factor(number: int) -> int:
    """Smallest prime factor of a number; 1 for 1."""
    return next((factor for factor in range(2, number + 1) if number % factor == 0), 1)
