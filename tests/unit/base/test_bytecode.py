"""Bytecode of the package: what runs is the source as it is, whatever bytecode of whatever age lies beside it."""

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
"""Modules that are imported before others can be checked, and run again where they are not as written."""
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
"""With the two that Python's own loader imports."""
ASK = f"""
from importlib import import_module
for name in {MODULES!r}:
    module = import_module("tilewright" + name)
    print(f"tilewright{{name}}", module.__doc__[:4], module.__file__, getattr(module, "answer", lambda: 0)())
"""


@pytest.fixture(scope="module")
def imported() -> list[Path]:
    """Files of the package that a process imports with MODULES, relative to the package."""
    ask = f"{ASK}\nimport sys\nfor name in sorted(sys.modules): print(getattr(sys.modules[name], '__file__', None))"
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    files = [Path(line) for line in said.stdout.splitlines() if line.startswith(str(PACKAGE))]
    assert len(files) >= len(MODULES) + 10
    return [file.relative_to(PACKAGE) for file in files]


@pytest.fixture
def library(imported: list[Path], tmp_path: Path) -> Path:
    """A copy of the modules that are imported, without bytecode; the folder that it lies in."""
    for file in imported:
        copy = tmp_path / "lib/tilewright" / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PACKAGE / file, copy)
    return tmp_path / "lib"


def told(library: Path, **variables: str) -> list[list[str]]:
    """What a process says of MODULES: name, start of the docstring, file, answer."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**keep, "PYTHONPATH": str(library), **variables}
    command = [sys.executable, "-S", "-c", f"import sys; sys.path += {[p for p in sys.path if p]!r}\n{ASK}"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=library)
    return [line.split() for line in said.stdout.splitlines()]


def edit_all(library: Path, found: str, new: str) -> None:
    """Edit every module without changing its size or age."""
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
    """Whoever wrote the bytecode, by age, by a digest that is not compared, or this package itself; also where no
    bytecode can be written."""
    edit_all(library, "", "AAAA")
    if mode is None:
        told(library)
    else:
        assert compileall.compile_dir(library, quiet=1, invalidation_mode=mode, workers=1)
    edit_all(library, "AAAA", "BBBB")
    for _ in range(2):
        assert {line[1] for line in told(library, **({} if writes else {"PYTHONDONTWRITEBYTECODE": "1"}))} == {"BBBB"}


def test_bytecode_is_used_where_it_is_of_the_source(library: Path) -> None:
    """Nothing is compiled in the second process: bytecode that says another thing for the same source is what runs."""
    told(library)
    path = library / "tilewright/base/units.py"
    cached = Path(importlib.util.cache_from_source(str(path)))
    head = cached.read_bytes()[:16]
    other = compile('"""Kept bytecode."""', str(path), "exec")
    cached.write_bytes(head + bytecode.marshal.dumps(other))
    assert next(line[1] for line in told(library) if line[0] == "tilewright.base.units") == "Kept"


@pytest.mark.parametrize("content", [b"", b"\0" * 7, None])
def test_bytecode_that_is_cut_off_is_made_again(library: Path, content: bytes | None) -> None:
    """Neither an error nor a module without its content; the two modules that Python's own loader reads are left."""
    first = told(library)
    for cached in library.rglob("[!b_]*.pyc"):
        cached.write_bytes(cached.read_bytes()[: 16 + 20] if content is None else content)
    assert told(library) == first


def test_code_of_a_checkout_that_was_moved_names_its_files(library: Path) -> None:
    """Tracebacks and what looks for sources go to where the sources are now."""
    edit_all(library, "", "AAAA")
    with (library / "tilewright/base/units.py").open("a") as stream:
        stream.write("\ndef answer():\n    return (lambda: answer.__code__.co_filename)()\n")
    told(library)
    elsewhere = library.parent / "moved"
    library.rename(elsewhere)
    line = next(line for line in told(elsewhere) if line[0] == "tilewright.base.units")
    assert line[2] == line[3] == str(elsewhere / "tilewright/base/units.py")


def test_digests_are_of_the_code_that_was_imported(tmp_path: Path) -> None:
    """An edit while a process runs does not go into the digest of what that process computes."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "units.py").write_text("new")
    tree = SourceTree(tmp_path, {"tilewright.base.units": b"old"})
    assert tree.source("base/units.py") == b"old"
    assert SourceTree(tmp_path).source("base/units.py") == b"new"


def test_modules_of_this_process_were_checked() -> None:
    """The hook is in place, not only where a test asks for it."""
    own = {name: module for name, module in sys.modules.items() if name.startswith("tilewright.")}
    assert len(own) >= 5
    loaders = {name: type(module.__loader__).__name__ for name, module in own.items()}
    assert {name for name, loader in loaders.items() if loader != "CheckedLoader"} == BEFORE
    assert bytecode.SOURCES[units.__name__] == (PACKAGE / "base/units.py").read_bytes()
