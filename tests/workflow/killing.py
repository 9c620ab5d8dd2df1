"""`make run` in separate processes that tests can kill."""

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
    """`make run` in separate processes, which are killed at the end if they still run."""
    path = os.pathsep.join((str(project.programs), str(Path(sys.executable).parent), os.environ["PATH"]))
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
    """Send signal 9 to a process and to all its descendants, parents first, so that none can tidy up."""
    members = _started_by(process)
    for member in members:
        with suppress(psutil.NoSuchProcess):
            member.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + LONGEST_WAIT_S
    while any(map(_is_at_work, members[1:])) and time.monotonic() < deadline:
        time.sleep(0.01)


def _started_by(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A process and all that it started, also programs that run in children of the server."""
    found = []
    for root in (process.pid, *([] if Project.server is None else [Project.server.pid])):
        with suppress(psutil.NoSuchProcess):
            found += [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
    return [one for one in found if one != Project.server]


def _is_at_work(process: psutil.Process) -> bool:
    """Whether a process has not ended; a zombie counts as ended."""
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def wait_for_verb(process: subprocess.Popen[bytes], verb: str) -> psutil.Process:
    """Wait for the first process that runs a verb of tilewright, and return it."""
    deadline = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"ended before {verb}"
        for member in _started_by(process):
            try:
                words = member.cmdline()
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
            if verb in _verbs(words):
                return member
        time.sleep(0.02)
    raise AssertionError(f"no {verb} in {LONGEST_WAIT_S} s")


def _verbs(words: list[str]) -> list[str]:
    """First and third word after `-m tilewright`: a command's verb is the first, and a job's verb is the third."""
    for place in range(len(words) - 1):
        if words[place : place + 2] == ["-m", "tilewright"]:
            return [*words[place + 2 : place + 3], *words[place + 4 : place + 5]]
    return []


def finish(project: Project) -> str:
    """Run the project to its end, and return the output."""
    with running(project) as process:
        process.wait(LONGEST_WAIT_S)
    said = (project.root / "said.txt").read_text()
    assert process.returncode == 0, said
    return said


def check_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that no artifact in the results is damaged."""
    if (project.root / "results").is_dir():
        monkeypatch.chdir(project.root)
        assert main(["store", "verify", "results"]) == 0
