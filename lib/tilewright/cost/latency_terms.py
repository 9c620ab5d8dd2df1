"""Terms of a layer's latency that plug-ins enter: cycles that are the same for every loop order.

Examples are the cost of a command to an accelerator, or of its configuration. A term is one object with the attributes
of `LatencyTerm`, entered under its name: `latency_term.command = "their_package:COMMAND"`. The array waits in these
cycles before the layer begins, so they add to the other terms and hide nothing.
"""

from typing import Protocol

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.cost.ledger import LATENCY_TERMS
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

MOST_TERMS = 8
"""Most terms that one core can have."""
MOST_CYCLES = 2**53
"""Largest number of cycles of a term: floating-point numbers are exact up to it."""


class LatencyTerm(Protocol):
    """A term of the latency in addition to those of the cost model."""

    def concerns(self, core: Core) -> bool:
        """True if the term applies to a core; otherwise results of the core do not name the term."""

    def cycles(self, layer: Layer, core: Core, unrolling: Unrolling) -> int:
        """Whole cycles, from 0, of the term for a layer with a spatial mapping, on the core as the layer sees it."""


def _fault(name: str, entry: object) -> str:
    """Fault in the name of a plug-in's term, or of its object; '' if there is none."""
    return taken(name, (*LATENCY_TERMS, "copies")) or lacking(entry, methods_of(LatencyTerm))


ENTERED: Registry[LatencyTerm] = Registry(__name__, _fault)
"""Latency terms by name; they add up in this order, after the terms of the cost model."""


def further_latency_terms(core: Core) -> dict[str, LatencyTerm]:
    """Terms of plug-ins that apply to a core, by name. Raises InputError for more than MOST_TERMS."""
    known = {name: ENTERED[name] for name in ENTERED.names}
    found = {name: term for name, term in known.items() if term.concerns(core)}
    if len(found) > MOST_TERMS:
        message = f"has {len(found)} latency terms of plug-ins"
        raise InputError([Problem(message, core.name, value=", ".join(found), allowed=f"at most {MOST_TERMS}")])
    return found


def latency_term_names(core: Core) -> tuple[str, ...]:
    """Names of a core's latency terms, in the order of addition."""
    return (*LATENCY_TERMS, *further_latency_terms(core))


def further_cycles(layer: Layer, core: Core, unrolling: Unrolling) -> tuple[int, ...]:
    """Cycles of each term of plug-ins for a layer. Raises InputError for a number that is none of cycles."""
    found = []
    for name, term in further_latency_terms(core).items():
        cycles = term.cycles(layer, core, unrolling)
        if isinstance(cycles, bool) or not isinstance(cycles, int) or not 0 <= cycles <= MOST_CYCLES:
            message = f"is no number of cycles for layer {layer.name} on {core.name}"
            raise InputError([Problem(message, f"plug-in {name}", value=repr(cycles), allowed="whole numbers from 0")])
        found.append(cycles)
    return tuple(found)
