"""The stages there are, by name, and the names that zigzag-dse gives them. Modules are imported when they are used."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import cast

from tilewright.stages.base import Stage


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Stages by name."""

    homes: Mapping[str, tuple[str, ...]]
    """Module -> the stages in it."""
    other_names: Mapping[str, str]
    """Names that others use as well -> ours, without `Stage` at their end."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Our names, in the order of the catalogue."""
        return tuple(self._home_of)

    @cached_property
    def _home_of(self) -> dict[str, str]:
        return {name: home for home, names in self.homes.items() for name in names}

    def canonical_name(self, name: str) -> str:
        """Our name of a stage, '' if there is no such stage: also for `LomaStage` or `WorkloadStage`."""
        for candidate in (name, name.removeprefix("tilewright.stages.").rpartition(".")[2]):
            short = candidate.removesuffix("Stage")
            found = self.other_names.get(short, short)
            if found in self._home_of and (candidate == name or name.startswith("tilewright.stages.")):
                return found
        return ""

    def stage_class(self, name: str) -> type[Stage]:
        """The class of a stage by our name."""
        return cast(type[Stage], getattr(import_module(self._home_of[name]), name))


CATALOGUE = Catalogue(
    homes={
        "tilewright.stages.workload_parsers": ("ONNXModelParser", "WorkloadParser"),
        "tilewright.stages.hardware_parser": ("AcceleratorParser",),
        "tilewright.stages.mapping_parser": ("MappingParser",),
        "tilewright.stages.saving": ("SimpleSave", "CompleteSave", "PickleSave", "Dump"),
        "tilewright.stages.plotting": ("PlotTemporalMappings",),
        "tilewright.stages.workload": ("Workload",),
        "tilewright.stages.data_locality": ("SearchUnusedMemory", "RemoveUnusedMemory"),
        "tilewright.stages.reductions": ("MinimalLatency", "MinimalEnergy", "MinimalEDP", "Sum", "Listify"),
        "tilewright.stages.spatial": ("SpatialMappingGenerator", "SpatialMappingConversion"),
        "tilewright.stages.spatial_custom": ("CustomSpatialMappingGenerator",),
        "tilewright.stages.temporal": ("Loma", "Salsa", "Exact", "TemporalOrderingConversion"),
        "tilewright.stages.costing": ("CostModel",),
    },
    other_names={
        "SearchInterLayerDataLocality": "SearchUnusedMemory",
        "ExploitInterLayerDataLocality": "RemoveUnusedMemory",
        "TemporalMappingGenerator": "Loma",
        "Visualization": "PlotTemporalMappings",
    },
)
"""The stages of the single-core flow; those of several cores are in `multi_catalogue`."""
NAMES, OTHER_NAMES = CATALOGUE.names, CATALOGUE.other_names
canonical_name, stage_class = CATALOGUE.canonical_name, CATALOGUE.stage_class
