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
"""Names of the two flows: runs on one core (SINGLE) and runs on several cores (MULTI). The folders of these runs have
the same names.
"""
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
"""Pattern (regular expression) of the names of runs, files and designs. These names become names of folders of results.
The rules of the workflow restrict their wildcards to this pattern.
"""
SPACE = "space"
"""Name of the folder for explorations of design spaces."""
FRONT = "front"
"""Name of the folder for complete Pareto fronts."""
DECISION, DECISION_TABLE = ("decision.md", "decision.html"), "decision-table.csv"
"""Files of the decision for one design of a space, in the folder of the space. DECISION_TABLE is written only for a
paper.
"""
SHOWN_DESIGNS, HARDWARE_OF_DESIGN = "designs", "hardware.yaml"
"""SHOWN_DESIGNS: name of the folder for full runs of designs, in the folder of the space. HARDWARE_OF_DESIGN: name of
the hardware file in the subfolder of each of these designs.
"""
ACCELERATOR, CORE, WORKLOAD, COVERAGE, MAPPING = (
    *("accelerator.json", "core/{core}.json", "workload.json", "coverage.json", "mapping.json"),
)
LAYERS, SUMMARY, CHECKS, EXPORTS, REPORT = "layers.jsonl", "summary.json", "checks.json", "exports", "report"
"""Files in the folder of a run; EXPORTS and REPORT are folders. LAYERS exists only for runs on one core, and EXPORTS
only if stages of the pipeline write files.
"""
FRONT_TABLE, FRONT_FILE = "front.csv", "front.json"
"""Files in the folder of a run on one core. FRONT_TABLE has the points of the Pareto front of the network. FRONT_FILE
has the fronts of the network and of each of its layers. The files exist only with the option `front`.
"""
SPLIT_NETWORK, CN_GRAPH, CN_COLUMNS, COSTS = "split.onnx", "cn_graph.json", "cn_graph.npz", "cost"
"""Files in the folder of a run on several cores. COSTS is the folder of the cost tables."""
ALLOCATION, GENERATIONS, PARETO, FIXED_MAPPING = "allocation.json", "generations.csv", "pareto.csv", "mapping.yaml"
SCHEDULE = "schedule.npz"
FUSION, FUSION_PLANS, FUSION_PAGE, PLAN = "fusion.json", "fusion.csv", "fusion.html", "plan"
"""Files of a search for whole plans: the result, the examined plans, and a page of both. PLAN is the folder of these
files, inside the folder of a run."""
ISLANDS = "islands"
"""Folder for the states of a search that runs as islands, inside the folder of the plan. Islands are searches for plans
that have different seeds and exchange their best plans. Each file has a state that one part of the search writes and
later parts read.
"""
DEPTH_FIRST, DEPTH_FIRST_TABLE = "depth_first.json", "depth_first.csv"
"""Files with depth-first schedules on one core. DEPTH_FIRST has the results and the certificate of an optimum.
DEPTH_FIRST_TABLE has one row for each schedule.
"""
ATTENTION, ATTENTION_TABLE = "attention.json", "attention.csv"
"""Files with the best ways to run attention layers on one core. ATTENTION has the results with their certificates.
ATTENTION_TABLE has one row for each attention layer, context length and memory size.
"""
COURT, COURT_TABLE = "court.json", "court.csv"
"""Files of the comparison of predictions with measurements by others. COURT has the verdicts. COURT_TABLE has one row
for each measurement.
"""
RESULTS_PAGE = "index.html"
"""Page of all runs, in the folder of results."""
PORT_LIMITS = "ports.csv"
"""Table in the report of a run on one core. For each port and layer, the table has the use of the port, and the latency
if the port were twice as wide."""
CORE_CYCLES = "core_cycles.csv"
"""Table that `tilewright explain` writes in place of the table of ports, for a run on several cores."""


def cost_table(costs: Path | str, core: str) -> Path:
    """Path of the cost table of a core file, in the folder of cost tables."""
    return Path(costs) / f"{core}.jsonl"


class Step(NamedTuple):
    """Step of the pipeline: it applies one verb of the command line to a folder of the results."""

    verb: str
    folder: str
    """Folder of the files that the step writes, below the folder of results. A name in braces stands for any name."""
    writes: tuple[str, ...]
    """Files that the step writes, relative to `folder`. Files that stages of a user's pipeline write into the folder
    `exports` are not included.
    """
    reads: tuple[str, ...] = ()
    """Files that the step reads from the same folder into which it writes."""
    stages: tuple[str, ...] = ()
    """Stages that the step runs in the default pipeline for several cores, without parsers. The stages of runs on one
    core are in `pipeline/stages/pipeline.py`.
    """

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files that the step writes, below the folder of results."""
        return tuple(f"{self.folder}/{name}" for name in self.writes)


PAPER = f"{REPORT}/paper"
"""Folder of the figures and tables for a paper, in the folder of a run."""


def _reported(files: tuple[ReportFile, ...], part: str) -> tuple[str, ...]:
    """Paths of the files in one part of a report, relative to the folder of the run. Files that only some runs have are
    left out.
    """
    return tuple(f"{REPORT}/{name}" for name in names_of(files, part))


_SINGLE, _MULTI = f"{SINGLE}/{{run}}", f"{MULTI}/{{run}}"
_GRAPH = (CN_GRAPH, CN_COLUMNS)
_TABLES = f"{COSTS}/{{core}}.jsonl"
_ISLAND = f"{ISLANDS}/{{part}}.json"
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
    "fuse_island": Step("fuse", f"{_MULTI}/{PLAN}", (_ISLAND,)),
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
    "decide": Step(
        "decide",
        f"{SPACE}/{{space}}",
        DECISION,
        ("shards/{shard}.parquet", "space.parquet", "front.parquet", "explore.html"),
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
"""Name of a step -> the step, in an order in which the steps can run. Snakemake rules refer to the code of a step by
this name.
"""


def artifacts(flow: str) -> tuple[str, ...]:
    """Files that every run of a flow has in its folder, without the cost tables and the report."""
    steps = [step for name, step in STEPS.items() if step.folder == f"{flow}/{{run}}" and "split" not in name]
    return tuple(name for step in steps for name in step.writes if "/" not in name)
