"""Schedule models: the causal one, which is compiled (`simulate`), and those of others, by name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tilewright.registry import Registry

if TYPE_CHECKING:
    from tilewright.fusion.graph import CnGraph
    from tilewright.scheduling.assembly import AssembledProblem
    from tilewright.scheduling.options import ScheduleOptions
    from tilewright.scheduling.problem import Integers, SchedulingProblem
    from tilewright.scheduling.result import Schedule
    from tilewright.workload.graph import Workload

CAUSAL = "causal"
"""The event-driven model of docs/scheduling.md, for which bounds and checks hold."""


class ScheduleModel(NamedTuple):
    """Another schedule model."""

    problem: "Callable[[AssembledProblem, Workload, CnGraph], AssembledProblem]"
    """The scheduling problem as this model sees it, of the one that the causal model schedules."""
    simulate: "Callable[[SchedulingProblem, Integers, ScheduleOptions], Schedule]"
    """The schedule of an allocation, [cn] core; raises as `scheduling.simulate` does."""


OTHER_MODELS: Registry[ScheduleModel] = Registry(__name__)
MODELS = (CAUSAL, *OTHER_MODELS.names)
"""What `schedule_model` of a run may say."""
