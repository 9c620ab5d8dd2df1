"""Programs of a server that has imported the library run the same code as new processes."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.forked_python import ForkedPython

PROBE = """\
import sys

is_kept = "tilewright.value" in sys.modules
import tilewright.value

print(is_kept, tilewright.value.VALUE)
"""
KEPT, ANEW = "True", "False"


def write_library(folder: Path, value: int) -> Path:
    """Write a library of one module with a value."""
    (folder / "tilewright").mkdir(parents=True)
    (folder / "tilewright" / "__init__.py").touch()
    (folder / "tilewright" / "value.py").write_text(f"VALUE = {value}\n")
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that the server imports."""
    return write_library(tmp_path_factory.mktemp("imported") / "lib", 1)


@pytest.fixture(scope="module")
def forked(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedPython]:
    """The running server."""
    folder = tmp_path_factory.mktemp("server")
    with ForkedPython(folder / "python", {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, library) as forked:
        yield forked


def said(forked: ForkedPython, folder: Path, path: str) -> list[str]:
    """["kept" or "anew", value]: whether a program kept the imported modules, and the value that it read."""
    folder.mkdir(exist_ok=True)
    (folder / "probe.py").write_text(PROBE)
    command = [str(forked.programs / "python"), "-m", "probe"]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_same_files_are_not_imported_again(forked: ForkedPython, library: Path, tmp_path: Path) -> None:
    """A library is kept if it is asked for again, by its path or by a link to its folder."""
    (tmp_path / "link").symlink_to(library)
    assert said(forked, tmp_path / "a", str(library)) == [KEPT, "1"]
    assert said(forked, tmp_path / "a", str(tmp_path / "link")) == [KEPT, "1"]


def test_other_libraries_are_imported_anew(forked: ForkedPython, library: Path, tmp_path: Path) -> None:
    """A copy, an edited copy, a package in the working folder, and a path that may have plug-ins are imported anew."""
    copy = Path(shutil.copytree(library, tmp_path / "copy"))
    assert said(forked, tmp_path / "a", str(copy)) == [ANEW, "1"]
    (copy / "tilewright" / "value.py").write_text("VALUE = 2\n")
    assert said(forked, tmp_path / "a", str(copy)) == [ANEW, "2"]
    write_library(tmp_path / "b", 3)
    assert said(forked, tmp_path / "b", str(library)) == [ANEW, "3"]
    assert said(forked, tmp_path / "a", f"{library}{os.pathsep}{tmp_path}") == [ANEW, "1"]


def test_a_file_that_changed_is_read_again(forked: ForkedPython, library: Path, tmp_path: Path) -> None:
    """Any change of a file or of the set of files makes programs import anew, until it is undone."""
    file = library / "tilewright" / "value.py"
    known = file.stat()
    file.write_text("VALUE = 4\n")
    assert said(forked, tmp_path / "a", str(library)) == [ANEW, "4"]
    file.write_text("VALUE = 1\n")
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert said(forked, tmp_path / "a", str(library)) == [KEPT, "1"]
    (library / "tilewright" / "more.py").touch()
    assert said(forked, tmp_path / "a", str(library)) == [ANEW, "1"]
    (library / "tilewright" / "more.py").unlink()
