# What all rules share: the plan of the configuration, digests of what people wrote, digests of code.
import json
import os
import re
import sys
from pathlib import Path

# Beside the workflow, wherever that is included from.
LIBRARY = Path(str(workflow.current_basedir)).parents[1] / "lib"
if str(LIBRARY) not in sys.path:
    sys.path.insert(0, str(LIBRARY))

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.persistence import PersistenceBase

from tilewright.artifacts.digests import input_digest, named_file
from tilewright.artifacts.step_code import code_digests
from tilewright.cli.config import plan_of
from tilewright.cli.config_files import ExploredSpace, read_system
from tilewright.cli.runs import graph_size
from tilewright.cli.workflow_messages import keep_what_failed_jobs_had, name_ended_jobs
from tilewright.errors import InputError
from tilewright.profile import CORRECTED
from tilewright.steps import (
    FIGURE_FILES,
    MULTI,
    MULTI_FIGURE_FILES,
    NAME_PATTERN,
    SINGLE,
    STEPS,
    artifacts,
)
from tilewright.yamlfile import load_yaml

# Jobs run this checkout with this interpreter, also without an activated environment; conda, if used, comes first.
os.environ.update(
    PATH=os.pathsep.join((str(Path(sys.executable).parent), os.getenv("PATH", ""))),
    PYTHONPATH=str(LIBRARY),
)

name_ended_jobs(logger)
keep_what_failed_jobs_had(PersistenceBase)

# What `make run` says after a run with failures: the runs that have no result that is up to date. Tables and figures
# across runs are made of the others, and name these.
LEFT_OUT = config.pop("unfinished", "")
UNFINISHED = json.loads(Path(LEFT_OUT).read_text()) if LEFT_OUT else []

try:
    PLAN = plan_of(config, [load_yaml(path) for path in workflow.configfiles])
except InputError as error:
    raise WorkflowError(
        f"the configuration has {len(error.problems)} problem(s):\n{error}"
    ) from None
# The text of the report says it too.
config["unfinished"] = UNFINISHED
PLAN = PLAN.without([row["run"] for row in UNFINISHED])
RESULTS, LOGS = PLAN.results, PLAN.logs
# How every network on several cores is read.
MULTI_MODEL = CORRECTED.name


# Every configuration has folders of its own.
pathvars:
    results=str(RESULTS),
    logs=str(LOGS),


RUN_OF = {run.name: run for run in PLAN.runs}
RUNS = list(RUN_OF)
MULTI_RUN_OF = {run.name: run for run in PLAN.multi_runs}
MULTI_RUNS = list(MULTI_RUN_OF)
# What runs of several cores are compared with are runs too, but only the others are reported.
REPORTED_MULTI_RUNS = [run.name for run in PLAN.multi_runs if not run.base]
SYSTEMS = {
    name: read_system(PLAN.files["hardware"][name])
    for name in sorted({run.hardware for run in PLAN.multi_runs})
}
EXPORTING_RUNS = [run.name for run in PLAN.runs if run.stages.exports]
# Parsed descriptions are targets too, so that one that was damaged and removed comes back.
ARTIFACTS = sorted(
    {
        f"<results>/hardware/{run.hardware}/accelerator.json"
        for run in (*PLAN.runs, *PLAN.multi_runs)
    }
    | {
        f"<results>/hardware/{hardware}/core/{core}.json"
        for hardware, system in SYSTEMS.items()
        for core in system.core_names
    }
    | {
        f"<results>/workload/{workload}/{model}/{artifact}.json"
        for workload, model in (
            *((run.workload, run.options.model) for run in PLAN.runs),
            *((run.workload, MULTI_MODEL) for run in PLAN.multi_runs),
        )
        for artifact in ("workload", "coverage")
    }
    | {
        f"<results>/mapping/{run.mapping}/mapping.json"
        for run in (*PLAN.runs, *PLAN.multi_runs)
    }
)
CODE = code_digests(LIBRARY / "tilewright")
SPACES = {name: ExploredSpace(file) for name, file in PLAN.spaces.items()}
FRONTS = {name: ExploredSpace(file) for name, file in PLAN.fronts.items()}


wildcard_constraints:
    run=NAME_PATTERN,
    hardware=NAME_PATTERN,
    workload=NAME_PATTERN,
    mapping=NAME_PATTERN,
    model=NAME_PATTERN,
    core="[^/]+",


def written(kind):
    """Input function: the file that a person wrote, which a wildcard of that name stands for."""
    return lambda wildcards: PLAN.files[kind].get(
        wildcards[kind], f"config/{kind}/{wildcards[kind]}"
    )


def said(kind):
    """Param function: digest of that file: of a YAML file only what it says counts, not comments or layout; of others, the bytes."""
    return lambda wildcards: input_digest(written(kind)(wildcards))


def model_files(wildcards):
    """Input function: the configuration of a language model that a workload file names."""
    named = named_file(written("workload")(wildcards))
    return [str(named)] if named and named.exists() else []


def said_hardware(wildcards):
    """Param function: digests of a hardware file and of the core files that it names."""
    system = SYSTEMS.get(wildcards.hardware)
    return system.everything if system else said("hardware")(wildcards)


def core_files(wildcards):
    """Input function: the core files that a hardware file names."""
    system = SYSTEMS.get(wildcards.hardware)
    return [str(path) for path in system.path_of.values()] if system else []


def network_options(wildcards):
    """Param function: what the ONNX file of a workload leaves open, as options."""
    return list(PLAN.network_options.get(wildcards.workload, ()))


def of_run(pattern):
    """Input function: the path of an artifact that a run needs."""
    return lambda wildcards: pattern.format(
        hardware=RUN_OF[wildcards.run].hardware,
        workload=RUN_OF[wildcards.run].workload,
        mapping=RUN_OF[wildcards.run].mapping,
        model=RUN_OF[wildcards.run].options.model,
    )


def written_for_run(wildcards):
    """Input function: the files that people wrote for a run, but for ONNX networks, which have no lines."""
    files = (
        PLAN.files[kind][getattr(RUN_OF[wildcards.run], kind)]
        for kind in ("hardware", "workload", "mapping")
    )
    return [file for file in files if not file.endswith(".onnx")]


def search_options(wildcards):
    """Param function: the options of a run, as the command line takes them."""
    return RUN_OF[wildcards.run].arguments("map")


def stage_code(wildcards):
    """Param function: digests of the code behind the pipeline of a run: of stages that its user wrote, and of what writes its exports."""
    stages = RUN_OF[wildcards.run].stages
    return [stages.code, CODE["export"] if stages.exports else ""]


def undrawn(folder, run, names):
    """The figures that a run had if it is not drawn any more: they would be of an earlier result."""
    files = [] if run.figures else [f"{folder}/{name}" for name in names]
    return [
        *files,
        *(file.removesuffix("svg") + "png" for file in files if file.endswith("svg")),
    ]


def runs_that(runs, hold):
    """Pattern for those of the runs for which a condition holds."""
    names = [re.escape(run.name) for run in runs if hold(run)]
    return "|".join(names) or "(?!)"


def left_out_option(wildcards):
    """Param function: the file that names the runs without a result, as an option."""
    return ["--unfinished", LEFT_OUT] if UNFINISHED else []


def shard_files(wildcards):
    """Input function: the shards of a space."""
    return [
        f"{RESULTS}/space/{wildcards.space}/shards/{file}"
        for file in SPACES[wildcards.space].shards
    ]


def part_files(wildcards):
    """Input function: the costs of a space of which the complete fronts are sought."""
    return [
        f"{RESULTS}/front/{wildcards.space}/costs/{file}"
        for file in FRONTS[wildcards.space].parts
    ]
