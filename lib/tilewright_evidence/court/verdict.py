"""Verdict on a set of measurements, as numbers and as a table.

Each part of the set has the errors of its predictions, and the number of its measurements that are below their bound.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pandas
from tilewright.base.harmless import terminal_lines

from tilewright_evidence.court.case import Case, CourtSet

LOW, HIGH = 50, 90
"""Quantiles that are reported for the absolute value of the relative error: 50 % and 90 %."""


@dataclass(frozen=True)
class Errors:
    """Statistics of the errors of one kind of prediction over some rows. An error is prediction / measurement - 1."""

    rows: int
    median: float
    high: float
    """90 % quantile of the absolute value of the relative error."""
    bias: float
    """Median of prediction / measurement - 1, with its sign."""
    rank_correlation: float | None
    """Spearman's rank correlation of predictions and measurements. None if there are fewer than three rows, if all
    predictions are equal, or if all measurements are equal.
    """


@dataclass(frozen=True)
class VerdictPart:
    """Verdict on a part of a set. The errors cover only unseen rows. The origin (`Case.group`) of an unseen row differs
    from the origins of all rows to which constants were fitted.
    """

    name: str
    rows: int
    fitted: int
    related: int
    """Number of rows that were not fitted, but have the same origin as a fitted row, such as the same layer on another
    array. These rows and the fitted rows are left out of the errors.
    """
    broken: int
    """Number of rows with a measurement below the bound."""
    unexplained: int
    """Number of rows whose measurement is below the bound although no reason for this is known."""
    equal: int | None
    """Number of rows whose estimate equals the value in the source in every digit; None if this is not checked."""
    errors: dict[str, Errors]
    """Errors by prediction. The keys are names of fields of `Case`: `estimate`, `alone`, `bound`, `roofline`,
    `fitted_roofline`, `peer`, `second`. A prediction is left out if no unseen row has it.
    """
    causes: dict[str, Errors]
    """Errors of the estimate for the unseen rows, grouped by the part of the machine that limits a row
    (`Case.limited_by`).
    """


PREDICTIONS = ("estimate", "alone", "bound", "roofline", "fitted_roofline", "peer", "second")


def parts_of(cases: Sequence[Case]) -> list[VerdictPart]:
    """Verdict on each part of a set (`Case.part`), sorted by name of the part. `cases` are all cases of the set."""
    names = sorted({case.part for case in cases})
    seen = seen_groups(cases)
    return [_part(name, [case for case in cases if case.part == name], seen) for name in names]


def seen_groups(cases: Sequence[Case]) -> set[str]:
    """Origins (`Case.group`) of all rows to which constants were fitted."""
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
    """Errors of one prediction. `prediction` is the name of its field in `Case`."""
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

    The first columns are the fields of `Case`, without `roofline_terms` and `judged`. Three columns follow: `error`
    (error of the estimate), `breaks_bound` (see `Case.breaks_bound`) and `unseen`. `unseen` is true if the origin
    (`Case.group`) of the row differs from the origins of all fitted rows.
    """
    seen = seen_groups(cases)
    names = [field.name for field in fields(Case) if field.name not in ("roofline_terms", "judged")]
    frame = pandas.DataFrame([[getattr(case, name) for name in names] for case in cases], columns=names)
    frame["error"] = [case.error for case in cases]
    frame["breaks_bound"] = [case.breaks_bound for case in cases]
    frame["unseen"] = [case.group not in seen for case in cases]
    return frame


PLAINER = {"alone": "cost model alone", "roofline": "roofline", "fitted_roofline": "fitted roofline"}
"""Titles of predictions that are simpler than the estimate. These predictions are in a separate table. The keys are
names of fields of `Case`.
"""
OF_ESTIMATE = (("median", 8), ("90 %", 8), ("bias", 8), ("rank", 7))
"""Columns for the errors of one prediction in a table: pairs (title, width in characters)."""
ESTIMATE_WIDTH = sum(width for _, width in OF_ESTIMATE)


def set_text(court_set: CourtSet, parts: Sequence[VerdictPart]) -> str:
    """Text of the verdict on a set, for the terminal: the errors of the estimate, then those of simpler predictions."""
    columns = [("rows", 6), ("fitted", 8), ("below bound", 12), *OF_ESTIMATE]
    others = [("peer", court_set.peer)] if court_set.peer else []
    others += [("second", court_set.second)] if court_set.second else []
    equal = any(part.equal is not None for part in parts)
    columns += [("equal", 7)] if equal else []
    width = max(18, *(len(part.name) for part in parts))
    head = f"{'':<{width}}" + "".join(f"{name:>{size}}" for name, size in columns)
    head += "".join(f"{name:>{_wide(name)}}" for _, name in others)
    lines = [f"{court_set.name}: {court_set.title}", head, "─" * len(head)]
    for part in parts:
        line = f"{part.name:<{width}}{part.rows:>6,}{_fitted(part):>8}{_below(part):>12}"
        line += _of(part, "estimate", _estimate, ESTIMATE_WIDTH)
        line += f"{'' if part.equal is None else format(part.equal, ','):>7}" if equal else ""
        for key, name in others:
            line += _of(part, key, partial(_median, width=_wide(name)), _wide(name))
        lines.append(line)
    lines += ["", *_plainer_lines(parts, width)]
    lines += [
        f"published error of {one.tool} for other data: {one.error}: {one.of} ({one.source})"
        for one in court_set.published
    ]
    return terminal_lines(lines)


def _plainer_lines(parts: Sequence[VerdictPart], width: int) -> list[str]:
    """Lines of the second table of a set: the errors of simpler predictions (see PLAINER) for each part. `width` is the
    number of characters of the first column, which has the names of the parts.
    """
    shown = {key: name for key, name in PLAINER.items() if any(key in part.errors for part in parts)}
    names = f"{'':<{width}}" + "".join(f"{name:>{ESTIMATE_WIDTH}}" for name in shown.values())
    head = f"{'':<{width}}" + "".join(f"{name:>{wide}}" for name, wide in OF_ESTIMATE) * len(shown)
    rows = [
        f"{part.name:<{width}}" + "".join(_of(part, key, _estimate, ESTIMATE_WIDTH) for key in shown) for part in parts
    ]
    return [names, head, "─" * len(head), *(row.rstrip() for row in rows)]


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


def _estimate(errors: Errors) -> str:
    return f"{errors.median:>8.1%}{errors.high:>8.1%}{errors.bias:>+8.1%}{_rank(errors):>7}"


def _median(errors: Errors, width: int) -> str:
    return f"{errors.median:>{width}.1%}"


def _rank(errors: Errors) -> str:
    return "-" if errors.rank_correlation is None else f"{errors.rank_correlation:.3f}"


LEGEND = (
    "fitted: rows to which constants were fitted, + other rows of the same layers;\n"
    "median, 90 %: relative error of the estimate on all other rows; bias: median with its sign; rank: Spearman's;\n"
    "below bound: rows that were measured to be faster than the bound allows (* with an explanation);\n"
    "last columns: median error of other predictions on the same rows.\n"
    "second table: errors of simpler predictions of the same rows;\n"
    "cost model alone: without the keys of calls, commands, requests and zeros;\n"
    "fitted roofline: a roofline with as many constants, fitted to the same rows; for Eyeriss, a roofline times a\n"
    "factor that is fitted to the other layers of the network"
)
