"""Files that `tilewright report` writes for a run of the multi-core flow."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.artifacts.files import make_folder, writing
from tilewright.base.steps import (
    ALLOCATION,
    CN_COLUMNS,
    CN_GRAPH,
    CORE_TABLE,
    COSTS,
    GENERATIONS,
    LAYER_TABLE,
    PARETO,
    SCHEDULE,
    SUMMARY,
    TRACE,
    cost_table,
)
from tilewright.cli.options import FIGURES, TABLES, Part
from tilewright.results.schedule_options import ScheduleFigureOptions

if TYPE_CHECKING:
    from tilewright.results.multi.bars import ScheduleTable, ScheduleView


def write_multi_report(
    run: Path,
    directory: Path,
    options: ScheduleFigureOptions = ScheduleFigureOptions(),  # noqa: B008  frozen
    only: Part = "",
) -> list[Path]:
    """Write figures, the interactive schedule, the trace and the tables of layers and cores, or with `only` the figures
    or everything else; returns the paths.

    Reads the schedule, the summary, the graph of CNs, the cost tables and the tables of the search in the folder of the
    run. Raises ArtifactError if one of them is missing or damaged, before anything is written.
    """
    from tilewright.multicore.nodes.graph import read_cn_graph
    from tilewright.multicore.scheduling.result import read_schedule
    from tilewright.results.multi.bars import ScheduleView, schedule_table, tile_ranges

    artifact = read_schedule(run / SCHEDULE)
    summary: dict[str, Any] = read_artifact(run / SUMMARY, "tilewright/multi-summary").payload
    view = ScheduleView(artifact, tile_ranges(read_cn_graph(run / CN_GRAPH, run / CN_COLUMNS)))
    table = schedule_table(view)
    paths: list[Path] = []
    if only != TABLES:
        paths += _write_figures(run, directory, options, view, summary, table)
    if only != FIGURES:
        paths += _write_tables(directory, view, summary, table)
    return paths


def _write_figures(
    run: Path,
    directory: Path,
    options: ScheduleFigureOptions,
    view: "ScheduleView",
    summary: dict[str, Any],
    table: "ScheduleTable",
) -> list[Path]:
    from tilewright.multicore.scheduling.core_costs import read_core_costs
    from tilewright.results.multi.allocation_figure import read_front, read_generations, write_allocation_figure
    from tilewright.results.multi.baselines_figure import write_baselines_figure
    from tilewright.results.multi.cost_table_figure import write_cost_table_figure
    from tilewright.results.multi.energy_figure import write_energy_breakdown
    from tilewright.results.multi.gantt import write_schedule_figure
    from tilewright.results.multi.memory_figure import write_link_figure, write_memory_figure

    artifact = view.artifact
    off_chip, files = artifact.system.off_chip_core, artifact.names.core_files
    used = dict.fromkeys(name for core, name in enumerate(files) if core != off_chip)
    costs = {name: read_core_costs(cost_table(run / COSTS, name)) for name in used}
    is_searched = (run / ALLOCATION).is_file()  # tilewright fuse finds cores in another way, and has no generations
    search = (read_generations(run / GENERATIONS), read_front(run / PARETO)) if is_searched else None
    network = f"{artifact.names.network} on {artifact.names.accelerator}"
    make_folder(directory)
    with writing(directory):
        paths = list(write_schedule_figure(view, directory / "schedule", summary, options, table))
        paths += write_memory_figure(view, directory / "memory")
        paths += write_link_figure(view, directory / "links")
        paths += write_energy_breakdown(view, directory / "energy", summary)
        paths += write_baselines_figure(summary, directory / "baselines")
        paths += write_cost_table_figure(costs, directory / "cost_table", network)
        if search is not None:
            title = f"Search for the allocation of {network}"
            paths += write_allocation_figure(*search, title, directory / "allocation", summary["lower_bound"])
    return paths


def _write_tables(directory: Path, view: "ScheduleView", summary: dict[str, Any], table: "ScheduleTable") -> list[Path]:
    from tilewright.results.multi.page import write_schedule_page
    from tilewright.results.multi.perfetto import write_trace
    from tilewright.results.multi.use_tables import core_use_table, layer_use_table
    from tilewright.results.text_tables import write_csv

    make_folder(directory)
    with writing(directory):
        paths = [write_schedule_page(view, directory / "schedule.html", summary, table)]
        tables = [directory / LAYER_TABLE, directory / CORE_TABLE]
        write_csv(layer_use_table(view), tables[0])
        write_csv(core_use_table(summary), tables[1])
        return [*paths, *tables, write_trace(view, directory / TRACE, table)]
