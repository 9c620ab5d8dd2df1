"""The stages of the multi-core flow by name, the names that Stream gives them, and its default pipeline."""

from tilewright.search.options import SearchOptions
from tilewright.stages.catalogue import Catalogue
from tilewright.stages.default import SINGLE
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.entries import Entry
from tilewright.stages.flow import Flow
from tilewright.stages.multi_result import MultiCoreResult
from tilewright.stages.system_problem import SystemProblem
from tilewright.steps import STEPS

CATALOGUE = Catalogue(
    homes={
        "tilewright.stages.multi_parsers": (
            *("StreamONNXModelParser", "UserDefinedModelParser", "SystemMappingParser"),
        ),
        "tilewright.stages.hardware_parser": ("AcceleratorParser",),
        "tilewright.stages.multi_splitting": ("LayerSplitting",),
        "tilewright.stages.multi_tiling": ("GenerateCNWorkloadHybrid",),
        "tilewright.stages.multi_costs": ("IntraCoreMapping",),
        "tilewright.stages.multi_allocation": ("InterCoreMapping",),
    },
    other_names={
        "ONNXModelParser": "StreamONNXModelParser",
        "WorkloadParser": "UserDefinedModelParser",
        "MappingParser": "SystemMappingParser",
        "TiledWorkloadGeneration": "GenerateCNWorkloadHybrid",
        "ZigZagCoreMappingEstimation": "IntraCoreMapping",
        "GeneticAlgorithmAllocation": "InterCoreMapping",
    },
)
"""The stages of the multi-core flow."""
_ABSORBED = {
    "LayerStacksGeneration": "GenerateCNWorkloadHybrid",
    "TilingGeneration": "GenerateCNWorkloadHybrid",
    "SetFixedAllocationPerformance": "InterCoreMapping",
    "SchedulingOrderGeneration": "InterCoreMapping",
}
"""Stage of Stream -> ours that does its work too."""
_OTHERS = {name: f"is no stage of its own here: {ours} does its work; leave it out" for name, ours in _ABSORBED.items()}
_OTHERS |= {
    name: "is a stage of the single-core flow; stages that map computation nodes stand in the pipeline of"
    " IntraCoreMapping"
    for name in SINGLE.catalogue.names
    if not CATALOGUE.canonical_name(name)
}


def parser_entries(onnx: bool = True, split_layers: bool = False) -> list[Entry]:
    """The stages that read what people wrote."""
    reader = "StreamONNXModelParser" if onnx else "UserDefinedModelParser"
    splitter = [Entry("LayerSplitting")] if split_layers else []
    return [Entry(reader), Entry("AcceleratorParser"), *splitter, Entry("SystemMappingParser")]


def multi_flow(split_layers: bool = False) -> Flow:
    """The multi-core flow, with or without the layers split in its default pipeline."""

    def parsers(onnx: bool) -> list[Entry]:
        return parser_entries(onnx, split_layers)

    def default(options: SearchOptions, onnx: bool) -> list[Entry]:
        return [*parsers(onnx), *(Entry(name) for step in ("cns", "cost", "allocate") for name in STEPS[step].stages)]

    return Flow(
        catalogue=CATALOGUE,
        default_entries=default,
        takes=Descriptions,
        giver="what people wrote",
        ends_with=STEPS["allocate"].stages,
        problem=SystemProblem,
        parser_entries=parsers,
        collects=(MultiCoreResult,),
        others=_OTHERS,
    )


MULTI = multi_flow()
