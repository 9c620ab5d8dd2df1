"""Verbs on the pipeline's folders of runs need no further option, wherever the results lie."""

import shutil
from pathlib import Path

import pytest
from tilewright.cli.main import main

from tests.workflow.conftest import Project
from tests.workflow.multi_projects import COMPANION, RUN, create_multi

pytestmark = pytest.mark.slow


def assert_folder_is_enough(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that each verb that takes a run needs only its folder, and that nothing is left unchecked."""
    for verb in ("explain", "advise", "check", "report"):
        capsys.readouterr()
        options = ["--no-search"] if verb == "advise" else ["-o", "report"] if verb == "report" else []
        assert main([verb, run, *options]) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        assert "name it" not in said.out + said.err
        assert not said.err or verb != "check"
    assert main(["compare", run, run]) == 0


def moved(project: Project, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the results elsewhere, and make the folder above them the working folder."""
    shutil.copytree(project.root / "results", place / "results")
    monkeypatch.chdir(place)


def test_runs_on_one_core(
    built: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs on one core have their descriptions in the results."""
    moved(built, tmp_path, monkeypatch)
    assert_folder_is_enough("results/single/two_layers-narrow", capsys)


def test_runs_on_several_cores(
    built_multi: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results of a run on several cores are enough to explain, check and report the run and its companion."""
    moved(built_multi, tmp_path, monkeypatch)
    for run in (RUN, COMPANION):
        assert_folder_is_enough(f"results/multi/{run}", capsys)


@pytest.mark.parametrize(
    "option", ["fusion: search\n    nb_plans: 3", "split_layers: true\n    split_W_percentage: 0.02"]
)
def test_plans_and_split_layers(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of a run has the mapping file of its plan, and the network with split layers."""
    project = create_multi(tmp_path / "project")
    (project.root / "config/mapping/multi").mkdir()
    (project.root / "config/mapping/multi/open.yaml").write_text("- name: default\n")
    config = project.root / "config/config.yaml"
    config.write_text(config.read_text().replace("hardware: duo", f"hardware: duo\n    {option}"))
    project.run(f"results/multi/{RUN}/checks.json", f"results/multi/{RUN}/pareto.csv")
    moved(project, tmp_path, monkeypatch)
    assert_folder_is_enough(f"results/multi/{RUN}", capsys)
