"""The steps of the pipeline: which verb runs which stages, and the files that each reads and writes.

Verbs, rules and documentation take the names of files from here. Standard library only: the Snakefile imports this at
every parse.
"""

from pathlib import Path
from typing import NamedTuple

from tilewright.base.report_files import (
    BOTTLENECKS,
    FIGURES,
    ONE_CORE_FILES,
    SEVERAL_CORES_FILES,
    TABLES,
    ReportFile,
    names_of,
)

SINGLE, MULTI = "single", "multi"
"""The flows, and the folders of their runs."""
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
"""Names of runs, files and designs: they become folders of results. The rules constrain their wildcards with it."""
SPACE = "space"
"""The folder of explorations."""
FRONT = "front"
"""The folder of complete fronts."""
ACCELERATOR, CORE, WORKLOAD, COVERAGE, MAPPING = (
    *("accelerator.json", "core/{core}.json", "workload.json", "coverage.json", "mapping.json"),
)
LAYERS, SUMMARY, CHECKS, EXPORTS, REPORT = "layers.jsonl", "summary.json", "checks.json", "exports", "report"
"""Files in the folder of a run; the last four in both flows, the last two are folders."""
SPLIT_NETWORK, CN_GRAPH, CN_COLUMNS, COSTS = "split.onnx", "cn_graph.json", "cn_graph.npz", "cost"
"""Files in the folder of a run on several cores; the last is the folder of the cost tables."""
ALLOCATION, GENERATIONS, PARETO, FIXED_MAPPING = "allocation.json", "generations.csv", "pareto.csv", "mapping.yaml"
SCHEDULE = "schedule.npz"
FUSION, FUSION_PLANS, FUSION_PAGE, PLAN = "fusion.json", "fusion.csv", "fusion.html", "plan"
"""What a search of whole plans found, the plans that it looked at, a page of both; the folder in that of a run that has
them."""
DEPTH_FIRST, DEPTH_FIRST_TABLE = "depth_first.json", "depth_first.csv"
"""What was found of depth-first schedules of one core, with its certificate; a row for each."""
ATTENTION, ATTENTION_TABLE = "attention.json", "attention.csv"
"""What was found of attentions on one core, with their certificates; a row for each."""
COURT, COURT_TABLE = "court.json", "court.csv"
"""Verdicts on predictions beside measurements that others made; a row for each measurement."""
RESULTS_PAGE = "index.html"
"""The page of all runs, in the folder of results."""
PORT_LIMITS = "ports.csv"
"""Table of ports in a report."""
CORE_CYCLES = "core_cycles.csv"
"""What `tilewright explain` writes instead of the table of ports for a run on several cores."""


def cost_table(costs: Path | str, core: str) -> Path:
    """The cost table of a core file in the folder of cost tables."""
    return Path(costs) / f"{core}.jsonl"


class Step(NamedTuple):
    """A step of the pipeline: one verb of the command line, on a folder of the results."""

    verb: str
    folder: str
    """Folder of what it writes, below the folder of results; a name in braces is any name."""
    writes: tuple[str, ...]
    """Files in that folder, without those of stages that a user asks for (`exports`)."""
    reads: tuple[str, ...] = ()
    """Files of the same folder that it is made of."""
    stages: tuple[str, ...] = ()
    """Stages of the default pipeline below the parsers; `pipeline/stages/pipeline.py` has those of a core."""

    @property
    def paths(self) -> tuple[str, ...]:
        """What it writes, below the folder of results."""
        return tuple(f"{self.folder}/{name}" for name in self.writes)


def _reported(files: tuple[ReportFile, ...], part: str) -> tuple[str, ...]:
    """Files of one part of a report, in the folder of its run."""
    return tuple(f"{REPORT}/{name}" for name in names_of(files, part))


_SINGLE, _MULTI = f"{SINGLE}/{{run}}", f"{MULTI}/{{run}}"
_GRAPH = (CN_GRAPH, CN_COLUMNS)
_TABLES = f"{COSTS}/{{core}}.jsonl"
STEPS = {
    "parse_hardware": Step("parse", "hardware/{hardware}", (ACCELERATOR, CORE)),
    "parse_workload": Step("parse", "workload/{workload}/{model}", (WORKLOAD, COVERAGE)),
    "parse_mapping": Step("parse", "mapping/{mapping}", (MAPPING,)),
    "map": Step("map", _SINGLE, (LAYERS, SUMMARY)),
    "check": Step("check", _SINGLE, (CHECKS,), (LAYERS, SUMMARY)),
    "report": Step("report", _SINGLE, _reported(ONE_CORE_FILES, TABLES), (LAYERS, SUMMARY)),
    "explain": Step(
        "explain",
        _SINGLE,
        tuple(f"{REPORT}/{name}" for name in (*(f"{BOTTLENECKS}.{end}" for end in ("csv", "json")), PORT_LIMITS)),
        (LAYERS, SUMMARY),
    ),
    "figures": Step("report", _SINGLE, _reported(ONE_CORE_FILES, FIGURES), (LAYERS, SUMMARY)),
    "split": Step("split", _MULTI, (SPLIT_NETWORK,), stages=("LayerSplitting",)),
    "parse_split": Step("parse", _MULTI, (WORKLOAD, COVERAGE), (SPLIT_NETWORK,)),
    "fuse": Step("fuse", f"{_MULTI}/{PLAN}", (FUSION, FUSION_PLANS, FUSION_PAGE, FIXED_MAPPING)),
    "cns": Step("cns", _MULTI, _GRAPH, stages=("GenerateCNWorkloadHybrid",)),
    "cost": Step("cost", _MULTI, (_TABLES,), _GRAPH, ("IntraCoreMapping",)),
    "allocate": Step(
        "allocate",
        _MULTI,
        (ALLOCATION, GENERATIONS, PARETO, FIXED_MAPPING),
        (*_GRAPH, _TABLES),
        ("InterCoreMapping",),
    ),
    "schedule": Step("schedule", _MULTI, (SCHEDULE, SUMMARY), (*_GRAPH, _TABLES, ALLOCATION), ("InterCoreMapping",)),
    "check_multi": Step("check", _MULTI, (CHECKS,), (*_GRAPH, _TABLES, SCHEDULE, SUMMARY)),
    "report_multi": Step(
        "report",
        _MULTI,
        _reported(SEVERAL_CORES_FILES, TABLES),
        (*_GRAPH, SCHEDULE, SUMMARY),
    ),
    "figures_multi": Step(
        "report",
        _MULTI,
        _reported(SEVERAL_CORES_FILES, FIGURES),
        (*_GRAPH, _TABLES, GENERATIONS, PARETO, SCHEDULE, SUMMARY),
    ),
    "explore": Step("explore", f"{SPACE}/{{space}}", ("shards/{shard}.parquet",)),
    "answer": Step(
        "explore",
        f"{SPACE}/{{space}}",
        ("space.csv", "space.parquet", "front.csv", "front.parquet", "explore.html"),
        ("shards/{shard}.parquet",),
    ),
    "family_costs": Step("front", f"{FRONT}/{{space}}", ("costs/{part}.parquet",)),
    "front": Step(
        "front",
        f"{FRONT}/{{space}}",
        ("certificate.parquet", "front.csv", "front.parquet", "front.html"),
        ("costs/{part}.parquet",),
    ),
    "draw": Step("draw", "hardware/{hardware}", ("hierarchy.svg", "system.svg"), (ACCELERATOR,)),
    "pareto": Step("pareto", ".", ("pareto.csv", "pareto/{workload}.svg")),
    "summarize": Step("summarize", ".", ("summary.csv", "summary.parquet")),
    "page": Step("page", ".", (RESULTS_PAGE,)),
}
"""The steps by name, in an order in which they can run; rules name their code by it."""


def artifacts(flow: str) -> tuple[str, ...]:
    """Files that every run of a flow has in its folder, but for the cost tables and the report."""
    steps = [step for name, step in STEPS.items() if step.folder == f"{flow}/{{run}}" and "split" not in name]
    return tuple(name for step in steps for name in step.writes if "/" not in name)
