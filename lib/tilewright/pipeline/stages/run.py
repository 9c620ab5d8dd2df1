"""Execution of pipelines for a layer, for a network, or for a network that is read from input files."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.memory_reach import core_for
from tilewright.pipeline.stages.base import Control, Rest, Stage, is_own
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem, of_core
from tilewright.pipeline.stages.items import LayerProblem, LayerRecord, MappedWorkload
from tilewright.pipeline.stages.layers import search_layer
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.reductions import Sum, summed
from tilewright.search.evaluate import with_reach
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store
from tilewright.search.summary import one_a_layer
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.workload.source import LAYERS, kind_of_source

Advance = Callable[[int], None]
DEFAULT_OPTIONS = SearchOptions()


@lru_cache(maxsize=64)
def default_pipeline(options: SearchOptions = DEFAULT_OPTIONS, onnx: bool = True) -> Pipeline:
    """Default pipeline, which runs if no other pipeline is given. `onnx` is true if the network is an ONNX model."""
    return Pipeline.build(None, options, onnx=onnx)


def read_problem(descriptions: Descriptions, options: SearchOptions = DEFAULT_OPTIONS) -> NetworkProblem:
    """Network problem, read from descriptions by the parsers of the default pipeline.

    Raises InputError with the problems of all descriptions.
    """
    is_onnx = descriptions.workload is None or kind_of_source(descriptions.workload) != LAYERS
    problem: NetworkProblem = next(default_pipeline(options, is_onnx).parsers().run(descriptions))
    return problem


def map_layer(
    layer: Layer,
    core: Core,
    constraints: MappingConstraints,
    options: SearchOptions = DEFAULT_OPTIONS,
    progress: Advance | None = None,
    stop: threading.Event | None = None,
) -> LayerRecord:
    """Best mapping of one layer, with the full breakdown of its costs and a row for each spatial mapping.

    The function runs the stages of the default pipeline below Workload. `progress` is a function that gets the number
    of loop orders tried since the previous call. Raises MappingError with the reason for each spatial mapping if no
    mapping fits, and SearchStoppedError if `stop` is set.
    """
    stages = below_workload(default_pipeline(options).stages)
    control = Control(stop=stop) if progress is None else Control(advance=progress, stop=stop)
    own = core_for(layer, core, constraints)
    record = search_layer(Rest(stages, control), LayerProblem(layer, own, constraints), options.objective)
    if constraints.memory_reach is None:
        return record
    return with_reach(record, core, own, layer, constraints.memory_operand_links)


def below_workload(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Stages that search a single layer. The stages that remove unused memories are left out, because they need data of
    the whole network.
    """
    place = next(i for i, stage in enumerate(stages) if stage.gives is LayerProblem)
    return tuple(stage for stage in stages[place + 1 :] if not stage.needs)


def map_workload(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    pipeline: Pipeline | None = None,
    threads: int = 1,
    store: Store | None = None,
    exports: Path | None = None,
    on_record: Callable[[LayerRecord], None] | None = None,
    show_progress: bool = False,
) -> MappedWorkload:
    """Map every layer of a network. The function `on_record` gets the record of each layer as soon as the layer is
    mapped.

    The function runs those stages of `pipeline` that come after the parsers; None stands for the default pipeline.
    Raises InputError for errors in the code of a stage of the user, and MappingError with all layers for which no
    mapping fits. If the search is interrupted, finished layers stay in `store`.
    """
    control = Control(threads, store, exports or Path("exports"), show_progress, on_record)
    return map_problem(of_core(workload, core, mapping), pipeline or default_pipeline(options), control)


def map_problem(problem: NetworkProblem, pipeline: Pipeline, control: Control | None = None) -> MappedWorkload:
    """Records and totals of a network. The function runs those stages of a pipeline that come after the parsers."""
    search = pipeline.search()
    # All results are requested, because stages that write files do so after the last result.
    results = list(_flat(search.run(problem, control or Control())))
    networks = [result for result in results if isinstance(result, MappedWorkload)]
    if networks:
        return networks[0]
    return summed(problem, (result for result in results if isinstance(result, LayerRecord)), search.stages)


def map_some_layers(
    problem: NetworkProblem, pipeline: Pipeline, layers: Iterable[str], control: Control | None = None
) -> tuple[LayerRecord, ...]:
    """Records of some layers of a network, given by name. The records are equal to those of `map_problem`.

    Stages that only observe results are left out. If a stage of the user is above Workload, all layers are mapped,
    because this stage can need all records. Raises MappingError with all requested layers for which no mapping fits.
    """
    stages = tuple(stage for stage in pipeline.search().stages if not stage.observes)
    above = stages[: next(i for i, stage in enumerate(stages) if stage.gives is LayerProblem)]
    wanted = frozenset(layers)
    is_plain = all(is_own(type(stage)) for stage in above)
    below = tuple(stage for stage in stages if not isinstance(stage, Sum)) if is_plain else stages
    control = replace(control or Control(), layers=wanted if is_plain else None)
    found = list(_flat(Pipeline(below).run(problem, control)))
    records = [one for result in found for one in (result.records if isinstance(result, MappedWorkload) else (result,))]
    return tuple(record for record in one_a_layer(records) if not wanted.isdisjoint(record.names))


def sums_up_plainly(pipeline: Pipeline) -> bool:
    """True if the stage Sum alone computes the totals of a network. Only then can `summed_again` repeat the
    computation.
    """
    return all(isinstance(one, Sum) for one in pipeline.stages if issubclass(one.returns, MappedWorkload))


def summed_again(problem: NetworkProblem, pipeline: Pipeline, records: Iterable[LayerRecord]) -> MappedWorkload:
    """Records and totals of a network, computed from the records of all layers. The result is equal to that of
    `map_problem`.
    """
    stages = pipeline.search().stages
    place = next((i for i, stage in enumerate(stages) if isinstance(stage, Sum)), -1)
    return summed(problem, records, stages[place + 1 :])


def _flat(results: Iterator[Any]) -> Iterator[MappedWorkload | LayerRecord]:
    """Layer records and mapped networks among the results of a pipeline. Lists among the results are replaced by their
    elements. Raises InputError for any other type of result.
    """
    for result in results:
        if isinstance(result, list):
            yield from _flat(iter(result))
        elif isinstance(result, MappedWorkload | LayerRecord):
            yield result
        else:
            what = type(result).__name__
            raise InputError(f"the pipeline yields {what}, not records of layers: add the stage Workload")
