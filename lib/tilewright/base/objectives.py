"""Objectives of searches, declared here and nowhere else, and the seed of all their random numbers.

An objective is a product of powers of energy and latency, so that it never falls where one of them grows: from a lower
bound of each follows one of the objective, which is what certificates of the exact search rest on.

Plug-ins enter further objectives: `objective.ED2P = "their_package:ED2P"` with `ED2P = Powers(energy=1, latency=2)`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from tilewright.base.parameters import Count, OneOf, Parameters
from tilewright.base.registry import Registry, taken
from tilewright.base.stage_table import STAGES

if TYPE_CHECKING:
    import numpy as np

Number = TypeVar("Number", float, "np.ndarray")


class Powers(NamedTuple):
    """An objective: energy to one power times latency to another, whole numbers that are not both 0."""

    energy: int = 0
    latency: int = 0

    def value(self, energy_pj: Number, latency_cycles: Number) -> Number:
        """Value of one mapping, or of columns of them."""
        return reduce(mul, [energy_pj] * self.energy + [latency_cycles] * self.latency)


EDP = Powers(energy=1, latency=1)
BUILT_IN = {"latency": Powers(latency=1), "energy": Powers(energy=1), "EDP": EDP}
"""Objectives that need no plug-in, by name, in the order in which they are listed."""
MOST_POWER = 9
"""Largest power: with 1e12 pJ and as many cycles, the value of any allowed objective is finite."""


def reduction_of(objective: str) -> str:
    """Name of the stage that keeps the best mapping by an objective."""
    return f"Minimal{objective[0].upper()}{objective[1:]}"


def _fault(name: str, entry: object) -> str:
    """Fault of an objective of a plug-in, or of its name; '' if it has none."""
    if reason := taken(name, BUILT_IN):
        return reason
    if not name.isidentifier() or reduction_of(name) in {stage.name for stage in STAGES}:
        return f"has the name {name}: an identifier is needed that makes a new name of a stage, {reduction_of(name)}"
    if not isinstance(entry, Powers):
        return "is no objective: tilewright.base.objectives.Powers is needed"
    if not all(type(power) is int and 0 <= power <= MOST_POWER for power in entry) or entry == Powers():
        return f"has the powers {tuple(entry)}: whole numbers from 0 to {MOST_POWER} are needed, not both 0"
    return ""


ENTERED: Registry[Powers] = Registry(__name__, _fault)
"""Objectives of plug-ins, by name."""


class _Objectives(Mapping[str, Powers]):
    """Objectives by name: those that are built in, then those of plug-ins."""

    def __getitem__(self, name: str) -> Powers:
        return BUILT_IN[name] if name in BUILT_IN else ENTERED[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*BUILT_IN, *ENTERED.names))

    def __len__(self) -> int:
        return len(BUILT_IN) + len(ENTERED.names)


OBJECTIVES = _Objectives()
"""Objectives by name, in the order in which they are listed."""


def objective_names() -> tuple[str, ...]:
    """Names of all objectives."""
    return tuple(OBJECTIVES)


Objective = Annotated[str, OneOf(objective_names)]


@dataclass(frozen=True, eq=False, repr=False)
class Goal(Parameters):
    """What a search goes by."""

    objective: Objective = "latency"
    """Objective to minimise: latency, energy, EDP (their product), or one of a plug-in."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Chance(Parameters):
    """The random numbers of a search: equal seeds give equal results."""

    seed: Count = 0
    """Seed of the random numbers of salsa, and of the search for an allocation."""


def energy_delay_product(energy_pj: Number, latency_cycles: Number) -> Number:
    """EDP in pJ cycles, of one thing or of columns; only what checks results multiplies on its own."""
    return EDP.value(energy_pj, latency_cycles)


def ranking(objective: str, energy_pj: Number, latency_cycles: Number) -> tuple[Number, ...]:
    """What mappings are compared by under an objective, the most important first; of one mapping or of columns.

    The reference's rule: the objective, then the metric that it leaves out; the smaller wins, of equal ones the first.
    """
    powers = OBJECTIVES[objective]
    value = powers.value(energy_pj, latency_cycles)
    if powers.energy == 0:
        return value, energy_pj
    return (value, latency_cycles) if powers.latency == 0 else (value,)
