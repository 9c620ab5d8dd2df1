"""Ledger of a mapping: energy and latency as ordered, named terms that sum to the total.

The code that makes a term names it; all other code iterates over the terms of a record or of a summary.
"""

import math
from collections.abc import Mapping
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.hardware.array_model import MAC

ACCESSES = "memory"
"""Energy term of memory accesses; `energy_breakdown_pj` splits it by operand, memory and direction."""
LATENCY_TERMS = ("ideal", "spatial_stall", "temporal_stall", "onloading", "offloading", "drain")
ARRAYS = "arrays"
"""Energy term of the arrays of all cores, in a run of several cores."""
ENERGY_KEY = "_energy_pj"
"""Suffix of energy terms in files and tables: `<term>_energy_pj`."""
ROUNDING = 1e-9
"""Relative tolerance between sums of the same numbers in different orders."""
_WORDS = {MAC: "MAC", "spatial_stall": "spatial stall", "temporal_stall": "temporal stall"} | {
    "onloading": "on-loading",
    "offloading": "off-loading",
    "dacs": "DACs",
    "adcs": "ADCs",
    "mults": "multipliers",
    "analog_bl_addition": "addition on bit lines",
    "adders_regular": "adder trees",
    "adders_pv": "place-value adders",
}


def term_words(term: str) -> str:
    """Words that output shows for a term."""
    return _WORDS.get(term, term.replace("_", " "))


def term_phrase(term: str) -> str:
    """Phrase that names, in a sentence, what consumes the energy of a term."""
    return "the array" if term == MAC else term_words(term)


def agree(one: float, other: float) -> bool:
    """True if a total and the sum of its parts differ by rounding only."""
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def energy_columns(terms: Mapping[str, float]) -> dict[str, float]:
    """Energy terms in pJ as fields of a file or columns of a table."""
    return {f"{term}{ENERGY_KEY}": energy for term, energy in terms.items()}


def energy_terms(row: Mapping[str, Any]) -> dict[str, float]:
    """Energy terms in pJ, read from the fields of a file or the columns of a table."""
    return {key.removesuffix(ENERGY_KEY): value for key, value in row.items() if _is_term(key)}


def without_terms(row: Mapping[str, Any]) -> JsonObject:
    """Fields of a row that are not energy terms."""
    return {key: value for key, value in row.items() if not _is_term(key)}


def on_core_terms(energy: Mapping[str, Any]) -> dict[str, float]:
    """Energy terms in pJ on cores, from the table `energy` of a summary: arrays, memories by name, further terms."""
    memories = {in_cores(name): value for name, value in energy["on_core_memory_pj"].items()}
    further = {term_words(name): value for name, value in energy.get("on_core_terms_pj", {}).items()}
    return {ARRAYS: float(energy["on_core_operational_pj"])} | memories | further


def in_cores(memory: str) -> str:
    """Words that output shows for a memory inside cores."""
    return f"{memory}, in cores"


def _is_term(key: str) -> bool:
    return key.endswith(ENERGY_KEY) and key != f"corrected{ENERGY_KEY}"
