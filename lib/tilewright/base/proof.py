"""Proofs: a value, its lower bound, the gap, and the mappings, schedules or plans that the proof covers.

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
    """Gap: largest amount by which the optimum can be below a value, as a fraction of the value; 0 for a value of 0."""
    return max(0.0, 1.0 - lower_bound / value) if value else 0.0


class BoundedValue:
    """Value of the best solution found, with a lower bound on the value of every solution in the search space."""

    value: float
    lower_bound: float

    @property
    def is_proven(self) -> bool:
        """True if no solution in the search space is better, apart from rounding errors."""
        return self.lower_bound >= self.value * (1 - 2 * ROUNDING)

    @property
    def gap(self) -> float:
        """Largest amount by which the optimum can be below the value, as a fraction of the value; 0 if the value is
        proven."""
        return 0.0 if self.is_proven else gap_to(self.lower_bound, self.value)

    def stated(self) -> JsonObject:
        """Value, lower bound, gap, and whether the value is proven, as a JSON object."""
        return {"value": self.value, "lower_bound": self.lower_bound, "gap": self.gap, "proven": self.is_proven}


@dataclass(frozen=True)
class Bounded(BoundedValue):
    """Value with its lower bound, and nothing else."""

    value: float
    lower_bound: float


class Claim(Protocol):
    """Value with its lower bound, in the form of a certificate in a file."""

    @property
    def value(self) -> float:
        """Value of the best solution found."""
        ...

    @property
    def lower_bound(self) -> float:
        """Lower bound on the value of every solution in the search space."""
        ...

    @property
    def gap(self) -> float:
        """Largest amount by which the optimum can be below `value`, as a fraction of `value`."""
        ...

    @property
    def proven(self) -> bool:
        """True if no solution in the search space is better."""
        ...


def contradictions(claim: Claim) -> Iterator[str]:
    """Texts of the contradictions between value, lower bound, gap and `proven` of a claim. The check does not use
    `BoundedValue`."""
    proven = claim.lower_bound >= claim.value * (1 - 2 * CLOSE)
    if claim.lower_bound > claim.value or proven != claim.proven:
        yield f"lower bound {claim.lower_bound}, value {claim.value}, proven {claim.proven}"
    gap = 0.0 if proven else 1 - claim.lower_bound / claim.value
    if not math.isclose(gap, claim.gap, rel_tol=CLOSE, abs_tol=CLOSE):
        yield f"gap {claim.gap}, not {gap}"


def differing(rows: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """Texts about the rows (name, recomputed value, value in the file) in which the two values differ."""
    for what, mine, theirs in rows:
        if mine != theirs:
            yield f"{what} {theirs!r}, not {mine!r}"


SpatialKind = Literal["given", "open", "largest divisors"]


@dataclass(frozen=True)
class SpatialMappings:
    """Set of the spatial mappings that were searched for a layer."""

    kind: SpatialKind = "given"
    """Kind of spatial mappings in the set:

    * `given`: the spatial mapping of the mapping file.
    * `open`: the mapping file leaves sides of the array open, and the spatial mappings fill these sides.
    * `largest divisors`: as in Stream, each usable side of the array unrolls a different loop dimension, by the largest
      divisor that fits.
    """
    first: int | None = None
    """Number of spatial mappings that were searched, if a limit left out later ones; None if all were searched."""
    mixed: bool = False
    """True if a side of the array can have several loop dimensions."""
    hinted: bool = False
    """True if the mapping file names, for some sides of the array, the loop dimensions that can be unrolled there."""
    cut: bool = False
    """True if all unrolling factors, including those in the mapping file, are reduced to the widths of the ports and
    the sizes of the innermost memories. False if the model profile has the switch `keep_given_unrolling`, with which
    the factors in the mapping file are kept.
    """

    ruled: bool = False
    """True if the hardware file has rules of the control. All mappings in the set obey these rules."""

    @property
    def text(self) -> str:
        """Text that describes these spatial mappings, for messages and files."""
        return (
            f"{self._kind_text}, within the rules of the control in the hardware file"
            if self.ruled
            else self._kind_text
        )

    @property
    def _kind_text(self) -> str:
        if self.kind == "given":
            return "the spatial mapping of the mapping file"
        if self.kind == "largest divisors":
            return (
                "all spatial mappings that unroll a different loop dimension on each usable side of the array, each"
                " dimension by its largest divisor that fits"
            )
        loops = "loop dimensions" if self.mixed else "one loop dimension"
        hints = " from spatial_mapping_hint" if self.hinted else ""
        where = f"{loops}{hints} on each side of the array that the mapping file leaves open"
        if self.first is not None:
            first = f"the first {self.first} spatial mappings that unroll {where}"
            return f"{first} (by divisors of the largest factor that fits)"
        cut = ", lowered where port widths or sizes of innermost memories allow fewer lanes" if self.cut else ""
        factors = f"by divisors of the size of the loop or of the largest factor that fits{cut}"
        return f"all spatial mappings that unroll {where} ({factors})"


ORDERS = {
    "greedy": "every loop order that the mapping file allows, and loops assigned to memories as in ZigZag",
    "free": "every loop order that the mapping file allows, and every choice of the loops that each memory keeps",
}
"""Memory allocation -> text that names the loop orders and allocations searched for each spatial mapping."""


def covered_text(covers: str, allocation: str | None) -> str:
    """Text that names the mappings for which the proof of a layer is valid. The text begins with `covers`, which names
    the spatial mappings. A text on the loop orders follows, which depends on the memory allocation `allocation`. The
    second text is left out if `covers` is '', or if `ORDERS` has no text for the allocation.
    """
    orders = ORDERS.get(allocation or "")
    return f"{covers}, with {orders}" if covers and orders else covers


@dataclass(frozen=True)
class Schedules:
    """Set of schedules for which the lower bounds of a network on several cores are valid. The network is cut into
    given tiles. The set has every schedule of these tiles, with each part of a layer on any core that can run the part.
    """

    parts: int = 0
    """Number of parts of layers that are allocated to cores."""
    decided: int = 0
    """Number of parts of layers for which only one core is allowed."""

    @property
    def text(self) -> str:
        """Text that describes these schedules, for messages and files."""
        if self.parts and self.decided == self.parts:
            which = "the only allowed allocation to cores"
        elif self.decided:
            which = f"all allowed allocations to cores ({self.decided} of {self.parts} parts have only one core)"
        else:
            which = "all allocations to cores"
        schedules = "all schedules of these tiles, with data copied into a core before use or streamed"
        return f"{which} and {schedules} (other tiles are not covered)"


EVERY_PLAN = (
    "every plan: a plan may cut layers along any dimensions of their outputs into any parts and tiles, and combine any"
    " stacks, allowed cores, order, prefetch, streams and detours"
)
"""Text that names the plans for which the lower bounds of `fuse` over all tilings are valid: all cuts of the layers, on
the cores that the mapping file allows, and all schedules of the causal model."""
CUT_REDUCTIONS = "; a plan may also cut reductions of sums of products into any parts on several cores"
STEPPED_REDUCTIONS = "; a plan may also cut a reduction into steps if the weights of its layer pass through the cores"
GIVEN_REDUCTIONS = "; a plan cuts reductions between cores only as the mapping file says"
"""Texts to add to `EVERY_PLAN`: CUT_REDUCTIONS if plans can cut reductions between cores, STEPPED_REDUCTIONS if plans
can cut reductions into steps on one core, GIVEN_REDUCTIONS if plans cut reductions between cores only as the mapping
file says.
"""
ALLOWED_ALLOCATIONS = "the allowed allocations of these tiles"
"""Short text for the set `Schedules`, for which the lower bounds of a network on several cores are valid."""


def if_copied_line(found: Mapping[str, Any]) -> list[str]:
    """List with one line on a second lower bound of the latency: the bound of schedules that copy data into a core
    before use if the data fit. The scheduler makes only such schedules.

    `found` is the content of `summary.json` or `fusion.json`. The file also has the bound of all schedules, which can
    be smaller. The result is [] if both bounds give the same printed gap, or if an older version wrote the file.
    """
    copied = (found.get("lower_bound") or {}).get("if_copied")
    if copied is None:
        return []
    gap = f"{found['gap_latency_if_copied']:.1%}"
    if gap == f"{found['gap_latency']:.1%}":
        return []
    cycles = f"{copied[LATENCY_CYCLES]:,} cycles"
    return [
        "lower bound for schedules that, like this one, copy data into a core before use whenever the data fit:"
        f" {cycles}; gap: {gap} in latency"
    ]


def covered_by(bound: Mapping[str, Any]) -> str:
    """Text that names the schedules or plans for which the `lower_bound` of a `summary.json` or `fusion.json` is valid.
    A file of an older version may lack this text; the result is then a default text.
    """
    return str(bound.get("covers", f"{ALLOWED_ALLOCATIONS} (other tiles are not covered)"))


@dataclass(frozen=True)
class TilePlans:
    """Set of tile plans on one core. The gap of a proof is the distance to the optimum of this set."""

    kind: Literal["attention", "depth-first"]
    lpf_limit: int | None = None
    """Largest number of loops to which loma merges the factors of a layer; None for no limit. Loma is the only engine
    that maps the layers of a tile."""

    @property
    def text(self) -> str:
        """Text that describes these tile plans, for messages and files."""
        limit = "no lpf_limit" if self.lpf_limit is None else f"lpf_limit {self.lpf_limit}"
        within = f"if loma with {limit} maps the layers of each tile"
        if self.kind == "attention":
            return f"all plans of the space of tiles, with tensors only in memories that have one instance, {within}"
        return f"all cuts into stacks, tile modes and tile sizes that the options leave open, {within}"


def optimum_line(subject: str, is_proven: bool, gap: float, plural: str, covers: str, counts: str) -> str:
    """Sentence about the best plan or schedule found. The sentence says how much better the optimum can be, which set
    contains the optimum, and how many candidates were examined.
    """
    if is_proven:
        return f"{subject}: the best {plural[:-1]} found is optimal over {covers} ({counts})"
    return f"{subject}: the optimum is at most {gap:.2%} below the best {plural[:-1]} found, over {covers} ({counts})"
