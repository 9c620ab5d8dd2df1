"""Table of the errors of predictions, made from the rows of the sets (docs/accuracy/error-bars.md).

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
"""Weight of the whole table when one cell is estimated: the effects in all cells together count as much as PRIOR
effects in this cell.
"""


def error_table_of(rows: Sequence[ErrorRow]) -> ErrorTable:
    """Table of the errors of `rows`. It has a cell for each combination of a class of machines, a kind of prediction
    (with or without keys), and a part of the machine that limits the layer. All classes together form one more class.
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
    """Effects of programs and of machines on the errors, in the rows of one cell of the table. The effects follow from
    one median error for each pair of a program and a machine.
    """

    medians: Mapping[tuple[str, str], float]
    """(program, machine) -> median of the errors of its rows."""

    @property
    def programs(self) -> dict[str, float]:
        """Effect of each program: the mean of its median errors on all machines that ran it."""
        found: dict[str, list[float]] = {}
        for (program, _), median in self.medians.items():
            found.setdefault(program, []).append(median)
        return {program: float(np.mean(own)) for program, own in found.items()}

    @property
    def centre(self) -> float:
        """Mean of the effects of all programs."""
        return float(np.mean(list(self.programs.values())))

    @property
    def of_programs(self) -> list[float]:
        """Deviations of the effects of programs from their mean, scaled up to the spread that is expected for a further
        program.
        """
        programs = list(self.programs.values())
        return _deviations(programs, sqrt(1 + 1 / len(programs)))

    @property
    def of_machines(self) -> list[float]:
        """Deviations of the median errors of machines. A deviation is the difference from the mean over all machines
        that ran the same program.
        """
        found: dict[str, list[float]] = {}
        for (program, _), median in self.medians.items():
            found.setdefault(program, []).append(median)
        return [deviation for own in found.values() for deviation in _deviations(own, 1.0)]


def _deviations(values: Sequence[float], factor: float) -> list[float]:
    """Deviations of values from their mean, times `factor`; [] for a single value. For n values, each deviation is also
    multiplied by the square root of n / (n - 1), as in the standard deviation of a sample.
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
    """Quantiles of a part of the error that several rows share. `own` has the values of this part in one cell of the
    table; `known` has its values in all cells.

    Each value in `own` has the weight 1. All values in `known` together have the weight PRIOR. Each value counts with
    both signs, because the order of two machines is arbitrary.
    """
    if not known:
        message = "error bars need rows of at least two programs, and a program that ran on at least two machines"
        raise InputError([Problem(message)])
    values = np.array([*own, *known])
    weights = np.array([*np.ones(len(own)), *np.full(len(known), PRIOR / len(known))])
    return widened_quantiles(np.concatenate([values, -values]), np.concatenate([weights, weights]))


def _effects(rows: Sequence[ErrorRow]) -> _Effects:
    errors: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        errors.setdefault((row.program, row.machine), []).append(row.error)
    return _Effects({key: float(np.median(own)) for key, own in errors.items()})


def _own_quantiles(rows: Sequence[ErrorRow], medians: Mapping[tuple[str, str], float]) -> Values:
    """Quantiles of the deviations of errors from the median error of the same program and machine. Each pair of a
    program and a machine has the square root of its number of rows as weight, so that large sets do not dominate.
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
    """Quantiles of weighted errors at LEVELS. The fewer the errors, the wider the quantiles.

    With n equal weights, the error of rank i is the quantile of the level i / (n + 1). A further error is then equally
    likely in each of the n + 1 gaps: below the least error, between two neighbours, and above the largest error. The
    two tails are exponential, with the mean absolute deviation as scale. If weights differ, n is the effective number
    of errors, (sum of weights)^2 / sum of squared weights.
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
