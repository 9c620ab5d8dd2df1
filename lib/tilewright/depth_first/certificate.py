"""What a search for the best depth-first schedule is asked and answers: space, what was costed, certificate.

What certificates of an optimum have in common: a value with a lower bound, and how those who check it read both.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilewright.artifacts.codec import encode
from tilewright.depth_first.locations import MODES
from tilewright.depth_first.schedule import DepthFirstSchedule
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


Layers = tuple[int, int]
"""(first layer, last layer) of a stack."""


@dataclass(frozen=True)
class Space:
    """What is searched: every cut of the chain into stacks, and for each stack each of these."""

    modes: tuple[str, ...] = tuple(MODES)
    tile_x: tuple[int, ...] = ()
    """Widths of tiles, () for all."""
    tile_y: tuple[int, ...] = ()

    def sizes(self, axis: int, most: int) -> np.ndarray:
        """The sizes of tiles of a stack along an axis, ascending; a larger one is the whole layer."""
        given = self.tile_y if axis else self.tile_x
        return np.unique(np.minimum(np.array(given or range(1, most + 1), np.int64), most))


@dataclass(frozen=True)
class Costed:
    """A stack in tiles, with what it costs."""

    layers: Layers
    mode: str
    tile: tuple[int, int]
    energy_pj: float
    latency_cycles: float


@dataclass(frozen=True)
class Unmappable:
    """A stack in tiles of which a layer fits into no memories."""

    layers: Layers
    mode: str
    tile: tuple[int, int]


@dataclass(frozen=True)
class Optimum(BoundedValue):
    """The best schedule, and how that is known."""

    schedule: DepthFirstSchedule
    space: Space
    objective: str
    value: float
    """Of the objective."""
    lower_bound: float
    """No schedule of the space is below it, but for rounding."""
    schedules_in_space: int
    stacks_bounded: tuple[Layers, ...]
    """Those of which each size of tiles has a bound of its own; the others are excluded as a whole."""
    costed: tuple[Costed, ...]
    """In the order in which they were costed."""
    unmappable: tuple[Unmappable, ...] = ()
    """What was to be costed too."""
    is_interrupted: bool = False
    """By Ctrl-C; it is the best schedule so far then."""

    def as_object(self) -> dict[str, Any]:
        """The certificate as JSON values."""
        names = [entry.layer.name for entry in self.schedule.chain.layers]
        return {
            "objective": self.objective,
            "value": self.value,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "proven": self.is_proven,
            "schedules_in_space": self.schedules_in_space,
            "space": encode(self.space),
            "stacks_bounded": [[names[first], names[last]] for first, last in self.stacks_bounded],
            "stacks_costed": [
                [names[one.layers[0]], names[one.layers[1]], one.mode, *one.tile, one.energy_pj, one.latency_cycles]
                for one in self.costed
            ],
            "stacks_unmappable": [
                [names[one.layers[0]], names[one.layers[1]], one.mode, *one.tile] for one in self.unmappable
            ],
        }
