"""The frame of the repository: versions, files, sizes of modules."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import tilewright
from tilewright.base.objectives import OBJECTIVES

from tests.plain.code_lines import docstring_lines
from tools.generate import AGAIN
from tools.type_stub import STUB, stub

PROJECT = Path(__file__).resolve().parents[2]


def locked(name: str = "requirements.lock") -> dict[str, str]:
    """Return package -> version of a lock file."""
    text = (PROJECT / "lib" / name).read_text()
    return dict(re.findall(r"^([\w.-]+)==(\S+)(?: \\)?$", text, re.MULTILINE))


def direct() -> list[str]:
    """Return the names of the direct dependencies, including those for tests."""
    project = tomllib.loads((PROJECT / "lib" / "pyproject.toml").read_text())["project"]
    return names([*project["dependencies"], *project["optional-dependencies"]["dev"]])


def names(wanted: list[str]) -> list[str]:
    """Return the names of the required packages."""
    return [re.match(r"[\w-]+", text).group().lower() for text in wanted]  # type: ignore[union-attr]


def test_lock_pins_every_direct_dependency() -> None:
    """The lock pins each direct dependency to an exact version."""
    assert set(direct()) <= set(locked())


def test_lock_of_the_site_pins_what_it_adds() -> None:
    """A separate lock pins the packages for the site, and no package is in both locks."""
    project = tomllib.loads((PROJECT / "lib" / "pyproject.toml").read_text())["project"]
    lock = locked("requirements-docs.lock")
    assert set(names(project["optional-dependencies"]["docs"])) <= set(lock)
    assert set(lock) & set(locked()) == set()


HEADING_OF_BUILD_TOOLS = "\n# The following packages are considered to be unsafe in a requirements file:\n"
"""Line by which pip-compile separates build tools from the other packages."""


def test_locks_have_hashes_and_no_places() -> None:
    """Each package in a lock has hashes, with those of wheels for several platforms, and no other text."""
    line = r"(?:[\w.-]+==[\w.+!-]+ \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?)"
    for name in ("requirements.lock", "requirements-docs.lock"):
        text = (PROJECT / "lib" / name).read_text()
        text = text.replace(HEADING_OF_BUILD_TOOLS, "")
        assert re.fullmatch(rf"(?:{line}\n)+", text)
        assert all("--hash" in part for part in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:])
    hashes = re.search(r"^numpy==.*\n((?: .*\n)+)", (PROJECT / "lib/requirements.lock").read_text(), re.MULTILINE)
    assert hashes is not None
    assert hashes[1].count("--hash") > 20
    makefile = (PROJECT / "Makefile").read_text()
    assert makefile.count("--require-hashes -r lib/requirements") == 2


def test_conda_environment_equals_the_lock() -> None:
    """environment.yml pins the direct dependencies at the versions of the lock."""
    text = (PROJECT / "environment.yml").read_text()
    pins = dict(re.findall(r"^ +- ([\w-]+)==?([\w.]+)$", text, re.MULTILINE))
    assert pins.pop("python") == "3.11"
    assert pins == {name: locked()[name] for name in direct()}


def test_version_is_said_once() -> None:
    """The package alone states the version; the metadata and CITATION.cff agree."""
    about = tomllib.loads((PROJECT / "lib" / "pyproject.toml").read_text())
    assert about["project"]["dynamic"] == ["version"]
    assert about["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tilewright.__version__"}
    assert f"version: {tilewright.__version__}\n" in (PROJECT / "CITATION.cff").read_text()


def test_modules_stay_small() -> None:
    """Modules of the package have at most 510 lines of code; lines of docstrings do not count."""
    sizes = {}
    for path in (PROJECT / "lib" / "tilewright").rglob("*.py"):
        text = path.read_text()
        sizes[path.relative_to(PROJECT).as_posix()] = len(text.splitlines()) - docstring_lines(ast.parse(text))
    assert {name: size for name, size in sizes.items() if size > 510} == {}


def test_snakefile_stays_small() -> None:
    """The Snakefile has at most 40 lines."""
    assert len((PROJECT / "workflow" / "Snakefile").read_text().splitlines()) <= 40


def test_types_are_those_of_the_code() -> None:
    """`__init__.pyi` is up to date with `python -m tools.type_stub`, and has each option with its values."""
    assert STUB.read_text() == stub(), AGAIN
    tree = ast.parse(stub())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    options = {
        one.arg: ast.unparse(one.annotation) for one in functions["map_workload"].args.kwonlyargs if one.annotation
    }
    assert options["objective"] == f"_Literal[{', '.join(map(repr, OBJECTIVES))}]"
    assert options["lpf_limit"] == "int | None"
    assert options["model"] == "str"


def test_no_source_is_ignored() -> None:
    """No source file is ignored by git."""
    sources = [
        path for place in ("lib", "tests", "docs", "tools", "benchmarks") for path in (PROJECT / place).rglob("*.py")
    ]
    given = "\n".join(str(path.relative_to(PROJECT)) for path in sources)
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    done = subprocess.run(command, cwd=PROJECT, input=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
