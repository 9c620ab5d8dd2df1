"""Jobs, or all of Snakemake, are killed with signal 9, at given steps and at random moments.

The restarted run ends with the bytes of an undisturbed one.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import Project
from tests.workflow.killing import LONGEST_WAIT_S, check_whole, finish, kill_tree, running, wait_for_verb
from tests.workflow.multi_projects import create_multi

pytestmark = pytest.mark.slow

JOB, EVERYTHING = "job", "everything"
STEPS = [("cost", EVERYTHING), ("schedule", JOB), ("report", EVERYTHING)]
"""(verb, what is killed when its first process runs): this job or the whole run."""
RANDOM_KILLS, SEED = 1, 5


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The tiny project of two cores before its first run."""
    copy = create_multi(tmp_path / "project")
    (copy.root / "profiles").symlink_to("workflow/profiles")
    return copy


def assert_same(project: Project, built_multi: Project) -> None:
    """Check that both projects have the same artifacts with the same bytes."""
    made, expected = project.artifacts(), built_multi.artifacts()
    assert sorted(made) == sorted(expected)
    assert [name for name in made if made[name] != expected[name]] == []


def test_kill_in_one_step_after_the_other(
    project: Project, built_multi: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job, or the whole run, is killed when a step begins, one step after the other; the last run completes."""
    for verb, what in STEPS:
        with running(project) as process:
            job = wait_for_verb(process, verb)
            if what == JOB:
                job.send_signal(signal.SIGKILL)
                process.wait(LONGEST_WAIT_S)
                assert process.returncode == 1
            else:
                kill_tree(process)
        check_whole(project, monkeypatch)
    assert "did not end; what it finished is kept" in finish(project)
    assert_same(project, built_multi)


def test_kill_at_random_moments(project: Project, built_multi: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole run is killed at random moments, and the last run completes."""
    moments = random.Random(SEED)
    for _ in range(RANDOM_KILLS):
        with running(project) as process:
            time.sleep(moments.uniform(1.5, 6))
            kill_tree(process)
        check_whole(project, monkeypatch)
    finish(project)
    assert_same(project, built_multi)


def test_two_runs_in_one_folder(project: Project) -> None:
    """A second run beside a running one is refused and changes nothing."""
    if shutil.which("flock") is None:
        pytest.skip("no flock on this system: Snakemake's own lock is all there is")
    with running(project) as process:
        wait_for_verb(process, "parse")
        done = subprocess.run(
            ["workflow/run.sh", "config/config.yaml", "--cores", "1"],
            cwd=project.root,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": "lib"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (2, "error: another run is at work in results\n")


def test_a_bad_mapping_is_told_at_once_and_keeps_results(
    built_multi: Project, tmp_path: Path, edit: Callable[[Path, str, str], None]
) -> None:
    """An unknown core, a core that cannot run the layer, and a wrong tile are reported with lines, and results are
    kept.
    """
    project = built_multi.copy(tmp_path / "copy")
    (project.root / "profiles").symlink_to("workflow/profiles")
    before = project.artifacts()
    edit(
        project.root / "config" / "mapping" / "duo.yaml",
        'core_allocation: [0, 1]\n  intra_core_tiling: ["OY, all"]',
        'core_allocation: [0, 7]\n  intra_core_tiling: ["OY, 99"]',
    )
    with running(project) as process:
        process.wait(LONGEST_WAIT_S)
    said = (project.root / "said.txt").read_text()
    assert process.returncode == 1
    log = (project.root / "logs" / "multi" / "fused" / "cns.log").read_text()
    assert "config/mapping/duo.yaml:2" in log
    assert "7" in log
    assert "99" in log
    assert "Traceback" not in log + said
    after = project.artifacts()
    assert {name: after.get(name) for name in before if name.startswith("multi/fused/")} == {
        name: content for name, content in before.items() if name.startswith("multi/fused/")
    }
