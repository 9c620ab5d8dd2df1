"""Sheet for which figures and tables are made: a column or a page of a paper.

Reports have no sheet. This module imports no large packages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from tilewright.base.parameters import Parameters

PaperWidth = Literal["column", "page"]
COLUMN_INCHES, PAGE_INCHES = 3.4, 7.0
"""Widths in inches of a figure in a paper with two columns: COLUMN_INCHES for a figure in one column, PAGE_INCHES for a
figure over both columns.
"""
LEAST_POINTS, SHEET_HEIGHT_INCHES = 6.0, 7.0
"""Limits for a paper: smallest size of text in points, and largest height of a figure or table in inches.

The text of a page is 7.6 inches high in the LaTeX class article. A caption must fit below the figure.
"""
WIDTHS_INCHES = {"column": COLUMN_INCHES, "page": PAGE_INCHES}
FIGURE_ENDS = (".pdf", ".svg", ".txt", "-caption.tex", ".csv")
"""Endings of the files of a figure for a paper, after the name of the width."""
_DRAWN_FOR: ContextVar[float | None] = ContextVar("sheet_inches", default=None)


@dataclass(frozen=True, eq=False, repr=False)
class PaperOptions(Parameters):
    """Option of the commands that write figures or tables: the paper for which the files are made."""

    paper: PaperWidth | None = None
    """Width of figures and tables for a paper: 3.4 inches (column) or 7 inches (page). Figures are written as PDF and
    SVG, and tables as LaTeX and Markdown.
    """


@contextmanager
def drawn_for(paper: PaperWidth | None) -> Iterator[None]:
    """Context in which all figures and tables are made for a paper of the given width, or for reports if no width is
    given. Raises InputError for an unknown width.
    """
    width = PaperOptions(paper=paper).paper
    token = _DRAWN_FOR.set(None if width is None else WIDTHS_INCHES[width])
    try:
        yield
    finally:
        _DRAWN_FOR.reset(token)


def figure_suffixes() -> tuple[str, ...]:
    """Endings of the names of the files in which a figure is written, such as `.svg` or `-column.pdf`. For a report,
    these files are the SVG and the PNG. For a paper, they are the PDF, the SVG, the caption as text and as LaTeX, and
    the numbers of the figure.
    """
    width = sheet_name()
    return tuple(f"-{width}{suffix}" for suffix in FIGURE_ENDS) if width else (".svg", ".png")


def table_suffixes() -> tuple[str, ...]:
    """Endings of the files that are written for a table in addition to its CSV file. For a paper, they are `.md` and a
    LaTeX ending with the name of the width, such as `-column.tex`. For a report, the result is ().
    """
    width = sheet_name()
    return (".md", f"-{width}.tex") if width else ()


def sheet_name() -> str:
    """Name of the width for which files are made, a key of WIDTHS_INCHES; '' for a report."""
    return next((name for name, inches in WIDTHS_INCHES.items() if inches == sheet_inches()), "")


def sheet_inches() -> float | None:
    """Width of a figure for a paper, in inches; None for a report, in which a figure is as wide as its content."""
    return _DRAWN_FOR.get()
