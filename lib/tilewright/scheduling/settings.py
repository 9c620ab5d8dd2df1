"""How schedules of a run are made, in the words of a configuration. Nothing heavy is imported here."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.parameters import Told, parameters_of
from tilewright.scheduling.options import ScheduleOptions, SchedulerParameters

if TYPE_CHECKING:
    from tilewright.mapping.constraints import Mapping
    from tilewright.workload.graph import Workload

Runtime = Literal["total0", "total1", "total2"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleSettings(SchedulerParameters):
    """Settings of schedules; raises InputError with every value that is not allowed."""

    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, as [W]")] = ()
    """Layer operands whose constants are fetched ahead, such as W."""
    cn_runtime: Runtime = "total1"
    """Runtime of a CN: total0 with stalls, total1 with on-loading as well, total2 with off-loading as well."""

    def stated(self) -> dict[str, Any]:
        """The settings as plain data for provenance and results."""
        names = (parameter.name for parameter in parameters_of(ScheduleSettings))
        return {**{name: getattr(self, name) for name in names}, "operands_to_prefetch": [*self.operands_to_prefetch]}

    @classmethod
    def of(cls, stated: Table[str, Any]) -> "ScheduleSettings":
        """The settings that `stated` wrote down; raises InputError with every value that is not allowed."""
        names = (parameter.name for parameter in parameters_of(ScheduleSettings))
        return ScheduleSettings(**{name: stated[name] for name in names if name in stated})

    def options(self, workload: "Workload", mapping: "Mapping", memory_operands: Sequence[str]) -> ScheduleOptions:
        """The options of the scheduler: layer operands as the memory operands that they are linked to in any layer.

        Raises InputError for operands that no layer has.
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
        if problems:
            raise InputError(problems)
        linked = {
            memory_operand
            for layer in layers
            for operand, memory_operand in mapping.constraints_for(layer).memory_operand_links
            if operand in self.operands_to_prefetch and operand in layer.operands
        }
        columns = tuple(sorted(memory_operands.index(name) for name in linked if name in memory_operands))
        return self.part(ScheduleOptions, operands_to_prefetch=columns)
