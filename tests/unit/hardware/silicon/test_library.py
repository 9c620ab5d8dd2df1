"""Entries of the library of energies: each names its source and how far it was checked."""

from typing import get_args

import pytest
from tilewright.hardware.silicon.library import CHECKED, dram_types, entries
from tilewright.hardware.silicon.memory_cost import MemoryShape, dram_memory, node_factors, register_file_memory
from tilewright.hardware.yaml_schema import DramType


def test_there_are_enough_and_each_has_a_source() -> None:
    """The library has at least 80 entries, each with a source, its conditions and the way it was checked."""
    found = entries().values()
    assert len(found) >= 80
    for entry in found:
        assert entry.sources
        assert entry.conditions
        assert entry.checked in CHECKED
        assert entry.energy_pj or entry.area_um2 or entry.bandwidth_gbyte_s
        assert bool(entry.energy_pj) == bool(entry.energy_per)
        assert entry.node_nm or entry.kind in ("dram", "dram-bandwidth", "link")
        if entry.energy_range_pj:
            low, high = entry.energy_range_pj
            assert low <= (entry.energy_pj or 0) <= high
        assert (entry.checked == "taken over") == ("no figure of its own" in entry.conditions)


def test_sums_are_sums() -> None:
    """An entry that sums up other entries has the sum of their energies."""
    found = entries()
    for entry in found.values():
        if "sum of" in entry.conditions:
            parts = entry.conditions.removeprefix("sum of ").split(";")[0].split(" and ")
            assert entry.energy_pj == pytest.approx(sum(found[part].energy_pj or 0 for part in parts))


def test_files_know_the_same_dram_as_the_library() -> None:
    """Files accept the DRAM types of the library, and an access costs the energy per bit times the width."""
    assert get_args(DramType) == dram_types()
    assert dram_memory(MemoryShape(2**30, 64, 32), "hbm2").read_energy_pj == pytest.approx(64 * 3.9)
    assert dram_memory(MemoryShape(2**30, 64, 32), "hbm2").write_energy_pj == pytest.approx(32 * 3.9)


def test_a_register_file_is_by_the_bit() -> None:
    """The energy of a register file grows with its width and the area with its size; a law scales the energy to other
    nodes."""
    here, there = (register_file_memory(MemoryShape(512, 8, 8), node) for node in (40, 22))
    assert here.read_energy_pj == pytest.approx(8 * 0.009)
    assert here.area_mm2 == pytest.approx(512 * 5.98e-6)
    assert there.read_energy_pj == pytest.approx(here.read_energy_pj * node_factors(40, 22).energy, rel=1e-5)
    assert (here.source.leakage_mw, there.source.leakage_mw) == (pytest.approx(512 * 7.4e-5), None)
