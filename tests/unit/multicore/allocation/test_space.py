"""The space of allocations: allowed cores, requests of mapping files, and tables that reproduce an allocation."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.allocation.result import Evaluation, choose, pareto_front
from tilewright.multicore.allocation.search import warm_starts
from tilewright.multicore.allocation.space import AllocationSpace, LayerRequest, allocation_space, unfit_for_core
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate

from tests.members import members
from tests.unit.multicore.allocation.cases import instance, space_of
from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.tiny_systems import (
    INPUT,
    WEIGHT,
    Link,
    Memory,
    Node,
    Piece,
    bus_system,
    make_problem,
    make_system,
)


def two_groups() -> SchedulingProblem:
    """Layer 0 in groups 0 and 1, and layer 5 in one group, on three cores. Core 2 cannot run layer 5; core 1 is
    small.
    """
    pieces = [Piece(50), Piece(60), Piece(10, 0), Piece(10, 1), Piece(20, 2, True)]
    nodes = [
        Node({0: 10, 1: 20, 2: 10}, [(0, WEIGHT)], layer=0, group=0, energy_pj=5),
        Node({0: 10, 1: 20, 2: 10}, [(1, WEIGHT)], layer=0, group=1, energy_pj=5),
        Node({0: 30, 1: 15}, [(2, INPUT), (3, INPUT)], layer=5, energy_pj=5),
    ]
    return make_problem(bus_system(3, [1000, 65, 1000]), pieces, nodes)


def test_parts_and_choices() -> None:
    """Parts are (layer, group). A core without a cost, or too small for the CN, is left out with the reason."""
    space = space_of(two_groups())
    assert space.parts == ((0, 0), (0, 1), (5, 0))
    assert space.choices == ((0, 1, 2), (0, 2), (0, 1))
    assert [(e.layer, e.group, e.core, e.reason) for e in space.exclusions if e.core == 2] == [
        (5, 0, 2, "no cost in the cost table")
    ]
    assert (0, 1, 1, "CN 1 needs 70 bits in memory 1, which has 65 bits") in [
        (e.layer, e.group, e.core, e.reason) for e in space.exclusions
    ]
    assert space.runtime_cycles.tolist() == [[10, 20, 10, -1], [10, -1, 10, -1], [30, 15, -1, -1]]


def test_genes_are_parts_with_a_choice() -> None:
    """A part with one core has no gene, and a genome expands to one core for each CN."""
    space = allocation_space(two_groups(), [LayerRequest(5, (1,))])
    assert space.flexible == (0, 1)
    assert space.part_cores((2, 0)) == (2, 0, 1)
    assert space.allocation((2, 0)).tolist() == [2, 0, 1]
    assert space.genome((2, 0, 1)) == (2, 0)
    with pytest.raises(InputError) as error:
        space.genome((2, 1, 0))
    assert [problem.path for problem in error.value.problems] == ["layer 0 group 1", "layer 5 group 0"]


def test_cores_left_are_those_the_scheduler_accepts() -> None:
    """The scheduler accepts the move of one part to a core exactly where the space allows this core."""
    compared = Counter(accepted for seed in range(60) for accepted in accepted_moves(seed))
    assert min(compared[True], compared[False]) > 50, compared


def accepted_moves(seed: int) -> Iterator[bool]:
    """Whether the scheduler accepts each move of a part in a random problem; checks each answer against the space."""
    problem, _ = random_problem(seed)
    system = problem.system
    rng = np.random.default_rng(seed)
    capacity = system.memory_capacity_bits
    capacity[:-1] = np.maximum(capacity[:-1] * rng.choice([0.3, 0.6, 1.0], len(capacity) - 1), 1).astype(np.int64)
    problem.costs.runtime_cycles[rng.random(problem.costs.runtime_cycles.shape) < 0.15] = -1
    try:
        space = space_of(problem)
    except InputError:
        return  # a part without core; the next test is about those
    base = [choices[0] for choices in space.choices]
    for part in range(len(base)):
        for core in range(system.core_count):
            cores = np.array([*base[:part], core, *base[part + 1 :]])
            try:
                simulate(problem, cores[space.part_of_cn])
                accepted = True
            except MappingError:
                accepted = False
            assert accepted == (core in space.choices[part]), (seed, part, core)
            yield accepted


def plain_exclusions(problem: SchedulingProblem) -> list[tuple[int, int, int, str]]:
    """(layer, group, core, reason) for each part that a core cannot run, by checking each core and each CN alone."""
    parts = sorted(set(zip(problem.graph.layer.tolist(), problem.graph.group.tolist(), strict=True)))
    found = []
    for layer, group in parts:
        cns = {cn for cn in range(problem.graph.node_count) if problem.graph.layer[cn] == layer}
        cns = {cn for cn in cns if problem.graph.group[cn] == group}
        for core in range(problem.system.core_count):
            pairs = [
                pair for unfit in unfit_for_core(problem, core) for pair in zip(unfit.cns, unfit.texts, strict=True)
            ]
            texts = [text for cn, text in pairs if cn in cns]
            if texts and core != problem.system.off_chip_core:
                found.append((layer, group, core, texts[0]))
    return found


@pytest.mark.parametrize("seed", range(members(60, 12)))
def test_cores_that_are_alike_are_each_told(seed: int) -> None:
    """The space skips a core that is like a core for all CNs; its exclusions equal those from a check of every core.

    Cases are drawn costs, equal costs, and memories of one size, which is too small for some CNs or for none.
    """
    drawn, _ = random_problem(seed)
    largest = int(drawn.system.memory_capacity_bits.max())
    problems = [drawn]
    for room in (largest, largest // 2, 10**9):
        capacity = np.full_like(drawn.system.memory_capacity_bits, room)
        system = replace(drawn.system, memory_capacity_bits=capacity)
        first = drawn.costs.runtime_cycles[:, :1]
        alike = replace(drawn.costs, runtime_cycles=np.repeat(first, system.core_count, axis=1))
        problems += [replace(drawn, system=system), replace(drawn, system=system, costs=alike)]
    for problem in problems:
        expected = plain_exclusions(problem)
        try:
            space = allocation_space(problem)
        except InputError:
            on_chip = problem.system.core_count - 1
            excluded = Counter((layer, group) for layer, group, _, _ in expected)
            assert on_chip in excluded.values()  # a part without a core
            continue
        assert [(one.layer, one.group, one.core, one.reason) for one in space.exclusions] == expected


def test_a_part_that_no_core_can_run_is_told_with_the_reasons() -> None:
    """A part that no core can run is a problem that gives the reason of each core."""
    problem = two_groups()
    problem.costs.runtime_cycles[2] = -1
    problem.costs.runtime_cycles[1] = -1
    with pytest.raises(InputError) as error:
        allocation_space(problem, [LayerRequest(5, (0, 1))])
    assert [problem.path for problem in error.value.problems] == ["layer 0 group 1", "layer 5 group 0"]
    assert "cores 0, 1: no cost in the cost table" in str(error.value)


def test_parts_that_fail_for_one_cause_are_told_together() -> None:
    """Two groups of layer 0 that fail for one cause make one problem; layer 5 fails for another cause and makes a
    second.
    """
    problem = two_groups()
    problem.costs.runtime_cycles[:] = -1
    with pytest.raises(InputError) as error:
        allocation_space(problem, [LayerRequest(5, (0, 1))])
    told = [str(one) for one in error.value.problems]
    assert len(told) == 2
    assert told[0].startswith("no core can run 2 parts of 1 layer, layer 0 (core")
    assert told[1].startswith("layer 5 group 0: no core can run it (cores 0, 1: no cost in the cost table")


def test_core_without_path_to_the_off_chip_memory_is_left_out() -> None:
    """A core without a path to the off-chip memory is left out, because it could not read constants."""
    system = make_system([0, 1, 2], [Memory()] * 3, [Link()], {(0, 2): [0], (2, 0): [0]})
    problem = make_problem(system, [Piece(5), Piece(5, 0, True)], [Node(3, [(0, WEIGHT)])])
    space = space_of(problem)
    assert space.choices == ((0,),)
    assert "no path" in next(e.reason for e in space.exclusions if e.core == 1)


def test_wrong_requests_are_all_told() -> None:
    """Unknown layers and cores, the off-chip core, wrong numbers of groups, and fixed cores that cannot run a part are
    all reported.
    """
    requests = [
        LayerRequest(7, (0,)),
        LayerRequest(0, (0, 9), is_fixed=True),
        LayerRequest(0, (0,), is_fixed=True),
        LayerRequest(5, (3, 2)),
    ]
    with pytest.raises(InputError) as error:
        allocation_space(two_groups(), requests)
    told = {(problem.path, problem.message.split(":")[0], problem.value) for problem in error.value.problems}
    assert ("layer 7", "has a core_allocation, but no computation nodes (CNs)", "") in told
    assert ("layer 0: core_allocation", "no such compute core", "9") in told
    assert ("layer 5: core_allocation", "no such compute core", "3") in told
    assert ("layer 0", "has two entries of core_allocation", "") in told
    assert any(path == "layer 0: core_allocation" and value == "[0]" for path, _, value in told)
    assert any(path == "layer 5 group 0" for path, _, _ in told)


def test_warm_starts() -> None:
    """The first warm start takes the fastest cores; warm starts are distinct and take equal cores in turn."""
    space = space_of(two_groups())
    starts = [space.part_cores(start) for start in warm_starts(space)]
    assert starts[0] == (0, 0, 1)
    assert len(set(starts)) == len(starts)
    assert (0, 2, 1) in starts
    assert (2, 2, 1) in starts


@pytest.mark.parametrize("seed", range(5))
def test_warm_starts_keep_to_the_choices(seed: int) -> None:
    """Each warm start is a genome of the space."""
    space = space_of(instance(seed))
    for start in warm_starts(space):
        assert all(core in choices for core, choices in zip(start, space.gene_choices, strict=True))


def test_ties_go_to_the_other_objective_then_to_the_smaller_genome() -> None:
    """The choice and the front do not depend on the order of the points."""
    points = [
        Evaluation((2,), 10, 5.0),
        Evaluation((1,), 10, 5.0),
        Evaluation((0,), 10, 6.0),
        Evaluation((3,), 25, 2.0),
    ]
    assert choose(points, "latency").genome == choose(points[::-1], "latency").genome == (1,)
    assert choose(points, "energy").genome == (3,)
    assert choose(points, "EDP").genome == (1,)
    assert [point.genome for point in pareto_front(points)] == [(1,), (3,)]
    noise = Evaluation((9,), 30, 2.0 * (1 - 1e-15))
    assert pareto_front([*points, noise]) == pareto_front(points)


def test_space_is_a_plain_value() -> None:
    """The size of a space of 100 parts with 4 cores each does not overflow."""
    many = AllocationSpace(
        tuple((layer, 0) for layer in range(100)),
        np.arange(100),
        ((0, 1, 2, 3),) * 100,
        np.ones((100, 5), np.int64),
        np.ones((100, 5)),
    )
    assert many.size == 4**100
