"""A small network on a small core, and functions that run pipelines on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.mapping.constraints import Mapping, MappingConstraints, TemporalOrderingEntry
from tilewright.pipeline.stages import Control, MappedWorkload, NetworkProblem, Pipeline
from tilewright.pipeline.stages.descriptions import of_core
from tilewright.pipeline.stages.run import map_problem
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store

from tests.unit.cost.engine_cases import constraints, convolution, gemm, network, small_core

PROJECT = Path(__file__).resolve().parents[4]
ONE = convolution("one", K=8, C=3, OX=6, FX=3)
TWO = gemm("two", C=12, D=5, K=6)
LAYERS = (ONE, TWO, replace(ONE, name="three"))
NETWORK = network(list(LAYERS), "small_network")
CORE = small_core(buffer_bits=600)
MAPPING = Mapping((constraints(),))
OPTIONS = SearchOptions(lpf_limit=4)
SEARCH = ["SpatialMappingGenerator", "SpatialMappingConversion", "MinimalLatency", "Loma", "CostModel"]
"""The stages below a reduction over spatial mappings."""


def problem(mapping: Mapping = MAPPING) -> NetworkProblem:
    """The problem of the network on the core."""
    return of_core(NETWORK, CORE, mapping)


def ordered_mapping() -> Mapping:
    """A mapping that gives the spatial mapping and the complete loop order of both kinds of layers."""
    entries = []
    for name, layer in (("default", TWO), ("Conv", ONE)):
        loops = tuple(TemporalOrderingEntry(d, size) for d, size in layer.loop_sizes)
        entries.append(MappingConstraints(name, (("D1", ()), ("D2", ())), temporal_ordering=loops))
    return Mapping(tuple(entries))


def run(
    pipeline: Any = None,
    options: SearchOptions = OPTIONS,
    *,
    mapping: Mapping = MAPPING,
    exports: Path = Path("exports"),
    store: Store | None = None,
    **control: Any,
) -> MappedWorkload:
    """The result of a pipeline for the network."""
    built = Pipeline.build(pipeline, options)
    return map_problem(problem(mapping), built, Control(store=store, exports=exports, **control))


def results_of(pipeline: list[Any], item: Any, options: SearchOptions = OPTIONS, **control: Any) -> list[Any]:
    """The results that the stages after the parsers yield for an item."""
    return list(Pipeline.build(pipeline, options).search().run(item, Control(**control)))
