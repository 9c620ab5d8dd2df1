"""Pipelines (stages in a valid order), the check of a pipeline, and the default pipeline of the single-core flow.

The order of stages is checked when a pipeline is built. It is valid if each stage takes the items of the stage before
it, and the results of the stage after it. `tilewright map` runs the default pipeline if no other pipeline is given.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from tilewright.base import steps
from tilewright.base.errors import InputError, KeyPath, Problem, Unused, nearest_name
from tilewright.base.objectives import OBJECTIVES, reduction_of
from tilewright.base.unused import unused_option
from tilewright.pipeline.stages.base import Control, Same, Stage, Types, Writer, run_stages, type_name
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.entries import Entry, Flow, hands_on, read_entries
from tilewright.pipeline.stages.items import LayerProblem, MappedWorkload, OrderBatch, SpatialCandidate, TemporalProblem
from tilewright.pipeline.stages.parameters import make_stage
from tilewright.pipeline.stages.places import moved, placed, problem_at
from tilewright.pipeline.stages.unused_beside import unused_beside
from tilewright.search.options import CoreSearchOptions, SearchEngine, SearchOptions

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument


@dataclass(frozen=True)
class Placed:
    """Stage of a pipeline with its entry. If the parameters are wrong, `stage` is None, and only the class is known."""

    kind: type[Stage]
    entry: Entry
    stage: Stage | None = None


def what_does_not_fit(placed: list[Placed], flow: Flow) -> list[Problem]:
    """Problems with the order of stages. The items are checked first, then the results, then other conditions. If a
    check finds problems, the later checks are left out, because these problems often cause others.
    """
    return (
        _items_that_do_not_fit(placed, flow)
        or _results_that_do_not_fit(placed, flow)
        or [*_missing_predecessors(placed), *_files_written_twice(placed)]
    )


def _items_that_do_not_fit(placed: list[Placed], flow: Flow) -> list[Problem]:
    """List with the first problem of the items that stages hand down; [] if there is no problem. An example is a stage
    that gets an item of a wrong type. Problems of later stages are left out, because they often follow from the first
    one.
    """
    current: type | None = flow.takes
    giver = flow.giver
    for index, item in enumerate(placed):
        kind = item.kind
        if current is None:
            place = item.entry.place or placed[index - 1].entry.place
            return [problem_at(place, f"{kind.name()} cannot come after {giver}, which ends a pipeline")]
        if not issubclass(current, kind.takes):
            remedy = _remedy(kind.takes, index, placed, giver, flow)
            message = f"{kind.name()} takes {type_name(kind.takes)}, but gets {type_name(current)} from {giver}{remedy}"
            return [problem_at(item.entry.place or _nearest_place(placed, index), message)]
        if kind.takes_unmapped and issubclass(current, SpatialCandidate):
            message = f"{kind.name()} takes layers without a spatial mapping, but follows {giver}, which chooses one"
            remedy = "leave out one of the two stages" if hands_on(kind, SpatialCandidate) else f"put it before {giver}"
            return [problem_at(item.entry.place or _nearest_place(placed, index), f"{message}; {remedy}")]
        if kind.exports and current is OrderBatch:
            message = f"{kind.name()} would write a file for every batch of loop orders; put it before {giver}"
            return [problem_at(item.entry.place or _nearest_place(placed, index), message)]
        if kind.gives is not Same:
            current, giver = kind.gives, kind.name()
    if current is not None:
        last = " or ".join(flow.ends_with)
        message = f"the pipeline ends with {type_name(current)} from {giver}: the last stage must be {last}"
        return [problem_at((), message)]
    return []


def _remedy(wanted: type, index: int, placed: list[Placed], giver: str, flow: Flow) -> str:
    """End of the message on a stage that gets an item of a wrong type: the stage to move or to add, so that the stage
    gets an item of type `wanted`. '' if no hint is known.
    """
    # A stage that takes the missing item does not get this item either.
    later = [item.kind for item in placed[index + 1 :] if hands_on(item.kind, wanted)]
    makers = [kind for kind in later if not issubclass(wanted, kind.takes)]
    if makers:
        return f"; move {makers[0].name()} before it"
    givers = flow.gives(wanted)
    if issubclass(flow.takes, wanted) or any(hands_on(item.kind, wanted) for item in placed[:index]):
        return f"; put this stage before {giver}"
    return f"; put {' or '.join(givers)} before it" if givers else ""


def _results_that_do_not_fit(placed: list[Placed], flow: Flow) -> list[Problem]:
    if not placed or placed[-1].kind.gives is not None:
        return []
    found = []
    current: type = placed[-1].kind.returns
    giver = placed[-1].kind.name()
    for index in range(len(placed) - 2, -1, -1):
        kind = placed[index].kind
        if current is not Same and not _is_one_of(current, kind.collects):
            got = f"but gets {type_name(current)} back from {giver}"
            message = f"{kind.name()} collects {type_name(kind.collects)}, {got}"
            belongs = _where_it_belongs(kind.collects, placed[:index])
            found.append(problem_at(placed[index].entry.place or _nearest_place(placed, index), message + belongs))
        if kind.returns is not Same:
            current, giver = kind.returns, kind.name()
    if flow.collects and not _is_one_of(current, flow.collects) and not found:
        message = f"the pipeline must end in {type_name(flow.collects)}, but {giver} yields {type_name(current)}"
        found.append(problem_at(_nearest_place(placed, 0), message))
    return found


def _where_it_belongs(collects: Types, above: list[Placed]) -> str:
    makers = [item.kind for item in above if item.kind.returns is not Same and _is_one_of(item.kind.returns, collects)]
    return f"; move it before {makers[-1].name()}" if makers else ""


def _is_one_of(kind: type, allowed: Types) -> bool:
    return issubclass(kind, allowed)


def _missing_predecessors(placed: list[Placed]) -> list[Problem]:
    found = []
    for index, item in enumerate(placed):
        # A subclass of a needed stage counts as this stage.
        before = [base.__name__ for other in placed[:index] for base in other.kind.__mro__]
        if item.kind.needs and not any(name in before for name in item.kind.needs):
            later = any(other.kind.name() in item.kind.needs for other in placed[index + 1 :])
            wanted = " or ".join(item.kind.needs)
            message = f"{item.kind.name()} needs {wanted} before it" + (", which comes later" if later else "")
            found.append(problem_at(item.entry.place or _nearest_place(placed, index), message))
    return found


def _files_written_twice(placed: list[Placed]) -> list[Problem]:
    """Problems, one for each stage that would overwrite files of another stage."""
    sums = [index for index, item in enumerate(placed) if _is_one_of(item.kind.returns, MappedWorkload)]
    networks = [index for index, item in enumerate(placed) if item.kind.gives is LayerProblem]
    writers: dict[str, str] = {}
    found = []
    for index, item in enumerate(placed):
        if not isinstance(item.stage, Writer):
            continue
        files = item.stage.written(any(index < other for other in networks), any(index < other for other in sums))
        if files in writers:
            message = f"{item.kind.name()} would overwrite the files of {writers[files]}, {files}"
            remedy = "; give one of the two stages another `folder`"
            found.append(problem_at(item.entry.place or _nearest_place(placed, index), message + remedy))
        writers.setdefault(files, item.kind.name())
    return found


def _nearest_place(placed: list[Placed], index: int) -> KeyPath:
    """Path in the value of `pipeline` for problems of a stage. If the user did not write this stage into `pipeline`,
    the path is that of the nearest stage that the user wrote there.
    """
    others = sorted(range(len(placed)), key=lambda other: abs(other - index))
    return next((placed[other].entry.place for other in others if placed[other].entry.place), ())


MAPPER_OF = {engine: engine.capitalize() for engine in get_args(SearchEngine)}
"""Name of the stage that makes loop orders, by search engine."""


def parser_entries(onnx: bool = True) -> list[Entry]:
    """Pipeline entries of the stages that read workload, hardware and mapping. The workload is an ONNX model if `onnx`
    is True, and otherwise a list of layers.
    """
    return [Entry("ONNXModelParser" if onnx else "WorkloadParser"), Entry("AcceleratorParser"), Entry("MappingParser")]


def search_entries(options: CoreSearchOptions) -> list[Entry]:
    """Entries of the stages that map a network, outermost first. The options decide which stages these are."""
    reduction = Entry(reduction_of(options.objective))
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
    """Entries of the whole default pipeline: first the parsers, then the stages that map the network. `onnx` is true if
    the network is an ONNX model.
    """
    return [*parser_entries(onnx), *search_entries(options)]


SINGLE = Flow(
    catalogue=CATALOGUES[steps.SINGLE],
    default_entries=default_entries,
    takes=Descriptions,
    giver="the input files",
    problem=NetworkProblem,
    parser_entries=parser_entries,
)
"""Single-core flow: the stages that its pipelines can have, its default pipeline, and the types of its items."""


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
        """Pipeline that `value` describes: a list of stages, a list of edits of the default pipeline, or None for the
        default pipeline. Raises InputError with all errors.

        `options` has the values of parameters that the pipeline does not set. `onnx` chooses the default parser of the
        workload. Dotted paths are looked up in `folder`. `documents` are the files that contain `value`, and `prefix`
        is the path of `value` in these files. `flow` is the kind of pipeline.
        """
        pipeline, problems = check_pipeline(value, options or SearchOptions(), onnx=onnx, folder=folder, flow=flow)
        if problems or pipeline is None:
            raise InputError(dict.fromkeys(placed(problem, prefix, documents) for problem in problems))
        return pipeline

    def run(self, item: Any, control: Control | None = None) -> Iterator[Any]:
        """Results for an item. The item must have the type that the first stage takes."""
        return run_stages(self.stages, item, control)

    def parsers(self) -> "Pipeline":
        """Pipeline with only the stages that read hardware, workload and mapping."""
        return Pipeline(self.stages[: self._parser_count])

    def search(self) -> "Pipeline":
        """Pipeline with only the stages after the parsers, which map the network."""
        return Pipeline(self.stages[self._parser_count :])

    @property
    def _parser_count(self) -> int:
        return next((i for i, stage in enumerate(self.stages) if stage.takes is not Descriptions), len(self.stages))

    def unused(self, given: Mapping[str, Any], options: CoreSearchOptions) -> list[Unused]:
        """Notices of options that the user gives but that have no effect. There are two reasons: the pipeline has no
        stage for the option, or the pipeline sets the parameter to another value. Options with their default values are
        not reported.
        """
        stages = [each for stage in self.stages for each in (stage, *stage.inner())]
        names = {base.__name__ for stage in stages for base in type(stage).__mro__}
        wanted = {
            "temporal_mapping_search_engine": MAPPER_OF[options.temporal_mapping_search_engine],
            "objective": reduction_of(options.objective),
            "exploit_data_locality": "SearchUnusedMemory",
        }
        made = options.as_dict()
        defaults = {**type(options)().as_dict(), **options.implied(made)}
        asked = [name for name in given if name in made and made[name] != defaults[name]]
        found = [
            unused_option(name, f"has no effect: the pipeline has no stage {wanted[name]}", made[name])
            for name in asked
            if name in wanted and wanted[name] not in names
        ]
        return [*found, *unused_beside(self.stages, options, [name for name in asked if name not in wanted])]

    @property
    def exports(self) -> bool:
        """True if a stage writes files into the folder of exports."""
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
    """Pair (pipeline that `value` describes, errors). The pipeline is None if there are errors.

    `settings` has further parameters of the run, by name. An error in a setting is reported under the name of the
    setting.
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
        # The order is checked only if all entries are known; otherwise problems of the order could be wrong.
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
    from tilewright.pipeline.stages.user_stages import is_dotted_path, load_class

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
    allowed = "" if nearest else ", ".join(names) + ", or the dotted path of a class of your own"
    problems.append(problem_at(entry.place, "no such stage", repr(entry.stage), allowed, nearest))
    return None


def _with_objective(kind: type[Stage], entry: Entry, above: list[Placed]) -> Any:
    """Parameters of the stage that a pipeline entry describes. If the stage has a parameter `objective` that the entry
    does not set, the parameter gets the objective of the nearest reduction above the stage.
    """
    given = entry.parameters
    if "objective" not in getattr(kind, "__dataclass_fields__", {}) or not isinstance(given, dict):
        return given
    kept = [str(getattr(item.kind, "minimises", "")) for item in above]
    known = [objective for objective in kept if objective in OBJECTIVES]
    return {"objective": known[-1], **given} if known else given


def _parsers_first(placed: list[Placed]) -> list[Placed]:
    """Stages in an order in which all parsers come first.

    A stage that takes any item can be written between two parsers. Such a stage is moved behind the last parser. This
    changes no result, because parsers pass on all results.
    """
    last = max((i for i, item in enumerate(placed) if item.kind.takes is Descriptions), default=-1)
    looking = [item for item in placed[:last] if item.kind.takes is object and item.kind.gives is Same]
    others = [item for item in placed[: last + 1] if item not in looking]
    return [*others, *looking, *placed[last + 1 :]]


def _with_what_goes_without_saying(
    placed: list[Placed], options: CoreSearchOptions, onnx: bool, flow: Flow
) -> list[Placed]:
    """Stages of a list, to which missing parsers and a missing SpatialMappingConversion are added.

    Lists of stages for zigzag-dse have neither MappingParser nor SpatialMappingConversion. In zigzag-dse, the other
    parsers do the work of MappingParser, and SpatialMappingGenerator does the work of SpatialMappingConversion.
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
        placed = _parsers_first(placed)
    generators = [i for i, item in enumerate(placed) if hands_on(item.kind, SpatialCandidate)]
    if generators and not any(hands_on(item.kind, TemporalProblem) for item in placed):
        after = generators[-1] + 1
        placed = [*placed[:after], made(Entry("SpatialMappingConversion")), *placed[after:]]
    return placed
