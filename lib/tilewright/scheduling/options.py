"""How a schedule is made: which candidate goes first, what is fetched ahead, how links are shared."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.parameters import Count, OneOf, Parameters, PositiveCount
from tilewright.scheduling.models import CAUSAL, MODELS

CandidateSelection = Literal["latency", "memory"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SchedulerParameters(Parameters):
    """What the scheduler and a configuration say in the same words."""

    scheduler_candidate_selection: CandidateSelection = "latency"
    """What a core runs next: `latency` what is ready first, `memory` what is deepest in the network."""
    schedule_model: Annotated[str, OneOf(MODELS)] = CAUSAL
    """causal: event by event; stream-2023: the list scheduler of the reference of 2023, for comparison."""
    share_divisor: PositiveCount = 4
    """A transfer starts once it can have this part of its full width; 1 waits for the full width."""


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleOptions(SchedulerParameters):
    """Options of `simulate`; raises InputError with every value that is not allowed."""

    operands_to_prefetch: tuple[Count, ...] = ()
    """Memory operands (column of `CoreSystem.core_memory`) whose constants are fetched ahead, links permitting."""
    record: bool = True
    """Keep transfers and memory use over time; without them a search evaluates faster."""
    model_repairs: tuple[str, ...] = ()
    """Rules of the schedule model that are exchanged, of those that it has; without effect on the causal model."""
