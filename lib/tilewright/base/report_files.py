"""Files in the reports of runs: one row per file has the name, the content, and the function that makes the file.

To add a figure, add a row here and a function that draws it. Verbs, rules and steps iterate over the rows. Only the
standard library is used: the Snakefile imports this at every parse.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

TABLES: Final = "tables"
FIGURES: Final = "figures"
"""Name of the part of a report that has the figures. The part `TABLES` has the tables. Each part can be written alone.
"""
LAYER_TABLE, CORE_TABLE, TRACE = "layers.csv", "cores.csv", "trace.json"
LOOP_NESTS, LOOP_NEST_PAGES = "loop_nests.txt", "loop_nests.pdf"
BOTTLENECKS = "bottlenecks"
"""Name, without suffix, of the files that show how energy and cycles are divided among the parts of the hardware."""


class ReportFile(NamedTuple):
    """File in the report of a run. For each SVG there is also a PNG."""

    name: str
    part: str
    """Part of the report that has the file: TABLES or FIGURES."""
    made_by: str
    """Function that makes the file from the reported run, as `module:function`; '' if `tilewright explain` writes it.

    For an SVG the function returns the figure, or None if the run has no such figure. For a CSV it returns the table,
    and for other files the content.
    """
    shows: str = ""
    """Short description of the file for the report of the workflow; '' if the file is not in this report."""
    caption: str = ""
    """Name, without suffix, of the caption of the file. The captions are files in `workflow/report`."""
    dots_per_inch: int = 110
    """Resolution of the PNG of a figure."""
    of_some_runs: bool = False
    """True if only some runs have the file. The file is then no target of the workflow. If a run has no such file, the
    file that an earlier run wrote into the same folder is deleted.
    """


SCHEDULE_DOTS_PER_INCH = 180
"""Resolution of the PNG of a schedule, which has small parts."""
_SINGLE, _MULTI = "tilewright.results", "tilewright.results.multi"
ONE_CORE_FILES = (
    ReportFile(LAYER_TABLE, TABLES, f"{_SINGLE}.tables:reported_layers", "table of layers", "layers"),
    ReportFile(LOOP_NESTS, TABLES, f"{_SINGLE}.loop_nest:reported_loop_nests"),
    ReportFile("energy.svg", FIGURES, f"{_SINGLE}.figures:reported_energy", "energy by layer", "energy"),
    ReportFile("latency.svg", FIGURES, f"{_SINGLE}.figures:reported_latency", "latency by layer", "latency"),
    ReportFile(
        LOOP_NEST_PAGES, FIGURES, f"{_SINGLE}.nest_figure:reported_pages", "loop nests over memories", "loop_nests"
    ),
    ReportFile(f"{BOTTLENECKS}.svg", FIGURES, "", "bottlenecks", "bottlenecks"),
    ReportFile("front_points.csv", TABLES, f"{_SINGLE}.front_text:reported_points", of_some_runs=True),
    ReportFile("front.svg", FIGURES, f"{_SINGLE}.front_figure:reported_front", of_some_runs=True),
)
"""Files in the report of a run on one core, in the order in which they are written."""
SEVERAL_CORES_FILES = (
    ReportFile("schedule.html", TABLES, f"{_MULTI}.page:reported_page", "interactive schedule", "multi_schedule_html"),
    ReportFile(LAYER_TABLE, TABLES, f"{_MULTI}.layer_places:reported_layers", "table of layers", "multi_layers"),
    ReportFile(CORE_TABLE, TABLES, f"{_MULTI}.use_tables:reported_cores", "table of cores", "multi_cores"),
    ReportFile("memories.csv", TABLES, f"{_MULTI}.use_tables:reported_memories"),
    ReportFile("links.csv", TABLES, f"{_MULTI}.use_tables:reported_links"),
    ReportFile(TRACE, TABLES, f"{_MULTI}.perfetto:reported_trace"),
    ReportFile(
        "schedule.svg",
        FIGURES,
        f"{_MULTI}.gantt:reported_schedule",
        "schedule",
        "multi_schedule",
        SCHEDULE_DOTS_PER_INCH,
    ),
    ReportFile("memory.svg", FIGURES, f"{_MULTI}.memory_figure:reported_memories", "memory use", "multi_memory"),
    ReportFile("links.svg", FIGURES, f"{_MULTI}.memory_figure:reported_links", "use of links", "multi_links"),
    ReportFile("energy.svg", FIGURES, f"{_MULTI}.energy_figure:reported_energy", "energy by cause", "multi_energy"),
    ReportFile(
        "baselines.svg",
        FIGURES,
        f"{_MULTI}.baselines_figure:reported_baselines",
        "baselines and bound",
        "multi_baselines",
    ),
    ReportFile(
        "cost_table.svg",
        FIGURES,
        f"{_MULTI}.cost_table_figure:reported_costs",
        "cost of nodes on cores",
        "multi_cost_table",
    ),
    ReportFile(
        "allocation.svg",
        FIGURES,
        f"{_MULTI}.allocation_figure:reported_search",
        "search for the allocation",
        "multi_allocation",
    ),
)
"""Files in the report of a run on several cores, in the order in which they are written."""


def of_part(files: Iterable[ReportFile], part: str) -> tuple[ReportFile, ...]:
    """Files of one part of a report; all files if the part is ''."""
    return tuple(file for file in files if part in ("", file.part))


def names_of(files: Iterable[ReportFile], part: str = "") -> tuple[str, ...]:
    """Names of the files that every run has in the part `part` of its report. For '', the names in all parts."""
    return tuple(file.name for file in of_part(files, part) if not file.of_some_runs)


def makers_of(files: Iterable[ReportFile]) -> tuple[str, ...]:
    """Modules with the functions that make the files. Each module is named one time."""
    return tuple(dict.fromkeys(file.made_by.partition(":")[0] for file in files if file.made_by))
