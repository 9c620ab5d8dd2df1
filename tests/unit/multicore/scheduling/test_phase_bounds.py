"""Bounds by phases: by hand, and against schedules of random problems with weights of all kinds."""

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
    """What must be done between the starts of so many CNs at most."""
    classes, limits = cn_classes(problem, allowed), system_limits(problem.system)
    paths = paths_through(problem, classes, limits)
    moves = possible_moves(problem, classes, with_streamed=True)
    return make(problem, classes, paths, moves, chain_of(problem, paths, phases))


def test_what_does_not_fit_meanwhile_is_written_and_fetched_again() -> None:
    """CNs 0 and 1 make 80 bits each for CNs 2 and 3, all in a row, one cycle each; room for 100, link of 10.

    When CN 2 starts, 60 bits of the 160 are off-chip or have been: 12 cycles of the link between the starts of CN 0 and
    CN 3, which takes one more. No other bound sees more than the four cycles. The schedule evicts both pieces whole.
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
    """Core 0 makes 100 bits for core 1 in each of 4 CNs of one cycle; when all are there, 4 CNs of 10 cycles follow on
    either core, and last one CN of 1 cycle. Link of 10: 1 + 40 + 20 + 1, with 1 for the CN that reads all.

    By one CN alone it is the same; by two phases of the link, one before and one behind, it is more.
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
    """CN 0 (core 0) makes 100 bits for CN 3 (core 1); no path is between them, and every way has its own link of 10.

    CN 1 (core 1) waits for CN 0 and 1,000 bits of constants, CN 2 (core 0) waits for it and makes a result of 1,000
    bits: the link to core 1 is full before CN 1 runs, the one from core 0 after. What CN 0 makes is written before and
    fetched after, so that both phases take no longer.
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
    """The solver's weights, the same disturbed, and any others, over all allocations or for the one scheduled."""
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
    """No step from the solver's weights, up or down, gives more."""
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
    """Three CNs stream 100 bits out each, 10 cycles of the link; CN 3 fetches all three: 30 + 30 + 1."""
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
    """Three CNs make 100 bits each, which CN 3 streams: one runs (1), 300 bits are written (30) and streamed (30)."""
    pieces = [Piece(100, cn) for cn in range(3)]
    reader = Node(1, [(piece, INPUT) for piece in range(3)], layer=1, streams={INPUT: (300, 10)})
    problem = make_problem(bus_system(1), pieces, [*(Node(1) for _ in range(3)), reader])
    bounds = lower_bounds(problem)
    assert (bounds.if_copied.off_chip_traffic_cycles, bounds.if_copied.link_traffic_cycles) == (30, 0)
    assert bounds.if_copied.phases_cycles == 60
    assert simulate(problem, np.zeros(4, np.int64)).latency_cycles == 61


@pytest.mark.parametrize("seed", range(25))
def test_moves_of_what_streams_at_one_end(seed: int) -> None:
    """Beside the moves of what never streams: those of a plain walk through the needs."""
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
