"""Pipelines of the multi-core flow: construction, check, and division into slices.

Each verb, such as `tilewright cost`, runs one slice.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tilewright.base import steps
from tilewright.base.errors import InputError, KeyPath, Problem, Problems
from tilewright.base.unused import refuse_unused
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.base import Control, Same, Stage, is_own
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.entries import Entry, Flow, hands_on
from tilewright.pipeline.stages.multi.allocation import CoreAllocation
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.result import MultiCoreResult
from tilewright.pipeline.stages.multi.slices import Slice, only_result
from tilewright.pipeline.stages.pipeline import Pipeline, check_pipeline
from tilewright.pipeline.stages.places import is_of_setting, placed, problem_at
from tilewright.pipeline.stages.preflight.needs import prefetch_problems
from tilewright.pipeline.stages.user_stages import identity_of
from tilewright.search.options import CnSearchOptions, CoreSearchOptions

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument


def parser_entries(onnx: bool = True, split_layers: bool = False) -> list[Entry]:
    """Pipeline entries of the stages that read workload, hardware and mapping. The workload is an ONNX model if `onnx`
    is True, and otherwise a list of layers. If `split_layers` is True, a stage that splits layers is included.
    """
    reader = "StreamONNXModelParser" if onnx else "UserDefinedModelParser"
    splitter = [Entry("LayerSplitting")] if split_layers else []
    return [Entry(reader), Entry("AcceleratorParser"), *splitter, Entry("SystemMappingParser")]


def multi_flow(split_layers: bool = False) -> Flow:
    """Kind of pipeline for networks on several cores. Its default pipeline splits layers if `split_layers` is True."""

    def parsers(onnx: bool) -> list[Entry]:
        return parser_entries(onnx, split_layers)

    def default(options: CoreSearchOptions, onnx: bool) -> list[Entry]:
        return [
            *parsers(onnx),
            *(Entry(name) for step in ("cns", "cost", "allocate") for name in steps.STEPS[step].stages),
        ]

    return Flow(
        catalogue=CATALOGUES[steps.MULTI],
        default_entries=default,
        takes=Descriptions,
        giver="the input files",
        problem=SystemProblem,
        parser_entries=parsers,
        collects=(MultiCoreResult,),
    )


MULTI = multi_flow()


_NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


def check_multi_pipeline(
    value: Any,
    options: CoreSearchOptions | None = None,
    settings: Mapping[str, Any] = _NO_SETTINGS,
    *,
    onnx: bool = True,
    folder: Path | None = None,
    sliced: bool = True,
) -> tuple[Pipeline | None, list[Problem]]:
    """Pair (pipeline that `value` describes, errors). The pipeline is None if there are errors. If `value` is None, the
    pipeline is the default pipeline.

    `options` has the parameters that all flows have. `settings` has the parameters that only the multi-core flow has,
    by name. `onnx` chooses the default parser of the workload. Dotted paths are looked up in `folder`.

    If `sliced` is True, several verbs run the pipeline, each verb one slice of it. It is then an error if the pipeline
    cannot be divided into slices. The setting `split_layers` then adds no stage, because the verb `split` splits
    layers.
    """
    flow = multi_flow(settings.get("split_layers") is True and not sliced)
    options = options or CnSearchOptions()
    pipeline, problems = check_pipeline(value, options, onnx=onnx, folder=folder, flow=flow, settings=settings)
    if pipeline is not None and sliced:
        problems = _what_cannot_be_sliced(pipeline)
    return (None if problems else pipeline), problems


def multi_pipeline(
    value: Any = None,
    options: CoreSearchOptions | None = None,
    settings: Mapping[str, Any] = _NO_SETTINGS,
    *,
    onnx: bool = True,
    sliced: bool = True,
    documents: "Sequence[YamlDocument]" = (),
    prefix: KeyPath = ("pipeline",),
) -> Pipeline:
    """Pipeline that `value` describes. Raises InputError with all errors of the pipeline and the settings."""
    pipeline, problems = check_multi_pipeline(value, options, settings, onnx=onnx, sliced=sliced)
    if pipeline is None:
        # The place of an error in a setting is not in the pipeline.
        raise InputError(
            dict.fromkeys(
                placed(problem, () if is_of_setting(problem, settings) else prefix, documents) for problem in problems
            )
        )
    return pipeline


def slice_of(pipeline: Pipeline, step: str) -> Slice:
    """Slice of a pipeline that a step (cns, cost, allocate or schedule) runs. `check_multi_pipeline` must have found no
    errors in the pipeline.
    """
    stages = pipeline.search().stages
    place = _costing_place(stages)
    assert place is not None
    parts = {"cns": stages[:place], "cost": stages[place : place + 1]}
    part = parts.get(step, stages[place + 1 :])
    return Slice(part, tuple(identity_of(stage) for stage in part))


def run_whole(
    pipeline: Pipeline, descriptions: Descriptions, control: Control, strict: bool = False
) -> MultiCoreResult:
    """Result of a pipeline. With `strict`, raises InputError for operators without costs and for input without
    effect.
    """
    problem = only_result(pipeline.parsers().run(descriptions, control), SystemProblem)
    if strict:
        # Imported here, because the check of configurations is faster without it.
        from tilewright.pipeline.stages.preflight.network import preflight

        refused = Problems()
        refused.attempt(problem.check_complete)
        cutting = next((stage for stage in pipeline.stages if isinstance(stage, TilingOptions)), None)
        refused.attempt(refuse_unused, [*problem.notices, *preflight(problem, cutting).notices])
        refused.finish()
    last = pipeline.stages[-1]
    if isinstance(last, CoreAllocation):
        wrong = prefetch_problems(problem.workload, last.operands_to_prefetch)
        if wrong:  # an error before the computation starts
            raise InputError(wrong)
    return only_result(pipeline.search().run(problem, control), MultiCoreResult)


def _costing_place(stages: Sequence[Stage]) -> int | None:
    """Index of the stage that computes the costs of computation nodes; None if there is no such stage."""
    return next(
        (
            place
            for place, stage in enumerate(stages)
            if hands_on(type(stage), CostedCnProblem) and issubclass(CnProblem, stage.takes)
        ),
        None,
    )


def _what_cannot_be_sliced(pipeline: Pipeline) -> list[Problem]:
    """Errors that prevent the verbs from running a pipeline in slices. There are four kinds of errors:

    * The parsers are not the default parsers.
    * No stage computes costs.
    * A stage after the stage that computes costs hands on other costs.
    * A stage of the user uses results, but comes before the stage that computes costs.
    """
    parsers = tuple(stage.name() for stage in pipeline.parsers().stages)
    plain = [check_pipeline(None, CnSearchOptions(), onnx=onnx, flow=multi_flow())[0] for onnx in (True, False)]
    problems = []
    if not any(known is not None and known.parsers() == pipeline.parsers() for known in plain):
        message = "parsers cannot be changed here, because runs share parsed files: use tilewright.run_multi_core"
        if "LayerSplitting" in parsers:
            message = "LayerSplitting cannot be used here: use split_layers: true or `tilewright split`"
        problems.append(problem_at((), message, ", ".join(parsers)))
    stages = pipeline.search().stages
    place = _costing_place(stages)
    if place is None:
        message = "no stage computes costs from a CnProblem; only tilewright.run_multi_core can run such a pipeline"
        return [*problems, problem_at((), message)]
    for stage in stages[place + 1 :]:
        if hands_on(type(stage), CostedCnProblem):
            name = stage.name()
            message = (
                f"{name} makes its own costs, so it cannot come after IntraCoreMapping: put {name} in the place of"
                " IntraCoreMapping"
            )
            problems.append(problem_at((), message))
    for stage in stages[: place + 1]:
        looks = stage.collects is not object or stage.returns is not Same
        if looks and not is_own(type(stage)):
            message = (
                f"{stage.name()} uses results, which exist only after {stages[place].name()}: put it after that stage"
            )
            problems.append(problem_at((), message))
    return problems
