"""Results that can be made again one by one, the draw of a share of them, and the comparison bit by bit."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tilewright.base.artifacts.digests import canonical_text, content_digest
from tilewright.base.errors import InputError, Problem, shown

LAYER, TOTALS, GRAPH, CN_CLASS, ALLOCATED, SCHEDULED, DESIGN = (
    "layer",
    "summary",
    "CN graph",
    "class of computation nodes",
    "allocation",
    "schedule",
    "design",
)
"""Kinds of results, as one of them is called."""
PLURALS = {
    LAYER: "layers",
    TOTALS: "summaries",
    GRAPH: "CN graphs",
    CN_CLASS: "classes of computation nodes",
    ALLOCATED: "allocations",
    SCHEDULED: "schedules",
    DESIGN: "designs",
}
"""Kind -> several of them, in the order in which they are told."""


@dataclass(frozen=True)
class AuditItem:
    """One result in a folder that can be made again."""

    folder: Path
    kind: str
    """A key of PLURALS."""
    name: str
    place: Any = None
    """Where the folder has it, for whoever makes it again."""

    def __str__(self) -> str:
        return f"{self.folder}: {self.kind} {self.name}".rstrip()


class LeftOut(NamedTuple):
    """A result that a time budget ended, or may have ended."""

    item: AuditItem
    reason: str
    is_sure: bool = True
    """Whether a budget ended it for sure."""


class NotAudited(NamedTuple):
    """A folder, or a file in it, whose results cannot be made again from what lies there."""

    place: str
    reason: str


class AuditDifference(NamedTuple):
    """A value that is another one when it is made again."""

    column: str
    stored: Any
    again: Any

    def __str__(self) -> str:
        return f"{self.column}: stored {value_text(self.stored)}, made again {value_text(self.again)}"


class Made(NamedTuple):
    """A result that was made again."""

    item: AuditItem
    differences: tuple[AuditDifference, ...] = ()
    ended: str = ""
    """Why it compares with nothing: a time budget ended it this time."""


class Audited(Protocol):
    """A folder of results."""

    items: list[AuditItem]
    """What can be made again."""
    left_out: list[LeftOut]
    not_audited: list[NotAudited]
    notes: list[str]

    def again(self, items: Sequence[AuditItem]) -> Iterator[Made]:
        """Make some of its items again, and compare. Neither reads nor writes earlier results."""


@dataclass
class Findings:
    """What is known of a folder of results before anything is made again."""

    items: list[AuditItem] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    not_audited: list[NotAudited] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Missing:
    """Stands for a value where there is none."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Missing()


# the draw -------------------------------------------------------------------------------------------------------------


def read_share(given: str | float | Fraction) -> Fraction:
    """The share in a text such as `1%` or `0.01`, or in a number. Raises InputError for what is no share."""
    text = str(given).strip()
    try:
        share = Fraction(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        allowed = "above 0 % to 100 %, such as 1% or 0.01"
        raise InputError([Problem("no share of results", path="--share", value=shown(text), allowed=allowed)])
    return share


def share_text(share: Fraction) -> str:
    """A share in percent: 1 %."""
    return f"{float(share * 100):g} %"


def drawn(items: Sequence[AuditItem], share: Fraction, seed: int, root: Path) -> list[AuditItem]:
    """A random share of items, at least one where there are any, in their order; which, is a matter of the seed alone.

    Each item has a place in a random order by the digest of the seed and of its name below the folder `root`: a larger
    share with the same seed draws the same items and more.
    """
    count = min(len(items), max(1, int(share * len(items) + Fraction(1, 2))))

    def rank(number: int) -> tuple[str, int]:
        item = items[number]
        folder = item.folder.relative_to(root).as_posix()
        return content_digest([seed, folder, item.kind, item.name]), number

    return [items[number] for number in sorted(sorted(range(len(items)), key=rank)[:count])]


# the comparison -------------------------------------------------------------------------------------------------------


def differences(stored: Any, again: Any, path: str = "") -> Iterator[AuditDifference]:
    """The values of JSON data that are not the same to the last bit, each with the path to it."""
    if isinstance(stored, Mapping) and isinstance(again, Mapping):
        for key in dict.fromkeys([*stored, *again]):
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(stored.get(key, NOTHING), again.get(key, NOTHING), inner)
    elif isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        for number, (one, other) in enumerate(zip(stored, again, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif not is_same(stored, again):
        yield AuditDifference(path, stored, again)


def compared(stored: Any, again: Any, what: str) -> tuple[AuditDifference, ...]:
    """Differences between a stored result and the one made again; each may be missing. `what` names the result."""
    if isinstance(stored, Missing) or isinstance(again, Missing):
        return (AuditDifference(what, *(one if isinstance(one, Missing) else "there" for one in (stored, again))),)
    return tuple(differences(stored, again))


def as_stored(data: Any) -> Any:
    """JSON data as they are read back from a file."""
    return json.loads(canonical_text(data))


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same bit by bit; a whole number is the same as a number or not."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)):
        is_nothing = one != one and other != other
        return is_nothing or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return type(one) is type(other) and bool(one == other)


def value_text(value: Any) -> str:
    """A value as a person compares it: all digits of numbers, long data cut."""
    return repr(value) if isinstance(value, int | float | Missing) else shown(value)
