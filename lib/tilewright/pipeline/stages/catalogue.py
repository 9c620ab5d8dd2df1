"""Catalogue of the stages of each flow, with their names in tilewright, zigzag-dse and Stream.

The module of a stage is imported when the stage is used. Plug-ins register further stages for pipelines of every flow:
`stage.Bound = "their_package:Bound"`. For each objective that a plug-in registers, there is a stage that keeps the best
mapping by this objective.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import cast

from tilewright.base import objectives
from tilewright.base.objectives import reduction_of
from tilewright.base.registry import Registry, taken
from tilewright.base.stage_table import CORE, STAGES, Listed
from tilewright.base.steps import MULTI, SINGLE
from tilewright.pipeline.stages.base import Stage

_ELSEWHERE = {
    SINGLE: {MULTI: "is a stage of the multi-core flow"},
    MULTI: {
        SINGLE: "is a stage of the single-core flow; stages that map computation nodes belong in the pipeline of"
        " IntraCoreMapping"
    },
    CORE: {SINGLE: "is for whole networks, but this pipeline maps single computation nodes"},
}
"""Messages on stages of another flow. The first key is the flow of the pipeline; the second key is the flow that has
the stage.
"""
_REDUCTIONS = next(stage for stage in STAGES if stage.name == reduction_of("latency"))


def _fault(name: str, entry: object) -> str:
    """Message on an error in the class or the name of a plug-in's stage; '' if there is no error."""
    if reason := taken(name, {other for stage in STAGES for other in (stage.name, *stage.also, *stage.absorbs)}):
        return reason
    if not name.isidentifier() or name.endswith("Stage"):
        return f"has the wrong name {name}: the name must be an identifier that does not end with Stage"
    if not (isinstance(entry, type) and issubclass(entry, Stage)):
        return "is not a stage: a subclass of tilewright.pipeline.stages.Stage is needed"
    if "__dataclass_params__" not in vars(entry) and inspect.get_annotations(entry):
        return "has parameters, so it must be decorated with @dataclass(frozen=True)"
    return ""


ENTERED: Registry[type[Stage]] = Registry(__name__, _fault)
"""Stages of plug-ins, by name."""


@dataclass(frozen=True)
class Catalogue:
    """Stages that pipelines of a flow can have."""

    flow: str

    @cached_property
    def _built_in(self) -> dict[str, Listed]:
        return {stage.name: stage for stage in STAGES if self.flow in stage.flows}

    @property
    def listed(self) -> Mapping[str, Listed]:
        """Stages by name in tilewright: first the built-in stages, then the reductions for objectives of plug-ins, then
        the stages of plug-ins.
        """
        entered = ENTERED.names
        goals = objectives.ENTERED.names if self.flow in _REDUCTIONS.flows else ()
        if not entered and not goals:
            return self._built_in
        by_goal = {reduction_of(goal): replace(_REDUCTIONS, name=reduction_of(goal)) for goal in goals}
        return {**self._built_in, **by_goal, **{name: Listed(name, "", "", (self.flow,)) for name in entered}}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all stages of the flow."""
        return tuple(self.listed)

    @cached_property
    def other_names(self) -> Mapping[str, str]:
        """Names of stages in tilewright, by their names in another tool (without `Stage` at the end)."""
        return {name: stage.name for stage in self._built_in.values() for name in stage.also}

    def canonical_name(self, name: str) -> str:
        """Name of a stage in tilewright; '' if the flow has no such stage. `name` can also be the stage's name in
        another tool, such as `LomaStage` or `WorkloadStage`.
        """
        for candidate in (name, name.removeprefix("tilewright.pipeline.stages.").rpartition(".")[2]):
            short = candidate.removesuffix("Stage")
            found = self.other_names.get(short, short)
            if found in self.listed and (candidate == name or name.startswith("tilewright.pipeline.stages.")):
                return found
        return ""

    def elsewhere(self, name: str) -> str:
        """Message on a stage that the catalogue of this flow does not have; '' if the name is unknown. The message says
        that another stage of this flow does the work of the stage, or that only another flow has the stage.
        """
        for stage in self.listed.values():
            if name in stage.absorbs:
                return f"is not a separate stage here, because {stage.name} does this work; remove it"
        for other, text in _ELSEWHERE[self.flow].items():
            if name in CATALOGUES[other].listed:
                return text
        return ""

    def stage_class(self, name: str) -> type[Stage]:
        """Class of a stage, by its name in tilewright. Raises InputError for a plug-in with an error."""
        if name in ENTERED.names:
            return ENTERED[name]
        module = import_module(f"tilewright.pipeline.stages.{self.listed[name].module}")
        return cast(type[Stage], getattr(module, name))


CATALOGUES = {flow: Catalogue(flow) for flow in (SINGLE, MULTI, CORE)}
"""Catalogue of the stages of each flow."""
