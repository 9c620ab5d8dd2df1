"""Digests of content and code."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tilewright.artifacts.digests import CODE_OF, PACKAGE, code_digest, code_files, input_digest
from tilewright.registry import entered

ROOTS = {
    "parse_hardware": "cli/parse_hardware.py",
    "parse_workload": "cli/parse_workload.py",
    "parse_mapping": "cli/parse_mapping.py",
    "map": "cli/map.py",
    "export": "stages/saving.py stages/plotting.py",
    "multi_pipeline": "cli/multi_slices.py",
    "split": "cli/split.py",
    "cns": "cli/cns.py",
    "cost": "cli/cost.py",
    "allocate": "cli/allocate.py",
    "schedule": "cli/schedule.py",
    "report": "cli/report.py",
    "report_multi": "cli/report_multi.py",
    "check": "cli/check.py",
    "check_multi": "cli/check.py cli/check_multi.py",
    "draw": "cli/draw.py",
    "pareto": "cli/pareto.py",
    "summarize": "cli/summarize.py",
}
"""Step -> the modules of the verb that its rule calls, or of the stages that are part of it."""
DISPATCH = {"__init__.py", "__main__.py", "cli/__init__.py", "cli/main.py", "cli/options.py"}
DISPATCH |= {"cli/multi_options.py", "stages/__init__.py", "stage_table.py", "steps.py"}
"""Modules that dispatch and print, and decide no result."""
PRINTED_ONLY = dict.fromkeys(
    ("map", "multi_pipeline", "cost", "allocate", "cns", "split", "schedule"), ("report/", "peers/zigzag/exports/")
)
"""Step -> folders that only serve what the verb prints on the terminal, never its artifacts; stages that write with it
are the step `export`."""
NOT_CALLED = {"summarize": {"cli/config.py"}, "check": {"cli/check_multi.py"}}
NOT_CALLED |= {step: {"cli/multi_slices.py"} for step in ("cns", "cost", "allocate", "schedule")}
NOT_CALLED |= {step: {"cli/report_multi.py"} for step in ("report", "draw", "pareto")}
"""Step -> modules for a way to call the verb that is not the rule's, or only of runs with a pipeline of their own:
those have the step `multi_pipeline` too."""


def imported_files(path: Path) -> set[Path]:
    """Files of the package that a module imports, anywhere in it, also for types only where not under TYPE_CHECKING.

    A text that is the name of a module, as in the catalogue of stages, is taken for an import; so is what stands in a
    registry of the module.
    """
    found = {PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in entered(module_name(path))}
    for node in ast.walk(without_type_checking(ast.parse(path.read_text()))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if re.fullmatch(r"tilewright(\.\w+)+", node.value) else []
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "tilewright":
                place = PACKAGE.joinpath(*parts[1:])
                found.update(item for item in (place.with_suffix(".py"), place / "__init__.py") if item.is_file())
                packages = [PACKAGE.joinpath(*parts[1:length]) for length in range(2, len(parts))]
                found.update(item / "__init__.py" for item in packages if (item / "__init__.py").is_file())
    return found


def module_name(path: Path) -> str:
    """The module in a file of the package."""
    return ".".join(("tilewright", *path.relative_to(PACKAGE).with_suffix("").parts))


def without_type_checking(tree: ast.Module) -> ast.Module:
    """The module without its `if TYPE_CHECKING:` blocks, which import nothing when it runs."""
    body = [n for n in tree.body if not (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test))]
    return ast.Module(body, [])


def import_closure(step: str) -> set[Path]:
    """All files of the package that are run when a step is."""
    seen: set[Path] = set()
    waiting = [PACKAGE / root for root in ROOTS[step].split()]
    ignored = DISPATCH | NOT_CALLED.get(step, set())
    while waiting:
        path = waiting.pop()
        if path not in seen and path.relative_to(PACKAGE).as_posix() not in ignored:
            seen.add(path)
            waiting += imported_files(path)
    return seen


def test_every_step_is_covered_by_a_root() -> None:
    """The steps that declare code are those that this test looks at."""
    assert set(ROOTS) == set(CODE_OF)


@pytest.mark.parametrize("step", CODE_OF)
def test_declared_code_covers_what_runs(step: str) -> None:
    """Whatever module a step imports, directly or not, is part of its code digest."""
    missing = import_closure(step) - set(code_files(step))
    names = sorted(path.relative_to(PACKAGE).as_posix() for path in missing)
    names = [name for name in names if not name.startswith(PRINTED_ONLY.get(step, "-"))]
    assert not names, f"add to CODE_OF[{step!r}]: {names}"


@pytest.mark.parametrize("step", CODE_OF)
def test_declared_parts_exist(step: str) -> None:
    """A part that was renamed or deleted does not stay declared."""
    assert [part for part in CODE_OF[step] if not (PACKAGE / part).exists()] == []


def test_code_digest_sees_an_edit(tmp_path: Path) -> None:
    """One changed byte of a declared file changes the digest; other files do not count."""
    (tmp_path / "cost").mkdir()
    (tmp_path / "cost" / "energy.py").write_text("one = 1\n")
    before = code_digest("map", tmp_path)
    (tmp_path / "elsewhere.py").write_text("")
    assert code_digest("map", tmp_path) == before
    (tmp_path / "cost" / "energy.py").write_text("one = 2\n")
    assert code_digest("map", tmp_path) != before


def digest_of(path: Path, text: str) -> str:
    """Digest of a YAML file with this text."""
    path.write_text(text)
    return input_digest(path)


def test_input_digest_is_of_what_yaml_says(tmp_path: Path) -> None:
    """Comments, blanks and quotes do not count; values and the order of memories do."""
    path = tmp_path / "core.yaml"
    first = digest_of(path, "name: a\nmemories: {x: 1, y: 2}\n")
    assert digest_of(path, '# words\nname: "a"\n\nmemories:\n  x: 1\n  y: 2 # more\n') == first
    assert digest_of(path, "name: a\nmemories: {x: 1, y: 3}\n") != first
    assert digest_of(path, "name: a\nmemories: {y: 2, x: 1}\n") != first
    assert digest_of(path, "name: 'a'\nmemories: {x: '1', y: 2}\n") != first


def test_input_digest_of_broken_files(tmp_path: Path) -> None:
    """A file that is missing or not YAML has a digest too: the rule that reads it says what is wrong."""
    assert input_digest(tmp_path / "none.yaml") == "missing"
    assert digest_of(tmp_path / "a.yaml", "a: [") != digest_of(tmp_path / "a.yaml", "a: [[")


def test_snakefile_imports_nothing_heavy() -> None:
    """What the Snakefile imports at every parse loads none of the heavy libraries."""
    code = (
        "import sys; import tilewright.artifacts.digests, tilewright.cli.config, tilewright.yamlfile;"
        "print([m for m in ('numpy','pandas','onnx','numba','pydantic','networkx','matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
