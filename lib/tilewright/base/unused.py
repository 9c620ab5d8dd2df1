"""Unused input: keys, entries and options without effect, named once with file, line and key, kept in results, refused
by `--strict`.

Whoever passes a key, an entry or an option over says so where it is known: `Problems.unused(path, why)` for a place in
a file, `unused_option(name, why)` for an option. Both make a notice (`errors.Unused`) that goes the way of all notices.
A verb that has collected all of them calls `refuse_unused` before its search, keeps them in what it writes by
`with_unused`, and hands on what `to_tell` leaves to `cli.options.echo_notices`, which tells it when the command ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, TypedDict

from tilewright.base.errors import InputError, Problem, Unused

UNUSED = "unused"
"""Key of a summary that lists what was not used; it has it where there is anything."""
MOST_TOLD = 10
"""Lines of it that are told before the others are only counted."""


def unused_option(name: str, why: str, value: object = None) -> Unused:
    """The notice that an option has no effect, and why: a sentence that begins with the verb."""
    return Unused(Problem(why, path=name, value="" if value is None else repr(value)))


def unused_in(notices: Iterable[str]) -> list[Unused]:
    """The notices of what was not used, each once, by file, line and key; options come first."""
    found = dict.fromkeys(notice for notice in notices if isinstance(notice, Unused))
    return sorted(found, key=lambda one: (one.problem.file, one.problem.line, one.problem.path, str(one)))


def notice_lines(notices: Sequence[str], most: int = MOST_TOLD) -> list[str]:
    """Notices as they are told: each once, those of what was not used last, at most so many of them and then a
    count."""
    unused = unused_in(notices)
    others = [notice for notice in dict.fromkeys(notices) if not isinstance(notice, Unused)]
    return [*others, *capped(list(map(str, unused)), most)]


def capped(lines: Sequence[str], most: int = MOST_TOLD) -> list[str]:
    """The first lines of what was not used, and how many there are beside them."""
    rest = len(lines) - most
    more = [f"{rest:,} more that were written have no effect"] if rest > 0 else []
    return [*lines[:most], *more]


class UnusedRow(TypedDict):
    """A part of a file that had no effect, as summaries and parsed descriptions have it."""

    file: str
    """Name of the file, without its folder."""
    line: int
    """0 where the line is not known."""
    key: str
    """Path of the key in the file."""
    why: str
    """Reason why the part has no effect."""


def unused_rows(notices: Iterable[str], with_lines: bool = True) -> list[UnusedRow]:
    """Rows of a summary: name of the file, line (0 if unknown), key, and why it has no effect."""
    rows = [
        UnusedRow(file=PurePath(one.file).name, line=one.line if with_lines else 0, key=one.path, why=_reason(one))
        for one in (notice.problem for notice in unused_in(notices))
    ]
    return list({tuple(row.values()): row for row in rows}.values())


def noted_rows(rows: Iterable[UnusedRow]) -> list[Unused]:
    """The notices behind such rows, of a file that another step has written."""
    return [Unused(Problem(row["why"], row["file"], row["line"], row["key"])) for row in rows]


def with_unused(summary: dict[str, Any], notices: Iterable[str], with_lines: bool = True) -> dict[str, Any]:
    """A summary with what was not used, if there is any."""
    rows = unused_rows(notices, with_lines)
    return {**summary, UNUSED: rows} if rows else summary


def to_tell(notices: Iterable[str], strict: bool) -> list[str]:
    """The notices that a verb tells: under `strict` what was not used is wrong, and told as such (`refuse_unused`)."""
    return [notice for notice in notices if not (strict and isinstance(notice, Unused))]


def in_file(notices: Iterable[str], file: str) -> list[str]:
    """Notices of what is in a file, of which those of what was not used get its name."""
    return [
        Unused(replace(notice.problem, file=file)) if isinstance(notice, Unused) and not notice.problem.file else notice
        for notice in notices
    ]


def refuse_unused(notices: Iterable[str], strict: bool = True) -> None:
    """Raise InputError with all that was not used, if `strict` is asked for."""
    if strict and (found := unused_in(notices)):
        raise InputError(replace(one.problem, message=f"{one.problem.message}, which strict forbids") for one in found)


def _reason(problem: Problem) -> str:
    return str(Problem(problem.message, value=problem.value, allowed=problem.allowed, nearest=problem.nearest))
