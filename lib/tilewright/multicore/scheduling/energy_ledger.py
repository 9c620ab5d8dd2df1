"""Ledger of the energy of a schedule: ordered, named terms that sum to the total, and their labels.

Code that adds, checks, tabulates or draws energies iterates over all terms. Only the code that computes a term mentions
the name of the term (`energy_terms`). `cost.ledger` is the corresponding ledger of a layer.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tilewright.cost.ledger import term_words

CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")
"""Causes of data movement. Logs and counts store a cause as its position in this tuple; `state_record` has a constant
for each of these positions.
"""


ON_CORE = "on_core"
"""Name of the energy term for computation. It is the energy of all computation nodes on their cores, from the cost
table.
"""


_WORDS = {
    ON_CORE: "on core",
    "off_chip_fetch": "fetched from off-chip",
    "core_to_core": "between cores",
    "eviction": "evictions",
    "sink_output": "outputs",
    "off_chip_stream": "streams",
}


READING_ORDER = tuple(_WORDS)
"""Order of energy terms in output for users. Terms that are not listed here come last."""


class CauseEnergy(NamedTuple):
    """Energy of all data movement with one cause, in two parts: links and memories."""

    link_pj: float
    memory_pj: float


TermEnergy = float | CauseEnergy


EnergyTerms = dict[str, TermEnergy]
"""Energy term by name, in pJ. The terms are in the order in which they are added: ON_CORE, the terms of CAUSES, further
terms.
"""


def term_pj(energy: TermEnergy) -> float:
    """Energy of a term in pJ. For a cause of movement, the energies of links and memories are added."""
    return sum(energy) if isinstance(energy, CauseEnergy) else energy


def total_pj(terms: EnergyTerms) -> float:
    """Energy of all terms together, in pJ."""
    first, *others = map(term_pj, terms.values())
    return first + sum(others)


def moved_pj(terms: EnergyTerms) -> float:
    """Energy of all data movement in pJ."""
    return sum(sum(energy) for energy in terms.values() if isinstance(energy, CauseEnergy))


def further_terms(terms: EnergyTerms) -> dict[str, float]:
    """Further terms: all terms that are neither ON_CORE nor a cause of movement."""
    singles = {name: energy for name, energy in terms.items() if not isinstance(energy, CauseEnergy)}
    return {name: energy for name, energy in singles.items() if name != ON_CORE}


def term_parts(terms: EnergyTerms) -> Iterator[tuple[str, str, float]]:
    """Triples (term, part, energy in pJ), one for each number in the terms. The part is `link` or `memory` for a cause
    of movement, else ''.
    """
    for name, energy in terms.items():
        if isinstance(energy, CauseEnergy):
            yield from ((name, field.removesuffix("_pj"), value) for field, value in energy._asdict().items())
        else:
            yield name, "", energy


def words_of(term: str) -> str:
    """Label of an energy term in output for users."""
    return _WORDS.get(term, term_words(term))


def in_reading_order(terms: EnergyTerms) -> EnergyTerms:
    """Energy terms in READING_ORDER."""
    return {name: terms[name] for name in dict.fromkeys((*READING_ORDER, *terms)) if name in terms}


def terms_of_summary(energy: Mapping[str, Any]) -> EnergyTerms:
    """Energy terms from the table `energy` of a run's summary."""
    return terms_of_parts({ON_CORE: energy["on_core_pj"], **energy["causes"], **energy.get("terms_pj", {})})


def terms_of_parts(parts: Mapping[str, Any]) -> EnergyTerms:
    """Energy terms from their form in files. In a file, a term for a cause of data movement is an object with the
    numbers `link_pj` and `memory_pj`. Any other term is a single number.
    """
    return {
        name: CauseEnergy(energy["link_pj"], energy["memory_pj"]) if isinstance(energy, Mapping) else energy
        for name, energy in parts.items()
    }
