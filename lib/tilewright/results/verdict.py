"""Verdicts: which of several rivals is the largest, kept with its number, all rivals and what is said of it.

Every verb and page makes its verdicts from this type, so that no name stands without the number that makes it true.
A verdict that no single rival carries may be carried by several of them together: `smallest_set` finds the fewest.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeVar

from tilewright.base.json_values import JsonObject
from tilewright.results.text_tables import share_text

Part = TypeVar("Part")
MOST_SETS = 600
"""Sets of one size that are all looked at; of more only those that hold what every helping set holds."""


class Rival(NamedTuple):
    """A candidate of a verdict."""

    name: str
    value: float
    """Value in the unit of the verdict."""


@dataclass(frozen=True)
class Verdict:
    """What is the largest of its rivals, and by how much."""

    question: str
    """What the rivals are compared by, in words."""
    unit: str
    whole: float
    """What shares are of, in the unit."""
    rivals: tuple[Rival, ...]
    """The largest first; equal ones in the order in which they were given."""
    sign: str = ""
    """Sign of shares in words: `-` for what would be saved."""

    @classmethod
    def of(
        cls,
        question: str,
        unit: str,
        whole: float,
        rivals: Mapping[str, float] | Iterable[tuple[str, float]],
        sign: str = "",
    ) -> "Verdict":
        """The verdict over named numbers, in any order."""
        pairs = rivals.items() if isinstance(rivals, Mapping) else rivals
        ranked = sorted((Rival(name, value) for name, value in pairs), key=lambda one: -one.value)
        return cls(question, unit, whole, tuple(ranked), sign)

    @property
    def winner(self) -> Rival | None:
        """The largest rival; None where none is above 0."""
        return self.rivals[0] if self.rivals and self.rivals[0].value > 0 else None

    @property
    def alike(self) -> tuple[Rival, ...]:
        """The winner, and all rivals that cannot be told from it by the number that is shown; () without a winner."""
        if self.winner is None:
            return ()
        shown = self.share(self.winner)
        return tuple(one for one in self.rivals if one.value > 0 and self.share(one) == shown)

    @property
    def next(self) -> Rival | None:
        """The largest rival that is smaller by the number that is shown; None where none is above 0."""
        rest = self.rivals[len(self.alike) :]
        return rest[0] if rest and rest[0].value > 0 else None

    def share(self, rival: Rival) -> str:
        """What a rival is of the whole, in words."""
        return self.sign + share_text(rival.value, self.whole)

    @property
    def text(self) -> str:
        """The winner with its share, and who shares its place; '' without a winner."""
        alike = self.alike
        if not alike:
            return ""
        names = " and ".join(one.name for one in alike)
        return f"{names} {self.share(alike[0])}{' each' if len(alike) > 1 else ''}"

    @property
    def full_text(self) -> str:
        """Text with the runner-up."""
        more = "" if self.next is None else f" (next: {self.next.name} {self.share(self.next)})"
        return self.text + more

    def as_object(self) -> JsonObject:
        """The verdict as plain data."""
        winner = self.winner
        return {
            "question": self.question,
            "unit": self.unit,
            "whole": self.whole,
            "winner": None if winner is None else winner.name,
            "value": None if winner is None else winner.value,
            "alike": [one.name for one in self.alike[1:]],
            "rivals": {one.name: one.value for one in self.rivals},
        }


def smallest_set(
    parts: Sequence[Part], saved: Callable[[tuple[Part, ...]], float], least: float, most_sets: int = MOST_SETS
) -> tuple[tuple[Part, ...], float] | None:
    """The fewest parts, two or more, that together save at least `least`, and what they save; None where none do.

    Of equally few those that save most, of these the first in the order of the parts. `least` is above 0. All pairs are
    tried, then larger sets if all parts together save as much. Where there are more than `most_sets` of a size, only
    those are tried that hold every part without which all others together do not help.
    """
    known: dict[tuple[Part, ...], float] = {}

    def of(chosen: tuple[Part, ...]) -> float:
        if chosen not in known:
            known[chosen] = saved(chosen)
        return known[chosen]

    everything = tuple(parts)
    needed: tuple[int, ...] | None = None
    for size in range(2, len(everything) + 1):
        if size > 2 and of(everything) < least:
            return None
        places: Iterable[tuple[int, ...]] = combinations(range(len(everything)), size)
        if math.comb(len(everything), size) > most_sets:
            if of(everything) < least:
                return None
            if needed is None:
                needed = _needed(everything, of, least)
            places = _holding(needed, len(everything), size, most_sets)
        best = max(((of(tuple(everything[one] for one in chosen)), chosen) for chosen in places),
                   key=lambda pair: (pair[0], tuple(-one for one in pair[1])), default=None)  # fmt: skip
        if best is not None and best[0] >= least:
            return tuple(everything[one] for one in best[1]), best[0]
    return None


def _needed(parts: tuple[Part, ...], saved: Callable[[tuple[Part, ...]], float], least: float) -> tuple[int, ...]:
    """Places of the parts without which all others together save less than `least`."""
    return tuple(place for place in range(len(parts)) if saved(parts[:place] + parts[place + 1 :]) < least)


def _holding(needed: tuple[int, ...], count: int, size: int, most: int) -> Iterable[tuple[int, ...]]:
    """The first so many sets of a size that hold the needed places, and the last of all."""
    others = [place for place in range(count) if place not in needed]
    if len(needed) > size:
        return
    for number, more in enumerate(combinations(others, size - len(needed))):
        if number >= most and size < count:
            return
        yield tuple(sorted((*needed, *more)))
