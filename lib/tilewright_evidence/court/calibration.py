"""Calibration of error bars: statements "A is faster than B" on pairs of rows, compared with the measurements.

The statement on a pair comes from a table of errors. By default, this table is made from the rows of all other
machines. The rows of the two machines of the pair therefore do not influence the statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, combinations_with_replacement
from math import log
from typing import Any, NamedTuple

import numpy as np
from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.harmless import terminal_lines
from tilewright.results.error_bars.draws import HIGH, LOW, SAMPLES, layer_errors
from tilewright.results.error_bars.table import LATENCY, ErrorCell, ErrorTable, Values

from tilewright_evidence.court.error_rows import CLASS_OF_SET, ErrorRow
from tilewright_evidence.court.error_table import error_table_of

SAID, BAND = 0.9, 0.95
"""Limits of the probability of a statement "A is faster than B". A statement counts as made if its probability is at
least SAID. Statements with a probability from SAID to BAND are also counted separately.
"""
FAR, NEAR = 1.3, 2.0
"""Limits of the ratio of the two measured times of a pair. Pairs above FAR should get a statement. Pairs from FAR to
NEAR are also counted separately.
"""
PAIRS = 100
"""Number of pairs that a draw takes for each kind of pair and each choice of machines (two machines, or one). A drawn
pair is then left out if both rows are the same row, or if both measurements are equal.
"""
SHAPES, PROGRAMS, DEVICES, BOTH, CLASSES = (
    "one machine, two shapes",
    "one machine, two programs",
    "two machines of a class, one shape",
    "two machines of a class, two shapes",
    "machines of two classes",
)
"""Kinds of pairs. In all kinds except PROGRAMS and CLASSES, the same program ran both rows of a pair."""
ALL = "all pairs"
LEAST_MACHINES = 4
"""Least number of machines for a calibration: the two machines of a pair, and two other machines, whose difference
shows how far machines differ.
"""


class Pair(NamedTuple):
    """Pair of rows. A statement says which of the two rows is faster."""

    kind: str
    first: ErrorRow
    second: ErrorRow


class Said(NamedTuple):
    """Statement on a pair: which of the two rows is probably faster."""

    probability: float
    """Probability, at least 0.5, that the named row is faster."""
    is_right: bool
    """True if the named row is also faster in the measurements."""
    ratio: float
    """Ratio of the larger to the smaller measured time."""


@dataclass(frozen=True)
class Calibration:
    """Statements on the pairs of one kind, counted over all draws."""

    kind: str
    has_keys: bool
    pairs: int
    said: int
    """Number of statements with a probability of at least SAID."""
    right: float | None
    """Share of right statements among those counted in `said`; None if there are none."""
    least_right: float | None
    """Smallest value of `right` in any single draw."""
    in_band: int
    """Number of statements with a probability from SAID to BAND."""
    right_in_band: float | None
    """Share of the statements in `in_band` that are right."""
    far: int
    """Number of pairs with a measured ratio above FAR."""
    told: float | None
    """Share of the pairs above FAR that get a statement with a probability of at least SAID."""
    least_told: float | None
    """Smallest value of `told` in any single draw."""
    near: int
    """Number of pairs with a measured ratio between FAR and NEAR."""
    told_near: float | None
    """Share of the pairs in `near` that get a statement with a probability of at least SAID."""


def calibration_of(draws: Sequence[Sequence[Said]], kind: str, has_keys: bool) -> Calibration:
    """Counts of the statements on the pairs of one kind. `draws` has one list of statements for each draw."""
    columns = [np.array(draw, dtype=float).reshape(-1, 3).T for draw in draws]
    probability, is_right, ratio = np.concatenate(columns, axis=1)
    sure, far = probability >= SAID, ratio > FAR
    band, near = sure & (probability < BAND), far & (ratio < NEAR)
    return Calibration(
        kind,
        has_keys,
        len(ratio),
        int(sure.sum()),
        _share(is_right[sure]),
        _least(_share(right[own >= SAID]) for own, right, _ in columns),
        int(band.sum()),
        _share(is_right[band]),
        int(far.sum()),
        _share(sure[far]),
        _least(_share(own[ratios > FAR] >= SAID) for own, _, ratios in columns),
        int(near.sum()),
        _share(sure[near]),
    )


def _share(outcomes: "np.ndarray[Any, Any]") -> float | None:
    return float(np.mean(outcomes)) if len(outcomes) else None


def _least(shares: Iterator[float | None]) -> float | None:
    return min((share for share in shares if share is not None), default=None)


@dataclass(frozen=True, eq=False)
class Judge:
    """Judge of error bars. If `table` is None, a row is judged by a table of errors that is made without the rows of
    its machine. For a pair of rows, the table is made without the rows of both machines.
    """

    rows: Sequence[ErrorRow]
    table: ErrorTable | None = None
    """Table of errors that judges all rows; None if the tables are made from the rows of other machines."""
    made: dict[frozenset[str], ErrorTable] = field(default_factory=dict)
    """Tables that are already made. The key of a table is the set of machines whose rows the table leaves out."""

    def table_without(self, *machines: str) -> ErrorTable:
        """Table of errors that judges rows of `machines`: the given table, or a table made without these rows."""
        if self.table is not None:
            return self.table
        left_out = frozenset(machines)
        if left_out not in self.made:
            self.made[left_out] = error_table_of([row for row in self.rows if row.machine not in left_out])
        return self.made[left_out]

    def said_on(self, pair: Pair) -> Said:
        """Statement on a pair: the row that is probably faster, and its probability."""
        first, second = pair.first, pair.second
        table = self.table_without(first.machine, second.machine)
        one, other = (table.cell(row.device_class, row.has_keys, row.limit) for row in (first, second))
        relation = first.program == second.program, first.machine == second.machine
        differences = _differences(one, other, *relation)
        probability = float(np.searchsorted(differences, log(second.predicted / first.predicted))) / SAMPLES
        is_first, times = probability >= 0.5, (first.measured, second.measured)
        is_right = (first.measured < second.measured) == is_first
        return Said(probability if is_first else 1 - probability, is_right, max(times) / min(times))


@cache
def _differences(first: ErrorCell, second: ErrorCell, is_one_program: bool, is_one_machine: bool) -> Values:
    """Sorted samples of the difference of the errors of two rows. The samples equal those that `time_samples` draws for
    two runs of one layer each.
    """
    program, machine = "p" if is_one_program else "q", "a" if is_one_machine else "b"
    return np.sort(layer_errors(first, "p", "a", "1") - layer_errors(second, program, machine, "2"))


@dataclass(frozen=True)
class Covered:
    """Number of rows, and share of their measurements that lie within the error bars of the rows."""

    has_keys: bool
    rows: int
    inside: float
    """Share of the measurements within their error bars. Each pair of a program and a machine has the same weight,
    independent of its number of rows.
    """


def covered(judge: Judge, has_keys: bool) -> Covered:
    """Share of the measured times that lie within their error bars, among rows with (or without) keys."""
    shares: dict[tuple[str, str], list[bool]] = {}
    judged = [row for row in judge.rows if row.has_keys == has_keys and row.quantity == LATENCY]
    for row in judged:
        low, high = _bar(judge.table_without(row.machine).cell(row.device_class, has_keys, row.limit))
        shares.setdefault((row.program, row.machine), []).append(low <= row.error <= high)
    return Covered(has_keys, len(judged), float(np.mean([np.mean(own) for own in shares.values()])))


@cache
def _bar(cell: ErrorCell) -> tuple[float, float]:
    low, high = np.quantile(layer_errors(cell, "p", "a", "1"), (LOW, HIGH)).tolist()
    return low, high


Sides = list[tuple[list[ErrorRow], list[ErrorRow]]]
"""Pairs (list of rows, list of rows) from which pairs of rows are drawn: one row from each list. The two lists belong
to two machines, or to the same machine.
"""


def drawn_pairs(sides: Sequence[tuple[str, Sides]], draw: int) -> Iterator[Pair]:
    """Random pairs of rows, at most PAIRS for each element of `sides` (from `sides_of`). The seed is `draw`, the number
    of the draw.
    """
    random = np.random.default_rng(draw)
    for kind, found in sides:
        chosen = random.integers([[len(found)]] * PAIRS).ravel().tolist()
        shares = random.random((PAIRS, 2)).tolist()
        for place, (one, other) in zip(chosen, shares, strict=True):
            first, second = found[place]
            pair = Pair(kind, first[int(one * len(first))], second[int(other * len(second))])
            if pair.first is not pair.second and pair.first.measured != pair.second.measured:
                yield pair


def sides_of(rows: Sequence[ErrorRow], has_keys: bool) -> list[tuple[str, Sides]]:
    """Tuples (kind of pair, rows from which pairs of this kind are drawn), for every two machines and for every single
    machine.
    """
    machines = _by([row for row in rows if row.has_keys == has_keys and row.quantity == LATENCY], "machine")
    return [
        found
        for one, other in combinations_with_replacement(sorted(machines), 2)
        for found in _kinds(machines[one], machines[other], one == other)
    ]


def _kinds(first: list[ErrorRow], second: list[ErrorRow], is_one: bool) -> Iterator[tuple[str, Sides]]:
    by_program = _by(first, "program"), _by(second, "program")
    common: Sides = [(own, by_program[1][name]) for name, own in by_program[0].items() if name in by_program[1]]
    if is_one:
        yield SHAPES, common
        if len(common) > 1:
            yield PROGRAMS, list(combinations(by_program[0].values(), 2))
    elif first[0].device_class != second[0].device_class:
        yield CLASSES, [(first, second)]
    elif common:
        yield BOTH, common
        shapes: Sides = []
        for one, other in common:
            groups = _by(other, "group")
            shapes += [(own, groups[name]) for name, own in _by(one, "group").items() if name in groups]
        if shapes:
            yield DEVICES, shapes


def _by(rows: Sequence[ErrorRow], name: str) -> dict[str, list[ErrorRow]]:
    found: dict[str, list[ErrorRow]] = {}
    for row in rows:
        found.setdefault(getattr(row, name), []).append(row)
    return found


def calibrations(judge: Judge, draws: int) -> list[Calibration]:
    """Calibrations of all kinds of pairs, over `draws` random draws of pairs: first for predictions with keys of calls,
    commands and requests, then for predictions without these keys.
    """
    found = []
    for has_keys in (True, False):
        sides = sides_of(judge.rows, has_keys)
        said: dict[str, list[list[Said]]] = {}
        for draw in range(draws):
            for pair in drawn_pairs(sides, draw):
                for kind in (pair.kind, ALL):
                    own = said.setdefault(kind, [])
                    own += [[] for _ in range(draw + 1 - len(own))]
                statement = judge.said_on(pair)
                said[pair.kind][draw].append(statement)
                said[ALL][draw].append(statement)
        kinds = [kind for kind in (SHAPES, PROGRAMS, DEVICES, BOTH, CLASSES, ALL) if kind in said]
        found += [calibration_of(said[kind], kind, has_keys) for kind in kinds]
    return found


def judge_of(rows: Sequence[ErrorRow], table: ErrorTable | None = None) -> Judge:
    """Judge of the error bars of `rows`. It judges by `table`, or, if `table` is None, by the rows of other machines.

    Without a table or without rows, raises InputError if the cost model predicts rows of fewer than LEAST_MACHINES
    machines. The error bars of a pair come from the rows of all machines except the two machines of the pair.
    """
    if table is not None and rows:
        return Judge(rows, table)
    for has_keys in {row.has_keys for row in rows} or {True}:
        own = [row for row in rows if row.has_keys == has_keys and row.quantity == LATENCY]
        if len({row.machine for row in own}) < LEAST_MACHINES:
            message = f"error bars need rows of at least {LEAST_MACHINES} machines that the cost model predicts"
            raise InputError([Problem(message, path="SET", allowed=", ".join(CLASS_OF_SET))])
    return Judge(rows)


def calibration_text(judge: Judge, draws: int) -> str:
    """Text with the calibration of error bars, for the terminal."""
    found = calibrations(judge, draws)
    way = "without the rows of its machines" if judge.table is None else "by the table of the package"
    lines = [f"error bars: pairs of rows, {count_of(draws, 'random draw')}; each pair is judged {way}"]
    for has_keys, words in ((True, "with"), (False, "without")):
        own = [one for one in found if one.has_keys == has_keys]
        if not own:
            continue
        bars = covered(judge, has_keys)
        lines += ["", *_table_lines(own, f"{words} keys of calls, commands and requests")]
        lines.append(
            f"error bars of {HIGH - LOW:.0%} contain {bars.inside:.0%} of the {bars.rows:,} measurements"
            " (each program on each machine counts the same)"
        )
    return terminal_lines(lines)


def _table_lines(found: Sequence[Calibration], title: str) -> list[str]:
    heads = ("pairs", f"said {SAID:.0%}", "right", "least", f"{SAID:.0%}-{BAND:.0%}", f"> {FAR:g} said", "least")
    width = max(38, len(title) + 2)
    lines = [f"{title:<{width}}" + "".join(f"{head:>11}" for head in (*heads, f"{FAR:g}-{NEAR:g}"))]
    lines.append("─" * len(lines[0]))
    for one in found:
        shares = (one.right, one.least_right, one.right_in_band, one.told, one.least_told, one.told_near)
        texts = ("-" if share is None else f"{share:.1%}" for share in shares)
        lines.append(f"{one.kind:<{width}}{one.pairs:>11,}{one.said:>11,}" + "".join(f"{text:>11}" for text in texts))
    return lines
