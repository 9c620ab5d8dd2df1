"""`fusion: search`: the plan of a run is searched up to a count of plans, and the run follows it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.objectives import OBJECTIVES

from tests.workflow.conftest import Project
from tests.workflow.killing import kill_tree, running, wait_for_verb
from tests.workflow.multi_projects import COMPANION, RUN, create_multi

pytestmark = pytest.mark.slow

PLAN = f"results/multi/{RUN}/plan"


def searching(root: Path, edit: Callable[[Path, str, str], None]) -> Project:
    """The tiny project of two cores, without fixed choices, before its first run."""
    project = create_multi(root)
    (root / "config/mapping/multi").mkdir()
    (root / "config/mapping/multi/open.yaml").write_text("- name: default\n")
    edit(root / "config/config.yaml", "hardware: duo", "hardware: duo\n    fusion: search\n    nb_plans: 14")
    return project


@pytest.fixture
def project(tmp_path: Path, edit: Callable[[Path, str, str], None]) -> Project:
    """The project with a search for plans, before its first run."""
    return searching(tmp_path / "project", edit)


def payload(file: Path) -> dict[str, Any]:
    """The payload of an artifact."""
    found: dict[str, Any] = json.loads(file.read_text())["payload"]
    return found


def test_a_run_follows_the_plan_that_was_searched(
    project: Project, tmp_path: Path, edit: Callable[[Path, str, str], None]
) -> None:
    """A run has the figures of its searched plan, and its comparisons use the same settings.

    Nothing runs twice. Any number of cores, and a restart after kill -9, give the same bytes. A changed core gives
    another plan.
    """
    project.run(f"results/multi/{RUN}/checks.json")
    results = project.root / "results/multi"
    plan, summary = payload(project.root / PLAN / "fusion.json"), payload(results / RUN / "summary.json")
    assert (summary["latency_cycles"], summary["energy_pj"]) == (plan["latency_cycles"], plan["energy_pj"])
    assert summary["settings"] == plan["settings"] == payload(results / COMPANION / "summary.json")["settings"]
    assert payload(results / RUN / "checks.json")["passed"]
    assert plan["search"]["stopped_by"] == "count"
    (alone,) = (row for row in summary["baselines"] if row["name"] == "layer_by_layer")
    known = [plan["layer_by_layer"], payload(results / COMPANION / "summary.json")]
    value = OBJECTIVES[plan["objective"]].value
    least = min(value(one["energy_pj"], one["latency_cycles"]) for one in known)
    assert value(alone["energy_pj"], alone["latency_cycles"]) == least, "the best baseline that is known"
    follows = project.would_run()
    assert not [job for job in follows if job.startswith(("fuse", "cns", "cost", "allocate", "schedule"))]

    again = searching(tmp_path / "again", edit)
    (again.root / "profiles").symlink_to("workflow/profiles")
    with running(again) as process:
        wait_for_verb(process, "fuse")
        kill_tree(process)
    again.run(f"{PLAN}/fusion.json", cores=1)
    for name in ("fusion.json", "fusion.csv", "fusion.html", "mapping.yaml"):
        assert (again.root / PLAN / name).read_bytes() == (project.root / PLAN / name).read_bytes()

    edit(project.root / "config/hardware/cores/left.yaml", "r_cost: 50", "r_cost: 51")
    follows = project.would_run()
    assert f"fuse_multi {RUN}" in follows
    assert f"cns_multi {RUN}" in follows
    assert f"cns_multi {COMPANION}" not in follows
