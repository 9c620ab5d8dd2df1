"""What must hold for every reported result; a violation is a fault of tilewright, never a result."""

import math

import numpy as np

from tilewright.cost.ledger import ROUNDING
from tilewright.cost.problem import Problem
from tilewright.cost.workspace import (
    ENERGY,
    IDEAL_TEMPORAL,
    LATENCY,
    OFFLOADING,
    ONLOADING,
    STALL,
    Workspace,
)


class InvariantError(RuntimeError):
    """A result that cannot be: it is not reported."""


def verify(problem: Problem | np.void, ws: Workspace | np.void) -> None:
    """Raise InvariantError if the evaluation in `ws` breaks a physical law.

    No negative access, cycle or energy; everything finite; parts add up to totals; no fewer cycles than the work needs
    spread over the elements that are in use.
    """
    terms = ws["terms"]
    violations = [
        name
        for name, values in (
            ("word accesses", ws["words"]),
            ("energies", ws["energy"]),
            ("transfer cycles", ws["transfer_cycles"]),
            ("loading cycles", ws["load"]),
            ("terms of the energy", terms),
            ("totals", ws["totals"]),
        )
        if not (values.min() >= 0 and values.max() < np.inf)  # also where one is no number
    ]
    totals = ws["totals"].tolist()
    accesses = float(ws["energy"][: problem["operand_count"]].sum())
    parts = totals[IDEAL_TEMPORAL] + totals[STALL] + totals[ONLOADING] + totals[OFFLOADING] + problem["drain_cycles"]
    for name, total, expected in (
        ("memory energy", terms[problem["access_term"]], accesses),
        ("energy", totals[ENERGY], float(terms[: problem["term_count"]].sum())),
        ("latency", totals[LATENCY], parts),
    ):
        if not math.isclose(total, expected, rel_tol=ROUNDING, abs_tol=1e-12):
            violations.append(f"sum of {name}")
    if violations:
        raise InvariantError(f"impossible {', '.join(violations)} in the cost of a mapping")
