"""A pipeline: stages in an order that fits, checked when it is built, before anything runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tilewright.errors import InputError, KeyPath, Problem, nearest_name
from tilewright.search.options import OBJECTIVES, CoreSearchOptions, SearchOptions
from tilewright.stages.base import Control, Stage, run_stages
from tilewright.stages.default import SINGLE
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.entries import Entry, read_entries
from tilewright.stages.flow import Flow, hands_on
from tilewright.stages.items import SpatialCandidate, TemporalProblem
from tilewright.stages.parameters import make_stage
from tilewright.stages.pipeline_order import Placed, what_does_not_fit
from tilewright.stages.places import moved, placed, problem_at

if TYPE_CHECKING:
    from tilewright.yamlfile import YamlDocument


@dataclass(frozen=True)
class Pipeline:
    """Stages in order, outermost first."""

    stages: tuple[Stage, ...]

    @classmethod
    def build(
        cls,
        value: Any = None,
        options: CoreSearchOptions | None = None,
        *,
        onnx: bool = True,
        folder: Path | None = None,
        documents: "Sequence[YamlDocument]" = (),
        prefix: KeyPath = ("pipeline",),
        flow: Flow = SINGLE,
    ) -> "Pipeline":
        """The pipeline that `value` describes: None for the default, else a list of stages or of edits of the default.

        `options` give the parameters that the pipeline does not; `onnx` says which parser is the default; dotted paths
        are looked up below `folder`; `documents` and `prefix` say where `value` is written; `flow` says what pipelines
        are made of. Raises InputError with everything that is wrong.
        """
        pipeline, problems = check_pipeline(value, options or SearchOptions(), onnx=onnx, folder=folder, flow=flow)
        if problems or pipeline is None:
            raise InputError(dict.fromkeys(placed(problem, prefix, documents) for problem in problems))
        return pipeline

    def run(self, item: Any, control: Control | None = None) -> Iterator[Any]:
        """The results for an item of the type that the first stage takes."""
        return run_stages(self.stages, item, control)

    def parsers(self) -> "Pipeline":
        """The slice that reads descriptions."""
        return Pipeline(self.stages[: self._parser_count])

    def search(self) -> "Pipeline":
        """The slice that maps the network problem which the parsers make."""
        return Pipeline(self.stages[self._parser_count :])

    @property
    def _parser_count(self) -> int:
        return next((i for i, stage in enumerate(self.stages) if stage.takes is not Descriptions), len(self.stages))

    @property
    def exports(self) -> bool:
        """True if a stage writes files of its own."""
        return any(stage.exports for stage in self.stages)


def check_pipeline(
    value: Any,
    options: CoreSearchOptions,
    *,
    onnx: bool = True,
    folder: Path | None = None,
    flow: Flow = SINGLE,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Pipeline | None, list[Problem]]:
    """The pipeline that `value` describes, or everything that is wrong with it.

    `settings` are further parameters of the run, by name; what is wrong with one is told at its name alone.
    """
    default = flow.default_entries(options, onnx)
    entries, problems = (default, []) if value is None else read_entries(value, default, flow.catalogue)
    complete = not problems
    placed: list[Placed] = []
    for entry in entries:
        kind = _class_of(entry, flow, folder, problems)
        if kind is None:
            continue
        if isinstance(entry.stage, Stage):
            placed.append(Placed(kind, entry, entry.stage))
            continue
        given = _with_objective(kind, entry, placed)
        stage, wrong = make_stage(kind, given, options, entry.parameter_place, settings)
        problems += [problem for problem in wrong if problem not in problems]
        placed.append(Placed(kind, entry, stage))
    if complete and len(placed) == len(entries):
        # With something unknown in it, every complaint about the order could be wrong.
        placed = _with_what_goes_without_saying(placed, options, onnx, flow)
        problems += what_does_not_fit(placed, flow)
    stages = tuple(item.stage for item in placed if item.stage is not None)
    return (None if problems else Pipeline(stages)), problems


def _class_of(entry: Entry, flow: Flow, folder: Path | None, problems: list[Problem]) -> type[Stage] | None:
    if isinstance(entry.stage, Stage):
        return type(entry.stage)
    if isinstance(entry.stage, type):
        return entry.stage
    name = flow.catalogue.canonical_name(entry.stage)
    if name:
        return flow.catalogue.stage_class(name)
    from tilewright.stages.user_stages import is_dotted_path, load_class

    if is_dotted_path(entry.stage):
        try:
            return load_class(entry.stage, folder)
        except InputError as error:
            problems += [moved(problem, entry.place) for problem in error.problems]
            return None
    short = entry.stage.removesuffix("Stage")
    if elsewhere := flow.catalogue.elsewhere(short):
        problems.append(problem_at(entry.place, f"{short} {elsewhere}"))
        return None
    names = flow.catalogue.names
    nearest = nearest_name(short, names)
    allowed = "" if nearest else ", ".join(names) + ", or the dotted path of a class of yours"
    problems.append(problem_at(entry.place, "no such stage", repr(entry.stage), allowed, nearest))
    return None


def _with_objective(kind: type[Stage], entry: Entry, above: list[Placed]) -> Any:
    """The parameters of an entry; a search goes by what the reduction above it keeps, unless it is told otherwise."""
    given = entry.parameters
    if "objective" not in getattr(kind, "__dataclass_fields__", {}) or not isinstance(given, dict):
        return given
    kept = [str(getattr(item.kind, "minimises", "")) for item in above]
    known = [objective for objective in kept if objective in OBJECTIVES]
    return {"objective": known[-1], **given} if known else given


def _with_what_goes_without_saying(
    placed: list[Placed], options: CoreSearchOptions, onnx: bool, flow: Flow
) -> list[Placed]:
    """With the parsers that a list leaves out, and what is no stage of its own in lists of zigzag-dse.

    There, the parsers read the mapping file too, and SpatialMappingGenerator does what SpatialMappingConversion does.
    """

    def made(entry: Entry) -> Placed:
        kind = flow.catalogue.stage_class(str(entry.stage))
        return Placed(kind, entry, make_stage(kind, {}, options, ())[0])

    if flow.problem is not None:
        parsers = [made(entry) for entry in flow.parser_entries(onnx)]
        last = max((i for i, item in enumerate(placed) if item.kind.takes is Descriptions), default=None)
        if last is None:
            placed = [*parsers, *placed]
        elif not any(item.kind.takes is Descriptions and item.kind.gives is flow.problem for item in placed):
            placed = [*placed[: last + 1], parsers[-1], *placed[last + 1 :]]
    generators = [i for i, item in enumerate(placed) if hands_on(item.kind, SpatialCandidate)]
    if generators and not any(hands_on(item.kind, TemporalProblem) for item in placed):
        after = generators[-1] + 1
        placed = [*placed[:after], made(Entry("SpatialMappingConversion")), *placed[after:]]
    return placed
