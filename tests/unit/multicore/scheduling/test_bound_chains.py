"""Rows of CNs that divide a schedule into phases, compared with plain searches in small graphs."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from tilewright.multicore.scheduling.bounds.chains import _WORTH_OF_CN, NodeChain, chain_of
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.paths import LongestPaths, paths_through
from tilewright.multicore.scheduling.problem import SchedulingProblem

from tests.unit.multicore.scheduling.random_problems import random_problem


def waits_for(problem: SchedulingProblem) -> list[set[int]]:
    """[cn] the CNs that end before it starts."""
    start, successor = problem.edges
    found: list[set[int]] = [set() for _ in range(problem.graph.node_count)]
    for cn in problem.topological_order.tolist():
        for other in successor[start[cn] : start[cn + 1]].tolist():
            found[other] |= found[cn] | {cn}
    return found


def paths_of(problem: SchedulingProblem) -> LongestPaths:
    """The longest paths of a problem when all cores are allowed."""
    classes = cn_classes(problem, None)
    return paths_through(problem, classes, system_limits(problem.system))


def worth(row: tuple[int, ...], before: list[set[int]], cycles: list[int]) -> float:
    """Worth of a row of CNs: products of the cycles of two CNs, one before and one after the same CN of the row.

    The cycles of all CNs before or after a CN of the row count a little, too.
    """
    nodes, total = range(len(cycles)), sum(cycles)
    after = {cn: {other for other in nodes if cn in before[other]} for cn in row}
    pairs = {(one, other) for cn in row for one in before[cn] for other in after[cn]}
    own = sum(cycles[other] for cn in row for other in before[cn] | after[cn])
    return sum(cycles[one] * cycles[other] for one, other in pairs) + own * total * _WORTH_OF_CN


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_best_row_of_a_small_graph(seed: int, count: int) -> None:
    """No row of at most `count` CNs has a greater worth than the one found."""
    problem, _ = random_problem(seed, 14)
    paths, before = paths_of(problem), waits_for(problem)
    cycles = paths.runtime.tolist()
    nodes = problem.topological_order.tolist()
    rows = [
        row
        for length in range(1, count + 1)
        for row in combinations(nodes, length)
        if all(one in before[other] for one, other in pairwise(row))
    ]
    found = tuple(chain_of(problem, paths, count).cns.tolist())
    assert found in rows
    assert worth(found, before, cycles) == pytest.approx(max(worth(row, before, cycles) for row in rows))


@pytest.mark.parametrize("seed", range(20))
def test_phases_of_cns_follow_from_who_waits_for_whom(seed: int) -> None:
    """The phases of CNs equal those from a plain walk over predecessors.

    Half of the problems have so many CNs that the search tries only some of them.
    """
    problem, _ = random_problem(seed, (25, 120)[seed % 2])
    paths, before = paths_of(problem), waits_for(problem)
    chain: NodeChain = chain_of(problem, paths, 6)
    row = chain.cns.tolist()
    assert 1 <= len(row) <= 6
    assert all(one in before[other] for one, other in pairwise(row))
    for cn in range(problem.graph.node_count):
        first = max((2 * n + 2 for n, other in enumerate(row) if other in before[cn]), default=0)
        last = min((2 * n for n, other in enumerate(row) if cn in before[other]), default=2 * len(row))
        if cn in row:
            assert chain.first[cn] == chain.last[cn] == 2 * row.index(cn) + 1 == chain.arrives[cn] + 1
        else:
            assert (chain.first[cn], chain.last[cn], chain.arrives[cn]) == (first, last, last)
    assert np.all(chain.first <= chain.last)
