"""Place of an error in a pipeline: the path inside the value of `pipeline`, with file and line."""

import re
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.base.errors import KeyPath, Problem, dotted

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument


def problem_at(place: KeyPath, message: str, value: str = "", allowed: str = "", nearest: str = "") -> Problem:
    """Problem at a path (keys and list indices) inside the value of `pipeline`."""
    return Problem(message, path=dotted(place), value=value, allowed=allowed, nearest=nearest)


def moved(problem: Problem, place: KeyPath) -> Problem:
    """Copy of a problem with the path `place`. The old path of the problem is put at the beginning of the message."""
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return replace(problem, message=message, path=dotted(place))


def placed(problem: Problem, prefix: KeyPath = (), documents: "Iterable[YamlDocument]" = ()) -> Problem:
    """Copy of a problem with the complete path: `prefix`, then the path in the pipeline. File and line are taken from
    the first document that has this path.
    """
    place = (*prefix, *keys_of(problem.path))
    told = replace(problem, path=dotted(place))
    for document in documents:
        if line := document.line_of(place):
            # If the error is in a file with code of the user, the message names this file first.
            where = f"{problem.file}:{problem.line}" if problem.line else problem.file
            message = f"{where} {problem.message}" if where else problem.message
            return replace(told, message=message, file=document.file, line=line)
    return told


def is_of_setting(problem: Problem, settings: Container[object]) -> bool:
    """True if a problem is about a setting of the run. The path of such a problem begins with the name of the
    setting.
    """
    return next(iter(keys_of(problem.path)), None) in settings


def keys_of(path: str) -> KeyPath:
    """Keys and list indices from a text such as pipeline[3].parameters.lpf_limit."""
    return tuple(int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path))
