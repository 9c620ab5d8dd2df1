"""How a schedule is made: which candidate goes first, what is fetched ahead, how links are shared."""

from dataclasses import dataclass

from tilewright.errors import InputError, Problem, nearest_name

SELECTIONS = ("latency", "memory")
"""Candidate selection: `latency` takes what is ready first, `memory` what is deepest in the network."""
CAUSAL, STREAM_2023 = "causal", "stream-2023"
MODELS = (CAUSAL, STREAM_2023)
"""Schedule models: the event-driven model, and the reference's of 2023 for comparison (docs/scheduling.md)."""
ARRIVAL, GAPS, EARLY = "arrival", "gaps", "early"
REPAIRS = (ARRIVAL, GAPS, EARLY)
"""Rules of stream-2023 that can be exchanged one by one, to measure what each does: a tensor is ready when it has
arrived; transfers go into gaps on links; transfers start as early as data, links and memory let them."""


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
    schedule_model: str = "causal"
    """One of MODELS."""
    stream_2023_repairs: tuple[str, ...] = ()
    """Of REPAIRS; without effect on other models."""

    def __post_init__(self) -> None:
        problems = []
        for name, value, allowed in (
            ("candidate_selection", self.candidate_selection, SELECTIONS),
            ("schedule_model", self.schedule_model, MODELS),
        ):
            if value not in allowed:
                nearest = nearest_name(value, allowed)
                problems.append(Problem("unknown", path=name, value=value, allowed=", ".join(allowed), nearest=nearest))
        problems += [
            Problem("unknown", path="stream_2023_repairs", value=repair, allowed=", ".join(REPAIRS))
            for repair in self.stream_2023_repairs
            if repair not in REPAIRS
        ]
        if self.share_divisor < 1:
            value = str(self.share_divisor)
            problems.append(Problem("must be a whole number", path="share_divisor", value=value, allowed="1 and more"))
        if any(operand < 0 for operand in self.operands_to_prefetch):
            value = str(self.operands_to_prefetch)
            problems.append(Problem("must be operand numbers", path="operands_to_prefetch", value=value))
        if problems:
            raise InputError(problems)
