"""Keys of the off-chip core that only plug-ins read, and that have no effect."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.registry import enter, withdraw
from tilewright.hardware.attributes import ENTERED, Attribute
from tilewright.hardware.off_chip_keys import keys_without_streams, keys_without_views
from tilewright.hardware.system import MultiCoreAccelerator

from tests.unit.hardware.system_cases import connected, core, memory, offchip, read
from tests.unit.multi_core.runs import DUO, branches, run, write_accelerator, write_mapping

HOPS = Attribute("hops", "core", "hops", "count", "Hops to the memory.")
HOP_ENERGY = Attribute("hop_energy", "memory", "hop_energy_pj", "energy_pj", "Energy of a hop.")
TREE_ENERGY = Attribute("tree_energy", "array", "tree_energy_pj", "energy_pj", "Energy of the clock tree.")
UPKEEP = Attribute("upkeep", "memory", "upkeep_mw", "power_mw", "Power that keeps data alive.", term="upkeep")
ENTRIES = {
    ENTERED.owner: {name: f"{__name__}:{name.upper()}" for name in ("hops", "hop_energy", "tree_energy", "upkeep")}
}


@pytest.fixture(autouse=True)
def entered() -> Iterator[None]:
    """Register the attributes while a test runs."""
    enter(ENTRIES)
    yield
    withdraw(ENTRIES)


def system(folder: Path, **further: Any) -> MultiCoreAccelerator:
    """Read an accelerator whose cores all have the keys."""
    small, dram = core("small", sram=memory() | {"hop_energy": 1}), offchip()
    for data in (small, dram):
        data["hops"] = 3
        data["clock_frequency"] = "200 MHz"
        data["operational_array"]["tree_energy"] = 0.5
    (own,) = dram["memories"].values()
    own |= {"hop_energy": 2, "upkeep": "3 uW"}
    return read(folder, connected(2, [[0, 1]]), small=small, dram=dram | further)


def test_keys_of_the_off_chip_core_have_no_effect(tmp_path: Path) -> None:
    """Keys of the off-chip core and of its array are unused; keys of other cores, memories and powers are not."""
    found = [(one.problem.file, one.problem.path, one.problem.value) for one in keys_without_views(system(tmp_path))]
    assert found == [("dram", "hops", "3"), ("dram", "operational_array.tree_energy", "0.5")]


def test_keys_of_a_memory_without_streams_have_no_effect(tmp_path: Path) -> None:
    """A key of an off-chip memory is unused if no node streams its operands; its static power is not."""
    found = system(tmp_path)
    (one,) = keys_without_streams(found, ())
    (name,) = (memory.name for memory in found.core_of[found.offchip_core_id or 0].memories)
    assert (one.problem.file, one.problem.path, one.problem.value) == ("dram", f"memories.{name}.hop_energy", "2")
    assert "no computation node streams data" in str(one)
    assert [*keys_without_streams(found, ("I2",))] == []


def test_a_system_without_an_off_chip_core_has_no_such_keys(tmp_path: Path) -> None:
    """A system without an off-chip core has no unused keys."""
    data = connected(2, [[0, 1]])
    del data["offchip_core"]
    found = read(tmp_path, data, small=core() | {"hops": 3})
    assert [*keys_without_views(found), *keys_without_streams(found, ())] == []


@pytest.mark.parametrize(("size", "is_streamed"), [("64 KiB", False), ("300 B", True)])
def test_a_run_names_keys_without_effect(
    tmp_path: Path, size: str, is_streamed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run reports a key of an off-chip memory, on the terminal and in its summary, if no node streams."""
    data = deepcopy(DUO)
    for one in data["cores"].values():
        one["memories"]["memory"]["size"] = size
    (name,) = data["offchip"]["memories"]
    data["offchip"]["memories"][name]["hop_energy"] = 2
    files = write_accelerator(tmp_path / "hw", data), branches(tmp_path), write_mapping(tmp_path)
    summary = run(tmp_path, *files, ("--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]'))
    tables = [path.read_text() for path in (tmp_path / "cost").glob("*.jsonl")]
    assert any('"bits_per_cycle"' in text for text in tables) == is_streamed
    keys = [row["key"] for row in summary.get("unused", [])]
    assert (f"memories.{name}.hop_energy" in keys) is not is_streamed
    assert (f"memories.{name}.hop_energy" in capsys.readouterr().err) is not is_streamed
