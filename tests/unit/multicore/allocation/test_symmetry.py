"""Interchangeable cores: how they are found, and what the searches may conclude from them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tilewright.multicore.allocation.exact.relaxation import relaxation_of
from tilewright.multicore.allocation.exact.search import interchangeable_cores, limited, renamings, search_exactly
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.allocation.search import schedule_judge
from tilewright.multicore.allocation.space import LayerRequest, allocation_space
from tilewright.multicore.scheduling.problem import SchedulingProblem

from tests.unit.multicore.allocation.cases import brute_force
from tests.unit.multicore.allocation.exact_attack import bounds_of
from tests.unit.multicore.allocation.simple_bounds import simple_bounds
from tests.unit.multicore.scheduling.random_networks import random_network_on_equal_cores
from tests.unit.multicore.scheduling.tiny_systems import Link, Memory, Node, make_problem, make_system


def alike(problem: SchedulingProblem, *requests: LayerRequest) -> tuple[tuple[int, ...], ...]:
    """The interchangeable cores of a problem."""
    return interchangeable_cores(problem, allocation_space(problem, requests))


def on_star(widths: list[int], cycles: dict[int, int]) -> SchedulingProblem:
    """Two layers of one CN each, on a star: every core has its own link, and so has the off-chip core."""
    count = len(widths)
    pairs = {(i, j): [i, j] for i in range(count + 1) for j in range(count + 1) if i != j}
    links = [Link(width) for width in [*widths, 10]]
    system = make_system(list(range(count + 1)), [Memory()] * (count + 1), links, pairs)
    return make_problem(system, [], [Node(cycles), Node(cycles, layer=1)])


def test_cores_with_memories_and_links_of_their_own() -> None:
    """Cores with equal private memories and links are interchangeable; other costs, words or widths make a core
    differ.
    """
    equal = dict.fromkeys(range(4), 5)
    assert alike(on_star([8, 8, 8, 8], equal)) == ((0, 1, 2, 3),)
    assert alike(on_star([8, 4, 8, 4], equal)) == ((0, 2), (1, 3))
    assert alike(on_star([8, 8, 8, 8], {**equal, 2: 6})) == ((0, 1, 3),)
    problem = on_star([8, 8, 8, 8], equal)
    words = np.array([1000, 500, 1000, 1000, 1000])
    assert alike(replace(problem, system=replace(problem.system, memory_read_bits=words))) == ((0, 2, 3),)


def test_choices_and_paths_count() -> None:
    """Cores differ if a layer may run on one of them only, or if a pair of cores has no path."""
    problem = on_star([8, 8, 8], dict.fromkeys(range(3), 5))
    assert alike(problem, LayerRequest(0, (0, 1))) == ((0, 1),)
    exists = problem.system.path_exists.copy()
    exists[0 * 4 + 1] = False
    start, links = problem.system.path_start, problem.system.path_link
    kept = np.delete(links, range(start[1], start[2]))
    shorter = np.concatenate((start[:2], start[2:] - 2))
    system = replace(problem.system, path_exists=exists, path_start=shorter, path_link=kept)
    assert alike(replace(problem, system=system)) == ()


def test_a_memory_that_two_of_three_cores_share() -> None:
    """The two cores that share a memory are interchangeable; the third is not."""
    pairs = {(i, j): [] if {i, j} == {0, 1} else [0] for i in range(4) for j in range(4) if i != j}
    system = make_system([0, 0, 1, 2], [Memory()] * 3, [Link()], pairs)
    assert alike(make_problem(system, [], [Node(3)])) == ((0, 1),)


def test_renamings() -> None:
    """Renamings are all permutations of the cores in each class. If there are too many, classes are shortened or
    dropped.
    """
    assert limited(((0, 1, 2, 3, 4), (6, 7)), 24) == ((0, 1, 2, 3),)
    assert limited(((0, 1, 2), (6, 7)), 24) == ((0, 1, 2), (6, 7))
    found = list(renamings(((0, 1, 2), (6, 7))))
    assert len(found) == 12
    assert found[0] == {core: core for core in (0, 1, 2, 6, 7)}
    assert list(renamings(())) == [{}]


@pytest.mark.parametrize("seed", [5, 7, 29])
def test_the_relaxation_does_not_see_names_but_schedules_do(seed: int) -> None:
    """Bounds do not depend on the names of equal cores, but schedules do.

    The exact search still finds the optimum of brute force.
    """
    problem, space = random_network_on_equal_cores(seed, 12, 5)
    classes = interchangeable_cores(problem, space)
    assert classes
    relaxation = relaxation_of(problem, space)
    costs = {point.genome: point.objectives for point in brute_force(problem, space)}
    for genome in itertools.islice(costs, 0, None, 7):
        bounds = set()
        for renaming in renamings(classes):
            latency, energy = simple_bounds(relaxation, space.part_cores(tuple(renaming[core] for core in genome)))
            bounds.add((latency, round(energy, 6)))
        assert len(bounds) == 1
    options = AllocationOptions(exhaustive_nodes=0, nb_ga_individuals=2, nb_ga_generations=0, jobs=1)
    found = search_exactly(problem, space, schedule_judge(problem), bounds_of(problem, space), options, block=8)
    assert found.proof is not None
    assert found.proof.is_proven
    assert found.proof.certificate["interchangeable"] == [list(one) for one in limited(classes)]
    assert found.chosen.latency_cycles == min(latency for latency, _ in costs.values())


def test_equal_cores_may_cost_different_things() -> None:
    """Schedules of allocations that differ only in the names of equal cores may cost differently."""
    problem, space = random_network_on_equal_cores(0, 30)
    judge = schedule_judge(problem)
    draws = np.random.default_rng(0)
    exchanged = {0: 1, 1: 0}
    assert interchangeable_cores(problem, space)[0][:2] == (0, 1)
    costs = []
    for _ in range(40):
        genome = tuple(int(draws.choice(cores)) for cores in space.gene_choices)
        other = tuple(exchanged.get(core, core) for core in genome)
        costs.append([judge(space.allocation(one))[0] for one in (genome, other)])
    assert any(first != second for first, second in costs)
