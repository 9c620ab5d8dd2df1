"""Table of the errors of predicted latencies, by class of machines and by the limit of a layer.

The file `errors.csv` has quantiles of log(measured / predicted), and no measurements.
`tilewright_evidence.court.error_table` makes it from the sets of measurements (docs/accuracy/error-bars.md).
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.cost.waiting import WAITING_TERMS
from tilewright.results.bottlenecks import ARRAY, CAUSE_OF_TERM, IDLE_UNITS, MOVING_DATA, WAITING
from tilewright.search.options import MACHINE_CLASSES, MACHINES

Values = npt.NDArray[np.float64]
TABLE = Path(__file__).with_name("errors.csv")
"""File with the table of errors."""
HOST_DRIVEN, SEQUENCED, MANY_CORE, ROW_STATIONARY, ANY = MACHINE_CLASSES
LIMITS = (ARRAY, MOVING_DATA, WAITING)
"""Kinds of causes that can limit a layer. They are those that `explain` names, but idle units count as ARRAY."""
PROGRAM, MACHINE, OWN, WHOLE = "program", "machine", "row", "whole"
"""Parts of an error. PROGRAM: part that all machines of a class share if they run the same program. MACHINE: further
part that all rows of one machine share. OWN: part of a single row. WHOLE: sum of the parts.
"""
LATENCY, POWER = "latency", "power"
LEVELS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    *(0.975, 0.99, 0.995, 0.9975, 0.999),
)
"""Levels of the quantiles in the table."""
LEAST_ROWS = 5
"""Smallest number of rows for which the errors of a class are used. If a class has fewer rows for a limit (one of
LIMITS), the errors of the class ANY are used for this limit.
"""
_COUNTS = ("machines", "programs", "rows")
HEADINGS = ("quantity", "class", "keys", "limit", "part", "sets", *_COUNTS, *(f"{level:g}" for level in LEVELS))
"""Columns of the table."""
_WITH, _WITHOUT = "with", "without"


class ErrorKey(NamedTuple):
    """Key of the errors in the table."""

    device_class: str
    has_keys: bool
    """True if the predictions come from hardware files that have keys of calls, commands and requests."""
    limit: str
    """Kind of cause that limits the layers, one of LIMITS; '' for all layers."""
    quantity: str = LATENCY


@dataclass(frozen=True, eq=False)
class ErrorCell:
    """Errors of the predictions for one class of machines and one limit: quantiles of log(measured / predicted)."""

    key: ErrorKey
    sets: tuple[str, ...]
    """Names of the sets of measurements."""
    machines: int
    programs: int
    rows: int
    parts: Mapping[str, Values]
    """Quantiles of each part of the error (PROGRAM, MACHINE and OWN, or only WHOLE), at LEVELS."""

    def quantile(self, part: str, level: float) -> float:
        """Quantile of one part of the error at a level between 0 and 1."""
        return float(np.interp(level, LEVELS, self.parts[part]))


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Errors of predictions by class of machines and limit."""

    cells: Mapping[ErrorKey, ErrorCell]

    def cell(self, device_class: str, has_keys: bool, limit: str) -> ErrorCell:
        """Errors of the latency for a class and a limit. If the class has fewer than LEAST_ROWS rows with this limit,
        the errors are those of the class ANY.
        """
        found = self.cells.get(ErrorKey(device_class, has_keys, limit))
        return self.cells[ErrorKey(ANY, has_keys, limit)] if found is None or found.rows < LEAST_ROWS else found

    def power(self, device_class: str) -> ErrorCell | None:
        """Errors of the predicted power of chips of a class; None if the power of no machine of the class was measured.
        The class ANY has the errors of the first class with a measured power.
        """
        found = (cell for key, cell in self.cells.items() if key.quantity == POWER)
        return next((cell for cell in found if device_class in (ANY, cell.key.device_class)), None)


def limit_of(terms: Mapping[str, float]) -> str:
    """Limit of a layer: the kind of cause with the most cycles. `terms` has the terms of the latency in cycles."""
    cycles = dict.fromkeys(LIMITS, 0.0)
    for term, own in terms.items():
        kind = CAUSE_OF_TERM.get(term, MOVING_DATA)
        cycles[ARRAY if kind == IDLE_UNITS else kind] += own
    return max(LIMITS, key=lambda limit: cycles[limit])


def has_waiting(layers: Iterable[Mapping[str, float]]) -> bool:
    """True if a layer waits for calls, commands or requests. `layers` has the terms of the latency of each layer."""
    return any(terms.get(name) for terms in layers for name in WAITING_TERMS)


def check_class(name: str, path: str = "error_bars") -> str:
    """Name of a class of machines. Raises InputError if there is no such class."""
    if name not in MACHINES:
        nearest = nearest_name(name, list(MACHINES))
        allowed = ", ".join(MACHINES)
        raise InputError(
            [Problem("no such class of machines", path=path, value=name, allowed=allowed, nearest=nearest)]
        )
    return name


@cache
def error_table() -> ErrorTable:
    """Table of errors that this package contains."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return table_of(csv.DictReader(file))


def table_of(rows: Iterable[Mapping[str, str]]) -> ErrorTable:
    """Table of errors, made from the rows of its file."""
    found: dict[ErrorKey, ErrorCell] = {}
    for row in rows:
        key = ErrorKey(row["class"], row["keys"] == _WITH, row["limit"], row["quantity"])
        values = np.array([float(row[f"{level:g}"]) for level in LEVELS])
        parts = {**found[key].parts, row["part"]: values} if key in found else {row["part"]: values}
        machines, programs, count = (int(row[name]) for name in _COUNTS)
        found[key] = ErrorCell(key, tuple(row["sets"].split()), machines, programs, count, parts)
    return ErrorTable(found)


def table_rows(cells: Sequence[ErrorCell]) -> list[list[str]]:
    """Rows of the file with a table: the headings, then one row for each part of each cell."""
    rows = [list(HEADINGS)]
    for cell in cells:
        key = cell.key
        names = [key.quantity, key.device_class, _WITH if key.has_keys else _WITHOUT, key.limit]
        counts = [str(count) for count in (cell.machines, cell.programs, cell.rows)]
        for part, values in cell.parts.items():
            numbers = [f"{round(value, 4) + 0.0:.4f}" for value in values.tolist()]
            rows.append([*names, part, " ".join(cell.sets), *counts, *numbers])
    return rows
