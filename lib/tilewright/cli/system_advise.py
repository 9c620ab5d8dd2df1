"""What `tilewright advise` reads of a run on several cores: all that it was made of, and its changes."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.artifacts.envelope import is_artifact, read_artifact
from tilewright.artifacts.files import existing_file
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD, DescribedRun, hardware_digest, mapping_digest
from tilewright.errors import InputError, Problem, Problems
from tilewright.steps import ALLOCATION, CN_GRAPH, COSTS, FIXED_MAPPING, SCHEDULE, SUMMARY, cost_table
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.exploration.changes import Change
    from tilewright.exploration.space_options import SystemOptions
    from tilewright.exploration.system_advice import ExplainedSystemRun
    from tilewright.scheduling.options import ScheduleSettings
    from tilewright.search.options import CnSearchOptions

Given = dict[str, Path | None]
Document = Mapping[str, Any]


def explained_system_run(
    folder: Path, given: Given, network_options: NetworkOptions, by: Fraction
) -> "tuple[ExplainedSystemRun, tuple[Change, ...]]":
    """The run in a folder with what it was made of, and the changes of its accelerator file and its core files by a
    factor. Raises InputError where it is not of these."""
    from tilewright.exploration.advice import Outcome
    from tilewright.exploration.changes import system_changes
    from tilewright.exploration.system_advice import ExplainedSystemRun
    from tilewright.exploration.system_base import system_base
    from tilewright.scheduling.options import CAUSAL, ScheduleSettings
    from tilewright.scheduling.result import read_schedule
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.multi.inputs import read_inputs
    from tilewright.yamlfile import load_yaml

    artifact = read_schedule(folder / SCHEDULE)
    run = DescribedRun.of(folder, artifact.provenance)
    paths = _paths(run, given)
    run.check(HARDWARE, hardware_digest(paths[HARDWARE]), str(paths[HARDWARE]))
    settings = ScheduleSettings.of(artifact.provenance["options"])
    if settings.schedule_model != CAUSAL or "pipeline" in artifact.provenance["options"]:
        message = "has a pipeline or a schedule model of its own, and a change cannot be searched by it"
        raise InputError([Problem(message, str(folder))])
    problems = Problems()
    document = load_yaml(paths[HARDWARE])
    base = system_base(document, {}, problems)
    problems.finish()
    assert base is not None
    described = Descriptions(base.document.data, paths[WORKLOAD], paths[MAPPING], network_options)
    costed = read_inputs(described, folder, folder / COSTS, settings.operands_to_prefetch)
    search = _search_options(folder, tuple(costed.costs))
    summary = read_artifact(folder / SUMMARY).payload
    explained = ExplainedSystemRun(
        name=folder.name,
        hardware=base.document.data,
        costed=costed,
        allocation=artifact.schedule.allocation,
        now=Outcome(summary["energy_pj"], summary["latency_cycles"]),
        objective=summary["objective"],
        search=search,
        settings=settings,
        options=_system_options(folder, search, settings),
    )
    return explained, system_changes(document, base, by)


def _paths(run: DescribedRun, given: Given) -> dict[str, Path]:
    """The descriptions of a run. Raises InputError for those that are not found, and for hardware that nobody wrote."""
    hardware = given[HARDWARE]
    if hardware is not None and is_artifact(existing_file(hardware, HARDWARE)):
        message = "is an artifact, in which nothing can be changed: the file that it was read from is needed"
        raise InputError([Problem(message, str(hardware))])
    found = {
        HARDWARE: hardware or run.hardware_file(),
        WORKLOAD: given[WORKLOAD] or run.artifact(WORKLOAD),
        MAPPING: given[MAPPING] or _own_mapping(run) or run.artifact(MAPPING),
    }
    missing = run.not_found(found)
    if missing:
        raise InputError(missing)
    return {kind: path for kind, path in found.items() if path is not None}


def _own_mapping(run: DescribedRun) -> Path | None:
    """The mapping file that `tilewright fuse` wrote beside the schedule, if the run is of it."""
    path = run.folder / FIXED_MAPPING
    is_of_run = path.is_file() and mapping_digest(path) == run.digests.get(MAPPING)
    return path if is_of_run else None


def _search_options(folder: Path, core_files: tuple[str, ...]) -> "CnSearchOptions":
    """The options of the cost tables. Raises InputError where they are not of one search that options say."""
    from tilewright.parameters import made_of
    from tilewright.search.options import CnSearchOptions

    stated = [read_artifact(cost_table(folder / COSTS, name)).provenance["options"] for name in core_files]
    if any(one != stated[0] for one in stated) or "pipeline" in stated[0]:
        message = "its cost tables have a pipeline of their own, and a change cannot be searched by it"
        raise InputError([Problem(message, str(folder))])
    return made_of(CnSearchOptions, stated[0])


def _system_options(folder: Path, search: "CnSearchOptions", settings: "ScheduleSettings") -> "SystemOptions | None":
    """The options of a whole new search; None where the allocation was not searched by `tilewright allocate`."""
    from tilewright.allocation.options import AllocationParameters
    from tilewright.exploration.space_options import SystemOptions
    from tilewright.fusion.tiling_options import TilingOptions
    from tilewright.parameters import parameters_of

    if not (folder / ALLOCATION).is_file():
        return None
    stated: dict[str, Any] = {}
    for kind, file in ((TilingOptions, folder / CN_GRAPH), (AllocationParameters, folder / ALLOCATION)):
        options: Document = read_artifact(file).provenance["options"]
        stated |= {one.name: options[one.name] for one in parameters_of(kind) if one.name in options}
    return SystemOptions(**{**settings.as_dict(), **stated, **search.as_dict()})
