"""Units of a plan: their common jobs and their inputs."""

import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from tilewright.base.artifacts.manifest import ResultsLedger
from tilewright.base.yamlfile import load_yaml
from tilewright.cli import units as module
from tilewright.cli.config import plan_of
from tilewright.cli.units import BATCH, Units
from tilewright.pipeline.configuration.keys import RunPlan

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
CONFIG = """\
runs_per_job: {size}
sweeps:
  tiny: {{workload: two_layers, hardware: "config/hardware/*", mapping: free}}
"""


def plan(cores: int, size: int) -> RunPlan:
    """Write a configuration with so many cores into the working folder and return its plan."""
    for kind in ("workload/two_layers", "mapping/free"):
        Path("config", kind).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TINY / f"{kind}.yaml", Path("config", f"{kind}.yaml"))
    for number in range(cores):
        Path("config/hardware").mkdir(exist_ok=True)
        shutil.copy(TINY / "hardware" / "wide.yaml", f"config/hardware/core{number:02}.yaml")
    config = Path("config/config.yaml")
    config.write_text(CONFIG.format(size=size))
    read = load_yaml(config)
    return plan_of(read.data, [read])


@pytest.mark.parametrize(("cores", "size"), [(5, 2), (11, 2), (20, 4), (23, 5)])
def test_jobs_of_one_kind_need_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, size: int
) -> None:
    """Jobs of one kind do not need each other. In a job, a unit needs only earlier units; drawings are in jobs."""
    monkeypatch.chdir(tmp_path)
    units = Units(plan(cores, size), defaultdict(str)).by_name
    for kind in ("descriptions", "runs"):
        jobs = [unit.needs for name, unit in units.items() if name.startswith(f"{BATCH}/{kind}/")]
        assert len(jobs) > 1
        for job in jobs:
            others = {name for other in jobs if other is not job for name in other}
            for place, name in enumerate(job):
                assert others.isdisjoint(units[name].needs)
                assert {need for need in units[name].needs if need in job} <= {*job[:place]}
    drawings = {f"hardware/core{number:02}/hierarchy" for number in range(cores)}
    assert drawings <= {name for unit in units.values() if unit.name.startswith(BATCH) for name in unit.needs}


MAP, DRAWING = "single/two_layers-core00/map", "hardware/core00/hierarchy"


def made_of(said: RunPlan, *names: str) -> list[str]:
    """Return the digests of all inputs of units."""
    ledger = ResultsLedger(said.results, Units(said, defaultdict(str)).by_name)
    return [ledger.made_of(name) for name in names]


def test_rules_and_words_decide_what_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another call of a verb makes its files again; another folder and comments do not."""
    monkeypatch.chdir(tmp_path)
    said = plan(1, 1)
    before = made_of(said, MAP, DRAWING)
    moved = replace(said, results=Path("results/elsewhere"), logs=Path("results/elsewhere/logs"))
    assert made_of(moved, MAP, DRAWING) == before
    shutil.copytree(module.WORKFLOW, tmp_path / "workflow")
    monkeypatch.setattr(module, "WORKFLOW", tmp_path / "workflow")
    rules = tmp_path / "workflow" / "rules" / "single.smk"
    rules.write_text("# words\n" + rules.read_text())
    assert made_of(said, MAP, DRAWING) == before
    rules.write_text(rules.read_text().replace("--jobs", "--no-store --jobs"))
    assert not {*made_of(said, MAP, DRAWING)} & {*before}
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    job = Units._job
    monkeypatch.setattr(Units, "_job", lambda self, log, *words: job(self, log, *words, "--strict"))
    assert not {*made_of(said, MAP, DRAWING)} & {*before}
