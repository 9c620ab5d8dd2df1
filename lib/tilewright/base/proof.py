"""Proofs: a value with its lower bound, the gap between them, and the set for which both are valid.

Every verb, page and file uses the texts in this module to state a proof.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import LATENCY_CYCLES

ROUNDING = 1e-9
"""Relative amount by which lower bounds in proofs are reduced, because sums of floating-point numbers are rounded."""
CLOSE = 1e-9
"""Relative difference that checkers of proofs tolerate, because they add numbers in another order."""


def gap_to(lower_bound: float, value: float) -> float:
    """Largest share of a value by which the optimum can be below it; 0 for a value of 0."""
    return max(0.0, 1.0 - lower_bound / value) if value else 0.0


class BoundedValue:
    """Value of the best solution found, with a lower bound on the value of every solution in the search space."""

    value: float
    lower_bound: float

    @property
    def is_proven(self) -> bool:
        """True if no solution in the space is better, apart from rounding errors."""
        return self.lower_bound >= self.value * (1 - 2 * ROUNDING)

    @property
    def gap(self) -> float:
        """Largest share of the value by which the optimum can be below it; 0 if the value is proven."""
        return 0.0 if self.is_proven else gap_to(self.lower_bound, self.value)

    def stated(self) -> JsonObject:
        """Value, lower bound, gap, and whether the value is proven, as a JSON object."""
        return {"value": self.value, "lower_bound": self.lower_bound, "gap": self.gap, "proven": self.is_proven}


@dataclass(frozen=True)
class Bounded(BoundedValue):
    """A value with its lower bound, and nothing else."""

    value: float
    lower_bound: float


class Claim(Protocol):
    """A value with its lower bound, as a certificate in a file contains it."""

    @property
    def value(self) -> float:
        """Value of the best solution found."""
        ...

    @property
    def lower_bound(self) -> float:
        """Lower bound of all values in the space."""
        ...

    @property
    def gap(self) -> float:
        """Largest share of the value by which the optimum can be below it."""
        ...

    @property
    def proven(self) -> bool:
        """True if no solution in the space is better."""
        ...


def contradictions(claim: Claim) -> Iterator[str]:
    """Texts of the contradictions between value, lower bound, gap and `proven` of a claim. They are computed without
    `BoundedValue`."""
    proven = claim.lower_bound >= claim.value * (1 - 2 * CLOSE)
    if claim.lower_bound > claim.value or proven != claim.proven:
        yield f"lower bound {claim.lower_bound}, value {claim.value}, proven {claim.proven}"
    gap = 0.0 if proven else 1 - claim.lower_bound / claim.value
    if not math.isclose(gap, claim.gap, rel_tol=CLOSE, abs_tol=CLOSE):
        yield f"gap {claim.gap}, not {gap}"


def differing(rows: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """Texts about those rows (name, recomputed value, value in the file) whose two values differ."""
    for what, mine, theirs in rows:
        if mine != theirs:
            yield f"{what} {theirs!r}, not {mine!r}"


SpatialKind = Literal["given", "open", "largest divisors"]


@dataclass(frozen=True)
class SpatialMappings:
    """Set of the spatial mappings of a layer that were searched."""

    kind: SpatialKind = "given"
    """Kind of the set. given: the spatial mapping of the mapping file. open: the choices that the file leaves open.
    largest divisors: the spatial mappings by the rule of Stream."""
    first: int | None = None
    """Number of spatial mappings that were searched, if only the first of all generated ones were searched; None if all
    were searched."""
    mixed: bool = False
    """True if several loop dimensions can share a side of the array."""
    hinted: bool = False
    """True if the mapping file names the loop dimensions that a side can take."""
    cut: bool = False
    """True if factors are reduced to fit the ports and the innermost memories, as the model profile does with the
    factors of a mapping file."""

    @property
    def text(self) -> str:
        """Text of the set for messages and files."""
        if self.kind == "given":
            return "the spatial mapping of the mapping file"
        if self.kind == "largest divisors":
            return (
                "all spatial mappings with a different loop dimension on each usable side of the array, by its"
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
"""Memory allocation -> text that names the loop orders and allocations searched for each spatial mapping."""


def covered_text(covers: str, allocation: str | None) -> str:
    """Set for which a proof of a layer is valid, as text: the spatial mappings, and the loop orders searched for each
    spatial mapping. The text is '' if the spatial mappings are not known."""
    orders = ORDERS.get(allocation or "")
    return f"{covers}, and for each {orders}" if covers and orders else covers


@dataclass(frozen=True)
class Schedules:
    """Schedules for which the lower bounds of a network on several cores are valid. They are all schedules of the tiles
    into which the network is cut, on the cores that each part of a layer can use."""

    parts: int = 0
    """Number of parts of layers that are allocated to cores."""
    decided: int = 0
    """Number of parts that can run on one core only."""

    @property
    def text(self) -> str:
        """Text of the set for messages and files."""
        if self.parts and self.decided == self.parts:
            which = "the only allowed allocation to cores"
        elif self.decided:
            which = f"all allowed allocations to cores ({self.decided} of {self.parts} parts have only one core)"
        else:
            which = "all allocations to cores"
        schedules = "all schedules of these tiles, whether data that fit a core are copied before use or streamed"
        return f"{which} and {schedules} (other tiles are not covered)"


EVERY_PLAN = (
    "every plan: layers cut along any dimensions of their outputs into any parts and tiles, in any stacks, on any"
    " allowed cores, with any order, prefetch, streams and detours"
)
"""Text for the plans for which the lower bounds of `fuse` over all tilings are valid: all cuts of the layers, on the
cores that the mapping file allows, and all schedules of the causal model."""
ALLOWED_ALLOCATIONS = "the allowed allocations of these tiles"
"""Short text for the set `Schedules`, for which a proof is valid."""
OF_THIS_TILING = "of this tiling; other tilings may be faster"
"""Text beside a gap to the bound over `Schedules`. It says that the gap covers only this tiling."""


def if_copied_line(found: Mapping[str, Any]) -> list[str]:
    """Line on the latency bound for schedules that copy data to a core before use if they fit, as the scheduler does.
    `summary.json` or `fusion.json` has this larger bound. There is no line for an older file, or if both bounds give
    the same printed gap."""
    copied = (found.get("lower_bound") or {}).get("if_copied")
    if copied is None:
        return []
    gap = f"{found['gap_latency_if_copied']:.1%}"
    if gap == f"{found['gap_latency']:.1%}":
        return []
    cycles = f"{copied[LATENCY_CYCLES]:,} cycles"
    line = f"over schedules that, like this one, copy data that fit a core before use: {cycles}; gap {gap} in latency"
    return [f"{line}, {OF_THIS_TILING}"] if "any_plan" not in found else [line]


def covered_by(bound: Mapping[str, Any]) -> str:
    """Text of the set for which the `lower_bound` of a `summary.json` or `fusion.json` is valid. Older files do not
    contain this text; they get a default text."""
    return str(bound.get("covers", f"{ALLOWED_ALLOCATIONS} (other tiles are not covered)"))


@dataclass(frozen=True)
class TilePlans:
    """Tile plans on one core over which the optimum is proven."""

    kind: Literal["attention", "depth-first"]
    lpf_limit: int | None = None
    """Limit of loma, the only engine that maps the layers of a tile."""

    @property
    def text(self) -> str:
        """Text of the set for messages and files."""
        limit = "no lpf_limit" if self.lpf_limit is None else f"lpf_limit {self.lpf_limit}"
        within = f"layers of tiles mapped by loma with {limit} only"
        if self.kind == "attention":
            return f"its space of tiles, with tensors only in memories that exist once, and {within}"
        return f"all cuts and the modes and sizes of tiles that are not given, with {within}"


def optimum_line(subject: str, is_proven: bool, gap: float, plural: str, covers: str, counts: str) -> str:
    """Sentence about the best plan or schedule found: how much better the optimum can be, in which set, and how many
    candidates were examined."""
    if is_proven:
        return f"{subject}: no {plural[:-1]} is better over {covers} ({counts})"
    return f"{subject}: the optimum over {covers} is at most {gap:.2%} better ({counts})"
