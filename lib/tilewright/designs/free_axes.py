"""Axes of a space whose values change results but not costs.

The value with the best results therefore wins, although it may not be free on a real chip.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tilewright.base.errors import InputError
from tilewright.designs.answer import Answer
from tilewright.designs.effects import best_designs
from tilewright.designs.front import Front
from tilewright.designs.laws import Value, value_word
from tilewright.designs.space import Space
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.static_power import static_power_mw
from tilewright.hardware.system import core_area


class FreeAxis(NamedTuple):
    """Axis along which all designs have the same costs."""

    name: str
    value: Value
    """Value of the axis in the design."""
    others: tuple[Value, ...]
    """Other values of the axis, for which the costs are the same."""
    indexes: tuple[int, ...]
    """Index of the design with each value of `others`, in the order of `others`."""


def free_axes(space: Space, index: int) -> Iterator[FreeAxis]:
    """Axes that change no cost of the design with this index.

    The design is compared with the designs that differ from it only in one axis. The axis changes no cost if all these
    designs have the same area, static power, energy per operation, and energy per word or per bit of each memory.
    Designs that are not valid are left out. There are no axes if designs have several cores, or if the area of the
    design is not known.
    """
    own = None if space.is_of_systems else _core(space, index)
    if own is None or core_area(own).mm2 is None:
        return
    for place, axis in enumerate(space.axes):
        found = [(value, other, _core(space, other)) for value, other in space.along(index, place)]
        others = [(value, other, core) for value, other, core in found if core is not None]
        if others and all(_cost_the_same(own, core) for _, _, core in others):
            value = axis.values[space.positions(index)[place]]
            values, indexes, _ = zip(*others, strict=True)
            yield FreeAxis(axis.name, value, values, indexes)


def free_sentence(axis: FreeAxis, design: str, front: Front, measure: str) -> str:
    """Sentence on an axis that changes no cost for a design. `design` has the least value of `measure` among the
    compared designs of `front`.
    """
    others = ", ".join(value_word(value) for value in axis.others)
    told = (
        f"Axis {axis.name} costs nothing in this space: {design} and the designs that differ from it only in this axis"
        f" (value{'s' * (len(axis.others) > 1)} {others}) have the same area and static power, and the same energy per"
        " operation and per word or bit of each memory."
    )
    of_design = front.compared.set_index("index")[measure]
    least, words, value = of_design.min(), front.measures[measure].words, value_word(axis.value)
    equal = [
        value_word(other)
        for other, index in zip(axis.others, axis.indexes, strict=True)
        if index in of_design.index and of_design[index] == least
    ]
    decides = f"the other measures, then the order of the space, chose {value}"
    if len(equal) == len(axis.others):
        return f"{told} They also have the same {words}: {decides}."
    tied = f" {_values(equal)} {'give' if len(equal) > 1 else 'gives'} the same {words}: {decides}." if equal else ""
    over = "instead of the other values" if equal else f"of {design}"
    return (
        f"{told}{tied} The value {value} {over} is therefore chosen without a price; if it has a price in"
        " hardware, add this price to the space, for example with a law."
    )


def _values(words: Sequence[str]) -> str:
    return f"The value{'s' * (len(words) > 1)} {', '.join(words)} also"


def with_free_axes(space: Space, answer: Answer) -> Answer:
    """Answer with sentences on the axes that change no cost for one design: the design with the least EDP over all
    networks. If the table may lack this design, the best design in another measure is taken: the first measure whose
    best design is known.
    """
    best = dict(best_designs(answer.overall))
    if not best:
        return answer
    _, _, product, _ = answer.overall.measures
    measure = product if product in best else next(iter(best))
    row = best[measure]
    axes = free_axes(space, int(row["index"]))
    told = (free_sentence(axis, str(row["design"]), answer.overall, measure) for axis in axes)
    return replace(answer, free_notes=tuple(told))


def _core(space: Space, index: int) -> Core | None:
    """Core of a design; None if the design has none or is not valid."""
    design = space.design(index)
    if design.problem or design.excluded_by:
        return None
    try:
        return parse_accelerator(design.hardware).cores[0]
    except InputError:
        return None


def _cost_the_same(one: Core, other: Core) -> bool:
    areas = core_area(one).mm2, core_area(other).mm2
    arrays = one.operational_array, other.operational_array
    pairs = [
        areas,
        (static_power_mw(one), static_power_mw(other)),
        (arrays[0].unit_energy_pj, arrays[1].unit_energy_pj),
    ]
    if None in areas or len(one.memories) != len(other.memories):
        return False
    are_alike = arrays[0].figures == arrays[1].figures and arrays[0].parameters == arrays[1].parameters
    are_alike = are_alike and one.figures == other.figures
    are_equal = all(_equal(*pair) for pair in pairs)
    return are_alike and are_equal and all(map(_memories_cost_the_same, one.memories, other.memories))


def _memories_cost_the_same(one: Memory, other: Memory) -> bool:
    """True if an access takes the same energy in both memories, per word or per bit. Additional numbers
    (`Memory.figures`) must be equal, too.
    """
    if one.figures != other.figures:
        return False
    for first, second, kind in (
        (one.read_energy_pj, other.read_energy_pj, "write"),
        (one.write_energy_pj, other.write_energy_pj, "read"),
    ):
        bits = [
            max((port.bandwidth_max_bits for port in memory.ports if port.port_type != kind), default=1)
            for memory in (one, other)
        ]
        if not (_equal(first, second) or _equal(first / bits[0], second / bits[1])):
            return False
    return True


def _equal(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9)
