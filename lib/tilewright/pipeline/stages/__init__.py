"""Stages of the search: each stage does one thing, and a pipeline combines stages (docs/stages.md).

This module has the classes for stages of your own: `from tilewright.pipeline.stages import Stage, Reduction,
Evaluations`.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "tilewright.pipeline.stages.base": ("Change", "Control", "Rest", "Same", "Stage"),
    "tilewright.pipeline.stages.descriptions": ("Descriptions", "NetworkProblem"),
    "tilewright.pipeline.stages.items": (
        "CandidateTally",
        "Evaluations",
        "LayerProblem",
        "LayerRecord",
        "MappedWorkload",
        "SpatialCandidate",
        "TemporalProblem",
    ),
    "tilewright.pipeline.stages.multi.allocation": ("CoreAllocation",),
    "tilewright.pipeline.stages.multi.items": ("CnProblem", "CostedCnProblem", "SystemProblem"),
    "tilewright.pipeline.stages.multi.result": ("MultiCoreResult",),
    "tilewright.pipeline.stages.multi.run": ("MultiCoreProblem",),
    "tilewright.pipeline.stages.pipeline": ("Pipeline",),
    "tilewright.pipeline.stages.reductions": ("Reduction",),
    "tilewright.pipeline.stages.temporal": ("TemporalMapper",),
    "tilewright.search.batch": ("CostedBatch", "OrderBatch"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tilewright.pipeline.stages' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
