"""Exceptions that tilewright raises on purpose.

The command line turns UnmetLimitError into exit code 1, and all other exceptions into exit code 2.

An InputError contains all problems found in one pass, each with its place in a file, so that one reading of the message
is enough to correct the file.

If many layers fail for one cause, one message reports them all: `cause_of` distinguishes causes, and `some_of` shortens
a list of layer names.
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
"""Path of a value in a document: keys and list indices, starting at the root."""


class Label(str):
    """Path of a problem that is the name of a layer, a network or a design. The command line does not take the name for
    the name of a parameter.
    """


class OptionPath(str):
    """Path of a problem that begins with the name of a parameter, although the problem has a file. An example is a size
    that the user gives for a dimension of an ONNX file.
    """


@dataclass(frozen=True)
class Problem:
    """One problem in an input file.

    `file` and `line` (1-based, 0 if unknown) are the place. `path` is the dotted path of the key inside the file.
    `value` is the value that was given, as text. `allowed` names the allowed values. `nearest` is the closest valid
    name.
    """

    message: str
    file: str = ""
    line: int = 0
    path: str = ""
    value: str = ""
    allowed: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        """Text of the problem on one line. Control characters in names cannot break the line."""
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
    """Notice that an input has no effect. `problem` gives the place of the input and the reason.

    The class is a subclass of `str`, so functions for plain notices accept its objects. `tilewright.base.unused` finds
    the objects among all notices and writes them into results. If the user asks for errors, `tilewright.base.unused`
    raises the notices as an error.
    """

    problem: Problem

    def __new__(cls, problem: Problem) -> "Unused":
        """Notice with the text of `problem`. The attribute `problem` of the notice keeps the problem itself."""
        notice = super().__new__(cls, str(problem))
        notice.problem = problem
        return notice

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled form, which keeps the problem when the notice is sent to another process."""
        return Unused, (self.problem,)


class Remark(str):
    """Notice that explains how a number requested by a file was found, for example by interpolating the cost of a
    memory.

    The class is a subclass of `str`, so functions for plain notices accept its objects. `tilewright.base.remarks` finds
    the objects among all notices.
    """

    file: str

    def __new__(cls, text: str, file: str) -> "Remark":
        """Notice with the text `text`, which is about a number in the file `file`."""
        notice = super().__new__(cls, text)
        notice.file = file
        return notice

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled form, which keeps the file when the notice is sent to another process."""
        return Remark, (str(self), self.file)


class Caution(str):
    """Notice that a value in a valid file is probably a mistake: a number is outside of the range of real hardware
    parts, or a value of an axis makes a design invalid. `cli.options.echo_notices` prints the notice as a warning.
    """


class TilewrightError(Exception):
    """Base of every error that tilewright raises on purpose."""


class InputError(TilewrightError):
    """Error in the user's input, with every problem found. The command line turns it into exit code 2."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__(terminal_lines(self.problems))


class Places(Protocol):
    """Source of values that a person wrote, with the file and line of each value. The source is one document, or
    several documents that each hold some of the values.
    """

    def place_of(self, path: KeyPath) -> tuple[str, int, str]:
        """Triple (file, line or 0, path as text) for the value at a path."""

    def written(self, path: KeyPath) -> object:
        """Value at a path, in the form in which the person wrote it."""


WRITTEN = object()
"""Placeholder that stands for the value at a path. The collector of problems replaces it by the value in the document.
"""


class Problems:
    """Collector of the problems of a document, or of several steps in sequence.

    Checking continues after a problem, and all problems are reported together.
    """

    def __init__(self, places: Places | None = None, within: KeyPath = ()) -> None:
        """Collect problems of the document `places`. `within` is a path in the document; the paths given to the methods
        are relative to this path.
        """
        self.places = places
        self.path = within
        self.found: list[Problem] = []
        self.notices: list[str] = []
        """Notices: facts that the user should know, but that are not errors."""

    def within(self, *path: str | int) -> "Problems":
        """Collector for a part of the document. The paths given to this collector are relative to the part."""
        part = Problems(self.places, (*self.path, *path))
        part.found, part.notices = self.found, self.notices
        return part

    def attempt(
        self, step: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result | None:
        """Result of a step. If the step raises InputError, its problems are collected and the result is None."""
        try:
            return step(*args, **kwargs)
        except InputError as error:
            self.found += error.problems
            return None

    def at(self, path: KeyPath, message: str, value: object = None, allowed: str = "", nearest: str = "") -> None:
        """Report a problem of the value at `path`."""
        if value is WRITTEN:
            value = self.places.written((*self.path, *path)) if self.places else None
        got = "" if value is None else shown(value)
        self.found.append(Problem(message, *self._place_of(path), got, allowed, nearest))

    def has(self, *path: str | int) -> bool:
        """True if there is a problem at this path or below it."""
        file, _, place = self._place_of(path)
        return any(one.file == file and re.match(rf"{re.escape(place)}($|\.|\[)", one.path) for one in self.found)

    def unknown_name(self, path: KeyPath, message: str, name: str, known: Sequence[str]) -> None:
        """Report that a name is unknown, with the known names and the nearest of them."""
        self.at(path, message, name, ", ".join(known) or "none", nearest_name(name, known))

    def repeated(self, path: KeyPath, names: Sequence[Any], message: str) -> None:
        """Report each item of the list `names` at `path` that is equal to an earlier item. Items that are None are not
        reported.
        """
        for index, name in enumerate(names):
            if name is not None and name in names[:index]:
                self.at((*path, index), message, WRITTEN)

    def notice(self, path: KeyPath, message: str) -> None:
        """Report a notice: something that the user should know but that is not an error."""
        self.notices.append(self._notice_text(path, message))

    def remark(self, path: KeyPath, message: str) -> None:
        """Report a remark, which explains how the number for `path` was found."""
        self.notices.append(Remark(self._notice_text(path, message), self._place_of(path)[0]))

    def caution(self, path: KeyPath, message: str) -> None:
        """Report a caution: the number at `path` is valid, but outside of the range of real hardware parts."""
        self.notices.append(Caution(self._notice_text(path, message)))

    def _notice_text(self, path: KeyPath, message: str) -> str:
        file, line, place = self._place_of(path)
        where = file + (f":{line}" if line else "")
        return f"{where} {place}: {message}".lstrip()

    def unused(self, path: KeyPath, why: str, value: object = None, nearest: str = "") -> None:
        """Report that the input at `path` has no effect. `why` is the reason: a sentence without its subject, such as
        "has no effect with ...".
        """
        if value is WRITTEN:
            value = self.places.written((*self.path, *path)) if self.places else None
        got = "" if value is None else shown(value)
        self.notices.append(Unused(Problem(why, *self._place_of(path), got, "", nearest)))

    def finish(self, notices: list[str] | None = None) -> None:
        """Raise InputError with all problems; equal problems appear once. Problems of the document come first, sorted
        by line. If there are no problems, append the collected notices to `notices`.
        """
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
    """Error of a mapping that does not fit its core, or of a search that finds no result.

    A search keeps the text of such an error as the reason why a candidate fails, and tries the next candidate. The user
    sees the error only if the user gave a single mapping, or if no mapping fits. The arguments of the error are the
    lines of the message.
    """

    def __str__(self) -> str:
        """Lines of the message. Control characters in names cannot add a line."""
        return terminal_lines(self.args)


class BrokenRuleError(MappingError):
    """Error of a user's mapping that breaks a rule of the core's control, as given in the hardware file."""


class TimeBudgetError(MappingError):
    """Error of a search whose time budget ended before a result was found. It is unknown whether a result exists."""


class UnmetLimitError(TilewrightError):
    """Error of a search that finds no mapping within the deadline or the energy budget. The message names the mapping
    that comes closest to the limit. The command line turns the error into exit code 1, because the input is correct.
    """


class NothingFitsError(MappingError):
    """Error of a layer for which no mapping fits the core."""

    def __init__(self, layer: str, core: str, reasons: Sequence[str]) -> None:
        self.layer = layer
        self.core = core
        self.reasons = tuple(reasons)
        """Reasons why no mapping fits, one for each spatial mapping that was tried."""
        super().__init__(f"no mapping of layer '{layer}' fits core '{core}':", *indented(self.reasons))


def indented(lines: Iterable[str]) -> list[str]:
    """Lines with an indent of two spaces, for use below a heading."""
    return [f"  {line}" for line in lines]


class ArtifactError(InputError):
    """Error of a file artifact that is missing, damaged, or of another schema or version."""


def dotted(path: KeyPath) -> str:
    """Text of a path, such as runs.mine.pipeline[3].parameters.lpf_limit."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def shown(value: object) -> str:
    """Text of a value in a message: shortened, with text in quotes."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    return "nothing" if value == "nothing" else short.repr(value)


def nearest_name(name: str, candidates: Sequence[str]) -> str:
    """Candidate that is closest in spelling to `name`, or '' if none is close."""
    import difflib  # imported here, so that commands that find no error start faster

    matches = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if matches:
        return matches[0]
    folded = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else ""


MOST_NAMED = 4
_SPATIAL_MAPPING = re.compile(r"\bwith (?:no spatial unrolling|D\d+: [^:;]*(?:; D\d+: [^:;]*)*): ")
_NUMBER = re.compile(r"(?<![\w.'])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w'])")
"""Pattern of a number that stands alone. Digits inside the name of a memory or dimension do not match."""


def cause_of(reasons: Iterable[str]) -> tuple[str, ...]:
    """Text that identifies the cause of a failure. The text is equal for all layers that fail for the same cause. Each
    distinct reason is in the text once, without the spatial mapping, and with `#` in place of each number.
    """
    parts = (part for reason in reasons for part in re.split(r"; (?=with )", reason))
    return tuple(dict.fromkeys(_NUMBER.sub("#", _SPATIAL_MAPPING.sub("", part.strip())) for part in parts))


def some_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Text with the first names and the number of further names, such as "conv1, conv2 and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def count_of(number: int, one: str) -> str:
    """Text of a count with its noun, such as "1 layer" or "1,024 layers"."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"
