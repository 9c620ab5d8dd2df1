"""Linear program that minimises a sum of lengths, such as the lengths of the phases of a schedule.

The result of the solver may be inexact, but the lower bound that is computed from it is always valid.
"""

from typing import Any

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import SLACK
from tilewright.multicore.scheduling.problem import Floats


class CoveringProgram:
    """Linear program: minimise the sum of lengths such that every row is at least its limit.

    A variable is a length (at least 0) or a share (from 0 to 1). A row is a constraint: a weighted sum of variables is
    at least the limit of the row.

    A solver gives a price for each row. The charge of a variable is the sum, over the rows, of price x factor of the
    variable in the row. Prices are valid if the charge of each length is at most the cost of the length, which is 1. If
    a charge is larger, all prices are divided by the largest charge.

    Valid prices give a lower bound: the sum of price x limit over the rows, minus the positive charges of all shares.
    """

    def __init__(self) -> None:
        self._is_length: list[bool] = []
        self._limits: list[float] = []
        self._rows: list[int] = []
        self._variables: list[int] = []
        self._factors: list[float] = []

    def length(self) -> int:
        """Add a variable that is a length, and return its index. A length is at least 0, and has the cost 1."""
        self._is_length.append(True)
        return len(self._is_length) - 1

    def share(self) -> int:
        """Add a variable that is a share, and return its index. A share is between 0 and 1, and has no cost."""
        self._is_length.append(False)
        return len(self._is_length) - 1

    def row(self, limit: float) -> int:
        """Add a row without variables, and return its index. The weighted sum of the variables of the row must be at
        least `limit`. The method `add` adds variables to the row.
        """
        self._limits.append(limit)
        return len(self._limits) - 1

    def add(self, row: int, variable: int, factor: float) -> None:
        """Add `factor` times a variable to a row."""
        self._rows.append(row)
        self._variables.append(variable)
        self._factors.append(factor)

    def lower_bound(self) -> float:
        """Lower bound of the objective of the program, for all values of the variables that satisfy the constraints.
        The objective is the sum of all variables that `length` added.
        """
        if not self._limits:
            return 0.0
        prices = np.maximum(0.0, np.array(self._prices()))
        rows, variables = np.array(self._rows), np.array(self._variables)
        factors, is_length = np.array(self._factors), np.array(self._is_length)
        asked: Floats = np.bincount(variables, prices[rows] * factors, len(is_length)).astype(np.float64)
        most = float(asked[is_length].max(initial=0.0))
        if most > 1.0:
            prices, asked = prices / most, asked / most
        terms = prices * np.array(self._limits)
        rest = np.maximum(0.0, asked[~is_length])
        found = float(terms.sum() - rest.sum())
        return max(0.0, found - SLACK * float(np.abs(terms).sum() + rest.sum()))

    def _prices(self) -> list[float]:
        """Prices (dual values) that a solver finds, one for each row; zeros if the solver finds no optimum."""
        from ortools.linear_solver import pywraplp  # it takes a while to import

        solver = pywraplp.Solver.CreateSolver("GLOP")
        none = solver.infinity()
        variables: list[Any] = [solver.NumVar(0.0, none if is_length else 1.0, "") for is_length in self._is_length]
        for variable, is_length in zip(variables, self._is_length, strict=True):
            if is_length:
                solver.Objective().SetCoefficient(variable, 1.0)
        solver.Objective().SetMinimization()
        rows: list[Any] = [solver.Constraint(limit, none) for limit in self._limits]
        sums: dict[tuple[int, int], float] = {}
        for row, variable, factor in zip(self._rows, self._variables, self._factors, strict=True):
            sums[row, variable] = sums.get((row, variable), 0.0) + factor
        for (row, variable), factor in sums.items():
            rows[row].SetCoefficient(variables[variable], factor)
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return [0.0] * len(rows)
        return [float(row.dual_value()) for row in rows]
