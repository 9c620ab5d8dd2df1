"""What is wrong with a pipeline, by its place in what was written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.errors import KeyPath, Problem, dotted

if TYPE_CHECKING:
    from tilewright.yamlfile import YamlDocument


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, at keys and list indices inside the value of `pipeline:`."""

    place: KeyPath
    message: str
    value: str = ""
    allowed: str = ""
    nearest: str = ""
    file: str = ""
    """File and line in the code of a user's stage, where the fault is there."""
    line: int = 0

    @classmethod
    def of(cls, problem: Problem, place: KeyPath) -> "Finding":
        """A problem that was told without a place."""
        message = f"{problem.path}: {problem.message}" if problem.path else problem.message
        return cls(place, message, problem.value, problem.allowed, problem.nearest, problem.file, problem.line)

    def problem(self, prefix: KeyPath = (), documents: "Iterable[YamlDocument]" = ()) -> Problem:
        """The problem as it is told: on the line of the first document that knows the place."""
        place = (*prefix, *self.place)
        told = Problem(self.message, path=dotted(place), value=self.value, allowed=self.allowed, nearest=self.nearest)
        for document in documents:
            if line := document.line_of(place):
                told = replace(told, file=document.file, line=line)
                break
        if self.file:  # the fault is in a file of the user's: that is the place to look at
            where = f"{self.file}:{self.line}" if self.line else self.file
            told = (
                replace(told, message=f"{where} {self.message}")
                if told.file
                else replace(told, file=self.file, line=self.line)
            )
        return told


def keys_of(path: str) -> KeyPath:
    """The place that a text such as pipeline[3].parameters.lpf_limit means."""
    return tuple(int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path))
