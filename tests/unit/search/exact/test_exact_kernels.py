"""Kernels of the exact search one by one, on records filled by hand."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tilewright.cost.problem import PROBLEM_DTYPE, new_record
from tilewright.cost.workspace import new_workspace
from tilewright.hardware.core import FH, TL
from tilewright.search.exact.bounds_kernel import all_tiles_known, shrinking_ports
from tilewright.search.exact.lattice_record import EXACT_DTYPE, LINK_FL, LINK_TL
from tilewright.search.exact.open_kernel import repeated_transfers, whole_transfer
from tilewright.search.exact.sums_kernel import FAR, IMPOSSIBLE, spread, spread_row

INPUT = 1
BOUNDARY = 3
POINTS = 4
CYCLES, PERIODS, BANDWIDTH = (60, 30, 20, 10), (1, 2, 3, 6), (8.0, 4.0, 2.0, 1.0)
"""Cycles, periods and bandwidth of a transfer over the uppermost boundary of the input, at each lattice point."""


def two_levels() -> tuple[Any, Any]:
    """(problem, search) of two memory levels for each of two operands, with one boundary between them."""
    problem, x = new_record(PROBLEM_DTYPE), new_record(EXACT_DTYPE)
    problem.operand_count = 2
    problem.level_count[:2] = 2
    problem.level_memory[:, 0], problem.level_memory[:, 1] = 0, 1
    x.lattice_size = POINTS
    x.first_boundary[INPUT] = BOUNDARY
    x.link_cycles[BOUNDARY, LINK_TL, :POINTS] = CYCLES
    x.link_count[BOUNDARY, LINK_TL, :POINTS] = PERIODS
    x.link_bandwidth[BOUNDARY, LINK_TL, :POINTS] = BANDWIDTH
    x.top_whole[INPUT] = 60
    x.top_load[INPUT, :POINTS] = 7
    x.top_busy[INPUT, :POINTS] = 11
    x.top_joint[INPUT, :POINTS] = 18
    x.top_bandwidth[INPUT, :POINTS] = 0.5
    return problem, x


@pytest.mark.parametrize("multiplicity", [(3,), (1, 2), (2, 1, 1)])
def test_spread_takes_the_least_of_all_larger_multisets(multiplicity: tuple[int, ...]) -> None:
    """Each point gets the least number of all points that contain it, for whole and other numbers."""
    shape = tuple(count + 1 for count in multiplicity)
    x = new_record(EXACT_DTYPE)
    x.symbol_count, x.lattice_size = len(shape), math.prod(shape)
    x.multiplicity[: len(shape)] = multiplicity
    x.stride[: len(shape)] = [math.prod(shape[j + 1 :]) for j in range(len(shape))]
    numbers = np.random.default_rng(1).integers(0, 100, shape)
    least = [numbers[tuple(slice(i, None) for i in point)].min() for point in itertools.product(*map(range, shape))]
    table = np.stack([np.zeros(numbers.size), numbers.ravel()])
    spread.py_func(x, table, 1)
    assert table[1].tolist() == least
    assert not table[0].any()
    whole = np.stack([numbers.ravel(), numbers.ravel()])[None]
    spread_row.py_func(x, whole, 0, 1)
    assert whole[0, 1].tolist() == least
    assert (whole[0, 0] == numbers.ravel()).all()


def test_what_a_closed_boundary_moves_is_that_of_its_point() -> None:
    """A tile of the whole tensor moves once; any smaller tile moves repeatedly."""
    problem, x = two_levels()
    x.child_level[INPUT] = 1
    x.child_boundary[BOUNDARY] = 0
    assert whole_transfer(problem, x, INPUT) == 60
    assert repeated_transfers(problem, x, INPUT)[3] == math.inf
    x.child_boundary[BOUNDARY] = 2
    assert whole_transfer(problem, x, INPUT) == IMPOSSIBLE
    assert repeated_transfers(problem, x, INPUT) == (20, 40, 60, 2.0)


def test_an_open_boundary_moves_at_least_what_all_larger_points_do() -> None:
    """An open boundary moves at least the least of all larger points; if contested, candidates on the path
    count, too.
    """
    problem, x = two_levels()
    x.child_lattice = 3
    assert whole_transfer(problem, x, INPUT) == 60
    assert repeated_transfers(problem, x, INPUT) == (7, 11, 18, 0.5)
    x.contested[BOUNDARY] = 1
    x.candidate_count[INPUT] = 2
    x.candidate[INPUT, :2] = 1, 2
    assert whole_transfer(problem, x, INPUT) == IMPOSSIBLE
    assert repeated_transfers(problem, x, INPUT) == (20, 30, 60, 2.0)
    x.may_come[INPUT] = 1
    assert whole_transfer(problem, x, INPUT) == 60
    assert repeated_transfers(problem, x, INPUT) == (7, 11, 18, 0.5)
    x.may_come[INPUT], x.candidate_count[INPUT] = 0, 0
    assert repeated_transfers(problem, x, INPUT) == (FAR, FAR, FAR, math.inf)


def test_final_outputs_and_partial_sums_share_the_port_of_the_top() -> None:
    """Partial sums that come back over the port of the topmost memory add to its time."""
    problem, x = two_levels()
    x.child_level[0] = 1
    x.link_cycles[0, LINK_FL, 0], x.link_count[0, LINK_FL, 0], x.link_bandwidth[0, LINK_FL, 0] = 5, 4, 1.0
    x.link_cycles[0, LINK_TL, 0], x.link_count[0, LINK_TL, 0] = 3, 3
    x.top_port[0], problem.port_of[0, 1, TL] = 2, 1
    assert repeated_transfers(problem, x, 0) == (5, 15, 20, 1.0)
    problem.port_of[0, 1, TL] = 2
    assert repeated_transfers(problem, x, 0) == (5, 21, 26, 1.0)


def test_a_memory_is_known_when_the_boundaries_above_its_tiles_are_closed() -> None:
    """A memory is known when the boundaries above its tiles are closed; the outermost level has no boundary
    above it.
    """
    problem, x = two_levels()
    problem.memory_operands[...] = -1
    problem.memory_operands[0, :2] = 0, INPUT
    assert not all_tiles_known.py_func(problem, x, 0)
    x.child_level[0] = 1
    assert not all_tiles_known.py_func(problem, x, 0)
    x.child_level[INPUT] = 1
    assert all_tiles_known.py_func(problem, x, 0)
    problem.memory_operands[1, 0], problem.memory_levels[1, 0] = INPUT, 1
    assert not all_tiles_known.py_func(problem, x, 1)


def test_a_port_shrinks_where_its_load_is_the_longer_one_of_a_pair() -> None:
    """A load behind a longer computation counts as shrinking, unless the other link of the pair is as slow."""
    problem, x = two_levels()
    ws = new_workspace()
    problem.port_count = 1
    problem.port_start[:2] = 0, 1
    problem.service_operand[0], problem.service_level[0], problem.service_direction[0] = INPUT, 1, TL
    x.load_at_shortest[INPUT, 1, TL] = 9.0
    ws.load[INPUT, 1, TL], ws.load[INPUT, 0, FH] = 4.0, 6.0
    assert shrinking_ports.py_func(problem, ws, x) == 1
    ws.load[INPUT, 0, FH] = 9.0
    assert shrinking_ports.py_func(problem, ws, x) == 0
    ws.load[INPUT, 0, FH], ws.load[INPUT, 1, TL] = 6.0, 9.0
    assert shrinking_ports.py_func(problem, ws, x) == 0
