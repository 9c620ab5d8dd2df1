"""Slices of a multi-core pipeline.

A slice has the stages that one verb runs. Verbs pass data to each other as artifacts.

`cns` runs the stages that cut the network. `cost` runs the stage that computes the costs of computation nodes, for one
core file. `allocate` runs the remaining stages. `schedule` runs the stages of `allocate`, but with a given allocation
in place of the last stage (the search).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from tilewright.base.errors import InputError, Unused, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Parameters
from tilewright.pipeline.stages.base import Control, Stage, run_stages
from tilewright.pipeline.stages.parameters import make_stage
from tilewright.pipeline.stages.unused_beside import unused_beside
from tilewright.search.options import CnSearchOptions, CoreSearchOptions

T = TypeVar("T")


@dataclass(frozen=True)
class Slice:
    """Stages that a verb runs."""

    stages: tuple[Stage, ...]
    identity: tuple[Mapping[str, Any], ...] | None = None
    """Identities of the stages, with digests of their code, if the user gives a pipeline; None for the default stages.
    """

    @classmethod
    def default(
        cls,
        kind: type[Stage],
        options: CoreSearchOptions | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Slice":
        """Slice of the default pipeline: one stage, with its parameters from options and settings. Raises InputError
        with all wrong parameters.
        """
        stage, problems = make_stage(kind, {}, options or CnSearchOptions(), (), settings)
        if stage is None:
            raise InputError(dict.fromkeys(problems))
        return cls((stage,))

    def result(self, item: Any, kind: type[T], control: Control | None = None) -> T:
        """Single result of the stages for an item. Raises InputError if the stages do not yield exactly one result of
        type `kind`.
        """
        return only_result(run_stages(self.stages, item, control), kind)

    def stated(self, options: Mapping[str, Any], **always: Any) -> JsonObject:
        """Entry `options` in the provenance of the result. For the default stages, it has the given options. For a
        pipeline of the user, it has the identities of the stages. In both cases, the arguments `always` are added.
        """
        return {**options, **always} if self.identity is None else {**always, "pipeline": list(self.identity)}

    def unused(self, options: Parameters, given: Iterable[str]) -> list[Unused]:
        """Notices of options that the user gives but that no stage of the user's pipeline uses."""
        return [] if self.identity is None else unused_beside(self.stages, options, given)

    @property
    def exports(self) -> bool:
        """True if a stage writes files into the folder of exports."""
        return any(stage.exports for stage in self.stages)


def only_result(results: Iterable[Any], kind: type[T]) -> T:
    """Result of stages that must yield exactly one result. Raises InputError if they yield no result or several
    results. The function waits until all stages have ended.
    """
    found = list(results)
    if len(found) != 1 or not isinstance(found[0], kind):
        told = ", ".join(type(result).__name__ for result in found[:3]) or "nothing"
        raise InputError(
            f"the stages must yield one {kind.__name__}, but they yield {count_of(len(found), 'result')}: {told}"
        )
    return found[0]
