"""Progress of long searches on stderr: orders done, rate and time left; a bar on a terminal, a line now and then in a
log, nothing for searches that are over in a moment."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
LEAST_ORDERS = 300_000
"""Searches with fewer orders take about a second: no progress is shown."""
LOG_INTERVAL_S = 15.0


@contextlib.contextmanager
def search_progress(total_orders: int, title: str, shown: bool) -> Iterator[Advance]:
    """Show the progress of `total_orders`; yields the function that advances it, safe to call from any thread."""
    if not shown or total_orders < LEAST_ORDERS:
        yield lambda orders: None
    elif sys.stderr.isatty():
        with _bar(total_orders, title) as advance:
            yield advance
    else:
        yield _log_lines(total_orders, title)


def _log_lines(total_orders: int, title: str) -> Advance:
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
            print(
                f"{title}: {done:,} of {total_orders:,} orders ({done / total_orders:.0%}), {rate:,.0f} orders/s, "
                f"{(total_orders - done) / rate:,.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    return advance


@contextlib.contextmanager
def _bar(total_orders: int, title: str) -> Iterator[Advance]:
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
        """Orders per second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f} orders/s" if task.speed else "")

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        Rate(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total_orders)
        yield lambda orders: progress.advance(task, orders)
