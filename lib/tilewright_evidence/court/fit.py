"""Fit of the constants of a device by coordinate descent on a grid, and influence of the chosen rows on the errors.

The fit minimises the mean of |log(estimate / measured)| over the rows that the rule of the set chooses.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright_evidence.court.case import Case, Constant, CourtSet, Prepared

STEPS, ROUNDS, SHRINK = 15, 5, 0.4
DIGITS = 3


def fitted_constants(court_set: CourtSet, rows: Sequence[Prepared]) -> dict[str, dict[str, float]]:
    """Constants of each device, fitted to the rows that the rule chooses, to three digits.

    Equal rows give equal constants.
    """
    return constants_for(court_set, [row for row in rows if row.is_fitted])


def constants_for(court_set: CourtSet, rows: Sequence[Prepared]) -> dict[str, dict[str, float]]:
    """Constants of each device that fit `rows` best, to three digits.

    The search begins in the middle of the ranges, and not at the present values.
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

    The search covers the part `share` of the constant's range, on a logarithmic scale, around the present value.
    """
    low, high = np.log(constant.lowest), np.log(constant.highest)
    reach = (high - low) / 2 * share
    middle = min(max(np.log(values[device][constant.name]), low + reach), high - reach)
    tries = [round_digits(float(np.exp(middle + reach * step))) for step in np.linspace(-1, 1, STEPS)]
    losses = [
        loss([row.case({**values, device: {**values[device], constant.name: one}}) for row in rows]) for one in tries
    ]
    return tries[int(np.argmin(losses))]


def loss(cases: Sequence[Case]) -> float:
    """Mean of |log(estimate / measured)| over some cases."""
    ratios = [case.estimate / case.measured for case in cases]
    return float(np.mean(np.abs(np.log(ratios)))) if ratios else 0.0


def round_digits(value: float) -> float:
    """Number rounded to three digits."""
    return float(f"{value:.{DIGITS}g}")


LOW, MIDDLE, HIGH = 10, 50, 90
"""Quantiles over random draws, in percent."""


@dataclass(frozen=True)
class Draws:
    """Spread of the median error of a part over random draws of the fitted rows.

    Errors are over rows of origins that were not drawn.
    """

    part: str
    low: float
    """Median error at the 10 % quantile of the draws."""
    middle: float
    high: float
    """Median error at the 90 % quantile of the draws."""
    worse: float
    """Share of the draws whose median error is larger than with the rows that the rule chooses."""


def redrawn(court_set: CourtSet, rows: Sequence[Prepared], count: int) -> list[Draws]:
    """Spread of the errors of each part over `count` random draws.

    Each draw has as many rows as the rule chooses. [] if nothing is fitted.
    """
    if not any(row.is_fitted for row in rows):
        return []
    told = _medians(court_set, rows, [row for row in rows if row.is_fitted])
    found = [_medians(court_set, rows, draw(court_set, rows, number)) for number in range(count)]
    medians = {part: [one[part] for one in found if part in one] for part in sorted(told)}
    return [_draws(part, own, told[part]) for part, own in medians.items() if own]


def _draws(part: str, medians: Sequence[float], told: float) -> Draws:
    low, middle, high = np.percentile(medians, (LOW, MIDDLE, HIGH)).tolist()
    return Draws(part, low, middle, high, float(np.mean(np.array(medians) > told)))


def draw(court_set: CourtSet, rows: Sequence[Prepared], number: int) -> list[Prepared]:
    """Random draw of as many rows as the rule chooses, or slightly fewer.

    Rows of one origin are drawn together. The origins are drawn in the order of a hash.
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
    """Median error by part, with constants fitted to the rows in `chosen`. Errors are over rows of other origins."""
    constants = constants_for(court_set, chosen)
    seen = {row.case(constants).group for row in chosen}
    errors: dict[str, list[float]] = {}
    for row in rows:
        case = row.case(constants)
        if case.group not in seen:
            errors.setdefault(case.part, []).append(abs(case.error))
    return {part: float(np.median(own)) for part, own in errors.items()}
