"""Fronts in a configuration: a sweep that chooses points, and a run with its front and figure."""

import csv
import json
from pathlib import Path

import pytest
from tilewright.cli.main import main

from tests.workflow.conftest import Project

CONFIG = """\
sweeps:
  chosen: { workload: two_layers, hardware: [narrow, wide], mapping: free, latency_slack: 5% }
runs:
  whole: { workload: two_layers, hardware: narrow, mapping: free, front: true, figures: true }
"""


def test_keys_of_a_configuration_choose_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chosen runs have the totals of their point, tables have the ends and the knee, and audit finds no difference."""
    project = Project.create(tmp_path / "project")
    (project.root / "config/config.yaml").write_text(CONFIG)
    project.run()
    results = project.root / "results"
    rows = {row["run"]: row for row in csv.DictReader((results / "summary.csv").open(encoding="utf-8"))}
    assert len(rows) == 3
    assert (results / "single/whole/report/front.svg").exists()
    for name, row in rows.items():
        front = json.loads((results / "single" / name / "summary.json").read_text())["payload"]["front"]
        points = [(one["energy_pj"], one["latency_cycles"]) for one in front["points"]]
        assert int(row["front_points"]) == len(points)
        assert (float(row["front_least_latency_energy_pj"]), float(row["front_least_latency_cycles"])) == points[0]
        assert (float(row["front_least_energy_pj"]), float(row["front_least_energy_latency_cycles"])) == points[-1]
        knee = float(row["front_knee_energy_pj"]), float(row["front_knee_latency_cycles"])
        assert knee == points[front["knee"]]
        if name != "whole":
            within = [energy for energy, latency in points if latency <= points[0][1] * 1.05]
            assert float(row["energy_pj"]) == pytest.approx(min(within), rel=1e-9)
    monkeypatch.chdir(project.root)
    assert main(["audit", "results/single", "--share", "100%"]) == 0
