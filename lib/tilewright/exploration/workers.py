"""Work on a space in several processes: results come in the order of the work, and do not depend on their number."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tilewright.exploration.space import Space
from tilewright.exploration.space_reader import read_space
from tilewright.processes import in_processes

SpaceSource = str | Path | dict[str, Any]
"""A file of a space, or its content."""
Task = TypeVar("Task")
Result = TypeVar("Result")
Maker = Callable[[Space], Callable[[Task], Result]]
"""A function of a module that makes what does the work; each process calls it once."""


@contextlib.contextmanager
def working(
    source: SpaceSource, space: Space, maker: Maker[Task, Result], most: int, jobs: int
) -> Iterator[Callable[[Sequence[Task]], Iterator[Result]]]:
    """A function that does work, in this process or in `jobs` others; `most` tasks at a time are to be expected."""
    is_here = min(jobs, most) <= 1
    make = partial(maker, space) if is_here else partial(_made_of, source, maker)
    with in_processes(make, most, jobs) as work:
        yield work


def _made_of(source: SpaceSource, maker: Maker[Task, Result]) -> Callable[[Task], Result]:
    """What does the work, made in a process that has nothing but the source."""
    return maker(read_space(source))
