"""Results of a space of designs: rows, columns, and Parquet files that say what they were made of."""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet

from tilewright.artifacts.digests import canonical_text
from tilewright.artifacts.files import write_atomically
from tilewright.artifacts.seals import read_sealed, sealed_parquet
from tilewright.cost.ledger import ACCESSES, term_words
from tilewright.errors import ArtifactError, InputError, Problem
from tilewright.exploration.columns import ODDS, RESULTS, USES
from tilewright.exploration.laws import LARGEST_WHOLE, value_word
from tilewright.units import PICOJOULES_A_MICROJOULE

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


@dataclass(frozen=True, eq=False)
class Exploration:
    """The results of a space, and what they rest on."""

    name: str
    axis_names: tuple[str, ...]
    """What is varied."""
    law_names: tuple[str, ...]
    """What follows from that by the laws of the space."""
    objectives: tuple[str, ...]
    """Columns that designs are compared by, of MEASURES."""
    networks: tuple[str, ...]
    assumptions: tuple[str, ...]
    """What a comparison takes for granted, a sentence each: model, search, where data are between layers."""
    table: pandas.DataFrame
    """One row for each design and network, by index of the design, then in the order of the networks.

    `index`, `design`, the values, `network`, `status`, `reason`, the columns of MEASURES, `energy_<term>_pj`,
    `energy_memory_<memory>_pj`, `latency_<part>_cycles`, and `unmet`: the constraint on results that is not met, or ''.
    """
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Designs that a constraint excludes before anything is evaluated, which have no rows, by constraint."""
    missing: int = 0
    """Designs that are not evaluated yet, or not as the space says now, and have no rows."""
    settled: int = 0
    """Designs that are on no front, as a certificate tells, and have no rows."""
    notices: tuple[str, ...] = ()
    """What was written and not used."""
    others: pandas.DataFrame | None = None
    """What came of all designs that were evaluated, where `table` has some of them alone: `index`, `network`, `status`,
    `reason` and `unmet`, a row for each design and network."""

    @property
    def outcomes(self) -> pandas.DataFrame:
        """What came of every design that was evaluated, for each network: columns as in `others`."""
        return self.table if self.others is None else self.others

    def compared_count(self, network: str) -> int:
        """Designs that have results and meet all constraints, for a network or for every one of them."""
        rows = self.outcomes
        if network != ALL_NETWORKS:
            rows = rows[rows["network"] == network]
        is_compared = (rows["status"] == OK) & (rows["unmet"] == "")
        return int(is_compared.groupby(rows["index"]).all().sum())

    @property
    def value_names(self) -> tuple[str, ...]:
        """The values of a design: axes, then laws."""
        return self.axis_names + self.law_names


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


_METADATA = b"tilewright"


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """A table of results. Raises ArtifactError for a file that is damaged."""
    try:
        return pandas.read_parquet(io.BytesIO(read_sealed(path)), columns=None if columns is None else list(columns))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise ArtifactError([Problem(f"cannot be read as a table of results: {error}", str(path))]) from None


def write_stamped(path: Path, table: pandas.DataFrame, said: Mapping[str, Any]) -> None:
    """Write a table with what is said of it, `schema` and `digest` among it; equal content gives equal bytes."""
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    metadata = {**(arrow.schema.metadata or {}), _METADATA: canonical_text(said).encode()}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(arrow.replace_schema_metadata(metadata), buffer, compression="zstd")
    write_atomically(path, sealed_parquet(buffer.getvalue()))


def read_stamped(path: Path, schema: str) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """A table and what is said of it. Raises InputError for a file that is damaged or something else."""
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(read_sealed(path)))
        said = _said(table.schema, schema)
    except ArtifactError as error:
        raise InputError(error.problems) from None
    except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: not a file of {schema}, or damaged: {error}") from None
    return table.to_pandas(), said


def digest_in(path: Path, schema: str) -> str:
    """The digest that a file says; '' where it is not there, damaged or something else."""
    try:
        content = io.BytesIO(read_sealed(path))
        return str(_said(pyarrow.parquet.read_schema(content), schema)["digest"])
    except (ArtifactError, OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException):
        return ""


def _said(schema: pyarrow.Schema, name: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((schema.metadata or {})[_METADATA])
    if said["schema"] != name:
        raise ValueError("another kind of file")
    return said
