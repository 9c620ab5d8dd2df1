"""Runs that share a job have the same files, reruns and messages as runs with separate jobs."""

import shutil
from pathlib import Path

import pytest

from tests.members import members
from tests.workflow.conftest import Project
from tests.workflow.test_run_script import rows, run_script

pytestmark = pytest.mark.slow

CONFIG = """\
runs_per_job: {size}
lpf_limit: 4
preset: zigzag
sweeps:
  tiny: {{workload: two_layers, hardware: [narrow, wide], mapping: free}}
"""
MANY = """\
runs_per_job: {size}
preset: zigzag
sweeps:
  tiny: {{workload: two_layers, hardware: wide, mapping: free, lpf_limit: 3, seed: [{seeds}]}}
runs:
  fails: {{workload: two_layers, hardware: narrow, mapping: free}}
"""
OTHERS = members(39, 11)
"""Number of runs that share a job with one that fails."""
LAYERS = "results/single/two_layers-narrow/layers.jsonl"


@pytest.fixture
def together(built: Project, tmp_path: Path) -> Project:
    """The tiny project with its two runs in one job, before its first run."""
    project = built.copy(tmp_path / "project")
    shutil.rmtree(project.root / "results")
    (project.root / "config" / "config.yaml").write_text(CONFIG.format(size=2))
    return project


def of_runs(project: Project) -> dict[str, bytes]:
    """Results without the files on shared jobs."""
    files = project.artifacts()
    return {name: content for name, content in files.items() if "batch/" not in name}


def test_the_same_bytes_as_with_jobs_of_their_own(built: Project, together: Project) -> None:
    """Files and manifests have the bytes of separate jobs; with separate jobs again, nothing is made."""
    assert together.would_run() == ["descriptions_together", "page", "pareto", "runs_together", "summary"]
    together.run()
    assert together.would_run() == []
    assert of_runs(together) == built.artifacts()
    assert (together.root / "logs/single/two_layers-narrow/map.log").read_text().startswith("note: ")
    (together.root / "config" / "config.yaml").write_text(CONFIG.format(size=1))
    assert together.would_run() == []


def test_a_file_can_be_asked_for_by_its_name(together: Project) -> None:
    """A requested file of a run is made by a separate job."""
    together.run(LAYERS)
    assert (together.root / LAYERS).is_file()
    assert not (together.root / "results" / "batch").exists()


def test_an_edited_core_makes_its_run_alone(together: Project) -> None:
    """A shared job after an edit of one core leaves the files of the other run as they are."""
    together.run()
    other = together.root / "results/single/two_layers-wide/layers.jsonl"
    age, before = other.stat().st_mtime_ns, (together.root / LAYERS).read_bytes()
    hardware = together.root / "config/hardware/narrow.yaml"
    hardware.write_text(hardware.read_text().replace("r_cost: 50", "r_cost: 51"))
    together.run()
    assert other.stat().st_mtime_ns == age
    assert (together.root / LAYERS).read_bytes() != before


def test_one_of_many_fails_and_reruns_alone(together: Project) -> None:
    """A failed run among many is named with the message in its log, and the others are in the tables.

    The next run makes only this one, and the results equal a new run.
    """
    config, core = together.root / "config/config.yaml", together.root / "config/hardware/narrow.yaml"
    config.write_text(MANY.format(size=OTHERS + 1, seeds=", ".join(map(str, range(OTHERS)))))
    sound = core.read_text()
    core.write_text(sound.replace("size: 1 MiB", "size: 8"))
    done = run_script(together)
    assert done.returncode == 1
    assert "logs/single/fails/map.log:error: no mapping of 2 layers fits core 'narrow'" in done.stderr
    states = {name: row["state"] for name, row in rows(together).items()}
    assert states.pop("fails") == "failed"
    assert list(states.values()) == ["done"] * OTHERS
    folders = sorted((together.root / "results/single").glob("two_layers-wide*"))
    ages = [(folder / "layers.jsonl").stat().st_mtime_ns for folder in folders]
    core.write_text(sound)
    done = run_script(together)
    assert done.returncode == 0, done.stderr
    assert [(folder / "layers.jsonl").stat().st_mtime_ns for folder in folders] == ages
    assert {row["state"] for row in rows(together).values()} == {"done"}
    assert len(ages) == OTHERS
