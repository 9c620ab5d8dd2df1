"""How schedules of a run are made, in the words of a configuration. Nothing heavy is imported here."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.scheduling.options import ScheduleOptions

if TYPE_CHECKING:
    from tilewright.mapping.constraints import Mapping
    from tilewright.workload.graph import Workload

RUNTIMES = ("total0", "total1", "total2")
"""What counts as the runtime of a CN: with stalls; with on-loading as well; with off-loading as well."""
_KEYS = {"candidate_selection": "scheduler_candidate_selection"}


@dataclass(frozen=True)
class ScheduleSettings:
    """Settings of schedules; raises InputError with every value that is not allowed."""

    scheduler_candidate_selection: str = "latency"
    """What a core runs next: `latency` what is ready first, `memory` what is deepest in the network."""
    operands_to_prefetch: tuple[str, ...] = ()
    """Layer operands whose constants are fetched ahead, as W."""
    schedule_model: str = "causal"
    """causal, or stream-2023 for comparison with the reference."""
    share_divisor: int = 4
    """A transfer starts once it can have this part of its full width."""
    cn_runtime: str = "total1"
    """One of RUNTIMES."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands_to_prefetch", tuple(self.operands_to_prefetch))
        problems: list[Problem] = []
        try:
            self._options(())
        except InputError as error:
            problems += [replace(problem, path=_KEYS.get(problem.path, problem.path)) for problem in error.problems]
        if self.cn_runtime not in RUNTIMES:
            value, allowed = self.cn_runtime, ", ".join(RUNTIMES)
            near = nearest_name(value, RUNTIMES)
            problems.append(Problem("unknown", path="cn_runtime", value=value, allowed=allowed, nearest=near))
        if not all(isinstance(operand, str) for operand in self.operands_to_prefetch):
            value = repr(self.operands_to_prefetch)
            problems.append(Problem("must be names of layer operands", path="operands_to_prefetch", value=value))
        if problems:
            raise InputError(problems)

    def stated(self) -> dict[str, Any]:
        """The settings as plain data for provenance and results."""
        return {**asdict(self), "operands_to_prefetch": list(self.operands_to_prefetch)}

    @classmethod
    def of(cls, stated: Table[str, Any]) -> "ScheduleSettings":
        """The settings that `stated` wrote down; raises InputError with every value that is not allowed."""
        return cls(**{field.name: stated[field.name] for field in fields(cls) if field.name in stated})

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
        return self._options(tuple(sorted(memory_operands.index(name) for name in linked if name in memory_operands)))

    def _options(self, prefetch: tuple[int, ...]) -> ScheduleOptions:
        return ScheduleOptions(
            candidate_selection=self.scheduler_candidate_selection,
            operands_to_prefetch=prefetch,
            share_divisor=self.share_divisor,
            schedule_model=self.schedule_model,
        )
