"""`make run` in processes of its own, which tests kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tilewright.cli.main import main

from tests.workflow.conftest import Project

LONGEST_WAIT_S = 900


@contextmanager
def running(project: Project) -> Iterator[subprocess.Popen[bytes]]:
    """`make run` in processes of its own, killed at the end if they still run."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(project.root / "lib")}
    with (project.root / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            ["workflow/run.sh", "config/config.yaml", "--cores", "2"],
            cwd=project.root,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            kill_tree(process)
            process.wait()


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """kill -9 of a process and of all that it started, the first ones first: nobody can tidy up."""
    try:
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in tree:
        with suppress(psutil.NoSuchProcess):
            member.send_signal(signal.SIGKILL)
    psutil.wait_procs(tree[1:], timeout=LONGEST_WAIT_S)


def wait_for_verb(process: subprocess.Popen[bytes], verb: str) -> psutil.Process:
    """The first process that runs a verb of tilewright, once it does."""
    deadline = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"ended before {verb}"
        for member in psutil.Process(process.pid).children(recursive=True):
            try:
                words = member.cmdline()
            except psutil.NoSuchProcess:
                continue
            # Jobs have an order before their verb.
            if words[1:3] == ["-m", "tilewright"] and verb in (*words[3:4], *words[5:6]):
                return member
        time.sleep(0.02)
    raise AssertionError(f"no {verb} in {LONGEST_WAIT_S} s")


def finish(project: Project) -> str:
    """Run to the end; what was said."""
    with running(project) as process:
        process.wait(LONGEST_WAIT_S)
    said = (project.root / "said.txt").read_text()
    assert process.returncode == 0, said
    return said


def check_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every artifact that is there is whole."""
    if (project.root / "results").is_dir():
        monkeypatch.chdir(project.root)
        assert main(["store", "verify", "results"]) == 0
