"""Multicast: a piece moves once over each link of a tree, on random meshes, tori, rings and buses."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate

from tests.members import members
from tests.unit.multicore.scheduling.random_meshes import LARGE_SHAPES, problem_on_a_mesh
from tests.unit.multicore.scheduling.slow_scheduler import SlowScheduler
from tests.unit.multicore.scheduling.test_random_problems import OPTIONS
from tests.unit.multicore.scheduling.tiny_systems import Link, Memory, Node, Piece, make_problem, make_system

SEEDS = st.integers(0, 10**9)


def traffic(problem: SchedulingProblem, schedule: Schedule) -> dict[int, int]:
    """Bits over each link, computed from the transfers alone and without streams.

    A link with multicast carries a piece once for all receivers that are served together.
    """
    system = problem.system
    served: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for move in schedule.transfers:
        pair = int(move["source_core"]) * system.core_count + int(move["target_core"])
        main = pair if move["broadcast_of"] < 0 else int(move["broadcast_of"])
        served[main, int(move["piece"]), int(move["source_memory"]), int(move["start_cycles"])].append(
            (pair, int(move["broadcast_of"]))
        )
    found: dict[int, int] = defaultdict(int)
    for (main, piece, *_), transfers in served.items():
        on_main = set(system.path(*divmod(main, system.core_count)).tolist())
        tree = set()
        for pair, of in transfers:
            links = set(system.path(*divmod(pair, system.core_count)).tolist())
            tree |= {link for link in links if system.multicast[link]}
            for link in links:
                if not system.multicast[link] and (of < 0 or link not in on_main):
                    found[link] += int(problem.graph.piece_bits[piece])
        for link in tree:
            found[link] += int(problem.graph.piece_bits[piece])
    return found


@settings(max_examples=members(300, 40), deadline=None)
@given(SEEDS, OPTIONS)
def test_the_compiled_scheduler_equals_the_slow_one_on_networks(seed: int, options: ScheduleOptions) -> None:
    """Both schedulers give equal times, transfers, peaks, and counts of bits and words."""
    assert_equals_the_slow_one(*problem_on_a_mesh(seed), options)


@settings(max_examples=members(600, 60), deadline=None)
@given(SEEDS, OPTIONS)
def test_the_compiled_scheduler_equals_the_slow_one_on_larger_networks(seed: int, options: ScheduleOptions) -> None:
    """Both schedulers make equal schedules on 8 to 16 cores; most of these cores wait most of the time."""
    assert_equals_the_slow_one(*problem_on_a_mesh(seed, 40, shapes=LARGE_SHAPES), options)


def assert_equals_the_slow_one(problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions) -> None:
    """Checks that times, transfers, peaks, and counts of bits and words are equal."""
    fast, slow = simulate(problem, allocation, options), SlowScheduler(problem, allocation, options).run()
    assert fast.transfers.tolist() == slow.transfers
    assert (fast.start_cycles.tolist(), fast.end_cycles.tolist()) == (slow.start, slow.end)
    assert fast.latency_cycles == slow.now
    assert fast.peak_bits.tolist() == list(slow.peak.values())
    for name in ("link_bits", "words_read", "words_written"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


@settings(max_examples=members(600, 16), deadline=None)
@given(SEEDS, OPTIONS)
def test_schedules_with_multicast_keep_every_rule(seed: int, options: ScheduleOptions) -> None:
    """The checker finds no fault, the traffic equals a second count, and the schedule is not below a bound."""
    problem, allocation = problem_on_a_mesh(seed, 20)
    schedule = simulate(problem, allocation, options)
    assert check_schedule(problem, schedule, options.has_barriers) == []
    moved = np.delete(schedule.link_bits, 1, axis=0).sum(axis=0)
    assert dict(traffic(problem, schedule)) == {link: bits for link, bits in enumerate(moved.tolist()) if bits}
    own = np.zeros((len(allocation), problem.system.core_count), np.bool_)
    own[np.arange(len(allocation)), allocation] = True
    for allowed in (None, own):
        bounds = lower_bounds(problem, allowed)
        assert bounds.latency_cycles <= bounds.if_copied.latency_cycles <= schedule.latency_cycles
        assert bounds.energy_pj <= schedule.energy_pj * (1 + 1e-12)


@settings(max_examples=members(100, 5), deadline=None)
@given(SEEDS)
def test_multicast_never_gives_a_worse_bound(seed: int) -> None:
    """Bounds of a system with multicast on every link are at most those of the same system without it."""
    problem, _ = problem_on_a_mesh(seed, 20, 1.0, False)
    is_bus = np.zeros(len(problem.system.link_bits_per_cycle), np.bool_)
    without = replace(problem.system, link_is_broadcast=is_bus, link_is_multicast=None)
    bounds, before = lower_bounds(problem), lower_bounds(replace(problem, system=without))
    assert bounds.latency_cycles <= before.latency_cycles
    assert bounds.energy_pj <= before.energy_pj * (1 + 1e-12)


def row_of_three(is_multicast: bool) -> SchedulingProblem:
    """Three cores in a row, with off-chip memory at one end. Each core needs the same 40 bits."""
    links = [Link(10, 0.5, False, is_multicast)] * 3  # off-chip to 0, 0 to 1, 1 to 2
    out = {(3, core): list(range(core + 1)) for core in range(3)}
    back = {(core, 3): list(range(core + 1)) for core in range(3)}
    system = make_system([0, 1, 2, 3], [Memory()] * 3 + [Memory(10**9, 1000, 10.0, 20.0)], links, out | back)
    return make_problem(system, [Piece(40)], [Node(5, [(0, 1)], group=core) for core in range(3)])


def test_a_piece_moves_once_over_each_link_of_a_row() -> None:
    """The three cores have the piece after 4 cycles with multicast, and each link carries 40 bits."""
    problem = row_of_three(True)
    schedule = simulate(problem, np.arange(3))
    assert schedule.start_cycles.tolist() == [4, 4, 4]
    assert schedule.link_bits.sum(axis=0).tolist() == [40, 40, 40]
    assert schedule.words_read.sum() == 1
    assert schedule.words_written.sum() == 3
    without = simulate(row_of_three(False), np.arange(3))
    assert without.start_cycles.tolist() == [4, 8, 12]
    assert without.link_bits.sum(axis=0).tolist() == [120, 80, 40]


def test_a_core_without_room_is_not_served() -> None:
    """A core whose memory is full is not served with the others, and fetches the piece later."""
    problem = row_of_three(True)
    system = problem.system
    small = replace(system, memory_capacity_bits=np.array([100, 100, 60, 10**9]))
    pieces = [Piece(40), Piece(50)]
    nodes = [Node(5, [(0, 1)]), Node(5, [(0, 1)], group=1), Node(9, [(1, 1)], group=2), Node(5, [(0, 1)], [2], group=3)]
    problem = make_problem(small, pieces, nodes)
    schedule = simulate(problem, np.array([0, 1, 2, 2]))
    arrivals = [move for move in schedule.transfers.tolist() if move[0] == 0]
    assert len(arrivals) == 3
    assert sum(move[9] >= 0 for move in arrivals) == 1
    assert check_schedule(problem, schedule) == []


def test_a_source_in_the_middle_sends_both_ways_at_once() -> None:
    """A result of the middle core of a row reaches both neighbours in one transfer."""
    links = [Link(10, 0.5, False, True)] * 3  # 1 to 0, 1 to 2, off-chip
    paths = {(1, 0): [0], (1, 2): [1]} | {pair: [2] for core in range(3) for pair in ((core, 3), (3, core))}
    system = make_system([0, 1, 2, 3], [Memory()] * 3 + [Memory(10**9)], links, paths)
    nodes = [Node(5), Node(5, [(0, 1)], group=1), Node(5, [(0, 1)], group=2)]
    schedule = simulate(make_problem(system, [Piece(40, 0)], nodes), np.array([1, 0, 2]))
    assert schedule.start_cycles.tolist() == [0, 9, 9]
    assert schedule.words_read.sum() == 1


def test_multicast_without_broadcast_is_refused() -> None:
    """A system with multicast but without links that broadcast contradicts itself and is refused."""
    system = row_of_three(True).system
    with pytest.raises(InputError, match="link_is_broadcast"):
        make_problem(replace(system, link_is_broadcast=np.zeros(3, np.bool_)), [], [])
