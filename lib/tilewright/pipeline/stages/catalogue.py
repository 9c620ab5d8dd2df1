"""Stages of a flow by name, also by their names in zigzag-dse and Stream; modules are imported when they are used.

Plug-ins enter further stages, which pipelines of every flow may name: `stage.Bound = "their_package:Bound"`. Each
objective of a plug-in has a stage that keeps the best mapping by it.
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
        SINGLE: "is a stage of the single-core flow; stages that map computation nodes stand in the pipeline of"
        " IntraCoreMapping"
    },
    CORE: {SINGLE: "is for whole networks; a computation node is one layer"},
}
"""Texts about a stage that only another flow has, by flow and other flow."""
_REDUCTIONS = next(stage for stage in STAGES if stage.name == reduction_of("latency"))


def _fault(name: str, entry: object) -> str:
    """Fault of a stage of a plug-in, or of its name; '' if it has none."""
    if reason := taken(name, {other for stage in STAGES for other in (stage.name, *stage.also, *stage.absorbs)}):
        return reason
    if not name.isidentifier() or name.endswith("Stage"):
        return f"has the name {name}: an identifier without Stage at its end is needed"
    if not (isinstance(entry, type) and issubclass(entry, Stage)):
        return "is no stage: a subclass of tilewright.pipeline.stages.Stage is needed"
    if "__dataclass_params__" not in vars(entry) and inspect.get_annotations(entry):
        return "has parameters, but is not decorated @dataclass(frozen=True)"
    return ""


ENTERED: Registry[type[Stage]] = Registry(__name__, _fault)
"""Stages of plug-ins, by name."""


@dataclass(frozen=True)
class Catalogue:
    """Stages that pipelines of a flow may have."""

    flow: str

    @cached_property
    def _built_in(self) -> dict[str, Listed]:
        return {stage.name: stage for stage in STAGES if self.flow in stage.flows}

    @property
    def listed(self) -> Mapping[str, Listed]:
        """Stages by their names here: those of the table in its order, reductions of plug-ins, stages of plug-ins."""
        entered = ENTERED.names
        goals = objectives.ENTERED.names if self.flow in _REDUCTIONS.flows else ()
        if not entered and not goals:
            return self._built_in
        by_goal = {reduction_of(goal): replace(_REDUCTIONS, name=reduction_of(goal)) for goal in goals}
        return {**self._built_in, **by_goal, **{name: Listed(name, "", "", (self.flow,)) for name in entered}}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages here."""
        return tuple(self.listed)

    @cached_property
    def other_names(self) -> Mapping[str, str]:
        """Names here of stages by their names in other tools, without `Stage` at the end."""
        return {name: stage.name for stage in self._built_in.values() for name in stage.also}

    def canonical_name(self, name: str) -> str:
        """Name here of a stage, also for `LomaStage` or `WorkloadStage`; '' if there is no such stage."""
        for candidate in (name, name.removeprefix("tilewright.pipeline.stages.").rpartition(".")[2]):
            short = candidate.removesuffix("Stage")
            found = self.other_names.get(short, short)
            if found in self.listed and (candidate == name or name.startswith("tilewright.pipeline.stages.")):
                return found
        return ""

    def elsewhere(self, name: str) -> str:
        """Text on the flow of a stage that this flow does not have; '' for an unknown name."""
        for stage in self.listed.values():
            if name in stage.absorbs:
                return f"is no stage of its own here: {stage.name} does its work; leave it out"
        for other, text in _ELSEWHERE[self.flow].items():
            if name in CATALOGUES[other].listed:
                return text
        return ""

    def stage_class(self, name: str) -> type[Stage]:
        """Class of a stage by its name here. Raises InputError for a plug-in that is at fault."""
        if name in ENTERED.names:
            return ENTERED[name]
        module = import_module(f"tilewright.pipeline.stages.{self.listed[name].module}")
        return cast(type[Stage], getattr(module, name))


CATALOGUES = {flow: Catalogue(flow) for flow in (SINGLE, MULTI, CORE)}
"""Stages of each flow."""
