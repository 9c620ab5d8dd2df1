"""Floors of many spatial mappings at once: below every mapping, and above the floors of the tensors alone."""

import numpy as np
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.spatial_space import SpatialTable
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.space_floors import SpaceFloors, space_floors
from tilewright.search.exact.tables import sizes_tiles_in_any_order

from tests.members import members
from tests.unit.cost.engine_cases import LINKS, depthwise
from tests.unit.search.exact.exact_brute_force import Mappings, optimum, space_of
from tests.unit.search.exact.exact_cases import ExactCase, problems

WEIGHT = 3.7
"""Weight of the latency, in pJ per cycle."""


def table_of(case: ExactCase, prepared: PreparedProblem) -> SpatialTable:
    """Table with only the spatial mapping of the problem."""
    sides = tuple(name for name, _ in case.core.operational_array.dimensions)
    names = tuple(name for name, _ in case.layer.loop_sizes)
    lanes = np.ones((1, len(sides), len(names)), np.int64)
    for side, factors in prepared.spatial.unrolling:
        for dimension, factor in factors:
            lanes[0, sides.index(side), names.index(dimension)] *= factor
    return SpatialTable(sides, names, lanes)


def floors_of(case: ExactCase, prepared: PreparedProblem) -> SpaceFloors:
    """Floors of the problem's spatial mapping."""
    found = space_floors(case.layer, case.core, case.links, CORRECTED, table_of(case, prepared))
    assert found is not None
    return found


def ratios(floors: SpaceFloors, space: Mappings) -> list[float]:
    """Floors of energy, latency, EDP and energy + WEIGHT x latency, divided by the least values of all mappings."""
    energy, latency = space.values("energy"), space.values("latency")
    least = {"energy": energy.min(), "latency": latency.min(), "EDP": (energy * latency).min()}
    shares = [float(floors.values(name)[0] / value) for name, value in least.items()]
    return [*shares, float(floors.values("energy", WEIGHT)[0] / (energy + WEIGHT * latency).min())]


def check_floors(seeds: range, ragged_only: bool = False) -> list[list[float]]:
    """Shares of `ratios` for all problems and both allocations; checks that none is above 1.

    With `ragged_only`, problems whose lanes divide every loop are left out.
    """
    found = []
    for (seed, model), case, prepared in problems(seeds):
        if model != CORRECTED.name or (ragged_only and not prepared.arrays.spatial_fractional):
            continue
        floors = floors_of(case, prepared)
        spaces = {name: space_of(prepared, name) for name in ("greedy", "free")}
        for allocation, members_of in spaces.items():
            for space in members_of:
                if not floors.fits[0]:
                    assert np.isinf(space.values("energy")).all(), (seed, allocation)
                elif len(space.values("energy")):
                    found.append(ratios(floors, space))
                    assert max(found[-1]) <= 1 + 1e-9, (seed, allocation, found[-1])
        check_free_space(seed, prepared, spaces)
    return found


def check_free_space(seed: int, prepared: PreparedProblem, spaces: dict[str, list[Mappings]]) -> None:
    """Check that the best free mapping is as good as the best greedy mapping: the greedy bounds rely on this."""
    assert sizes_tiles_in_any_order(prepared.arrays)
    for objective in ("energy", "latency", "EDP"):
        greedy, free = (optimum(spaces[allocation], objective) for allocation in ("greedy", "free"))
        assert free <= greedy * (1 + 1e-9), (seed, objective)


def test_no_mapping_is_below_the_floors() -> None:
    """No mapping of either allocation is below the floors, by brute force; the median energy floor is above 70 %."""
    shares = np.array(check_floors(range(3600, 3625)))
    assert len(shares) > 30
    assert (np.median(shares, axis=0) > [0.7, 0.4, 0.3, 0.6]).all()


def test_no_mapping_is_below_the_floors_if_lanes_do_not_divide_a_loop() -> None:
    """The largest tile has the average number of lanes, rounded up, if lanes do not divide a loop, and floors still
    hold.
    """
    shares = np.array(check_floors(range(10000, 10000 + members(600, 90)), ragged_only=True))
    shares = shares[shares.max(axis=1) > 0]  # without spaces in which no mapping fits
    assert len(shares) > 10
    assert (np.median(shares, axis=0) > [0.7, 0.15, 0.2, 0.6]).all()


def test_ports_are_busy_if_lanes_do_not_divide_a_loop() -> None:
    """7 columns on 4 lanes take 2 passes of 3.5 lanes on average, so the largest transfer has 4 inputs.

    4 inputs are 2 words of 2 inputs. With 3 groups, there are 2 x 3 passes: 12 cycles.
    """
    layer = depthwise("ragged", (("W", 8), ("I", 8), ("O", 8), ("O_final", 8)), B=1, G=3, OY=1, OX=7)
    ports = tuple(
        Port(f"{operand} {way}", "read_write", 8, 16 if (operand, way) == ("I1", "tl") else 1024, ((operand, way),))
        for operand, way in (("I1", "tl"), ("I1", "fh"), ("I2", "tl"), ("I2", "fh"), ("O", "tl"), ("O", "fl"))
    )
    top = Memory("top", 10**9, 1.0, 1.0, ("I1", "I2", "O"), ports, ("D1",))
    core = Core("core", OperationalArray((("D1", 4),), 0.04, 1.0), (top,))
    lanes = np.ones((1, 1, len(layer.loop_sizes)), np.int64)
    lanes[0, 0, [name for name, _ in layer.loop_sizes].index("OX")] = 4
    table = SpatialTable(("D1",), tuple(name for name, _ in layer.loop_sizes), lanes)
    found = space_floors(layer, core, LINKS, CORRECTED, table)
    assert found is not None
    assert found.latency_cycles[found.can_be_innermost].min() == 2 * 2 * 3


def test_the_reference_has_none() -> None:
    """The reference has no floors: because of its faults, it can count less traffic than moving all data once."""
    for (_, model), case, prepared in problems(range(3600, 3603)):
        if model == REFERENCE.name:
            table = table_of(case, prepared)
            assert space_floors(case.layer, case.core, case.links, REFERENCE, table) is None
