"""Memories with costs of the library: keys in files, messages, and the recorded source."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.errors import InputError
from tilewright.designs.pricing import FigureReader
from tilewright.designs.space_reader import read_space
from tilewright.hardware.core import Accelerator, Memory
from tilewright.hardware.silicon.memory_cost import sram_cost, zigzag_cost
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import core_area

from tests.unit.hardware.system_cases import core, memory


def of_sram(**changes: Any) -> dict[str, Any]:
    """Data of a core with one memory of 8 KiB in words of 64 bits, without energies of its own."""
    kept = {key: value for key, value in memory().items() if key not in ("r_cost", "w_cost")}
    return core("small", sram=kept | changes)


def read(data: dict[str, Any], notices: list[str] | None = None) -> Memory:
    """Read the first memory of the core."""
    return parse_accelerator(data, notices).cores[0].memories[0]


def test_a_memory_costs_what_the_library_says_and_records_why() -> None:
    """A memory has the figures of the library with their source, and an artifact keeps them."""
    notices: list[str] = []
    data = of_sram(cost={"from": "sram", "node_nm": 22, "cells": "lstp"})
    data["operational_array"]["unit_area"] = "300 um2"
    accelerator = parse_accelerator(data, notices)
    found = accelerator.cores[0].memories[0]
    cost = sram_cost(65536, 64, 22, "lstp")
    assert (found.read_energy_pj, found.write_energy_pj, found.area_mm2) == (
        cost.read_energy_pj,
        cost.write_energy_pj,
        cost.area_mm2,
    )
    assert found.cost_source is not None
    assert (found.cost_source.leakage_mw, found.cost_source.access_time_ns) == (cost.leakage_mw, cost.access_time_ns)
    assert found.cost_source.steps == cost.steps
    assert core_area(accelerator.cores[0]).mm2 == pytest.approx(4 * 300e-6 + cost.area_mm2)
    assert [notice for notice in notices if "1.8 times as large" in notice]
    assert decode(Accelerator, encode(accelerator)) == accelerator
    assert "cost_source" not in encode(parse_accelerator(core("small")))["cores"][0]["memories"][0]


def test_leakage_and_access_time_meet_the_clock() -> None:
    """A memory has the leakage of the library unless the file gives one; an access longer than a cycle is reported."""
    notices: list[str] = []
    data = of_sram(cost={"from": "sram", "node_nm": 22, "cells": "lstp"}) | {"clock_frequency": "2 GHz"}
    cost = sram_cost(65536, 64, 22, "lstp")
    assert dict(read(data, notices).figures)["leakage_mw"] == cost.leakage_mw
    assert "an access takes 0.6073 ns, but counts as one cycle of 0.5 ns" in " ".join(notices)
    assert " ".join(notices).count("an access takes") == 1
    slow: list[str] = []
    read(data | {"clock_frequency": "1 GHz"}, slow)
    assert "an access takes" not in " ".join(slow)
    data["memories"]["sram"]["leakage"] = "3 mW"
    assert dict(read(data).figures)["leakage_mw"] == 3.0


def test_unitless_areas_beside_the_library_stay_unitless() -> None:
    """Areas of the library in mm2 give no unit to plain areas of the file."""
    data = of_sram(cost={"from": "sram", "node_nm": 22})
    data["operational_array"]["unit_area"] = 1
    area = core_area(parse_accelerator(data).cores[0])
    assert (area.mm2, area.lacks_unit) == (None, True)


def test_auto_cost_extraction_reads_as_in_zigzag() -> None:
    """`auto_cost_extraction` gives the costs of zigzag-dse: the word is that of the first read port.
    Energies and areas in the file have no effect; register files cost as much as memories 128 times as large.
    """
    notices: list[str] = []
    found = read(core("small", sram=memory(65536, width=64) | {"auto_cost_extraction": True}), notices)
    assert (found.read_energy_pj, found.write_energy_pj, found.area_mm2) == (2.19637, 2.4641, 0.0146812)
    assert all(f"{key}: has no effect, because auto" in " ".join(notices) for key in ("r_cost", "w_cost"))
    rf = read(of_sram(auto_cost_extraction=True, mem_type="rf", size=64 * 8))
    assert rf.read_energy_pj == zigzag_cost(128 * 64 * 8, 64).read_energy_pj
    between: list[str] = []
    read(of_sram(auto_cost_extraction=True, size=3 * 2**16), between)
    assert "interpolated" in " ".join(between)


def test_auto_cost_extraction_takes_whole_bytes_and_one_word() -> None:
    """`auto_cost_extraction` rounds to whole bytes and uses one word, as zigzag-dse does, and a notice says so."""
    notices: list[str] = []
    found = read(of_sram(auto_cost_extraction=True, size=65537), notices)
    assert (found.read_energy_pj, found.area_mm2) == (2.19637, 0.0146812)
    assert "65537 bits are not a whole number of bytes; they count as 8192 bytes, as in zigzag-dse" in " ".join(notices)
    notices.clear()
    described = of_sram(auto_cost_extraction=True, mem_type="rf", size=4)
    for port in described["memories"]["sram"]["ports"]:
        port |= {"bandwidth_min": 8, "bandwidth_max": 16 if port["type"] == "write" else 8}
    found = read(described, notices)
    assert found.read_energy_pj == zigzag_cost(128 * 4, 8).read_energy_pj
    assert "no whole number" not in " ".join(notices)
    assert "have the energies of a word of 8 bits" in " ".join(notices)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cost": {"from": "sram"}}, ["memories.sram.cost.node_nm: required key is missing for `from: sram`"]),
        ({"cost": {"from": "dram", "type": "hbm2", "node_nm": 7}}, ["cost.node_nm: not a key of `from: dram`"]),
        ({"cost": {"from": "sram", "node_nm": 3}}, ["no scaling law covers 3 nm", "7 to 180 nm"]),
        ({"cost": {"from": "srm", "node_nm": 22}}, ["did you mean 'sram'?"]),
        ({"cost": {"from": "sram", "node_nm": 22}, "r_cost": 1}, ["the memory has r_cost too"]),
        ({"cost": {"from": "sram", "node_nm": 22}, "auto_cost_extraction": True}, ["has `cost` too"]),
        ({"cost": {"from": "sram", "node_nm": 22}, "size": "64 B"}, ["8 words of 64 bits", "register_file"]),
        ({"auto_cost_extraction": True, "mem_type": "dram"}, ["the table of CACTI has no DRAM", "from: dram"]),
        ({"auto_cost_extraction": True, "size": "16777217 B"}, ["too far outside the table", "64 to 16,777,216 bytes"]),
        ({}, ["memories.sram.r_cost: required", "memories.sram.w_cost: required"]),
    ],
)
def test_what_has_no_cost_is_told(changes: dict[str, Any], words: list[str]) -> None:
    """The message about a memory without a cost has the place and the allowed values."""
    with pytest.raises(InputError) as raised:
        read(of_sram(**changes))
    assert all(word in str(raised.value) for word in words)


def test_a_space_takes_costs_as_laws(tmp_path: Path) -> None:
    """Axes of a space for size, width and type of cells change the costs of the library."""
    network = Path(__file__).resolve().parents[3] / "config" / "workload" / "bert_tiny.onnx"
    base = of_sram(cost={"from": "sram", "node_nm": 22})
    space = read_space(
        {
            "accelerator": base,
            "networks": [str(network)],
            "axes": {
                "kib": {"values": [8, 64]},
                "cells": {"path": "memories.sram.cost.cells", "values": ["hp", "lstp"]},
                "bits": {"path": "memories.sram.ports.r.bandwidth_max", "values": [64, 128]},
            },
            "laws": {"memories.sram.size": "kib * 8192"},
        }
    )
    reader = FigureReader(space.base)
    first = space.outline(0).settings
    start = reader.whole(first).cores[0]
    for index in range(len(space)):
        values = space.design(index).values
        found = reader.core(space.outline(index).settings, first, start).memories[0]
        cost = sram_cost(values["kib"] * 8192, values["bits"], 22, values["cells"])
        assert found.read_energy_pj == cost.read_energy_pj


@pytest.mark.parametrize(
    "cost",
    [{"from": "sram", "node_nm": 22}, {"from": "register_file", "node_nm": 40}, {"from": "dram", "type": "lpddr4x"}],
)
def test_a_factor_changes_only_energies(cost: dict[str, Any]) -> None:
    """An energy factor scales the energies alone and is recorded; area and leakage stay those of the library."""
    notices: list[str] = []
    plain = read(of_sram(cost=cost) | {"clock_frequency": "1 GHz"})
    found = read(of_sram(cost=cost | {"energy_factor": 1.2}) | {"clock_frequency": "1 GHz"}, notices)
    assert found.read_energy_pj == pytest.approx(1.2 * plain.read_energy_pj)
    assert found.write_energy_pj == pytest.approx(1.2 * plain.write_energy_pj)
    assert (found.area_mm2, found.figures) == (plain.area_mm2, plain.figures)
    assert found.cost_source is not None
    assert plain.cost_source is not None
    assert found.cost_source.relative_range == plain.cost_source.relative_range
    assert found.cost_source.law == f"{plain.cost_source.law}, energies × 1.2"
    assert "energies × 1.2, a factor of the hardware file" in found.cost_source.steps
    assert any("energies × 1.2, a factor of the hardware file" in notice for notice in notices)
    one = read(of_sram(cost=cost | {"energy_factor": 1}) | {"clock_frequency": "1 GHz"})
    assert one == plain
    with pytest.raises(InputError, match="energy_factor"):
        read(of_sram(cost=cost | {"energy_factor": 0}))


def test_a_space_varies_the_factor(tmp_path: Path) -> None:
    """Each design of a space has the energies of its energy factor."""
    data = of_sram(cost={"from": "sram", "node_nm": 22})
    axes = {"factor": {"path": "memories.sram.cost.energy_factor", "values": [1, 1.5]}}
    base = tmp_path / "base.yaml"
    base.write_text(yaml.safe_dump(data))
    network = Path(__file__).parents[2] / "workflow/tiny/workload/two_layers.yaml"
    space = read_space({"accelerator": str(base), "networks": [str(network)], "axes": axes})
    first, second = (read(space.design(index).hardware) for index in range(2))
    assert second.read_energy_pj == pytest.approx(1.5 * first.read_energy_pj)
    reader = FigureReader(space.base)
    settings = space.outline(0).settings
    start = reader.whole(settings).cores[0]
    assert reader.core(space.outline(1).settings, settings, start).memories[0] == second


@pytest.mark.parametrize(("energy", "is_told"), [(82.6, True), ("82.6 fJ", False), (4.0, False)])
def test_energies_of_operations_are_compared_with_the_library(energy: object, is_told: bool) -> None:
    """An operation energy 1,000 times above the library gets a notice: fJ were probably given as pJ."""
    notices: list[str] = []
    data = of_sram(cost={"from": "sram", "node_nm": 22})
    data["operational_array"]["unit_energy"] = energy
    read(data, notices)
    assert any("82.6 pJ are 999 times the energy of an 8-bit multiply-accumulate" in one for one in notices) == is_told
