"""Files that `tilewright report` writes for a run on several cores."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.report_files import SEVERAL_CORES_FILES, TABLES, of_part
from tilewright.base.steps import (
    ALLOCATION,
    CN_COLUMNS,
    CN_GRAPH,
    COSTS,
    GENERATIONS,
    PARETO,
    SCHEDULE,
    SUMMARY,
    cost_table,
)
from tilewright.cli.options import Part
from tilewright.results.schedule_options import ScheduleFigureOptions

if TYPE_CHECKING:
    from tilewright.multicore.scheduling.core_costs import CoreCosts
    from tilewright.multicore.scheduling.result import ScheduleArtifact
    from tilewright.results.multi.reported_schedule import AllocationSearch, ReportedSchedule


def write_multi_report(
    run: Path,
    directory: Path,
    options: ScheduleFigureOptions = ScheduleFigureOptions(),  # noqa: B008  frozen
    only: Part = "",
) -> list[Path]:
    """Write figures, the interactive schedule, the trace, and the tables of layers and cores. Returns the paths.

    `only` limits the files to the figures, or to all other files. Raises ArtifactError if a file of the run is missing
    or damaged. In this case, no file is written.
    """
    from tilewright.results.report_writing import write_report

    return write_report(of_part(SEVERAL_CORES_FILES, only), _reported(run, options, only), directory)


def _reported(run: Path, options: ScheduleFigureOptions, only: Part) -> "ReportedSchedule":
    """Data of a run in a folder: schedule, summary and CN graph. For figures, the data also have cost tables and the
    allocation search.
    """
    from tilewright.multicore.nodes.graph import read_cn_graph
    from tilewright.multicore.scheduling.result import read_schedule
    from tilewright.results.multi.bars import ScheduleView, schedule_table, tile_ranges
    from tilewright.results.multi.reported_schedule import ReportedSchedule

    artifact = read_schedule(run / SCHEDULE)
    summary = read_artifact(run / SUMMARY, "tilewright/multi-summary").payload
    view = ScheduleView(artifact, tile_ranges(read_cn_graph(run / CN_GRAPH, run / CN_COLUMNS)))
    costs, search = ({}, None) if only == TABLES else (_core_costs(run, artifact), _search(run))
    return ReportedSchedule(view, schedule_table(view), summary, options, costs, search)


def _core_costs(run: Path, artifact: "ScheduleArtifact") -> "CoreCosts":
    """Cost tables of all core files except the file of the off-chip core."""
    from tilewright.multicore.scheduling.core_costs import read_core_costs

    off_chip, files = artifact.system.off_chip_core, artifact.names.core_files
    used = dict.fromkeys(name for core, name in enumerate(files) if core != off_chip)
    return {name: read_core_costs(cost_table(run / COSTS, name)) for name in used}


def _search(run: Path) -> "AllocationSearch | None":
    """Progress and front of the search for the allocation. None for a run of `tilewright fuse`, which does not use this
    search.
    """
    from tilewright.results.multi.allocation_figure import read_front, read_generations
    from tilewright.results.multi.reported_schedule import AllocationSearch

    if not (run / ALLOCATION).is_file():
        return None
    return AllocationSearch(read_generations(run / GENERATIONS), read_front(run / PARETO))
