"""Proofs: a value with its lower bound, the gap between them, and the set for which both are valid.

Every verb, page and file uses the same words for them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tilewright.base.json_values import JsonObject

ROUNDING = 1e-9
"""Share by which bounds are lowered, since sums of floating-point numbers are rounded: what writers of proofs allow."""
CLOSE = 1e-9
"""Relative difference that checkers of proofs allow: their sums are in another order."""


def gap_to(lower_bound: float, value: float) -> float:
    """Share of a value by which the optimum could be smaller; 0 for a value of 0."""
    return max(0.0, 1.0 - lower_bound / value) if value else 0.0


class BoundedValue:
    """Value of the best solution found, with a lower bound on the value of every solution in the search space."""

    value: float
    lower_bound: float

    @property
    def is_proven(self) -> bool:
        """Whether nothing in the space is better, but for rounding."""
        return self.lower_bound >= self.value * (1 - 2 * ROUNDING)

    @property
    def gap(self) -> float:
        """Share of the value by which the optimum could be smaller; 0 where the value is proven."""
        return 0.0 if self.is_proven else gap_to(self.lower_bound, self.value)

    def stated(self) -> JsonObject:
        """Value, lower bound, gap and proof as JSON values."""
        return {"value": self.value, "lower_bound": self.lower_bound, "gap": self.gap, "proven": self.is_proven}


@dataclass(frozen=True)
class Bounded(BoundedValue):
    """A value with its lower bound, and nothing else."""

    value: float
    lower_bound: float


class Claim(Protocol):
    """A bounded value as a certificate in a file states it."""

    @property
    def value(self) -> float:
        """Value of the best."""
        ...

    @property
    def lower_bound(self) -> float:
        """Lower bound of everything in the space."""
        ...

    @property
    def gap(self) -> float:
        """Share of the value by which the optimum could be smaller."""
        ...

    @property
    def proven(self) -> bool:
        """Whether nothing in the space is better."""
        ...


def contradictions(claim: Claim) -> Iterator[str]:
    """Contradictions between value, lower bound, gap and proof of a claim, worked out apart from `BoundedValue`."""
    proven = claim.lower_bound >= claim.value * (1 - 2 * CLOSE)
    if claim.lower_bound > claim.value or proven != claim.proven:
        yield f"lower bound {claim.lower_bound}, value {claim.value}, proven {claim.proven}"
    gap = 0.0 if proven else 1 - claim.lower_bound / claim.value
    if not math.isclose(gap, claim.gap, rel_tol=CLOSE, abs_tol=CLOSE):
        yield f"gap {claim.gap}, not {gap}"


def differing(rows: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """Sentences on the rows (what, what it is, what the file says) of which the last two are not the same."""
    for what, mine, theirs in rows:
        if mine != theirs:
            yield f"{what} {theirs!r}, not {mine!r}"


SpatialKind = Literal["given", "open", "largest divisors"]


@dataclass(frozen=True)
class SpatialMappings:
    """Which spatial mappings of a layer were searched."""

    kind: SpatialKind = "given"
    """given: that of the mapping file; open: what the file leaves open; largest divisors: the rule of Stream."""
    first: int | None = None
    """How many of the generated ones, where that is not all."""
    mixed: bool = False
    """Whether several loop dimensions may share a side of the array."""
    hinted: bool = False
    """Whether the mapping file names the loop dimensions that a side may take."""
    cut: bool = False
    """Whether factors are cut to ports and sizes of the innermost memories, as the profile cuts those of a file."""

    @property
    def text(self) -> str:
        """Words for them."""
        if self.kind == "given":
            return "the spatial mapping of the mapping file"
        if self.kind == "largest divisors":
            return (
                "all spatial mappings of another loop dimension on each side of the array that can be used, by its"
                " largest divisor that fits"
            )
        loops = "loop dimensions" if self.mixed else "one loop dimension"
        hints = " of those in spatial_mapping_hint" if self.hinted else ""
        where = f"{loops}{hints} on each side of the array that the mapping file leaves open"
        if self.first is not None:
            return (
                f"the first {self.first} spatial mappings of {where}, by divisors of the largest factor that has room"
            )
        cut = ", cut to ports and sizes of the innermost memories" if self.cut else ""
        return f"all spatial mappings of {where}, by divisors of its size or of the largest factor with room{cut}"


ORDERS = {
    "greedy": "every loop order that it allows, allocated to memories as in the reference",
    "free": "every loop order that it allows, with every choice of the loops that each memory keeps",
}
"""Memory allocation -> what is searched in time for each spatial mapping."""


def covered_text(covers: str, allocation: str | None) -> str:
    """What a proof of a layer covers: the spatial mappings, then what was searched for each; '' where nothing says the
    first."""
    orders = ORDERS.get(allocation or "")
    return f"{covers}, and for each {orders}" if covers and orders else covers


@dataclass(frozen=True)
class Schedules:
    """Schedules over which the lower bounds of a network on several cores hold: all of them, for the tiles that it is
    cut into, on the cores that its parts may have."""

    parts: int = 0
    """Parts of layers that are allocated."""
    decided: int = 0
    """Parts that have one core to choose from."""

    @property
    def text(self) -> str:
        """Words for them."""
        if self.parts and self.decided == self.parts:
            which = "the one allocation to cores that is allowed"
        elif self.decided:
            which = f"all allowed allocations to cores ({self.decided} of {self.parts} parts have only one core)"
        else:
            which = "all allocations to cores"
        return f"{which} and all schedules of these tiles that fetch what fits a core before it is used, not of others"


ALLOWED_ALLOCATIONS = "the allowed allocations of these tiles"
"""Scope of schedules in few words, where they have to do."""


def covered_by(bound: Mapping[str, Any]) -> str:
    """What the `lower_bound` of a `summary.json` or `fusion.json` covers; files of before say nothing of it."""
    return str(bound.get("covers", f"{ALLOWED_ALLOCATIONS}, not of others"))


@dataclass(frozen=True)
class TilePlans:
    """Plans of tiles on one core over which an optimum holds."""

    kind: Literal["attention", "depth-first"]
    lpf_limit: int | None = None
    """How a layer of a tile is mapped: by loma with this limit, and in no other way."""

    @property
    def text(self) -> str:
        """Words for them."""
        limit = "no lpf_limit" if self.lpf_limit is None else f"lpf_limit {self.lpf_limit}"
        within = f"layers of tiles mapped by loma with {limit} only"
        if self.kind == "attention":
            return f"its space of tiles, with tensors only in memories that exist once, and {within}"
        return f"all cuts and the modes and sizes of tiles that are not given, with {within}"


def optimum_line(subject: str, is_proven: bool, gap: float, plural: str, covers: str, counts: str) -> str:
    """What is known of the best plan or schedule, over what, and how much was looked at for it."""
    if is_proven:
        return f"{subject}: no {plural[:-1]} is better over {covers} ({counts})"
    return f"{subject}: the best could be better by {gap:.2%} at most over {covers} ({counts})"
