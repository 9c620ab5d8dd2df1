"""Areas of one core and of several cores: parts on the chip, shared memories, and areas without a unit."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tilewright.base.yamlfile import document_of, load_yaml
from tilewright.hardware.core import MM2, NO_UNIT
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import Area, core_area, on_chip_memories, system_area
from tilewright.hardware.yaml_reader import check_hardware_file

from tests.unit.hardware.system_cases import ROOT, connected, core, memory, offchip, read


def with_areas(name: str, area: float) -> dict:
    """Data of a core whose units and one memory have an area."""
    data = core(name, sram=memory() | {"area": area})
    data["operational_array"]["unit_area"] = 0.01
    return data | {"area_unit": "mm2"}


def test_cores_add_up_and_the_off_chip_memory_does_not_count(tmp_path: Path) -> None:
    """The area of a system is the sum of the units and memories of its cores, without the off-chip memory."""
    accelerator = read(tmp_path, connected(2, ["0, 1"]), small=with_areas("small", 2.0), dram=offchip())
    units = accelerator.cores[0].operational_array.unit_count
    assert system_area(accelerator) == Area(pytest.approx(2 * (2.0 + 0.01 * units)), "")


def test_a_shared_memory_counts_once(tmp_path: Path) -> None:
    """The area of a memory that two cores share counts once."""
    data = connected(2, [], core_memory_sharing=["0, 1"])
    accelerator = read(tmp_path, data, small=with_areas("small", 2.0))
    units = accelerator.cores[0].operational_array.unit_count
    assert system_area(accelerator) == Area(pytest.approx(2.0 + 2 * 0.01 * units), "")


def test_memories_that_are_one_count_once(tmp_path: Path) -> None:
    """The area of a memory that two cores share under different names counts once."""
    other = core("other", l1=memory() | {"area": 2.0}) | {"area_unit": "mm2"}
    other["operational_array"]["unit_area"] = 0.01
    data = connected(2, ["0, 1"], core_memory_sharing=[["0.sram", "1.l1"]])
    data["cores"][1] = "other.yaml"
    accelerator = read(tmp_path, data, small=with_areas("small", 2.0), other=other)
    units = accelerator.cores[0].operational_array.unit_count
    assert system_area(accelerator) == Area(pytest.approx(2.0 + 2 * 0.01 * units), "")


def test_what_has_no_area_is_told_for_each_core_file(tmp_path: Path) -> None:
    """The note names each part of a core file without an area, including the top memory."""
    bare = core("small", sram=memory() | {"area": 0})
    bare["operational_array"]["unit_area"] = 0
    accelerator = read(tmp_path, connected(2, ["0, 1"]), small=bare)
    assert system_area(accelerator) == Area(None, "area not given for small: units, sram")


def areas(unit_area: object, *memory_areas: object, area_unit: str | None = None) -> dict:
    """Data of a core of four units under memories with the given areas, from the innermost to the outermost."""
    data = core("small", **{f"m{level}": memory() | {"area": area} for level, area in enumerate(memory_areas)})
    data["operational_array"]["unit_area"] = unit_area
    return data | ({"area_unit": area_unit} if area_unit else {})


@pytest.mark.parametrize(
    ("data", "unit", "mm2"),
    [
        (areas(0.01, 2.0, 0), NO_UNIT, None),
        (areas("0.01 mm2", 2.0, 0), MM2, 2.04),
        (areas(0.01, "2e6 um2", 0), MM2, 2.04),
        (areas(0.01, 2.0, 0, area_unit="mm2"), MM2, 2.04),
        (areas("0.01 mm2", 2.0, 0, area_unit="none"), NO_UNIT, None),
        (areas(0, 0, 0), MM2, None),
    ],
    ids=["plain", "unit of the units", "unit of a memory", "said", "said to be none", "no area"],
)
def test_a_file_says_whether_its_areas_are_in_mm2(data: dict, unit: str, mm2: float | None) -> None:
    """Areas are in mm2 if one of them has a unit or if `area_unit` says so; plain numbers alone are not."""
    notices: list[str] = []
    (found,) = parse_accelerator(data, notices).cores
    assert notices == [], "areas get no notice before use"
    check_hardware_file(document_of(data), notices)
    assert found.area_unit == unit
    assert core_area(found).mm2 == (None if mm2 is None else pytest.approx(mm2))
    assert core_area(found).lacks_unit == (unit == NO_UNIT) == ("areas have no unit" in " ".join(notices))


def test_areas_without_a_unit_are_noted_where_they_stand() -> None:
    """The notice about areas without a unit names the line of the first area in the file."""
    file = ROOT / "config" / "hardware" / "zigzag" / "eyeriss_like.yaml"
    notices: list[str] = []
    check_hardware_file(load_yaml(file), notices)
    (notice,) = notices
    place, _, said = notice.partition(": ")
    line = int(place.split(":")[1].split()[0])
    lines = file.read_text().splitlines()
    assert line == next(n for n, text in enumerate(lines, 1) if re.search(r"area: *[0-9.]*[1-9]", text))
    assert said.startswith("the areas have no unit")


def test_areas_of_the_examples_of_zigzag_are_no_mm2() -> None:
    """The areas of the Eyeriss-like core add up to 311 without a unit, so they are not compared."""
    (found,) = parse_accelerator(ROOT / "config" / "hardware" / "zigzag" / "eyeriss_like.yaml").cores
    area = core_area(found)
    assert area.mm2 is None
    assert area.note == "area without a unit (311.2), so it is not compared; if it is in mm2, write area_unit: mm2"


def test_one_core_without_a_unit_leaves_the_system_without_area(tmp_path: Path) -> None:
    """A system has no area if one of its cores has areas without a unit; the note names this core."""
    data = connected(2, ["0, 1"])
    data["cores"][1] = "bare.yaml"
    bare = with_areas("bare", 2.0) | {"area_unit": "none"}
    area = system_area(read(tmp_path, data, small=with_areas("small", 2.0), bare=bare))
    assert (area.mm2, area.lacks_unit) == (None, True)
    assert "for bare, so it is not compared" in area.note


def test_the_outermost_memory_of_a_core_alone_is_off_the_chip_unless_it_has_an_area() -> None:
    """The top memory of a single core counts as off-chip unless it has an area; in a system all memories are on the
    chip."""
    (without,) = parse_accelerator(areas("0.01 mm2", 2.0, 0)).cores
    (interface,) = parse_accelerator(areas("0.01 mm2", 2.0, 0.5)).cores
    assert on_chip_memories(without) == (0,)
    assert on_chip_memories(without, is_part=True) == on_chip_memories(interface) == (0, 1)
    assert core_area(interface).mm2 == pytest.approx(2.54)


def test_an_in_memory_core_names_the_memories_that_its_area_leaves_out(tmp_path: Path) -> None:
    """The note on the area of an in-memory core, alone or in a system, names the memories without an area."""
    path = Path(__file__).parents[3] / "config/hardware/zigzag/aimc.yaml"
    found = parse_accelerator(path).cores[0]
    area = core_area(found)
    assert area.mm2 == pytest.approx(2.2878123152749223, rel=1e-12)
    assert area.note == "not counted, no area given: cells, rf_1B, rf_2B, sram_256KB"
    assert not area.lacks_unit
    given = replace(found, memories=tuple(replace(one, area_mm2=0.1) for one in found.memories))
    assert core_area(given).note == ""
    described = yaml.safe_load(path.read_text())
    del described["memories"]["dram"]
    described["memories"]["sram_256KB"] |= {"area": 0.5, "operands": ["I1", "I2", "O"]}
    described["memories"]["sram_256KB"]["ports"][0]["allocation"].append("I2, tl")
    described["memories"]["sram_256KB"]["ports"][1]["allocation"].append("I2, fh")
    system = read(tmp_path, connected(2, ["0, 1"]), small=described, dram=offchip())
    assert system_area(system).mm2 == pytest.approx(2 * (area.mm2 + 0.5))
    assert system_area(system).note == "not counted, no area given: small: cells, rf_1B, rf_2B"
