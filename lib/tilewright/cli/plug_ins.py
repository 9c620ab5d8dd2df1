"""Plug-ins on the command line: their list, and reports of errors in the code of plug-ins, with file and line."""

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import installed, package_of, registry_of


def plug_in_lines() -> Iterator[str]:
    """Lines with the entry point, the object and the package of each installed plug-in, sorted by entry point.

    Raises InputError for an entry point of an unknown kind, and for two entry points with the same name but different
    objects. After the last line, raises InputError with all objects that cannot be loaded or are wrong.
    """
    problems: list[Problem] = []
    for point, entry in installed().items():
        yield f"plug-in {point}: {entry} of {package_of(point)}"
        kind, _, name = point.partition(".")
        try:
            registry_of(kind)[name]
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def installed_text() -> str:
    """Installed plug-ins with their packages, on one line; '' if there are none or if they cannot be listed."""
    try:
        return ", ".join(f"{point} of {package_of(point)}" for point in installed())
    except InputError:
        return ""


def problem_in_plug_in(error: Exception) -> Problem | None:
    """Problem that reports an error in the code of a plug-in. None if the traceback has no code of an installed
    plug-in.

    The problem names the innermost line of the traceback that is in the package of the plug-in.
    """
    from tilewright.pipeline.stages.base import problem_in_code, raised_by_tilewright_below  # slow to load

    try:
        homes = {point: _home(entry) for point, entry in installed().items()}
    except InputError:
        return None
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        points = [point for point, home in homes.items() if home is not None and file.is_relative_to(home)]
        if points and not raised_by_tilewright_below(error, frame.filename):
            return problem_in_code(error, file, shown=str(file), path=f"plug-in {package_of(points[0])}")
    return None


def _home(entry: str) -> Path | None:
    """Folder of the top-level package of the entry point `entry`. If the top-level module is a single file, the result
    is the path of this file. None if the module is not imported, or has no file.
    """
    top = sys.modules.get(entry.partition(":")[0].partition(".")[0])
    file = getattr(top, "__file__", None)
    if file is None:
        return None
    return Path(file).parent if hasattr(top, "__path__") else Path(file)
