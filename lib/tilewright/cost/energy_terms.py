"""The terms of the energy of a layer on a core: of its array, of memory accesses, and those that are entered.

A term is one object with the attributes of `EnergyTerm`, entered in `ENERGY_TERMS` under its name; nothing else names
it.
"""

from dataclasses import dataclass
from typing import Protocol

from tilewright.cost.array_work import Links, array_work
from tilewright.cost.ledger import ACCESSES
from tilewright.hardware.array_model import ArrayRefusalError, array_model
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Unrolling
from tilewright.profile import ModelProfile
from tilewright.registry import Registry
from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class TermCost:
    """What a term adds to the energy of a layer: `fixed_pj + pj_a_cycle * latency`, neither negative."""

    fixed_pj: float = 0.0
    """Whatever the loop order."""
    pj_a_cycle: float = 0.0
    """In each cycle of the latency."""


class EnergyTerm(Protocol):
    """A term of the energy besides those of operations and of accesses."""

    def concerns(self, core: Core) -> bool:
        """Whether a core has it at all; where not, its results do not name it."""

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """What it adds for a layer."""


ENERGY_TERMS: Registry[EnergyTerm] = Registry(__name__)
"""Terms by name, in the order in which they add up after operations and accesses."""


def entered_terms(core: Core) -> dict[str, EnergyTerm]:
    """The entered terms that a core has."""
    return {name: term for name in ENERGY_TERMS.names if (term := ENERGY_TERMS[name]).concerns(core)}


def energy_term_names(core: Core) -> tuple[str, ...]:
    """The terms of the energy on a core in the order in which they add up."""
    return (*array_model(core.operational_array).terms, ACCESSES, *entered_terms(core))


def energy_terms_of(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> dict[str, TermCost]:
    """Every term of the energy of a layer on a core; that of accesses is what the loop order makes of it.

    Raises ArrayRefusalError, a MappingError, where the array cannot run the spatial mapping.
    """
    array, work = core.operational_array, array_work(layer, core, unrolling, profile, links)
    model = array_model(array)
    if reason := model.refusal(array, work):
        raise ArrayRefusalError(reason)
    terms = {name: TermCost(energy) for name, energy in zip(model.terms, model.energies_pj(array, work), strict=True)}
    terms[ACCESSES] = TermCost()
    return terms | {name: term.cost(layer, core, unrolling) for name, term in entered_terms(core).items()}
