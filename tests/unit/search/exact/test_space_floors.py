"""Floors of many spatial mappings at once: below every mapping, and above the floors of the tensors alone."""

import numpy as np
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.mapping.spatial_space import SpatialTable
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.space_floors import SpaceFloors, space_floors

from tests.unit.search.exact.exact_brute_force import Mappings, space_of
from tests.unit.search.exact.exact_cases import ExactCase, problems

WEIGHT = 3.7
"""Weight of the latency, in pJ per cycle."""


def table_of(case: ExactCase, prepared: PreparedProblem) -> SpatialTable:
    """Table with the spatial mapping of the problem only."""
    sides = tuple(name for name, _ in case.core.operational_array.dimensions)
    names = tuple(name for name, _ in case.layer.loop_sizes)
    lanes = np.ones((1, len(sides), len(names)), np.int64)
    for side, factors in prepared.spatial.unrolling:
        for dimension, factor in factors:
            lanes[0, sides.index(side), names.index(dimension)] *= factor
    return SpatialTable(sides, names, lanes)


def floors_of(case: ExactCase, prepared: PreparedProblem) -> SpaceFloors:
    """Floors of the spatial mapping of the problem."""
    found = space_floors(case.layer, case.core, case.links, CORRECTED, table_of(case, prepared))
    assert found is not None
    return found


def ratios(floors: SpaceFloors, space: Mappings) -> list[float]:
    """Floors of energy, latency, EDP and energy + WEIGHT x latency, as shares of the least values of all mappings."""
    energy, latency = space.values("energy"), space.values("latency")
    least = {"energy": energy.min(), "latency": latency.min(), "EDP": (energy * latency).min()}
    shares = [float(floors.values(name)[0] / value) for name, value in least.items()]
    return [*shares, float(floors.values("energy", WEIGHT)[0] / (energy + WEIGHT * latency).min())]


def check_floors(seeds: range) -> list[list[float]]:
    """Shares of `ratios` of all problems and both allocations, none of which is above 1."""
    found = []
    for (seed, model), case, prepared in problems(seeds):
        if model != CORRECTED.name:
            continue
        floors = floors_of(case, prepared)
        for allocation in ("greedy", "free"):
            for space in space_of(prepared, allocation):
                if len(space.values("energy")):
                    found.append(ratios(floors, space))
                    assert max(found[-1]) <= 1 + 1e-9, (seed, allocation, found[-1])
    return found


def test_no_mapping_is_below_the_floors() -> None:
    """Of either allocation and any objective, by brute force; half of the floors of the energy are at least 70 %."""
    shares = np.array(check_floors(range(3600, 3625)))
    assert len(shares) > 30
    assert (np.median(shares, axis=0) > [0.7, 0.4, 0.3, 0.6]).all()


def test_the_reference_has_none() -> None:
    """Its faults let data cross a boundary less than once."""
    for (_, model), case, prepared in problems(range(3600, 3603)):
        if model == REFERENCE.name:
            table = table_of(case, prepared)
            assert space_floors(case.layer, case.core, case.links, REFERENCE, table) is None
