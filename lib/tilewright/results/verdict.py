"""Verdicts: comparisons of several candidates, with a text that names the largest candidate and its value.

All commands and pages use this type, so that they never name the largest candidate without its value. If no single
candidate saves enough, a set of candidates can save enough together: `smallest_set` finds the smallest such set.
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
"""Largest number of sets that `smallest_set` tries for one set size (two parts, three parts, ...). If more sets of this
size exist, only sets that contain every necessary part are tried.
"""


class Rival(NamedTuple):
    """Name and value of one of the candidates that a verdict compares."""

    name: str
    value: float
    """Value in the unit of the verdict."""


@dataclass(frozen=True)
class Verdict:
    """Comparison of named values, the rivals: the rival with the largest value wins. Texts show values as shares of the
    total `whole`.
    """

    question: str
    """Words for the quantity by which the rivals are compared."""
    unit: str
    whole: float
    """Total to which shares refer, in the unit of the verdict."""
    rivals: tuple[Rival, ...]
    """Rivals, the largest first. Equal rivals are in the order in which they were given."""
    sign: str = ""
    """Sign of shares in texts: `-` for savings."""

    @classmethod
    def of(
        cls,
        question: str,
        unit: str,
        whole: float,
        rivals: Mapping[str, float] | Iterable[tuple[str, float]],
        sign: str = "",
    ) -> "Verdict":
        """Verdict over `rivals`, which are pairs (name, value) or values by name, in any order. The other arguments
        become the fields of the same names.
        """
        pairs = rivals.items() if isinstance(rivals, Mapping) else rivals
        ranked = sorted((Rival(name, value) for name, value in pairs), key=lambda one: -one.value)
        return cls(question, unit, whole, tuple(ranked), sign)

    @property
    def winner(self) -> Rival | None:
        """Largest rival; None if no rival is above 0."""
        return self.rivals[0] if self.rivals and self.rivals[0].value > 0 else None

    @property
    def alike(self) -> tuple[Rival, ...]:
        """Winner, and all rivals whose printed share equals that of the winner; () if there is no winner."""
        if self.winner is None:
            return ()
        shown = self.share(self.winner)
        return tuple(one for one in self.rivals if one.value > 0 and self.share(one) == shown)

    @property
    def next(self) -> Rival | None:
        """Rival with the largest printed share below that of the winner; None if no such rival has a share above 0."""
        rest = self.rivals[len(self.alike) :]
        return rest[0] if rest and rest[0].value > 0 else None

    def share(self, rival: Rival) -> str:
        """Text of the share of a rival in the total `whole`, with the sign `sign` in front."""
        return self.sign + share_text(rival.value, self.whole)

    @property
    def text(self) -> str:
        """Text with the winner, its share, and all rivals with the same printed share; '' if there is no winner."""
        alike = self.alike
        if not alike:
            return ""
        names = " and ".join(one.name for one in alike)
        return f"{names} {self.share(alike[0])}{' each' if len(alike) > 1 else ''}"

    @property
    def full_text(self) -> str:
        """Text with the winner and the runner-up."""
        more = "" if self.next is None else f" (next: {self.next.name} {self.share(self.next)})"
        return self.text + more

    def as_object(self) -> JsonObject:
        """Verdict as a JSON object."""
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
    """Pair (smallest set of two or more parts that together save at least `least`, saving of this set). None if no
    tried set saves so much.

    Among sets of equal size, the set that saves most is returned; among equal savings, the first in the order of the
    parts. `least` must be above 0.

    Sets are tried size by size, beginning with pairs. Sets of three or more parts are tried only if all parts together
    save enough. If there are more than `most_sets` pairs, pairs are also tried only under this condition.

    If there are more than `most_sets` sets of a size, at most `most_sets` of them are tried, and only sets that contain
    every necessary part. A part is necessary if all other parts together do not save enough.
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
    """Indices of the necessary parts. A part is necessary if all other parts together save less than `least`."""
    return tuple(place for place in range(len(parts)) if saved(parts[:place] + parts[place + 1 :]) < least)


def _holding(needed: tuple[int, ...], count: int, size: int, most: int) -> Iterable[tuple[int, ...]]:
    """Sets of `size` parts that contain all necessary parts. The parts are numbered from 0 to `count` - 1, `needed` has
    the numbers of the necessary parts, and each set has ascending numbers. At most `most` sets are returned; if `size`
    is `count`, the set of all parts is always returned.
    """
    others = [place for place in range(count) if place not in needed]
    if len(needed) > size:
        return
    for number, more in enumerate(combinations(others, size - len(needed))):
        if number >= most and size < count:
            return
        yield tuple(sorted((*needed, *more)))
