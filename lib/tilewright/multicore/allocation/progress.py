"""Progress of a search over allocations, shown on stderr: a bar on a terminal, occasional lines in a log file."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.base.harmless import terminal
from tilewright.base.units import energy_text
from tilewright.multicore.allocation.result import SearchProgress

QUIET_S = 1.0
"""Seconds after which the progress bar appears. Shorter searches show no bar."""


LOG_INTERVAL_S = 15.0


Told = Callable[[SearchProgress], None]


@contextlib.contextmanager
def allocation_progress(title: str, shown: bool) -> Iterator[Told]:
    """Context that shows the progress of a search. It yields a function that the search calls after each evaluation."""
    with contextlib.ExitStack() as stack:
        if not shown:
            yield lambda progress: None
        elif sys.stderr.isatty():
            yield _bar(title, stack)
        else:
            yield _log_lines(title)


def progress_text(progress: SearchProgress) -> str:
    """Line of text with the state of the search: number of evaluations, best result, and estimated time left."""
    best = progress.best
    so_far = (
        "no schedule yet" if best is None else f"best {best.latency_cycles:,} cycles, {energy_text(best.energy_pj)}"
    )
    done, planned = progress.evaluations, max(progress.evaluations_planned, 1)
    left = progress.elapsed_s * (1 / progress.share - 1) if progress.share else 0.0
    return f"{done:,} of at most {planned:,} {progress.unit}, {so_far}, {max(left, 0.0):,.0f} s left"


def _log_lines(title: str) -> Told:
    last = time.monotonic()

    def tell(progress: SearchProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LOG_INTERVAL_S:
            last = now
            print(terminal(f"{title}: {progress_text(progress)}"), file=sys.stderr, flush=True)

    return tell


def _bar(title: str, stack: contextlib.ExitStack) -> Told:
    """Function that updates a progress bar. The bar appears after QUIET_S seconds and closes when `stack` is closed."""
    started: list[Any] = []

    def tell(progress: SearchProgress) -> None:
        if not started and progress.elapsed_s >= QUIET_S:
            started.append(_started_bar(title, stack))
        if started:
            bar, task = started[0]
            best = "" if progress.best is None else f"best {progress.best.latency_cycles:,} cycles"
            total = progress.evaluations / progress.share if progress.share else progress.evaluations_planned
            bar.update(task, completed=progress.evaluations, total=int(total), best=best)

    return tell


def _started_bar(title: str, stack: contextlib.ExitStack) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        *(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[best]}"),
        ),
        *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
    )
    bar = stack.enter_context(Progress(*columns, console=Console(stderr=True)))
    return bar, bar.add_task(terminal(title), total=None, best="")
