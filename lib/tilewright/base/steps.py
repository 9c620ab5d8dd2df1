"""Steps of the pipeline: the verb of each step, its stages, and the files that it reads and writes.

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
"""Flows, which are also the names of the folders of their runs."""
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
"""Pattern of the names of runs, files and designs, which become folders of results. Rules constrain their wildcards
with it."""
SPACE = "space"
"""Name of the folder for explorations of design spaces."""
FRONT = "front"
"""Name of the folder for complete Pareto fronts."""
ACCELERATOR, CORE, WORKLOAD, COVERAGE, MAPPING = (
    *("accelerator.json", "core/{core}.json", "workload.json", "coverage.json", "mapping.json"),
)
LAYERS, SUMMARY, CHECKS, EXPORTS, REPORT = "layers.jsonl", "summary.json", "checks.json", "exports", "report"
"""Files in the folder of a run. All runs have these files, except LAYERS, which only runs on one core have. EXPORTS and
REPORT are folders."""
FRONT_TABLE, FRONT_FILE = "front.csv", "front.json"
"""Points of the Pareto front of a network, and the fronts of the network and of its layers, in the folder of a run on
one core. The files exist only with the option `front`."""
SPLIT_NETWORK, CN_GRAPH, CN_COLUMNS, COSTS = "split.onnx", "cn_graph.json", "cn_graph.npz", "cost"
"""Files in the folder of a run on several cores. COSTS is the folder of the cost tables."""
ALLOCATION, GENERATIONS, PARETO, FIXED_MAPPING = "allocation.json", "generations.csv", "pareto.csv", "mapping.yaml"
SCHEDULE = "schedule.npz"
FUSION, FUSION_PLANS, FUSION_PAGE, PLAN = "fusion.json", "fusion.csv", "fusion.html", "plan"
"""Files of a search for whole plans: the result, the examined plans, and a page of both. PLAN is the folder with them
inside the folder of a run."""
DEPTH_FIRST, DEPTH_FIRST_TABLE = "depth_first.json", "depth_first.csv"
"""Depth-first schedules of one core: results with their certificates, and a table with one row for each."""
ATTENTION, ATTENTION_TABLE = "attention.json", "attention.csv"
"""Attention layers on one core: results with their certificates, and a table with one row for each."""
COURT, COURT_TABLE = "court.json", "court.csv"
"""Comparison of predictions with measurements that others made: verdicts, and a table with one row for each
measurement."""
RESULTS_PAGE = "index.html"
"""Page of all runs, in the folder of results."""
PORT_LIMITS = "ports.csv"
"""Table of ports in a report."""
CORE_CYCLES = "core_cycles.csv"
"""Table that `tilewright explain` writes in place of the table of ports, for a run on several cores."""


def cost_table(costs: Path | str, core: str) -> Path:
    """Path of the cost table of a core file, in the folder of cost tables."""
    return Path(costs) / f"{core}.jsonl"


class Step(NamedTuple):
    """Step of the pipeline: one verb of the command line, applied to a folder of the results."""

    verb: str
    folder: str
    """Folder of the files that the step writes, below the folder of results. A name in braces stands for any name."""
    writes: tuple[str, ...]
    """Files that the step writes in this folder, without those of stages that a user adds (`exports`)."""
    reads: tuple[str, ...] = ()
    """Files of the same folder that the step reads."""
    stages: tuple[str, ...] = ()
    """Stages of the default pipeline that come after the parsers. The stages of a single core are in
    `pipeline/stages/pipeline.py`."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files that the step writes, below the folder of results."""
        return tuple(f"{self.folder}/{name}" for name in self.writes)


PAPER = f"{REPORT}/paper"
"""Folder of the figures and tables for a paper, in the folder of a run."""


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
    "paper": Step("report", _SINGLE, (PAPER,), (LAYERS, SUMMARY)),
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
    "paper_multi": Step("report", _MULTI, (PAPER,), (*_GRAPH, _TABLES, GENERATIONS, PARETO, SCHEDULE, SUMMARY)),
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
"""Steps by name, in an order in which they can run. Rules refer to their code by this name."""


def artifacts(flow: str) -> tuple[str, ...]:
    """Files that every run of a flow has in its folder, without the cost tables and the report."""
    steps = [step for name, step in STEPS.items() if step.folder == f"{flow}/{{run}}" and "split" not in name]
    return tuple(name for step in steps for name in step.writes if "/" not in name)
