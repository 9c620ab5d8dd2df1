"""Users' pipelines in the cached workflow: reruns after changes of their files, and errors reported before a run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from snakemake.exceptions import WorkflowError

from tests.workflow.conftest import PROJECT, Project
from tests.workflow.test_results import snakemake

pytestmark = pytest.mark.slow

Edit = Callable[[Path, str, str], None]
RUNS = """\
runs:
  bounded:
    workload: two_layers
    hardware: narrow
    mapping: free
    pipeline:
      - replace: MinimalLatency
        stage: config.stages.latency_bound.MinimalEnergyUnderLatency
        parameters: {latency_bound_cycles: 100000}
      - {insert: SimpleSave, before: Sum}
  stationary:
    workload: two_layers
    hardware: narrow
    mapping: free
    pipeline:
      - {replace: Loma, stage: config.stages.stationary.StationaryOrders, parameters: {operand: W}}
sweeps:"""


@pytest.fixture(scope="module")
def built_with_stages(built: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The tiny project with a run for each worked example in docs/stages. Never change it; use `staged`."""
    project = built.copy(tmp_path_factory.mktemp("stages") / "project")
    shutil.copytree(PROJECT / "config" / "stages", project.root / "config" / "stages")
    path = project.root / "config" / "config.yaml"
    path.write_text(path.read_text().replace("sweeps:", RUNS))
    project.run()
    return project


@pytest.fixture
def staged(built_with_stages: Project, tmp_path: Path) -> Project:
    """A copy of the project with stages to change."""
    return built_with_stages.copy(tmp_path / "project")


def summary(project: Project, run: str) -> dict[str, Any]:
    """The summary of a run."""
    path = project.root / "results" / "single" / run / "summary.json"
    content: dict[str, Any] = json.loads(path.read_text())["payload"]
    return content


def mapped_anew(project: Project) -> list[str]:
    """The runs that would be mapped again now."""
    return [job.split()[1] for job in project.would_run() if job.startswith("map_")]


def test_both_examples_run(built_with_stages: Project) -> None:
    """A user's reduction and temporal mapper decide the results of their own runs only."""
    bounded, stationary = summary(built_with_stages, "bounded"), summary(built_with_stages, "stationary")
    plain = summary(built_with_stages, "two_layers-narrow")
    assert bounded["objective"] == "MinimalEnergyUnderLatency"
    assert plain["objective"] == stationary["objective"] == "latency"
    assert bounded["energy_pj"] <= plain["energy_pj"]
    assert stationary["evaluations"] != plain["evaluations"]
    for run in ("bounded", "stationary"):
        checks = json.loads((built_with_stages.root / "results" / "single" / run / "checks.json").read_text())
        assert checks["payload"]["passed"]


def test_a_second_run_does_nothing(staged: Project) -> None:
    """Unchanged pipelines and files rerun nothing; neither do new comments or another notation of the list."""
    assert staged.would_run() == []
    path = staged.root / "config" / "config.yaml"
    text = path.read_text().replace("{operand: W}", "{'operand':   'W' }")
    path.write_text(text.replace("pipeline:", "pipeline: # words"))
    assert staged.would_run() == []


def test_edited_stage_reruns_its_runs(staged: Project, edit: Edit) -> None:
    """A change of a user's file, or of a file that it imports, reruns the runs that use it."""
    stages = staged.root / "config" / "stages"
    edit(stages / "latency_bound.py", "costs.energy_pj, np.inf", "2 * costs.energy_pj, np.inf")
    jobs = staged.would_run()
    assert [job for job in jobs if job.startswith("map_")] == ["map_and_export_single bounded"]
    assert not [job for job in jobs if job.endswith(("stationary", "two_layers-wide"))]
    staged.run()
    assert staged.would_run() == []
    edit(stages / "stationary.py", "from itertools", "from config.stages.helper import NOTHING\nfrom itertools")
    (stages / "helper.py").write_text("NOTHING = 0\n")
    assert mapped_anew(staged) == ["stationary"]
    staged.run()
    edit(stages / "helper.py", "NOTHING = 0", "NOTHING = 1")
    assert mapped_anew(staged) == ["stationary"]


def test_edited_parameter_reruns_the_run(staged: Project, edit: Edit) -> None:
    """A changed parameter reruns the run, and the result follows it."""
    before = summary(staged, "bounded")["latency_cycles"]
    fast = summary(staged, "two_layers-narrow")["latency_cycles"]
    slowest = max(fast, before)
    edit(
        staged.root / "config" / "config.yaml", "latency_bound_cycles: 100000", f"latency_bound_cycles: {int(slowest)}"
    )
    assert mapped_anew(staged) == ["bounded"]
    staged.run()
    assert summary(staged, "bounded")["latency_cycles"] <= 2 * slowest


def test_exports_are_results(staged: Project) -> None:
    """Files that stages write are results of the run and are made again if they are missing; other runs have none."""
    single = staged.root / "results" / "single"
    exported = single / "bounded" / "exports" / "overall_simple.json"
    assert json.loads(exported.read_text())["energy"] == summary(staged, "bounded")["energy_pj"]
    assert not (single / "stationary" / "exports").exists()
    shutil.rmtree(exported.parent)
    assert mapped_anew(staged) == ["bounded"]
    staged.run()
    assert exported.is_file()


def test_errors_in_their_code_are_told(staged: Project, edit: Edit) -> None:
    """An error in a user's code is in the log of the job, with file and line and without traceback."""
    edit(staged.root / "config" / "stages" / "stationary.py", "self.most_orders)", "self.most_orders // 0)")
    with pytest.raises(WorkflowError):
        staged.run()
    log = (staged.root / "logs" / "single" / "stationary" / "map.log").read_text()
    assert "\nerror: config/stages/stationary.py:" in f"\n{log}"
    assert "StationaryOrders: ZeroDivisionError: integer division or modulo by zero" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("{operand: W}", "{operandd: W}", "config.yaml:19 runs.stationary.pipeline[0].parameters.operandd"),
        ("{replace: Loma", "{replace: Lima", "(did you mean 'Loma'?)"),
        ("stationary.Sta", "stationry.Sta", "config/stages/stationry.py the file of the stage"),
        ("before: Sum}", "before: CostModel}", "SimpleSave would write a file for every batch of loop orders"),
    ],
)
def test_wrong_pipelines_fail_before_anything_runs(staged: Project, edit: Edit, old: str, new: str, part: str) -> None:
    """A misspelt parameter, an unknown stage or file, or a wrong order stops the workflow before any job."""
    edit(staged.root / "config" / "config.yaml", old, new)
    done = snakemake(staged, "--cores", "1")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert part in said
    assert "the configuration has 1 problem(s)" in said
    assert "Building DAG" not in said
