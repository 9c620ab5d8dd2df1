"""Ranges of energy and area from ranges of costs: each end equals the results with the costs at that end."""

from dataclasses import replace

import pytest
from tilewright.hardware.core import Core
from tilewright.hardware.silicon.memory_cost import CostSource
from tilewright.hardware.system import core_area
from tilewright.search.cost_ranges import cost_ranges
from tilewright.search.evaluate import evaluate

from tests.unit.cost.engine_cases import LINKS, gemm, register_core

LAYER = gemm(C=4, D=6, K=4)
UNROLLING, ORDER = (("D1", ()),), (("C", 4), ("D", 6), ("K", 4))
LOW, HIGH = 0.7, 1.3


def with_factor(core: Core, name: str, factor: float, source: CostSource | None = None) -> Core:
    """A core whose memory has its costs multiplied by a factor."""
    memories = tuple(
        replace(
            memory,
            read_energy_pj=memory.read_energy_pj * factor,
            write_energy_pj=memory.write_energy_pj * factor,
            area_mm2=memory.area_mm2 * factor,
            cost_source=source,
        )
        if memory.name == name
        else memory
        for memory in core.memories
    )
    return replace(core, memories=memories)


def test_the_ends_are_what_costs_at_their_ends_give() -> None:
    """The ends of the total equal the totals with one memory's costs at each end if only these costs have a range.

    Each memory has the range in turn. The mapping stays the same.
    """
    plain = register_core()
    array = replace(plain.operational_array, unit_area_mm2=0.01)
    plain = replace(plain, operational_array=array, memories=tuple(replace(m, area_mm2=0.5) for m in plain.memories))
    for memory in plain.memories:
        source = CostSource("law", "publication", (), relative_range=(LOW, HIGH))
        core = with_factor(plain, memory.name, 1.0, source)
        record = evaluate(LAYER, core, LINKS, UNROLLING, ORDER)
        found = cost_ranges(core, [record], record.energy_pj, core_area(core).mm2)
        ends = [with_factor(plain, memory.name, factor) for factor in (LOW, HIGH)]
        energies = [evaluate(LAYER, end, LINKS, UNROLLING, ORDER).energy_pj for end in ends]
        assert found["energy_pj"] == pytest.approx(energies)
        assert found["area_mm2"] == pytest.approx([core_area(end).mm2 for end in ends])
        assert [part["memory"] for part in found["parts"]] == [memory.name]


def test_numbers_of_a_file_have_no_range() -> None:
    """Numbers from a file have no range, and neither has a law without one."""
    core = register_core()
    record = evaluate(LAYER, core, LINKS, UNROLLING, ORDER)
    assert cost_ranges(core, [record], record.energy_pj, None) == {}
    certain = with_factor(core, core.memories[0].name, 1.0, CostSource("law", "publication", ()))
    assert cost_ranges(certain, [record], record.energy_pj, None) == {}
