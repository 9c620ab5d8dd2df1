"""The ledger of a run from its folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.artifacts.envelope import read_artifact
from tilewright.steps import COSTS, SCHEDULE, SUMMARY, cost_table

if TYPE_CHECKING:
    from tilewright.report.run_ledger import RunLedger


def ledger_of_several_cores(folder: Path) -> "RunLedger":
    """The ledger of a run on several cores; where its cost tables are elsewhere, the energy on cores is one term.

    Raises ArtifactError.
    """
    from tilewright.report.run_ledger import ledger_of_schedule
    from tilewright.scheduling.core_costs import read_core_costs
    from tilewright.scheduling.result import read_schedule

    schedule, summary = read_schedule(folder / SCHEDULE), read_artifact(folder / SUMMARY)
    off_chip, files = schedule.system.off_chip_core, schedule.names.core_files
    tables = {name: cost_table(folder / COSTS, name) for core, name in enumerate(files) if core != off_chip}
    has_all = all(table.is_file() for table in tables.values())
    costs = {name: read_core_costs(table) for name, table in tables.items()} if has_all else None
    return ledger_of_schedule(folder.name, schedule, summary.payload, summary.provenance, costs)
