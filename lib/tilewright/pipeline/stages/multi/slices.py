"""Slice of a multi-core pipeline: the stages that one verb runs, the default ones or those of a user.

Verbs exchange artifacts, so each runs a slice: `cns` runs the stages that cut the network, `cost` the one that computes
the costs of computation nodes, for one core file, and `allocate` the rest. `schedule` gets an allocation, which
replaces the last stage.
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
    """Stages that a verb runs."""

    stages: tuple[Stage, ...]
    identity: tuple[Mapping[str, Any], ...] | None = None
    """Identity of the stages with digests of their code, if they come from a given pipeline."""

    @classmethod
    def default(
        cls,
        kind: type[Stage],
        options: CoreSearchOptions | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Slice":
        """Slice of the default pipeline, which is one stage, with its parameters from options and settings.

        Raises InputError with all that are wrong.
        """
        stage, problems = make_stage(kind, {}, options or CnSearchOptions(), (), settings)
        if stage is None:
            raise InputError(dict.fromkeys(problems))
        return cls((stage,))

    def result(self, item: Any, kind: type[T], control: Control | None = None) -> T:
        """Result of the stages for an item. Raises InputError unless it is one result of type `kind`."""
        return only_result(run_stages(self.stages, item, control), kind)

    def stated(self, options: Mapping[str, Any], **always: Any) -> JsonObject:
        """Provenance of the result: the options of the default stages, or the given stages with digests of their code;
        `always` is added to both.
        """
        return {**options, **always} if self.identity is None else {**always, "pipeline": list(self.identity)}

    def unused(self, options: Parameters, given: Iterable[str]) -> list[Unused]:
        """Given options without effect because a user's stages do not use them."""
        return [] if self.identity is None else unused_beside(self.stages, options, given)

    @property
    def exports(self) -> bool:
        """Whether a stage writes files of its own."""
        return any(stage.exports for stage in self.stages)


def only_result(results: Iterable[Any], kind: type[T]) -> T:
    """Result of stages, which run to their end. Raises InputError if there are none or several."""
    found = list(results)
    if len(found) != 1 or not isinstance(found[0], kind):
        told = ", ".join(type(result).__name__ for result in found[:3]) or "nothing"
        raise InputError(f"the stages must yield one {kind.__name__}, but yield {len(found)}: {told}")
    return found[0]
