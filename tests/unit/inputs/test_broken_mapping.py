"""Broken mapping files, and mappings that do not fit their core."""

from pathlib import Path

import pytest
from tilewright.hardware.core import Core, Memory, OperationalArray
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.file_checks import check_mapping_against_core
from tilewright.mapping.yaml_reader import read_mapping

from tests.unit.inputs.faults import check_fault

VALID = """\
- name: default
  spatial_mapping:
    D1:
      - K, 32
    D2:
      - C, 2
      - FX, 3
  memory_operand_links:
    O: O
    W: I2
    I: I1
- name: Add
  spatial_mapping:
  spatial_mapping_hint:
    D1: [G, k]
  temporal_ordering:
    - [OX, 112]
    - [OY, "*"]
    - ["*", "*"]
"""

CASES = {
    "no default": ("name: default", "name: Conv", "- name: Conv", "", ["`name: default` is required"]),
    "name twice": ("name: Add", "name: default", "- name: default", "[1].name", ["same name"]),
    "no name": ("- name: Add\n  spatial", "- spatial", "- spatial", "[1].name", ["required key is missing"]),
    "misspelt key": (
        "spatial_mapping_hint",
        "spatial_maping_hint",
        "  spatial_maping",
        "Add.spatial_maping_hint",
        ["'spatial_mapping_hint'"],
    ),
    "newest multi-core key": (
        "  temporal_ordering:\n",
        "  fused_groups:\n",
        "  fused_groups",
        "Add.fused_groups",
        ["unknown key"],
    ),
    "core": ("  temporal", "  core_allocation: [a]\n  temporal", "  core_", "Add.core_allocation[0]", ["whole number"]),
    "core twice": (
        "  temporal",
        "  core_allocation: [1, 1]\n  temporal",
        "  core_",
        "Add.core_allocation[1]",
        ["named twice"],
    ),
    "fixed without cores": (
        "  temporal",
        "  core_allocation_is_fixed: true\n  temporal",
        "  core_",
        "Add.core_allocation_is_fixed",
        ["needs a core_allocation"],
    ),
    "tiling without number": (
        "  temporal",
        "  intra_core_tiling: [OY]\n  temporal",
        "  intra",
        "Add.intra_core_tiling[0]",
        ["number of tiles", "OY, all"],
    ),
    "no tiles": (
        "  temporal",
        '  inter_core_tiling: ["K, 0"]\n  temporal',
        "  inter",
        "Add.inter_core_tiling[0]",
        ["1"],
    ),
    "open tiling within a core": (
        "  temporal",
        '  intra_core_tiling: ["K, *"]\n  temporal',
        "  intra",
        "Add.intra_core_tiling[0]",
        ["only in inter_core_tiling"],
    ),
    "shape of additions": (
        "  temporal",
        "  reduction: {shape: treee}\n  temporal",
        "  reduction",
        "Add.reduction.shape",
        ["one_core", "tree", "ring", "did you mean 'tree'"],
    ),
    "key of additions": (
        "  temporal",
        "  reduction: {cores: 3}\n  temporal",
        "  reduction",
        "Add.reduction.cores",
        ["did you mean 'core'"],
    ),
    "core of additions": (
        "  temporal",
        "  reduction: {core: -1}\n  temporal",
        "  reduction",
        "Add.reduction.core",
        ["-1"],
    ),
    "additions as text": (
        "  temporal",
        "  reduction: tree\n  temporal",
        "  reduction",
        "Add.reduction",
        ["must be a table"],
    ),
    "core of a ring": (
        "  temporal",
        "  reduction: {shape: ring, core: 1}\n  temporal",
        "  reduction",
        "Add.reduction.core",
        ["cannot be given for a ring", "one_core"],
    ),
    "array dimension": ("    D2:", "    X2:", "    X2", "default.spatial_mapping.X2", ["array dimension", "D1, D2"]),
    "factor zero": ("K, 32", "K, 0", "      - K, 0", "default.spatial_mapping.D1[0]", ["at least 1", "'K, 0'"]),
    "no factor": ("K, 32", "K", "      - K", "default.spatial_mapping.D1[0]", ["dimension and a factor", "'K, 32'"]),
    "part factor": ("K, 32", "K, 1.5", "      - K, 1.5", "default.spatial_mapping.D1[0]", ["dimension and a factor"]),
    "odd dimension": ("K, 32", "K_1, 2", "      - K_1", "default.spatial_mapping.D1[0]", ["dimension and a factor"]),
    "text, not list": (
        "    D1:\n      - K, 32",
        "    D1: K, 32",
        "    D1: K",
        "default.spatial_mapping.D1",
        ["must be a list"],
    ),
    "hint dimension": ("[G, k]", "[G, 3]", "    D1: [G, 3]", "Add.spatial_mapping_hint.D1[1]", ["must be text"]),
    "hint form": ("[G, k]", "['G, 3']", "    D1: ['G", "Add.spatial_mapping_hint.D1[0]", ["loop dimension", "OX"]),
    "link missing": ("    I: I1\n", "", "  memory_operand", "default.memory_operand_links.I", ["missing"]),
    "link target": ("W: I2", "W: I3", "    W: I3", "default.memory_operand_links.W", ["I1, I2, O", "'I3'"]),
    "link operand": ("W: I2", "w: I2", "    w: I2", "default.memory_operand_links.w", ["did you mean 'W'?"]),
    "links not one to one": (
        "W: I2",
        "W: O",
        "    W: O",
        "default.memory_operand_links.W",
        ["one to one", "operand O"],
    ),
    "ordering size": ("[OX, 112]", "[OX, 0]", "    - [OX, 0]", "Add.temporal_ordering[0]", ["at least 1", '"*"']),
    "ordering text": ("[OX, 112]", "[OX, all]", "    - [OX, all]", "Add.temporal_ordering[0]", ["at least 1"]),
    "ordering form": (
        "[OX, 112]",
        "OX",
        "    - OX",
        "Add.temporal_ordering[0]",
        ["must be a loop dimension and a size"],
    ),
    "gap with size": ('["*", "*"]', '["*", 4]', '    - ["*", 4]', "Add.temporal_ordering[2]", ["a gap has no size"]),
    "bare star": ('[OY, "*"]', "[OY, *]", "    - [OY, *]", "", ["not valid YAML", 'write "*" in quotes']),
}


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_told_where_and_how_to_mend_it(case: str, tmp_path: Path) -> None:
    """Each fault gives one problem at its path, with the line and a hint."""
    check_fault(CASES[case], VALID, tmp_path / "mapping.yaml", read_mapping)


def test_a_valid_mapping_reads_in_written_order(tmp_path: Path) -> None:
    """Array dimensions, unrollings, links, hints and orderings keep the order of the file."""
    file = tmp_path / "mapping.yaml"
    file.write_text(VALID)
    default, add = read_mapping(file).entries
    assert default.spatial_mapping == (("D1", (("K", 32),)), ("D2", (("C", 2), ("FX", 3))))
    assert default.memory_operand_links == (("O", "O"), ("W", "I2"), ("I", "I1"))
    assert add.spatial_mapping == ()
    assert add.spatial_mapping_hint == (("D1", ("G", "K")),)
    assert add.memory_operand_links == (("O", "O"), ("W", "I2"), ("I", "I1"))
    assert add.temporal_ordering == (
        TemporalOrderingEntry("OX", 112),
        TemporalOrderingEntry("OY", None),
        TemporalOrderingEntry("*", None),
    )


def test_the_order_of_links_is_the_written_one() -> None:
    """Operand links keep their order, which is the processing order of operands."""
    links = {"I": "I1", "O": "O", "W": "I2"}
    mapping = read_mapping([{"name": "default", "memory_operand_links": links}])
    assert mapping.entries[0].memory_operand_links == tuple(links.items())


def test_an_array_dimension_without_entries_stays_defined() -> None:
    """`D1: []` fixes D1 to no unrolling; a missing D1 is left to the search."""
    mapping = read_mapping([{"name": "default", "spatial_mapping": {"D1": []}}])
    assert mapping.entries[0].spatial_mapping == (("D1", ()),)


def test_of_a_repeated_dimension_the_last_counts() -> None:
    """The last of two factors for one dimension counts, with a notice."""
    notices: list[str] = []
    mapping = read_mapping([{"name": "default", "spatial_mapping": {"D1": ["K, 2", "C, 3", "K, 4"]}}], notices)
    assert mapping.entries[0].spatial_mapping == (("D1", (("K", 4), ("C", 3))),)
    assert len(notices) == 1


def small_core() -> Core:
    """Return a core with one array dimension and a memory without operand I2."""
    memory = Memory("m", 8, 1.0, 1.0, ("I1", "O"), (), ("D1",))
    return Core("small", OperationalArray((("D1", 4),), 1.0), (memory,))


def test_a_mapping_is_checked_against_its_core(tmp_path: Path) -> None:
    """Array dimensions and memory operands that the core lacks are reported with their lines."""
    file = tmp_path / "mapping.yaml"
    file.write_text(VALID)
    problems = check_mapping_against_core(read_mapping(file), small_core(), file)
    assert [(problem.line, problem.path) for problem in problems] == [
        (5, "default.spatial_mapping.D2"),
        (10, "default.memory_operand_links.W"),
        (12, "Add.memory_operand_links.W"),
    ]
    assert "D1" in str(problems[0])


def test_a_mapping_without_file_is_checked_too() -> None:
    """Mappings that are built from data are checked against the core too."""
    mapping = read_mapping([{"name": "default", "spatial_mapping": {"D3": ["K, 2"]}}])
    problems = check_mapping_against_core(mapping, small_core())
    assert [problem.path for problem in problems] == [
        "default.spatial_mapping.D3",
        "default.memory_operand_links.W",
    ]


def test_tilings_for_several_cores_are_read() -> None:
    """Tilings and core allocations in the form of 2025 are read."""
    entry = {
        "name": "default",
        "core_allocation": [2, 0],
        "core_allocation_is_fixed": True,
        "intra_core_tiling": ["oy, all", "OX,4"],
        "inter_core_tiling": ["K, *"],
        "layer_dimension_names": ["B", "K"],
    }
    [read] = read_mapping([entry]).entries
    assert (read.core_allocation, read.core_allocation_is_fixed) == ((2, 0), True)
    assert [(loop.dimension, loop.tiles) for loop in read.intra_core_tiling] == [("OY", "all"), ("OX", 4)]
    assert [(loop.dimension, loop.tiles) for loop in read.inter_core_tiling] == [("K", "*")]
    assert read.layer_dimension_names == ("B", "K")
