"""Circuits around the cells of an in-memory array and their costs, in a 28 nm process at 0.9 V.

Energies in pJ, areas in mm2, delays in ns. Source: zigzag-dse 3.9.1, whose model is that of J. Sun, P. Houshmand and M.
Verhelst, "Analog or digital in-memory computing? Benchmarking through quantitative modeling", ICCAD 2023. Section names
refer to docs/model/in-memory-arrays.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from tilewright.hardware.core import OperationalArray

SUPPLY_V = 0.9
_SQUARED_V = SUPPLY_V**2
# Capacities in pF: a NAND gate has 0.7 fF, all other circuits a multiple of it.
_NAND_PF, _XOR_PF, _FLIP_FLOP_PF, _LINE_PF = 0.7 / 1000, 0.7 * 1.5 / 1000, 0.7 * 3 / 1000, 0.7 / 2 / 1000
_NAND_MM2, _XOR_MM2, _FLIP_FLOP_MM2 = 0.614 / 1e6, 0.614 * 2.4 / 1e6, 0.614 * 6 / 1e6
_NAND_NS, _XOR_NS = 0.0478, 0.0478 * 2.4

# One bit of each block (section "Blocks").
ADDER_PJ = (_NAND_PF * 3 + _XOR_PF * 2) * _SQUARED_V
HALF_ACTIVE_ADDER_PJ = _XOR_PF * 2 * _SQUARED_V
"""Energy in pJ of a one-bit adder if one of its inputs stays 0."""
MULTIPLIER_PJ = 0.5 * _NAND_PF * _SQUARED_V
REGISTER_PJ = _FLIP_FLOP_PF * _SQUARED_V
LINE_PJ = _LINE_PF * _SQUARED_V
"""Energy in pJ of a word line or bit line, per cell on the line."""
ADDER_MM2 = 3 * _NAND_MM2 + 2 * _XOR_MM2
MULTIPLIER_MM2 = _NAND_MM2
REGISTER_MM2 = _FLIP_FLOP_MM2
INPUT_TO_SUM_NS = 2 * _XOR_NS
INPUT_TO_CARRY_NS = _XOR_NS + 2 * _NAND_NS
CARRY_TO_CARRY_NS = 2 * _NAND_NS
MULTIPLIER_NS = _NAND_NS


def converter_area_mm2(bits: float) -> float:
    """Area in mm2 of an analog-to-digital converter. A comparator of one bit has no area in this model
    (docs/model/in-memory-arrays.md#converters).
    """
    return 0.0 if bits <= 1 else 10 ** (-0.0369 * bits + 1.206) * 2**bits * 1e-6


def converter_delay_ns(bits: float, rows: int) -> float:
    """Delay in ns of an analog-to-digital converter on a bit line with `rows` cells."""
    return 0.0 if bits == 0 else bits * (0.00653 * rows + 0.640)


def converter_energy_pj(bits: float) -> float:
    """Energy in pJ of one analog-to-digital conversion."""
    return 0.0 if bits == 0 else (100 * bits + 0.001 * 4**bits) * _SQUARED_V / 1000


def driver_energy_pj(bits: int) -> float:
    """Energy in pJ of converting input bits to an analog level; one bit needs no conversion."""
    return 0.0 if bits == 1 else 50 * bits / 1000 * _SQUARED_V


def precharging_energy_pj(cell_bits: int, weight_bits: int) -> float:
    """Energy in pJ of charging the lines that read one weight of a cell. The energy is 0 for a cell that holds only one
    weight.

    The weights of a cell are read one after another, on separate lines (docs/model/in-memory-arrays.md#cells).
    """
    depth = cell_bits // weight_bits
    return 0.0 if depth <= 1 else (LINE_PJ + LINE_PJ * depth) * weight_bits


@dataclass(frozen=True)
class InMemoryArray:
    """Dimensions, precisions and adder widths of an in-memory array (docs/model/in-memory-arrays.md#array)."""

    analog: bool
    columns: int
    """Lanes along the word lines: number of outputs that a bank computes at a time."""
    rows: int
    """Lanes along the bit lines: number of products that a bank adds at a time."""
    banks: int
    word_line: str
    """Array dimension along a word line. The size of this dimension is the number of columns."""
    bit_line: str
    """Array dimension along a bit line. The size of this dimension is the number of rows."""
    activation_bits: int
    weight_bits: int
    serial_bits: int
    """Number of bits of an activation that arrive per cycle."""
    converter_bits: float
    """Resolution of the analog-to-digital converters; 0 in digital arrays."""
    cell_bits: int
    """Number of weight bits at one multiplier. If these are the bits of several weights, the multiplier uses one weight
    after another.
    """

    @classmethod
    def of(cls, array: OperationalArray, analog: bool) -> "InMemoryArray":
        """Parameters of an in-memory array. Array dimensions are sorted by name: the first runs along the word lines,
        the second along the bit lines. All further dimensions are banks."""
        sides = sorted(array.dimensions)
        (word_line, columns), (bit_line, rows) = sides[:2]
        given = dict(array.parameters)
        return cls(
            analog=analog,
            columns=columns,
            rows=rows,
            banks=math.prod(size for _, size in sides[2:]),
            word_line=word_line,
            bit_line=bit_line,
            activation_bits=int(given["activation_bits"]),
            weight_bits=int(given["weight_bits"]),
            serial_bits=int(given["bit_serial_precision"]),
            converter_bits=given.get("adc_resolution", 0) if analog else 0,
            cell_bits=int(given["cell_bits"]),
        )

    @property
    def phases(self) -> int:
        """Number of cycles in which the bits of an activation arrive."""
        return self.activation_bits // self.serial_bits

    @property
    def tree_depth(self) -> int:
        """Number of levels of the adder tree of a column."""
        return int(math.log2(self.rows))

    @property
    def place_value_inputs(self) -> int:
        """Number of partial results that a column shifts according to their place value, and then adds. Analog arrays
        have one result per weight bit. Digital arrays have one result per activation bit that arrives in a cycle."""
        return self.weight_bits if self.analog else self.serial_bits

    @property
    def place_value_bits(self) -> float:
        """Width in bits of each of the `place_value_inputs` partial results. In analog arrays, such a result is the
        output of a converter. In digital arrays, such a result is the sum of an adder tree.
        """
        return self.converter_bits if self.analog else self.weight_bits + self.tree_depth

    @property
    def tree_adders(self) -> int:
        """Number of one-bit adders in the tree of a column; 0 in analog arrays, where bit lines add."""
        if self.analog:
            return 0
        return self.rows * (self.weight_bits + 1) - (self.weight_bits + self.tree_depth + 1)

    @property
    def place_value_adders(self) -> float:
        """Number of one-bit adders with which a column adds the shifted partial results (`place_value_inputs`)."""
        inputs = self.place_value_inputs
        if inputs == 1:
            return 0
        return self.place_value_bits * (inputs - 1) + inputs * (math.log2(inputs) - 0.5)

    @property
    def accumulator_bits(self) -> float:
        """Width of a column's accumulator in bits; 0 if all bits of an activation arrive at once."""
        if self.serial_bits == self.activation_bits:
            return 0
        grown = self.converter_bits if self.analog else math.log2(self.rows)
        return self.activation_bits + self.weight_bits + grown

    @cached_property
    def areas_mm2(self) -> dict[str, float]:
        """Areas of the circuits in mm2, by component, without the cells (docs/model/in-memory-arrays.md#area)."""
        lanes, weight_bits = self.columns * self.banks, self.weight_bits
        multipliers = MULTIPLIER_MM2 * weight_bits * (1 if self.analog else self.serial_bits)
        accumulated = self.accumulator_bits * lanes
        return {
            "dacs": 0.0,
            "adcs": converter_area_mm2(self.converter_bits) * weight_bits * self.columns * self.banks,
            "mults": multipliers * (self.columns * self.rows * self.banks),
            "adders_regular": ADDER_MM2 * self.tree_adders * self.serial_bits * lanes,
            "adders_pv": ADDER_MM2 * self.place_value_adders * lanes,
            "accumulators": ADDER_MM2 * accumulated + REGISTER_MM2 * accumulated,
        }

    @cached_property
    def delays_ns(self) -> dict[str, float]:
        """Delay in ns of each component on the critical path of a clock cycle, by component
        (docs/model/in-memory-arrays.md#clock-period).
        """
        return {
            "cells": 0.0,
            "dacs": 0.0,
            "adcs": converter_delay_ns(self.converter_bits, self.rows),
            "mults": MULTIPLIER_NS,
            "adders_regular": 0.0 if self.analog else self._tree_delay_ns(),
            "adders_pv": self._place_value_delay_ns(),
            "accumulators": self._accumulator_delay_ns(),
        }

    def _tree_delay_ns(self) -> float:
        depth = self.tree_depth
        carried = (self.weight_bits + depth - 2) * CARRY_TO_CARRY_NS
        return (depth - 1) * INPUT_TO_SUM_NS + INPUT_TO_CARRY_NS + carried

    def _place_value_delay_ns(self) -> float:
        inputs = self.place_value_inputs
        if inputs == 1:
            return 0.0
        carried = (inputs - 1) * CARRY_TO_CARRY_NS
        return (int(math.log2(inputs)) - 1) * INPUT_TO_SUM_NS + INPUT_TO_CARRY_NS + carried

    def _accumulator_delay_ns(self) -> float:
        if self.accumulator_bits == 0:
            return 0.0
        inputs, width = self.place_value_inputs, self.place_value_bits
        arriving = width if inputs == 1 else inputs + width
        return INPUT_TO_CARRY_NS + (self.accumulator_bits - arriving - 1) * CARRY_TO_CARRY_NS

    def tree_energy_pj(self, used_rows: float) -> float:
        """Energy in pJ of the adder tree of a column, if products arrive on `used_rows` rows of the column
        (docs/model/in-memory-arrays.md#adder-trees).

        Subtrees without products do not switch. An adder with products on only one input passes them on, and counts as
        half active.
        """
        if used_rows >= self.rows:
            return self.tree_adders * ADDER_PJ
        if used_rows < 1:
            return 0.0
        full = half = 0.0
        left, base, bits = used_rows, float(self.rows), self.weight_bits
        while left > 0:
            base /= 2
            depth = int(math.log2(base))
            complete = base * (bits + 1) - (bits + depth + 1)
            if left <= 1 and base == 1:
                half, left = half + bits, 0
            elif left > base:
                full, left = full + complete + (bits + depth), left - base
            elif left < base:
                half += bits + depth
            else:
                full, half, left = full + complete, half + bits + depth, 0
        return full * ADDER_PJ + half * HALF_ACTIVE_ADDER_PJ
