"""`make run` with locked results and with Ctrl-C, for a workflow that would run for half a minute."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workflow.conftest import TINY, Project

LOCK = "results/.tilewright-lock"
DEAF = """#!/bin/bash
trap "" INT TERM
echo started
sleep 30 & sleep 30
"""
"""Replacement of snakemake that does not end when it is asked to."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project that has not run yet."""
    return Project.create(tmp_path / "a", TINY)


def run(project: Project) -> subprocess.Popen[str]:
    """`make run` in its own process group, as a terminal starts it."""
    programs = project.root.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "snakemake").write_text(DEAF)
    (programs / "snakemake").chmod(0o755)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(project.root / "lib")}
    command = ["bash", "workflow/run.sh", "config/config.yaml", "--cores", "1"]
    return subprocess.Popen(
        command, cwd=project.root, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_heed_ctrl_c,
    )  # fmt: skip


def _heed_ctrl_c() -> None:
    """Make the process react to Ctrl-C, also if a shell started the tests in its background with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_two_checkouts_with_one_folder_of_results(project: Project) -> None:
    """A second run with the same results is refused and names the first.

    Ctrl-C ends the first run soon, with one line, and frees the lock.
    """
    first = run(project)
    assert first.stdout is not None
    assert first.stdout.readline() == "started\n"
    holder = json.loads((project.root / LOCK).read_text())
    assert holder["process"] == first.pid
    other = project.root.parent / "b"
    shutil.copytree(project.root, other, symlinks=True, ignore=shutil.ignore_patterns("results", "logs"))
    (other / "results").symlink_to(project.root / "results")
    second = run(Project(other))
    told = second.communicate(timeout=60)[1]
    assert second.returncode == 2
    assert f"another run is at work in results: make run of {holder['user']}" in told
    assert f"process {first.pid}" in told
    start = time.monotonic()
    os.killpg(first.pid, signal.SIGINT)
    told = first.communicate(timeout=60)[1]
    assert time.monotonic() - start < 2 + 4 * os.getloadavg()[0] / (os.cpu_count() or 1)
    assert first.returncode == 130
    assert told.endswith("interrupted: what was finished is kept; run the same command again to continue\n")
    assert not (project.root / LOCK).exists()


def test_the_lock_of_a_killed_run_is_taken_over(project: Project) -> None:
    """The next run on the same machine takes over the lock of a killed run without asking."""
    first = run(project)
    assert first.stdout is not None
    assert first.stdout.readline() == "started\n"
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    held = json.loads((project.root / LOCK).read_text())
    second = run(project)
    assert second.stdout is not None
    lines = [second.stdout.readline(), second.stdout.readline()]
    assert "started\n" in lines
    assert json.loads((project.root / LOCK).read_text())["token"] != held["token"]
    os.killpg(second.pid, signal.SIGINT)
    second.communicate(timeout=60)
    assert second.returncode == 130
