"""Python functions for tasks without a command: map a layer, run several cores in one call, and export results.

An argument for hardware, workload or mapping can be a description (a file, dict or list), a parsed object, or the path
of an artifact.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.parameters import unknown_names
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.pipeline.sources import (
    AcceleratorSource,
    FilePath,
    MappingSource,
    WorkloadSource,
    parse_accelerator,
    single_core,
)
from tilewright.workload.layer import Layer

if TYPE_CHECKING:
    import pandas

    from tilewright.cost.record import LayerRecord
    from tilewright.pipeline.stages.base import Stage
    from tilewright.pipeline.stages.multi.items import CostedCnProblem
    from tilewright.pipeline.stages.multi.result import MultiCoreResult
    from tilewright.pipeline.stages.pipeline import Pipeline
    from tilewright.search.options import CoreSearchOptions, SearchOptions
    from tilewright.search.store import Store
    from tilewright.workload.network_options import NetworkOptions


def map_layer(
    layer: Layer, core: Core, constraints: MappingConstraints, options: "SearchOptions | None" = None
) -> "LayerRecord":
    """Record of the best mapping of one layer on one core. Raises MappingError if no mapping fits."""
    from tilewright.pipeline.stages import run
    from tilewright.search.options import SearchOptions

    return run.map_layer(layer, core, constraints, options or SearchOptions())


def export_mapping(records: "Sequence[LayerRecord]", hardware: AcceleratorSource | None = None) -> str:
    """Text of a mapping file with the mappings of the records. A run with this file gives the same numbers."""
    from tilewright.results.recorded_mappings import mapping_yaml

    core = single_core(parse_accelerator(hardware)) if hardware is not None else None
    return mapping_yaml(records, tuple(core.operational_array.size_of) if core else ())


def export_loop_nests(records: "Sequence[LayerRecord]") -> str:
    """Indented text for people, with the loop nest of the mapping in each record."""
    from tilewright.results.loop_nest import network_loop_nests

    return network_loop_nests(records)


def run_multi_core(
    workload: WorkloadSource,
    hardware: AcceleratorSource,
    mapping: MappingSource,
    options: "CoreSearchOptions | None" = None,
    *,
    pipeline: "Sequence[Any] | Pipeline | None" = None,
    network_options: "NetworkOptions | None" = None,
    jobs: int = 1,
    store: "Store | None" = None,
    exports: FilePath = "exports",
    strict: bool = False,
    **settings: Any,
) -> "MultiCoreResult":
    """Schedule of a network on several cores.

    The function cuts the network into computation nodes (CNs), and computes the costs of each CN on each core. It then
    allocates the CNs to cores and schedules them. `pipeline` is a list of stages, or a list of edits of the default
    pipeline of the multi-core flow. A stage can also be a class or an object. Parameters in `pipeline` take precedence
    over `settings`.

    `options` are the options of the search on each core; `objective` and `seed` also apply to the search for an
    allocation. Without `options`, the model is `corrected`. `split_layers=True` splits layers with large weights.
    Raises InputError with all errors of the input, and MappingError if no allocation has a schedule.
    """
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.pipeline import multi_pipeline, run_whole
    from tilewright.pipeline.stages.pipeline import Pipeline
    from tilewright.workload.network_options import NetworkOptions
    from tilewright.workload.source import LAYERS, kind_of_source

    if isinstance(pipeline, Pipeline):
        stages = pipeline
        problems = _unknown(settings, ())
    else:
        chosen, others = _options(options, settings)
        value, is_onnx = pipeline if pipeline is None else list(pipeline), kind_of_source(workload) != LAYERS
        stages, problems = None, []
        try:
            stages = multi_pipeline(value, chosen, others, onnx=is_onnx, sliced=False)
        except InputError as error:
            problems += error.problems
        if stages is not None or value is None:
            known = stages or multi_pipeline(sliced=False)
            problems += _unknown(others, ("split_layers", *_parameters(known.stages)))
    if problems or stages is None:
        raise InputError(problems)
    descriptions = Descriptions(hardware, workload, mapping, network_options or NetworkOptions())
    return run_whole(stages, descriptions, Control(jobs, store, Path(exports)), strict)


def cost_table(costed: "CostedCnProblem") -> "pandas.DataFrame":
    """Table of the costs of CNs, with a row for each core and each class of CNs. The CNs of a class have equal
    costs.
    """
    from tilewright.results.multi import cn_tables as tables

    return tables.cost_table(costed.costs, [layer.name for layer in costed.graph.layers])


def _options(
    options: "CoreSearchOptions | None", settings: Table[str, Any]
) -> "tuple[CoreSearchOptions, dict[str, Any]]":
    """Pair (options of a run, remaining settings). If a setting has the name of an option, its value replaces the value
    of this option.
    """
    from tilewright.search.options import CnSearchOptions

    options = options or CnSearchOptions()
    of_options = {name: value for name, value in settings.items() if name in options.as_dict()}
    others = {name: value for name, value in settings.items() if name not in of_options}
    return replace(options, **of_options), others


def _parameters(stages: "Sequence[Stage]") -> list[str]:
    """Names of the parameters of stages."""
    return list(dict.fromkeys(field.name for stage in stages for field in fields(stage)))


def _unknown(settings: Table[str, Any], known: Sequence[str]) -> list[Problem]:
    """Problems, one for each setting whose name is not in `known`."""
    return unknown_names(settings, known, "no such setting", "none, because the pipeline is already built")
