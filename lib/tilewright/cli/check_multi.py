"""`tilewright check` for a run on several cores."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import ALLOCATION, CN_COLUMNS, CN_GRAPH, COSTS, SCHEDULE, SUMMARY, cost_table
from tilewright.cli.described_run import (
    HARDWARE,
    INCOMPLETE,
    MAPPING,
    WORKLOAD,
    DescribedRun,
    hardware_digest,
    mapping_digest,
    system_network_digest,
)
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.scheduling.assembled import AssembledProblem
    from tilewright.results.checks import Check

Given = Mapping[str, Path | None]
"""Path that the user gave for each of HARDWARE, WORKLOAD and MAPPING; None if no path was given."""
Tell = Callable[[Sequence[str]], None]


def check_folder(
    run: Path, given: Given, network_options: NetworkOptions, tell: Tell
) -> "tuple[list[Check], dict[str, str]]":
    """Pair (checks of a run in a folder, digests of the checked files).

    CN graph, cost tables and allocation are checked if the folder has them. If hardware, workload and mapping are given
    or found, the scheduling problem is made again from these files, and the run is compared with it. A notice says
    which parts are not checked. Raises InputError for damaged files. If the user gives one or two of these three files,
    also raises InputError for each of the three that is neither given nor found.
    """
    from tilewright.multicore.nodes.graph import read_cn_graph
    from tilewright.multicore.scheduling.core_costs import read_core_costs
    from tilewright.multicore.scheduling.result import read_schedule
    from tilewright.results.multi.checks import check_multi_run
    from tilewright.results.multi.summary import SCHEMA

    artifact = read_schedule(run / SCHEDULE)
    summary = read_artifact(run / SUMMARY, SCHEMA)
    digests = {"summary": summary.digest}
    graph = costs = allocation = None
    if (run / CN_GRAPH).is_file():
        graph = read_cn_graph(run / CN_GRAPH, run / CN_COLUMNS)
        digests["cn_graph"] = read_artifact(run / CN_GRAPH).digest
    if (run / COSTS).is_dir():
        off_chip = artifact.names.core_files[artifact.system.off_chip_core]
        files = [name for name in dict.fromkeys(artifact.names.core_files) if name != off_chip]
        costs = {name: read_core_costs(cost_table(run / COSTS, name)) for name in files}
    if (run / ALLOCATION).is_file() and summary.payload["allocation"] is not None:
        allocation = read_artifact(run / ALLOCATION, "tilewright/allocation").payload
    described = DescribedRun.of(run, artifact.provenance, summary.payload)
    has_parts = graph is not None and costs is not None
    found = _descriptions(described, given, network_options, tell) if has_parts or any(given.values()) else None
    if found is None and not has_parts:
        missing = [name for name, there in ((CN_GRAPH, graph), (COSTS, costs)) if there is None]
        tell([f"{run} does not have {' and '.join(missing)}: the inputs of the schedule are not checked"])
    assembled = None if found is None else _assembled(run, found, network_options, summary.payload["settings"])
    return check_multi_run(artifact, summary.payload, graph, costs, allocation, assembled), digests


def _descriptions(
    run: DescribedRun, given: Given, network_options: NetworkOptions, tell: Tell
) -> dict[str, Path] | None:
    """Paths of hardware, workload and mapping of a run, by kind.

    If the user gave no path and a file is not found, the result is None, and a notice says so. Raises InputError if the
    user gave some paths and another file is not found.
    """
    found = run.descriptions(given, network_options, is_system=True)
    missing = run.not_found(found)
    if any(given.values()):
        if missing:
            raise InputError([Problem(f"{INCOMPLETE}; {one.message}", path=one.path) for one in missing])
    elif missing:
        tell([f"{one.message}; the inputs of the schedule are not checked" for one in missing])
        return None
    digest_of: dict[str, Callable[[Path], str]] = {
        HARDWARE: hardware_digest,
        WORKLOAD: partial(system_network_digest, options=network_options),
        MAPPING: mapping_digest,
    }
    for kind, path in given.items():
        if path is not None and (said := run.contradiction(kind, digest_of[kind](path))):
            tell([f"{path} {said}"])
    return {kind: path for kind, path in found.items() if path is not None}


def _assembled(
    run: Path, described: Mapping[str, Path], network_options: NetworkOptions, settings: JsonObject
) -> "AssembledProblem":
    """Scheduling problem that is made from hardware, workload and mapping."""
    from tilewright.multicore.scheduling.assembly import model_problem
    from tilewright.multicore.scheduling.options import ScheduleSettings
    from tilewright.pipeline.stages import descriptions
    from tilewright.pipeline.stages.multi.inputs import read_inputs

    files = descriptions.Descriptions(described[HARDWARE], described[WORKLOAD], described[MAPPING], network_options)
    inputs = read_inputs(files, run, run / COSTS)
    found = inputs.descriptions
    described_problem = (found.workload, inputs.graph, found.accelerator, found.mapping)
    return model_problem(*described_problem, inputs.costs, ScheduleSettings.of(settings))
