"""What is proven of the best allocation that a search found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EXHAUSTION = "every allocation was scheduled"
BOUND = "no schedule is below the lower bound"
RELAXATION = "no schedule of any allocation meets the relaxation and is better"
EXCLUSIONS = "no allocation that was not scheduled meets the relaxation and is better"
EFFORT = "effort"
"""Why a search ended without a proof: evaluations or effort of the solver were used up."""


@dataclass(frozen=True)
class Proof:
    """Whether the best allocation is proven to be the best of its space, and how."""

    is_proven: bool
    rule: str
    """By which rule; '' where nothing is proven."""
    value: float
    """Of the objective, for the best allocation: cycles, pJ or pJ · cycles."""
    lower_bound: float
    """No allocation of the space is below this by these settings of schedules."""
    of_any_schedule: float
    """No schedule is below this, whatever its settings."""
    excluded: int
    """Blocks of allocations that were scheduled and excluded."""
    certificate: Mapping[str, Any]
    """What another program can check of it: docs/allocation.md"""

    @property
    def gap(self) -> float:
        """How much smaller, relative to the value, the optimum could be."""
        return max(0.0, 1.0 - self.lower_bound / self.value) if self.value else 0.0

    def stated(self) -> dict[str, Any]:
        """As plain data, without the certificate."""
        names = ("is_proven", "rule", "value", "lower_bound", "of_any_schedule", "excluded")
        return {name: getattr(self, name) for name in names} | {"gap": self.gap}
