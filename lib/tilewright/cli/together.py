"""Several units of work in one process: a job makes the units of many short runs one after another.

Each unit has a verb, a log and a manifest, like a unit that a job makes alone. If a unit fails, only the units that
depend on it are left out. The next job makes the failed unit and the units that were left out.
"""

from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tilewright.base.artifacts.files import make_folder, write_atomically
from tilewright.base.artifacts.manifest import Order, order_file, read_order
from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.cli.terminal import echo
from tilewright.cli.workflow_messages import log_lines

Dispatch = Callable[[list[str]], int]
"""Function that runs a verb with its arguments and returns the exit code."""


def make_together(due: Path, dispatch: Dispatch, interrupted: int) -> int:
    """Make the unit that the order file `due` describes. Units that it needs and that are not up to date are made
    first.

    If a needed unit fails, the function leaves out the units that depend on it, including the unit of `due`. It still
    makes the other needed units, and returns the exit code of the first unit that failed. If no unit fails, it returns
    0. After Ctrl-C, it makes no further unit and returns `interrupted`.
    """
    order = read_order(due)
    failed: dict[str, int] = {}
    for name in order.needs:
        needed = read_order(order_file(order.results, name))
        if not needed.is_due or not failed.keys().isdisjoint(needed.needs):
            continue
        code = make(needed, needed.job.words, dispatch)
        if code == interrupted:
            return code
        if code:
            failed[name] = code
            _say_failure(needed)
    if failed:
        return next(iter(failed.values()))
    write_atomically(order.results / order.files[0], f"{order.made_of}\n")
    read_order(due).record()
    return 0


def make(order: Order, words: Sequence[str], dispatch: Dispatch) -> int:
    """Make one unit with a verb; returns the exit code. The output of the verb is written to the log of the unit."""
    log = Path(order.job.log)
    make_folder(log.parent)
    with log.open("w", encoding="utf-8") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            return make_unit(order, words, dispatch)
        except TilewrightError as error:
            for line in str(error).splitlines():
                echo(f"error: {line}", err=True)
            return 2


def make_unit(order: Order, words: Sequence[str], dispatch: Dispatch) -> int:
    """Make one unit with a verb; returns the exit code. The manifest is written last, and only if the verb succeeded.

    Raises InputError if the order and the arguments belong to different configurations, if an input of the unit has
    changed after the order was written, or if an input does not exist yet.
    """
    if order.job.words and tuple(words[: len(order.job.words)]) != order.job.words:
        message = "belongs to a configuration that has changed since this run began; start the run again"
        raise InputError([Problem(message, str(order_file(order.results, order.unit)))])
    order.refuse_unmade()
    order.refuse_changed_files()
    order.remove_earlier()
    code = dispatch(list(words))
    if code == 0:
        order.record()
    return code


def _say_failure(order: Order) -> None:
    for line in log_lines(order.job.log):
        echo(f"error: {order.job.log}:{line}", err=True)
