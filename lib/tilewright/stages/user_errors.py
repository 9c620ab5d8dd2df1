"""Errors in stages that a user wrote: told with their file and line, as a fault of the input and not of tilewright."""

import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, Problem
from tilewright.stages.base import Rest, Same, Stage, WrongTypeError, type_name

PACKAGE = Path(__file__).resolve().parents[1]
STAGES = PACKAGE / "stages"


@dataclass(frozen=True)
class _CheckedRest(Rest):
    """The rest as a user's stage gets it: wrong items are told in the line that hands them on."""

    expected: type = object

    def __call__(self, item: Any) -> Iterator[Any]:
        """The results for `item`. Raises WrongTypeError unless it is what the stage declares to hand on."""
        if not isinstance(item, self.expected):
            raise WrongTypeError(f"handed on {type_name(type(item))} instead of {type_name(self.expected)}")
        return super().__call__(item)


def guarded(stage: Stage, item: Any, rest: Rest) -> Iterator[Any]:
    """The results of a user's stage; what it hands on and yields is checked to be what it declares.

    Raises InputError where the code of the stage fails. What fails in a stage of tilewright below is passed on, unless
    it was given items that the user's stage made.
    """
    expected: type = type(item) if stage.gives is Same else stage.gives or object
    try:
        results = stage.run(item, _CheckedRest(rest.stages, rest.control, rest.end, expected))
        if not hasattr(results, "__iter__"):
            raise WrongTypeError(f"run returned {results!r}; it has to yield results")
        for result in results:
            if stage.returns is not Same and not isinstance(result, stage.returns):
                wanted, got = type_name(stage.returns), type_name(type(result))
                raise WrongTypeError(f"run yielded {got} instead of {wanted}")
            yield result
    except Exception as error:
        if _is_told_by_tilewright(error):
            raise
        file = getattr(sys.modules.get(type(stage).__module__), "__file__", None)
        if stage.gives is Same and _raised_by_tilewright_below(error, file):
            raise
        raise InputError([problem_in_code(error, Path(file) if file else None, path=stage.name())]) from error


def _is_told_by_tilewright(error: Exception) -> bool:
    """True for errors that say themselves what is the matter."""
    return type(error).__module__.startswith("tilewright.") and not isinstance(error, WrongTypeError)


def problem_in_code(error: Exception, file: Path | None, shown: str = "", path: str = "") -> Problem:
    """What went wrong in a user's file, at the innermost line of it that was being run."""
    if isinstance(error, SyntaxError) and error.filename:
        name = shown if file is not None and Path(error.filename) == file else _short(error.filename)
        return Problem(f"{type(error).__name__}: {error.msg}", name, error.lineno or 0)
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(frame.filename, file)]
    if not own:
        return Problem(message, shown or (_short(str(file)) if file else ""), path=path)
    deepest = own[-1]
    last = frames[-1]
    if last is not deepest and Path(last.filename).is_relative_to(PACKAGE) and not isinstance(error, WrongTypeError):
        inside = Path(last.filename).relative_to(PACKAGE.parent)
        message += f" (in {inside}:{last.lineno}, with what it was given here)"
    name = shown if file is not None and Path(deepest.filename) == file and shown else _short(deepest.filename)
    return Problem(message, name, deepest.lineno or 0, path=path)


def _raised_by_tilewright_below(error: Exception, file: str | None) -> bool:
    """True if a stage of tilewright was running below the user's innermost line."""
    below = False
    for frame in traceback.extract_tb(error.__traceback__):
        if file is not None and frame.filename == file:
            below = False
        elif Path(frame.filename).is_relative_to(STAGES) and frame.name not in ("guarded", "__call__"):
            below = True
    return below


def _is_users(filename: str, file: Path | None) -> bool:
    """True for the stage's own file and what it imports beside or below the working folder, False for libraries."""
    path = Path(filename)
    if file is not None and path == file:
        return True
    library = any(part in ("site-packages", "dist-packages") for part in path.parts)
    return not library and not path.is_relative_to(PACKAGE) and path.is_relative_to(Path.cwd())


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
