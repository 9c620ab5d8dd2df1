"""Sheet for which figures and tables are made: a column or a page of a paper, or no sheet for reports.

This module imports no large packages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from tilewright.base.parameters import Parameters

PaperWidth = Literal["column", "page"]
COLUMN_INCHES, PAGE_INCHES = 3.4, 7.0
"""Widths in inches of a figure in a paper with two columns: COLUMN_INCHES within one column, PAGE_INCHES over both
columns.
"""
WIDTHS_INCHES = {"column": COLUMN_INCHES, "page": PAGE_INCHES}
_DRAWN_FOR: ContextVar[float | None] = ContextVar("sheet_inches", default=None)


@dataclass(frozen=True, eq=False, repr=False)
class PaperOptions(Parameters):
    """Option for files for a paper, of the verbs that write figures or tables."""

    paper: PaperWidth | None = None
    """Write for a paper, 3.4 inches wide (column) or 7 inches wide (page): figures as PDF and SVG, tables as LaTeX and
    Markdown.
    """


@contextmanager
def drawn_for(paper: PaperWidth | None) -> Iterator[None]:
    """Make all figures and tables in this context for a paper of the given width; for reports if no width is given.
    Raises InputError for an unknown width.
    """
    width = PaperOptions(paper=paper).paper
    token = _DRAWN_FOR.set(None if width is None else WIDTHS_INCHES[width])
    try:
        yield
    finally:
        _DRAWN_FOR.reset(token)


def figure_suffixes() -> tuple[str, ...]:
    """Suffixes of the files of a figure with numbers, to be appended to the stem of the file name."""
    inches = sheet_inches()
    if inches is None:
        return ".svg", ".png"
    width = next(name for name, value in WIDTHS_INCHES.items() if value == inches)
    return tuple(f"-{width}{suffix}" for suffix in (".pdf", ".svg", ".txt", ".csv"))


def sheet_inches() -> float | None:
    """Width of a figure for a paper, in inches; None for a figure of a report, which is as wide as its content."""
    return _DRAWN_FOR.get()
