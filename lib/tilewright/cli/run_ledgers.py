"""Readers of runs on several cores: schedule with its costs, and ledger of energy and latency."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.steps import COSTS, SCHEDULE, SUMMARY, cost_table

if TYPE_CHECKING:
    from tilewright.results.multi.result_tables import ScheduledRun
    from tilewright.results.run_ledger import RunLedger


def scheduled_run(folder: Path) -> "ScheduledRun":
    """Schedule in the folder of a run, with the summary and, if all cost tables are in the folder, the cost tables.

    Raises ArtifactError for missing or damaged files.
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
    """Ledger of a run on several cores whose files are already read."""
    from tilewright.results.run_ledger import ledger_of_schedule

    return ledger_of_schedule(name, run.artifact, run.summary, run.provenance, run.core_costs)
