"""Table of the stages of all flows: a new stage needs its module and one line here.

This module imports nothing outside the standard library and this package, because the Snakefile imports it at every
parse, to compute digests of the code of steps.
"""

from dataclasses import dataclass

from tilewright.base.steps import MULTI, SINGLE

CORE = "core"
"""Name of the flow that the stage IntraCoreMapping runs. This flow maps a computation node on one core."""


@dataclass(frozen=True)
class Listed:
    """Row of the table of stages. `name` is the name of the class of the stage in the module `module`."""

    name: str
    module: str
    """Module of the stage, below the package `tilewright.pipeline.stages`."""
    heading: str
    """Heading of the section on the stage in docs/stages/catalogue.md."""
    flows: tuple[str, ...]
    """Flows whose pipelines can contain the stage."""
    also: tuple[str, ...] = ()
    """Names of the equivalent stages in zigzag-dse and Stream, without `Stage` at the end."""
    absorbs: tuple[str, ...] = ()
    """Further stages of zigzag-dse and Stream whose work this stage does as well."""


_PARSERS, _NETWORKS, _SAVING = "Parsers", "Networks", "Saving and drawing"
_SPATIAL, _TEMPORAL, _REDUCTIONS = "Spatial mappings", "Temporal mappings", "Reductions"
_SYSTEM, _CNS = "Reading a network for several cores", "Computation nodes"
_NETWORK, _LAYER, _CORES = (SINGLE,), (SINGLE, CORE), (MULTI,)

STAGES = (
    Listed("ONNXModelParser", "workload_parsers", _PARSERS, _NETWORK),
    Listed("WorkloadParser", "workload_parsers", _PARSERS, _NETWORK),
    Listed("AcceleratorParser", "hardware_parser", _PARSERS, (SINGLE, MULTI)),
    Listed("MappingParser", "mapping_parser", _PARSERS, _NETWORK),
    Listed("Workload", "workload", _NETWORKS, _NETWORK),
    Listed("SearchUnusedMemory", "data_locality", _NETWORKS, _NETWORK, ("SearchInterLayerDataLocality",)),
    Listed("RemoveUnusedMemory", "data_locality", _NETWORKS, _NETWORK, ("ExploitInterLayerDataLocality",)),
    Listed("SpatialMappingGenerator", "spatial", _SPATIAL, _LAYER),
    Listed("CustomSpatialMappingGenerator", "spatial", _SPATIAL, _LAYER),
    Listed("SpatialMappingConversion", "spatial_conversion", _SPATIAL, _LAYER),
    Listed("Loma", "temporal", _TEMPORAL, _LAYER, ("TemporalMappingGenerator",)),
    Listed("Salsa", "temporal", _TEMPORAL, _LAYER),
    Listed("Exact", "temporal", _TEMPORAL, _LAYER),
    Listed("Best", "temporal", _TEMPORAL, _LAYER),
    Listed("TemporalOrderingConversion", "temporal", _TEMPORAL, _LAYER),
    Listed("CostModel", "temporal", "Cost", _LAYER),
    Listed("MinimalLatency", "reductions", _REDUCTIONS, _LAYER),
    Listed("MinimalEnergy", "reductions", _REDUCTIONS, _LAYER),
    Listed("MinimalEDP", "reductions", _REDUCTIONS, _LAYER),
    Listed("Sum", "reductions", _REDUCTIONS, _NETWORK),
    Listed("Listify", "reductions", _REDUCTIONS, _NETWORK),
    Listed("SimpleSave", "watchers", _SAVING, _NETWORK),
    Listed("CompleteSave", "watchers", _SAVING, _NETWORK),
    Listed("PickleSave", "watchers", _SAVING, _NETWORK),
    Listed("Dump", "watchers", _SAVING, _NETWORK),
    Listed("PlotTemporalMappings", "watchers", _SAVING, _NETWORK, ("Visualization",)),
    Listed("StreamONNXModelParser", "multi.parsers", _SYSTEM, _CORES, ("ONNXModelParser",)),
    Listed("UserDefinedModelParser", "multi.parsers", _SYSTEM, _CORES, ("WorkloadParser",)),
    Listed("SystemMappingParser", "multi.parsers", _SYSTEM, _CORES, ("MappingParser",)),
    Listed("LayerSplitting", "multi.splitting", _SYSTEM, _CORES),
    Listed(
        *("GenerateCNWorkloadHybrid", "multi.tiling", _CNS, _CORES),
        also=("TiledWorkloadGeneration",),
        absorbs=("LayerStacksGeneration", "TilingGeneration"),
    ),
    Listed("IntraCoreMapping", "multi.costs", _CNS, _CORES, ("ZigZagCoreMappingEstimation",)),
    Listed(
        *("InterCoreMapping", "multi.allocation", _CNS, _CORES),
        also=("GeneticAlgorithmAllocation",),
        absorbs=("SetFixedAllocationPerformance", "SchedulingOrderGeneration"),
    ),
)
"""All stages, in the order in which docs/stages/catalogue.md and messages name them."""


def modules_of(*flows: str) -> tuple[str, ...]:
    """Modules of all stages that pipelines of these flows can contain. Each module is named one time."""
    listed = [stage for stage in STAGES if set(stage.flows) & set(flows)]
    return tuple(dict.fromkeys(f"tilewright.pipeline.stages.{stage.module}" for stage in listed))
