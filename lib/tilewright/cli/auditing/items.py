"""Results that can be recomputed one by one: random choice of a part of them, and bitwise comparison."""

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
"""Kinds of results, as words in the singular."""
PLURALS = {
    LAYER: "layers",
    TOTALS: "summaries",
    GRAPH: "CN graphs",
    CN_CLASS: "classes of computation nodes",
    ALLOCATED: "allocations",
    SCHEDULED: "schedules",
    DESIGN: "designs",
}
"""Plural of each kind, in the order in which kinds are printed."""


@dataclass(frozen=True)
class AuditItem:
    """Result in a folder, which the audit can recompute."""

    folder: Path
    kind: str
    """Kind of the result, a key of PLURALS."""
    name: str
    place: Any = None
    """Position of the result in the folder, for the code that recomputes it."""

    def __str__(self) -> str:
        return f"{self.folder}: {self.kind} {self.name}".rstrip()


class LeftOut(NamedTuple):
    """Result that the audit does not recompute: a time budget or the user ended its search early, or a time budget may
    have ended it.
    """

    item: AuditItem
    reason: str
    is_sure: bool = True
    """True if a time budget or the user certainly ended the search; False if a time budget may have ended it."""


class NotAudited(NamedTuple):
    """Folder or file that the audit cannot recompute, with the reason."""

    place: str
    reason: str


class AuditDifference(NamedTuple):
    """Difference between a stored and a recomputed value."""

    column: str
    stored: Any
    again: Any

    def __str__(self) -> str:
        return f"{self.column}: stored {value_text(self.stored)}, made again {value_text(self.again)}"


class Made(NamedTuple):
    """Recomputed result, with its differences from the stored result."""

    item: AuditItem
    differences: tuple[AuditDifference, ...] = ()
    ended: str = ""
    """Reason why the result cannot be compared: a time budget ended its search in the audit. '' if the result can be
    compared.
    """


class Audited(Protocol):
    """Folder of results that can be audited."""

    items: list[AuditItem]
    """Results that can be recomputed."""
    left_out: list[LeftOut]
    not_audited: list[NotAudited]
    notes: list[str]

    def again(self, items: Sequence[AuditItem]) -> Iterator[Made]:
        """Recompute some items of the folder, and compare them with the stored results. The recomputation does not
        reuse stored results, and does not change them.
        """


@dataclass
class Findings:
    """Results found in a folder; none of them is recomputed yet."""

    items: list[AuditItem] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    not_audited: list[NotAudited] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Missing:
    """Placeholder for a value that is missing on one side of a comparison."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Missing()


# the draw -------------------------------------------------------------------------------------------------------------


def read_share(given: str | float | Fraction) -> Fraction:
    """Share from a text such as `1%` or `0.01`, or from a number. Raises InputError if the value is not a share."""
    text = str(given).strip()
    try:
        share = Fraction(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        allowed = "a share above 0 % and up to 100 %, such as 1% or 0.01"
        raise InputError(
            [Problem("not a valid share of the results", path="share", value=shown(text), allowed=allowed)]
        )
    return share


def share_text(share: Fraction) -> str:
    """Text of a share in percent, for example `1 %`."""
    return f"{float(share * 100):g} %"


def drawn(items: Sequence[AuditItem], share: Fraction, seed: int, root: Path) -> list[AuditItem]:
    """Random share of the items, in the order of `items`. At least one item is drawn.

    The choice depends only on the share, on the seed, and on the folder (relative to `root`), kind and name of each
    item. A larger share with the same seed contains all items of a smaller share.
    """
    count = min(len(items), max(1, int(share * len(items) + Fraction(1, 2))))

    def rank(number: int) -> tuple[str, int]:
        item = items[number]
        folder = item.folder.relative_to(root).as_posix()
        return content_digest([seed, folder, item.kind, item.name]), number

    return [items[number] for number in sorted(sorted(range(len(items)), key=rank)[:count])]


# the comparison -------------------------------------------------------------------------------------------------------


def differences(stored: Any, again: Any, path: str = "") -> Iterator[AuditDifference]:
    """Values in JSON data that are not bitwise equal, each with its path in the data."""
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
    """Differences between a stored and a recomputed result. Either result can be missing. `what` names the result."""
    if isinstance(stored, Missing) or isinstance(again, Missing):
        return (AuditDifference(what, *(one if isinstance(one, Missing) else "there" for one in (stored, again))),)
    return tuple(differences(stored, again))


def as_stored(data: Any) -> Any:
    """JSON data as they are after they are written to a file and read back."""
    return json.loads(canonical_text(data))


def is_same(one: Any, other: Any) -> bool:
    """True if two values are bitwise equal; an integer equals a float of the same value."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)):
        is_nothing = one != one and other != other
        return is_nothing or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return type(one) is type(other) and bool(one == other)


def value_text(value: Any) -> str:
    """Text of a value for a comparison. Numbers have all digits; long values are shortened."""
    return repr(value) if isinstance(value, int | float | Missing) else shown(value)
