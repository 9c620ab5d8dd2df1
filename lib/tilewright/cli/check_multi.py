"""`tilewright check` for a run of the multi-core flow."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import ALLOCATION, CN_COLUMNS, CN_GRAPH, COSTS, SCHEDULE, SUMMARY, cost_table
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.scheduling.assembled import AssembledProblem
    from tilewright.results.checks import Check

Descriptions = tuple[Path | None, Path | None, Path | None]
"""Paths of hardware, workload and mapping."""


def check_folder(
    run: Path, described: Descriptions, network_options: NetworkOptions
) -> "tuple[list[Check], dict[str, str]]":
    """(checks of a run in a folder, digests of the checked files).

    CN graph, cost tables and allocation are checked if they are in the folder. With hardware, workload and mapping, the
    scheduling problem is built again and compared. Raises InputError for damaged and for missing files.
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
    assembled = _assembled(run, described, network_options, summary.payload["settings"])
    return check_multi_run(artifact, summary.payload, graph, costs, allocation, assembled), digests


def _assembled(
    run: Path, described: Descriptions, network_options: NetworkOptions, settings: JsonObject
) -> "AssembledProblem | None":
    """Scheduling problem of the descriptions; None if they are not given."""
    hardware, workload, mapping = described
    if hardware is None and workload is None and mapping is None:
        return None
    if hardware is None or workload is None or mapping is None:
        given = zip(("hardware", "workload", "mapping"), described, strict=True)
        missing = [name for name, path in given if path is None]
        raise InputError([Problem("is needed too: the problem is made of all three", path=name) for name in missing])
    from tilewright.multicore.scheduling.assembly import model_problem
    from tilewright.multicore.scheduling.options import ScheduleSettings
    from tilewright.pipeline.stages import descriptions
    from tilewright.pipeline.stages.multi.inputs import read_inputs

    files = descriptions.Descriptions(hardware, workload, mapping, network_options)
    inputs = read_inputs(files, run, run / COSTS)
    found = inputs.descriptions
    described_problem = (found.workload, inputs.graph, found.accelerator, found.mapping)
    return model_problem(*described_problem, inputs.costs, ScheduleSettings.of(settings))
