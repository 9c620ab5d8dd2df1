"""Files in the reports of runs: the row of a file has its name, a text on its content, and a function that makes it.

To add a figure, add a row here and a function that draws it. Verbs, rules and steps iterate over the rows, and
`python -m tools.generate` writes the tables of the pages and the captions from them. Only the standard library is used:
the Snakefile imports this at every parse.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

TABLES: Final = "tables"
FIGURES: Final = "figures"
"""Names of the two parts of a report: TABLES has the tables, FIGURES has the figures. Each part can be written alone.
"""
LAYER_TABLE, CORE_TABLE, TRACE = "layers.csv", "cores.csv", "trace.json"
LOOP_NESTS, LOOP_NEST_PAGES = "loop_nests.txt", "loop_nests.pdf"
BOTTLENECKS = "bottlenecks"
"""Name, without suffix, of the files that show how energy and cycles are divided among the parts of the hardware."""


class ReportFile(NamedTuple):
    """File in the report of a run. For each SVG there is also a PNG."""

    name: str
    part: str
    """Part of the report to which the file belongs: TABLES or FIGURES."""
    made_by: str
    """Function that makes the file from the reported run, as `module:function`; '' if `tilewright explain` writes it.

    For an SVG the function returns the figure, or None if the run has no such figure. For a CSV it returns the table,
    and for other files the content.
    """
    content: str = ""
    """Content of the file, in Markdown, for the page of the report and for the caption in the report of the workflow.
    The text begins in lower case and has no full stop at its end.
    """
    shows: str = ""
    """Short description of the file for the report of the workflow; '' if the file is not in this report."""
    dots_per_inch: int = 110
    """Resolution of the PNG of a figure."""
    of_some_runs: bool = False
    """True if only some runs have the file. The file is then no target of the workflow. A run without such a file
    deletes the file of an earlier run in the same folder."""


SCHEDULE_DOTS_PER_INCH = 180
"""Resolution of the PNG of a schedule, which has small parts."""
_SINGLE, _MULTI = "tilewright.results", "tilewright.results.multi"
ONE_CORE_FILES = (
    ReportFile(
        LAYER_TABLE,
        TABLES,
        f"{_SINGLE}.tables:reported_layers",
        "one row per layer in the order of execution, with cost, spatial mapping and loop order. If the search gives"
        " bounds, `proof_covers` describes the mappings for which a proof holds",
        "table of layers",
    ),
    ReportFile(
        LOOP_NESTS,
        TABLES,
        f"{_SINGLE}.loop_nest:reported_loop_nests",
        f"the loop nests of `{LOOP_NEST_PAGES}` as text",
    ),
    ReportFile(
        "energy.svg",
        FIGURES,
        f"{_SINGLE}.figures:reported_energy",
        "for each layer a bar for the multiply-accumulates and a bar for each memory, stacked by operand (colour) and"
        " direction (hatched: writes; light: to or from the level above)",
        "energy by layer",
    ),
    ReportFile(
        "latency.svg",
        FIGURES,
        f"{_SINGLE}.figures:reported_latency",
        "for each layer the parts of the latency; a diamond marks the latency under the profile `corrected`, if"
        " this latency differs by more than 5 % from the latency of the run",
        "latency by layer",
    ),
    ReportFile(
        LOOP_NEST_PAGES,
        FIGURES,
        f"{_SINGLE}.nest_figure:reported_pages",
        "one page for each distinct layer: its temporal loops (outermost on top) and spatial loops, beside the"
        " memories of every operand ([figures](artifacts/report.md#figures-of-a-run))",
        "loop nests over memories",
    ),
    ReportFile(
        f"{BOTTLENECKS}.svg",
        FIGURES,
        "",
        "energy by memory and operand, cycles by cause, and the port that limits each layer"
        " ([files](bottlenecks/explain.md#files))",
        "bottlenecks",
    ),
    ReportFile(
        "front_points.csv",
        TABLES,
        f"{_SINGLE}.front_text:reported_points",
        "points of the Pareto front of the network, with the role of each point; only with `front`",
        of_some_runs=True,
    ),
    ReportFile(
        "front.svg",
        FIGURES,
        f"{_SINGLE}.front_figure:reported_front",
        "the Pareto front of the network, with the knee, the run and the lower bounds; only with `front`",
        of_some_runs=True,
    ),
)
"""Files in the report of a run on one core, in the order in which they are written."""
SEVERAL_CORES_FILES = (
    ReportFile(
        "schedule.html",
        TABLES,
        f"{_MULTI}.page:reported_page",
        "interactive form of `schedule.svg`, with details of every bar; one file that works offline. The wheel zooms,"
        " and dragging moves the schedule. A click on a computation node draws lines to the nodes that it waits for"
        " and to the nodes that wait for it; the legend hides layers",
        "interactive schedule",
    ),
    ReportFile(
        LAYER_TABLE,
        TABLES,
        f"{_MULTI}.layer_places:reported_layers",
        "one row per layer: its computation nodes, the cores that run them, first start, last end and energy"
        " ([columns](multi-core/report.md#tables-of-a-schedule))",
        "table of layers",
    ),
    ReportFile(
        CORE_TABLE,
        TABLES,
        f"{_MULTI}.use_tables:reported_cores",
        "one row per core: its computation nodes, the share of the latency in which it runs a node (`utilisation`),"
        " the average share of its array that works (`array_utilisation`), its energy, and its fullest memory"
        " ([columns](multi-core/report.md#tables-of-a-schedule))",
        "table of cores",
    ),
    ReportFile(
        "memories.csv",
        TABLES,
        f"{_MULTI}.use_tables:reported_memories",
        "one row per memory ([columns](multi-core/report.md#tables-of-a-schedule))",
    ),
    ReportFile(
        "links.csv",
        TABLES,
        f"{_MULTI}.use_tables:reported_links",
        "one row per link ([columns](multi-core/report.md#tables-of-a-schedule))",
    ),
    ReportFile(
        TRACE,
        TABLES,
        f"{_MULTI}.perfetto:reported_trace",
        "the schedule for [Perfetto](https://ui.perfetto.dev) and `chrome://tracing`",
    ),
    ReportFile(
        "schedule.svg",
        FIGURES,
        f"{_MULTI}.gantt:reported_schedule",
        "the schedule: a row for each core and for each link in use, cycles from left to right. Colours are layers;"
        " hatching tells why data move over a link",
        "schedule",
        SCHEDULE_DOTS_PER_INCH,
    ),
    ReportFile(
        "memory.svg",
        FIGURES,
        f"{_MULTI}.memory_figure:reported_memories",
        "for each memory: bits in the memory over time, capacity, peak",
        "memory use",
    ),
    ReportFile(
        "links.svg",
        FIGURES,
        f"{_MULTI}.memory_figure:reported_links",
        "for each link: the used share of its width over time, the share of the time in which the link is busy, and the"
        " transferred bits divided by width times latency",
        "use of links",
    ),
    ReportFile(
        "energy.svg",
        FIGURES,
        f"{_MULTI}.energy_figure:reported_energy",
        "energy of the arrays and of each memory in the cores (grey), and energy of data transfers for each cause"
        " (colours), in the links (hatched) and in the memories at both ends. The energy of the baselines is shown"
        " beside it",
        "energy by cause",
    ),
    ReportFile(
        "baselines.svg",
        FIGURES,
        f"{_MULTI}.baselines_figure:reported_baselines",
        "latency, energy and EDP beside the baselines and the [lower bounds](proofs/bounds.md); a text says in which of"
        " these three values a baseline is better than the run",
        "baselines and bound",
    ),
    ReportFile(
        "cost_table.svg",
        FIGURES,
        f"{_MULTI}.cost_table_figure:reported_costs",
        "[cycles and energy](multi-core-model/node-costs.md) of each class of nodes on each distinct core",
        "cost of nodes on cores",
    ),
    ReportFile(
        "allocation.svg",
        FIGURES,
        f"{_MULTI}.allocation_figure:reported_search",
        "the [search over allocations](multi-core-model/allocation.md): the best objective up to each generation, the"
        " Pareto front, and the lower bounds as text",
        "search for the allocation",
    ),
)
"""Files in the report of a run on several cores, in the order in which they are written."""


def caption_name(flow: str, file: ReportFile) -> str:
    """Name of the caption of a file in the report of the workflow. Captions are generated files in
    `workflow/report/files`.
    """
    return f"{flow}_{file.name.replace('.', '_')}.rst"


def of_part(files: Iterable[ReportFile], part: str) -> tuple[ReportFile, ...]:
    """Files of one part of a report; all files if the part is ''."""
    return tuple(file for file in files if part in ("", file.part))


def names_of(files: Iterable[ReportFile], part: str = "") -> tuple[str, ...]:
    """Names of the files in one part of a report, without files that only some runs have. If `part` is '', the names in
    all parts.
    """
    return tuple(file.name for file in of_part(files, part) if not file.of_some_runs)


def makers_of(files: Iterable[ReportFile]) -> tuple[str, ...]:
    """Modules with the functions that make the files. Each module is named one time."""
    return tuple(dict.fromkeys(file.made_by.partition(":")[0] for file in files if file.made_by))
