"""How a schedule is made: which candidate goes first, what is fetched ahead, how links are shared."""

from dataclasses import dataclass

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.scheduling.models import CAUSAL, MODELS

SELECTIONS = ("latency", "memory")
"""Candidate selection: `latency` takes what is ready first, `memory` what is deepest in the network."""


@dataclass(frozen=True)
class ScheduleOptions:
    """Options of `simulate`; raises InputError with every value that is not allowed."""

    candidate_selection: str = "latency"
    """One of SELECTIONS."""
    operands_to_prefetch: tuple[int, ...] = ()
    """Memory operands (column of `CoreSystem.core_memory`) whose constants are fetched ahead, links permitting."""
    share_divisor: int = 4
    """A transfer starts once it can have this part of its full width: 1 waits for the full width."""
    record: bool = True
    """Keep transfers and memory use over time; without them a search evaluates faster."""
    schedule_model: str = CAUSAL
    """One of MODELS."""
    model_repairs: tuple[str, ...] = ()
    """Rules of the schedule model that are exchanged, of those that it has; without effect on the causal model."""

    def __post_init__(self) -> None:
        problems = []
        for name, value, allowed in (
            ("candidate_selection", self.candidate_selection, SELECTIONS),
            ("schedule_model", self.schedule_model, MODELS),
        ):
            if value not in allowed:
                nearest = nearest_name(value, allowed)
                problems.append(Problem("unknown", path=name, value=value, allowed=", ".join(allowed), nearest=nearest))
        if self.share_divisor < 1:
            value = str(self.share_divisor)
            problems.append(Problem("must be a whole number", path="share_divisor", value=value, allowed="1 and more"))
        if any(operand < 0 for operand in self.operands_to_prefetch):
            value = str(self.operands_to_prefetch)
            problems.append(Problem("must be operand numbers", path="operands_to_prefetch", value=value))
        if problems:
            raise InputError(problems)
