"""Families: designs that differ only in figures, and the meaning of the numbers in their files."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.designs.families import MOST_MEMBERS, Families, Figure, figure_of
from tilewright.designs.pricing import FigureReader, members_of
from tilewright.designs.space import Space
from tilewright.designs.space_reader import read_space

from tests.unit.designs.front_cases import front_space
from tests.unit.designs.space_cases import COLUMNS, ROWS, SIZE, space_of
from tests.unit.designs.system_cases import system_space

AXES = {
    "rows": {"path": ROWS, "values": [8, 16]},
    "mac": {"path": "operational_array.unit_energy", "values": [0.1, 0.2, 0.3]},
    "columns": {"path": COLUMNS, "values": [8, 16]},
    "read": {"path": "memories.sram.r_cost", "values": [10, 20]},
    "kib": {"values": [1, 2]},
    "memory": {"choices": {"a": {"memories.sram.area": 1}, "b": {"memories.sram.area": 2}}},
    "other": {"choices": {"a": {"memories.dram.area": 1}, "b": {"memories.sram.w_cost": 2}}},
}


def frame_of(space: Space, index: int) -> str:
    """Return the core of a design without figures, and its sizes."""
    accelerator = FigureReader(space.base).whole(space.outline(index).settings)
    (core,) = accelerator.cores
    return str((core.frame, [memory.size_bits for memory in core.memories]))


@settings(max_examples=30, deadline=None)
@given(st.sets(st.sampled_from(["rows", "mac", "columns", "read", "memory", "other"]), min_size=1), st.booleans())
def test_every_design_is_in_one_family_with_equal_frames(names: set[str], is_sized: bool) -> None:
    """Each design is in one family, and the cores of a family differ only in numbers such as energies."""
    axes = {name: axis for name, axis in AXES.items() if name in names or (name == "kib" and is_sized)}
    space = space_of(axes=axes, laws={SIZE: "kib * 8192"} if is_sized else {})
    families = Families(space)
    members = [index for family in families for index in family.members]
    assert sorted(members) == list(range(len(space)))
    for family in random.Random(0).sample(list(families), min(3, len(families))):
        assert list(family.members) == sorted(family.members)
        assert len({frame_of(space, index) for index in family.members}) == 1
    with pytest.raises(IndexError):
        families[len(families)]


def test_large_families_are_several() -> None:
    """A family has at most MOST_MEMBERS members."""
    values = [number / 10 for number in range(1, 71)]
    axes = {"mac": {"path": "operational_array.unit_energy", "values": values}}
    axes["read"] = {"path": "memories.sram.r_cost", "values": values}
    families = Families(space_of(axes=axes))
    assert len(families) == -(-70 * 70 // MOST_MEMBERS)
    assert sum(len(family.members) for family in families) == 70 * 70


def test_what_is_a_figure() -> None:
    """Members of a family can differ in unit energies, areas and word widths, but not in sizes or whole tables."""
    base = space_of(axes={"rows": AXES["rows"]}).base
    ports = ("memories", "sram", "ports", 0)
    assert figure_of(base, ("memories", "sram", "r_cost")) == Figure("read_energy_pj", "sram")
    assert figure_of(base, ("operational_array", "unit_area")) == Figure("unit_area_mm2")
    assert figure_of(base, (*ports, "bandwidth_max")) == Figure("bandwidth_max_bits", "sram", "r_port_1")
    for path in (("memories", "sram", "size"), (*ports, "bandwidth_min"), ("memories", "sram"), ports):
        assert figure_of(base, path) is None


def test_cores_are_those_of_their_hardware_files() -> None:
    """Cores of a family equal those of their hardware files, also for values with units or wrong values."""
    values = [0.5, "0.25 pJ", -1, "many", 2]
    space = read_space(
        front_space(
            axes={
                "mac": {"path": "operational_array.unit_energy", "values": [0.1, 0.2]},
                "read": {"path": "memories.sram.r_cost", "values": [1, 2]},
                "area": {"path": "memories.sram.area", "values": ["0.5 mm2", "100 um2", 0.25]},
            },
            laws={},
        )
    )
    reader = FigureReader(space.base)
    first = space.outline(0).settings
    core = reader.whole(first).cores[0]
    for index in range(len(space)):
        own = space.outline(index).settings
        assert reader.core(own, first, core) == reader.whole(own).cores[0]
    path = first[0][0]
    for value in values:
        own = ((path, value), *first[1:])
        try:
            expected = reader.whole(own).cores[0]
        except InputError:
            with pytest.raises(InputError):
                reader.core(own, first, core)
        else:
            assert reader.core(own, first, core) == expected


def test_a_word_that_is_narrow_for_one_family_is_not_for_another() -> None:
    """A word width that is valid in one family can be invalid in another."""
    port = "memories.sram.ports.{}.{}"
    axes = {
        "least": {
            "path": [port.format(name, "bandwidth_min") for name in ("r_port_1", "w_port_1")],
            "values": [64, 128],
        },
        "word": {
            "path": [port.format(name, "bandwidth_max") for name in ("r_port_1", "w_port_1")],
            "values": [128, 64],
        },
    }
    space = read_space(front_space(axes=axes, laws={}))
    reader, families = FigureReader(space.base), Families(space)
    found = [members_of(space, family, reader) for family in families]
    assert [members.indexes.tolist() for members in found] == [[0, 1], [2]]
    assert list(found[1].invalid) == [3]
    assert "bandwidth_min" in found[1].invalid[3]


def test_widths_of_a_compressed_memory_separate_families() -> None:
    """Port widths of a compressed memory separate families, because a narrow port can refuse the data."""
    port = "memories.{}.ports.{}.bandwidth_max"
    code = {"memories.sram.run_length": {"operands": ["I1"], "run_bits": 5, "pairs": 1, "word": 200}}
    widths = {
        "sram_bits": {"path": port.format("sram", "r_port_1"), "values": [64, 128]},
        "dram_bits": {"path": port.format("dram", "rw_port_1"), "values": [64, 128]},
    }
    for choices, count in (({"code": code, "plain": {}}, 4), (None, 1)):
        axes = widths if choices is None else {**widths, "data": {"choices": choices}}
        families = Families(space_of(axes=axes))
        assert len(families) == count
        for family in families:
            bits = {families.space.design(index).values["sram_bits"] for index in family.members}
            assert len(bits) == (1 if choices else 2)


def test_a_design_of_several_cores_is_in_no_family() -> None:
    """A base of one core refuses a design of several cores."""
    with pytest.raises(InputError, match="the base has one core, but the design has several cores"):
        FigureReader(system_space().base).whole(())
