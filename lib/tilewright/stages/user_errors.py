"""Errors in stages that a user wrote: told with their file and line, as a fault of the input and not of tilewright."""

import sys
import traceback
from pathlib import Path

from tilewright.errors import Problem

PACKAGE = Path(__file__).resolve().parents[1]
STAGES = PACKAGE / "stages"


class WrongTypeError(TypeError):
    """A stage handed on, or yielded, something else than it declares."""


def problem_of_stage(error: Exception, kind: type, name: str, made_items: bool) -> Problem | None:
    """What went wrong in the code of a user's stage; None where that is told by itself, or in a stage of tilewright
    below which was not given items that the user's stage made."""
    if _is_told_by_tilewright(error):
        return None
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not made_items and _raised_by_tilewright_below(error, file):
        return None
    return problem_in_code(error, Path(file) if file else None, path=name)


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
