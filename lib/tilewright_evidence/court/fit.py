"""Fit of the constants of a device to measurements, by coordinate descent on a grid.

The fit minimises the mean of |log(estimate / measured)| over some rows of a set of measurements. Each set has a rule
that chooses these rows (`CourtSet.rule`). Fits to random draws of rows show how much the errors depend on this choice.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright_evidence.court.case import Case, Constant, CourtSet, Prepared

STEPS, ROUNDS, SHRINK = 15, 5, 0.4
DIGITS = 3


def fitted_constants(court_set: CourtSet, rows: Sequence[Prepared]) -> dict[str, dict[str, float]]:
    """Constants of each device, fitted to the rows that `CourtSet.rule` chooses, and rounded to three significant
    digits.

    The fit is deterministic: it always gives the same constants for the same rows.
    """
    return constants_for(court_set, [row for row in rows if row.is_fitted])


def constants_for(court_set: CourtSet, rows: Sequence[Prepared]) -> dict[str, dict[str, float]]:
    """Constants that fit `rows` best, rounded to three significant digits, by device and by name of the constant.

    The search begins at the middle of the range of each constant (on a logarithmic scale), not at `Constant.value`.
    """
    found = {
        device: {one.name: float(np.sqrt(one.lowest * one.highest)) for one in constants}
        for device, constants in court_set.constants.items()
    }
    chosen = {device: [row for row in rows if row.device == device] for device in court_set.constants}
    for turn in range(ROUNDS):
        for device, constants in court_set.constants.items():
            for constant in constants:
                found[device][constant.name] = _best(chosen[device], found, device, constant, SHRINK**turn)
    return found


def _best(
    rows: Sequence[Prepared], values: Mapping[str, Mapping[str, float]], device: str, constant: Constant, share: float
) -> float:
    """Best value of one constant, while all other constants are fixed.

    The search tries values around the constant's value in `values`, on a logarithmic scale. The tried values span the
    fraction `share` of the constant's range.
    """
    low, high = np.log(constant.lowest), np.log(constant.highest)
    reach = (high - low) / 2 * share
    middle = min(max(np.log(values[device][constant.name]), low + reach), high - reach)
    tries = [round_digits(float(np.exp(middle + reach * step))) for step in np.linspace(-1, 1, STEPS)]
    losses = {
        one: loss([row.case({**values, device: {**values[device], constant.name: one}}) for row in rows])
        for one in dict.fromkeys(tries)  # late rounds try values so close that some are equal after rounding
    }
    return min(losses, key=lambda one: losses[one])


def loss(cases: Sequence[Case]) -> float:
    """Mean of |log(estimate / measured)| over some cases."""
    ratios = [case.estimate / case.measured for case in cases]
    return float(np.mean(np.abs(np.log(ratios)))) if ratios else 0.0


ROOFLINE_RANGES = ((0.02, 1.0), (0.02, 1.0), (1e-3, 1.0), (1e-3, 1.0))
"""Ranges (lowest, highest) of the four constants of a fitted roofline. The constants are the share of the peak, the
share of the bandwidth, the cost of a call, and the cost of a layer. The cost of a call is a share of the median time of
a call among the fitted rows. The cost of a layer is a share of the median time of a layer among the fitted rows.
"""


def with_fitted_roofline(court_set: CourtSet, rows: Sequence[Prepared], cases: Sequence[Case]) -> list[Case]:
    """Copies of cases with `Case.fitted_roofline`: the prediction of a roofline with as many fitted constants as the
    estimate.

    The prediction is max(c / p, d / b) + n k + l. Here, c is the time at the peak, d is the time at full bandwidth, and
    n is the number of calls. Four constants can be fitted, in this order: the share p of the peak, the share b of the
    bandwidth, the cost k of a call, and the cost l of a layer. If the estimate has fewer than four constants, the last
    ones are not fitted. A cost that is not fitted is 0. The roofline is fitted to the same rows as the estimate, in the
    same way. Cases without `Case.roofline_terms`, and cases of a device without fitted rows, are returned unchanged.
    """
    found = list(cases)
    for device, constants in court_set.constants.items():
        own = [place for place, row in enumerate(rows) if row.device == device and cases[place].roofline_terms]
        roofline = fitted_roofline([cases[place] for place in own if cases[place].fitted], len(constants))
        if roofline is None:
            continue
        for place in own:
            found[place] = replace(cases[place], fitted_roofline=roofline.time(cases[place].roofline_terms))
    return found


@dataclass(frozen=True)
class FittedRoofline:
    """Roofline with fitted constants (see `with_fitted_roofline`)."""

    shares: tuple[float, ...]
    """Constants in the order of ROOFLINE_RANGES, without those that are left out."""
    typical: tuple[float, float]
    """Pair (median measured time of a call, median measured time of a layer). The costs of a call and of a
    layer are shares of these times.
    """

    def time(self, terms: Sequence[float]) -> float:
        """Prediction for `Case.roofline_terms`, in the unit of the fitted rows."""
        return _roofline(terms, self.shares, self.typical)


def fitted_roofline(cases: Sequence[Case], count: int) -> FittedRoofline | None:
    """Roofline whose first `count` constants are fitted to `cases`; None if there are no cases."""
    return FittedRoofline(tuple(_roofline_shares(cases, count)), _typical(cases)) if cases else None


def _typical(cases: Sequence[Case]) -> tuple[float, float]:
    """Pair (median measured time of a call, median measured time of a layer) over `cases`."""
    times = [case.measured for case in cases]
    calls = [case.measured / case.roofline_terms[2] for case in cases]
    return float(np.median(calls)), float(np.median(times))


def _roofline(terms: Sequence[float], shares: Sequence[float], typical: tuple[float, float]) -> float:
    compute, data, calls = terms
    told = (*shares, 0.0, 0.0)
    return max(compute / told[0], data / told[1]) + told[2] * typical[0] * calls + told[3] * typical[1]


def _roofline_shares(cases: Sequence[Case], count: int) -> list[float]:
    """Constants of a roofline that fit `cases` best, in the order of ROOFLINE_RANGES. Only the first `count` constants
    are fitted and returned.
    """
    typical = _typical(cases)
    ranges = ROOFLINE_RANGES[:count]
    found = [float(np.sqrt(low * high)) for low, high in ranges]
    for turn in range(ROUNDS):
        for place, (low, high) in enumerate(ranges):
            reach = np.log(high / low) / 2 * SHRINK**turn
            middle = min(max(np.log(found[place]), np.log(low) + reach), np.log(high) - reach)
            tries = [float(np.exp(middle + reach * step)) for step in np.linspace(-1, 1, STEPS)]
            losses = []
            for one in tries:
                shares = [*found[:place], one, *found[place + 1 :]]
                ratios = [_roofline(case.roofline_terms, shares, typical) / case.measured for case in cases]
                losses.append(float(np.mean(np.abs(np.log(ratios)))))
            found[place] = tries[int(np.argmin(losses))]
    return found


def round_digits(value: float) -> float:
    """Number rounded to three significant digits."""
    return float(f"{value:.{DIGITS}g}")


LOW, MIDDLE, HIGH = 10, 50, 90
"""Percentiles of the median errors of random draws: `Draws.low`, `Draws.middle` and `Draws.high`."""


@dataclass(frozen=True)
class Draws:
    """Spread of the median error in one part of a set, over fits to random draws of rows.

    For each draw, the constants are fitted to the drawn rows. The median error of the draw is then taken over the rows
    whose origin (`Case.group`) is not the origin of any drawn row.
    """

    part: str
    count: int
    """Number of random draws with a median error for this part. A draw has no median error if no rows of the part are
    left: rows with the origin of a drawn row do not count.
    """
    low: float
    """10 % quantile of the median errors of the random draws."""
    middle: float
    high: float
    """90 % quantile of the median errors of the random draws."""
    worse: float
    """Share of the draws with a larger median error than the fit to the rows of `CourtSet.rule`."""


def redrawn(court_set: CourtSet, rows: Sequence[Prepared], count: int) -> list[Draws]:
    """Spread of the median error over `count` fits, one result for each part of the set. [] if nothing is fitted.

    Each fit uses another random draw of rows. A draw has as many rows as `CourtSet.rule` chooses, or slightly fewer.
    """
    if not any(row.is_fitted for row in rows):
        return []
    told = _medians(court_set, rows, [row for row in rows if row.is_fitted])
    found = [_medians(court_set, rows, draw(court_set, rows, number)) for number in range(count)]
    medians = {part: [one[part] for one in found if part in one] for part in sorted(told)}
    return [_draws(part, own, told[part]) for part, own in medians.items() if own]


def _draws(part: str, medians: Sequence[float], told: float) -> Draws:
    low, middle, high = np.percentile(medians, (LOW, MIDDLE, HIGH)).tolist()
    return Draws(part, len(medians), low, middle, high, float(np.mean(np.array(medians) > told)))


def draw(court_set: CourtSet, rows: Sequence[Prepared], number: int) -> list[Prepared]:
    """Random draw of rows. It has the number of rows that `CourtSet.rule` chooses, or slightly fewer.

    Rows with the same text `drawn_by` are drawn together or not at all. The texts are tried in the order of their
    hashes, which depend on `number`. A text is skipped if its rows would make the draw too large.
    """
    left = sum(row.is_fitted for row in rows)
    origins: dict[str, list[Prepared]] = {}
    for row in rows:
        if row.drawn_by is not None:
            origins.setdefault(row.drawn_by, []).append(row)
    found: list[Prepared] = []
    for origin in sorted(origins, key=lambda text: _hashed(f"draw {number}|{court_set.name}|{text}")):
        if len(found) + len(origins[origin]) <= left:
            found += origins[origin]
    return found


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _medians(court_set: CourtSet, rows: Sequence[Prepared], chosen: Sequence[Prepared]) -> dict[str, float]:
    """Median error by part, with constants fitted to the rows in `chosen`. Rows that have the same origin
    (`Case.group`) as a row in `chosen` are left out of the medians.
    """
    constants = constants_for(court_set, chosen)
    seen = {row.case(constants).group for row in chosen}
    errors: dict[str, list[float]] = {}
    for row in rows:
        case = row.case(constants)
        if case.group not in seen:
            errors.setdefault(case.part, []).append(abs(case.error))
    return {part: float(np.median(own)) for part, own in errors.items()}
