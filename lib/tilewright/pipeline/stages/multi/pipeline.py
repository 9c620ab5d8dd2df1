"""Pipelines of the multi-core flow, the default one and those of users: built, checked, and cut into slices for
verbs.
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
    """Stages that read the users' files."""
    reader = "StreamONNXModelParser" if onnx else "UserDefinedModelParser"
    splitter = [Entry("LayerSplitting")] if split_layers else []
    return [Entry(reader), Entry("AcceleratorParser"), *splitter, Entry("SystemMappingParser")]


def multi_flow(split_layers: bool = False) -> Flow:
    """Multi-core flow; its default pipeline splits layers if `split_layers` is true."""

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
        giver="what people wrote",
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
    """(pipeline that `value` describes, problems); the pipeline is None if there are problems. A `value` of None means
    the default pipeline.

    `settings` are the parameters of a run by name, `options` those that all flows have. A `sliced` pipeline is run by
    verbs, and its descriptions were read before.
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
    """Pipeline of the stages. Raises InputError with everything that is wrong with it and with the settings."""
    pipeline, problems = check_multi_pipeline(value, options, settings, onnx=onnx, sliced=sliced)
    if pipeline is None:
        # What is wrong with a setting has no place in the pipeline.
        raise InputError(
            dict.fromkeys(
                placed(problem, () if is_of_setting(problem, settings) else prefix, documents) for problem in problems
            )
        )
    return pipeline


def slice_of(pipeline: Pipeline, step: str) -> Slice:
    """Slice that a step (cns, cost, allocate, schedule) runs of a pipeline that passed `check_multi_pipeline`."""
    stages = pipeline.search().stages
    place = _costing_place(stages)
    assert place is not None
    parts = {"cns": stages[:place], "cost": stages[place : place + 1]}
    part = parts.get(step, stages[place + 1 :])
    return Slice(part, tuple(identity_of(stage) for stage in part))


def run_whole(
    pipeline: Pipeline, descriptions: Descriptions, control: Control, strict: bool = False
) -> MultiCoreResult:
    """Result of a pipeline. With `strict`, raises InputError for work without costs and for input without effect."""
    problem = only_result(pipeline.parsers().run(descriptions, control), SystemProblem)
    if strict:
        # Here, because configurations are checked faster.
        from tilewright.pipeline.stages.preflight.network import preflight

        refused = Problems()
        refused.attempt(problem.check_complete)
        cutting = next((stage for stage in pipeline.stages if isinstance(stage, TilingOptions)), None)
        refused.attempt(refuse_unused, [*problem.notices, *preflight(problem, cutting).notices])
        refused.finish()
    last = pipeline.stages[-1]
    if isinstance(last, CoreAllocation):
        wrong = prefetch_problems(problem.workload, last.operands_to_prefetch)
        if wrong:  # told before anything is computed
            raise InputError(wrong)
    return only_result(pipeline.search().run(problem, control), MultiCoreResult)


def _costing_place(stages: Sequence[Stage]) -> int | None:
    """Index of the stage that computes the costs of CNs; None if there is none."""
    return next(
        (
            place
            for place, stage in enumerate(stages)
            if hands_on(type(stage), CostedCnProblem) and issubclass(CnProblem, stage.takes)
        ),
        None,
    )


def _what_cannot_be_sliced(pipeline: Pipeline) -> list[Problem]:
    """Problems that prevent verbs from running a pipeline: descriptions are read only once, and results come up only in
    the last slice.
    """
    parsers = tuple(stage.name() for stage in pipeline.parsers().stages)
    plain = [check_pipeline(None, CnSearchOptions(), onnx=onnx, flow=multi_flow())[0] for onnx in (True, False)]
    problems = []
    if not any(known is not None and known.parsers() == pipeline.parsers() for known in plain):
        message = "runs share what was read: only tilewright.run_multi_core can change the stages that read it"
        if "LayerSplitting" in parsers:
            message = "split_layers: true, or `tilewright split`, is what splits layers in a run"
        problems.append(problem_at((), message, ", ".join(parsers)))
    stages = pipeline.search().stages
    place = _costing_place(stages)
    if place is None:
        message = "no stage makes costs of CnProblem; only tilewright.run_multi_core can run such a pipeline"
        return [*problems, problem_at((), message)]
    for stage in stages[place + 1 :]:
        if hands_on(type(stage), CostedCnProblem):
            message = (
                f"{stage.name()} hands on costs of its own, which others could not check: replace IntraCoreMapping"
            )
            problems.append(problem_at((), message))
    for stage in stages[: place + 1]:
        looks = stage.collects is not object or stage.returns is not Same
        if looks and not is_own(type(stage)):
            message = f"{stage.name()} looks at results, which come after {stages[place].name()}: put it there"
            problems.append(problem_at((), message))
    return problems
