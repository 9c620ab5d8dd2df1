"""Work in several processes: results come in the order of the work, and do not depend on the number of processes."""

import collections
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
"""Of a worker process."""


@contextlib.contextmanager
def in_processes(
    make: Callable[[], Callable[[Task], Result]], most: int, jobs: int
) -> Iterator[Callable[[Sequence[Task]], Iterator[Result]]]:
    """A function that does work, in this process or in `jobs` others; `most` tasks at a time are to be expected.

    `make` makes what does the work; each process calls it once, so that it has to be a function of a module, or a
    partial one.
    """
    if min(jobs, most) <= 1:
        work = make()
        yield lambda tasks: (work(task) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, most), context, _start_worker, (make,))
    try:
        yield lambda tasks: _in_order(pool, tasks, 2 * jobs)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, tasks: Sequence[Any], ahead: int) -> Iterator[Any]:
    """The results; only so many tasks ahead are asked for that an interruption ends soon."""
    waiting: collections.deque[Future[Any]] = collections.deque()
    for task in tasks:
        waiting.append(pool.submit(_do, task))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    for future in waiting:
        yield future.result()


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
