"""The units of a plan: which of them share a job."""

import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from tilewright.cli.config import plan_of
from tilewright.cli.units import BATCH, Units
from tilewright.yamlfile import load_yaml

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
CONFIG = """\
runs_per_job: {size}
sweeps:
  tiny: {{workload: two_layers, hardware: "config/hardware/*", mapping: free}}
"""


@pytest.mark.parametrize(("cores", "size"), [(5, 2), (11, 2), (20, 4), (23, 5)])
def test_jobs_of_one_kind_need_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, size: int
) -> None:
    """They run beside each other; all that is described, drawings too, is in one of them, behind what it needs."""
    for kind in ("workload/two_layers", "mapping/free"):
        (tmp_path / "config" / kind).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TINY / f"{kind}.yaml", tmp_path / "config" / f"{kind}.yaml")
    for number in range(cores):
        (tmp_path / f"config/hardware/core{number:02}.yaml").parent.mkdir(exist_ok=True)
        shutil.copy(TINY / "hardware" / "wide.yaml", tmp_path / f"config/hardware/core{number:02}.yaml")
    config = tmp_path / "config" / "config.yaml"
    config.write_text(CONFIG.format(size=size))
    monkeypatch.chdir(tmp_path)
    read = load_yaml(config)
    units = Units(plan_of(read.data, [read]), defaultdict(str)).by_name
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
