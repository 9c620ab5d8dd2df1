"""Fitting the constants of a device: coordinate by coordinate on a grid, so that anybody finds the same numbers.

What is made small is the mean of |log(estimate / measured)| over the rows that the rule of the set chooses.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.comparison.court.case import Case, Constant, CourtSet, Prepared

STEPS, ROUNDS, SHRINK = 15, 5, 0.4
DIGITS = 3


def fitted_constants(court_set: CourtSet, rows: Sequence[Prepared]) -> dict[str, dict[str, float]]:
    """The constants of each device, to three digits, from the rows that the rule chooses. Deterministic."""
    return constants_for(court_set, [row for row in rows if row.is_fitted])


def constants_for(court_set: CourtSet, rows: Sequence[Prepared]) -> dict[str, dict[str, float]]:
    """The constants of each device, to three digits, that fit these rows best.

    They begin in the middle of their ranges, whatever their present values are.
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
    """The value of one constant, the others as they are; within `share` of its range around the present one."""
    low, high = np.log(constant.lowest), np.log(constant.highest)
    reach = (high - low) / 2 * share
    middle = min(max(np.log(values[device][constant.name]), low + reach), high - reach)
    tries = [round_digits(float(np.exp(middle + reach * step))) for step in np.linspace(-1, 1, STEPS)]
    losses = [
        loss([row.case({**values, device: {**values[device], constant.name: one}}) for row in rows]) for one in tries
    ]
    return tries[int(np.argmin(losses))]


def loss(cases: Sequence[Case]) -> float:
    """Mean of |log(estimate / measured)|."""
    ratios = [case.estimate / case.measured for case in cases]
    return float(np.mean(np.abs(np.log(ratios)))) if ratios else 0.0


def round_digits(value: float) -> float:
    """A number to three digits."""
    return float(f"{value:.{DIGITS}g}")
