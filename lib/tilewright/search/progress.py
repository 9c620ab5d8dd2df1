"""Progress of long searches on stderr: what was looked at, rate and time left.

A bar on a terminal, a line now and then in a log, nothing for searches that are over in a moment.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

Advance = Callable[[int], None]
LEAST_ORDERS = 300_000
"""Searches with fewer orders take about a second: no progress is shown."""
QUIET_S = 1.0
"""A search whose orders nobody can count before is shown when it takes longer."""
LOG_INTERVAL_S = 15.0


@contextlib.contextmanager
def search_progress(
    total_orders: int | None, title: str, shown: bool, unit: str = "orders", least: int = LEAST_ORDERS
) -> Iterator[Advance]:
    """Show the progress of `total_orders` (None: nobody knows how many); yields the function that advances it.

    Less than `least` is not worth showing.

    That function may be called from any thread.
    """
    if not shown or (total_orders is not None and total_orders < least):
        yield lambda orders: None
    elif sys.stderr.isatty():
        with contextlib.ExitStack() as stack:
            yield _bar(total_orders, title, stack, unit)
    else:
        yield _log_lines(total_orders, title, unit)


def _log_lines(total_orders: int | None, title: str, unit: str) -> Advance:
    """A line every LOG_INTERVAL_S seconds."""
    start = last = time.monotonic()
    done = 0
    lock = threading.Lock()

    def advance(orders: int) -> None:
        nonlocal done, last
        with lock:
            done += orders
            now = time.monotonic()
            if now - last < LOG_INTERVAL_S:
                return
            last = now
            rate = done / (now - start)
            if total_orders is None:
                told = f"{done:,} looked at, {rate:,.0f} a second, {now - start:,.0f} s"
            else:
                left = f"{(total_orders - done) / rate:,.0f} s left"
                share = f"{done:,} of {total_orders:,} {unit} ({done / total_orders:.0%})"
                told = f"{share}, {_per_second(rate)} {unit}/s, {left}"
            print(f"{title}: {told}", file=sys.stderr, flush=True)

    return advance


def _bar(total_orders: int | None, title: str, stack: contextlib.ExitStack, unit: str) -> Advance:
    """A bar that `stack` ends; without a total it starts when QUIET_S are over."""
    start = time.monotonic()
    lock = threading.Lock()
    waiting = 0
    started: list[Advance] = [_started_bar(total_orders, title, stack, unit)] if total_orders is not None else []

    def advance(orders: int) -> None:
        nonlocal waiting
        with lock:
            waiting += orders
            if not started and time.monotonic() - start >= QUIET_S:
                started.append(_started_bar(None, title, stack, unit))
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
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Per second."""

        def render(self, task: Task) -> Text:
            return Text(f"{_per_second(task.speed)} {unit}/s" if task.speed else "")

    left: tuple[Any, ...] = (TextColumn("left"), TimeRemainingColumn()) if total_orders is not None else ()
    count = "{task.completed:,.0f}/{task.total:,.0f}" if total_orders is not None else "{task.completed:,.0f}"
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(count), Rate(), TimeElapsedColumn(), *left)
    progress = stack.enter_context(Progress(*columns, console=Console(stderr=True)))
    task = progress.add_task(title, total=total_orders)
    return lambda orders: progress.advance(task, orders)


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
