"""Missing files: one message for all readers, with the nearest name of a file that exists."""

import os
from os import PathLike
from pathlib import Path

from tilewright.base.errors import Problem, nearest_name


def missing_file(source: str | PathLike[str], what: str = "file", nearest: str = "") -> Problem:
    """Problem of a path at which there is no file. `what` names what is missing, such as "hardware file". `nearest` is
    the path that was probably meant; by default, the result of `nearest_file`.
    """
    return Problem(f"no such {what}", path=str(source), nearest=nearest or nearest_file(Path(source)))


def nearest_file(path: Path) -> str:
    """Suggestion for a path at which there is no file: a file of the same name in a subfolder, else the nearest name in
    the same folder; '' if there is neither."""
    try:
        siblings = sorted(path.parent.iterdir())
    except OSError:  # there is no such folder, or it cannot be read
        return ""
    moved = (item / path.name for item in siblings if os.path.isfile(item / path.name))
    return str(next(moved, "")) or nearest_name(path.name, [item.name for item in siblings])
