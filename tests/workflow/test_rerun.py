"""Jobs that rerun after a change, and jobs that do not."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake.exceptions import WorkflowError
from tilewright.base.artifacts.folder_lock import take
from tilewright.cli.main import main

from tests.workflow.conftest import SINGLE_RULES, Project

Edit = Callable[[Path, str, str], None]
ACROSS_RUNS = ["page", "pareto", "summary"]


def for_run(run: str) -> list[str]:
    """The jobs that follow from a new mapping of one run."""
    return [f"{rule} {run}" for rule in SINGLE_RULES]


BOTH_RUNS = sorted([*for_run("two_layers-narrow"), *for_run("two_layers-wide"), *ACROSS_RUNS])


def test_rebuild_does_nothing(project: Project) -> None:
    """A second run finds all results up to date."""
    assert project.would_run() == []


def test_comment_reruns_nothing(project: Project, edit: Edit) -> None:
    """A comment, blanks or quotes in files that users write rerun nothing."""
    edit(project.root / "config" / "hardware" / "narrow.yaml", "name: narrow", '# words\nname:   "narrow" # more')
    edit(project.root / "config" / "workload" / "two_layers.yaml", "name: first", "name: 'first' # words")
    edit(project.root / "config" / "config.yaml", "lpf_limit: 4", "lpf_limit: 4 # words")
    assert project.would_run() == []


def test_edited_core_reruns_its_jobs_only(project: Project, edit: Edit) -> None:
    """An edited core reruns its own jobs and the comparisons of runs."""
    edit(project.root / "config" / "hardware" / "narrow.yaml", "r_cost: 50", "r_cost: 51")
    of_core = ["parse_hardware narrow", "draw_hardware narrow"]
    assert project.would_run() == sorted([*for_run("two_layers-narrow"), *of_core, *ACROSS_RUNS])


def test_edited_option_of_a_run(project: Project, edit: Edit) -> None:
    """A changed option reruns the mapping of the runs that have it."""
    edit(project.root / "config" / "config.yaml", "lpf_limit: 4", "lpf_limit: 3")
    assert project.would_run() == BOTH_RUNS


@pytest.mark.slow
def test_figures_are_drawn_where_they_are_asked_for(project: Project, edit: Edit) -> None:
    """Requested figures are drawn beside the tables, and for a paper in their own folder.

    If they are no longer requested, the next result removes the old ones.
    """
    folder = project.root / "results" / "single" / "two_layers-wide" / "report"
    names = ("energy", "latency", "bottlenecks")
    drawn = {f"{name}.{end}" for name in names for end in ("svg", "png")} | {"loop_nests.pdf", "paper"}
    tables = {"bottlenecks.csv", "bottlenecks.json", "layers.csv", "loop_nests.txt", "ports.csv"}
    assert {file.name for file in folder.iterdir()} == tables
    config = project.root / "config" / "config.yaml"
    edit(config, "lpf_limit: 4", "lpf_limit: 4\nfigures: true\npaper: column")
    runs = ("two_layers-narrow", "two_layers-wide")
    across = ["pareto", "summary"]
    assert project.would_run() == [*(f"{rule}_single {run}" for rule in ("figures", "paper") for run in runs), *across]
    project.run()
    results = folder.parents[2]
    both = {"summary.md", "summary-column.tex", "pareto.md", "pareto-column.tex", "pareto/two_layers.svg"}
    both |= {f"pareto/two_layers-column.{end}" for end in ("pdf", "svg", "txt", "csv")}
    assert {file for file in both if not (results / file).is_file()} == set()
    assert {file.name for file in folder.iterdir()} == tables | drawn
    for_paper = {f"{name}-column.{end}" for name in names for end in ("pdf", "svg", "txt", "csv")}
    for_paper |= {"layers-column.tex", "layers.md", "ports-column.tex", "bottlenecks-energy_pj-column.tex"}
    assert for_paper <= {file.name for file in (folder / "paper").iterdir()}
    assert b"/Type3" not in (folder / "paper" / "energy-column.pdf").read_bytes()
    assert "<text" in (folder / "paper" / "energy-column.svg").read_text()
    edit(config, "paper: column", "paper: page")
    assert project.would_run() == [*(f"paper_single {run}" for run in runs), *across]
    edit(config, "\nfigures: true\npaper: page", "")
    assert project.would_run() == across
    edit(project.root / "config" / "hardware" / "wide.yaml", "r_cost: 50", "r_cost: 51")
    project.run()
    assert {file.name for file in folder.iterdir()} == tables
    assert {file for file in both if (results / file).is_file()} == {"pareto/two_layers.svg"}


def test_edited_cost_model_reruns_costs(project: Project, edit: Edit) -> None:
    """A change of the cost model's code reruns mapping and all that depends on it, but parses nothing again."""
    package = project.own_library()
    assert project.would_run() == []
    with (package / "cost" / "__init__.py").open("a") as stream:
        stream.write("\n")
    assert project.would_run() == BOTH_RUNS


def test_edited_report_reruns_reports(project: Project) -> None:
    """A change of the code of tables and figures reruns reports, but maps nothing again."""
    package = project.own_library()
    with (package / "results" / "tables.py").open("a") as stream:
        stream.write("\n")
    jobs = project.would_run()
    assert [job for job in jobs if job.startswith(("map", "parse"))] == []
    assert "report_single two_layers-wide" in jobs


def test_added_run_leaves_the_others(project: Project, edit: Edit) -> None:
    """A new run runs alone, with the comparisons of runs."""
    path = project.root / "config" / "config.yaml"
    new = "runs:\n  mine: {workload: two_layers, hardware: wide, mapping: free, objective: energy}\nsweeps:"
    edit(path, "sweeps:", new)
    assert project.would_run() == sorted([*for_run("mine"), *ACROSS_RUNS])


@pytest.mark.slow
def test_orders_of_a_backup_are_not_taken_for_those_that_were_done(project: Project, edit: Edit) -> None:
    """The jobs of an edit run again after results and orders from before the edit are restored from a backup.

    Snakemake's notes belong to the later run. Snakemake would therefore skip an order whose bytes equal those of that
    run.
    """
    results, backup = project.root / "results", project.root / "backup"
    shutil.copytree(results, backup)
    edit(project.root / "config" / "hardware" / "narrow.yaml", "r_cost: 50", "r_cost: 51")
    before = project.would_run()
    project.run()
    shutil.rmtree(results)
    shutil.copytree(backup, results)
    assert project.would_run() == before
    shutil.rmtree(results / ".manifest")
    assert {*before} < {*project.would_run()}


def test_nobody_writes_orders_while_another_run_is_at_work(project: Project, edit: Edit) -> None:
    """A dry run of an edited configuration is refused while another run is at work, and names that run.

    It writes no orders, because the jobs of the other run would follow them.
    """
    edit(project.root / "config" / "config.yaml", "lpf_limit: 4", "lpf_limit: 3")
    orders = {path: path.read_bytes() for path in (project.root / "results").rglob("*.due")}
    with subprocess.Popen(["sleep", "600"]) as other:
        take(project.root / "results", other.pid, "make run")
        with pytest.raises(WorkflowError, match="another run is at work"):
            project.would_run()
        other.kill()
    assert {path: path.read_bytes() for path in orders} == orders
    assert project.would_run()


def test_a_run_that_leaves_something_behind_an_edit_says_so(
    project: Project, edit: Edit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make run` looks at its results at the end, and reports results that an edit during the run made outdated."""
    monkeypatch.chdir(project.root)
    command = ["results", "config/config.yaml", "--report", "--complete"]
    assert main(command) == 0
    edit(project.root / "config" / "hardware" / "narrow.yaml", "r_cost: 50", "r_cost: 51")
    assert main(command) == 2
    assert "not up to date, because inputs have changed during this run" in capsys.readouterr().err


def test_what_is_due_is_made_behind_a_job_that_snakemake_forces(project: Project) -> None:
    """A due job is made after a job that Snakemake forces.

    Snakemake does this with killed jobs, whose files may be finished while those of later jobs are not.
    """
    (project.root / "results/.manifest/single/two_layers-narrow/check.json").unlink()
    command = [str(project.programs / "snakemake"), "-n", "--forcerun", "map_single"]
    environment = {**os.environ, "PYTHONPATH": str(project.root / "lib")}
    done = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=True)
    told = done.stdout + done.stderr
    assert "map_single two_layers-narrow" in told
    assert "check_single two_layers-narrow" in told
