"""Removal of out-of-date figures and tables in the folder of a report.

The folder can have the files of a figure or a table for both column widths of a paper. If a command writes new numbers
for one width, the files for the other width are out of date. The command removes them and says so. Files with the
present numbers stay.
"""

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.errors import count_of
from tilewright.base.harmless import csv_text, svg
from tilewright.results.sheet import FIGURE_ENDS, WIDTHS_INCHES, sheet_name

if TYPE_CHECKING:
    from tilewright.results.noted_figure import NotedFigure

MOST_NAMED = 5
"""Largest number of removed files that a message names."""
_REMOVED: ContextVar[list[Path] | None] = ContextVar("removed_files", default=None)


@contextmanager
def noting_removed() -> Iterator[list[Path]]:
    """Context that collects the names of the files that `remove_files` removes."""
    found: list[Path] = []
    token = _REMOVED.set(found)
    try:
        yield found
    finally:
        _REMOVED.reset(token)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files that are out of date, and note their paths for the message of the command."""
    noted = _REMOVED.get()
    for path in sorted(paths):
        path.unlink()
        if noted is not None:
            noted.append(path)


def removed_notice(removed: Sequence[Path]) -> str:
    """Sentence that names removed files; '' if there are none."""
    if not removed:
        return ""
    named = ", ".join(map(str, removed[:MOST_NAMED]))
    more = f" and {len(removed) - MOST_NAMED:,} more" if len(removed) > MOST_NAMED else ""
    return f"removed {count_of(len(removed), 'file')} of an earlier command with other numbers: {named}{more}"


def other_widths() -> list[str]:
    """Names of the widths for which the present command writes no files."""
    return [width for width in WIDTHS_INCHES if width != sheet_name()]


def remove_other_figures(figure: "NotedFigure", stem: Path) -> None:
    """Remove the files of the figure `stem` for other widths, if some of these files are missing, or if their numbers
    or captions differ from those of `figure`.

    A figure without numbers cannot be compared, so its files stay.
    """
    if figure.numbers is None:
        return
    for width in other_widths():
        files = [stem.with_name(f"{stem.name}-{width}{end}") for end in FIGURE_ENDS]
        present = [file for file in files if file.is_file()]
        if present and not (len(present) == len(files) and _is_alike(figure, files[2], files[-1])):
            remove_files(present)


def _is_alike(figure: "NotedFigure", caption: Path, numbers: Path) -> bool:
    """True if the files have the numbers of the figure, and contain each line of its caption."""
    assert figure.numbers is not None
    told = caption.read_text("utf-8")
    lines = (svg(line).rstrip(".") for line in (figure.caption_title, *figure.caption_lines, *figure.further_lines))
    return all(line in told for line in lines) and numbers.read_bytes() == csv_text(figure.numbers()).encode()


def latex_files(stem: Path, width: str) -> list[Path]:
    """Existing LaTeX files of the table `stem` for a width: `<stem>-<width>.tex` and its parts, such as
    `<stem>-<width>-2.tex`.
    """
    name = f"{stem.name}-{width}"
    parts = (path for path in stem.parent.glob(f"{glob.escape(name)}*.tex"))
    return [path for path in parts if re.fullmatch(r"(-\d+)?", path.stem.removeprefix(name))]


def remove_other_tables(stem: Path, markdown: str) -> None:
    """Remove old files of the table `stem`, unless its Markdown file has the text `markdown`. Old files are the LaTeX
    files for other widths and, if the command writes no Markdown file, the Markdown file.
    """
    text = stem.with_name(f"{stem.name}.md")
    if text.is_file() and text.read_bytes() == markdown.encode():
        return
    stale = [path for width in other_widths() for path in latex_files(stem, width)]
    stale += [] if sheet_name() else [text]
    remove_files(path for path in stale if path.is_file())
