"""A small network on two cores, and pipelines of the multi-core flow."""

from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError
from tilewright.pipeline.stages import Control, Descriptions, MultiCoreResult, Pipeline
from tilewright.pipeline.stages.multi.pipeline import multi_pipeline, run_whole
from tilewright.search.options import SearchOptions

from tests.unit.cli.multi_core import HARDWARE, MAPPING

OPTIONS = SearchOptions(model="corrected", lpf_limit=4)
GA = {"nb_ga_individuals": 4, "nb_ga_generations": 2, "exhaustive_nodes": 0}
"""Settings of a short genetic search."""
FULL = (
    *("StreamONNXModelParser", "AcceleratorParser", "SystemMappingParser", "GenerateCNWorkloadHybrid"),
    *("IntraCoreMapping", "InterCoreMapping"),
)
LAYERS = [
    {
        "id": number,
        "name": name,
        "operator_type": "Gemm",
        "equation": "O[d][k] += I[d][c] * W[c][k]",
        "loop_dims": ["D", "C", "K"],
        "loop_sizes": [8, 8, 8],
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"W": number, "I": max(number - 1, 0)},
    }
    for number, name in enumerate(("one", "two"))
]
"""A network as a list of layers."""


def descriptions(network: Any, mapping: Any = MAPPING) -> Descriptions:
    """Descriptions of the network on the two cores."""
    return Descriptions(HARDWARE, network, mapping)


def built(pipeline: Any = None, sliced: bool = False, **settings: Any) -> Pipeline:
    """A pipeline with settings."""
    return multi_pipeline(pipeline, OPTIONS, settings, sliced=sliced)


def run(network: Any, pipeline: Any = None, exports: Path = Path("exports"), **settings: Any) -> MultiCoreResult:
    """The result of a pipeline for a network."""
    return run_whole(built(pipeline, **GA, **settings), descriptions(network), Control(exports=exports))


def names(pipeline: Pipeline) -> tuple[str, ...]:
    """The names of the stages of a pipeline."""
    return tuple(stage.name() for stage in pipeline.stages)


def said(pipeline: Any = None, sliced: bool = False, **settings: Any) -> str:
    """The error message for a wrong pipeline."""
    try:
        built(pipeline, sliced, **settings)
    except InputError as error:
        return str(error)
    raise AssertionError("nothing is wrong")
