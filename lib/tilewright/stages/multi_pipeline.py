"""Pipelines of the multi-core flow: built and checked, whole or in the slices that the verbs run.

Between the verbs lie artifacts, so each runs a slice: `cns` the stages that cut the network, `cost` the one that costs
computation nodes, for one core file, `allocate` the rest. `schedule` is given an allocation, which takes the place of
the last stage.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.errors import InputError, KeyPath
from tilewright.scheduling.core_costs import CoreCostRow
from tilewright.scheduling.settings import ScheduleSettings
from tilewright.search.options import SearchOptions
from tilewright.stages.base import Control, Same, Stage, is_own, run_stages
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.findings import Finding
from tilewright.stages.flow import hands_on
from tilewright.stages.intra_core_mapping import unknown_core_file
from tilewright.stages.multi_allocation import CoreAllocation, FixedAllocation
from tilewright.stages.multi_flow import multi_flow
from tilewright.stages.multi_items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.stages.multi_result import MultiCoreResult
from tilewright.stages.multi_run import ScheduledNetwork
from tilewright.stages.pipeline import Pipeline, check_pipeline
from tilewright.stages.preflight_needs import prefetch_problems
from tilewright.stages.results import model_of

if TYPE_CHECKING:
    from tilewright.yamlfile import YamlDocument

T = TypeVar("T")
_NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


def check_multi_pipeline(
    value: Any,
    options: SearchOptions | None = None,
    settings: Mapping[str, Any] = _NO_SETTINGS,
    *,
    onnx: bool = True,
    folder: Path | None = None,
    sliced: bool = True,
) -> tuple[Pipeline | None, list[Finding]]:
    """The pipeline that `value` describes, or everything that is wrong with it; None is the default pipeline.

    `settings` are the parameters of a run by name, `options` those that all flows have. A `sliced` pipeline is one that
    verbs run, whose descriptions were read before.
    """
    flow = multi_flow(settings.get("split_layers") is True and not sliced)
    options = options or SearchOptions(model="corrected")
    pipeline, findings = check_pipeline(value, options, onnx=onnx, folder=folder, flow=flow, settings=settings)
    if pipeline is not None and sliced:
        findings = _what_cannot_be_sliced(pipeline)
    return (None if findings else pipeline), findings


def multi_pipeline(
    value: Any = None,
    options: SearchOptions | None = None,
    settings: Mapping[str, Any] = _NO_SETTINGS,
    *,
    onnx: bool = True,
    sliced: bool = True,
    documents: "Sequence[YamlDocument]" = (),
    prefix: KeyPath = ("pipeline",),
) -> Pipeline:
    """The same as a pipeline. Raises InputError with everything that is wrong with it and with the settings."""
    pipeline, findings = check_multi_pipeline(value, options, settings, onnx=onnx, sliced=sliced)
    if pipeline is None:
        # What is wrong with a setting has no place in the pipeline.
        raise InputError(
            dict.fromkeys(
                finding.problem(() if finding.place and finding.place[0] in settings else prefix, documents)
                for finding in findings
            )
        )
    return pipeline


@dataclass(frozen=True)
class Slices:
    """The stages of a pipeline by the verb that runs them."""

    tiling: tuple[Stage, ...]
    """Of `cns`: from the network and its cores to CNs."""
    costing: tuple[Stage, ...]
    """Of `cost`: one stage, from CNs to CNs with their costs."""
    allocation: tuple[Stage, ...]
    """Of `allocate`: from there to a schedule."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> "Slices":
        """The slices of a pipeline that `check_multi_pipeline` has found right."""
        stages = pipeline.search().stages
        place = _costing_place(stages)
        assert place is not None
        return cls(stages[:place], stages[place : place + 1], stages[place + 1 :])

    def tiled(self, problem: SystemProblem, control: Control | None = None) -> CnProblem:
        """A network in CNs. Raises InputError with everything that is wrong."""
        return _only(run_stages(self.tiling, problem, control), CnProblem)

    def core_costs(self, problem: CnProblem, core_file: str, control: Control | None = None) -> tuple[CoreCostRow, ...]:
        """What the CNs cost on one core. Raises InputError for an unknown core."""
        accelerator = problem.descriptions.accelerator
        if core_file not in accelerator.distinct_cores:
            raise InputError([unknown_core_file(accelerator, core_file)])
        wanted = replace(problem, core_files=(core_file,))
        costs = _only(run_stages(self.costing, wanted, control), CostedCnProblem).costs
        if core_file not in costs:
            given = ", ".join(costs) or "no core"
            raise InputError(f"{self.costing[0].name()} gives no costs of {core_file}, but of {given}")
        return costs[core_file]

    def allocated(self, problem: CostedCnProblem, control: Control | None = None) -> MultiCoreResult:
        """The schedule of the best allocation that the stages find."""
        return _only(run_stages(self.allocation, problem, control), MultiCoreResult)

    @property
    def exports(self) -> bool:
        """True if a stage of the last slice writes files of its own."""
        return any(stage.exports for stage in self.allocation)

    @property
    def cost_model(self) -> str:
        """The model profile of the costs; where they come from a stage of a user's that has none, its name."""
        stage = self.costing[0]
        return model_of(stage.inner()) or model_of((stage,)) or stage.name()

    def objective(self, given: str) -> str:
        """What the chosen allocation minimises: as the last stage says, or as is given where it does not."""
        last = self.allocation[-1]
        return last.objective if isinstance(last, CoreAllocation) else given

    def settings(self, given: ScheduleSettings) -> ScheduleSettings:
        """How schedules are made: as the last stage says, or as is given where it does not."""
        last = self.allocation[-1]
        return last.settings if isinstance(last, CoreAllocation) else given

    def scheduled(
        self, problem: CostedCnProblem, genome: Sequence[int], settings: ScheduleSettings, provenance: object = None
    ) -> ScheduledNetwork:
        """The schedule of an allocation, which takes the place of the search; the stages above it run as they are.

        Files that they write are those of the search, and are written there.
        """
        values = {field.name: getattr(settings, field.name) for field in fields(settings)}
        fixed = FixedAllocation(**values, genome=tuple(genome))
        above = [stage for stage in self.allocation[:-1] if not stage.observes]
        with TemporaryDirectory() as folder:
            results = run_stages((*above, fixed), problem, Control(exports=Path(folder)))
            found = _only(results, MultiCoreResult).scheduled
        return replace(found, artifact=replace(found.artifact, provenance=provenance))


def run_whole(
    pipeline: Pipeline, descriptions: Descriptions, control: Control, strict: bool = False
) -> MultiCoreResult:
    """The result of a pipeline. With `strict`, raises InputError where there is work that is not costed."""
    problem = _only(pipeline.parsers().run(descriptions, control), SystemProblem)
    if strict:
        problem.check_complete()
    last = pipeline.stages[-1]
    if isinstance(last, CoreAllocation):
        wrong = prefetch_problems(problem.workload, last.operands_to_prefetch)
        if wrong:  # told before anything is computed
            raise InputError(wrong)
    return _only(pipeline.search().run(problem, control), MultiCoreResult)


def _only(results: Iterable[Any], kind: type[T]) -> T:
    """The one result of stages, which run to their end. Raises InputError where there is another number of them."""
    found = list(results)
    if len(found) != 1 or not isinstance(found[0], kind):
        told = ", ".join(type(result).__name__ for result in found[:3]) or "nothing"
        raise InputError(f"the stages must yield one {kind.__name__}, but yield {len(found)}: {told}")
    return found[0]


def _costing_place(stages: Sequence[Stage]) -> int | None:
    """Where the stage stands that makes costs of CNs."""
    return next(
        (
            place
            for place, stage in enumerate(stages)
            if hands_on(type(stage), CostedCnProblem) and issubclass(CnProblem, stage.takes)
        ),
        None,
    )


def _what_cannot_be_sliced(pipeline: Pipeline) -> list[Finding]:
    """Why the verbs cannot run a pipeline: what was read is read, and results come up in the last slice alone."""
    parsers = tuple(stage.name() for stage in pipeline.parsers().stages)
    plain = [check_pipeline(None, SearchOptions(), onnx=onnx, flow=multi_flow())[0] for onnx in (True, False)]
    findings = []
    if not any(known is not None and known.parsers() == pipeline.parsers() for known in plain):
        message = "runs share what was read: only tilewright.run_multi_core can change the stages that read it"
        if "LayerSplitting" in parsers:
            message = "split_layers: true, or `tilewright split`, is what splits layers in a run"
        findings.append(Finding((), message, ", ".join(parsers)))
    stages = pipeline.search().stages
    place = _costing_place(stages)
    if place is None:
        message = "no stage makes costs of CnProblem; only tilewright.run_multi_core can run such a pipeline"
        return [*findings, Finding((), message)]
    for stage in stages[place + 1 :]:
        if hands_on(type(stage), CostedCnProblem):
            message = (
                f"{stage.name()} hands on costs of its own, which others could not check: replace IntraCoreMapping"
            )
            findings.append(Finding((), message))
    for stage in stages[: place + 1]:
        looks = stage.collects is not object or stage.returns is not Same
        if looks and not is_own(type(stage)):
            message = f"{stage.name()} looks at results, which come after {stages[place].name()}: put it there"
            findings.append(Finding((), message))
    return findings
