"""Globs in a configuration: their runs, the order of runs, and messages without a match."""

from pathlib import Path

import pytest
from tilewright.cli.config import plan_of
from tilewright.pipeline.configuration.keys import RunPlan

from tests.unit.cli.configurations import problems_of

CORE = "memories: {}\noperational_array: {}\n"
LAYERS = {"workload": "net", "mapping": "free"}


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write cores into a folder, beside the file of variants from which they were made."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "hardware" / "sweep"
    folder.mkdir(parents=True)
    for name in ("b-2", "a", "b-10"):
        (folder / f"{name}.yaml").write_text(CORE)
    (folder / "variants.yml").write_text("base: a.yaml\nvary: {}\n")
    (folder / ".hidden.yaml").write_text(CORE)
    (folder / "notes.txt").write_text("nothing")
    (folder.parent / "alone.yaml").write_text(CORE)
    for kind in ("workload", "mapping"):
        (tmp_path / "config" / kind).mkdir()
    (tmp_path / "config" / "workload" / "net.yaml").write_text("[]")
    (tmp_path / "config" / "mapping" / "free.yaml").write_text("[]")


def names(plan: RunPlan) -> list[str]:
    """Return the names of the runs in order."""
    return [run.name for run in plan.runs]


def test_a_run_becomes_one_for_each_file() -> None:
    """A glob makes one run for each file in the order of names, without hidden and other files."""
    plan = plan_of({"runs": {"mine": {**LAYERS, "hardware": "sweep/*"}}})
    assert names(plan) == ["mine-a", "mine-b-10", "mine-b-2"]
    assert [run.hardware for run in plan.runs] == ["a", "b-10", "b-2"]
    assert plan.files["hardware"]["a"] == "config/hardware/sweep/a.yaml"


def test_a_sweep_takes_globs_for_choices() -> None:
    """A sweep takes names and globs; a file that several of them match is used once."""
    sweep = {**LAYERS, "hardware": ["alone", "sweep/b-*", "sweep/[ab]-10"]}
    assert names(plan_of({"sweeps": {"s": sweep}})) == ["net-alone", "net-b-10", "net-b-2"]
    assert names(plan_of({"sweeps": {"s": {**LAYERS, "hardware": "al*"}}})) == ["net-alone"]
    both = plan_of({"runs": {"mine": {"workload": "n*", "hardware": "sweep/a*", "mapping": "*"}}})
    assert names(both) == ["mine-net-a-free"]


@pytest.mark.parametrize("pattern", ["config/hardware/sweep/b*.yaml", "config/**/b*.yaml", "config/hardware/sweep/b*"])
def test_paths_may_be_globs(pattern: str) -> None:
    """A path can be a glob, with or without suffix and through folders."""
    assert names(plan_of({"runs": {"x": {**LAYERS, "hardware": pattern}}})) == ["x-b-10", "x-b-2"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file() -> None:
    """A file whose name looks like a glob is a file, and its name is refused."""
    Path("core[1].yaml").write_text(CORE)
    assert "not a name for a file, got 'core[1]'" in problems_of(
        {"runs": {"x": {**LAYERS, "hardware": "core[1].yaml"}}}
    )


def test_nothing_matches() -> None:
    """A glob without a match is reported once, with the searched folder and the nearest names."""
    near = problems_of({"runs": {"x": {**LAYERS, "hardware": "swep/*"}}})
    assert (
        near
        == "config runs.x.hardware: no hardware file in config/hardware matches, got 'swep/*' (did you mean 'sweep/*'?)"
    )
    far = problems_of({"sweeps": {"s": {**LAYERS, "hardware": ["alone", "zzzzzzzzzzzz?"]}}})
    assert "no hardware file in config/hardware matches, got 'zzzzzzzzzzzz?'" in far
    assert "alone" in far
    assert far.count("\n") == 0


def test_two_files_of_one_name_are_told() -> None:
    """Two matches with the same name are refused, because names are folders of results."""
    Path("config/hardware/other").mkdir()
    Path("config/hardware/other/a.yaml").write_text(CORE)
    assert "two files of the same name" in problems_of({"runs": {"x": {**LAYERS, "hardware": "*/a"}}})
