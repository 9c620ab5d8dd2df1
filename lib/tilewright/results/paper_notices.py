"""Notices of a command on files that it writes for a paper."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NOTED: ContextVar[list[str] | None] = ContextVar("paper_notices", default=None)


@contextmanager
def noting() -> Iterator[list[str]]:
    """Context that collects the sentences of `note`."""
    found: list[str] = []
    token = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(token)


def note(sentence: str) -> None:
    """Add a sentence to the notices of the command; without effect outside of `noting`."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(sentence)
