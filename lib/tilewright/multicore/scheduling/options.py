"""Options of a schedule: the schedule model, the order of candidates, prefetching, and the sharing of links.

`ScheduleOptions` is for the scheduler, `ScheduleSettings` for a configuration. All modules that this module imports are
fast to import.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from tilewright.base.errors import InputError, Problem, Unused, nearest_name, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Count, OneOf, Parameters, PositiveCount, Told, parameters_of
from tilewright.base.registry import Registry

if TYPE_CHECKING:
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.mapping.constraints import Mapping
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.multicore.scheduling.assembled import AssembledProblem
    from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem
    from tilewright.multicore.scheduling.schedule import Schedule
    from tilewright.workload.graph import Workload

CAUSAL = "causal"
"""Name of the event-driven schedule model (docs/multi-core-model/scheduling.md). Bounds and checks are for this
model.
"""


class ScheduleModel(NamedTuple):
    """Schedule model that can be used in place of the causal model."""

    problem: "Callable[[AssembledProblem, Workload, CnGraph], AssembledProblem]"
    """Function that turns the scheduling problem of the causal model into a problem for this model."""
    simulate: "Callable[[SchedulingProblem, Integers, ScheduleOptions], Schedule]"
    """Function from an allocation (array with the core of each CN) to its schedule. It raises the same errors as
    `scheduling.simulate`.
    """
    without_use: tuple[str, ...] = ()
    """Names of the schedule settings that this model ignores."""


OTHER_MODELS: Registry[ScheduleModel] = Registry(__name__)
MODELS = (CAUSAL, *OTHER_MODELS.names)
"""Allowed values of `schedule_model`."""


CandidateSelection = Literal["latency", "memory", "progress"]
StackOrder = Literal["priority", "barrier"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SchedulerParameters(Parameters):
    """Parameters that have the same names in the scheduler and in a configuration."""

    scheduler_candidate_selection: CandidateSelection = "latency"
    """Rule by which a core chooses the node that it runs next. latency: the node that is ready first; memory: the node
    whose layer comes last in the network; progress: the node whose layer has advanced least.
    """
    stack_order: StackOrder = "priority"
    """Effect of stacks. priority: with the selection `memory` or `progress`, a core prefers nodes of earlier stacks;
    barrier: in addition, no node of a stack starts before all nodes of the earlier stacks have ended.
    """
    schedule_model: Annotated[str, OneOf(MODELS)] = CAUSAL
    """Schedule model. causal: simulates event by event; stream-2023: the list scheduler of Stream in its version of
    2023, for comparisons."""
    prefetch_results: bool = False
    """True if results of computation nodes are prefetched, too: every core that will need a result fetches the result
    as soon as it exists. Transfers over a bus are multicast to all later readers.
    """
    share_divisor: PositiveCount = 4
    """Divisor for the width of transfers. A transfer starts as soon as its full width divided by this number is free.
    4: a quarter of the full width; 1: the full width.
    """

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Problems of values that exclude each other. `wrong` has the names of parameters that already have a problem;
        this class does not use it.
        """
        if self.has_barriers and self.schedule_model != CAUSAL:
            allowed = f"priority, or schedule_model: {CAUSAL}"
            yield Problem(f"{self.schedule_model} has no barrier", path="stack_order", value="barrier", allowed=allowed)
        if self.prefetch_results and self.schedule_model != CAUSAL:
            allowed = f"false, or schedule_model: {CAUSAL}"
            yield Problem(
                f"{self.schedule_model} does not prefetch", path="prefetch_results", value="true", allowed=allowed
            )
        if self.scheduler_candidate_selection == "progress" and self.schedule_model != CAUSAL:
            path, allowed = "scheduler_candidate_selection", f"latency, memory, or schedule_model: {CAUSAL}"
            yield Problem(f"{self.schedule_model} has no such rule", path=path, value="progress", allowed=allowed)

    def without_effect(self) -> dict[str, str]:
        """Option -> reason why it has no effect. Options that the schedule model ignores are included."""
        found = super().without_effect()
        if self.schedule_model == CAUSAL:
            return found
        why = f"has no effect with schedule_model {self.schedule_model}"
        own = {parameter.name for parameter in parameters_of(type(self))}
        return found | {name: why for name in OTHER_MODELS[self.schedule_model].without_use if name in own}

    @property
    def has_barriers(self) -> bool:
        """True if each stack waits for the end of all earlier stacks."""
        return self.stack_order == "barrier"


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleOptions(SchedulerParameters):
    """Options of `simulate`. Raises InputError with every value that is not allowed."""

    operands_to_prefetch: tuple[Count, ...] = ()
    """Memory operands (columns of `CoreSystem.core_memory`) whose constants are prefetched: if links are free, the
    constants are fetched before a CN needs them.
    """
    layers_by_off_chip: tuple[Count, ...] = ()
    """Layers, as in `NodeGraph.layer`, whose results reach other memories through the off-chip memory (rule 18 of
    docs/multi-core-model/transfers.md)."""
    record: bool = True
    """True to record transfers and memory use over time. A search evaluates allocations faster without these logs."""
    model_repairs: tuple[str, ...] = ()
    """Names of corrected rules (`REPAIRS`), which replace rules of the schedule model `stream-2023`. The causal model
    ignores this field.
    """


Runtime = Literal["total0", "total1", "total2"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleSettings(SchedulerParameters):
    """Settings of schedules. Raises one InputError that lists every value that is not allowed."""

    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, such as [W]")] = ()
    """Layer operands whose constants are fetched ahead, such as W."""
    cn_runtime: Runtime = "total1"
    """Phases that count as runtime of a CN. total0: computing and stalls; total1: total0 and the time to bring the
    first tiles to the array; total2: total1 and the time to take the last outputs from the array.
    """
    layers_by_off_chip: Annotated[tuple[Count, ...], Told(allowed="a list of layer ids, such as [3, 5]")] = ()
    """Ids of layers whose results take a detour through the off-chip memory on the way to other memories. The detour
    relieves a full bus if the path to the off-chip memory has free width (rule 18 of
    docs/multi-core-model/transfers.md).
    """

    def stated(self) -> JsonObject:
        """Settings as plain data for provenance and results."""
        values = {parameter.name: getattr(self, parameter.name) for parameter in parameters_of(ScheduleSettings)}
        return {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def of(cls, stated: Table[str, Any]) -> "ScheduleSettings":
        """Settings from a table that the method `stated` made. Raises one InputError that lists every value that is not
        allowed.
        """
        names = (parameter.name for parameter in parameters_of(ScheduleSettings))
        return ScheduleSettings(**{name: stated[name] for name in names if name in stated})

    def unused_properties(self, accelerator: "MultiCoreAccelerator") -> list[Unused]:
        """Notices for multicast and forwarding. Only the causal schedule model uses these two properties of a hardware
        file. For any other model, there is one notice for each of the two properties that the file has. For the causal
        model, the list is empty.
        """
        if self.schedule_model == CAUSAL:
            return []
        why = (
            f"has no effect with schedule_model {self.schedule_model}: each transfer of this model has one source core"
            " and one target core"
        )
        given = {
            "multicast": any(link.is_multicast for link in accelerator.links),
            "forwarding": accelerator.forwards_constants,
        }
        return [Unused(Problem(why, accelerator.name, path=key)) for key, is_given in given.items() if is_given]

    def options(self, workload: "Workload", mapping: "Mapping", memory_operands: Sequence[str]) -> ScheduleOptions:
        """Options of the scheduler for these settings.

        A layer operand is replaced by all memory operands to which layers link it. A layer id is replaced by the number
        of the layer. Raises InputError for operands and layers that do not exist.
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
