"""The ledger of a mapping: energy and latency as ordered, named terms that sum to the total.

Who makes a term names it; everyone else iterates over the terms of a record or of a summary.
"""

import math
from collections.abc import Mapping
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.hardware.array_model import MAC

ACCESSES = "memory"
"""The energy term of memory accesses; `energy_breakdown_pj` says of which operand, memory and direction."""
LATENCY_TERMS = ("ideal", "spatial_stall", "temporal_stall", "onloading", "offloading", "drain")
ARRAYS = "arrays"
"""The energy of all arrays of several cores."""
ENERGY_KEY = "_energy_pj"
"""A term of the energy is `<term>_energy_pj` in files and tables."""
ROUNDING = 1e-9
"""Relative: how far sums of the same numbers, added up in another order, may differ."""
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
    """What people read for a term."""
    return _WORDS.get(term, term.replace("_", " "))


def term_phrase(term: str) -> str:
    """What a term is of, in a sentence."""
    return "the array" if term == MAC else term_words(term)


def agree(one: float, other: float) -> bool:
    """Whether a total and its parts are the same but for rounding."""
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def energy_columns(terms: Mapping[str, float]) -> dict[str, float]:
    """The terms of an energy as fields of a file or columns of a table."""
    return {f"{term}{ENERGY_KEY}": energy for term, energy in terms.items()}


def energy_terms(row: Mapping[str, Any]) -> dict[str, float]:
    """The terms of an energy from the fields of a file or the columns of a table."""
    return {key.removesuffix(ENERGY_KEY): value for key, value in row.items() if _is_term(key)}


def without_terms(row: Mapping[str, Any]) -> JsonObject:
    """What a row has besides the terms of its energy."""
    return {key: value for key, value in row.items() if not _is_term(key)}


def on_core_terms(energy: Mapping[str, Any]) -> dict[str, float]:
    """The terms of the energy on cores, of the table `energy` of a summary: arrays, memories by name, further ones."""
    memories = {in_cores(name): value for name, value in energy["on_core_memory_pj"].items()}
    further = {term_words(name): value for name, value in energy.get("on_core_terms_pj", {}).items()}
    return {ARRAYS: float(energy["on_core_operational_pj"])} | memories | further


def in_cores(memory: str) -> str:
    """What people read for a memory of cores."""
    return f"{memory}, in cores"


def _is_term(key: str) -> bool:
    return key.endswith(ENERGY_KEY) and key != f"corrected{ENERGY_KEY}"
