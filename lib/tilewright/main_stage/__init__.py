"""Support for scripts for zigzag-dse and Stream: `MainStage`, the stages of both tools, and translation to tilewright.

A script imports classes by `from tilewright.main_stage import MainStage, AcceleratorParserStage, ...`. The classes have
the names that the documentation of zigzag-dse and Stream uses (docs/migrate.md#scripts-that-run-as-they-are).
"""

from typing import TYPE_CHECKING, Any

from tilewright.main_stage.builtin import CLASSES, MainStage
from tilewright.main_stage.names import LayerDim, LayerOperand, MemoryOperand, OADimension, TemporalMappingType
from tilewright.main_stage.protocol import Stage, StageCallable
from tilewright.main_stage.support import SUPPORT

if TYPE_CHECKING:
    from tilewright.main_stage.accelerator import Accelerator, MemoryInstance, MemoryLevel, OperationalArray
    from tilewright.main_stage.evaluation import CostModelEvaluation, CostModelEvaluationABC, CumulativeCME
    from tilewright.main_stage.layer import LayerNode, MappingSingleOADim, SpatialMapping, TemporalMapping
    from tilewright.main_stage.several_cores import StreamCostModelEvaluation
    from tilewright.main_stage.views import DNNWorkload

globals().update(CLASSES)
globals().update(SUPPORT)

_LATER = {
    "Accelerator": "tilewright.main_stage.accelerator",
    "MemoryInstance": "tilewright.main_stage.accelerator",
    "MemoryLevel": "tilewright.main_stage.accelerator",
    "OperationalArray": "tilewright.main_stage.accelerator",
    "LayerNode": "tilewright.main_stage.layer",
    "DNNWorkload": "tilewright.main_stage.views",
    "CostModelEvaluation": "tilewright.main_stage.evaluation",
    "CostModelEvaluationABC": "tilewright.main_stage.evaluation",
    "CumulativeCME": "tilewright.main_stage.evaluation",
    "MappingSingleOADim": "tilewright.main_stage.layer",
    "SpatialMapping": "tilewright.main_stage.layer",
    "TemporalMapping": "tilewright.main_stage.layer",
    "StreamCostModelEvaluation": "tilewright.main_stage.several_cores",
}
"""Class name -> name of the module that defines the class. The modules are imported at the first use of a class."""

__all__ = [
    "Accelerator",
    "CostModelEvaluation",
    "CostModelEvaluationABC",
    "CumulativeCME",
    "DNNWorkload",
    "LayerDim",
    "LayerNode",
    "LayerOperand",
    "MainStage",
    "MappingSingleOADim",
    "MemoryInstance",
    "MemoryLevel",
    "MemoryOperand",
    "OADimension",
    "OperationalArray",
    "SpatialMapping",
    "Stage",
    "StageCallable",
    "StreamCostModelEvaluation",
    "TemporalMapping",
    "TemporalMappingType",
]
__all__ += [*CLASSES, *SUPPORT]


def __getattr__(name: str) -> Any:
    """Class called `name`, imported at its first use. Raises AttributeError with the nearest name if no class has this
    name.
    """
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    from tilewright.base.errors import nearest_name

    near = nearest_name(name, __all__)
    hint = f"; did you mean {near}?" if near else ""
    raise AttributeError(f"tilewright.main_stage has no {name}{hint}")
