"""Calibration of error bars: statements "A is faster than B" on pairs of rows, compared with the measurements.

Each pair is judged by a table of errors that is made without any row of the machines of the pair.
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
"""Probability from which a statement counts as said, and upper end of the statements that are judged apart."""
FAR, NEAR = 1.3, 2.0
"""Ratios of the measured times: pairs above FAR should be told apart; pairs between FAR and NEAR are judged apart."""
PAIRS = 100
"""Number of pairs that a draw has for two machines (or one) and one kind of pair; equal rows are left out."""
SHAPES, PROGRAMS, DEVICES, BOTH, CLASSES = (
    "one machine, two shapes",
    "one machine, two programs",
    "two machines of a class, one shape",
    "two machines of a class, two shapes",
    "machines of two classes",
)
"""Kinds of pairs. The rows of a pair have one program, except in PROGRAMS and CLASSES."""
ALL = "all pairs"
LEAST_MACHINES = 4
"""Least number of machines: two of a pair, and two others whose difference shows how far machines differ."""


class Pair(NamedTuple):
    """Two rows, of which one is said to be faster."""

    kind: str
    first: ErrorRow
    second: ErrorRow


class Said(NamedTuple):
    """Statement on a pair."""

    probability: float
    """Probability of the more probable order, at least 0.5."""
    is_right: bool
    """True if the measurements have this order."""
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
    """Share of these statements that are right; None if there are none."""
    least_right: float | None
    """Least such share in a draw."""
    in_band: int
    """Number of statements with a probability from SAID to BAND."""
    right_in_band: float | None
    far: int
    """Number of pairs with a measured ratio above FAR."""
    told: float | None
    """Share of these pairs that get a statement with a probability of at least SAID."""
    least_told: float | None
    """Least such share in a draw."""
    near: int
    """Number of pairs with a measured ratio between FAR and NEAR."""
    told_near: float | None


def calibration_of(draws: Sequence[Sequence[Said]], kind: str, has_keys: bool) -> Calibration:
    """Counts of the statements on the pairs of one kind. `draws` has the statements of each draw."""
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
    """Judge of rows and pairs of rows, each without the rows of its machines."""

    rows: Sequence[ErrorRow]
    table: ErrorTable | None = None
    """Table of errors for all rows; None makes the tables from the rows of the other machines."""
    made: dict[frozenset[str], ErrorTable] = field(default_factory=dict)
    """Tables that are already made: machines left out -> table."""

    def table_without(self, *machines: str) -> ErrorTable:
        """Table of errors that judges rows of these machines."""
        if self.table is not None:
            return self.table
        left_out = frozenset(machines)
        if left_out not in self.made:
            self.made[left_out] = error_table_of([row for row in self.rows if row.machine not in left_out])
        return self.made[left_out]

    def said_on(self, pair: Pair) -> Said:
        """Statement on a pair."""
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
    """Samples of the difference of the errors of two rows, sorted. They are those of `time_samples` for runs of one
    layer.
    """
    program, machine = "p" if is_one_program else "q", "a" if is_one_machine else "b"
    return np.sort(layer_errors(first, "p", "a", "1") - layer_errors(second, program, machine, "2"))


@dataclass(frozen=True)
class Covered:
    """Error bars of single rows: how many of them contain the measurement."""

    has_keys: bool
    rows: int
    inside: float
    """Share of the measurements within their error bars. Each program on each machine counts the same."""


def covered(judge: Judge, has_keys: bool) -> Covered:
    """Share of the measurements within their error bars."""
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
"""Pairs (rows of the first machine, rows of the second machine): any two of them are a pair of rows."""


def drawn_pairs(sides: Sequence[tuple[str, Sides]], draw: int) -> Iterator[Pair]:
    """Random pairs of rows: PAIRS for each element of `sides` (`sides_of`). `draw` is the number of the draw."""
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
    """Kinds of pairs that two machines, or one, can have, each with the rows to draw from."""
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
    """Calibrations of all kinds of pairs, over `draws` random draws of pairs: first of predictions with keys of calls,
    commands and requests, then of predictions without them.
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
    """Judge of the error bars of `rows`, by `table` or by the rows of other machines. Raises InputError if the rows
    have too few machines for a table without two of them, or if no row is predicted by the cost model.
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
    """Text on the calibration of error bars, for the terminal."""
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
