"""Results do not depend on how they are computed; damage and failure affect only their own results."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake.exceptions import WorkflowError

from tests.workflow.conftest import PROJECT, Project

LAYERS = "results/single/two_layers-narrow/layers.jsonl"


def map_narrow(project: Project, output: Path, *options: str, seed: str = "0") -> bytes:
    """Bytes that `tilewright map` writes in a separate process."""
    results = project.root / "results"
    command = [
        *(
            sys.executable,
            "-m",
            "tilewright",
            "map",
            "--preset",
            "zigzag",
            "--lpf-limit",
            "4",
            "-o",
            str(output),
            *options,
        ),
        *("--hardware", str(results / "hardware" / "narrow" / "accelerator.json")),
        *("--workload", str(results / "workload" / "two_layers" / "zigzag-3.9.1" / "workload.json")),
        *("--mapping", str(results / "mapping" / "free" / "mapping.json")),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PROJECT / "lib")}
    subprocess.run(command, env=environment, cwd=output.parent, check=True, capture_output=True)
    return (output / "layers.jsonl").read_bytes() + (output / "summary.json").read_bytes()


def test_threads_hash_seed_and_store_change_nothing(built: Project, tmp_path: Path) -> None:
    """One thread or two, hash seed 0 or 1, and a store that is new, filled or missing give the same bytes."""
    first = map_narrow(built, tmp_path / "a", "--jobs", "1", "--store", str(tmp_path / "store"))
    again = map_narrow(built, tmp_path / "b", "--jobs", "2", "--store", str(tmp_path / "store"), seed="1")
    without = map_narrow(built, tmp_path / "c", "--jobs", "2", "--no-store", seed="1")
    run = built.root / "results" / "single" / "two_layers-narrow"
    assert first == again == without == (run / "layers.jsonl").read_bytes() + (run / "summary.json").read_bytes()


def test_what_is_unusual_is_in_the_log_of_the_mapping(built: Project) -> None:
    """A note on an unusual description is in the log of the mapping, with the line of the user's file."""
    said = (built.root / "logs" / "single" / "two_layers-narrow" / "map.log").read_text()
    told = "asks for 4 lanes, but the array of narrow has only 2 on this side: the excess lanes are left out"
    assert f"note: config/mapping/free.yaml:2 default.spatial_mapping.D1: {told}" in said
    assert "lanes" not in (built.root / "logs" / "single" / "two_layers-wide" / "map.log").read_text()


def test_cores_and_store_change_nothing(built: Project, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline makes the same files if only one job runs at a time, with another hash seed and no store."""
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    shutil.rmtree(project.root / "results")
    project.run(cores=1)
    assert project.artifacts() == built.artifacts()


def test_damaged_artifact_is_told_and_rebuilt(built: Project, project: Project) -> None:
    """A file of any kind with a changed byte is named and made again, whatever its age, and all results are
    restored.
    """
    results = project.root / "results"
    for name in ("hardware/narrow/accelerator.json", "summary.csv", "single/two_layers-wide/report/layers.csv"):
        file = results / name
        before, age = file.read_bytes(), file.stat().st_mtime_ns
        file.write_bytes(before.replace(b"5", b"6", 1))
        os.utime(file, ns=(age, age))
        done = snakemake(project, "--cores", "2")
        assert f"results/{name}: was changed or deleted after it was written; it is made again" in done.stderr
        assert done.returncode == 0
        assert file.read_bytes() == before
    assert project.artifacts() == built.artifacts()
    assert project.would_run() == []


def test_one_failing_run_leaves_the_others(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """A core on which nothing fits fails its own run; the run on the other core is finished."""
    edit(project.root / "config" / "hardware" / "narrow.yaml", "size: 1 MiB", "size: 8")
    edit(project.root / "config" / "hardware" / "wide.yaml", "r_cost: 50", "r_cost: 51")
    before = (project.root / "results" / "single" / "two_layers-wide" / "summary.json").read_bytes()
    with pytest.raises(WorkflowError):
        project.run()
    assert (project.root / "results" / "single" / "two_layers-wide" / "checks.json").is_file()
    assert (project.root / "results" / "single" / "two_layers-wide" / "summary.json").read_bytes() != before
    assert "Traceback" not in (project.root / "logs" / "single" / "two_layers-narrow" / "map.log").read_text()


def test_wrong_configuration_stops_before_any_job(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """All problems of the configuration are reported at once, with file, line and the nearest name."""
    path = project.root / "config" / "config.yaml"
    edit(path, "lpf_limit: 4", "lpf_limti: 4")
    edit(path, "[narrow, wide]", "[narow, wide]")
    done = snakemake(project, "-n")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "config.yaml:2 lpf_limti: unknown key (did you mean 'lpf_limit'?)" in said
    assert "did you mean 'narrow'?" in said


def snakemake(project: Project, *options: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a separate process. A real start of Python is tested in test_module.py."""
    command = [str(project.programs / "snakemake"), *options]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)


def test_report_is_made_and_self_contained(project: Project) -> None:
    """The HTML report has the figures and loads nothing from elsewhere."""
    done = snakemake(project, "--report", "results/report.html")
    assert done.returncode == 0, done.stderr
    text = (project.root / "results" / "report.html").read_text()
    assert "two_layers-narrow" in text
    assert 'src="http' not in text


def test_rules_pass_the_linter() -> None:
    """Snakemake's linter finds no fault."""
    done = snakemake(Project(PROJECT), "--lint")
    assert done.returncode == 0, done.stderr + done.stdout
