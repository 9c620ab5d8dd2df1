"""The output of `make run`: workflow/run.sh."""

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tilewright.cli.config_folders import claim

from tests.workflow.conftest import Project
from tests.workflow.multi_projects import RUN

Edit = Callable[[Path, str, str], None]


def run_script(project: Project, *options: str, config: str = "config/config.yaml") -> subprocess.CompletedProcess[str]:
    """Run the script in a separate process, with this interpreter first."""
    # Two may run at the same time.
    with suppress(FileExistsError):
        (project.root / "profiles").symlink_to("workflow/profiles")
    path = os.pathsep.join((str(project.programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(project.root / "lib")}
    command = ["workflow/run.sh", config, "--cores", "2", *options]
    return subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)


def test_why_a_job_failed_is_told(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """The log message of a failed job is shown once, and the other run is in the summary."""
    edit(project.root / "config" / "hardware" / "narrow.yaml", "size: 1 MiB", "size: 8")
    (project.root / "results" / "single" / "two_layers-narrow" / "summary.json").unlink()
    done = run_script(project)
    assert done.returncode == 1
    assert done.stderr.count("map.log:error: no mapping of 2 layers fits core 'narrow'") == 1
    assert "Why jobs failed:\nlogs/single/two_layers-narrow/map.log:error" in done.stderr
    assert "done in" not in done.stdout + done.stderr
    assert "some runs failed" in done.stderr
    assert "two_layers-wide" in done.stdout
    table, _, named = done.stdout.partition("Not in the table:")
    assert "two_layers-narrow" not in table.partition("making ")[2]
    assert named.split()[:2] == ["two_layers-narrow", "failed"]


def rows(project: Project, table: str = "summary.csv", results: str = "results") -> dict[str, dict[str, str]]:
    """Run -> row of a table across runs."""
    return {row["run"]: row for row in csv.DictReader((project.root / results / table).read_text().splitlines())}


@pytest.mark.slow
def test_tables_across_runs_are_made_of_what_there_is(project: Project, edit: Edit) -> None:
    """All tables across runs name a failed run, without its old result, and have the other run's present result.

    When the mistake is undone, both runs are there again.
    """
    hardware = project.root / "config" / "hardware"
    before = rows(project)
    kept = (project.root / "results" / "single" / "two_layers-narrow" / "summary.json").read_bytes()
    edit(hardware / "narrow.yaml", "size: 1 MiB", "size: 8")
    edit(hardware / "wide.yaml", "r_cost: 50", "r_cost: 51")
    for _ in range(2):  # a second time, too: what the failed job left must not count as made
        done = run_script(project)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        after = rows(project)
        assert after["two_layers-wide"]["energy_pj"] != before["two_layers-wide"]["energy_pj"]
        assert (after["two_layers-wide"]["state"], after["two_layers-narrow"]["state"]) == ("done", "stale")
        assert after["two_layers-narrow"]["energy_pj"] == ""
        compared = rows(project, "pareto.csv")
        assert list(compared) == ["two_layers-wide"]
        assert compared["two_layers-wide"]["not_compared"] == "two_layers-narrow"
        report = (project.root / "results" / "report.html").read_text()
        assert "two_layers-narrow (stale)" in report
        assert "two_layers-narrow  stale: not made again" in done.stdout
    assert (project.root / "results" / "single" / "two_layers-narrow" / "summary.json").read_bytes() == kept
    edit(hardware / "narrow.yaml", "size: 8", "size: 1 MiB")
    done = run_script(project)
    assert done.returncode == 0
    assert rows(project)["two_layers-narrow"] == before["two_layers-narrow"]
    assert "Not in" not in done.stdout
    assert "two_layers-narrow (stale)" not in (project.root / "results" / "report.html").read_text()
    said = done.stdout.splitlines()
    assert re.fullmatch(
        r"done in [\d.]+ s: \d+ jobs of 1 of 2 runs \(two_layers-narrow\); reused: \d+ jobs .*", said[-4]
    )
    assert said[-3] == "results: results/index.html, results/summary.csv, results/single/<run>/report/"
    assert said[-2] == "to see what limits a run: .venv/bin/tilewright explain results/single/<run>"
    assert re.fullmatch(r"in all \d+ min \d+ s", said[-1])


def test_a_run_with_nothing_to_do_says_so(project: Project) -> None:
    """One line after the table says that nothing has to be made, without Snakemake's own words."""
    done = run_script(project)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2] == "nothing had to be made: all results in results/ were up to date"
    assert "done in" not in done.stdout + done.stderr


@pytest.mark.slow
def test_no_run_is_finished(project: Project, edit: Edit) -> None:
    """Tables have only names if no run is finished, and nothing of an earlier configuration stays."""
    for name in ("narrow", "wide"):
        edit(project.root / "config" / "hardware" / f"{name}.yaml", "size: 1 MiB", "size: 8")
    done = run_script(project)
    assert done.returncode == 1
    assert {row["state"] for row in rows(project).values()} == {"stale"}
    assert rows(project, "pareto.csv") == {}
    assert list((project.root / "results" / "pareto").glob("*")) == []
    assert "internal error" not in done.stdout + done.stderr


def test_jobs_are_named_in_the_log(project: Project, edit: Edit) -> None:
    """Each line on a job says which run, core or network it belongs to, at its beginning and its end."""
    edit(project.root / "config" / "hardware" / "wide.yaml", "r_cost: 50", "r_cost: 51")
    said = run_script(project).stderr
    for job in ("parse_hardware wide", "map_single two_layers-wide", "report_single two_layers-wide"):
        assert re.search(rf"^Job \d+: {job}$", said, re.MULTILINE)
        assert re.search(rf"^Finished job \d+: {job}$", said, re.MULTILINE)
    assert "Finished jobid" not in said


OTHER = """\
# The core that the other configuration has too, with another option.
lpf_limit: 3
preset: zigzag
runs:
  two_layers-narrow: {workload: two_layers, hardware: narrow, mapping: free, objective: energy}
"""


@pytest.mark.slow
def test_two_configurations_side_by_side(project: Project, edit: Edit) -> None:
    """Two configurations that run at the same time have separate results with the bytes of runs one after the other.

    The second has its results under its own name, so runs with equal names do not conflict.
    """
    (project.root / "other.yaml").write_text(OTHER)
    edit(project.root / "config" / "hardware" / "wide.yaml", "r_cost: 50", "r_cost: 51")
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda config: run_script(project, config=config), ("config/config.yaml", "other.yaml")))
    assert [done.returncode for done in both] == [0, 0], [done.stderr for done in both]
    folder = "results/configurations/other"
    assert list(rows(project)) == ["two_layers-narrow", "two_layers-wide"]
    assert list(rows(project, results=folder)) == ["two_layers-narrow"]
    assert rows(project)["two_layers-narrow"]["objective"] == "latency"
    assert rows(project, results=folder)["two_layers-narrow"]["objective"] == "energy"
    for results, done in (("results", both[0]), (folder, both[1])):
        assert f"page: {results}/index.html\nreport: {results}/report.html" in done.stdout
        assert "two_layers-narrow" in (project.root / results / "index.html").read_text()
        assert (project.root / results / "report.html").is_file()
    alone = project.copy(project.root.parent / "alone")
    shutil.rmtree(alone.root / "results")
    assert run_script(alone, config="other.yaml").returncode == 0
    for name in ("summary.csv", "pareto.csv", "single/two_layers-narrow/layers.jsonl"):
        assert (alone.root / folder / name).read_bytes() == (project.root / folder / name).read_bytes()
    assert not (alone.root / "results" / "summary.csv").exists()


@pytest.mark.slow
def test_results_of_another_file_of_the_same_name_are_not_overwritten(project: Project) -> None:
    """A second configuration file with the same folder of results is refused at once; `results_dir` avoids the
    conflict.
    """
    folder = project.root / "elsewhere"
    folder.mkdir()
    for path in (project.root / "other.yaml", folder / "other.yaml"):
        path.write_text(OTHER)
    claim(project.root / "results" / "configurations" / "other", [str(project.root / "other.yaml")])
    done = run_script(project, "-n", config="elsewhere/other.yaml")
    assert done.returncode == 2
    assert "results_dir: this folder has results of another configuration" in done.stderr
    (folder / "other.yaml").write_text(f"results_dir: mine\n{OTHER}")
    done = run_script(project, config="elsewhere/other.yaml")
    assert done.returncode == 0, done.stderr
    assert (project.root / "mine" / "summary.csv").is_file()
    assert (project.root / "mine" / "logs" / "summary.log").is_file()


def test_wrong_configuration_is_told_once(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """A missing or wrong configuration gives one line for each problem and exit code 2, and nothing is reported to have
    run.
    """
    done = run_script(project, config="none.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.yaml: no such file (did you mean 'environment.yml'?)\n"
    edit(project.root / "config" / "config.yaml", "lpf_limit: 4", "lpf_limti: 4")
    done = run_script(project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "config.yaml:2 lpf_limti: unknown key" in done.stderr


def test_dry_run_makes_nothing(project: Project) -> None:
    """`-n` lists jobs, without a report or a summary."""
    removed = project.root / "results" / "workload" / "two_layers" / "zigzag-3.9.1" / "coverage.json"
    removed.unlink()
    done = run_script(project, "-n")
    assert done.returncode == 0
    assert "parse_workload" in done.stdout + done.stderr
    assert "report:" not in done.stdout
    assert "done in" not in done.stdout + done.stderr
    assert not removed.exists()


@pytest.mark.slow
def test_one_failed_run_of_several_cores_leaves_the_others(
    multi: Project, edit: Callable[[Path, str, str], None]
) -> None:
    """A wrong mapping file stops only the run that uses it, and is reported with its line.

    Earlier results of this run are kept byte for byte and are reported as stale. A run with another mapping file is
    made.
    """
    config = multi.root / "config"
    (config / "mapping" / "sound.yaml").write_text((config / "mapping" / "duo.yaml").read_text())
    edit(config / "mapping" / "duo.yaml", "core_allocation: [0, 1]", "core_allocation: [0, 7]")
    sound = "  sound: {flow: multi, workload: net, hardware: duo, mapping: sound, baselines: false}\n"
    edit(config / "config.yaml", "runs:\n", f"runs:\n{sound}")
    before = {name: content for name, content in multi.artifacts().items() if name.startswith(f"multi/{RUN}")}
    done = run_script(multi)
    assert done.returncode == 1
    assert "duo.yaml:2 default.core_allocation[1]: no core has this id, got 7" in done.stderr
    assert "some runs failed" in done.stderr
    after = multi.artifacts()
    assert {name: after[name] for name in before} == before
    assert "multi/sound/checks.json" in after
    table, _, named = done.stdout.partition("Not in the table:")
    assert " sound " in table
    assert named.split()[:2] == [RUN, "stale:"]
    assert {name: row["state"] for name, row in rows(multi).items()} == {"sound": "done", RUN: "stale"}


def test_no_command_has_all_runs(project: Project) -> None:
    """Jobs with tables across runs get the runs by an order, because command lines are limited to 131,072 bytes."""
    done = run_script(project, "-n", "-p", "--forcerun", "summary", "page", "pareto")
    commands = [line for line in done.stdout.splitlines() if "python -m tilewright --due" in line]
    assert len(commands) == 3
    assert not any("two_layers" in line for line in commands)
