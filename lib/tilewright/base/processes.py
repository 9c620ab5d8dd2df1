"""Work in several processes: results come in the order of the work, and do not depend on the number of processes."""

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
"""Loop of a worker process."""


@contextlib.contextmanager
def in_processes(
    make: Callable[[], Callable[[Task], Result]],
    most: int,
    jobs: int,
    seconds_left: Callable[[], float | None] = lambda: None,
) -> Iterator[Callable[[Sequence[Task]], Iterator[Result]]]:
    """A function that does work, in this process or in `jobs` others; `most` tasks at a time are to be expected.

    `make` makes what does the work; each process calls it once, so that it has to be a function of a module, or a
    partial one. In other processes, results that are not there after `seconds_left` are not waited for, and what is
    still being done in the end is given up.
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
        for worker in workers:  # else the end of this process waits for what they do
            worker.terminate()


def _in_order(
    pool: ProcessPoolExecutor, tasks: Sequence[Any], ahead: int, seconds_left: Callable[[], float | None]
) -> Iterator[Any]:
    """The results, fewer where the time is over; only so many tasks ahead are asked for that an interruption ends
    soon."""
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to end
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work = make()


def _end_with_parent() -> None:
    """End when the parent does, however it ends: killed, it cannot say so."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(task: Any) -> Any:
    assert _work is not None
    return _work(task)
