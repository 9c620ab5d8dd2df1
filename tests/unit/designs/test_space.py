"""Spaces of designs: values and hardware file of each index, and back."""

import copy
import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tilewright.designs.space import Space
from tilewright.designs.space_reader import read_space
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.pipeline.sources import parse_accelerator

from tests.unit.designs.space_cases import BASE, COLUMNS, ROWS, SIZE, file_of, space_of

DATA = yaml.safe_load(BASE.read_text())


def test_every_design_of_a_small_space() -> None:
    """The last axis varies fastest, and laws and paths set exactly what they name."""
    space = space_of(
        axes={"rows": {"path": ROWS, "values": [8, 16]}, "sram_kib": {"from": 32, "to": 128, "factor": 2}},
        laws={"sram_area": "0.0012 * sram_kib + 0.05", SIZE: "sram_kib * 8192", "memories.sram.area": "sram_area"},
        constraints=["rows * sram_kib <= 1024", "area_mm2 <= 2"],
    )
    assert len(space) == 6
    assert space.value_names == ("rows", "sram_kib", "sram_area")
    designs = [space.design(index) for index in range(6)]
    assert [(design.values["rows"], design.values["sram_kib"]) for design in designs] == [
        *((8, 32), (8, 64), (8, 128), (16, 32), (16, 64), (16, 128))
    ]
    assert [design.excluded_by for design in designs] == ["", "", "", "", "", "rows * sram_kib <= 1024"]
    assert (space.count_allowed(), space.first_allowed()) == (5, 0)
    for design in designs:
        assert list(design.values) == list(space.value_names)
        wanted = copy.deepcopy(DATA)
        wanted["operational_array"]["sizes"][0] = design.values["rows"]
        wanted["memories"]["sram"] |= {"size": design.values["sram_kib"] * 8192, "area": design.values["sram_area"]}
        assert design.hardware == wanted
        assert read_accelerator(design.hardware).cores
    assert space.base == DATA, "making a design changed the base"
    assert [space.design_name(index) for index in (0, 5)] == ["space-0", "space-5"]
    for index in (-1, 6):
        with pytest.raises(IndexError):
            space.design(index)
        with pytest.raises(IndexError):
            space.design_name(index)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_indices_are_combinations(sizes: list[int], data: st.DataObject) -> None:
    """Index and values are inverse to each other, in the order of itertools.product."""
    paths = (ROWS, COLUMNS, SIZE, "memories.sram.r_cost")
    axes = {
        f"axis{place}": {"path": path, "values": list(range(1, size + 1))}
        for place, (size, path) in enumerate(zip(sizes, paths, strict=False))
    }
    space = space_of(axes=axes)
    combinations = list(itertools.product(*(range(1, size + 1) for size in sizes)))
    assert len(space) == len(combinations)
    for index in data.draw(st.permutations(range(len(space)))):
        design = space.design(index)
        assert (design.index, tuple(design.values.values())) == (index, combinations[index])
        assert design == space.design(index)
        assert space.index_of(space.positions(index)) == index


@given(st.sets(st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 3)), max_size=20))
def test_sheet_and_grid_agree(chosen: set[tuple[int, int, int]]) -> None:
    """A design of a sheet equals the design of a grid with the same values, and counts are those of the designs."""
    limits = {
        "laws": {"units": "rows * columns", "memories.sram.r_cost": "100 / cost"},
        "constraints": ["units <= 300", "cost * rows < 60"],
    }
    by_steps = {"from": 1, "to": 40, "step": 1}
    axes = {
        "rows": {"path": ROWS} | by_steps,
        "columns": {"path": COLUMNS} | by_steps,
        "cost": {"values": [0, 1, 2, 3]},
    }
    grid = space_of(axes=axes, **limits)
    rows = [(1, 1, 1), *sorted(chosen - {(1, 1, 1)})]
    sheet = sheet_of(rows, limits)
    assert len(sheet) == len(rows)
    of_grid = [grid.design((a - 1) * 160 + (b - 1) * 4 + c) for a, b, c in rows]
    assert [replace(sheet.design(index), index=0) for index in range(len(rows))] == [
        replace(design, index=0) for design in of_grid
    ]
    assert [sheet.index_of(sheet.positions(index)) for index in range(len(rows))] == [*range(len(rows))]
    listed = {sheet.positions(index) for index in range(len(rows))}
    combinations = itertools.product(*(range(len(axis.values)) for axis in sheet.axes))
    assert {positions for positions in combinations if sheet.index_of(positions) is not None} == listed
    assert sheet.count_allowed() == sum(not design.problem and not design.excluded_by for design in of_grid)


def sheet_of(rows: list[tuple[int, int, int]], limits: dict[str, Any]) -> Space:
    """Return a space whose designs are rows of a sheet."""
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "designs.tsv"
        sheet.write_text("rows\tcolumns\tcost\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows))
        axes = {"rows": {"path": ROWS}, "columns": {"path": COLUMNS}, "cost": {}}
        return space_of(axes=axes, designs=str(sheet), **limits)


def test_counts_are_those_of_the_designs() -> None:
    """The counts of excluded and invalid designs, and the first allowed design, equal those of all designs."""
    space = space_of(
        axes={
            "rows": {"path": ROWS, "values": [4, 8, 16, 32]},
            "columns": {"path": COLUMNS, "values": [4, 8, 16]},
            "word": {"values": [0, 1, 2]},
            "unused_here": {"path": SIZE, "values": [1024, 2048]},
        },
        laws={"per_word": "64 / word", "units": "rows * columns", "memories.sram.r_cost": "per_word + units"},
        constraints=["units >= 64", "per_word < 64 or units > 128", "energy_pj < 3"],
    )
    designs = [space.design(index) for index in range(len(space))]
    allowed = [design.index for design in designs if not design.excluded_by and not design.problem]
    assert 0 < len(allowed) < len(space)
    assert (space.count_allowed(), space.first_allowed()) == (len(allowed), allowed[0])
    broken = [design for design in designs if design.problem]
    assert {design.problem for design in broken} == {"per_word: division by zero"}
    assert all(design.values["word"] == 0 and design.hardware == {} for design in broken)
    assert all("per_word" not in design.values and "units" in design.values for design in broken)
    assert len(broken) == len(space) // 3
    assert (
        space.size_text()
        == f"72 designs, of which {len(allowed)} meet the constraints checked before evaluation, on 1 network"
    )


def test_choices_set_whole_tables() -> None:
    """A choice sets whole tables and new keys, and other keys stay as they are."""
    port = {
        "name": "p",
        "type": "read_write",
        "bandwidth_min": 8,
        "bandwidth_max": 8,
        "allocation": ["I2, tl", "I2, fh"],
    }
    space = space_of(
        axes={
            "registers": {
                "choices": {
                    "as_is": {},
                    "doubled": {"memories.sram.force_double_buffering": True, SIZE: "1 MiB"},
                    "other": {"memories.weight_register.ports": [port]},
                }
            },
            "read_bits": {"path": ["memories.sram.ports.r_port_1.bandwidth_max"], "values": [128, 256]},
        },
        laws={"is_other": "registers == 'other'", "memories.weight_register.r_cost": "0.03 if is_other else 0.02"},
    )
    designs = [space.design(index) for index in range(6)]
    assert designs[0].values == {"registers": "as_is", "read_bits": 128, "is_other": False}
    sram = [design.hardware["memories"]["sram"] for design in designs]
    assert [memory["size"] for memory in sram] == ["128 KiB", "128 KiB", "1 MiB", "1 MiB", "128 KiB", "128 KiB"]
    assert [memory["ports"][0]["bandwidth_max"] for memory in sram] == [128, 256] * 3
    assert [memory.get("force_double_buffering") for memory in sram] == [None, None, True, True, None, None]
    registers = [design.hardware["memories"]["weight_register"] for design in designs]
    assert [len(memory["ports"]) for memory in registers] == [2, 2, 2, 2, 1, 1]
    assert [memory["r_cost"] for memory in registers] == [0.02] * 4 + [0.03] * 2


def test_whole_numbers_of_laws() -> None:
    """A law with a whole result sets a whole number in hardware; tables keep the computed number."""
    space = space_of(axes={"units": {"values": [64, 96]}}, laws={"side": "units / 4", ROWS: "side"})
    rows = [space.design(index).hardware["operational_array"]["sizes"][0] for index in range(2)]
    assert [(value, type(value)) for value in rows] == [(16, int), (24, int)]
    assert type(space.design(0).values["side"]) is float


@pytest.mark.parametrize(
    ("results", "unmet"),
    [
        ({"area_mm2": 2.0, "latency_cycles": 10}, ""),
        ({"area_mm2": 2.1, "latency_cycles": 10}, "area_mm2 <= 2"),
        ({"area_mm2": 2.0, "latency_cycles": 900}, "latency_cycles * rows < 5000"),
        ({"area_mm2": 2.1, "latency_cycles": 900}, "area_mm2 <= 2; latency_cycles * rows < 5000"),
        ({"latency_cycles": 10}, "area_mm2 <= 2: area_mm2 is not known"),
        ({"area_mm2": float("nan"), "latency_cycles": 10}, "area_mm2 <= 2"),
        ({"area_mm2": 2.0, "latency_cycles": 10, "energy_pj": 0}, ""),
    ],
)
def test_constraints_on_results(results: dict[str, float], unmet: str) -> None:
    """Unmet constraints on results are listed; a missing result meets no constraint."""
    space = space_of(
        axes={"rows": {"path": ROWS, "values": [8]}},
        constraints=["rows <= 8", "area_mm2 <= 2", "latency_cycles * rows < 5000"],
    )
    assert space.unmet(space.design(0).values, results) == unmet


def test_a_constraint_that_cannot_be_computed() -> None:
    """A constraint that cannot be computed makes a design invalid before its evaluation, and unmet after it."""
    space = space_of(
        axes={"rows": {"path": ROWS, "values": [8, 16]}},
        constraints=["16 / (rows - 8) < 4", "1 / (energy_pj - 3) > 0"],
    )
    assert space.design(0).problem == "16 / (rows - 8) < 4: division by zero"
    assert space.design(1).problem == ""
    assert space.unmet({"rows": 16}, {"energy_pj": 3.0}) == "1 / (energy_pj - 3) > 0: division by zero"


def test_what_a_space_says_beside_its_designs(tmp_path: Path) -> None:
    """A space has defaults for name, objectives and options; paths start at the folder of its file."""
    space = space_of(axes={"rows": {"path": ROWS, "from": 1, "to": 100, "step": 1}})
    assert (space.name, space.file, space.mapping, space.shard_designs) == ("space", "", None, None)
    assert space.objectives == ("energy_pj", "latency_cycles", "area_mm2")
    assert (space.options.model, space.options.exploit_data_locality, space.options.lpf_limit) == ("corrected", True, 6)
    assert [space.design_name(index) for index in (0, 99)] == ["space-000", "space-099"]
    (tmp_path / "net.onnx").write_bytes(b"")
    (tmp_path / "base.yaml").write_text(BASE.read_text())
    (tmp_path / "map.yaml").write_text("- {name: default, spatial_mapping: {D1: ['K, 4']}}\n")
    text = """
        name: mine
        accelerator: base.yaml
        mapping: map.yaml
        networks: {small: net.onnx, big: net.onnx}
        axes: {rows: {path: operational_array.sizes.0, values: [4]}}
        objectives: [edp_pj_cycles]
        options: {model: zigzag-3.9.1, objective: energy}
        shard_designs: 7
    """
    mine = read_space(file_of(tmp_path, text))
    assert [(network.name, network.file) for network in mine.networks] == [
        *(("small", tmp_path / "net.onnx"), ("big", tmp_path / "net.onnx"))
    ]
    assert (mine.name, mine.mapping, mine.shard_designs) == ("mine", tmp_path / "map.yaml", 7)
    assert mine.objectives == ("edp_pj_cycles",)
    assert (mine.options.model, mine.options.objective) == ("zigzag-3.9.1", "energy")
    assert mine.options.exploit_data_locality


def test_the_base_may_stand_in_the_file(tmp_path: Path) -> None:
    """A base accelerator written inside the file of the space gives the same designs as one in its own file."""
    axes = {"rows": {"path": ROWS, "values": [8, 16]}}
    inside = space_of(axes=axes, accelerator=copy.deepcopy(DATA))
    assert inside.design(1) == space_of(axes=axes).design(1)
    assert read_space(file_of(tmp_path, "name: it", accelerator=DATA, axes=axes)).design(1) == inside.design(1)


def test_several_cores_can_be_read() -> None:
    """A base of several cores is read with its core files, and numbers may be keys."""
    base = BASE.parents[1] / "multi" / "quad_core.yaml"
    space = space_of(accelerator=str(base), axes={"name": {"path": "name", "values": ["a", "b"]}})
    assert [space.design(index).hardware["name"] for index in range(2)] == ["a", "b"]
    assert space.base["cores"] == dict.fromkeys(range(4), "k16_c16") | {4: "pooling", 5: "simd"}
    assert list(space.base["core_files"]) == ["k16_c16", "pooling", "simd", "offchip"]
    assert parse_accelerator(space.design(0).hardware | {"name": "quad_core"}) == parse_accelerator(base)


def test_a_space_of_a_million_designs_is_read_at_once() -> None:
    """A space of a million designs is read at once, and conditions are counted over the axes that they name."""
    axes = {f"a{place}": {"from": 1, "to": 10, "step": 1} for place in range(6)}
    laws = {SIZE: "8192 * (a0 + a1 + a2)", "memories.sram.r_cost": "a3 + a4 + a5"}
    space = space_of(axes=axes, laws=laws, constraints=["a0 + a1 <= 10", "a5 * a0 != 10"])
    assert len(space) == 10**6
    assert space.first_allowed() == 0
    late = space_of(axes=axes, laws=laws, constraints=["a0 * a3 >= 50", "a4 != 1"])
    first = late.first_allowed()
    assert first is not None
    assert late.design(first).values == {"a0": 5, "a1": 1, "a2": 1, "a3": 10, "a4": 2, "a5": 1}
    assert space.design(10**6 - 1).excluded_by == "a0 + a1 <= 10"
    assert space.design(123456).values == {f"a{place}": place + 2 for place in range(6)}
