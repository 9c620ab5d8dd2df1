"""The lock of a folder of results: its holder is named, and only the end of the holder frees it, never its age."""

import fcntl
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import tilewright
from tilewright.base.artifacts import folder_lock
from tilewright.base.artifacts.folder_lock import LOCK, VARIABLE, Holder, holding, read_holder, release, take, take_away
from tilewright.base.errors import InputError


def write(folder: Path, holder: Holder) -> None:
    """Write the lock of the given holder."""
    (folder / LOCK).write_text(json.dumps(asdict(holder)))


@pytest.fixture
def other(tmp_path: Path) -> Holder:
    """Return the holder that a running process of this machine would write: the parent process."""
    token = take(tmp_path, os.getppid(), "make run")
    holder = read_holder(tmp_path)
    assert holder is not None
    release(tmp_path, token)
    assert read_holder(tmp_path) is None
    return holder


def test_a_lock_is_refused_with_who_holds_it(tmp_path: Path, other: Holder) -> None:
    """The message about a lock names process, age and command, in the folder and below it.
    Releasing the lock frees the folder.
    """
    write(tmp_path, other)
    for folder in (tmp_path, tmp_path / "single" / "mine"):
        with pytest.raises(InputError, match="another run is at work") as caught, holding(folder):
            pass
        assert f"process {os.getppid()}" in str(caught.value)
        assert "for 0 min" in str(caught.value)
        assert f"kill {os.getppid()}" in str(caught.value)
    with pytest.raises(InputError, match="still runs"):
        take_away(tmp_path)
    release(tmp_path, other.token)
    with holding(tmp_path):
        assert (tmp_path / LOCK).is_file()
    assert list(tmp_path.iterdir()) == []


def test_who_was_started_by_the_holder_works_under_its_lock(
    tmp_path: Path, other: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with the token of the lock's holder works under the lock and does not remove it."""
    write(tmp_path, other)
    monkeypatch.setenv(VARIABLE, other.token)
    with holding(tmp_path / "space"):
        pass
    assert read_holder(tmp_path) == other


def test_the_lock_of_a_process_that_has_ended_is_taken_over(tmp_path: Path, other: Holder) -> None:
    """A lock is taken over if its process has ended, its process number was reused, or the machine has restarted."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    start = other.host.split(" ")
    for holder in (
        replace(other, process=ended.pid),
        replace(other, began="1"),
        replace(other, host=" ".join((start[0], "another-start", start[2]))),
    ):
        write(tmp_path, holder)
        with holding(tmp_path):
            assert read_holder(tmp_path) not in (None, holder)
        assert read_holder(tmp_path) is None


def test_what_a_killed_holder_has_started_still_holds(tmp_path: Path, other: Holder) -> None:
    """The lock of a killed holder stays as long as a process that it started keeps the lock file open."""
    write(tmp_path, replace(other, began="1"))
    with (tmp_path / LOCK).open() as kept:
        fcntl.flock(kept, fcntl.LOCK_SH)
        with pytest.raises(InputError, match="another run is at work"), holding(tmp_path):
            pass
    with holding(tmp_path):
        pass


@pytest.mark.parametrize("age_s", [0, 1e9])
def test_the_lock_of_another_machine_is_never_taken_over_by_age(tmp_path: Path, other: Holder, age_s: float) -> None:
    """The lock of another machine or container is never taken over by age; the message has the command to free it."""
    name, start, space = other.host.split(" ")
    for host in (f"elsewhere {start} {space}", f"{name} {start} pid:[1]"):
        write(tmp_path, replace(other, host=host, process=2**22 + 1, since_s=other.since_s - age_s))
        with pytest.raises(InputError, match=f"tilewright store unlock {tmp_path}"), holding(tmp_path):
            pass
        assert "elsewhere" in str(take_away(tmp_path)) or name in host
        with holding(tmp_path):
            pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": 1}', "\0\0"])
def test_a_lock_that_says_nothing_is_not_taken_over(tmp_path: Path, content: str) -> None:
    """A lock without content or with wrong content is not taken over; the message has the command that frees it."""
    (tmp_path / LOCK).write_text(content)
    with pytest.raises(InputError, match="store unlock"), holding(tmp_path):
        pass
    take_away(tmp_path)
    with holding(tmp_path):
        pass


def test_one_of_many_at_once_gets_it(tmp_path: Path, other: Holder) -> None:
    """Exactly one of 8 threads gets a lock at a time, in 20 rounds with free locks and locks of ended processes."""

    def ask(_: int) -> str:
        try:
            return take(tmp_path, os.getpid(), "test")
        except InputError:
            return ""

    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            if number % 2:
                write(tmp_path, replace(other, began="1"))
            (token,) = filter(None, pool.map(ask, range(8)))
            release(tmp_path, token)
    assert list(tmp_path.iterdir()) == []


def test_without_hard_links_there_is_one_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that only one process can create serves as the lock if there are no hard links."""

    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(folder_lock.os, "link", refuse)
    with holding(tmp_path), pytest.raises(InputError, match="another run"):
        take(tmp_path, os.getpid(), "test")
    assert list(tmp_path.iterdir()) == []


def test_the_verb_takes_and_frees(tmp_path: Path) -> None:
    """The function `store` takes and frees a lock like the command."""
    token = tilewright.store("lock", tmp_path)["token"]
    with pytest.raises(InputError, match="a process of"):
        tilewright.store("lock", tmp_path)
    release(tmp_path, token)
    assert tilewright.store("unlock", tmp_path) == {"holder": None}
