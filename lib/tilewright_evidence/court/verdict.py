"""Verdict on a set of cases, as numbers and as a table: the errors of each part, and broken bounds."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, fields

import numpy as np
import pandas
from tilewright.base.harmless import terminal_lines

from tilewright_evidence.court.case import Case, CourtSet

LOW, HIGH = 50, 90
"""Quantiles of the absolute error that are reported, in percent."""


@dataclass(frozen=True)
class Errors:
    """Relative errors of one prediction, compared with the measurements of some rows."""

    rows: int
    median: float
    high: float
    """90 % quantile of the absolute error."""
    bias: float
    """Median of predicted / measured - 1, with its sign."""
    rank_correlation: float | None
    """Spearman's rank correlation; None for fewer than three rows, or if all values are equal."""


@dataclass(frozen=True)
class VerdictPart:
    """Verdict on a part of a set. Its errors are over unseen rows: rows of origins to which no constant was fitted."""

    name: str
    rows: int
    fitted: int
    related: int
    """Number of rows that were not fitted, but have the origin of a fitted row, such as the same layer on another
    array. They do not count as unseen.
    """
    broken: int
    """Number of rows with a measurement below the bound."""
    unexplained: int
    """Number of rows with a measurement below the bound and no known reason."""
    equal: int | None
    """Number of rows whose estimate equals the number of the source in every digit; None if this is not checked."""
    errors: dict[str, Errors]
    """Errors by prediction: `bound`, `estimate`, `roofline`, `peer`, `second`. Predictions that the set does not have
    are left out.
    """
    causes: dict[str, Errors]
    """Errors of the estimate, by the machine part that limits it."""


PREDICTIONS = ("estimate", "bound", "roofline", "peer", "second")


def parts_of(cases: Sequence[Case]) -> list[VerdictPart]:
    """Verdicts on the parts of a set, sorted by name of the part."""
    names = sorted({case.part for case in cases})
    seen = seen_groups(cases)
    return [_part(name, [case for case in cases if case.part == name], seen) for name in names]


def seen_groups(cases: Sequence[Case]) -> set[str]:
    """Origins of all fitted rows."""
    return {case.group for case in cases if case.fitted}


def _part(name: str, cases: Sequence[Case], seen: Set[str]) -> VerdictPart:
    unseen = [case for case in cases if case.group not in seen]
    fitted = sum(case.fitted for case in cases)
    errors = {}
    for prediction in PREDICTIONS:
        known = [case for case in unseen if getattr(case, prediction) is not None]
        if known:
            errors[prediction] = errors_of(known, prediction)
    causes = {
        cause: errors_of([case for case in unseen if case.limited_by == cause], "estimate")
        for cause in sorted({case.limited_by for case in unseen})
    }
    broken = [case for case in cases if case.breaks_bound]
    unexplained = sum(not case.explained for case in broken)
    equal = None if any(case.equal is None for case in cases) else sum(bool(case.equal) for case in cases)
    related = len(cases) - len(unseen) - fitted
    return VerdictPart(name, len(cases), fitted, related, len(broken), unexplained, equal, errors, causes)


def errors_of(cases: Sequence[Case], prediction: str) -> Errors:
    """Errors of one prediction. `field` is its field in the cases."""
    predicted = np.array([getattr(case, prediction) for case in cases], dtype=float)
    measured = np.array([case.measured for case in cases])
    relative = predicted / measured - 1.0
    median, high = np.percentile(np.abs(relative), (LOW, HIGH))
    ranks = [pandas.Series(values).rank().to_numpy() for values in (predicted, measured)]
    varied = len(cases) > 2 and all(np.ptp(one) > 0 for one in ranks)
    correlation = float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if varied else None
    return Errors(len(cases), float(median), float(high), float(np.median(relative)), correlation)


def table(cases: Sequence[Case]) -> pandas.DataFrame:
    """Table with a row for each case.

    The columns are all fields of the case, the error of the estimate, whether the bound is broken, and whether the row
    is unseen.
    """
    seen = seen_groups(cases)
    names = [field.name for field in fields(Case)]
    frame = pandas.DataFrame([[getattr(case, name) for name in names] for case in cases], columns=names)
    frame["error"] = [case.error for case in cases]
    frame["breaks_bound"] = [case.breaks_bound for case in cases]
    frame["unseen"] = [case.group not in seen for case in cases]
    return frame


def set_text(court_set: CourtSet, parts: Sequence[VerdictPart]) -> str:
    """Text of the verdict on a set, for the terminal."""
    columns = [("rows", 6), ("fitted", 8), ("below bound", 12), ("median", 8), ("90 %", 8), ("rank", 6)]
    others = [("roofline", "roofline")]
    others += [("peer", court_set.peer)] if court_set.peer else []
    others += [("second", court_set.second)] if court_set.second else []
    equal = any(part.equal is not None for part in parts)
    columns += [("equal", 7)] if equal else []
    width = max(18, *(len(part.name) for part in parts))
    head = f"{'':<{width}}" + "".join(f"{name:>{size}}" for name, size in columns)
    head += "".join(f"{name:>{_wide(name)}}" for _, name in others)
    lines = [f"{court_set.name}: {court_set.title}", head, "─" * len(head)]
    for part in parts:
        line = f"{part.name:<{width}}{part.rows:>6,}{_fitted(part):>8}{_below(part):>12}"
        line += _of(part, "estimate", lambda one: f"{one.median:>8.1%}{one.high:>8.1%}{_rank(one):>6}", 22)
        line += f"{'' if part.equal is None else format(part.equal, ','):>7}" if equal else ""
        for key, name in others:
            line += _of(part, key, lambda one, name=name: f"{one.median:>{_wide(name)}.1%}", _wide(name))  # type: ignore[misc]
        lines.append(line)
    lines += [
        f"published, of other rows: {one.tool}, {one.error}: {one.of} ({one.source})" for one in court_set.published
    ]
    return terminal_lines(lines)


def _fitted(part: VerdictPart) -> str:
    return f"{part.fitted:,}" + (f" + {part.related}" if part.related else "")


def _wide(name: str) -> int:
    return max(10, len(name) + 2)


def _below(part: VerdictPart) -> str:
    explained = part.broken - part.unexplained
    return f"{part.unexplained} + {explained}*" if explained else f"{part.unexplained}"


def _of(part: VerdictPart, key: str, tell: Callable[[Errors], str], width: int) -> str:
    found = part.errors.get(key)
    return " " * width if found is None else tell(found)


def _rank(errors: Errors) -> str:
    return "-" if errors.rank_correlation is None else f"{errors.rank_correlation:.3f}"


LEGEND = (
    "fitted: rows to which constants were fitted, + other rows of the same layers;\n"
    "median, 90 %: relative error of the estimate on all other rows; rank: Spearman's;\n"
    "below bound: rows that were measured to be faster than the bound allows (* with an explanation);\n"
    "columns after that: median error of other predictions on the same rows"
)
