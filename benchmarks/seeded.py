"""Random problems by seed on several processes, for the scripts that try such problems: arguments, time limit, progress
and counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, Self

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "lib")]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("XDG_CACHE_HOME", str(PROJECT / ".cache"))

from tests.plain.tally import Tally  # noqa: E402

PROGRESS_EVERY = 50
"""Number of parts between two lines of progress."""


class Part(Protocol):
    """Results of some seeds. Two parts can be added up."""

    counts: Counter[str]

    def add(self, other: Self) -> None:
        """Add the results of another part."""


def parser_of(description: str | None, noun: str, count: int) -> argparse.ArgumentParser:
    """Parser of the arguments of a script that tries `count` problems. `noun` names a problem. The function `parts`
    reads the arguments.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0] if description else "")
    parser.add_argument(f"--{noun}s", dest="count", type=int, default=count)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seed", type=int, help=f"one {noun} only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.set_defaults(noun=noun, start=time.time())
    return parser


def parts(
    options: argparse.Namespace, empty: Callable[[], Any], try_seed: Callable[[int], Any], at_once: int
) -> Iterator[Any]:
    """Results of the seeds that the options name, in their order, with `at_once` seeds per part. Prints progress."""
    first, last = options.first_seed, options.first_seed + options.count
    if options.seed is not None:
        first, last = options.seed, options.seed + 1
    tasks = [
        (empty, try_seed, range(seed, min(last, seed + at_once)), options.start + options.seconds, options.noun)
        for seed in range(first, last, at_once)
    ]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for done, part in enumerate(pool.imap(_part, tasks), 1):
            yield part
            if done % PROGRESS_EVERY == 0:
                print(f"{done * at_once} of {last - first}, {time.time() - options.start:.0f} s", flush=True)


def _part(task: tuple[Callable[[], Part], Callable[[int], Any], range, float, str]) -> Part:
    """Results of some seeds, until the time limit."""
    empty, try_seed, seeds, deadline, noun = task
    part = empty()
    for seed in seeds:
        if time.time() >= deadline:
            part.counts[f"{noun}s left out for lack of time"] += 1
            continue
        try:
            part.add(try_seed(seed))
        except Exception as error:
            raise RuntimeError(f"seed {seed}: {error}") from error
    return part


def run(
    description: str | None,
    noun: str,
    count: int,
    try_seed: Callable[[int], Tally],
    at_once: int,
    wrong: str = "differences",
) -> int:
    """Run a script that tries seeds: print faults and counts. The exit code is 1 if there is a fault."""
    options = parser_of(description, noun, count).parse_args()
    tally = Tally()
    for part in parts(options, Tally, try_seed, at_once):
        tally.add(part)
        for text in part.wrong:
            print(text, flush=True)
    print(report(tally.counts, wrong, len(tally.wrong), options))
    return 1 if tally.wrong else 0


def report(counts: Counter[str], wrong: str, wrong_count: int, options: argparse.Namespace) -> str:
    """Counts as lines of text. Counts of faults, and then the seconds, come last."""
    lines = [*sorted(counts.items()), (wrong, wrong_count), ("seconds", round(time.time() - options.start))]
    return "\n".join(f"{name:100} {count:>12,}" for name, count in lines)
