"""The default pipeline of the single-core flow: what `tilewright map` runs unless a pipeline is given."""

from typing import get_args

from tilewright import steps
from tilewright.search.options import OBJECTIVES, CoreSearchOptions, SearchEngine, SearchOptions
from tilewright.stages.catalogue import CATALOGUES
from tilewright.stages.descriptions import Descriptions, NetworkProblem
from tilewright.stages.entries import Entry
from tilewright.stages.flow import Flow


def _stage_named(prefix: str, value: str) -> str:
    return f"{prefix}{value[0].upper()}{value[1:]}"


REDUCTION_OF = {objective: _stage_named("Minimal", objective) for objective in OBJECTIVES}
"""Objective -> the stage that keeps the best."""
MAPPER_OF = {engine: _stage_named("", engine) for engine in get_args(SearchEngine)}
"""Search engine -> the stage that hands on loop orders."""


def parser_entries(onnx: bool = True) -> list[Entry]:
    """The stages that read what people wrote."""
    return [Entry("ONNXModelParser" if onnx else "WorkloadParser"), Entry("AcceleratorParser"), Entry("MappingParser")]


def search_entries(options: CoreSearchOptions) -> list[Entry]:
    """The stages that map a network, outermost first; their parameters are those of the options."""
    reduction = Entry(REDUCTION_OF[options.objective])
    mapper = Entry(MAPPER_OF[options.temporal_mapping_search_engine])
    locality = isinstance(options, SearchOptions) and options.exploit_data_locality
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


def default_entries(options: CoreSearchOptions, onnx: bool = True) -> list[Entry]:
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
