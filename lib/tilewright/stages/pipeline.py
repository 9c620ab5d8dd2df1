"""A pipeline: stages in an order that fits, checked when it is built, before anything runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import InputError, nearest_name
from tilewright.search.options import OBJECTIVES, SearchOptions
from tilewright.stages.base import Control, Same, Stage, Types, run_stages, type_name
from tilewright.stages.catalogue import NAMES, canonical_name, stage_class
from tilewright.stages.default import default_entries, parser_entries
from tilewright.stages.descriptions import Descriptions, NetworkProblem
from tilewright.stages.entries import Entry, read_entries
from tilewright.stages.findings import Finding, KeyPath
from tilewright.stages.items import OrderBatch, SpatialCandidate, TemporalProblem
from tilewright.stages.parameters import make_stage

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
        options: SearchOptions | None = None,
        *,
        onnx: bool = True,
        folder: Path | None = None,
        documents: "Sequence[YamlDocument]" = (),
        prefix: KeyPath = ("pipeline",),
    ) -> "Pipeline":
        """The pipeline that `value` describes: None for the default, else a list of stages or of edits of the default.

        `options` give the parameters that the pipeline does not; `onnx` says which parser is the default; dotted paths
        are looked up below `folder`; `documents` and `prefix` say where `value` is written.
        Raises InputError with everything that is wrong.
        """
        pipeline, findings = check_pipeline(value, options or SearchOptions(), onnx=onnx, folder=folder)
        if findings or pipeline is None:
            raise InputError(dict.fromkeys(finding.problem(prefix, documents) for finding in findings))
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


@dataclass(frozen=True)
class _Placed:
    """A stage, or its class where its parameters are wrong, and where it is written."""

    kind: type[Stage]
    entry: Entry
    stage: Stage | None = None


def check_pipeline(
    value: Any, options: SearchOptions, *, onnx: bool = True, folder: Path | None = None
) -> tuple[Pipeline | None, list[Finding]]:
    """The pipeline that `value` describes, or everything that is wrong with it."""
    default = default_entries(options, onnx)
    entries, findings = (default, []) if value is None else read_entries(value, default)
    complete = not findings
    placed: list[_Placed] = []
    for entry in entries:
        kind = _class_of(entry, folder, findings)
        if kind is None:
            continue
        if isinstance(entry.stage, Stage):
            placed.append(_Placed(kind, entry, entry.stage))
            continue
        stage, wrong = make_stage(kind, _with_objective(kind, entry, placed), options, entry.parameter_place)
        findings += [finding for finding in wrong if finding not in findings]
        placed.append(_Placed(kind, entry, stage))
    if complete and len(placed) == len(entries):
        # With something unknown in it, every complaint about the order could be wrong.
        placed = _with_what_goes_without_saying(placed, options, onnx)
        findings += _items_that_do_not_fit(placed) or _results_that_do_not_fit(placed) or _missing_predecessors(placed)
    stages = tuple(item.stage for item in placed if item.stage is not None)
    return (None if findings else Pipeline(stages)), findings


def _class_of(entry: Entry, folder: Path | None, findings: list[Finding]) -> type[Stage] | None:
    if isinstance(entry.stage, Stage):
        return type(entry.stage)
    if isinstance(entry.stage, type):
        return entry.stage
    name = canonical_name(entry.stage)
    if name:
        return stage_class(name)
    from tilewright.stages.user_stages import is_dotted_path, load_class

    if is_dotted_path(entry.stage):
        try:
            return load_class(entry.stage, folder)
        except InputError as error:
            findings += [Finding.of(problem, entry.place) for problem in error.problems]
            return None
    nearest = nearest_name(entry.stage.removesuffix("Stage"), NAMES)
    allowed = "" if nearest else ", ".join(NAMES) + ", or the dotted path of a class of yours"
    findings.append(Finding(entry.place, "no such stage", repr(entry.stage), allowed, nearest))
    return None


def _with_objective(kind: type[Stage], entry: Entry, above: list[_Placed]) -> Any:
    """The parameters of an entry; a search goes by what the reduction above it keeps, unless it is told otherwise."""
    given = entry.parameters
    if "objective" not in getattr(kind, "__dataclass_fields__", {}) or not isinstance(given, dict):
        return given
    kept = [str(getattr(item.kind, "minimises", "")) for item in above]
    known = [objective for objective in kept if objective in OBJECTIVES]
    return {"objective": known[-1], **given} if known else given


def _with_what_goes_without_saying(placed: list[_Placed], options: SearchOptions, onnx: bool) -> list[_Placed]:
    """With the parsers that a list leaves out, and what is no stage of its own in lists of zigzag-dse.

    There, the parsers read the mapping file too, and SpatialMappingGenerator does what SpatialMappingConversion does.
    """

    def made(entry: Entry) -> _Placed:
        kind = stage_class(str(entry.stage))
        return _Placed(kind, entry, make_stage(kind, {}, options, ())[0])

    parsers = [made(entry) for entry in parser_entries(onnx)]
    last = max((i for i, item in enumerate(placed) if item.kind.takes is Descriptions), default=None)
    if last is None:
        placed = [*parsers, *placed]
    elif not any(item.kind.takes is Descriptions and item.kind.gives is NetworkProblem for item in placed):
        placed = [*placed[: last + 1], parsers[-1], *placed[last + 1 :]]
    generators = [i for i, item in enumerate(placed) if _gives(item.kind, SpatialCandidate)]
    if generators and not any(_gives(item.kind, TemporalProblem) for item in placed):
        after = generators[-1] + 1
        placed = [*placed[:after], made(Entry("SpatialMappingConversion")), *placed[after:]]
    return placed


def _items_that_do_not_fit(placed: list[_Placed]) -> list[Finding]:
    """The first stage that is given something else than it takes; those behind it often only follow from it."""
    current: type | None = Descriptions
    giver = "what people wrote"
    for index, item in enumerate(placed):
        kind = item.kind
        if current is None:
            place = item.entry.place or placed[index - 1].entry.place
            return [Finding(place, f"{kind.name()} cannot come after {giver}, which ends a pipeline")]
        if not issubclass(current, kind.takes):
            got = f"but gets {type_name(current)} from {giver}"
            message = f"{kind.name()} takes {type_name(kind.takes)}, {got}{_remedy(kind.takes, index, placed, giver)}"
            return [Finding(item.entry.place or _nearest_place(placed, index), message)]
        if kind.exports and current is OrderBatch:
            message = f"{kind.name()} would write a file for every batch of loop orders; put it before {giver}"
            return [Finding(item.entry.place or _nearest_place(placed, index), message)]
        if kind.gives is not Same:
            current, giver = kind.gives, kind.name()
    if current is not None:
        message = f"the pipeline ends with {type_name(current)} from {giver}: the last stage must be CostModel"
        return [Finding((), message)]
    return []


def _remedy(wanted: type, index: int, placed: list[_Placed], giver: str) -> str:
    """Which stage would give what is missing, and whether it only stands in the wrong place."""
    later = [item.kind.name() for item in placed[index + 1 :] if _gives(item.kind, wanted)]
    if later:
        return f"; move {later[0]} before it"
    givers = [name for name in NAMES if _gives(stage_class(name), wanted)]
    earlier = [item.kind.name() for item in placed[:index] if _gives(item.kind, wanted)]
    if earlier:
        return f"; it belongs before {giver}"
    return f"; put {' or '.join(givers)} before it" if givers else ""


def _gives(kind: type[Stage], wanted: type) -> bool:
    return kind.gives is not Same and kind.gives is not None and issubclass(kind.gives, wanted)


def _results_that_do_not_fit(placed: list[_Placed]) -> list[Finding]:
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
            found.append(Finding(placed[index].entry.place or _nearest_place(placed, index), message + belongs))
        if kind.returns is not Same:
            current, giver = kind.returns, kind.name()
    return found


def _where_it_belongs(collects: Types, above: list[_Placed]) -> str:
    makers = [item.kind for item in above if item.kind.returns is not Same and _is_one_of(item.kind.returns, collects)]
    return f"; move it before {makers[-1].name()}" if makers else ""


def _is_one_of(kind: type, allowed: Types) -> bool:
    return issubclass(kind, allowed)


def _missing_predecessors(placed: list[_Placed]) -> list[Finding]:
    found = []
    for index, item in enumerate(placed):
        before = [other.kind.name() for other in placed[:index]]
        if item.kind.needs and not any(name in before for name in item.kind.needs):
            later = any(other.kind.name() in item.kind.needs for other in placed[index + 1 :])
            wanted = " or ".join(item.kind.needs)
            message = f"{item.kind.name()} needs {wanted} before it" + (", which comes later" if later else "")
            found.append(Finding(item.entry.place or _nearest_place(placed, index), message))
    return found


def _nearest_place(placed: list[_Placed], index: int) -> KeyPath:
    """Where a problem of a default stage is told: at the nearest entry that a person wrote."""
    others = sorted(range(len(placed)), key=lambda other: abs(other - index))
    return next((placed[other].entry.place for other in others if placed[other].entry.place), ())
