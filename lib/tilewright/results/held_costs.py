"""Texts on two parts of an energy: the part from costs with a range, and the part from costs without a range.

Costs with a range vary in samples; costs without a range stay the same. Each share of samples is therefore printed
together with one of these texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.base.measures import ENERGY_PJ
from tilewright.cost.ledger import ACCESSES, ROUNDING, energy_terms, named_terms, term_words
from tilewright.results.text_tables import share_text
from tilewright.results.uncertainty import UncertainRun
from tilewright.search.cost_ranges import CostPart

ARRAYS = "arrays"
REST, REST_OF_SYSTEM = "memories without a range", "memories and links without a range"
REST_OF_TOTAL = "all other energy"
"""Name for all energy that comes from costs without a range, if only the total energy is known."""


def ranged_pj(run: UncertainRun) -> float:
    """Part of a run's energy that comes from costs with a range, in pJ."""
    return sum(part.energy_pj for part in run.parts)


def held_text(energy_pj: float, ranged: float, named_pj: Mapping[str, float], rest: str = REST) -> str:
    """Text on those parts of an energy whose costs have no range, with their shares of the energy. The largest part
    comes first.

    `ranged` is the energy in pJ whose costs have a range. `named_pj` has the energies, in pJ, of parts without a range,
    by the name of the part. `rest` is the name for all other energy without a range. The result is '' if all costs have
    a range.
    """
    left = energy_pj - ranged - sum(named_pj.values())
    parts = {words: part for words, part in named_pj.items() if part > 0}
    if left > ROUNDING * energy_pj:
        parts[rest] = left
    ordered = sorted(parts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{words} {share_text(part, energy_pj)}" for words, part in ordered)


def held_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Line on the costs with a range and on the energy without a range, from the summary of a run. There is no line if
    no costs have a range.
    """
    parts = [CostPart(**part) for part in summary["cost_ranges"]["parts"]]
    if not parts:
        return
    energy = summary[ENERGY_PJ]
    ranged = sum(part.energy_pj for part in parts)
    held = held_text(energy, ranged, *_named_pj(summary))
    told = f"; without a range, and held constant: {held}" if held else ""
    factors = dict.fromkeys(f"{part.law} ({part.low:.3g} to {part.high:.3g} times the cost used)" for part in parts)
    yield f"costs with a range: {', '.join(factors)}, {share_text(ranged, energy)} of the energy{told}"


def laws_text(parts: Sequence[CostPart]) -> str:
    """Names of the cost laws with a range; each name occurs once."""
    return ", ".join(dict.fromkeys(part.law for part in parts))


def _named_pj(summary: Mapping[str, Any]) -> tuple[dict[str, float], str]:
    """Pair (energies, rest). `energies` has the energy in pJ of each part that never has a range, by name of the part;
    memories and links are not among these parts. `rest` is the name for all other energy without a range.
    """
    if "energy" not in summary:
        terms = energy_terms(summary)
        if ACCESSES not in terms:
            return {}, REST_OF_TOTAL
        return {term_words(term): pj for term, pj in terms.items() if term != ACCESSES}, REST
    energy = summary["energy"]
    found = {ARRAYS: float(energy["on_core_operational_pj"])}
    for term, pj in named_terms(summary).items():
        found[term_words(term)] = found.get(term_words(term), 0.0) + pj
    return found, REST_OF_SYSTEM
