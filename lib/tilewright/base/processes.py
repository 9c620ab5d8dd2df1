"""Tasks in several processes: results come in the order of the tasks, and do not depend on the number of processes."""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

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

    `seconds_left()` is the longest time in seconds to wait for the next result of another process; None for no limit.
    If a result takes longer, this result and all later results are left out. At the end of the context, tasks that
    still run are stopped.
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
    """Results in the order of the tasks. If a result does not come within `seconds_left()` seconds, this result and all
    later results are left out. At most `ahead` tasks are submitted in advance, so that an interrupt ends the work soon.
    """
    waiting: collections.deque[Future[Any]] = collections.deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(_do, task))
            if len(waiting) > ahead:
                yield waiting.popleft().result(seconds_left())
        while waiting:
            yield waiting.popleft().result(seconds_left())
    except concurrent.futures.TimeoutError:
        for future in waiting:
            future.cancel()


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
