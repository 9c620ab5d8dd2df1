"""Options of a schedule: its model, which candidate goes first, what is fetched ahead, how links are shared.

For the scheduler, and in the words of a configuration: nothing heavy is imported here.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from tilewright.base.errors import InputError, Problem, nearest_name, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Count, OneOf, Parameters, PositiveCount, Told, parameters_of
from tilewright.base.registry import Registry

if TYPE_CHECKING:
    from tilewright.mapping.constraints import Mapping
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.multicore.scheduling.assembled import AssembledProblem
    from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem
    from tilewright.multicore.scheduling.schedule import Schedule
    from tilewright.workload.graph import Workload

CAUSAL = "causal"
"""The event-driven model of docs/multi-core-model.md#scheduling, for which bounds and checks hold."""


class ScheduleModel(NamedTuple):
    """Another schedule model."""

    problem: "Callable[[AssembledProblem, Workload, CnGraph], AssembledProblem]"
    """The scheduling problem as this model sees it, of the one that the causal model schedules."""
    simulate: "Callable[[SchedulingProblem, Integers, ScheduleOptions], Schedule]"
    """The schedule of an allocation, [cn] core; raises as `scheduling.simulate` does."""
    without_use: tuple[str, ...] = ()
    """Settings of schedules that it does not know."""


OTHER_MODELS: Registry[ScheduleModel] = Registry(__name__)
MODELS = (CAUSAL, *OTHER_MODELS.names)
"""What `schedule_model` of a run may say."""


CandidateSelection = Literal["latency", "memory"]
StackOrder = Literal["priority", "barrier"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SchedulerParameters(Parameters):
    """Parameters with the same names in the scheduler and in a configuration."""

    scheduler_candidate_selection: CandidateSelection = "latency"
    """Node that a core runs next: `latency` the one that is ready first, `memory` the deepest one in the network."""
    stack_order: StackOrder = "priority"
    """Effect of stacks. priority: with selection `memory` a core takes a node of the earliest stack; barrier: also, no
    node of a stack starts before all nodes of the earlier stacks have ended."""
    schedule_model: Annotated[str, OneOf(MODELS)] = CAUSAL
    """causal: event by event; stream-2023: the list scheduler of the reference of 2023, for comparison."""
    prefetch_results: bool = False
    """Fetch results of computation nodes ahead, too: every core that needs a result fetches it as soon as it exists.
    Transfers over a bus are multicast to all later readers."""
    share_divisor: PositiveCount = 4
    """Divisor of the full width of a transfer that gives the least width with which it starts: 4 is a quarter; 1 waits
    for the full width."""

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Problems of values that do not go together; those named in `wrong` have problems of their own already."""
        if self.has_barriers and self.schedule_model != CAUSAL:
            allowed = f"priority, or schedule_model: {CAUSAL}"
            yield Problem(f"{self.schedule_model} has none", path="stack_order", value="barrier", allowed=allowed)
        if self.prefetch_results and self.schedule_model != CAUSAL:
            allowed = f"false, or schedule_model: {CAUSAL}"
            yield Problem(f"{self.schedule_model} does not", path="prefetch_results", value="true", allowed=allowed)

    def without_effect(self) -> dict[str, str]:
        """Options that another schedule model does not know."""
        found = super().without_effect()
        if self.schedule_model == CAUSAL:
            return found
        why = f"has no effect with schedule_model {self.schedule_model}"
        own = {parameter.name for parameter in parameters_of(type(self))}
        return found | {name: why for name in OTHER_MODELS[self.schedule_model].without_use if name in own}

    @property
    def has_barriers(self) -> bool:
        """Whether a stack waits for the end of those before it."""
        return self.stack_order == "barrier"


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleOptions(SchedulerParameters):
    """Options of `simulate`; raises InputError with every value that is not allowed."""

    operands_to_prefetch: tuple[Count, ...] = ()
    """Memory operands (column of `CoreSystem.core_memory`) whose constants are fetched ahead, links permitting."""
    layers_by_off_chip: tuple[Count, ...] = ()
    """Layers, as in `NodeGraph.layer`, whose results go to other memories by way of the off-chip memory (rule 18)."""
    record: bool = True
    """Keep transfers and memory use over time; without them a search evaluates faster."""
    model_repairs: tuple[str, ...] = ()
    """Rules of the schedule model that are exchanged, of those that it has; without effect on the causal model."""


Runtime = Literal["total0", "total1", "total2"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleSettings(SchedulerParameters):
    """Settings of schedules; raises InputError with every value that is not allowed."""

    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, as [W]")] = ()
    """Layer operands whose constants are fetched ahead, such as W."""
    cn_runtime: Runtime = "total1"
    """Runtime of a CN: total0 with stalls, total1 with on-loading as well, total2 with off-loading as well."""
    layers_by_off_chip: Annotated[tuple[Count, ...], Told(allowed="a list of ids of layers, as [3, 5]")] = ()
    """Ids of the layers whose results go to other memories through the off-chip memory, to avoid full links."""

    def stated(self) -> JsonObject:
        """The settings as plain data for provenance and results."""
        values = {parameter.name: getattr(self, parameter.name) for parameter in parameters_of(ScheduleSettings)}
        return {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def of(cls, stated: Table[str, Any]) -> "ScheduleSettings":
        """The settings that `stated` wrote down; raises InputError with every value that is not allowed."""
        names = (parameter.name for parameter in parameters_of(ScheduleSettings))
        return ScheduleSettings(**{name: stated[name] for name in names if name in stated})

    def options(self, workload: "Workload", mapping: "Mapping", memory_operands: Sequence[str]) -> ScheduleOptions:
        """The options of the scheduler: layer operands as the memory operands that they are linked to in any layer, and
        layers by their numbers.

        Raises InputError for operands and layers that there are not.
        """
        layers = [node.layer for node in workload.nodes if node.layer is not None]
        known = list(dict.fromkeys(operand for layer in layers for operand in layer.input_operands))
        problems = [
            Problem(
                "no layer has this operand",
                path="operands_to_prefetch",
                value=operand,
                allowed=", ".join(known),
                nearest=nearest_name(operand, known),
            )
            for operand in self.operands_to_prefetch
            if operand not in known
        ]
        numbers = {
            node.node_id: number
            for number, node in enumerate(node for node in workload.nodes if node.layer is not None)
        }
        problems += [
            Problem(
                "no layer has this id",
                path=f"layers_by_off_chip[{place}]",
                value=str(node_id),
                allowed=some_of([str(number) for number in numbers]),
            )
            for place, node_id in enumerate(self.layers_by_off_chip)
            if node_id not in numbers
        ]
        if problems:
            raise InputError(problems)
        linked = {
            memory_operand
            for layer in layers
            for operand, memory_operand in mapping.constraints_for(layer).memory_operand_links
            if operand in self.operands_to_prefetch and operand in layer.operands
        }
        columns = tuple(sorted(memory_operands.index(name) for name in linked if name in memory_operands))
        by_off_chip = tuple(sorted(numbers[node_id] for node_id in set(self.layers_by_off_chip)))
        return self.part(ScheduleOptions, operands_to_prefetch=columns, layers_by_off_chip=by_off_chip)
