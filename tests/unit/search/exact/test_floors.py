"""Floors of a layer, which are lower bounds for every mapping."""

from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.search.exact.floors import NO_FLOORS, tensor_floors

from tests.unit.search.exact.exact_brute_force import space_of
from tests.unit.search.exact.exact_cases import problems


def test_no_mapping_is_below_the_floors() -> None:
    """No mapping of either allocation is below the floors, by brute force; some latencies are within twice the
    floor.
    """
    reached = tried = 0
    for (seed, model), case, prepared in problems(range(3500, 3530)):
        if model != CORRECTED.name:
            continue
        floors = tensor_floors(case.layer, case.core, case.links, CORRECTED)
        for allocation in ("greedy", "free"):
            for space in space_of(prepared, allocation):
                energy, latency = space.values("energy"), space.values("latency")
                if not len(energy):
                    continue
                fixed = float(prepared.arrays.fixed_energy_pj)
                assert energy.min() >= (floors.energy_pj + fixed) * (1 - 1e-9), seed
                assert latency.min() >= floors.cycles * (1 - 1e-9), seed
                reached += latency.min() <= 2 * floors.cycles
                tried += 1
    assert tried > 25
    assert reached > 5


def test_the_reference_has_none() -> None:
    """The reference has no floors: because of its faults, it can count less traffic than moving all data once."""
    for _, case, _ in problems(range(3500, 3510)):
        assert tensor_floors(case.layer, case.core, case.links, REFERENCE) == NO_FLOORS
