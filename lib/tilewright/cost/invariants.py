"""What must hold for every reported result; a violation is a fault of tilewright, never a result."""

import math

import numpy as np

from tilewright.cost.problem import Problem
from tilewright.cost.workspace import (
    ENERGY,
    IDEAL_TEMPORAL,
    LATENCY,
    MEMORY_ENERGY,
    OFFLOADING,
    ONLOADING,
    STALL,
    Workspace,
)

RELATIVE_TOLERANCE = 1e-9


class InvariantError(RuntimeError):
    """A result that cannot be: it is not reported."""


def verify(problem: Problem, ws: Workspace) -> None:
    """Raise InvariantError if the evaluation in `ws` breaks a physical law.

    No negative access, cycle or energy; everything finite; parts add up to totals; no fewer cycles than the work needs
    spread over the elements that are in use.
    """
    violations = [
        name
        for name, values in (
            ("word accesses", ws.words),
            ("energies", ws.energy),
            ("transfer cycles", ws.transfer_cycles),
            ("loading cycles", ws.load),
            ("totals", ws.totals),
        )
        if not np.all(np.isfinite(values)) or np.any(values < 0)
    ]
    totals = ws.totals
    memory_energy = float(ws.energy[: problem.operand_count].sum())
    parts = totals[IDEAL_TEMPORAL] + totals[STALL] + totals[ONLOADING] + totals[OFFLOADING] + problem.drain_cycles
    for name, total, expected in (
        ("memory energy", totals[MEMORY_ENERGY], memory_energy),
        ("energy", totals[ENERGY], totals[MEMORY_ENERGY] + problem.mac_energy_pj),
        ("latency", totals[LATENCY], parts),
    ):
        if not math.isclose(total, expected, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12):
            violations.append(f"sum of {name}")
    if violations:
        raise InvariantError(f"impossible {', '.join(violations)} in the cost of a mapping")
