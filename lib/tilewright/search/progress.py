"""Progress of long searches: orders done, rate and time left, on the terminal (stderr) or nowhere."""

import contextlib
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


@contextlib.contextmanager
def search_progress(total_orders: int, title: str, shown: bool) -> Iterator[Advance]:
    """A progress bar over `total_orders`; yields the function that advances it. Silent unless `shown`."""
    if not shown:
        yield lambda orders: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Orders per second."""

        def render(self, task):  # noqa: ANN001, ANN202
            return Text(f"{task.speed:,.0f} orders/s" if task.speed else "")

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        Rate(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total_orders)
        yield lambda orders: progress.advance(task, orders)
