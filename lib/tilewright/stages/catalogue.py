"""The stages there are, by name, and the names that zigzag-dse gives them. Modules are imported when they are used."""

from functools import cache
from importlib import import_module
from typing import cast

from tilewright.stages.base import Stage

HOMES: dict[str, tuple[str, ...]] = {
    "tilewright.stages.workload_parsers": ("ONNXModelParser", "WorkloadParser"),
    "tilewright.stages.hardware_parser": ("AcceleratorParser",),
    "tilewright.stages.mapping_parser": ("MappingParser",),
    "tilewright.stages.saving": ("SimpleSave", "CompleteSave", "PickleSave", "Dump"),
    "tilewright.stages.plotting": ("PlotTemporalMappings",),
    "tilewright.stages.workload": ("Workload",),
    "tilewright.stages.data_locality": ("SearchUnusedMemory", "RemoveUnusedMemory"),
    "tilewright.stages.reductions": ("MinimalLatency", "MinimalEnergy", "MinimalEDP", "Sum", "Listify"),
    "tilewright.stages.spatial": ("SpatialMappingGenerator", "SpatialMappingConversion"),
    "tilewright.stages.temporal": ("Loma", "Salsa", "Exact", "TemporalOrderingConversion"),
    "tilewright.stages.costing": ("CostModel",),
}
"""Module -> the stages in it."""
_HOME_OF = {name: home for home, names in HOMES.items() for name in names}
NAMES = tuple(_HOME_OF)
OTHER_NAMES = {
    "SearchInterLayerDataLocality": "SearchUnusedMemory",
    "ExploitInterLayerDataLocality": "RemoveUnusedMemory",
    "TemporalMappingGenerator": "Loma",
    "Visualization": "PlotTemporalMappings",
}
"""Names that zigzag-dse uses as well -> ours; its names also end in `Stage`."""


def canonical_name(name: str) -> str:
    """Our name of a stage, '' if there is no such stage: also for `LomaStage` or `WorkloadStage`."""
    for candidate in (name, name.removeprefix("tilewright.stages.").rpartition(".")[2]):
        short = candidate.removesuffix("Stage")
        found = OTHER_NAMES.get(short, short)
        if found in _HOME_OF and (candidate == name or name.startswith("tilewright.stages.")):
            return found
    return ""


@cache
def stage_class(name: str) -> type[Stage]:
    """The class of a stage by our name."""
    return cast(type[Stage], getattr(import_module(_HOME_OF[name]), name))
