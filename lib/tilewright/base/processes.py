"""Tasks in several processes: results come in the order of the tasks, and do not depend on the number of processes.

`cpu_seconds_used` also counts the time of these processes.
"""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

POLL_S = 0.2
"""Seconds after which the remaining time of a task is read again. The remaining time can be in CPU seconds, which pass
faster than the clock if several processes run.
"""
Task = TypeVar("Task")
Result = TypeVar("Result")
_work: Callable[[Any], Any] | None = None
"""Function that a worker process applies to each task."""


@contextlib.contextmanager
def in_processes(
    make: Callable[[], Callable[[Task], Result]],
    most: int,
    jobs: int,
    seconds_left: Callable[[], float | None] = lambda: None,
) -> Iterator[Callable[[Sequence[Task]], Iterator[Result]]]:
    """Context that yields a function for running tasks. If `jobs` or `most` is at most 1, the tasks run in this
    process. Otherwise, they run in min(`jobs`, `most`) other processes.

    `most` is the expected number of tasks. `make` returns the function that runs one task. Each process calls `make`
    one time, so `make` must be a function of a module, or a `functools.partial` of such a function.

    `seconds_left()` is the time in seconds that is left for the next result of another process; None for no limit. If
    no time is left before a result comes, this result and all later results are left out. At the end of the context,
    tasks that still run are stopped.
    """
    if min(jobs, most) <= 1:
        work = make()
        yield lambda tasks: (work(task) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, most), context, _start_worker, (make,))
    try:
        yield lambda tasks: _in_order(pool, tasks, 2 * jobs, seconds_left)
    finally:
        workers = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:  # otherwise this process waits for their tasks when it ends
            worker.terminate()


def _in_order(
    pool: ProcessPoolExecutor, tasks: Sequence[Any], ahead: int, seconds_left: Callable[[], float | None]
) -> Iterator[Any]:
    """Results in the order of the tasks. If `seconds_left()` is 0 before a result comes, this result and all later
    results are left out. At most `ahead` tasks are submitted in advance, so that an interrupt ends the work soon.
    """
    waiting: collections.deque[Future[Any]] = collections.deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(_do, task))
            if len(waiting) > ahead:
                yield _in_time(waiting.popleft(), seconds_left)
        while waiting:
            yield _in_time(waiting.popleft(), seconds_left)
    except concurrent.futures.TimeoutError:
        for future in waiting:
            future.cancel()


def _in_time(future: Future[Any], seconds_left: Callable[[], float | None]) -> Any:
    """Result of a task. Raises TimeoutError as soon as `seconds_left()` is 0."""
    while True:
        left_s = seconds_left()
        try:
            return future.result(POLL_S if left_s is None else min(POLL_S, left_s))
        except concurrent.futures.TimeoutError:
            if left_s is not None and left_s <= 0:
                raise


def cpu_seconds_used() -> float:
    """CPU seconds that this process and its child processes have used since the start of this process. A child process
    that still runs counts only if `multiprocessing` started it.
    """
    running = multiprocessing.active_children()  # also adds the time of those that have ended to `os.times`
    times = os.times()
    return time.process_time() + times.children_user + times.children_system + sum(map(_seconds_of, running))


def _seconds_of(process: Any) -> float:
    """CPU seconds of a running child process; 0 if it has just ended."""
    import psutil  # here: most commands have no child processes

    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _start_worker(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides when workers end
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work = make()


def _end_with_parent() -> None:
    """Wait for the parent process to end, then end this process. This ends the workers of a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(task: Any) -> Any:
    assert _work is not None
    return _work(task)
