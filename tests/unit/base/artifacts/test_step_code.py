"""The code behind each step: imports are followed completely, and irrelevant code is left out."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tilewright.base.artifacts.step_code import (
    CODE_OF,
    DISPATCH,
    PACKAGE,
    SourceTree,
    StepCode,
    code_digest,
    code_digests,
    code_files,
    digest_of,
    matcher,
    module_name,
)
from tilewright.base.registry import enter, withdraw
from tilewright.pipeline.stages.run import default_pipeline
from tilewright.pipeline.stages.user_stages import search_modules

PROJECT = Path(__file__).resolve().parents[4]
TREE = SourceTree(PACKAGE)
SEARCH = StepCode(tuple(search_modules(default_pipeline().search().stages)))
SOURCES = sorted(file for file in TREE.files if file.endswith(".py"))
FINDS_BY_NAME = {
    *("__init__.py", "pipeline/stages/__init__.py", "pipeline/stages/catalogue.py", "cli/main.py"),
    *("workload/onnx/operators/__init__.py", "base/registry.py"),
    "main_stage/__init__.py",
    "cli/verb.py",
    "results/report_writing.py",
}
"""Modules that import other modules by name, from texts or from entries of registries."""
FINDS_ELSEWHERE = {
    *("base/bytecode.py", "pipeline/stages/user_stages.py", "main_stage/theirs.py", "base/artifacts/step_code.py"),
    "workload/onnx/resolution/inference_child.py",
}
"""Modules that import by name from outside the package or that define how modules are found."""


def names_imported(file: str) -> Iterator[str]:
    """Yield imported modules and names as Python's parser sees them, and texts that name modules."""
    tree = ast.parse(TREE.source(file))
    for_types = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = {inner for node in for_types for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Constant) and re.fullmatch(r"tilewright(\.\w+)+", str(node.value)):
            yield str(node.value)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports are not followed"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_import_is_overlooked() -> None:
    """The scan of a source finds every import that Python's parser sees."""
    modules = {module_name(source) for source in SOURCES}
    for file in SOURCES:
        found = {module_name(source) for source in TREE.imported(file)}
        for name in names_imported(file):
            parts = name.split(".")
            named = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            assert named & modules <= found, f"{file} imports {name}"


def test_who_imports_by_name() -> None:
    """All modules that import by name are known, because computed names cannot be followed."""
    by_name = {file for file in SOURCES if re.search(rb"importlib|__import__", TREE.source(file))}
    assert by_name == FINDS_BY_NAME | FINDS_ELSEWHERE


def test_entries_count_from_when_they_are_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered term is code of the steps that use it, until it is withdrawn."""
    (tmp_path / "idle_term.py").write_text("IDLE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    entries = {"tilewright.multicore.scheduling.energy_terms": {"idle": "idle_term:IDLE"}}
    before = {step: code_digest(step) for step in ("schedule", "parse_workload")}
    enter(entries)
    try:
        within = {step: code_digest(step) for step in before}
    finally:
        withdraw(entries)
    assert within["schedule"] != before["schedule"]
    assert within["parse_workload"] == before["parse_workload"]
    assert {step: code_digest(step) for step in before} == before


def test_what_a_registry_holds_counts() -> None:
    """Entries of a registry are code of the steps that can ask for them, such as models of schedules."""
    for step in ("allocate", "schedule", "check_multi", "multi_pipeline"):
        assert any(file.startswith("peers/stream/") for file in code_files(step, TREE))
    assert not any(file.startswith("peers/stream/") for file in code_files("map", TREE))
    assert "peers/zigzag/onnx_reading.py" in code_files("parse_workload", TREE)


def test_data_beside_a_module_count() -> None:
    """The code of a step contains the scripts, pages and programs that the step reads as files."""
    assert {"results/multi/schedule_page.html", "results/multi/schedule_viewer.js"} <= set(
        code_files("report_multi", TREE)
    )
    assert "workload/onnx/resolution/inference_child.py" in code_files("parse_workload", TREE)


@pytest.mark.parametrize("step", CODE_OF)
def test_declared_modules_exist(step: str) -> None:
    """Each declared module exists, and each pattern that leaves modules out shortens the list."""
    code = CODE_OF[step]
    assert set(code.roots) <= {module_name(file) for file in TREE.closure(code.roots)}
    files = code_files(step, TREE)
    for pattern in code.without:
        others = [one for one in code.without if one != pattern]
        assert len(TREE.closure(code.roots, (*DISPATCH, *others))) > len(files), pattern


TINY = PROJECT / "tests" / "workflow" / "tiny"
MULTI = PROJECT / "tests" / "workflow" / "tiny_multi"
COMMANDS = {
    "parse_workload": [f"{PROJECT}/config/workload/resnet18.onnx"],
    "map": [
        *("--hardware", f"{TINY}/hardware/wide.yaml", "--workload", f"{TINY}/workload/two_layers.yaml"),
        *("--mapping", f"{TINY}/mapping/free.yaml", "--lpf-limit", "4", "--no-store"),
    ],
    "cns": [
        *("--hardware", f"{MULTI}/hardware/duo.yaml", "--workload", f"{TINY}/workload/two_layers.yaml"),
        *("--mapping", f"{MULTI}/mapping/duo.yaml"),
    ],
}


@pytest.mark.parametrize("step", COMMANDS)
def test_what_a_command_loads_is_its_code(step: str, tmp_path: Path) -> None:
    """Each module that a command loads is declared as its code or as left out, or is imported by such a module."""
    script = (
        "import sys; from tilewright.cli.verb import command_of;"
        f"command_of('tilewright.cli.{step}')(standalone_mode=False);"
        "print('|'.join(name for name in sys.modules if name.startswith('tilewright')))"
    )
    command = [sys.executable, "-c", script, *COMMANDS[step], "-o", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split("|"))
    declared = {module_name(file) for file in code_files(step, TREE)}
    is_left_out = matcher((*DISPATCH, *CODE_OF[step].without))
    by_what_is_left_out = {module_name(file) for file in TREE.closure(CODE_OF[step].roots, DISPATCH)}
    assert {name for name in loaded - declared - by_what_is_left_out if not is_left_out(name)} == set()


class EditedPackage:
    """A copy of the package, with the digests of all steps and of the layer search after the last edit."""

    def __init__(self, package: Path) -> None:
        self.package = package
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        self.digests = self._digests()

    def _digests(self) -> dict[str, str]:
        return {**code_digests(self.package), "search": digest_of(SourceTree(self.package), SEARCH)}

    def steps_that_see(self, file: str) -> set[str]:
        """Return the steps whose digest changes with a comment at the end of a file."""
        with (self.package / file).open("a") as stream:
            stream.write("# words\n")
        before, self.digests = self.digests, self._digests()
        return {step for step, digest in self.digests.items() if digest != before[step]}


def test_a_step_sees_edits_of_the_code_that_it_runs(tmp_path: Path) -> None:
    """A step sees edits of the code that it runs, and of no other code.
    Stored mappings depend on the cost model and the search, but not on operators.
    """
    package = EditedPackage(tmp_path / "tilewright")
    of_operator = package.steps_that_see("workload/onnx/operators/pooling.py")
    assert {"parse_workload", "map", "cns", "multi_pipeline"} <= of_operator
    assert {"search", "parse_hardware", "report", "summarize"} & of_operator == set()
    for file in (
        "cost/latency_kernel.py",
        "search/loma_kernel.py",
        "mapping/spatial_generation.py",
        "base/compiled.py",
    ):
        seeing = package.steps_that_see(file)
        assert {"search", "map", "cost"} <= seeing
        assert {"parse_workload", "report"} & seeing == set()
    assert package.steps_that_see("results/multi/schedule_viewer.js") == {"page", "report_multi", "paper_multi"}
    assert package.steps_that_see("cli/warm_up.py") == set()
