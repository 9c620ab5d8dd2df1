"""Bytecode of the package: the current source runs, with any bytecode beside it."""

import compileall
import importlib.util
import os
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tilewright
from tilewright.base import bytecode, units
from tilewright.base.artifacts.step_code import SourceTree

PACKAGE = Path(tilewright.__file__).parent
BEFORE = {"tilewright.base", "tilewright.base.bytecode"}
"""Modules that are imported before any check; they run again if their source differs."""
MODULES = (
    "",
    ".base.bytecode",
    ".base.entries",
    ".base.errors",
    ".base.units",
    ".base.artifacts.digests",
    ".cli.main",
    ".pipeline.stages",
    ".base.stage_table",
)
"""Modules that the tests import, with the two that Python's own loader imports."""
ASK = f"""
from importlib import import_module
for name in {MODULES!r}:
    module = import_module("tilewright" + name)
    print(f"tilewright{{name}}", module.__doc__[:4], module.__file__, getattr(module, "answer", lambda: 0)())
"""


@pytest.fixture(scope="module")
def imported() -> list[Path]:
    """Return the files that a process imports with MODULES, relative to the package."""
    ask = f"{ASK}\nimport sys\nfor name in sorted(sys.modules): print(getattr(sys.modules[name], '__file__', None))"
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    files = [Path(line) for line in said.stdout.splitlines() if line.startswith(str(PACKAGE))]
    assert len(files) >= len(MODULES) + 10
    return [file.relative_to(PACKAGE) for file in files]


@pytest.fixture
def library(imported: list[Path], tmp_path: Path) -> Path:
    """Return a folder with a copy of the imported modules, without bytecode."""
    for file in imported:
        copy = tmp_path / "lib/tilewright" / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PACKAGE / file, copy)
    return tmp_path / "lib"


def told(library: Path, **variables: str) -> list[list[str]]:
    """Return the lines that a new process prints on MODULES: name, start of the docstring, file and answer of each."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**keep, "PYTHONPATH": str(library), **variables}
    command = [sys.executable, "-S", "-c", f"import sys; sys.path += {[p for p in sys.path if p]!r}\n{ASK}"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=library)
    return [line.split() for line in said.stdout.splitlines()]


def edit_all(library: Path, found: str, new: str) -> None:
    """Edit every module and keep its size and age."""
    for path in sorted(library.rglob("*.py")):
        age = path.stat()
        text = path.read_text("utf-8")
        edited = re.sub(rf'\A"""{found}', f'"""{new}', text) if found else re.sub(r'\A""".{4}', f'"""{new}', text)
        path.write_text(edited, "utf-8")
        os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
        assert path.stat().st_size == age.st_size


@pytest.mark.parametrize("mode", [*py_compile.PycInvalidationMode, None])
@pytest.mark.parametrize("writes", [True, False])
def test_an_edit_of_equal_size_and_age_runs(
    library: Path, mode: py_compile.PycInvalidationMode | None, writes: bool
) -> None:
    """An edited module runs even if its size and time stamp are those of the old one, for any kind of old bytecode.

    This also holds if Python may write no bytecode.
    """
    edit_all(library, "", "AAAA")
    if mode is None:
        told(library)
    else:
        assert compileall.compile_dir(library, quiet=1, invalidation_mode=mode, workers=1)
    edit_all(library, "AAAA", "BBBB")
    for _ in range(2):
        assert {line[1] for line in told(library, **({} if writes else {"PYTHONDONTWRITEBYTECODE": "1"}))} == {"BBBB"}


def test_bytecode_is_used_where_it_is_of_the_source(library: Path) -> None:
    """Valid bytecode is used: a second process runs the stored bytecode without compiling the source."""
    told(library)
    path = library / "tilewright/base/units.py"
    cached = Path(importlib.util.cache_from_source(str(path)))
    head = cached.read_bytes()[:16]
    other = compile('"""Kept bytecode."""', str(path), "exec")
    cached.write_bytes(head + bytecode.marshal.dumps(other))
    assert next(line[1] for line in told(library) if line[0] == "tilewright.base.units") == "Kept"


@pytest.mark.parametrize("content", [b"", b"\0" * 7, None])
def test_bytecode_that_is_cut_off_is_made_again(library: Path, content: bytes | None) -> None:
    """Truncated bytecode is made again, except that of the two modules that Python's own loader reads."""
    first = told(library)
    for cached in library.rglob("[!b_]*.pyc"):
        cached.write_bytes(cached.read_bytes()[: 16 + 20] if content is None else content)
    assert told(library) == first


def test_code_of_a_checkout_that_was_moved_names_its_files(library: Path) -> None:
    """Code of a moved checkout names its files at their new place."""
    edit_all(library, "", "AAAA")
    with (library / "tilewright/base/units.py").open("a") as stream:
        stream.write("\ndef answer():\n    return (lambda: answer.__code__.co_filename)()\n")
    told(library)
    elsewhere = library.parent / "moved"
    library.rename(elsewhere)
    line = next(line for line in told(elsewhere) if line[0] == "tilewright.base.units")
    assert line[2] == line[3] == str(elsewhere / "tilewright/base/units.py")


def test_digests_are_of_the_code_that_was_imported(tmp_path: Path) -> None:
    """A digest of code covers the source that was imported, not a later edit."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "units.py").write_text("new")
    tree = SourceTree(tmp_path, {"tilewright.base.units": b"old"})
    assert tree.source("base/units.py") == b"old"
    assert SourceTree(tmp_path).source("base/units.py") == b"new"


def test_modules_of_this_process_were_checked() -> None:
    """The import hook has checked the modules of this process."""
    own = {name: module for name, module in sys.modules.items() if name.startswith("tilewright.")}
    assert len(own) >= 5
    loaders = {name: type(module.__loader__).__name__ for name, module in own.items()}
    assert {name for name, loader in loaders.items() if loader != "CheckedLoader"} == BEFORE
    assert bytecode.SOURCES[units.__name__] == (PACKAGE / "base/units.py").read_bytes()
