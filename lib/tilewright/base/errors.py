"""Exceptions of tilewright: mistakes of users (exit code 2) and faults of tilewright (exit code 1).

A user error is a list of `Problem`s, all of those found in one pass, each with a place in a file, so that one
reading of the message is enough to mend the file.

Many layers that fail for one cause are one message: `cause_of` tells causes apart, `some_of` names layers in short.
"""

import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

from tilewright.base.harmless import terminal, terminal_lines

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
KeyPath = tuple[str | int, ...]
"""Keys and list indices from the root of a document to a value."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in an input file.

    `file` and `line` (1-based, 0 if unknown) say where; `path` is the dotted path of the key inside the file;
    `value` is what stood there, as text; `allowed` says what may stand there; `nearest` is the closest valid name.
    """

    message: str
    file: str = ""
    line: int = 0
    path: str = ""
    value: str = ""
    allowed: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        """One line, whatever the names in it hold."""
        place = self.file + (f":{self.line}" if self.line else "")
        head = " ".join(part for part in (place, f"{self.path}:" if self.path else "") if part)
        text = f"{head} {self.message}" if head else self.message
        if self.value:
            text += f", got {self.value}"
        if self.allowed:
            text += f" (allowed: {self.allowed})"
        if self.nearest:
            text += f" (did you mean '{self.nearest}'?)"
        return terminal(text)


class Unused(str):
    """The notice that what a person wrote at a place has no effect; `problem` says where that is, and why.

    It is a text, so that it goes wherever notices go; `tilewright.base.unused` tells, keeps and refuses those
    among them.
    """

    problem: Problem

    def __new__(cls, problem: Problem) -> "Unused":
        """The notice of a place and a reason."""
        notice = super().__new__(cls, str(problem))
        notice.problem = problem
        return notice

    def __reduce__(self) -> tuple[Any, ...]:
        """Form with its place, where it is sent to another process."""
        return Unused, (self.problem,)


class TilewrightError(Exception):
    """Base of every error that tilewright raises on purpose."""


class InputError(TilewrightError):
    """The user's input is wrong; carries every problem found. The command line turns it into exit code 2."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__(terminal_lines(self.problems))


class Places(Protocol):
    """What knows where values stand that a person wrote: a document, or several over which they are spread."""

    def place_of(self, path: KeyPath) -> tuple[str, int, str]:
        """(file, line or 0, path as text) of the value at keys and list indices."""

    def written(self, path: KeyPath) -> object:
        """The value there, as it is written."""


WRITTEN = object()
"""Value of a problem: what is written at its path."""


class Problems:
    """The one collector of what is wrong: in a document, or in several steps one after the other.

    What is wrong in one place does not hide what is wrong in the next, and all is told at once.
    """

    def __init__(self, places: Places | None = None, within: KeyPath = ()) -> None:
        """`places` are of the document whose paths are given, `within` where in it these begin."""
        self.places = places
        self.path = within
        self.found: list[Problem] = []
        self.notices: list[str] = []
        """What a person should know that is not wrong."""

    def within(self, *path: str | int) -> "Problems":
        """Collector for a part of the document, whose paths begin there."""
        part = Problems(self.places, (*self.path, *path))
        part.found, part.notices = self.found, self.notices
        return part

    def attempt(
        self, step: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result | None:
        """What a step returns; None, with its problems kept, if it raises InputError."""
        try:
            return step(*args, **kwargs)
        except InputError as error:
            self.found += error.problems
            return None

    def at(self, path: KeyPath, message: str, value: object = None, allowed: str = "", nearest: str = "") -> None:
        """Record what is wrong at `path`."""
        if value is WRITTEN:
            value = self.places.written((*self.path, *path)) if self.places else None
        got = "" if value is None else shown(value)
        self.found.append(Problem(message, *self._place_of(path), got, allowed, nearest))

    def has(self, *path: str | int) -> bool:
        """Whether something is wrong at this path or below it."""
        file, _, place = self._place_of(path)
        return any(one.file == file and re.match(rf"{re.escape(place)}($|\.|\[)", one.path) for one in self.found)

    def unknown_name(self, path: KeyPath, message: str, name: str, known: Sequence[str]) -> None:
        """Record a name that refers to nothing, with the names it could have been."""
        self.at(path, message, name, ", ".join(known) or "none", nearest_name(name, known))

    def repeated(self, path: KeyPath, names: Sequence[Any], message: str) -> None:
        """Record each item of a list that stood in it before."""
        for index, name in enumerate(names):
            if name is not None and name in names[:index]:
                self.at((*path, index), message, WRITTEN)

    def notice(self, path: KeyPath, message: str) -> None:
        """Record something the user should know that is not wrong."""
        file, line, place = self._place_of(path)
        where = file + (f":{line}" if line else "")
        self.notices.append(f"{where} {place}: {message}".lstrip())

    def unused(self, path: KeyPath, why: str, value: object = None, nearest: str = "") -> None:
        """Record that what a person wrote at `path` has no effect, and why: a sentence that begins with the verb."""
        if value is WRITTEN:
            value = self.places.written((*self.path, *path)) if self.places else None
        got = "" if value is None else shown(value)
        self.notices.append(Unused(Problem(why, *self._place_of(path), got, "", nearest)))

    def finish(self, notices: list[str] | None = None) -> None:
        """Raise InputError with every problem once, those of the document first and by line; else hand on notices."""
        if self.found:
            own = self._place_of(())[0] if self.places else None
            raise InputError(
                sorted(dict.fromkeys(self.found), key=lambda one: (one.file != own, one.line if one.file == own else 0))
            )
        if notices is not None:
            notices.extend(self.notices)

    def _place_of(self, path: KeyPath) -> tuple[str, int, str]:
        whole = (*self.path, *path)
        return self.places.place_of(whole) if self.places else ("", 0, dotted(whole))


class MappingError(TilewrightError):
    """A mapping that does not fit its core: a normal outcome of a search, recorded as a reason, never an abort.

    Raised where a single given mapping was asked for, and when nothing at all fits. Its arguments are the lines of its
    message.
    """

    def __str__(self) -> str:
        """The lines, to which no name adds one."""
        return terminal_lines(self.args)


class TimeBudgetError(MappingError):
    """Nothing was found before a time budget ended; whether there is something is not known."""


class NothingFitsError(MappingError):
    """No mapping of a layer fits a core."""

    def __init__(self, layer: str, core: str, reasons: Sequence[str]) -> None:
        self.layer = layer
        self.core = core
        self.reasons = tuple(reasons)
        """Why, for each spatial mapping that was tried."""
        super().__init__(f"no mapping of layer '{layer}' fits core '{core}':", *indented(self.reasons))


def indented(lines: Iterable[str]) -> list[str]:
    """Lines below a heading."""
    return [f"  {line}" for line in lines]


class ArtifactError(InputError):
    """A file artifact is missing, damaged, or of another schema or version."""


def dotted(path: KeyPath) -> str:
    """A path as text: runs.mine.pipeline[3].parameters.lpf_limit."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def shown(value: object) -> str:
    """A value as a problem shows it: short, text in quotes."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    return "nothing" if value == "nothing" else short.repr(value)


def nearest_name(name: str, candidates: Sequence[str]) -> str:
    """The candidate closest in spelling to `name`, or '' if none is close."""
    import difflib  # here, because commands that find nothing wrong start faster without

    matches = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if matches:
        return matches[0]
    folded = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else ""


MOST_NAMED = 4
_SPATIAL_MAPPING = re.compile(r"\bwith (?:no spatial unrolling|D\d+: [^:;]*(?:; D\d+: [^:;]*)*): ")
_NUMBER = re.compile(r"(?<![\w.'])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w'])")
"""A number by itself: digits in the name of a memory or of a dimension belong to the name."""


def cause_of(reasons: Iterable[str]) -> tuple[str, ...]:
    """What reasons have in common with those of other layers: each once, without its spatial mapping and numbers."""
    parts = (part for reason in reasons for part in re.split(r"; (?=with )", reason))
    return tuple(dict.fromkeys(_NUMBER.sub("#", _SPATIAL_MAPPING.sub("", part.strip())) for part in parts))


def some_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first names, and how many more there are: conv1, conv2 and 3 more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def count_of(number: int, one: str) -> str:
    """A number of things: 1 layer, 1,024 layers."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"
