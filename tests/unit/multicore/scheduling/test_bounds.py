"""Bounds from the work before and after one CN: worked out by hand, and against schedules of random problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.bounds.paths import (
    SplitBounds,
    latest_cns,
    paths_through,
    split_latency_cycles,
)
from tilewright.multicore.scheduling.bounds.work import possible_moves
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate

from tests.members import members
from tests.unit.multicore.scheduling.bound_attack import attack
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


def split_of(problem: SchedulingProblem, allocation: list[int] | None = None) -> SplitBounds:
    """The bounds by single CNs, on any cores or on those of an allocation."""
    own = None
    if allocation is not None:
        own = np.zeros((len(allocation), problem.system.core_count), np.bool_)
        own[np.arange(len(allocation)), allocation] = True
    classes, limits = cn_classes(problem, own), system_limits(problem.system)
    paths, moves = paths_through(problem, classes, limits), possible_moves(problem, classes, with_streamed=True)
    return SplitBounds(problem, classes, limits, paths, moves)


def test_weights_that_find_no_room_are_fetched_afterwards() -> None:
    """Weights that find no room are fetched after CN 0, so the bound is 70 cycles.

    CN 0 runs 50 cycles, then CNs 1 to 3 run one cycle each, with weights of 100 bits each. The memory has room for 100
    bits, and the link carries 10 a cycle. When CN 0 ends, at most one weight is on chip, and 200 bits are missing: 50 +
    20 = 70. Alone, the path gives 50 + 1, the work 53, and the traffic 30.

    The schedule fetches one weight early and the others one after the other: CN 1 50-51, weight 51-61, CN 2 61-62,
    weight 62-72, CN 3 72-73.
    """
    nodes = [Node(50), *[Node(1, [(weight, WEIGHT)], after=[0]) for weight in range(3)]]
    problem = make_problem(bus_system(1, [100]), [Piece(100)] * 3, nodes)
    bounds = lower_bounds(problem)
    assert (
        bounds.if_copied.critical_path_cycles,
        bounds.if_copied.core_work_cycles,
        bounds.if_copied.off_chip_traffic_cycles,
    ) == (51, 53, 30)
    assert (
        bounds.if_copied.before_and_after_cycles
        == 70
        == bounds.if_copied.phases_cycles
        == bounds.if_copied.latency_cycles
    )
    schedule = simulate(problem, np.zeros(4, np.int64), ScheduleOptions(operands_to_prefetch=(WEIGHT,)))
    assert schedule.latency_cycles == 73


def test_work_before_and_work_after_add_up() -> None:
    """Work before CN 4 and work after it add up to a bound of 45 cycles, which a schedule reaches.

    There are two cores. CNs 0 to 3 take 10 cycles each. CN 4 waits for all of them and takes 5 cycles. CNs 5 to 8 take
    10 each: 20 + 5 + 20. The path alone gives 25, the work 85 / 2 = 42.5.
    """
    first, middle = [Node(10) for _ in range(4)], Node(5, after=[0, 1, 2, 3])
    problem = make_problem(bus_system(2), [], [*first, middle, *[Node(10, after=[4]) for _ in range(4)]])
    bounds = lower_bounds(problem)
    assert (bounds.if_copied.critical_path_cycles, bounds.if_copied.core_work_cycles) == (25, 43)
    assert bounds.if_copied.before_and_after_cycles == 45 == bounds.if_copied.phases_cycles
    assert simulate(problem, np.array([0, 0, 1, 1, 0, 0, 0, 1, 1])).latency_cycles == 45


def test_what_passes_a_link_before_and_after_adds_up() -> None:
    """Traffic over a link before CN 2 and after it adds up: 12 + 1 + 9 cycles.

    CNs 0 and 1 on core 0 make 60 bits each for CN 2 on core 1. CN 2 makes 40 and 50 bits for CNs 3 and 4 on core 0. The
    link carries 10 bits a cycle. The path alone gives 1 + 6 + 1 + 5 + 1.
    """
    pieces = [Piece(60, 0), Piece(60, 1), Piece(40, 2), Piece(50, 2)]
    readers = [Node({0: 1}, [(2, INPUT)]), Node({0: 1}, [(3, INPUT)])]
    nodes = [Node({0: 1}), Node({0: 1}), Node({1: 1}, [(0, INPUT), (1, INPUT)]), *readers]
    split = split_of(make_problem(bus_system(2), pieces, nodes))
    before, after = split.paths.around(2)
    assert (before.tolist(), after.tolist()) == ([True, True, False, False, False], [False] * 3 + [True, True])
    assert split.latency_cycles(2, 40) == 22
    assert split.paths.latency_cycles == 14


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from(("latency", "memory")),
    st.sampled_from(((), (WEIGHT,), (INPUT, WEIGHT))),
    st.booleans(),
)
def test_no_cn_starts_earlier_and_nothing_ends_sooner(
    seed: int, selection: str, prefetched: tuple[int, ...], of_allocation: bool
) -> None:
    """Schedules of random problems respect the bounds on the time before and after every CN.

    The bounds hold over all allocations, or for the allocation of the schedule alone.
    """
    problem, allocation = random_problem(seed, 25)
    options = ScheduleOptions(scheduler_candidate_selection=selection, operands_to_prefetch=prefetched)
    schedule = simulate(problem, allocation, options)
    split = split_of(problem, allocation.tolist() if of_allocation else None)
    for cn in range(len(allocation)):
        before, after = split.paths.around(cn)
        assert split.paths.head[cn] <= schedule.start_cycles[cn]
        assert split.cycles_before(cn, before, 20) <= schedule.start_cycles[cn]
        assert schedule.end_cycles[cn] + split.paths.tail[cn] <= schedule.latency_cycles
        assert schedule.end_cycles[cn] + split.cycles_after(cn, after, 20) <= schedule.latency_cycles
        assert (schedule.end_cycles[np.flatnonzero(before)] <= schedule.start_cycles[cn]).all()
        assert (schedule.start_cycles[np.flatnonzero(after)] >= schedule.end_cycles[cn]).all()


def test_a_link_that_stands_twice_in_a_path_is_passed_once() -> None:
    """A link that stands twice in a path counts once.

    The path is link 0 (10 bits a cycle), link 1 and link 0 again: 100 bits take 10 cycles.
    """
    ends = {(0, 2): [0], (2, 0): [0], (1, 2): [0], (2, 1): [0]}
    links = [Link(10), Link(1000)]
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory()], links, {(0, 1): [0, 1, 0], **ends})
    problem = make_problem(system, [Piece(100, 0)], [Node({0: 1}), Node({1: 1}, [(0, INPUT)])])
    assert lower_bounds(problem).if_copied.latency_cycles == 12 == simulate(problem, np.array([0, 1])).latency_cycles


def plain_split_cycles(split: SplitBounds) -> int:
    """`split_latency_cycles` without its knowledge of other CNs: computes the whole bound of every CN that it tries."""

    def cycles(cn: int, rounds: int) -> int:
        before, after = split.paths.around(cn)
        head = max(int(split.paths.head[cn]), split.cycles_before(cn, before, rounds))
        return (
            head + int(split.paths.runtime[cn]) + max(int(split.paths.tail[cn]), split.cycles_after(cn, after, rounds))
        )

    candidates = latest_cns(split.problem.graph.layer, split.paths.head).tolist()
    found: dict[int, int] = {}
    low, high = 0, len(candidates) - 1
    for _ in range(2):
        tried = np.linspace(low, high, 16).round().astype(np.int64).tolist()
        found |= {place: cycles(candidates[place], 40) for place in tried}
        best = max(found, key=lambda place: (found[place], -place))
        low, high = max([p for p in found if p < best], default=best), min([p for p in found if p > best], default=best)
    return max(found[best], cycles(candidates[best], 400))


@pytest.mark.parametrize("seed", range(members(24, 5)))
def test_cns_that_are_left_out_change_no_bound(seed: int) -> None:
    """The bound by single CNs equals the bound from trying every CN to the end, for random problems."""
    problem, allocation = random_problem(seed, 30)
    for chosen in (None, allocation.tolist()):
        split = split_of(problem, chosen)
        given = problem, split.classes, split.limits, split.paths, split.moves
        assert split_latency_cycles(*given) == plain_split_cycles(split)


@pytest.mark.parametrize("seed", range(3))
def test_no_climb_over_allocations_gets_below_a_bound(seed: int) -> None:
    """Some trials of `benchmarks/attack_bounds.py` find no schedule below a bound."""
    tally = attack(seed, evaluations=25)
    assert tally.wrong == []
    assert tally.counts["schedules"] >= 10


def test_a_problem_without_cns_has_no_bound() -> None:
    """A problem without CNs, with one unused constant, has bounds of 0."""
    bounds = lower_bounds(make_problem(bus_system(1), [Piece(40)], []))
    assert (bounds.if_copied.before_and_after_cycles, bounds.if_copied.latency_cycles) == (0, 0)
