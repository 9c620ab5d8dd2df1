"""Table of the errors of predictions, made from the rows of the sets (docs/accuracy.md#error-bars).

`python -m tilewright_evidence.court.error_table FOLDER` writes the table of the package from the full sets in FOLDER.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from pathlib import Path

import numpy as np
import pandas
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.errors import InputError, Problem
from tilewright.base.harmless import csv_text
from tilewright.results.error_bars.table import (
    ANY,
    LATENCY,
    LEVELS,
    MACHINE,
    OWN,
    PROGRAM,
    TABLE,
    WHOLE,
    ErrorCell,
    ErrorKey,
    ErrorTable,
    Values,
    table_rows,
)

from tilewright_evidence.court.error_rows import ErrorRow, error_rows
from tilewright_evidence.court.verb import accuracy

PRIOR = 3
"""Weight of the effects in all classes when those in one class are estimated, as a number of effects."""


def error_table_of(rows: Sequence[ErrorRow]) -> ErrorTable:
    """Table of the errors of `rows`, with a cell for each class, kind of prediction and limit, and for all classes
    together.
    """
    return ErrorTable({cell.key: cell for cell in error_cells(rows)})


def error_cells(rows: Sequence[ErrorRow]) -> list[ErrorCell]:
    """Cells of the table, in the order of the file: the classes by name, then all classes together."""
    latencies = [row for row in rows if row.quantity == LATENCY]
    pooled = [replace(row, device_class=ANY) for row in latencies]
    found = [cell for own in (latencies, pooled) for cell in _latency_cells(own)]
    others = [row for row in rows if row.quantity != LATENCY]
    return found + [_whole_cell(key, own) for key, own in _by_key(others)]


@dataclass(frozen=True)
class _Effects:
    """Effects of programs and machines in the rows of one class and limit, from the median error of each pair of a
    program and a machine.
    """

    medians: Mapping[tuple[str, str], float]
    """(program, machine) -> median of the errors of its rows."""

    @property
    def programs(self) -> dict[str, float]:
        """Program -> mean of the medians of its machines."""
        found: dict[str, list[float]] = {}
        for (program, _), median in self.medians.items():
            found.setdefault(program, []).append(median)
        return {program: float(np.mean(own)) for program, own in found.items()}

    @property
    def centre(self) -> float:
        """Mean of the programs."""
        return float(np.mean(list(self.programs.values())))

    @property
    def of_programs(self) -> list[float]:
        """Deviations of the programs from their mean, as those of a program that is not among them."""
        programs = list(self.programs.values())
        return _deviations(programs, sqrt(1 + 1 / len(programs)))

    @property
    def of_machines(self) -> list[float]:
        """Deviations of the machines from the mean of their program."""
        found: dict[str, list[float]] = {}
        for (program, _), median in self.medians.items():
            found.setdefault(program, []).append(median)
        return [deviation for own in found.values() for deviation in _deviations(own, 1.0)]


def _deviations(values: Sequence[float], factor: float) -> list[float]:
    """Deviations of values from their mean, times `factor`. They are scaled up as the standard deviation of a sample
    is. [] for a single value.
    """
    count, mean = len(values), float(np.mean(values))
    return [factor * (value - mean) * sqrt(count / (count - 1)) for value in values] if count > 1 else []


def _latency_cells(rows: Sequence[ErrorRow]) -> Iterator[ErrorCell]:
    grouped = [(key, own, _effects(own)) for key, own in _by_key(rows)]
    for has_keys in (True, False):
        alike = [one for one in grouped if one[0].has_keys == has_keys]
        programs = [deviation for _, _, effects in alike for deviation in effects.of_programs]
        machines = [deviation for _, _, effects in alike for deviation in effects.of_machines]
        for key, own, effects in alike:
            parts = {
                PROGRAM: effects.centre + _shared_quantiles(effects.of_programs, programs),
                MACHINE: _shared_quantiles(effects.of_machines, machines),
                OWN: _own_quantiles(own, effects.medians),
            }
            yield _cell(key, own, parts)


def _shared_quantiles(own: Sequence[float], known: Sequence[float]) -> Values:
    """Quantiles of a part that rows share, from its values in one class and limit, and from those in all of them.

    The values of all classes together count as PRIOR values. Each value counts with both signs, because the order of
    two machines is arbitrary.
    """
    if not known:
        raise InputError([Problem("errors of several machines and programs are needed, to know how far they differ")])
    values = np.array([*own, *known])
    weights = np.array([*np.ones(len(own)), *np.full(len(known), PRIOR / len(known))])
    return widened_quantiles(np.concatenate([values, -values]), np.concatenate([weights, weights]))


def _effects(rows: Sequence[ErrorRow]) -> _Effects:
    errors: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        errors.setdefault((row.program, row.machine), []).append(row.error)
    return _Effects({key: float(np.median(own)) for key, own in errors.items()})


def _own_quantiles(rows: Sequence[ErrorRow], medians: Mapping[tuple[str, str], float]) -> Values:
    """Quantiles of the errors around the median of their program and machine. Each pair of a program and a machine
    counts by the square root of its number of rows, so that a large set does not hide the others.
    """
    counts = {key: sum((row.program, row.machine) == key for row in rows) for key in medians}
    places = [(row.program, row.machine) for row in rows]
    errors = np.array([row.error - medians[place] for row, place in zip(rows, places, strict=True)])
    return widened_quantiles(errors, np.array([1 / sqrt(counts[place]) for place in places]))


def _whole_cell(key: ErrorKey, rows: Sequence[ErrorRow]) -> ErrorCell:
    errors = np.array([row.error for row in rows])
    return _cell(key, rows, {WHOLE: widened_quantiles(errors, np.ones(len(errors)))})


def _cell(key: ErrorKey, rows: Sequence[ErrorRow], parts: Mapping[str, Values]) -> ErrorCell:
    sets = tuple(sorted({row.set_name for row in rows}))
    machines, programs = len({row.machine for row in rows}), len({row.program for row in rows})
    return ErrorCell(key, sets, machines, programs, len(rows), parts)


def _by_key(rows: Sequence[ErrorRow]) -> list[tuple[ErrorKey, list[ErrorRow]]]:
    def key_of(row: ErrorRow) -> ErrorKey:
        return ErrorKey(row.device_class, row.has_keys, row.limit, row.quantity)

    return [(key, list(own)) for key, own in groupby(sorted(rows, key=key_of), key=key_of)]


def widened_quantiles(errors: Values, weights: Values) -> Values:
    """Quantiles of weighted errors at LEVELS, widened for few errors.

    With n equal weights, the error of rank i is the quantile of the level i / (n + 1): a further error is as likely
    between any two neighbours as below the least or above the largest error. Beyond the least and the largest error,
    the tails are exponential, with the mean absolute deviation as their scale. With other weights, n is their effective
    number, (sum of weights)^2 / sum of squared weights.
    """
    order = np.argsort(errors, kind="stable")
    values, shares = errors[order], weights[order] / weights.sum()
    count = 1 / np.square(shares).sum()
    levels = ((np.cumsum(shares) - shares / 2) * count + 0.5) / (count + 1)
    scale = float((shares * np.abs(values - (shares * values).sum())).sum())
    wanted = np.array(LEVELS)
    found: Values = np.interp(wanted, levels, values)
    below, above = wanted < levels[0], wanted > levels[-1]
    found[below] = values[0] - scale * np.log(levels[0] / wanted[below])
    found[above] = values[-1] + scale * np.log((1 - levels[-1]) / (1 - wanted[above]))
    return found


def rows_of_folder(folder: Path | None) -> list[ErrorRow]:
    """Rows of the full sets in a folder; None means the samples of the package."""
    heard = accuracy(package_samples=True) if folder is None else accuracy(data=folder)
    return error_rows({one.court_set.name: one.cases for one in heard})


def table_text(rows: Sequence[ErrorRow]) -> str:
    """Content of the file with the table of `rows`."""
    head, *lines = table_rows(error_cells(rows))
    return csv_text(pandas.DataFrame(lines, columns=head))


if __name__ == "__main__":
    write_atomically(TABLE, table_text(rows_of_folder(Path(sys.argv[1]))))
