"""Sizes of dimensions that people give: by symbol, by place, or by a pattern that stands for many of either."""

import re
from collections.abc import Container, Iterable, Mapping
from functools import cached_property

from tilewright.errors import Problem, nearest_name

SIZES_ALLOWED = "integers >= 0"
ASSUMED_SIZE = 1024
"""What stands for a size that nobody gives while the other ones that are missing are looked for."""
WILDCARD = "*"
"""What stands for any text in a pattern."""
_MOST_TOLD_ONE_BY_ONE = 10
_MOST_NAMES_ALLOWED = 20


def is_size(size: object) -> bool:
    """Whether this is a size of a dimension; 0 is one: a cache before the first token."""
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0


class GivenSizes:
    """The sizes of `dims`: `sequence`, `ids[1]`, or a pattern such as `*.height` or `boxes_*[0]`, in which `*` stands
    for any text. A name goes before a pattern, and of several patterns the one with the most letters of its own.

    Remembers which keys were used and for which names sizes were sought, so that nothing that is given is ignored
    without a word.
    """

    def __init__(self, dims: Mapping[str, int]) -> None:
        self.dims = dims
        self.used: set[str] = set()
        self.sought: dict[str, None] = {}

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """The patterns, the most specific first; equally specific ones in the order of their text."""
        keys = sorted((key for key in self.dims if WILDCARD in key), key=lambda key: (-_letters(key), key))
        return [(key, re.compile(".*".join(map(re.escape, key.split(WILDCARD))), re.DOTALL)) for key in keys]

    def size_of(self, *names: str) -> int | None:
        """The size given for a dimension of these names, the foremost name first; None if nobody gave any."""
        self.sought.update(dict.fromkeys(names))
        key = next((name for name in names if name in self.dims), None)
        if key is None:
            key = next((key for key, form in self._patterns if any(form.fullmatch(name) for name in names)), None)
        if key is None:
            return None
        self.used.add(key)
        return self.dims[key] if is_size(self.dims[key]) else ASSUMED_SIZE

    def value_problems(self) -> list[Problem]:
        """Values that are no sizes."""
        return [
            Problem("size of a dimension", path=f"dims.{key}", value=repr(size), allowed=SIZES_ALLOWED)
            for key, size in self.dims.items()
            if not is_size(size)
        ]

    def unknown_problems(self, names: Container[str], inputs: Iterable[str]) -> list[Problem]:
        """Symbols that are none of `names`; `inputs` are those that may be given."""
        return [
            self._problem(key, "no such dynamic dimension in the network inputs", inputs)
            for key in self.dims
            if WILDCARD not in key and not tensor_of(key) and key not in names
        ]

    def unused_problems(self, names: Container[str]) -> list[Problem]:
        """Patterns and symbols, these among `names`, that gave no size."""
        problems = []
        for key in self.dims:
            if key in self.used:
                continue
            if WILDCARD in key:
                problems.append(self._problem(key, "no dimension of open size has a name of this form", ()))
            elif key in names:
                message = "not needed: the dimensions of this name follow from others, or have sizes of their own"
                problems.append(self._problem(key, message, ()))
        return problems

    def _problem(self, key: str, message: str, names: Iterable[str]) -> Problem:
        known = sorted({*self.sought, *names})
        allowed = ", ".join(known[:_MOST_NAMES_ALLOWED]) or "none: all dimensions are fixed"
        nearest = "" if key in known else nearest_name(key, known)
        return Problem(message, path=f"dims.{key}", allowed=allowed, nearest=nearest)


def _letters(pattern: str) -> int:
    return len(pattern) - pattern.count(WILDCARD)


def tensor_of(key: str) -> str:
    """The tensor of a place `tensor[axis]`, '' for a symbol."""
    name, bracket, axis = key.rpartition("[")
    return name if bracket and axis.endswith("]") and axis.removesuffix("]").isdecimal() else ""


def missing_size_problems(missing: Mapping[str, Problem]) -> list[Problem]:
    """What to say of sizes (by name) that are not known; of many of them in one message that has all names."""
    if len(missing) <= _MOST_TOLD_ONE_BY_ONE:
        return list(missing.values())
    message = f"the size of each of these {len(missing)} dimensions is decided at run time: {', '.join(missing)}"
    return [Problem(message, allowed='--dim "NAME=SIZE" for each; "*" stands for any text: --dim "*[0]=100"')]
