"""Schedules of random problems equal the slow scheduler's, keep all invariants, and are not below the lower bounds."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler, simulate

from tests.members import members
from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.slow_scheduler import SlowScheduler

SEEDS = st.integers(0, 10**9)
OPTIONS = st.builds(
    ScheduleOptions,
    scheduler_candidate_selection=st.sampled_from(("latency", "memory", "progress")),
    operands_to_prefetch=st.sampled_from(((), (1,), (1, 2))),
    share_divisor=st.sampled_from((1, 2, 4, 100)),
    stack_order=st.sampled_from(("priority", "barrier")),
    prefetch_results=st.booleans(),
    layers_by_off_chip=st.sampled_from(((), (0,), (1, 2), tuple(range(20)))),
)


AFTER_A_LATER_EVICTION = ScheduleOptions(
    scheduler_candidate_selection="memory",
    operands_to_prefetch=(1,),
    share_divisor=2,
    stack_order="barrier",
    prefetch_results=True,
    layers_by_off_chip=(0,),
)
"""Options with which a constant of problem 2352 waits for a link, is fetched, and is evicted again."""


def contents(schedule: Schedule) -> bytes:
    """The bytes of all arrays in a schedule."""
    return b"".join(value.tobytes() for value in vars(schedule).values() if isinstance(value, np.ndarray))


@settings(max_examples=80, deadline=None)
@given(SEEDS, OPTIONS, st.sampled_from((4, 12, 30)))
@example(2352, AFTER_A_LATER_EVICTION, 60)
def test_the_compiled_scheduler_equals_the_slow_one(seed: int, options: ScheduleOptions, nodes: int) -> None:
    """Both schedulers give equal times, transfers in the same order, and counts of bits and words."""
    problem, allocation = random_problem(seed, nodes)
    fast, slow = simulate(problem, allocation, options), SlowScheduler(problem, allocation, options).run()
    assert fast.start_cycles.tolist() == slow.start
    assert fast.end_cycles.tolist() == slow.end
    assert fast.transfers.tolist() == slow.transfers
    assert fast.latency_cycles == slow.now
    assert fast.peak_bits.tolist() == list(slow.peak.values())
    for name in ("link_bits", "words_read", "words_written"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


@settings(max_examples=80, deadline=None)
@given(SEEDS, OPTIONS)
def test_every_schedule_keeps_the_invariants(seed: int, options: ScheduleOptions) -> None:
    """`check_schedule`, which does not use the kernel, finds no fault."""
    problem, allocation = random_problem(seed, 25)
    assert check_schedule(problem, simulate(problem, allocation, options), options.has_barriers) == []


@settings(max_examples=members(30, 12), deadline=None)
@given(SEEDS, OPTIONS)
def test_no_schedule_is_below_the_bounds(seed: int, options: ScheduleOptions) -> None:
    """No schedule is below the bounds over all allocations, or below the bounds for its own allocation."""
    problem, allocation = random_problem(seed, 20)
    schedule = simulate(problem, allocation, options)
    any_allocation = lower_bounds(problem)
    own = np.zeros((len(allocation), problem.system.core_count), np.bool_)
    own[np.arange(len(allocation)), allocation] = True
    this_allocation = lower_bounds(problem, own)
    assert (
        max(any_allocation.if_copied.latency_cycles, this_allocation.if_copied.latency_cycles)
        <= schedule.latency_cycles
    )
    assert any_allocation.if_copied.critical_path_cycles <= this_allocation.if_copied.critical_path_cycles
    assert any_allocation.energy_pj * (1 - 1e-9) <= this_allocation.energy_pj <= schedule.energy_pj * (1 + 1e-12)


@settings(max_examples=20, deadline=None)
@given(SEEDS, OPTIONS)
def test_schedules_are_deterministic(seed: int, options: ScheduleOptions) -> None:
    """A schedule has the same bytes from a scheduler that was used in between, and the same numbers without logs."""
    problem, allocation = random_problem(seed, 20)
    scheduler = Scheduler(problem, options)
    first = scheduler(allocation)
    assert contents(first) == contents(scheduler(allocation)) == contents(simulate(problem, allocation, options))
    plain = replace(options, record=False)
    silent = simulate(problem, allocation, plain)
    assert (silent.latency_cycles, silent.energy_pj) == (first.latency_cycles, first.energy_pj)
    assert len(silent.transfers) == 0


def test_one_scheduler_serves_several_threads() -> None:
    """Allocations that several threads schedule at once give the schedules that one thread gives."""
    problem, _ = random_problem(6, 25)
    count, cores = problem.graph.node_count, problem.system.core_count - 1
    allocations = [np.random.default_rng(seed).integers(0, cores, count) for seed in range(40)]
    scheduler = Scheduler(problem)
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(scheduler, allocations))
    for allocation, schedule in zip(allocations, together, strict=True):
        assert contents(schedule) == contents(simulate(problem, allocation))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"scheduler_candidate_selection": "latncy"}, "scheduler_candidate_selection"),
        ({"schedule_model": "stream-2024"}, "schedule_model"),
        ({"share_divisor": 0}, "share_divisor"),
        ({"operands_to_prefetch": (-1,)}, "operands_to_prefetch"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], path: str) -> None:
    """A wrong option is one problem with the option's name."""
    with pytest.raises(InputError) as raised:
        ScheduleOptions(**options)  # type: ignore[arg-type]
    assert [problem.path for problem in raised.value.problems] == [path]
