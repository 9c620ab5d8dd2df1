"""Energy, cycles, clock period and area of in-memory arrays, analog and digital (zigzag-dse 3.9.1).

Section names refer to docs/model/in-memory-arrays.md.

A bank has word lines and bit lines. At each crossing, a cell stores weights. Analog arrays add products along a bit
line and convert the sum; digital arrays have an adder tree for each column. The bits of activations arrive in groups,
one after another.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from tilewright.hardware.array_model import ArrayWork, total
from tilewright.hardware.core import OperationalArray
from tilewright.hardware.in_memory_circuits import (
    ADDER_PJ,
    LINE_PJ,
    MULTIPLIER_PJ,
    REGISTER_PJ,
    InMemoryArray,
    converter_energy_pj,
    driver_energy_pj,
)
from tilewright.hardware.set_order import layer_dimensions_in_set_order

_ANALOG_TERMS = ("dacs", "adcs", "mults", "analog_bl_addition", "adders_pv", "accumulators")
_DIGITAL_TERMS = ("mults", "adders_regular", "adders_pv", "accumulators")


class InMemory(NamedTuple):
    """Model of an analog or digital in-memory array, with the attributes of `ArrayModel`."""

    analog: bool
    terms: tuple[str, ...]

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Energy in pJ of all operations of a layer, by component (section "Energy").

        The computation assumes that a single bank does all the work. The number of cycles of this bank is operations /
        lanes * phases.
        """
        own = InMemoryArray.of(array, self.analog)
        columns, rows = _product(work.lanes.get(own.word_line, {})), _product(work.lanes.get(own.bit_line, {}))
        activations = work.operations / (columns * rows)
        driven = used_rows(own, work)
        found = self._front(own, columns, driven, activations, work.profile.in_memory_active_parts)
        found["adders_pv"] = ADDER_PJ * own.place_value_adders * columns * own.phases * activations
        accumulated = (ADDER_PJ + REGISTER_PJ) * own.accumulator_bits
        found["accumulators"] = accumulated * columns * own.phases * activations
        return tuple(found.get(term, 0.0) for term in self.terms)

    def _front(
        self, own: InMemoryArray, columns: float, driven: int, activations: float, only_driven: bool
    ) -> dict[str, float]:
        """Energy in pJ of the components before the place-value adders, by component.

        `columns` is the number of columns in use, `driven` is the number of rows that take inputs, and `activations` is
        the number of operations per lane of a bank. In digital arrays, the multipliers of all rows switch, or only
        those in rows that take inputs if `only_driven` is true.
        """
        bits, phases = own.weight_bits, own.phases
        if self.analog:
            lanes = bits * own.columns * driven
            return {
                "dacs": driver_energy_pj(own.serial_bits) * driven * phases * activations,
                "adcs": converter_energy_pj(own.converter_bits) * bits * columns * phases * activations,
                "mults": MULTIPLIER_PJ * lanes * phases * activations,
                "analog_bl_addition": LINE_PJ * bits * columns * own.rows * phases * activations,
            }
        switching = driven if only_driven else own.rows
        lanes = own.serial_bits * bits * own.columns * switching
        return {
            "mults": MULTIPLIER_PJ * lanes * phases * activations,
            "adders_regular": own.tree_energy_pj(driven) * own.serial_bits * columns * phases * activations,
        }

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Number of phases in which the bits of an activation arrive."""
        return InMemoryArray.of(array, self.analog).phases

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Area in mm2 of all circuits of the array except the cells. The cells count as a memory."""
        return total(self.area_breakdown_mm2(array).values())

    def area_breakdown_mm2(self, array: OperationalArray) -> dict[str, float]:
        """Name of a component -> area of its circuits in mm2. The cells are left out."""
        return dict(InMemoryArray.of(array, self.analog).areas_mm2)

    def clock_breakdown_ns(self, array: OperationalArray) -> dict[str, float]:
        """Delay in ns of each component on the critical path of a clock cycle."""
        return dict(InMemoryArray.of(array, self.analog).delays_ns)

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Shortest clock cycle in ns: the sum of the delays in `clock_breakdown_ns`."""
        return total(self.clock_breakdown_ns(array).values())

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Reason why a mapping is refused; '' if the mapping is allowed.

        A model profile that repairs fault B14 (docs/model.md) refuses only mappings that need more rows than the array
        has. Other profiles refuse the mappings for which the reference ends with an error.
        """
        own = InMemoryArray.of(array, self.analog)
        if work.profile.complete_in_memory_model:
            needed = used_rows(own, work)
            if needed <= own.rows:
                return ""
            told = f"the outputs on {own.word_line} need {needed} rows of inputs"
            return f"{told}, but {own.bit_line} has {own.rows}"
        if own.cell_bits > own.weight_bits:
            return f"{_UNKNOWN}: cells of {own.cell_bits} bits for weights of {own.weight_bits} bits; {_REPAIRED}"
        slid = _unshared(own, work)
        if slid and len(work.lanes.get(own.bit_line, {})) == 1:
            loops = f"loops {', '.join(slid)} unrolled over {own.word_line}, and one loop unrolled over {own.bit_line}"
            return f"{_UNKNOWN}: {loops}; {_REPAIRED}"
        alone = [name for name, window in work.input_loops.items() if window is None]
        if slid and alone:
            loops = f"loops {', '.join(slid)} unrolled over {own.word_line}, and equal weights over {', '.join(alone)}"
            return f"{_UNKNOWN}: {loops}; {_REPAIRED}"
        return ""


_UNKNOWN = "this model profile cannot compute the energy (fault B14)"
_REPAIRED = "use the profile zigzag-3.9.1+complete_in_memory_model or corrected"
ANALOG = InMemory(True, _ANALOG_TERMS)
DIGITAL = InMemory(False, _DIGITAL_TERMS)


def used_rows(own: InMemoryArray, work: ArrayWork) -> int:
    """Number of rows of a bank that take inputs (section "Rows").

    Neighbouring columns can compute neighbouring outputs of one sliding window. Their inputs then lie in diagonals, and
    each further output needs one more row. The reference adds these rows to a wrong loop (fault B14). If the model
    profile repairs this fault, the result is the number of distinct inputs.
    """
    beside, along = work.lanes.get(own.word_line, {}), work.lanes.get(own.bit_line, {})
    if work.profile.complete_in_memory_model:
        return _distinct_inputs(beside, along, work)
    lanes = list(along.values())
    if _unshared(own, work) and len(along) > 1:
        order = layer_dimensions_in_set_order(along)
        for name in _unshared(own, work):
            window = work.input_loops[name]
            if window is not None and window.partner in along:
                lanes[order.index(window.partner)] += beside[name] - 1
    return _whole(math.prod(lanes))


def _distinct_inputs(beside: Mapping[str, float], along: Mapping[str, float], work: ArrayWork) -> int:
    """Number of rows of a bank that take inputs: one row for each distinct input. Columns that need the same input
    share its row. Columns that need different inputs use different rows.

    `beside` has the lanes along a word line, one column per lane. `along` has the lanes along a bit line. Both map a
    loop dimension to its number of lanes.
    """
    rows, left = 1.0, dict(along)
    counted: set[str] = set()
    for name in beside:
        if name not in work.input_loops or name in counted:
            continue
        window = work.input_loops[name]
        if window is None:
            rows *= beside[name] * left.pop(name, 1)
            continue
        counted |= {name, window.partner}
        own, partner = left.pop(name, 1), left.pop(window.partner, 1)
        lanes = [math.ceil(beside[name] * own), math.ceil(beside.get(window.partner, 1) * partner)]
        slid = max(beside[name], beside.get(window.partner, 1)) > 1
        rows *= max(window.positions(*lanes), own * partner) if slid else own * partner
    return _whole(rows * _product(left))


def _whole(rows: float) -> int:
    """Number of rows, rounded up to a whole number. An excess that is only a rounding error is ignored."""
    return math.ceil(rows * (1 - 1e-12))


def _unshared(own: InMemoryArray, work: ArrayWork) -> list[str]:
    """Loop dimensions that the mapping spreads over columns and along which inputs differ (`input_loops`). The list is
    empty if the mapping uses only one row."""
    if _product(work.lanes.get(own.bit_line, {})) == 1:
        return []
    return [name for name in work.lanes.get(own.word_line, {}) if name in work.input_loops]


def _product(lanes: Mapping[str, float]) -> float:
    return math.prod(lanes.values())
