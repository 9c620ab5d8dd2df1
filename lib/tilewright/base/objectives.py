"""Objectives of searches, declared only here, and the seed of all random numbers of searches.

An objective is a product of powers of energy and latency. An objective never falls if energy or latency grows. Lower
bounds of energy and latency therefore give a lower bound of the objective, on which the certificates of the exact
search rest.

A plug-in enters a further objective by an entry point: `objective.ED2P = "their_package:ED2P"` with `ED2P =
Powers(energy=1, latency=2)`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from tilewright.base.parameters import Count, OneOf, Parameters
from tilewright.base.registry import Registry, taken
from tilewright.base.stage_table import STAGES
from tilewright.base.unused import unused_option

if TYPE_CHECKING:
    import numpy as np

    from tilewright.base.errors import Unused

Number = TypeVar("Number", float, "np.ndarray")


class Powers(NamedTuple):
    """Objective that is a product of powers: energy to one power times latency to another. The powers are whole
    numbers, and at least one is not 0."""

    energy: int = 0
    latency: int = 0

    def value(self, energy_pj: Number, latency_cycles: Number) -> Number:
        """Value of the objective for one mapping. For arrays with one energy and one latency per mapping, the result is
        an array with one value per mapping.
        """
        return reduce(mul, [energy_pj] * self.energy + [latency_cycles] * self.latency)


EDP = Powers(energy=1, latency=1)
BUILT_IN = {"latency": Powers(latency=1), "energy": Powers(energy=1), "EDP": EDP}
"""Built-in objectives by name, in the order in which they are listed."""
DECISIONS = ("energy", "latency", "EDP", "area")
"""Measures by which one design of a space can be chosen: built-in objectives, and the area."""
MOST_POWER = 9
"""Largest allowed power. Up to this power, every objective is finite for 1e12 pJ and 1e12 cycles."""


def reduction_of(objective: str) -> str:
    """Name of the stage that keeps the mapping with the smallest value of an objective."""
    return f"Minimal{objective[0].upper()}{objective[1:]}"


def _fault(name: str, entry: object) -> str:
    """Fault of a plug-in's objective or of its name; '' if there is none."""
    if reason := taken(name, BUILT_IN):
        return reason
    if not name.isidentifier() or reduction_of(name) in {stage.name for stage in STAGES}:
        wanted = f"the name must be a Python identifier, and {reduction_of(name)} must not be the name of a stage"
        return f"has the name {name}; {wanted}"
    if not isinstance(entry, Powers):
        return "is no objective: an instance of tilewright.base.objectives.Powers is needed"
    if not all(type(power) is int and 0 <= power <= MOST_POWER for power in entry) or entry == Powers():
        wanted = f"both must be whole numbers from 0 to {MOST_POWER}, and one must be above 0"
        return f"has the powers {tuple(entry)}; {wanted}"
    return ""


ENTERED: Registry[Powers] = Registry(__name__, _fault)
"""Objectives of plug-ins, by name."""


class _Objectives(Mapping[str, Powers]):
    """Objectives by name: first the built-in ones, then those of plug-ins."""

    def __getitem__(self, name: str) -> Powers:
        return BUILT_IN[name] if name in BUILT_IN else ENTERED[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*BUILT_IN, *ENTERED.names))

    def __len__(self) -> int:
        return len(BUILT_IN) + len(ENTERED.names)


OBJECTIVES = _Objectives()
"""Objectives by name. Built-in objectives come first."""


def objective_names() -> tuple[str, ...]:
    """Names of all objectives."""
    return tuple(OBJECTIVES)


Objective = Annotated[str, OneOf(objective_names)]


@dataclass(frozen=True, eq=False, repr=False)
class Goal(Parameters):
    """Parameter that selects the objective of a search."""

    objective: Objective = "latency"
    """Objective to minimise: latency, energy, EDP (their product), or the name of a plug-in's objective."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Chance(Parameters):
    """Parameter that seeds the random numbers of a search. Equal seeds give equal results."""

    seed: Count = 0
    """Seed of the random numbers of the salsa engine and of the search for an allocation."""


def energy_notices(objective: str, energies_pj: Iterable[float], compared: str = "mappings") -> "list[Unused]":
    """List with one notice if the objective cannot compare the results, because the objective contains the energy and
    all energies are 0. The list is empty if the objective can compare the results, or if there are no results.
    `compared` is the noun for the results in the notice.
    """
    energies = list(energies_pj)
    if not energies or any(energies) or not OBJECTIVES[objective].energy:
        return []
    why = (
        f"does not compare {compared}, because the hardware file gives no energies and all {compared} have the value 0;"
        " use `objective: latency` to compare them"
    )
    return [unused_option("objective", why, objective)]


def energy_delay_product(energy_pj: Number, latency_cycles: Number) -> Number:
    """Energy-delay product in pJ cycles, for one result or for columns of results. All code uses this function, except
    checks of results, which compute the product independently."""
    return EDP.value(energy_pj, latency_cycles)


def ranking(objective: str, energy_pj: Number, latency_cycles: Number) -> tuple[Number, ...]:
    """Sort key for comparing mappings under an objective, with the most important number first. The smaller key wins;
    the first mapping wins a tie.

    The key is the value of the objective. If the objective uses only one metric, energy or latency, the other metric
    breaks ties, as in zigzag-dse. The arguments are numbers of one mapping, or arrays with one number per mapping.
    """
    powers = OBJECTIVES[objective]
    value = powers.value(energy_pj, latency_cycles)
    if powers.energy == 0:
        return value, energy_pj
    return (value, latency_cycles) if powers.latency == 0 else (value,)
