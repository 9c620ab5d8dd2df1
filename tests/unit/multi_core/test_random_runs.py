"""Random networks on random accelerators, from files to schedules: verified, recounted and reproduced."""

import json
import random
from pathlib import Path

import pytest
from tilewright.workload.source import parse_workload

from tests.members import members
from tests.unit.multi_core.random_cases import RandomNetwork, random_options, random_system, random_tiling
from tests.unit.multi_core.recount import recount
from tests.unit.multi_core.runs import run, write_accelerator, write_mapping


@pytest.mark.parametrize("seed", range(members(6, 4)))
def test_a_random_run(seed: int, tmp_path: Path) -> None:
    """A random run passes the checks, and its written mapping file gives the same schedule."""
    draw = random.Random(seed)
    network, hardware = RandomNetwork(draw).save(tmp_path), write_accelerator(tmp_path / "hw", random_system(draw))
    entries, tiling = random_tiling(draw)
    options = random_options(draw)
    found = run(tmp_path / "run", hardware, network, write_mapping(tmp_path, *entries), tiling, schedule=options)
    assert recount(tmp_path / "run", hardware, parse_workload(network, "corrected")) == []
    allocation = json.loads((tmp_path / "run" / "allocation.json").read_text())["payload"]
    for point in [*allocation["front"], *allocation["single_core"]]:
        assert point["latency_cycles"] >= found["lower_bound"]["latency_cycles"]
        assert point["energy_pj"] >= found["lower_bound"]["energy_pj"] * (1 - 1e-12)
    fixed = tmp_path / "run" / "mapping.yaml"
    again = run(tmp_path / "again", hardware, network, fixed, tiling, schedule=options)
    assert (again["latency_cycles"], again["energy_pj"]) == (found["latency_cycles"], found["energy_pj"])
