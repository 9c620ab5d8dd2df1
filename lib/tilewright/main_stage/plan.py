"""Conversion of the stages and keywords of a script into a pipeline of tilewright.

Each user's stage becomes one stage of the pipeline (`OwnStage`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.base import steps
from tilewright.base.errors import InputError, Problem
from tilewright.main_stage import keywords as words
from tilewright.main_stage import saving
from tilewright.main_stage.keywords import plain
from tilewright.main_stage.own import (
    Attached,
    OwnStage,
    SumOfWhatPasses,
    name_of,
    own_class,
    session,
)
from tilewright.main_stage.views import (
    LAYER,
    SPATIAL,
    TEMPORAL,
)
from tilewright.mapping.constraints import MappingConstraints
from tilewright.pipeline.stages.base import Stage
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.entries import Flow
from tilewright.pipeline.stages.items import LayerProblem, TemporalProblem
from tilewright.pipeline.stages.layers import model_of, what_is_minimised
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.pipeline import multi_flow
from tilewright.pipeline.stages.parameters import make_stage
from tilewright.pipeline.stages.pipeline import SINGLE, check_pipeline
from tilewright.pipeline.stages.reductions import Sum
from tilewright.search.batch import OrderBatch
from tilewright.search.options import CnSearchOptions, SearchOptions
from tilewright.workload.source import LAYERS, kind_of_source

NO_CONSTRAINTS = MappingConstraints("default")
PARSERS = {"ONNXModelParser", "WorkloadParser", "AcceleratorParser", "MappingParser"}
PARSERS |= {"StreamONNXModelParser", "UserDefinedModelParser", "SystemMappingParser", "LayerSplitting"}
SEVERAL = {"StreamONNXModelParser", "UserDefinedModelParser", "SystemMappingParser", "LayerSplitting"}
SEVERAL |= {"GenerateCNWorkloadHybrid", "IntraCoreMapping", "InterCoreMapping"}
"""Names of stages that only multi-core runs have."""
MAPPERS = {"Loma", "Salsa", "Exact", "TemporalOrderingConversion"}
GENERATORS = {"SpatialMappingGenerator", "CustomSpatialMappingGenerator"}
CONVERSION = "SpatialMappingConversion"
SPATIAL_STAGES = GENERATORS | {CONVERSION}


def our_name(stage: Any) -> str:
    """Name that tilewright gives to a stage of a script; '' for a user's stage."""
    return str(vars(stage).get("ours", "")) if isinstance(stage, type) else ""


def is_of_several_cores(stages: Sequence[Any]) -> bool:
    """True if a list of stages belongs to the multi-core flow."""
    return any(our_name(stage) in SEVERAL for stage in stages)


@dataclass
class Plan:
    """Stages of a script as a pipeline of tilewright. For each user's stage, the pipeline has one `OwnStage`."""

    stages: tuple[Stage, ...]
    item_type: type
    attached: Attached
    """Results of the user's stages, each with its pairs (CME, further information). A CME (cost model evaluation) is
    the result of zigzag-dse for a mapping.
    """

    @property
    def own(self) -> int | None:
        """Index of the first stage that the user wrote; None if there is none."""
        return next((place for place, stage in enumerate(self.stages) if isinstance(stage, OwnStage)), None)


def planned(stages: Sequence[Any], keywords: Mapping[str, Any]) -> Plan:
    """Pipeline for a list of stages, with the parameters that keywords give.

    Raises InputError that lists all keywords with wrong values. If all values are right, raises InputError that lists
    all stages in wrong positions.
    """
    several = is_of_several_cores(stages)
    item_type = item_type_of(stages, keywords, several)
    value: list[Any] = []
    places: list[int] = []
    problems: list[Problem] = []
    attached: Attached = {}
    for place, stage, name in with_conversion(stages):
        places.append(place)
        if name:
            made, wrong = made_stage(several_name(name) if several else name, keywords, several)
            problems += [problem for problem in wrong if problem not in problems]
            value.append(made)
            continue
        above = any(our_name(other) and our_name(other) not in PARSERS for other in stages[:place])
        value.append(own_stage(stage, stages[place + 1 :], keywords, above, attached))
    if problems:
        raise InputError(problems)
    options = CnSearchOptions() if several else SearchOptions()
    pipeline, problems = check_pipeline(value, options, onnx=is_onnx(keywords), flow=flow_from(item_type, several))
    if pipeline is None or problems:
        raise InputError([told_in_script(problem, stages, places) for problem in problems])
    return Plan(completed(pipeline.stages), item_type, attached)


def own_stage(
    stage: Any,
    below: Sequence[Any],
    keywords: Mapping[str, Any],
    is_below_others: bool = False,
    attached: Attached | None = None,
) -> OwnStage:
    """Stage of tilewright that runs a user's stage. `below` are the stages after the user's stage in the script."""
    kind = own_class(name_of(stage), not below)
    known = {} if attached is None else attached
    return kind(stage, tuple(below), dict(keywords), session(), is_below_others, known)


def with_conversion(stages: Sequence[Any]) -> list[tuple[int, Any, str]]:
    """Triples (index in the list, stage, name in tilewright), one for each stage. The name is '' for a user's stage.

    In zigzag-dse, one stage generates and converts spatial mappings. In tilewright, a separate stage for the conversion
    is added after the stage that generates them.
    """
    found = [(place, stage, our_name(stage)) for place, stage in enumerate(stages)]
    generators = [at for at, (_, _, name) in enumerate(found) if name in GENERATORS]
    if generators and not any(name == CONVERSION for _, _, name in found):
        at = generators[-1]
        found.insert(at + 1, (found[at][0], found[at][1], CONVERSION))
    return found


def told_in_script(problem: Problem, stages: Sequence[Any], places: Sequence[int]) -> Problem:
    """Problem of a pipeline, with its path and its message rewritten for the script of the user. The new path names the
    stage by its index and its name in `stages`, such as `list_of_callables[2] (LomaStage)`. For a problem that belongs
    to no stage, the new path is `list_of_callables`.

    `places` has the index in `stages` for each stage of the pipeline.
    """
    message = problem.message.replace("move MappingParser before it", "move the parsers before it")
    problem = replace(problem, message=message.replace("from MappingParser", "from the parsers"))
    number = problem.path.partition("[")[2]
    written = number.partition("]")[0]
    if not written.isdigit() or int(written) >= len(places):
        return replace(problem, path="list_of_callables")
    place = places[int(written)]
    return replace(problem, path=f"list_of_callables[{place}] ({name_of(stages[place])})")


def completed(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Stages of a pipeline, adapted to the user's stages. There are two changes:

    * Each user's stage gets three things: the stages below it, their model, and their objective.
    * Each stage `Sum` above a user's stage is replaced by a stage that sums only the layers that the user's stages pass
      on.
    """
    found: list[Stage] = []
    own_below = False
    for place, stage in reversed(list(enumerate(stages))):
        below = stages[place + 1 :]
        if isinstance(stage, OwnStage):
            own_below = True
            found.append(replace(stage, model=model_of(below), minimises=what_is_minimised(below), after=below))
        else:
            found.append(SumOfWhatPasses() if isinstance(stage, Sum) and own_below else stage)
    return tuple(reversed(found))


def several_name(name: str) -> str:
    """Name of the stage `name` in tilewright's multi-core flow; `name` itself if this flow has no such stage."""
    return CATALOGUES[steps.MULTI].canonical_name(name) or name


def made_stage(name: str, keywords: Mapping[str, Any], several: bool) -> tuple[Any, list[Problem]]:
    """Pair (stage `name` of tilewright with the parameters that keywords give, problems of these parameters).

    If there are problems, the first element is the class of the stage. If the flow has no such stage, the first element
    is `name`.
    """
    if (save := saved_stage(name, keywords)) is not None:
        return save, []
    catalogue = CATALOGUES[steps.MULTI if several else steps.SINGLE]
    if name not in catalogue.names:
        return name, []  # told where the order is checked
    kind = catalogue.stage_class(name)
    spelt, given = {}, {}
    for keyword in words.KEYWORDS:
        if keyword.parameter and name in keyword.holders:
            spelling = next((one for one in keyword.spellings if one in keywords), "")
            if spelling:
                given[keyword.parameter] = plain(keywords[spelling])
                spelt[keyword.parameter] = spelling
    for parameter in getattr(kind, "__dataclass_fields__", {}):
        if parameter in keywords and parameter not in words.BY_SPELLING and parameter not in given:
            given[parameter], spelt[parameter] = plain(keywords[parameter]), parameter
    options = CnSearchOptions() if several else SearchOptions()
    made, wrong = make_stage(kind, given, options, ("parameters",))
    return made or kind, [in_script(problem, spelt) for problem in wrong]


def in_script(problem: Problem, spelt: Mapping[str, str]) -> Problem:
    """Problem of a keyword, made from the problem of the parameter that this keyword sets. `spelt` maps the parameter
    to the keyword as the script spells it.
    """
    path = problem.path.removeprefix("parameters").lstrip(".")
    head = path.partition(".")[0].partition("[")[0]
    return replace(problem, path=spelt.get(head, head) + path[len(head) :])


def saved_stage(name: str, keywords: Mapping[str, Any]) -> Stage | None:
    """Stage that saves results in the file or folder that the user's script names. None if the stage `name` saves no
    results, or if the script names no file or folder for it.
    """
    folder, pattern = words.given(keywords, words.FOLDER), words.given(keywords, words.PATTERN)
    if name == "PickleSave" and (file := words.given(keywords, words.PICKLE)):
        path = Path(str(file)).absolute()
        return saving.PickleSave(file_name=path.name, folder=str(path.parent))
    if name == "PlotTemporalMappings" and (file := words.given(keywords, words.PLOT_PATTERN)):
        return saving.PlotTemporalMappings(folder=str(Path(filled(str(file), keywords)).absolute().parent))
    if pattern is not None and name in ("SimpleSave", "CompleteSave", "Dump"):
        path = Path(filled(str(pattern), keywords)).absolute()
        if name == "Dump":
            return saving.Dump(file_name=path.name, folder=str(path.parent))
        kind = saving.SimplePattern if name == "SimpleSave" else saving.CompletePattern
        return kind(pattern=str(path), what="simple" if name == "SimpleSave" else "complete")
    if folder is None:
        return None
    place = str(Path(str(folder)).absolute())
    kinds = (saving.SimpleSave, saving.CompleteSave, saving.PlotTemporalMappings, saving.Dump)
    return next((kind(folder=place) for kind in kinds if kind.__name__ == name), None)


def filled(pattern: str, keywords: Mapping[str, Any]) -> str:
    """File name made from a pattern. Each field of the pattern is replaced by the time or by the value of a keyword.
    Only values that are texts or numbers are used.
    """
    from datetime import datetime

    fields = {key: value for key, value in keywords.items() if isinstance(value, str | int | float)}
    return pattern.format_map(_Fields(fields, datetime=datetime.now().isoformat().replace(":", "-")))


class _Fields(dict[str, Any]):
    """Values of the fields of a pattern. Fields without a value stay in the pattern."""

    def __missing__(self, name: str) -> str:
        return "{" + name + "}"


def is_onnx(keywords: Mapping[str, Any]) -> bool:
    """True if the keyword `workload` has an ONNX model, or if the kind of the workload is not known yet. False for a
    list or a file of layers.
    """
    workload = words.given(keywords, words.WORKLOAD)
    known = isinstance(workload, str | Path | list | tuple)
    return not known or kind_of_source(workload) != LAYERS


def flow_from(item_type: type, several: bool) -> Flow:
    """Flow (kind of pipeline) that begins with an item of this type."""
    whole = multi_flow() if several else SINGLE
    if item_type is Descriptions:
        return whole
    nothing: Callable[[Any, bool], list[Any]] = lambda options, onnx: []  # noqa: E731
    return Flow(whole.catalogue, nothing, item_type, "the stage above", collects=whole.collects)


def item_type_of(stages: Sequence[Any], keywords: Mapping[str, Any], several: bool) -> type:
    """Type of the input of the first stage of a list. The type follows from the stages and the keywords."""
    names = {our_name(stage) for stage in stages}
    if names & PARSERS:
        return Descriptions
    if several:
        left = (("GenerateCNWorkloadHybrid", SystemProblem), ("IntraCoreMapping", CnProblem))
        return next((kind for name, kind in left if name in names), CostedCnProblem)
    if names & {"Workload", "SearchUnusedMemory", "Sum"}:
        return NetworkProblem
    if names & (SPATIAL_STAGES | {"RemoveUnusedMemory"}) or SPATIAL not in keywords:
        return LayerProblem if LAYER in keywords else NetworkProblem
    if names & MAPPERS or TEMPORAL not in keywords:
        return TemporalProblem
    return OrderBatch
