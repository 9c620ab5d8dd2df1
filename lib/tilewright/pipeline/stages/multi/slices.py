"""A slice of the pipeline of the multi-core flow: the stages that one verb runs, the default ones or those of a user.

Between the verbs lie artifacts, so each runs a slice: `cns` the stages that cut the network, `cost` the one that costs
computation nodes, for one core file, `allocate` the rest. `schedule` is given an allocation, which takes the place of
the last stage.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from tilewright.base.errors import InputError, Unused
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Parameters
from tilewright.pipeline.stages.base import Control, Stage, run_stages
from tilewright.pipeline.stages.parameters import make_stage
from tilewright.pipeline.stages.unused_beside import unused_beside
from tilewright.search.options import CnSearchOptions, CoreSearchOptions

T = TypeVar("T")


@dataclass(frozen=True)
class Slice:
    """The stages that a verb runs."""

    stages: tuple[Stage, ...]
    identity: tuple[Mapping[str, Any], ...] | None = None
    """What they are, with digests of their code, if they come from a pipeline that was given."""

    @classmethod
    def default(
        cls,
        kind: type[Stage],
        options: CoreSearchOptions | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Slice":
        """The slice of the default pipeline, which is one stage, with its parameters from options and settings.

        Raises InputError with all that are wrong.
        """
        stage, problems = make_stage(kind, {}, options or CnSearchOptions(), (), settings)
        if stage is None:
            raise InputError(dict.fromkeys(problems))
        return cls((stage,))

    def result(self, item: Any, kind: type[T], control: Control | None = None) -> T:
        """What the stages make of an item. Raises InputError where that is not one result of the kind."""
        return only_result(run_stages(self.stages, item, control), kind)

    def stated(self, options: Mapping[str, Any], **always: Any) -> JsonObject:
        """What decides the result, for provenance: the options of the default stages, or the stages that were given
        with the digests of their code; `always` is told of both."""
        return {**options, **always} if self.identity is None else {**always, "pipeline": list(self.identity)}

    def unused(self, options: Parameters, given: Iterable[str]) -> list[Unused]:
        """What has no effect of the options that were given by name beside stages of a user's."""
        return [] if self.identity is None else unused_beside(self.stages, options, given)

    @property
    def exports(self) -> bool:
        """True if a stage writes files of its own."""
        return any(stage.exports for stage in self.stages)


def only_result(results: Iterable[Any], kind: type[T]) -> T:
    """The one result of stages, which run to their end. Raises InputError where there is another number of them."""
    found = list(results)
    if len(found) != 1 or not isinstance(found[0], kind):
        told = ", ".join(type(result).__name__ for result in found[:3]) or "nothing"
        raise InputError(f"the stages must yield one {kind.__name__}, but yield {len(found)}: {told}")
    return found[0]
