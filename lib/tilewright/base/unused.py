"""Unused input: keys, entries and options without effect, which are reported, kept in results, and refused by
`--strict`.

The code that ignores an input also reports it, with one of two functions: `Problems.unused(path, why)` for a place in a
file, `unused_option(name, why)` for an option. Both functions make a notice (`errors.Unused`), which is passed on like
all notices. A verb collects all notices and calls `refuse_unused` before its search. `with_unused` adds the notices of
unused inputs to the results of the verb. `to_tell` selects the notices that `cli.options.echo_notices` prints when the
command ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, TypedDict

from tilewright.base.errors import InputError, Label, Problem, Unused

UNUSED = "unused"
"""Key of a summary that lists unused inputs. The key is missing if there are none."""
MOST_TOLD = 10
"""Largest number of unused inputs that are printed. Further unused inputs are only counted."""


def unused_option(name: str, why: str, value: object = None) -> Unused:
    """Notice that an option has no effect. `why` is the reason: a sentence without subject, beginning with the verb."""
    return Unused(Problem(why, path=name, value="" if value is None else repr(value)))


def unused_in(notices: Iterable[str]) -> list[Unused]:
    """Notices of unused inputs, without repetition, sorted by file, line and key. Options come first."""
    found = dict.fromkeys(notice for notice in notices if isinstance(notice, Unused))
    return sorted(found, key=lambda one: (one.problem.file, one.problem.line, one.problem.path, str(one)))


def notice_lines(notices: Sequence[str], most: int = MOST_TOLD) -> list[str]:
    """Lines of notices for printing, without repetition. Notices of unused inputs come last, and at most `most` of them
    are printed. If there are more, a further line has the number of the omitted notices.
    """
    unused = unused_in(notices)
    others = [notice for notice in dict.fromkeys(notices) if not isinstance(notice, Unused)]
    return [*others, *capped(list(map(str, unused)), most)]


def capped(lines: Sequence[str], most: int = MOST_TOLD) -> list[str]:
    """First `most` lines. If there are more, a line with the number of the other lines follows."""
    rest = len(lines) - most
    more = [f"{rest:,} more inputs have no effect"] if rest > 0 else []
    return [*lines[:most], *more]


class UnusedRow(TypedDict):
    """Row that describes one input without effect. Summaries and parsed descriptions contain such rows."""

    file: str
    """Name of the file, without its folder."""
    line: int
    """Line in the file; 0 if it is not known."""
    key: str
    """Path of the key in the file, such as `memories.rf.size`."""
    why: str
    """Reason why the input has no effect."""


def unused_rows(notices: Iterable[str], with_lines: bool = True) -> list[UnusedRow]:
    """Rows that describe the unused inputs among the notices, for a summary. The line is 0 in all rows if `with_lines`
    is false.
    """
    rows = [
        UnusedRow(file=PurePath(one.file).name, line=one.line if with_lines else 0, key=one.path, why=_reason(one))
        for one in (notice.problem for notice in unused_in(notices))
    ]
    return list({tuple(row.values()): row for row in rows}.values())


def noted_rows(rows: Iterable[UnusedRow]) -> list[Unused]:
    """Notices made from rows that another step has written into a file."""
    return [Unused(Problem(row["why"], row["file"], row["line"], Label(row["key"]))) for row in rows]


def with_unused(summary: dict[str, Any], notices: Iterable[str], with_lines: bool = True) -> dict[str, Any]:
    """Summary with a row for each unused input among the notices; unchanged if there are none."""
    rows = unused_rows(notices, with_lines)
    return {**summary, UNUSED: rows} if rows else summary


def to_tell(notices: Iterable[str], strict: bool) -> list[str]:
    """Notices that a verb prints. Under `strict`, notices of unused inputs are left out, because `refuse_unused` raises
    them as an error."""
    return [notice for notice in notices if not (strict and isinstance(notice, Unused))]


def in_file(notices: Iterable[str], file: str) -> list[str]:
    """Notices in which each notice of an unused input names a file: its own file or, if it has none, `file`."""
    return [
        Unused(replace(notice.problem, file=file)) if isinstance(notice, Unused) and not notice.problem.file else notice
        for notice in notices
    ]


def refuse_unused(notices: Iterable[str], strict: bool = True) -> None:
    """Raise InputError if `strict` is true and there are notices of unused inputs. The error lists all these inputs."""
    if strict and (found := unused_in(notices)):
        raise InputError(
            replace(one.problem, message=f"{one.problem.message}, which the option strict forbids") for one in found
        )


def _reason(problem: Problem) -> str:
    return str(Problem(problem.message, value=problem.value, allowed=problem.allowed, nearest=problem.nearest))
