"""Latency terms that plug-ins register: cycles of a layer that are the same for every loop order.

Examples are the cycles to send a command to an accelerator, or to configure an accelerator. A term is one object with
the attributes of `LatencyTerm`, registered under its name: `latency_term.command = "their_package:COMMAND"`. The array
waits during these cycles, before the layer begins. These cycles are therefore added to the other terms, and hide no
transfer.
"""

from typing import Protocol

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.cost.ledger import LATENCY_TERMS
from tilewright.cost.waiting import WAITING_TERMS, waiting_terms
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

MOST_TERMS = 8
"""Largest number of plug-in latency terms that one core can have."""
MOST_CYCLES = 2**53
"""Largest number of cycles of a term. Up to this number, 64-bit floating-point numbers represent every integer."""


class LatencyTerm(Protocol):
    """Latency term in addition to the latency terms of the cost model."""

    def concerns(self, core: Core) -> bool:
        """True if the term applies to a core. Otherwise, results of the core do not contain the term."""

    def cycles(self, layer: Layer, core: Core, unrolling: Unrolling) -> int:
        """Cycles of the term for a layer with a spatial mapping, an integer of at least 0.

        `core` has only the memories that the layer can use.
        """


def _fault(name: str, entry: object) -> str:
    """Fault in the name or in the object of a plug-in's term; '' if there is no fault."""
    return taken(name, (*LATENCY_TERMS, *WAITING_TERMS, "copies")) or lacking(entry, methods_of(LatencyTerm))


ENTERED: Registry[LatencyTerm] = Registry(__name__, _fault)
"""Latency terms of plug-ins, by name. Cycles are added in the order of this registry, after the terms of the cost
model.
"""


def further_latency_terms(core: Core) -> dict[str, LatencyTerm]:
    """Latency terms of plug-ins that apply to a core, by name. Raises InputError if there are more than MOST_TERMS."""
    known = {name: ENTERED[name] for name in ENTERED.names}
    found = {name: term for name, term in known.items() if term.concerns(core)}
    if len(found) > MOST_TERMS:
        message = f"has {len(found)} latency terms of plug-ins"
        raise InputError([Problem(message, core.name, value=", ".join(found), allowed=f"at most {MOST_TERMS}")])
    return found


def latency_term_names(core: Core) -> tuple[str, ...]:
    """Names of a core's latency terms, in the order in which they are added."""
    return (*LATENCY_TERMS, *waiting_terms(core), *further_latency_terms(core))


def added_latency_terms(core: Core) -> tuple[str, ...]:
    """Names of the latency terms that a core has beyond LATENCY_TERMS: first the waiting terms (`cost/waiting.py`),
    then the terms of plug-ins."""
    return latency_term_names(core)[len(LATENCY_TERMS) :]


def further_cycles(layer: Layer, core: Core, unrolling: Unrolling) -> tuple[int, ...]:
    """Cycles of each plug-in latency term for a layer.

    Raises InputError if the value of a term is not an integer from 0 to MOST_CYCLES.
    """
    found = []
    for name, term in further_latency_terms(core).items():
        cycles = term.cycles(layer, core, unrolling)
        if isinstance(cycles, bool) or not isinstance(cycles, int) or not 0 <= cycles <= MOST_CYCLES:
            message = f"is not a valid number of cycles for layer {layer.name} on {core.name}"
            raise InputError([Problem(message, f"plug-in {name}", value=repr(cycles), allowed="whole numbers from 0")])
        found.append(cycles)
    return tuple(found)
