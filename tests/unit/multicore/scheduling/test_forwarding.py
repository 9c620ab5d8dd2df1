"""Forwarding: cores send constants they hold to other cores, and the lower bounds take this into account."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.multicore.scheduling.bounds.certificate import bound_certificate
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.bound_certificate import certificate_faults
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.multicore.scheduling.state_record import CORE_TO_CORE, OFF_CHIP_FETCH

from tests.members import members
from tests.unit.multicore.scheduling.random_meshes import problem_on_a_mesh
from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.slow_scheduler import SlowScheduler
from tests.unit.multicore.scheduling.test_random_problems import OPTIONS
from tests.unit.multicore.scheduling.tiny_systems import Link, Memory, Node, Piece, make_problem, make_system

SEEDS = st.integers(0, 10**9)


def forwarding(problem: SchedulingProblem) -> SchedulingProblem:
    """The problem on cores that forward constants."""
    return replace(problem, system=replace(problem.system, forwards_constants=True))


@settings(max_examples=members(300, 40), deadline=None)
@given(SEEDS, OPTIONS)
def test_the_compiled_scheduler_forwards_like_the_slow_one(seed: int, options: ScheduleOptions) -> None:
    """Both schedulers make equal transfers on systems with buses, shared memories and memories of operands."""
    problem, allocation = random_problem(seed)
    problem = forwarding(problem)
    fast, slow = simulate(problem, allocation, options), SlowScheduler(problem, allocation, options).run()
    assert fast.transfers.tolist() == slow.transfers
    assert (fast.start_cycles.tolist(), fast.end_cycles.tolist()) == (slow.start, slow.end)


@settings(max_examples=members(600, 16), deadline=None)
@given(SEEDS, OPTIONS, st.booleans())
def test_schedules_with_forwarding_keep_every_rule(seed: int, options: ScheduleOptions, is_mesh: bool) -> None:
    """The checker finds no fault, the schedule is not below a bound, and every bound follows from its certificate."""
    problem, allocation = problem_on_a_mesh(seed, 20) if is_mesh else random_problem(seed, 20)
    problem = forwarding(problem)
    schedule = simulate(problem, allocation, options)
    assert check_schedule(problem, schedule, options.has_barriers) == []
    own = np.zeros((len(allocation), problem.system.core_count), np.bool_)
    own[np.arange(len(allocation)), allocation] = True
    for allowed in (None, own):
        bounds = lower_bounds(problem, allowed)
        assert bounds.latency_cycles <= bounds.if_copied.latency_cycles <= schedule.latency_cycles
        assert bounds.energy_pj <= schedule.energy_pj * (1 + 1e-12)
    assert certificate_faults(problem, own, bound_certificate(problem, own, bounds)) == []


@settings(max_examples=members(100, 5), deadline=None)
@given(SEEDS)
def test_forwarding_never_gives_a_worse_bound(seed: int) -> None:
    """Bounds of a system with forwarding are at most those of the same system without it."""
    problem, _ = problem_on_a_mesh(seed, 20, forwards=False)
    bounds, before = lower_bounds(forwarding(problem)), lower_bounds(problem)
    assert bounds.latency_cycles <= before.latency_cycles
    assert bounds.energy_pj <= before.energy_pj * (1 + 1e-12)


def test_a_core_takes_data_from_a_neighbour_while_the_port_is_busy() -> None:
    """Core 1 gets the 40 bits from core 0 while the port is busy with its other data.

    The neighbours need the same 40 bits, and core 1 first needs 100 other bits. Core 0 has the 40 bits and no other
    work.
    """
    links = [Link(10), Link(10)]  # port, link between the cores
    paths = {pair: [0] for core in range(2) for pair in ((core, 2), (2, core))} | {(0, 1): [1], (1, 0): [1]}
    system = make_system([0, 1, 2], [Memory()] * 2 + [Memory(10**9, 1000, 10.0, 20.0)], links, paths)
    nodes = [Node(50, [(0, 1)]), Node(5, [(0, 1)], [2], group=1), Node(5, [(1, 1)], group=2)]
    problem = make_problem(system, [Piece(40), Piece(100)], nodes)
    found = simulate(forwarding(problem), np.array([0, 1, 1]))
    causes = {(int(row["piece"]), int(row["target_core"])): int(row["cause"]) for row in found.transfers}
    assert causes == {(0, 0): OFF_CHIP_FETCH, (0, 1): CORE_TO_CORE, (1, 1): OFF_CHIP_FETCH}
    assert found.link_bits[:, 1].sum() == 40
    without = simulate(problem, np.array([0, 1, 1]))
    assert {int(row["cause"]) for row in without.transfers} == {OFF_CHIP_FETCH}
    faults = check_schedule(problem, found)
    assert faults == ["transfer 2 of tensor piece 0 is a constant, but does not come from the off-chip memory"]
