"""Readers of a run: as a ledger of energy and latency, or as a schedule with its cost tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, Problem, Problems, TilewrightError
from tilewright.base.steps import COSTS, LAYERS, MULTI, SCHEDULE, SUMMARY, cost_table
from tilewright.cli.run_costs import costs_of_run
from tilewright.cli.run_networks import network_of_run
from tilewright.cli.runs import existing_run, read_any_summary, records_of

if TYPE_CHECKING:
    from tilewright.results.multi.result_tables import ScheduledRun
    from tilewright.results.pareto import ComparableRuns
    from tilewright.results.run_ledger import RunLedger
    from tilewright.results.run_point import RunPoint


def scheduled_run(folder: Path) -> "ScheduledRun":
    """Schedule of a run and its summary, read from the folder of the run. The cost tables are included only if the
    folder has the tables of all cores except the off-chip core. Raises ArtifactError for missing or damaged files.
    """
    from tilewright.multicore.scheduling.core_costs import read_core_costs
    from tilewright.multicore.scheduling.result import read_schedule
    from tilewright.results.multi.result_tables import ScheduledRun

    schedule, summary = read_schedule(folder / SCHEDULE), read_artifact(folder / SUMMARY)
    off_chip, files = schedule.system.off_chip_core, schedule.names.core_files
    tables = {name: cost_table(folder / COSTS, name) for core, name in enumerate(files) if core != off_chip}
    has_all = all(table.is_file() for table in tables.values())
    costs = {name: read_core_costs(table) for name, table in tables.items()} if has_all else None
    return ScheduledRun(schedule, summary.payload, costs, summary.provenance)


def ledger_of_several_cores(folder: Path) -> "RunLedger":
    """Ledger of a run on several cores. If the folder has no cost tables, the energy on cores is a single term.

    Raises ArtifactError for missing or damaged files.
    """
    return ledger_of_run(folder.name, scheduled_run(folder))


def ledger_of_run(name: str, run: "ScheduledRun") -> "RunLedger":
    """Ledger of a run on several cores, made from files that are already read."""
    from tilewright.results.run_ledger import ledger_of_schedule

    return ledger_of_schedule(name, run.artifact, run.summary, run.provenance, run.core_costs)


def ledger_at(given: str, network: str = "") -> "RunLedger":
    """Ledger of a run or of a design. `given` is the path of a run, or `FOLDER:DESIGN` for a design in the results of a
    space. If the space has several networks, `network` selects one of them. Raises InputError or ArtifactError if there
    is no such ledger.
    """
    path = Path(given)
    if design := design_at(given):
        from tilewright.designs.design_ledger import ledger_of_design

        return ledger_of_design(*design, network)
    if network:
        raise InputError([_not_of_run(network)])
    if path.name == LAYERS and not (path.parent / SUMMARY).is_file():
        return _of_one_core(path.parent, None)
    folder_of_run = path.parent if path.name in (LAYERS, SUMMARY, SCHEDULE) else existing_run(path)
    flow, summary = read_any_summary(folder_of_run)
    return ledger_of_several_cores(folder_of_run) if flow == MULTI else _of_one_core(folder_of_run, summary)


def ledgers_at(places: "tuple[str, str]", network: str = "") -> "tuple[RunLedger, RunLedger]":
    """Ledgers of two runs or designs. `network` selects a network of each design. Without `network`, a design that is
    compared with a run has the ledger for the network of the run. Raises InputError or ArtifactError if there is no
    such ledger.
    """
    from tilewright.designs.design_ledger import ledger_of_design

    designs = [design_at(place) for place in places]
    if network and not any(designs):
        raise InputError([_not_of_run(network)])
    runs = [None if design else ledger_at(place) for place, design in zip(places, designs, strict=True)]
    likely = next((run.run.workload for run in runs if run is not None), "")
    problems = Problems()
    found = [
        problems.attempt(ledger_of_design, *design, network, likely) if design else run
        for design, run in zip(designs, runs, strict=True)
    ]
    problems.finish()
    first, second = (one for one in found if one is not None)
    return first, second


def _not_of_run(network: str) -> Problem:
    return Problem("applies only to designs of a space", path="network", value=network)


def design_at(given: str) -> tuple[Path, str] | None:
    """Pair (folder of the space, name of the design) for the text `FOLDER:DESIGN`; None for the path of a run."""
    folder, _, design = given.rpartition(":")
    return (Path(folder), design) if folder and not Path(given).exists() else None


def readable_ledger(folder: Path) -> "RunLedger | None":
    """Ledger of the run in a folder; None if its records are missing or damaged."""
    try:
        return ledger_at(str(folder))
    except TilewrightError:
        return None


def ordered(
    points: "Sequence[RunPoint]", folders: Sequence[Path], unfinished: Sequence[Mapping[str, str]] = ()
) -> "tuple[ComparableRuns, ...]":
    """Groups of comparable runs. Each group has sentences on the changes that would reverse the order of its two best
    runs.
    """
    from tilewright.results.pareto import compare
    from tilewright.results.ranking_turns import with_order_lines

    points = _with_structures(points, folders)
    # Runs of one name in different folders can be equal, so points are recognised as objects.
    folder_of = {id(point): folder for point, folder in zip(points, folders, strict=True)}
    return with_order_lines(compare(points, unfinished), lambda point: readable_ledger(folder_of[id(point)]))


def _with_structures(points: "Sequence[RunPoint]", folders: Sequence[Path]) -> "list[RunPoint]":
    """Points of runs. If different networks have the same name, the points of their runs get an additional digest of
    the network. Bits of operands and shares of zeros do not change this digest.
    """
    from tilewright.workload.network_identity import structure_of_network

    by_name: dict[str, dict[str, Path]] = {}
    for point, folder in zip(points, folders, strict=True):
        by_name.setdefault(point.workload, {}).setdefault(point.workload_digest, folder)
    found: dict[str, str] = {}
    for places in by_name.values():
        if len(places) > 1:
            for digest, folder in places.items():
                network = network_of_run(folder)
                found[digest] = "" if network is None else structure_of_network(network)
    return [replace(point, structure_digest=found.get(point.workload_digest, "")) for point in points]


def _of_one_core(folder: Path, summary: "dict[str, object] | None") -> "RunLedger":
    from tilewright.results.run_ledger import ledger_of_layers

    artifact = read_artifact(folder / LAYERS, "tilewright/layers")
    records = records_of(artifact, folder / LAYERS)
    costs = costs_of_run(folder, artifact.provenance, summary)
    return ledger_of_layers(folder.name, records, summary, artifact.provenance, costs)
