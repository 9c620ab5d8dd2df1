"""Plain in-memory arrays, to check the package's formulas: circuits are counted one by one, in exact numbers.

Energies are in pJ, areas in mm2 and delays in ns. All are fractions, except for the powers and logarithms of
converters.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from tilewright.hardware.core import Core, OperationalArray
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

from tests.plain.spatial import DoesNotFitError, adjusted_factors, spread_exactly
from tests.plain.switches import Switches

Lanes = dict[str, Fraction]
"""Loop dimension -> average number of lanes."""
VOLTAGE_SQUARED = Fraction("0.81")
NAND_FF, XOR_FF, FLIP_FLOP_FF, LINE_FF = Fraction("0.7"), Fraction("1.05"), Fraction("2.1"), Fraction("0.35")
NAND_UM2, XOR_UM2, FLIP_FLOP_UM2 = Fraction("0.614"), Fraction("1.4736"), Fraction("3.684")
NAND_NS, XOR_NS = Fraction("0.0478"), Fraction("0.11472")
ADDER_UM2 = 3 * NAND_UM2 + 2 * XOR_UM2


def picojoules(femtofarads: Fraction) -> Fraction:
    """Energy in pJ of a capacity that is charged to the supply voltage."""
    return femtofarads * VOLTAGE_SQUARED / 1000


ADDER_PJ, HALF_PJ = picojoules(3 * NAND_FF + 2 * XOR_FF), picojoules(2 * XOR_FF)


def adders_of_tree(leaves: int, active: int, bits: int) -> tuple[int, int]:
    """(bits of adders that add two numbers, bits of adders with one active input) of a tree of adders.

    The active leaves are neighbours.
    """
    if leaves == 1 or active == 0:
        return 0, 0
    half, width = leaves // 2, bits + int(math.log2(leaves // 2))
    if active <= half:
        full, passing = adders_of_tree(half, active, bits)
        return full, passing + width
    one, other = adders_of_tree(half, half, bits), adders_of_tree(half, active - half, bits)
    return one[0] + other[0] + width, one[1] + other[1]


def adders_of_places(numbers: int, bits: Fraction) -> Fraction:
    """One-bit adders that add up numbers of different place value, pair by pair."""
    if numbers == 1:
        return Fraction(0)
    if numbers == 2:
        return bits + 1
    return 2 * adders_of_places(numbers // 2, bits) + bits + numbers


def ripple_ns(widths: list[Fraction]) -> Fraction:
    """Delay of ripple-carry adders in a row, in ns.

    Each adder but the last adds the delay of one sum. The last adds its first carry and the delay from carry to carry.
    """
    carry = 2 * NAND_NS
    return (len(widths) - 1) * 2 * XOR_NS + XOR_NS + carry + (widths[-1] - 1) * carry


@dataclass(frozen=True)
class PlainArray:
    """An in-memory array."""

    analog: bool
    columns: int
    rows: int
    banks: int
    activation_bits: int
    weight_bits: int
    serial_bits: int
    resolution: int

    @property
    def numbers(self) -> int:
        """Count of the numbers that a column gives for one sum, each with another place value."""
        return self.weight_bits if self.analog else self.serial_bits

    @property
    def number_bits(self) -> Fraction:
        """Bits of each number in a column."""
        return Fraction(self.resolution if self.analog else self.weight_bits + int(math.log2(self.rows)))

    @property
    def accumulator_bits(self) -> int:
        """Bits of the accumulator of a column."""
        if self.serial_bits == self.activation_bits:
            return 0
        return self.activation_bits + self.weight_bits + (self.resolution if self.analog else int(math.log2(self.rows)))

    def areas_mm2(self) -> dict[str, float]:
        """Areas by component, counted column by column."""
        per_column = {
            "dacs": Fraction(0),
            "adcs": Fraction(self._converter_um2()) * self.weight_bits if self.analog else Fraction(0),
            "mults": NAND_UM2 * self.weight_bits * self.rows * (1 if self.analog else self.serial_bits),
            "adders_regular": Fraction(0)
            if self.analog
            else ADDER_UM2 * adders_of_tree(self.rows, self.rows, self.weight_bits)[0] * self.serial_bits,
            "adders_pv": ADDER_UM2 * adders_of_places(self.numbers, self.number_bits),
            "accumulators": (ADDER_UM2 + FLIP_FLOP_UM2) * self.accumulator_bits,
        }
        return {name: float(area * self.columns * self.banks / 10**6) for name, area in per_column.items()}

    def _converter_um2(self) -> float:
        return 0.0 if self.resolution <= 1 else 10 ** (1.206 - 0.0369 * self.resolution) * 2**self.resolution

    def delays_ns(self) -> dict[str, float]:
        """Delays by component."""
        depth = int(math.log2(self.rows))
        converter = self.resolution * (Fraction("0.00653") * self.rows + Fraction("0.64"))
        places = [Fraction(1)] * (int(math.log2(self.numbers)) - 1) + [Fraction(self.numbers)]
        arrived = self.number_bits + (self.numbers if self.numbers > 1 else 0)
        # A tree of depth 0 is nothing; the formula of the reference goes on below it.
        below = -2 * XOR_NS + XOR_NS + 2 * NAND_NS + (self.weight_bits - 2) * 2 * NAND_NS
        tree = ripple_ns([Fraction(1)] * (depth - 1) + [Fraction(self.weight_bits + depth - 1)]) if depth else below
        accumulated = ripple_ns([self.accumulator_bits - arrived]) if self.accumulator_bits else Fraction(0)
        delays = {
            "cells": Fraction(0),
            "dacs": Fraction(0),
            "adcs": converter if self.analog else Fraction(0),
            "mults": NAND_NS,
            "adders_regular": Fraction(0) if self.analog else tree,
            "adders_pv": ripple_ns(places) if self.numbers > 1 else Fraction(0),
            "accumulators": accumulated,
        }
        return {name: float(delay) for name, delay in delays.items()}

    def energies_pj(
        self, operations: int, columns: int | Fraction, rows: int | Fraction, driven: int, only_driven: bool = False
    ) -> dict[str, float]:
        """Energies by component of all cycles; each cycle does `columns` times `rows` operations, with `driven` rows.

        Multipliers of a digital array switch in all rows, or with `only_driven` in rows with inputs.
        """
        cycles = Fraction(operations) / (columns * rows) * Fraction(self.activation_bits, self.serial_bits)
        full, half = adders_of_tree(self.rows, min(driven, self.rows), self.weight_bits)
        converter = Fraction((100 * self.resolution + 0.001 * 4**self.resolution) * 0.81 / 1000)
        driver = Fraction(50 * self.serial_bits, 1000) * VOLTAGE_SQUARED if self.serial_bits > 1 else Fraction(0)
        product = picojoules(NAND_FF) / 2
        if self.analog:
            cycle = {
                "dacs": driver * driven,
                "adcs": (converter if self.resolution else Fraction(0)) * self.weight_bits * columns,
                "mults": product * self.weight_bits * self.columns * driven,
                "analog_bl_addition": picojoules(LINE_FF) * self.weight_bits * columns * self.rows,
            }
        else:
            cycle = {
                "mults": product
                * self.serial_bits
                * self.weight_bits
                * self.columns
                * (driven if only_driven else self.rows),
                "adders_regular": (full * ADDER_PJ + half * HALF_PJ) * self.serial_bits * columns,
            }
        cycle["adders_pv"] = ADDER_PJ * adders_of_places(self.numbers, self.number_bits) * columns
        cycle["accumulators"] = (ADDER_PJ + picojoules(FLIP_FLOP_FF)) * self.accumulator_bits * columns
        return {name: float(energy * cycles) for name, energy in cycle.items()}


def plain_array(array: OperationalArray) -> PlainArray | None:
    """The in-memory array of a hardware file; None if the array multiplies elsewhere."""
    if "in-memory" not in array.kind:
        return None
    (_, columns), (_, rows), *banks = sorted(array.dimensions)
    numbers = {name: int(value) for name, value in array.parameters}
    assert numbers["cell_bits"] == numbers["weight_bits"], "cells of several weights cost more to read"
    return PlainArray(
        analog=array.kind.startswith("analog"),
        columns=columns,
        rows=rows,
        banks=math.prod(size for _, size in banks),
        activation_bits=numbers["activation_bits"],
        weight_bits=numbers["weight_bits"],
        serial_bits=numbers["bit_serial_precision"],
        resolution=numbers.get("adc_resolution", 0),
    )


def phases_of(array: OperationalArray) -> int:
    """Cycles of one operation."""
    own = plain_array(array)
    return 1 if own is None else own.activation_bits // own.serial_bits


def driven_rows(layer: Layer, beside: Lanes, along: Lanes) -> int:
    """Rows with distinct inputs: rows of windows are counted one by one, in whole lanes; other rows in proportion."""
    arriving = next(dimensions for operand, dimensions in layer.operand_dimensions if operand == "I")
    rows = Fraction(1)
    left = dict(along)
    for relation in layer.relations:
        (one, c1), (other, c2) = relation.terms
        own = left.pop(one, Fraction(1)), left.pop(other, Fraction(1))
        if beside.get(one, 1) > 1 or beside.get(other, 1) > 1:
            i, j = (range(math.ceil(beside.get(d, 1) * lanes)) for d, lanes in zip((one, other), own, strict=True))
            rows *= len({c1 * a + c2 * b for a in i for b in j})
        else:
            rows *= own[0] * own[1]
    rows *= math.prod(left.values()) * math.prod(lanes for d, lanes in beside.items() if d in arriving)
    return math.ceil(rows)


def operations_energy_pj(core: Core, layer: Layer, unrolling: Unrolling, switches: Switches) -> float:
    """Energy of all operations of a layer.

    The reference of in-memory arrays has this energy only if columns stand for different weights and share their
    inputs. Raises DoesNotFitError if more rows are needed than there are.
    """
    array = core.operational_array
    own = plain_array(array)
    if own is None:
        return array.unit_energy_pj * layer.mac_count
    busy = "in_memory_active_parts" in switches
    factors = adjusted_factors(unrolling, layer, core, spread_exactly) if busy else list(unrolling)
    lanes = {name: {d: Fraction(f) for d, f in given} for name, given in factors}
    (word_line, _), (bit_line, _), *_ = sorted(array.dimensions)
    beside, along = lanes.get(word_line, {}), lanes.get(bit_line, {})
    columns, rows = math.prod(beside.values()), math.prod(along.values())
    driven = math.ceil(rows)
    if "complete_in_memory_model" in switches:
        driven = driven_rows(layer, beside, along)
        if driven > own.rows:
            raise DoesNotFitError
    else:
        weights = next(terms for operand, terms in layer.operand_dimensions if operand == "W")
        assert set(beside) <= set(weights), "columns with the same weights"
    return sum(own.energies_pj(layer.mac_count, columns, rows, driven, busy).values())
