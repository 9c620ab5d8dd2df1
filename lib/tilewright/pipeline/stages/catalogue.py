"""Stages of a flow by name, also by their names in zigzag-dse and Stream; modules are imported when they are used."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import cast

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


@dataclass(frozen=True)
class Catalogue:
    """Stages that pipelines of a flow may have."""

    flow: str

    @cached_property
    def listed(self) -> Mapping[str, Listed]:
        """Stages by their names here, in the order of the table."""
        return {stage.name: stage for stage in STAGES if self.flow in stage.flows}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages here."""
        return tuple(self.listed)

    @cached_property
    def other_names(self) -> Mapping[str, str]:
        """Names here of stages by their names in other tools, without `Stage` at the end."""
        return {name: stage.name for stage in self.listed.values() for name in stage.also}

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
        """Class of a stage by its name here."""
        module = import_module(f"tilewright.pipeline.stages.{self.listed[name].module}")
        return cast(type[Stage], getattr(module, name))


CATALOGUES = {flow: Catalogue(flow) for flow in (SINGLE, MULTI, CORE)}
"""Stages of each flow."""
