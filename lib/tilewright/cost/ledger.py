"""Energy and latency of a mapping as named terms in a fixed order, which add up to the totals.

Only the code that computes a term contains the name of the term. All other code iterates over the terms of a record or
of a summary.
"""

import math
from collections.abc import Mapping
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.hardware.array_model import MAC

ACCESSES = "memory"
"""Name of the energy term of memory accesses. `energy_breakdown_pj` splits this energy by operand, memory level and
direction."""
LATENCY_TERMS = ("ideal", "spatial_stall", "temporal_stall", "onloading", "offloading", "drain")
ARRAYS = "arrays"
"""Name of the energy term for the arrays of all cores, in a run on several cores."""
ENERGY_KEY = "_energy_pj"
"""Suffix of the names of energy terms in files and tables: `<term>_energy_pj`."""
TERMS_PJ = "energy_terms_pj"
"""Field of `fusion.json` with the energies in pJ of the terms of plug-ins and of static power, by name of the term."""
ROUNDING = 1e-9
"""Relative tolerance in comparisons of two sums of the same numbers. The order of addition can differ between the
sums."""
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
    """Text that names an energy term or a latency term in output for users."""
    return _WORDS.get(term, term.replace("_", " "))


def term_phrase(term: str) -> str:
    """Phrase that names the consumer of an energy term, for use in a sentence."""
    return "the array" if term == MAC else term_words(term)


def agree(one: float, other: float) -> bool:
    """True if a total and the sum of its parts differ only by rounding errors."""
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def energy_columns(terms: Mapping[str, float]) -> dict[str, float]:
    """Energies by column: name of a field or column (`<term>_energy_pj`) -> energy of the term in pJ."""
    return {f"{term}{ENERGY_KEY}": energy for term, energy in terms.items()}


def energy_terms(row: Mapping[str, Any]) -> dict[str, float]:
    """Energies by term in pJ, read from the fields of a file or the columns of a table."""
    return {key.removesuffix(ENERGY_KEY): value for key, value in row.items() if _is_term(key)}


def without_terms(row: Mapping[str, Any]) -> JsonObject:
    """Fields of a row except its energy terms."""
    return {key: value for key, value in row.items() if not _is_term(key)}


def on_core_terms(energy: Mapping[str, Any]) -> dict[str, float]:
    """Energies in pJ of the consumers inside the cores: the arrays, each memory, and the further energy terms, by name.
    `energy` is the table `energy` of a summary."""
    memories = {in_cores(name): value for name, value in energy["on_core_memory_pj"].items()}
    further = {term_words(name): value for name, value in energy.get("on_core_terms_pj", {}).items()}
    return {ARRAYS: float(energy["on_core_operational_pj"])} | memories | further


def named_terms(summary: Mapping[str, Any]) -> dict[str, float]:
    """Energies in pJ of the terms that a summary names. On several cores, these are all terms except arrays, memories
    and moved data. A term of cores and a term of schedules with the same name are added."""
    if TERMS_PJ in summary:
        return dict(summary[TERMS_PJ])
    if "energy" not in summary:
        return energy_terms(summary)
    found: dict[str, float] = {}
    for kind in ("on_core_terms_pj", "terms_pj"):
        for name, energy in summary["energy"].get(kind, {}).items():
            found[name] = found.get(name, 0.0) + energy
    return found


def in_cores(memory: str) -> str:
    """Text for users that names a memory and says that it is inside the cores."""
    return f"{memory}, in cores"


def _is_term(key: str) -> bool:
    return key.endswith(ENERGY_KEY) and key != f"corrected{ENERGY_KEY}"
