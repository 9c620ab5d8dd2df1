"""Layers for which nothing fits, told by cause."""

from collections.abc import Sequence

from tilewright.causes import cause_of, count_of, some_of
from tilewright.errors import MappingError, NothingFitsError, indented

Failure = tuple[Sequence[str], MappingError]
"""Names of the layers of one problem, and why nothing fits."""


def told_by_cause(failures: Sequence[Failure], core: str) -> str:
    """What is wrong with the layers of a network on a core: those that fail for one cause together, with the first of
    them as the example."""
    alike: dict[tuple[str, ...], list[Failure]] = {}
    for names, error in failures:
        reasons = error.reasons if isinstance(error, NothingFitsError) else str(error).splitlines()
        cause = tuple(part.replace(f"'{names[0]}'", "''") for part in cause_of(reasons))
        alike.setdefault(cause, []).append((names, error))
    return "\n".join(_told(found, core) for found in alike.values())


def _told(failures: Sequence[Failure], core: str) -> str:
    names = [name for problem_names, _ in failures for name in problem_names]
    error = failures[0][1]
    if len(names) == 1 or not isinstance(error, NothingFitsError):
        others = f"; the same for {some_of(names[1:])}" if len(names) > 1 else ""
        return f"{error}{others}"
    head = f"no mapping of {count_of(len(names), 'layer')} fits core '{core}': {some_of(names)}"
    first: dict[tuple[str, ...], str] = {}
    for reason in error.reasons:
        first.setdefault(cause_of([reason]), f"{names[0]} {reason}")
    return "\n".join([head, *indented(first.values())])
