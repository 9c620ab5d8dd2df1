"""`tilewright schedule`: schedule of computation nodes on cores and of transfers on links, with its latency and
energy.
"""

from collections.abc import Callable, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import Artifact, provenance, read_artifact, write_document
from tilewright.base.artifacts.files import FilePath, make_folder
from tilewright.base.errors import Problem, Problems, Unused
from tilewright.base.objectives import Goal
from tilewright.base.steps import ALLOCATION, SCHEDULE, SUMMARY
from tilewright.base.unused import refuse_unused
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD
from tilewright.cli.options import PipelineSource, echo_json, network_keywords
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.planned import SCHEMA as PLAN_SCHEMA
from tilewright.cli.remembered import keep_descriptions, keep_parts_of_schedule
from tilewright.cli.run_inputs import (
    CNS_FOLDER,
    COSTS_FOLDER,
    descriptions_of_run,
    input_digests,
    planned_slice,
    prefetched,
    read_slice,
    unused_options,
)
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import MAPPING_FILE, NETWORK_FILE, SYSTEM_FILE, Help, Tell, silent, verb
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.allocation.result import Cores
    from tilewright.multicore.allocation.space import Genome
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem
    from tilewright.pipeline.stages.multi.result import MultiCoreResult
    from tilewright.pipeline.stages.multi.run import MultiCoreProblem

Document = dict[str, Any]


def _made(
    costs: "FilePath | CostedCnProblem",
    core_allocation: "FilePath | MultiCoreResult | Cores | None",
    goal: Given[Goal],
    settings: Given[ScheduleSettings],
    hardware: "AcceleratorSource | None",
    workload: "WorkloadSource | None",
    mapping: "MappingSource | None",
    cns: "FilePath | CnProblem | None",
    baseline: FilePath | None,
    plan: FilePath | None,
    output: FilePath | None,
    strict: bool,
    pipeline: PipelineSource,
    network_options: NetworkOptions | None,
    tell: Tell = silent,
) -> "Scheduled":
    """Schedule with the data for its summary, from the arguments of the verb."""
    given = descriptions_of_run(cns, costs, hardware, workload, mapping, network_options)
    base, planned, folder = (None if one is None else Path(one) for one in (baseline, plan, output))
    folders = base, planned, folder
    return scheduled(given, cns, costs, core_allocation, *folders, goal, settings, pipeline, tell, strict)


def _show(made: "Scheduled", output: Path | None, verbose: bool, as_json: bool) -> None:
    from tilewright.results.multi.summary_text import summary_text

    if as_json:
        echo_json(made.summary)
    else:
        echo_text(summary_text(made.summary, verbose or not output))


@verb(
    """Make the schedule of an allocation, verify it, and report its gap to the lower bound.

    Example: tilewright schedule --hardware config/hardware/multi/quad_core.yaml --workload
    config/workload/resnet18.onnx --mapping config/mapping/multi/quad_core.yaml --cns out --costs out/cost
    --core-allocation out/allocation.json -o out
    """,
    run=_made,
    show=_show,
    order="hardware workload mapping cns costs core_allocation baseline output goal settings strict",
    shared={"pipeline": planned_slice},
)
@network_keywords
@parameter_keywords(goal=Goal, settings=ScheduleSettings)
def schedule(
    costs: Annotated["FilePath | CostedCnProblem", COSTS_FOLDER],
    core_allocation: Annotated[
        "FilePath | MultiCoreResult | Cores | None",
        Help(f"File {ALLOCATION}; not needed if the mapping allows only one core for each layer."),
    ] = None,
    *,
    goal: Named[Goal],
    settings: Named[ScheduleSettings],
    hardware: Annotated["AcceleratorSource | None", SYSTEM_FILE] = None,
    workload: Annotated["WorkloadSource | None", NETWORK_FILE] = None,
    mapping: Annotated["MappingSource | None", MAPPING_FILE] = None,
    cns: Annotated["FilePath | CnProblem | None", CNS_FOLDER] = None,
    baseline: Annotated[
        FilePath | None, Help("Folder of a layer-by-layer run of the network, for comparison.", metavar="FOLDER")
    ] = None,
    plan: FilePath | None = None,
    output: Annotated[FilePath | None, Help(f"Folder for {SCHEDULE} and {SUMMARY}.")] = None,
    strict: bool = False,
    pipeline: PipelineSource = None,
    network_options: NetworkOptions | None = None,
) -> "MultiCoreResult":
    """Verified schedule of one allocation. Settings are given by name.

    `core_allocation` is the result of `allocate`, the file that it wrote, a table of cores by layer name, or None if
    the mapping file fixes all cores. The table can leave out layers with a single possible core. `costs` is the result
    of the function `cost` for all cores, or the folder of the cost tables. If it is a folder, `cns`, `hardware`,
    `workload` and `mapping` are needed too.

    `output` is the folder that the command writes. `baseline` is the folder of a layer-by-layer run, with which the
    summary compares the schedule. `plan` is the file `fusion.json` of a plan. If the search for this plan found a
    better layer-by-layer schedule than the schedule of `baseline`, the summary compares with the better schedule. With
    `strict`, input without effect is an error. Raises InputError if the inputs do not belong together, such as an
    allocation for another network. Raises MappingError if the allocation has no schedule.
    """
    given = (hardware, workload, mapping, cns, baseline, plan, output, strict, pipeline, network_options)
    return _made(costs, core_allocation, goal, settings, *given).result


@dataclass(frozen=True, eq=False)
class _Allocation:
    """Allocation for a schedule: an artifact, a result, or a table of cores. All fields are empty if the mapping file
    fixes all cores.
    """

    artifact: Artifact | None = None
    file: str = ""
    """Path of the file of the allocation; '' if the allocation was not read from a file."""
    found: "MultiCoreResult | None" = None
    cores: "Cores | None" = None

    @cached_property
    def document(self) -> Document | None:
        """Content of the allocation file; None if there was no search for an allocation."""
        return self.artifact.payload if self.artifact else self.found.document if self.found else None

    @property
    def digest(self) -> dict[str, str]:
        """Digest of the allocation, for provenance."""
        if self.artifact:
            return {"allocation": self.artifact.digest}
        given = self.document or self.cores
        return {} if given is None else {"allocation": content_digest(given)}

    @property
    def settings(self) -> Document | None:
        """Schedule settings with which the allocation was searched."""
        if self.artifact:
            settings: Document = self.artifact.payload["settings"]
            return settings
        return self.found.problem.settings.stated() if self.found else None

    def genome(self, problem: "MultiCoreProblem") -> "Genome":
        """Core of each part of the network that can run on several cores, in the order of `AllocationSpace.flexible`.
        Raises InputError if the allocation does not fit the problem.
        """
        from tilewright.multicore.allocation.result import allocation_genome, named_genome
        from tilewright.pipeline.stages.multi.run import only_genome

        space, names = problem.space, problem.assembled.names
        if self.artifact:
            return allocation_genome(self.artifact.payload, space, names, self.file)
        if self.found:
            return space.genome(self.found.problem.space.part_cores(self.found.allocation.chosen.genome))
        return only_genome(space) if self.cores is None else named_genome(self.cores, space, names)


@dataclass(frozen=True, eq=False)
class Scheduled:
    """Schedule with the data for its summary. The command prints the result from these data. The Python function
    `schedule` returns only the field `result`.
    """

    result: "MultiCoreResult"
    objective: str
    allocation: _Allocation
    notices: list[str]
    unused: list[Unused]
    """Notices of input without effect: first the notices on the tiling, which the CN graph contains, then the notices
    on options.
    """
    baseline: dict[str, Document | None]

    @cached_property
    def summary(self) -> Document:
        """Content of `summary.json`."""
        from tilewright.results.multi.summary import baseline_rows

        document = self.allocation.document
        search = None if document is None else {**document["search"], "front_size": len(document["front"])}
        told = (self.objective, search, self.notices, self.unused)
        summary = self.result.summary_of(*told)
        singles = (self.baseline["lbl_allocation"] or {}).get("single_core", [])
        planned = (self.baseline["plan"] or {}).get("layer_by_layer")
        summary["baselines"] = baseline_rows(summary, self.baseline["lbl_summary"], singles, planned)
        return summary


def scheduled(
    given: "Descriptions | None",
    cns: "FilePath | CnProblem | None",
    costs: "FilePath | CostedCnProblem",
    allocation: "FilePath | MultiCoreResult | Cores | None",
    baseline: Path | None,
    plan: Path | None,
    output: Path | None,
    goal: Given[Goal],
    settings: Given[ScheduleSettings],
    pipeline: PipelineSource,
    tell: Callable[[Sequence[str]], None],
    strict: bool = False,
) -> Scheduled:
    """Schedule of an allocation. If the folder `output` is given, the schedule is also written to it. Raises InputError
    with all errors.
    """
    from tempfile import TemporaryDirectory  # imported here: --help starts faster

    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.multi.allocation import (
        InterCoreMapping,
        in_place_of_search,
        objective_of,
        settings_of,
    )
    from tilewright.pipeline.stages.multi.inputs import read_inputs, unused_of_graph
    from tilewright.pipeline.stages.multi.result import MultiCoreResult
    from tilewright.results.multi.summary import SCHEMA
    from tilewright.search.options import CnSearchOptions

    told = Problems()
    chosen, aim = told.attempt(settings), told.attempt(goal)
    stages = None
    if chosen is not None and aim is not None:
        values = chosen.as_dict()
        stages = told.attempt(read_slice, "schedule", InterCoreMapping, pipeline, aim.part(CnSearchOptions), values)
    inputs = told.attempt(read_inputs, given, cns, costs, prefetched(chosen, pipeline))
    known = told.attempt(_allocation, allocation)
    documents = {
        "lbl_allocation": told.attempt(_document, baseline and baseline / ALLOCATION, "tilewright/allocation"),
        "lbl_summary": told.attempt(_document, baseline and baseline / SUMMARY, SCHEMA),
        "plan": told.attempt(_document, plan if baseline else None, PLAN_SCHEMA),
    }
    told.finish()
    assert chosen is not None
    assert aim is not None
    assert stages is not None
    assert inputs is not None
    assert known is not None
    chosen, objective = settings_of(stages, chosen), objective_of(stages, aim.objective)
    if known.artifact or baseline or output:
        digests = input_digests(inputs, cns, costs)
        told.found += _of_others(known, baseline, documents["lbl_summary"], digests, chosen, inputs.cost_model)
        told.found += _of_other_plan(plan if baseline else None, inputs)
        told.finish()
    other_settings = _other_settings(known.settings, chosen)
    unused = [*unused_options(stages, goal, settings), *chosen.unused_properties(inputs.descriptions.accelerator)]
    notices = [*inputs.descriptions.notices, *other_settings, *inputs.unused, *unused]
    refuse_unused(notices, strict)
    tell(notices)
    if output:
        make_folder(output)
    fixed = in_place_of_search(stages, known.genome, chosen)
    with TemporaryDirectory() as exports:  # the search wrote the files of stages already; here they are discarded
        result = fixed.result(inputs, MultiCoreResult, Control(exports=Path(exports)))
    made = Scheduled(result, objective, known, other_settings, [*unused_of_graph(cns), *unused], documents)
    if output:
        stated = stages.stated({}, **chosen.stated(), objective=objective)
        _write(output, made, provenance("schedule", digests | known.digest, stated))
        _keep(output, given, inputs)
        keep_parts_of_schedule(output, cns, costs, allocation, tuple(inputs.costs))
    return made


def _keep(folder: Path, given: "Descriptions | None", inputs: "CostedCnProblem") -> None:
    """Write hardware, workload and mapping of a schedule into its folder.

    If the inputs are objects in memory, `given` is None. The paths of the hardware file and the mapping file are then
    taken from `inputs`.
    """
    known = inputs.descriptions
    sources: tuple[object, object, object] = (known.hardware_file, None, known.mapping_file)
    if given is not None:
        sources = (given.hardware, given.workload, given.mapping)
    described = known.accelerator, known.workload_as_read, known.mapping_as_written
    keep_descriptions(folder, "schedule", *described, dict(zip((HARDWARE, WORKLOAD, MAPPING), sources, strict=True)))


def _write(folder: Path, made: Scheduled, made_by: Document) -> None:
    from tilewright.multicore.scheduling.result import write_schedule
    from tilewright.results.multi.summary import SCHEMA

    summary = made.summary
    write_schedule(folder / SCHEDULE, replace(made.result.artifact, provenance=made_by))
    write_document(folder / SUMMARY, SCHEMA, summary, made_by)


def _allocation(given: "FilePath | MultiCoreResult | Cores | None") -> _Allocation:
    """Allocation from a file, a result, a table of cores, or None. Raises InputError for a wrong allocation."""
    if isinstance(given, str | PathLike):
        return _Allocation(read_artifact(Path(given), "tilewright/allocation"), str(given))
    if given is None or isinstance(given, Table):
        return _Allocation(cores=given)
    return _Allocation(found=given)


def _document(path: Path | None, schema: str) -> Document | None:
    """Content of an artifact; None if no path is given. Raises ArtifactError if the file is missing or damaged, or if
    its schema is not `schema`.
    """
    if path is None:
        return None
    document: Document = read_artifact(path, schema).payload
    return document


def _of_others(
    allocation: _Allocation,
    baseline: Path | None,
    compared: Document | None,
    digests: dict[str, str],
    settings: ScheduleSettings,
    cost_model: str,
) -> list[Problem]:
    """Problems of an allocation or a baseline that was made from other inputs than this schedule.

    Mapping files are not compared, because an allocation can also be scheduled with the mapping file in its folder.
    """
    from tilewright.pipeline.stages.multi.inputs import origin_problems

    problems = []
    if allocation.artifact:
        counts = tuple(key for key in digests if key != "mapping")
        problems += origin_problems(allocation.artifact.provenance, digests, allocation.file, "allocate", counts)
    for name in (ALLOCATION, SUMMARY) if baseline is not None else ():
        file = (baseline or Path()) / name
        problems += origin_problems(
            read_artifact(file).provenance, digests, str(file), "schedule", ("hardware", "workload")
        )
    place = str((baseline or Path()) / SUMMARY)
    if compared is not None and compared["settings"] != settings.stated():
        problems.append(Problem("was scheduled with other settings, so the comparison would be wrong", place))
    if compared is not None and (found := compared.get("model", "")) != cost_model:
        message = "has cost tables of another cost model, so the comparison would be wrong"
        problems.append(Problem(message, place, value=found, allowed=cost_model))
    return problems


def _of_other_plan(plan: Path | None, inputs: "CostedCnProblem") -> list[Problem]:
    """Problems of a plan that was made from other inputs than this schedule."""
    from tilewright.pipeline.stages.multi.inputs import origin_problems
    from tilewright.pipeline.stages.multi.items import input_digests as digests_of

    if plan is None:
        return []
    counts = ("cores", "workload")
    return origin_problems(read_artifact(plan).provenance, digests_of(inputs.descriptions), str(plan), "fuse", counts)


def _other_settings(chosen_for: Document | None, settings: ScheduleSettings) -> list[str]:
    """Notice that the allocation was searched with other schedule settings. [] if the settings are equal."""
    stated = settings.stated()
    names = [name for name, value in stated.items() if (chosen_for or stated).get(name) != value]
    told = " and ".join(f"the option {name}" for name in names)
    return [f"the allocation was found for a schedule with other values of {told}"] if names else []
