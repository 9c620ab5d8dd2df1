"""Work in several processes: results come in order, and late tasks are given up."""

import time
from collections.abc import Callable

from tilewright.base.processes import in_processes

BUDGET_S = 3.0


def sleeper() -> Callable[[float], float]:
    """Return a function that sleeps as long as the task says."""
    return slept


def slept(seconds: float) -> float:
    """Sleep for some seconds and return them."""
    time.sleep(seconds)
    return seconds


def test_results_come_in_the_order_of_the_work() -> None:
    """Results come in the order of the tasks, even if an earlier task takes longer."""
    with in_processes(sleeper, 4, 2) as work:
        assert list(work([0.2, 0.0, 0.1])) == [0.2, 0.0, 0.1]


def test_the_time_that_is_left_is_read_again() -> None:
    """The remaining time is read again while tasks run, because CPU seconds can pass faster than the clock."""
    start = time.monotonic()
    with in_processes(sleeper, 4, 2, lambda: 0.0 if time.monotonic() > start + BUDGET_S else 3600.0) as work:
        assert list(work([60.0, 60.0])) == []
    assert time.monotonic() - start < BUDGET_S + 20


def test_what_is_late_is_given_up() -> None:
    """A late task of a minute delays neither the results nor the end of the processes."""
    start = time.monotonic()
    end = start + BUDGET_S
    with in_processes(sleeper, 4, 2, lambda: max(0.0, end - time.monotonic())) as work:
        assert list(work([0.0, 60.0, 60.0]))[1:] == []
    assert time.monotonic() - start < BUDGET_S + 20
