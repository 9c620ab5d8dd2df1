"""The exceptions of tilewright: what a person did (exit code 2) apart from what we did (exit code 1).

A user error is a list of `Problem`s, all of those found in one pass, each with a place in a file, so that one
reading of the message is enough to mend the file.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


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
        place = self.file + (f":{self.line}" if self.line else "")
        head = " ".join(part for part in (place, f"{self.path}:" if self.path else "") if part)
        text = f"{head} {self.message}" if head else self.message
        if self.value:
            text += f", got {self.value}"
        if self.allowed:
            text += f" (allowed: {self.allowed})"
        if self.nearest:
            text += f" (did you mean '{self.nearest}'?)"
        return text


class TilewrightError(Exception):
    """Base of every error that tilewright raises on purpose."""


class InputError(TilewrightError):
    """The user's input is wrong; carries every problem found. The command line turns it into exit code 2."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Problems:
    """The problems of several steps, so that what is wrong in one does not hide what is wrong in the next."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def attempt(
        self, step: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result | None:
        """What a step returns; None, with its problems kept, if it raises InputError."""
        try:
            return step(*args, **kwargs)
        except InputError as error:
            self.found += error.problems
            return None

    def finish(self) -> None:
        """Raise InputError with every problem once, if there are any."""
        if self.found:
            raise InputError(dict.fromkeys(self.found))


class MappingError(TilewrightError):
    """A mapping that does not fit its core: a normal outcome of a search, recorded as a reason, never an abort.

    Raised where a single given mapping was asked for, and when nothing at all fits.
    """


class NothingFitsError(MappingError):
    """No mapping of a layer fits a core."""

    def __init__(self, layer: str, core: str, reasons: Sequence[str]) -> None:
        self.layer = layer
        self.core = core
        self.reasons = tuple(reasons)
        """Why, for each spatial mapping that was tried."""
        super().__init__("\n".join([f"no mapping of layer '{layer}' fits core '{core}':", *indented(self.reasons)]))


def indented(lines: Iterable[str]) -> list[str]:
    """Lines below a heading."""
    return [f"  {line}" for line in lines]


class ArtifactError(InputError):
    """A file artifact is missing, damaged, or of another schema or version."""


def nearest_name(name: str, candidates: Sequence[str]) -> str:
    """The candidate closest in spelling to `name`, or '' if none is close."""
    matches = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if matches:
        return matches[0]
    folded = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else ""
