"""What certificates of an optimum have in common: a value with a lower bound, and how those who check it read both."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from tilewright.depth_first.tile_loops import ROUNDING

CLOSE = 1e-9
"""Relative, of those who check: sums in another order, and bounds that are lowered for rounding."""


class BoundedValue:
    """The value of the best that was found, and what nothing of the space is below, but for rounding."""

    value: float
    lower_bound: float

    @property
    def is_proven(self) -> bool:
        """Whether there is nothing better in the space."""
        return self.lower_bound >= self.value * (1 - 2 * ROUNDING)

    @property
    def gap(self) -> float:
        """How much better something could be at most, as a share of the value."""
        return 0.0 if self.is_proven else 1 - self.lower_bound / self.value


class Claim(Protocol):
    """What a certificate in a file says of that."""

    @property
    def value(self) -> float:
        """Of the best."""
        ...

    @property
    def lower_bound(self) -> float:
        """Nothing is below it."""
        ...

    @property
    def gap(self) -> float:
        """Share of the value that could be saved."""
        ...

    @property
    def proven(self) -> bool:
        """Whether there is nothing better."""
        ...


def contradictions(claim: Claim) -> Iterator[str]:
    """Where value, lower bound, gap and proof contradict each other: worked out again, not as those who wrote it do."""
    proven = claim.lower_bound >= claim.value * (1 - 2 * CLOSE)
    if claim.lower_bound > claim.value or proven != claim.proven:
        yield f"lower bound {claim.lower_bound}, value {claim.value}, proven {claim.proven}"
    gap = 0.0 if proven else 1 - claim.lower_bound / claim.value
    if not math.isclose(gap, claim.gap, rel_tol=CLOSE, abs_tol=CLOSE):
        yield f"gap {claim.gap}, not {gap}"


def differing(rows: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """Of (what, what it is, what the file says) those that are not the same."""
    for what, mine, theirs in rows:
        if mine != theirs:
            yield f"{what} {theirs!r}, not {mine!r}"
