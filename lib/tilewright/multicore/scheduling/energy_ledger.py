"""Ledger of the energy of a schedule: ordered, named terms that sum to the total, and their words.

What adds up, checks, tabulates or draws the energy of schedules iterates over the terms; only who makes a term names
it (`energy_terms`). `cost.ledger` has the same of a layer.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tilewright.cost.ledger import term_words

CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")
"""Why data moves; in logs and counts a cause is its position, which `state_record` names."""


ON_CORE = "on_core"
"""The term of all that computation nodes cost on their cores, as the cost table has it."""


_WORDS = {
    ON_CORE: "on core",
    "off_chip_fetch": "fetched from off-chip",
    "core_to_core": "between cores",
    "eviction": "evictions",
    "sink_output": "outputs",
    "off_chip_stream": "streams",
}


READING_ORDER = tuple(_WORDS)
"""The order in which people are shown the terms; further ones come last."""


class CauseEnergy(NamedTuple):
    """A term of two parts: the energy of the data that moved for one cause."""

    link_pj: float
    memory_pj: float


TermEnergy = float | CauseEnergy


EnergyTerms = dict[str, TermEnergy]
"""Term -> energy, in the order in which they add up: ON_CORE, those of CAUSES, the entered ones."""


def term_pj(energy: TermEnergy) -> float:
    """The energy of a term."""
    return sum(energy) if isinstance(energy, CauseEnergy) else energy


def total_pj(terms: EnergyTerms) -> float:
    """The sum of all terms."""
    first, *others = map(term_pj, terms.values())
    return first + sum(others)


def moved_pj(terms: EnergyTerms) -> float:
    """The sum of the terms of data that moves."""
    return sum(sum(energy) for energy in terms.values() if isinstance(energy, CauseEnergy))


def further_terms(terms: EnergyTerms) -> dict[str, float]:
    """The entered terms."""
    singles = {name: energy for name, energy in terms.items() if not isinstance(energy, CauseEnergy)}
    return {name: energy for name, energy in singles.items() if name != ON_CORE}


def term_parts(terms: EnergyTerms) -> Iterator[tuple[str, str, float]]:
    """(term, part, energy) of all numbers; the part is '' where the term is one number, else `link` or `memory`."""
    for name, energy in terms.items():
        if isinstance(energy, CauseEnergy):
            yield from ((name, field.removesuffix("_pj"), value) for field, value in energy._asdict().items())
        else:
            yield name, "", energy


def words_of(term: str) -> str:
    """What people read for a term."""
    return _WORDS.get(term, term_words(term))


def in_reading_order(terms: EnergyTerms) -> EnergyTerms:
    """The terms in READING_ORDER."""
    return {name: terms[name] for name in dict.fromkeys((*READING_ORDER, *terms)) if name in terms}


def terms_of_summary(energy: Mapping[str, Any]) -> EnergyTerms:
    """The terms from the table `energy` of a summary."""
    return terms_of_parts({ON_CORE: energy["on_core_pj"], **energy["causes"], **energy.get("terms_pj", {})})


def terms_of_parts(parts: Mapping[str, Any]) -> EnergyTerms:
    """The terms from their form in a file: a number, or an object with the numbers of a cause."""
    return {
        name: CauseEnergy(energy["link_pj"], energy["memory_pj"]) if isinstance(energy, Mapping) else energy
        for name, energy in parts.items()
    }
