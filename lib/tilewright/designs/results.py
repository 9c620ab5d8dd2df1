"""Measures of designs: columns of results with names and units for readers, columns for the parts of energy and
latency, and texts for values.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from tilewright.base.measures import AREA_MM2, EDP_PJ_S, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.base.objectives import DECISIONS
from tilewright.base.units import PICOJOULES_A_MICROJOULE, number_text
from tilewright.cost.ledger import ACCESSES, term_words
from tilewright.designs.columns import (
    ACCESS_CYCLES,
    ACCESS_NS,
    EXTRAPOLATED,
    ODDS,
    PLAN_GAPS,
    RESULTS,
    SLOW_MEMORIES,
    USES,
)
from tilewright.designs.laws import LARGEST_WHOLE, value_word

OK, INFEASIBLE, INVALID, DROPPED = "ok", "infeasible", "invalid", "dropped"
"""Status of a design.

OK: the design has results. INFEASIBLE: no mapping fits for at least one layer. INVALID: the design is not a valid
accelerator, or it is not valid for this network. DROPPED: the design is not searched, because the results of another
design dominate its lower bounds.
"""
ALL_NETWORKS = "all networks"
"""Name in place of a network's name, for sums over all networks."""
SUMMED = "All networks: energies, latencies and EDPs are added up; the area is counted only once."
"""Sentence that says how the sums over all networks are made."""

EDP_SUMMED = "EDP of all networks: sum of the EDPs of the networks, not the product of energy and latency in its row."
"""Note at each table that has energy, latency and EDP of all networks together."""


def file_word(network: str) -> str:
    """Name of a network as a part of the names of its files."""
    return network.replace("/", "_").replace(" ", "_")


@dataclass(frozen=True)
class Measure:
    """Measure of a design, with its name and unit for readers. A value in the column of the measure, divided by
    `scale`, has this unit.
    """

    words: str
    unit: str
    scale: float

    @property
    def title(self) -> str:
        """Title with the unit, for a figure axis or a column."""
        return f"{self.words} [{self.unit}]"

    def text(self, value: float) -> str:
        """Text of a value in the unit for readers, without the name of this unit. `value` is in the unit of the column.
        The text for NaN is "not given".
        """
        if value != value:
            return "not given"
        return number_text(value / self.scale)


_UNITS = {
    "energy": ("µJ", PICOJOULES_A_MICROJOULE),
    "latency": ("cycles", 1.0),
    "EDP": ("J cycles", 1e12),
    "area": ("mm²", 1.0),
}
MEASURES: dict[str, Measure] = {
    column: Measure(name, *_UNITS[name]) for column, name in zip(RESULTS, DECISIONS, strict=True)
}
"""Measures of designs with equal clocks, by column. Smaller values are better."""
ENERGY, LATENCY = MEASURES[ENERGY_PJ], MEASURES[LATENCY_CYCLES]
_PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"), (1e-15, "f"))
_JOULE_PJ = 1e12
USE_MEASURES: dict[str, Measure] = dict(
    zip(
        USES,
        (
            Measure("peak of memories", "KiB", 8192.0),
            Measure("fullest memory", "%", 0.01),
            Measure("fullest link", "%", 0.01),
        ),
        strict=True,
    )
)
"""Further measures of designs with several cores, by column."""
USE_MEASURES |= {
    ACCESS_NS: Measure("longest access", "ns", 1.0),
    ACCESS_CYCLES: Measure("longest access", "cycles", 1.0),
}
"""Longest access times of memories, by column."""
USE_MEASURES |= {
    column: Measure(f"gap of {words}", "%", 0.01)
    for column, words in zip(PLAN_GAPS, ("energy", "latency", "EDP"), strict=True)
}


def order_of_ties(measure: str, known: Sequence[str]) -> list[str]:
    """Columns by which designs are sorted to find the best in a measure. Among equal designs, the other known measures
    decide, in the order energy, latency, EDP, area, and then the index of the design.
    """
    return [measure, *(one for one in known if one != measure), "index"]


def measures_in_time(table: pandas.DataFrame) -> dict[str, Measure]:
    """Measures of designs with different clocks, in the order of MEASURES.

    Latency and EDP have the largest unit in which no value of the table is below 1.
    """
    return {
        ENERGY_PJ: ENERGY,
        LATENCY_S: _prefixed("time", "s", 1.0, table[LATENCY_S]),
        EDP_PJ_S: _prefixed("EDP", "J s", _JOULE_PJ, table[EDP_PJ_S]),
        AREA_MM2: MEASURES[AREA_MM2],
    }


def _prefixed(words: str, unit: str, scale: float, values: pandas.Series) -> Measure:
    """Measure in the largest unit in which no value is below 1."""
    least = values[values > 0].min()
    factor, prefix = next((one for one in _PREFIXES if least >= one[0] * scale), _PREFIXES[-1])
    return Measure(words, f"{prefix}{unit}", factor * scale)


def uniform(table: pandas.DataFrame, value_names: Sequence[str]) -> pandas.DataFrame:
    """Table in which the columns of measures have only numbers, and each column of `value_names` has either only
    numbers or only texts.
    """
    changed: dict[str, Any] = {key: pandas.to_numeric(table[key]).astype("float64") for key in MEASURES}
    for name in value_names:
        given = table[name].tolist()
        changed[name] = numbers_or_words(given, given).to_numpy()
    texts = ("reason", "unmet", *(key for key in (SLOW_MEMORIES, EXTRAPOLATED) if key in table))
    changed |= {key: table[key].fillna("") for key in texts}
    return table.assign(**changed).reset_index(drop=True)


def numbers_or_words(given: Sequence[Any], kinds: Sequence[Any]) -> pandas.Series:
    """Column with the values `given`. The column has numbers if all values in `kinds` are numbers; otherwise, it has
    texts. In `kinds`, true and false count as texts, and missing values (None or NaN) are ignored.

    Invalid designs have missing values in `given`. A missing value becomes NaN in a column of numbers, and '' in a
    column of texts. If a value in `kinds` is too large for an integer column, all numbers become floating-point
    numbers.
    """
    known = [value for value in kinds if not _is_nothing(value)]
    if any(isinstance(value, str | bool | np.bool_) for value in known):
        words = ["" if _is_nothing(value) else value_word(_plain(value)) for value in given]
        return pandas.Series(words, dtype=object)
    is_large = any(abs(value) > LARGEST_WHOLE for value in known)
    numbers = [np.nan if _is_nothing(value) else float(value) if is_large else value for value in given]
    return pandas.Series(numbers, dtype=None if numbers else float)


def _is_nothing(value: Any) -> bool:
    return value is None or value != value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def energy_parts(columns: Sequence[str]) -> dict[str, str]:
    """Names, for readers, of the parts of the energy, by column. If the energy of accesses is known for each memory,
    the columns of the single memories replace the column of all memory accesses.
    """
    found = dict(_parts(columns, r"energy_(.+)_pj"))
    memories = {column: term for column, term in found.items() if term.startswith(f"{ACCESSES}_")}
    if not memories:
        return {column: term_words(term) for column, term in found.items()}
    others = {column: term_words(term) for column, term in found.items() if column not in memories and term != ACCESSES}
    return others | {column: term.removeprefix(f"{ACCESSES}_") for column, term in memories.items()}


def latency_parts(columns: Sequence[str]) -> dict[str, str]:
    """Names, for readers, of the parts of the latency, by column."""
    return {column: term_words(part) for column, part in _parts(columns, r"latency_(.+)_cycles")}


def value_text(value: Any) -> str:
    """Value of a design as text. Integers have no decimal point, and numbers have no thousands separators."""
    if isinstance(value, str | bool | np.bool_):
        return value_word(_plain(value))
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.6g}"


def _parts(columns: Sequence[str], pattern: str) -> Iterator[tuple[str, str]]:
    for column in columns:
        if column not in ODDS and (match := re.fullmatch(pattern, column)):
            yield column, match[1]
