"""Measures of designs: columns of results with words and units, parts of energy and latency, values as texts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from tilewright.base.units import PICOJOULES_A_MICROJOULE
from tilewright.cost.ledger import ACCESSES, term_words
from tilewright.designs.columns import ODDS, RESULTS, USES
from tilewright.designs.laws import LARGEST_WHOLE, value_word

OK, INFEASIBLE, INVALID = "ok", "infeasible", "invalid"
"""A design has results; or no mapping of a layer fits it; or it is no accelerator, or none for this network."""
ALL_NETWORKS = "all networks"
"""Word in place of the name of a network: sums over all of them."""


@dataclass(frozen=True)
class Measure:
    """A quantity in words, with the unit that people read it in and how many of the column's units that is."""

    words: str
    unit: str
    scale: float

    @property
    def title(self) -> str:
        """Title with the unit, for an axis or a column."""
        return f"{self.words} [{self.unit}]"


ENERGY, LATENCY = Measure("energy", "µJ", PICOJOULES_A_MICROJOULE), Measure("latency", "cycles", 1.0)
MEASURES: dict[str, Measure] = dict(
    zip(RESULTS, (ENERGY, LATENCY, Measure("EDP", "J cycles", 1e12), Measure("area", "mm²", 1.0)), strict=True)
)
"""What designs can be compared by, by the name of its column; the smaller the better."""
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
"""What is told besides of designs of several cores, by the name of its column."""


def uniform(table: pandas.DataFrame, value_names: Sequence[str]) -> pandas.DataFrame:
    """The table with numbers in all columns of measures, and in columns of values either numbers or texts."""
    changed: dict[str, Any] = {key: pandas.to_numeric(table[key]).astype("float64") for key in MEASURES}
    for name in value_names:
        given = table[name].tolist()
        changed[name] = numbers_or_words(given, given).to_numpy()
    changed |= {key: table[key].fillna("") for key in ("reason", "unmet")}
    return table.assign(**changed).reset_index(drop=True)


def numbers_or_words(given: Sequence[Any], kinds: Sequence[Any]) -> pandas.Series:
    """Values as a column of numbers where all of `kinds` are numbers, else of words; true and false are words.

    Those that an invalid design does not have, None or NaN, are NaN or ''. Whole numbers that are too large for a table
    are floating-point numbers.
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
    """Columns of the parts that the energy is the sum of, with their words: terms, memories in place of theirs."""
    found = dict(_parts(columns, r"energy_(.+)_pj"))
    memories = {column: term for column, term in found.items() if term.startswith(f"{ACCESSES}_")}
    if not memories:
        return {column: term_words(term) for column, term in found.items()}
    others = {column: term_words(term) for column, term in found.items() if column not in memories and term != ACCESSES}
    return others | {column: term.removeprefix(f"{ACCESSES}_") for column, term in memories.items()}


def latency_parts(columns: Sequence[str]) -> dict[str, str]:
    """Columns of the parts of the latency, with their words."""
    return {column: term_words(part) for column, part in _parts(columns, r"latency_(.+)_cycles")}


def measure_text(key: str, value: float) -> str:
    """A value of a column of MEASURES in the unit for people; "not given" for NaN."""
    if value != value:
        return "not given"
    scaled = value / MEASURES[key].scale
    return f"{scaled:,.0f}" if abs(scaled) >= 1e4 else f"{scaled:,.4g}"


def value_text(value: Any) -> str:
    """A value of a design as text, whole numbers without a decimal point and none with separators."""
    if isinstance(value, str | bool | np.bool_):
        return value_word(_plain(value))
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.6g}"


def _parts(columns: Sequence[str], pattern: str) -> Iterator[tuple[str, str]]:
    for column in columns:
        if column not in ODDS and (match := re.fullmatch(pattern, column)):
            yield column, match[1]
