"""Stacks as barriers: a schedule worked out by hand, refused orders of stacks, and the check for barriers."""

from dataclasses import replace

import numpy as np
import pytest
from tilewright.base.errors import InputError
from tilewright.multicore.scheduling.check.rules import faults_by_rule
from tilewright.multicore.scheduling.options import ScheduleOptions, ScheduleSettings
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate

from tests.unit.multicore.scheduling.tiny_systems import INPUT, WEIGHT, Node, Piece, bus_system, make_problem

BARRIER = ScheduleOptions(stack_order="barrier")


def two_stacks() -> SchedulingProblem:
    """CNs 0 and 1 on two cores, then CN 2 of a later stack, which needs a weight of 50 bits and the piece of CN 0."""
    pieces = [Piece(50), Piece(20, 0)]
    nodes = [
        Node(10, layer=0, stack=3),
        Node(40, layer=1, stack=3),
        Node(5, [(0, WEIGHT), (1, INPUT)], layer=2, stack=7),
    ]
    return make_problem(bus_system(2), pieces, nodes)


def test_the_next_stack_waits_for_all_of_the_one_before() -> None:
    """CN 2 waits with barriers until CN 1 has ended, at 40; by priority it starts when CN 0 has ended, at 10.

    Its weight is always fetched at 0 to 5, because a fetch may begin when all of the earlier stack has started.
    """
    problem, allocation = two_stacks(), np.array([0, 1, 0])
    free, held = simulate(problem, allocation), simulate(problem, allocation, BARRIER)
    assert free.start_cycles.tolist() == [0, 0, 10]
    assert held.start_cycles.tolist() == [0, 0, 40]
    for schedule in (free, held):
        assert schedule.transfers[["start_cycles", "end_cycles"]][0].tolist() == (0, 5)
    assert held.latency_cycles == 45


def test_the_check_finds_what_starts_before_the_barrier() -> None:
    """The check with barriers finds faults in a schedule by priority, and none in a schedule with barriers."""
    problem, allocation = two_stacks(), np.array([0, 1, 0])
    found = faults_by_rule(problem, simulate(problem, allocation), has_barriers=True)["nodes"]
    assert found == ["CN 2 of stack 7 starts before cycle 40, the end of the last earlier stack"]
    assert faults_by_rule(problem, simulate(problem, allocation, BARRIER), has_barriers=True)["nodes"] == []


def test_one_stack_has_no_barrier() -> None:
    """The schedule of one stack with barriers is the schedule by priority."""
    problem, allocation = two_stacks(), np.array([0, 1, 0])
    problem = replace(problem, graph=replace(problem.graph, stack=np.zeros(3, np.int64)))
    assert simulate(problem, allocation, BARRIER).start_cycles.tolist() == [0, 0, 10]


def test_a_stack_that_needs_a_later_one_is_refused() -> None:
    """A stack that needs a later stack is refused, because it would wait for ever."""
    problem = two_stacks()
    problem = replace(problem, graph=replace(problem.graph, stack=np.array([3, 3, 1])))
    with pytest.raises(InputError, match="layer 2 needs layer 0, which is in a later stack"):
        simulate(problem, np.array([0, 1, 0]), BARRIER)


def test_the_model_of_the_reference_has_no_barriers() -> None:
    """Both kinds of options refuse barriers with the model of the reference."""
    for kind in (ScheduleOptions, ScheduleSettings):
        with pytest.raises(InputError, match="stream-2023 has no barrier") as raised:
            kind(stack_order="barrier", schedule_model="stream-2023")
        assert [problem.path for problem in raised.value.problems] == ["stack_order"]


def test_the_model_of_the_reference_fetches_no_results_ahead() -> None:
    """`prefetch_results` is refused, not ignored, with the model of the reference."""
    for kind in (ScheduleOptions, ScheduleSettings):
        with pytest.raises(InputError, match="stream-2023 does not") as raised:
            kind(prefetch_results=True, schedule_model="stream-2023")
        assert [problem.path for problem in raised.value.problems] == ["prefetch_results"]


def test_the_model_of_the_reference_does_not_choose_by_progress() -> None:
    """The options refuse selection by progress with the model of the reference, and do not ignore the setting."""
    for kind in (ScheduleOptions, ScheduleSettings):
        with pytest.raises(InputError, match="stream-2023 has no such rule") as raised:
            kind(scheduler_candidate_selection="progress", schedule_model="stream-2023")
        assert [problem.path for problem in raised.value.problems] == ["scheduler_candidate_selection"]
