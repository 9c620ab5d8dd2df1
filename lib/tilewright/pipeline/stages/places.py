"""Places of problems of a pipeline in a configuration; the problems give places inside `pipeline:`."""

import re
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.base.errors import KeyPath, Problem, dotted

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument


def problem_at(place: KeyPath, message: str, value: str = "", allowed: str = "", nearest: str = "") -> Problem:
    """Problem at keys and list indices inside the value of `pipeline:`."""
    return Problem(message, path=dotted(place), value=value, allowed=allowed, nearest=nearest)


def moved(problem: Problem, place: KeyPath) -> Problem:
    """Problem that was reported outside of a pipeline, moved to a place in it."""
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return replace(problem, message=message, path=dotted(place))


def placed(problem: Problem, prefix: KeyPath = (), documents: "Iterable[YamlDocument]" = ()) -> Problem:
    """Problem of a pipeline that is at `prefix`, on the line of the first document that knows its place."""
    place = (*prefix, *keys_of(problem.path))
    told = replace(problem, path=dotted(place))
    for document in documents:
        if line := document.line_of(place):
            # Where the fault is in a file of the user's, that is the place to look at.
            where = f"{problem.file}:{problem.line}" if problem.line else problem.file
            message = f"{where} {problem.message}" if where else problem.message
            return replace(told, message=message, file=document.file, line=line)
    return told


def is_of_setting(problem: Problem, settings: Container[object]) -> bool:
    """Whether a problem is about a setting of the run, which is reported under the setting's own name."""
    return next(iter(keys_of(problem.path)), None) in settings


def keys_of(path: str) -> KeyPath:
    """Place from a text such as pipeline[3].parameters.lpf_limit."""
    return tuple(int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path))
