"""The default pipeline of the single-core flow: what `tilewright map` runs unless a pipeline is given."""

from tilewright import steps
from tilewright.search.options import SearchOptions
from tilewright.stages.catalogue import CATALOGUES
from tilewright.stages.descriptions import Descriptions, NetworkProblem
from tilewright.stages.entries import Entry
from tilewright.stages.flow import Flow

REDUCTION_OF = {"latency": "MinimalLatency", "energy": "MinimalEnergy", "EDP": "MinimalEDP"}
"""Objective -> the stage that keeps the best."""
MAPPER_OF = {"loma": "Loma", "salsa": "Salsa", "exact": "Exact"}
"""Search engine -> the stage that hands on loop orders."""


def parser_entries(onnx: bool = True) -> list[Entry]:
    """The stages that read what people wrote."""
    return [Entry("ONNXModelParser" if onnx else "WorkloadParser"), Entry("AcceleratorParser"), Entry("MappingParser")]


def search_entries(options: SearchOptions) -> list[Entry]:
    """The stages that map a network, outermost first; their parameters are those of the options."""
    reduction = Entry(REDUCTION_OF[options.objective])
    mapper = Entry(MAPPER_OF[options.temporal_mapping_search_engine])
    locality = options.exploit_data_locality
    return [
        Entry("Sum"),
        *([Entry("SearchUnusedMemory")] if locality else []),
        Entry("Workload"),
        *([Entry("RemoveUnusedMemory")] if locality else []),
        reduction,
        Entry("SpatialMappingGenerator"),
        Entry("SpatialMappingConversion"),
        reduction,
        mapper,
        Entry("CostModel"),
    ]


def default_entries(options: SearchOptions, onnx: bool = True) -> list[Entry]:
    """The whole default pipeline."""
    return [*parser_entries(onnx), *search_entries(options)]


SINGLE = Flow(
    catalogue=CATALOGUES[steps.SINGLE],
    default_entries=default_entries,
    takes=Descriptions,
    giver="what people wrote",
    problem=NetworkProblem,
    parser_entries=parser_entries,
)
"""The single-core flow."""
