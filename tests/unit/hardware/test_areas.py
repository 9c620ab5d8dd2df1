"""The area of an accelerator of several cores: cores on the chip, memories that they share once."""

from pathlib import Path

import pytest
from tilewright.hardware.system import Area, system_area

from tests.unit.hardware.system_cases import connected, core, memory, offchip, read


def with_areas(name: str, area: float) -> dict:
    """A core of some units and one memory, both with an area."""
    data = core(name, sram=memory() | {"area": area})
    data["operational_array"]["unit_area"] = 0.01
    return data


def test_cores_add_up_and_the_off_chip_memory_does_not_count(tmp_path: Path) -> None:
    """Units and memory of each core."""
    accelerator = read(tmp_path, connected(2, ["0, 1"]), small=with_areas("small", 2.0), dram=offchip())
    units = accelerator.cores[0].operational_array.unit_count
    assert system_area(accelerator) == Area(pytest.approx(2 * (2.0 + 0.01 * units)), "")


def test_a_shared_memory_counts_once(tmp_path: Path) -> None:
    """Two cores, one memory."""
    data = connected(2, [], core_memory_sharing=["0, 1"])
    accelerator = read(tmp_path, data, small=with_areas("small", 2.0))
    units = accelerator.cores[0].operational_array.unit_count
    assert system_area(accelerator) == Area(pytest.approx(2.0 + 2 * 0.01 * units), "")


def test_what_has_no_area_is_told_for_each_core_file(tmp_path: Path) -> None:
    """A top memory of a core is on the chip: it needs one as well."""
    bare = core("small", sram=memory() | {"area": 0})
    bare["operational_array"]["unit_area"] = 0
    accelerator = read(tmp_path, connected(2, ["0, 1"]), small=bare)
    assert system_area(accelerator) == Area(None, "area not given: none for small: units, sram")
