"""Bounds by phases: worked out by hand, and against schedules of random problems with weights of all kinds."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.multicore.scheduling.bounds import phase_program
from tilewright.multicore.scheduling.bounds.chains import chain_of
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.bounds.ordered_phases import ordered_phase_problem
from tilewright.multicore.scheduling.bounds.paths import paths_through
from tilewright.multicore.scheduling.bounds.phase_program import PhaseProblem, PhaseWeights, best_weights, bound_cycles
from tilewright.multicore.scheduling.bounds.phases import phase_problem
from tilewright.multicore.scheduling.bounds.work import possible_moves
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import Booleans, SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate

from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.tiny_systems import (
    INPUT,
    Link,
    Memory,
    Node,
    Piece,
    bus_system,
    make_problem,
    make_system,
)


def program_of(
    problem: SchedulingProblem,
    phases: int,
    allowed: Booleans | None = None,
    make: Callable[..., PhaseProblem] = phase_problem,
) -> PhaseProblem:
    """The linear program for a chain of at most `phases` CNs."""
    classes, limits = cn_classes(problem, allowed), system_limits(problem.system)
    paths = paths_through(problem, classes, limits)
    moves = possible_moves(problem, classes, with_streamed=True)
    return make(problem, classes, paths, moves, chain_of(problem, paths, phases))


def test_what_does_not_fit_meanwhile_is_written_and_fetched_again() -> None:
    """Data that do not fit are written and fetched again, which gives a bound of 13 cycles.

    CNs 0 and 1 make 80 bits each for CNs 2 and 3; all run in a row, one cycle each. There is room for 100 bits, and the
    link carries 10 a cycle. When CN 2 starts, 60 of the 160 bits are off-chip or have been there: 12 cycles of the link
    between the starts of CN 0 and CN 3, and one cycle of CN 3. The other bounds give four cycles. The schedule evicts
    both pieces whole and takes 36.
    """
    pieces = [Piece(80, 0), Piece(80, 1)]
    nodes = [
        Node(1),
        Node(1, after=[0], layer=1),
        Node(1, [(0, INPUT)], [1], layer=2),
        Node(1, [(1, INPUT)], [2], layer=3),
    ]
    problem = make_problem(bus_system(1, [100]), pieces, nodes)
    bounds = lower_bounds(problem)
    assert (
        bounds.if_copied.critical_path_cycles,
        bounds.if_copied.before_and_after_cycles,
        bounds.if_copied.link_traffic_cycles,
    ) == (4, 4, 0)
    assert bounds.if_copied.phases_cycles == 13 == bounds.if_copied.latency_cycles
    assert simulate(problem, np.zeros(4, np.int64)).latency_cycles == 36


def test_a_phase_of_the_link_and_a_phase_of_the_cores_add_up() -> None:
    """A phase of the link and a phase of the cores add up: 1 + 40 + 20 + 1 cycles, with 1 for the CN that reads all.

    Core 0 makes 100 bits for core 1 in each of 4 CNs of one cycle. When all bits are there, 4 CNs of 10 cycles follow
    on either core, and last one CN of 1 cycle. The link carries 10 bits a cycle, so the first phase takes 40 cycles.
    The second phase takes 20 cycles, on the cores or on the link.
    """
    pieces = [*(Piece(100, cn) for cn in range(4)), *(Piece(50, cn) for cn in range(5, 9))]
    makers = [Node({0: 1}, layer=0) for _ in range(4)]
    reader = Node({1: 1}, [(piece, INPUT) for piece in range(4)], layer=1)
    workers = [Node({0: 10, 1: 10}, after=[4], layer=2) for _ in range(4)]
    last = Node({2: 1}, [(piece, INPUT) for piece in range(4, 8)], layer=3)
    problem = make_problem(bus_system(3), pieces, [*makers, reader, *workers, last])
    bounds = lower_bounds(problem)
    # 40 cycles of the link, the reader, 20 of the cores or of the link, the last one
    assert bounds.if_copied.phases_cycles == 62
    allocation = np.array([0, 0, 0, 0, 1, 0, 0, 1, 1, 2])
    assert bounds.if_copied.phases_cycles <= simulate(problem, allocation).latency_cycles


def test_what_is_written_early_may_be_fetched_late() -> None:
    """Data that are written early may be fetched late, so the bound is 201 cycles and the schedule takes 202.

    CN 0 on core 0 makes 100 bits for CN 3 on core 1. The cores have no path to each other; every way to and from the
    off-chip memory has a link of 10. CN 1 on core 1 waits for CN 0 and 1,000 bits of constants. CN 2 on core 0 waits
    for CN 1 and makes a result of 1,000 bits. The link to core 1 is full before CN 1 runs, and the link from core 0
    after it. So the 100 bits are written before CN 1 runs, and fetched after it.
    """
    links = [Link(10)] * 4
    paths = {(0, 2): [0], (2, 1): [1], (2, 0): [2], (1, 2): [3]}
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], links, paths)
    pieces = [Piece(100, 0), Piece(1000), Piece(1000, 2, is_output=True)]
    nodes = [
        Node({0: 1}),
        Node({1: 1}, [(1, INPUT)], [0], layer=1),
        Node({0: 1}, after=[1], layer=2),
        Node({1: 1}, [(0, INPUT)], [1], layer=3),
    ]
    problem = make_problem(system, pieces, nodes)
    assert simulate(problem, np.array([0, 1, 0, 1])).latency_cycles == 202
    # constants, CN 1, the result
    assert lower_bounds(problem).if_copied.phases_cycles == 201


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**9),
    st.integers(1, 12),
    st.sampled_from(("latency", "memory")),
    st.sampled_from(((), (1,), (1, 2))),
    st.booleans(),
)
def test_no_weights_give_more_than_a_schedule_takes(
    seed: int, phases: int, selection: str, prefetched: tuple[int, ...], of_allocation: bool
) -> None:
    """No weights give a bound above the schedule's latency: the solver's, disturbed copies of them, or random ones."""
    problem, allocation = random_problem(seed, 25)
    options = ScheduleOptions(scheduler_candidate_selection=selection, operands_to_prefetch=prefetched)
    latency = simulate(problem, allocation, options).latency_cycles
    allowed = None
    if of_allocation:
        allowed = np.zeros((len(allocation), problem.system.core_count), np.bool_)
        allowed[np.arange(len(allocation)), allocation] = True
    draw = np.random.default_rng(seed)
    for program in (program_of(problem, phases, allowed), program_of(problem, phases, allowed, ordered_phase_problem)):
        found = best_weights(program)
        parts = [getattr(found, part.name) for part in fields(PhaseWeights)]
        disturbed = PhaseWeights(*(part * draw.uniform(0.5, 1.5, part.shape) for part in parts))
        others = PhaseWeights(*(draw.uniform(-0.1, 1.0, part.shape) ** 4 for part in parts))
        for weights in (found, disturbed, others):
            assert bound_cycles(program, weights) <= latency


@pytest.mark.parametrize("seed", range(8))
def test_the_solver_finds_the_best_weights(seed: int) -> None:
    """No step from the solver's weights, up or down, gives a higher bound."""
    problem, _ = random_problem(1000 + seed, 25)
    draw = np.random.default_rng(seed)
    for program in (program_of(problem, 6), program_of(problem, 6, make=ordered_phase_problem)):
        found = best_weights(program)
        best = bound_cycles(program, found)
        parts = [getattr(found, part.name) for part in fields(PhaseWeights)]
        for _ in range(50):
            step = PhaseWeights(*(one * draw.uniform(0.9, 1.1, one.shape) for one in parts))
            assert bound_cycles(program, step) <= best


@pytest.mark.parametrize("seed", range(8))
def test_both_solvers_give_the_same_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS solves large programs, and GLOP small ones. Their bounds differ by rounding only."""
    problem, _ = random_problem(2000 + seed, 25)
    for program in (program_of(problem, 6), program_of(problem, 6, make=ordered_phase_problem)):
        by_glop = bound_cycles(program, best_weights(program))
        with monkeypatch.context() as patch:
            patch.setattr(phase_program, "MANY_VARIABLES", 0)
            by_highs = bound_cycles(program, best_weights(program))
        assert by_highs > 0
        assert abs(by_highs - by_glop) <= 1


def test_what_streams_out_is_fetched_again() -> None:
    """Each of three CNs streams 100 bits out, in 10 cycles; CN 3 fetches all 300 bits: 30 + 30 + 1 cycles."""
    pieces = [Piece(100, cn) for cn in range(3)]
    makers = [Node(1, streams={0: (100, 10)}) for _ in range(3)]
    reader = Node(1, [(piece, INPUT) for piece in range(3)], layer=1)
    problem = make_problem(bus_system(1), pieces, [*makers, reader])
    bounds = lower_bounds(problem)
    assert (
        bounds.if_copied.critical_path_cycles,
        bounds.if_copied.off_chip_traffic_cycles,
        bounds.if_copied.link_traffic_cycles,
    ) == (21, 30, 0)
    assert bounds.if_copied.phases_cycles == 61 == bounds.if_copied.before_and_after_cycles
    assert simulate(problem, np.zeros(4, np.int64)).latency_cycles == 61


def test_what_is_streamed_in_is_written_before() -> None:
    """CN 3 streams 100 bits from each of three CNs: one CN runs (1), then 300 bits are written (30) and
    streamed (30).
    """
    pieces = [Piece(100, cn) for cn in range(3)]
    reader = Node(1, [(piece, INPUT) for piece in range(3)], layer=1, streams={INPUT: (300, 10)})
    problem = make_problem(bus_system(1), pieces, [*(Node(1) for _ in range(3)), reader])
    bounds = lower_bounds(problem)
    assert (bounds.if_copied.off_chip_traffic_cycles, bounds.if_copied.link_traffic_cycles) == (30, 0)
    assert bounds.if_copied.phases_cycles == 60
    assert simulate(problem, np.zeros(4, np.int64)).latency_cycles == 61


@pytest.mark.parametrize("seed", range(25))
def test_moves_of_what_streams_at_one_end(seed: int) -> None:
    """Moves of data that may stream at one end equal those of a plain walk through the needs."""
    problem, allocation = random_problem(seed, 30)
    allowed = np.zeros((len(allocation), problem.system.core_count), np.bool_)
    allowed[np.arange(len(allocation)), allocation] = True
    if seed % 2:
        allowed |= problem.costs.runtime_cycles[problem.graph.cost_row] >= 1
        allowed[:, problem.system.off_chip_core] = False
    bits, row = problem.costs.stream_bits, problem.graph.cost_row

    def streams(cn: int, operand: int) -> set[bool]:
        return {bool(bits[row[cn], core, operand] > 0) for core in np.flatnonzero(allowed[cn]).tolist()}

    expected = set()
    for cn, piece, operand in zip(
        problem.need_cn.tolist(), *(one.tolist() for one in problem.fetch_order), strict=True
    ):
        maker = int(problem.graph.piece_producer[piece])
        if maker >= 0 and streams(maker, 0) == {True} and streams(cn, operand) == {False}:
            expected.add((piece, cn, maker, True))
        if maker >= 0 and streams(maker, 0) == {False} and streams(cn, operand) == {True}:
            expected.add((piece, -1, maker, False))
    classes = cn_classes(problem, allowed)
    found = [
        set(zip(*(getattr(moves, name).tolist() for name in ("piece", "reader", "producer", "fetched")), strict=True))
        for moves in (possible_moves(problem, classes), possible_moves(problem, classes, with_streamed=True))
    ]
    results = {one for one in expected if one[1] < 0 and problem.graph.piece_is_output[one[0]]}
    assert found[1] - found[0] == expected - results
    assert found[0] <= found[1]
