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

from tilewright.base.artifacts.digests import named_file
from tilewright.base.artifacts.folder_lock import is_held_around
from tilewright.base.artifacts.manifest import UP_TO_DATE, ResultsLedger
from tilewright.base.artifacts.step_code import code_digests
from tilewright.cli.config import plan_of
from tilewright.cli.runs import graph_size
from tilewright.cli.units import BATCH, DESCRIBED, MULTI_MODEL, Units
from tilewright.cli.workflow_messages import name_ended_jobs
from tilewright.base.errors import InputError
from tilewright.base.report_files import (
    FIGURES,
    ONE_CORE_FILES,
    SEVERAL_CORES_FILES,
    TABLES,
    caption_name,
    names_of,
    of_part,
)
from tilewright.base.steps import (
    MULTI,
    NAME_PATTERN,
    PAPER,
    SINGLE,
    STEPS,
    artifacts,
)
from tilewright.base.yamlfile import load_yaml

# Jobs run this checkout with this interpreter, also without an activated environment; conda, if used, comes first.
os.environ.update(
    PATH=os.pathsep.join((str(Path(sys.executable).parent), os.getenv("PATH", ""))),
    PYTHONPATH=str(LIBRARY),
)

name_ended_jobs(logger)

# What `make run` says after a run with failures: the runs that have no result that is up to date. Tables and figures
# across runs are made of the others, and name these.
LEFT_OUT = os.environ.get("TILEWRIGHT_UNFINISHED", "")
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
# Jobs that wait go by orders that this parse would write anew, perhaps from another configuration.
try:
    is_held_around(Path(str(RESULTS)))
except InputError as error:
    raise WorkflowError(f"error: {error}") from None
# Every job has a unit there; what reruns is decided by comparing these with what lies in the folder of results.
UNITS = Units(PLAN, code_digests(LIBRARY / "tilewright"), UNFINISHED)
LEDGER = ResultsLedger(RESULTS, UNITS.by_name, workflow.is_main_process)


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
SYSTEMS = UNITS.systems
EXPORTING_RUNS = [run.name for run in PLAN.runs if run.stages.exports]
# Parsed descriptions are targets too, so that one that was damaged and removed comes back.
ARTIFACTS = [
    *[f"<results>/{file}" for file in UNITS.batch_files("descriptions")],
    *[
        f"<results>/{file}"
        for name, unit in UNITS.by_name.items()
        if name.startswith(DESCRIBED) and name not in UNITS.in_batches
        for file in unit.files
        if file.endswith(".json")
    ],
]
SPACES, FRONTS = UNITS.spaces, UNITS.fronts
# Their tables and figures are for a paper, too, if the configuration says so at its top.
SPACES_IN_PAPER = ["--paper", PLAN.paper] if PLAN.paper else []


wildcard_constraints:
    run=NAME_PATTERN,
    hardware=NAME_PATTERN,
    workload=NAME_PATTERN,
    mapping=NAME_PATTERN,
    model=NAME_PATTERN,
    core="[^/]+",


def due(unit):
    """Input function: the order of the unit that a job makes. Its age is all that decides whether the job runs: it is
    younger than the files of the unit if these are not what a run from scratch would make, else older.
    """

    def order(wildcards):
        name = unit.format(**dict(wildcards.items()))
        if name.startswith(f"{BATCH}/"):
            for needed in UNITS.by_name[name].needs:
                LEDGER.order(needed)
        return str(LEDGER.order(name))

    return order


def command(unit):
    """Param function: the verb that makes a unit, with its arguments."""
    return lambda wildcards: list(
        UNITS.by_name[unit.format(**dict(wildcards.items()))].job.words
    )


def made(files, unit):
    """Input function: files of other units that a unit is made of, as patterns, or what an input function gives. Where
    the unit is up to date, their age says nothing."""

    def found(wildcards):
        paths = files(wildcards) if callable(files) else files
        values = dict(wildcards.items())
        is_made = LEDGER.state(unit.format(**values)) == UP_TO_DATE
        if isinstance(paths, str):
            return by_state(paths.format(**values), is_made)
        return [by_state(path.format(**values), is_made) for path in paths]

    return found


def by_state(path, is_made):
    """A file as an input: ancient where what reads it is up to date, or where no job makes it.

    Of a job that is due, none that another job makes is: behind ancient files that are made anew for a reason of
    Snakemake's own, as after a kill, it looks at nothing of a job.
    """
    is_written = path.removeprefix("<results>/") not in UNITS.producers
    return ancient(path) if is_made or is_written else path


def written(kind):
    """Input function: the file that a person wrote, which a wildcard of that name stands for."""
    return lambda wildcards: PLAN.files[kind].get(
        wildcards[kind], f"config/{kind}/{wildcards[kind]}"
    )


def model_files(wildcards):
    """Input function: the configuration of a language model that a workload file names."""
    named = named_file(written("workload")(wildcards))
    return [str(named)] if named and named.exists() else []


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


def described_elsewhere(wildcards):
    """Input function: descriptions of runs that share a job which other jobs make, since runs of several cores have
    them, too."""
    needs = {
        need
        for name in UNITS.by_name[f"{BATCH}/runs/{wildcards.batch}"].needs
        for need in UNITS.by_name[name].needs
        if need not in UNITS.in_batches
    }
    return [
        f"<results>/{file}"
        for need in sorted(needs)
        for file in UNITS.by_name[need].files
    ]


def undrawn(folder, run, names):
    """The figures that a run had if it is not drawn any more: they would be of an earlier result."""
    files = [] if run.figures else [f"{folder}/{name}" for name in names]
    files += [] if run.paper else [f"{folder}/paper"]
    return [
        *files,
        *(file.removesuffix("svg") + "png" for file in files if file.endswith("svg")),
    ]


def runs_that(runs, hold):
    """Pattern for those of the runs for which a condition holds."""
    names = [re.escape(run.name) for run in runs if hold(run)]
    return "|".join(names) or "(?!)"


def shard_files(wildcards):
    """Input function: the shards of a space."""
    return [
        f"<results>/space/{wildcards.space}/shards/{file}"
        for file in SPACES[wildcards.space].shards
    ]


def part_files(wildcards):
    """Input function: the costs of a space of which the complete fronts are sought."""
    return [
        f"<results>/front/{wildcards.space}/costs/{file}"
        for file in FRONTS[wildcards.space].parts
    ]


def reported(flow, category, files):
    """Outputs of a rule: files in the report of a run, those that show something also in the report of the workflow."""

    def output(file):
        path = f"<results>/{flow}/{{run}}/report/{file.name}"
        if not file.shows:
            return path
        caption = f"../report/files/{caption_name(flow, file)}"
        labels = {"run": "{run}", "shows": file.shows}
        return report(
            path, caption=caption, category=category, subcategory="{run}", labels=labels
        )

    return [output(file) for file in files if not file.of_some_runs]
