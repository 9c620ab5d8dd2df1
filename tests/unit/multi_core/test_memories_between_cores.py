"""Cores that share some of their memories: shared data are held once and read in place."""

from pathlib import Path
from typing import Any

from tests.unit.hardware.system_cases import MULTI
from tests.unit.multi_core.runs import PIPE, branches, chain, run, write_accelerator, write_mapping

LINES = ["--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]']


def in_a_row(folder: Path, accelerator: dict[str, Any]) -> dict[str, Any]:
    """Run three layers in lines, one on each core."""
    folder.mkdir()
    layers = [{"name": name, "core_allocation": [core]} for core, name in enumerate("abc")]
    mapping = write_mapping(folder, {"name": "default"}, *layers)
    hardware = write_accelerator(folder / "hardware", accelerator)
    return run(folder / "run", hardware, chain(folder), mapping, LINES)


def test_what_the_next_core_reads_in_place_does_not_move(tmp_path: Path) -> None:
    """Data move between cores only if their memories are not shared, and the shared memories count once."""
    shared = in_a_row(tmp_path / "shared", PIPE)
    apart = in_a_row(tmp_path / "apart", PIPE | {"sharing": []})
    moved = {
        name: sum(cause["bits"] for cause in found["energy"]["causes"].values())
        for name, found in (("shared", shared), ("apart", apart))
    }
    assert shared["energy"]["causes"]["core_to_core"]["transfers"] == 0
    assert shared["energy"]["causes"]["eviction"]["transfers"] == 0
    assert moved["apart"] > moved["shared"]
    assert shared["energy_pj"] < apart["energy_pj"]
    assert shared["latency_cycles"] <= apart["latency_cycles"]
    names = [memory["name"] for memory in shared["memories"]]
    assert {"0+1: out", "1+2: out"} <= set(names)
    assert len(names) == len(apart["memories"]) - 2


def test_the_four_cores_of_diana_share_one_memory(tmp_path: Path) -> None:
    """The four cores of diana share one memory, so data move only from and to the off-chip memory."""
    mapping = write_mapping(tmp_path, {"name": "default"}, {"name": "d", "core_allocation": [2]})
    found = run(tmp_path / "run", MULTI / "diana.yaml", branches(tmp_path), mapping, LINES)
    memories = {memory["name"]: memory["capacity_bits"] for memory in found["memories"]}
    assert memories["0+1+2+3: l1"] == 256 * 1024 * 8
    assert {name for name in memories if name.endswith("weights")} == {"0: weights", "2: weights"}
    assert {row["core"] for row in found["cores"] if row["cn_count"]} == {0, 1, 2, 3}
    causes = found["energy"]["causes"]
    assert {name for name, cause in causes.items() if cause["transfers"]} == {"off_chip_fetch", "sink_output"}
