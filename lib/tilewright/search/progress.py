"""Progress of long searches on stderr: orders visited, rate and time left.

A terminal shows a bar; a log gets a line every LOG_INTERVAL_S seconds. Short searches show nothing.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tilewright.base.compiled import cache_directory
from tilewright.base.harmless import terminal

Advance = Callable[[int], None]
LEAST_ORDERS = 300_000
"""Smallest number of orders for which progress is shown. A search visits this number of orders in about a second."""
QUIET_S = 1.0
"""Time in seconds after which a search with an unknown number of orders shows progress."""
LOG_INTERVAL_S = 15.0
LEAST_SHARE = 0.1
"""Share of the work that must be done before the remaining time is shown."""


class TimeLeft:
    """Estimate of the remaining time, from the rate of work after the first call of `advance`.

    The work before this call is left out, because its time includes reading and compiling.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._first: tuple[int, float] | None = None
        self._last_s = 0.0

    def advance(self, count: int, now_s: float) -> None:
        """Add `count` units of work, which are done at the time `now_s` (in seconds)."""
        self._done += count
        self._last_s = now_s
        if self._first is None:
            self._first = (self._done, now_s)

    @property
    def seconds(self) -> float | None:
        """Remaining seconds. None until LEAST_SHARE of the work is done and `advance` has been called twice."""
        if self._first is None or self._done < LEAST_SHARE * self._total:
            return None
        count, elapsed_s = self._done - self._first[0], self._last_s - self._first[1]
        return (self._total - self._done) * elapsed_s / count if count else None


@contextlib.contextmanager
def search_progress(
    total_orders: int | None,
    title: str,
    shown: bool,
    unit: str = "orders",
    least: int = LEAST_ORDERS,
    after_s: float = 0.0,
) -> Iterator[Advance]:
    """Context that shows the progress of a search over `total_orders` orders (None if unknown). The context yields a
    function that adds to the number of visited orders.

    No progress is shown if `shown` is false or if the total is less than `least`. A terminal shows nothing in the first
    `after_s` seconds, or in the first QUIET_S seconds if the total is not known. Any thread can call the yielded
    function.

    If `shown` is true and kernels must be compiled first, a line says so, because compiling takes longer than most
    searches.
    """
    if shown and (told := compilation_text(cache_directory())):
        print(terminal(told), file=sys.stderr, flush=True)
    if not shown or (total_orders is not None and total_orders < least):
        yield lambda orders: None
    elif sys.stderr.isatty():
        with contextlib.ExitStack() as stack:
            yield _bar(total_orders, title, stack, unit, QUIET_S if total_orders is None else after_s)
    else:
        yield _log_lines(total_orders, title, unit)


def compilation_text(kernels: Path | None) -> str:
    """Text that announces that the search first compiles its kernels; '' if the folder `kernels` already has compiled
    kernels. `kernels` is None if there is no folder in which compiled kernels can be kept.
    """
    what = "compiling the numeric functions of this version: a minute of processor time or more"
    if kernels is None:
        return f"{what}; every run compiles them again, because there is no writable folder for compiled functions"
    return "" if any(kernels.glob("*.o")) else f"{what}, only in the first run of each command"


def _log_lines(total_orders: int | None, title: str, unit: str) -> Advance:
    """Function that adds to the number of visited orders, and writes a line to stderr at most once every LOG_INTERVAL_S
    seconds.
    """
    start = last = time.monotonic()
    done = 0
    lock = threading.Lock()
    time_left = TimeLeft(total_orders or 0)

    def advance(orders: int) -> None:
        nonlocal done, last
        with lock:
            done += orders
            now = time.monotonic()
            time_left.advance(orders, now)
            if now - last < LOG_INTERVAL_S:
                return
            last = now
            rate = done / (now - start)
            if total_orders is None:
                told = f"{done:,} visited, {rate:,.0f} per second, {now - start:,.0f} s so far"
            else:
                left_s = time_left.seconds
                left = "" if left_s is None else f", {left_s:,.0f} s left"
                share = f"{done:,} of {total_orders:,} {unit} ({done / total_orders:.0%})"
                told = f"{share}, {_per_second(rate)} {unit}/s{left}"
            print(terminal(f"{title}: {told}"), file=sys.stderr, flush=True)

    return advance


def _bar(total_orders: int | None, title: str, stack: contextlib.ExitStack, unit: str, after_s: float) -> Advance:
    """Function that adds to a progress bar. The bar appears after `after_s` seconds, and is removed when the context
    `stack` ends.
    """
    start = time.monotonic()
    lock = threading.Lock()
    waiting = 0
    started: list[Advance] = [] if after_s else [_started_bar(total_orders, title, stack, unit)]

    def advance(orders: int) -> None:
        nonlocal waiting
        with lock:
            waiting += orders
            if not started and time.monotonic() - start >= after_s:
                started.append(_started_bar(total_orders, title, stack, unit))
            if started:
                started[0](waiting)
                waiting = 0

    return advance


def _started_bar(total_orders: int | None, title: str, stack: contextlib.ExitStack, unit: str) -> Advance:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Column that shows the rate per second."""

        def render(self, task: Task) -> Text:
            return Text(f"{_per_second(task.speed)} {unit}/s" if task.speed else "")

    time_left = TimeLeft(total_orders or 0)

    class Left(ProgressColumn):
        """Column that shows the remaining seconds as soon as they are known."""

        def render(self, task: Task) -> Text:
            return Text("" if time_left.seconds is None else f"{time_left.seconds:,.0f} s left")

    left: tuple[Any, ...] = (Left(),) if total_orders is not None else ()
    count = "{task.completed:,.0f}/{task.total:,.0f}" if total_orders is not None else "{task.completed:,.0f}"
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn(count),
        Rate(),
        TimeElapsedColumn(),
        *left,
    )
    progress = stack.enter_context(Progress(*columns, console=Console(stderr=True)))
    task = progress.add_task(terminal(title), total=total_orders)

    def advance(orders: int) -> None:
        time_left.advance(orders, time.monotonic())
        progress.advance(task, orders)

    return advance


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
