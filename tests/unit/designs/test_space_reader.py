"""Faults in the file of a space: all are reported at once, each with its line."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.designs.space_reader import read_space

from tests.unit.designs.space_cases import BASE, COLUMNS, NETWORK, ROWS, SIZE, file_of, problems_of, told

RIGHT = {
    "axes": f"axes: {{rows: {{path: {ROWS}, values: [4, 8]}}, kib: {{from: 32, to: 64, factor: 2}}}}\n",
    "laws": f"laws: {{mm2: kib * 0.01, {SIZE}: kib * 8192}}\n",
    "constraints": "constraints: [rows * kib < 512, area_mm2 <= 2]\n",
}


def text_with(**parts: str) -> str:
    """Return the text of a correct space with some parts replaced."""
    return "".join((RIGHT | {key: f"{key}: {part}\n" for key, part in parts.items()}).values())


def test_the_text_of_these_tests_is_right(tmp_path: Path) -> None:
    """The text of these tests is correct, so each problem belongs to the replaced part."""
    assert len(read_space(file_of(tmp_path, text_with()))) == 4


def test_a_wrong_value_of_the_base_that_an_axis_replaces_is_told(tmp_path: Path) -> None:
    """A wrong value of the base that an axis replaces gets a notice with its file and path."""
    base = yaml.safe_load(BASE.read_text())
    base["memories"]["sram"]["size"] = "2 MiiB"
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    axes = "{ room: { path: memories.sram.size, values: [1 MiB, 2 MiB] } }"
    parts = {"accelerator": "base.yaml", "axes": axes, "laws": "{}", "constraints": "[]"}
    notices: list[str] = []
    read_space(file_of(tmp_path, text_with(**parts)), notices)
    assert len(notices) == 1
    assert "base.yaml" in notices[0]
    assert "memories.sram.size: unknown unit" in notices[0]
    assert "no effect, because the space sets another value" in notices[0]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"name": "a/b"}, "name: not a name, got 'a/b'"),
        ({"nmae": "a"}, "nmae: unknown key (did you mean 'name'?)"),
        ({"accelerator": "nothing.yaml"}, "accelerator: no such file"),
        ({"accelerator": "3"}, "accelerator: must be text"),
        ({"mapping": "nothing.yaml"}, "mapping: no such file"),
        ({"networks": "[]"}, "networks: too few items"),
        ({"networks": "{}"}, "networks: too few items"),
        ({"networks": "[nothing.onnx]"}, "networks[0]: no such file"),
        ({"networks": f"[{NETWORK}, {NETWORK}]"}, "networks[1]: two networks have this name"),
        ({"networks": f"{{a b: {NETWORK}}}"}, "networks.a b"),
        ({"objectives": "[]"}, "objectives: too few items"),
        ({"objectives": "[energy]"}, "objectives[0]: not one of the known values, got 'energy'"),
        ({"objectives": "[energy_pj, energy_pj]"}, "objectives[1]: repeats an earlier value of the list"),
        ({"options": "{lpf_limt: 3}"}, "options.lpf_limt: no such setting (did you mean 'lpf_limit'?)"),
        ({"options": "{lpf_limit: 0}"}, "options.lpf_limit: not a count, got 0"),
        ({"options": "{model: correct}"}, "(did you mean 'corrected'?)"),
        (
            {"options": "{allocation: free}"},
            "options.allocation: is possible only with temporal_mapping_search_engine exact",
        ),
        ({"shard_designs": "0"}, "shard_designs: must be greater than 0"),
    ],
)
def test_beside_the_designs(parts: dict[str, str], said: str, tmp_path: Path) -> None:
    """Wrong names, files, networks, objectives and options are refused with their line."""
    found = told(tmp_path, text_with(**parts))
    assert len(found) == 1
    assert said in found[0]
    assert found[0].startswith("4 "), "the message does not begin with line 4"


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (
            "{path: operational_aray.sizes.0, values: [4]}",
            "axes.x.path: 'operational_aray.sizes.0': the base file has no such key",
        ),
        ("{path: operational_array.sizes.2, values: [4]}", "got '2' (allowed: 0, 1)"),
        (
            "{path: [name, memories.srm.size], values: [4]}",
            "axes.x.path[1]: 'memories.srm.size': the base file has no such",
        ),
        ("{path: 3, values: [4]}", "axes.x.path: must be a dotted path"),
        ("{path: name}", "axes.x: has no values (allowed: `values`, `choices`, or `from`"),
        ("{path: name, from: null, to: 3, factor: 2}", "axes.x: has no values"),
        ("{path: name, values: null}", "axes.x: has no values"),
        ("{path: name, values: []}", "axes.x.values: too few items"),
        ("{path: name, values: [4, 8, 4]}", "axes.x.values[2]: repeats an earlier value of the list, got 4"),
        ("{path: name, values: [4, null]}", "axes.x.values[1]: must be a number, text, true or false"),
        ("{path: name, values: [4, [5]]}", "axes.x.values[1]: must be a number, text, true or false"),
        ("{path: name, values: [.nan]}", "axes.x.values[0]: must be a finite number"),
        ("{path: name, values: [4], from: 3}", "axes.x.from: belongs to a range and cannot be combined with `values`"),
        ("{path: name, from: 3, factor: 2}", "axes.x: a range needs `to`"),
        ("{path: name, to: 3, factor: 2}", "axes.x: a range needs `from`"),
        ("{path: name, from: 3, to: 9}", "axes.x: a range needs one of `factor` and `step`"),
        ("{path: name, from: 3, to: 9, factor: 2, step: 2}", "axes.x: a range needs one of `factor` and `step`"),
        ("{path: name, from: 9, to: 3, factor: 2}", "axes.x: `to` is below `from`: the range is empty"),
        ("{path: name, from: 3, to: 9, factor: 1}", "axes.x: factor must be greater than 1"),
        ("{path: name, from: 3, to: 9, step: 0}", "axes.x: step must be greater than 0"),
        ("{path: name, from: a, to: 9, step: 1}", "axes.x.from: must be a number, got 'a'"),
        ("{path: name, form: 3, to: 9, step: 1}", "axes.x.form: unknown key (did you mean 'from'?)"),
        ("{choices: {}}", "axes.x.choices: too few items"),
        ("{choices: {a: 3}}", "axes.x.choices.a: must be a table of keys"),
        ("{choices: {a: {memories.srm.size: 3}}}", "axes.x.choices.a.memories.srm.size: 'memories.srm.size': the base"),
        (
            "{choices: {a: {}}, path: name}",
            "axes.x.path: cannot be combined with `choices`, which already name the values that they set",
        ),
        (
            "{choices: {a: {}}, values: [3]}",
            "axes.x.values: cannot be combined with `choices`, which already name the values that they set",
        ),
        (
            "{choices: {a: {memories.sram: {}, memories.sram.area: 3}}}",
            "conflicts with axes.x.choices.a.memories.sram: both set",
        ),
        ("{values: [3]}", "axes.x: nothing uses this axis"),
        (f"{{path: {ROWS}, values: [3]}}", "axes.x.path: conflicts with axes.rows.path: both set the same value"),
        (
            "{path: operational_array.sizes, values: [3]}",
            "axes.x.path: conflicts with axes.rows.path: both set the same value",
        ),
        ("{path: [name, name], values: [3]}", "axes.x.path[1]: conflicts with axes.x.path[0]: both set the same value"),
    ],
)
def test_an_axis(axis: str, said: str, tmp_path: Path) -> None:
    """An axis with a wrong path, list, range or choice, or a value that is set twice, is refused with its line."""
    axes = f"\n  rows: {{path: {ROWS}, values: [4, 8]}}\n  kib: {{values: [4]}}\n  x: {axis}"
    found = told(tmp_path, text_with(axes=axes))
    assert any(said in message and message.startswith("4 ") for message in found), found


@pytest.mark.parametrize("name", ["min", "if", "_x", "a-b", "area_mm2", "design", "network", "3"])
def test_names_that_axes_and_laws_cannot_have(name: str, tmp_path: Path) -> None:
    """Words of expressions and names of columns are refused as names of axes and laws."""
    axes = f"{{rows: {{path: {ROWS}, values: [4]}}, kib: {{values: [4]}}, '{name}': {{path: {COLUMNS}, values: [4]}}}}"
    assert any(f"axes.{name}: " in message for message in told(tmp_path, text_with(axes=axes)))
    laws = f"{{mm2: kib, '{name}': 3}}"
    assert any(f"laws.{name}: " in message for message in told(tmp_path, text_with(laws=laws)))


@pytest.mark.parametrize(
    ("laws", "said"),
    [
        ("{x: kib +}", "laws.x: is no expression, got 'kib +'"),
        ("{x: kib.real}", "laws.x: a dot after a name is not possible"),
        (
            "{x: lg2(kib)}",
            "laws.x: no function 'lg2', got 'lg2(kib)' (allowed: abs, ceil, floor, log2, max, min, sqrt) (did",
        ),
        ("{x: kb + 1}", "laws.x: no axis, law or result has this name, got 'kb'"),
        ("{x: y, y: kib}", "laws.x: 'y' is not defined yet: it is this law or a later law; a law can use only"),
        ("{x: x}", "laws.x: 'x' is not defined yet"),
        ("{x: energy_pj}", "laws.x: 'energy_pj' is a result and is known only after evaluation"),
        ("{x: [3]}", "laws.x: must be a number, text, true or false"),
        ("{rows: 3}", "laws.rows: is the name of an axis"),
        (
            "{memories.srm.size: kib}",
            "laws.memories.srm.size: 'memories.srm.size': the base file has no such key, got 'srm'",
        ),
        (f"{{{ROWS}: kib}}", f"laws.{ROWS}: conflicts with axes.rows.path: both set the same value"),
        (
            "{memories.sram: 3, memories.sram.size: 3}",
            "laws.memories.sram.size: conflicts with laws.memories.sram: both set the same value",
        ),
        (
            "{x: 1 / (kib - kib)}",
            "laws: none of the 4 designs can be evaluated; reason for the first design: x: division by zero",
        ),
    ],
)
def test_a_law(laws: str, said: str, tmp_path: Path) -> None:
    """A wrong law is refused: syntax, names, order, paths, and laws without a value for any design."""
    found = told(tmp_path, RIGHT["axes"] + f"laws: {laws}\n")
    assert any(said in message for message in found), found


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ("rows * kib", "constraints[0]: is not a comparison"),
        ("rws < 3", "constraints[0]: no axis, law or result has this name, got 'rws'"),
        ("area_mm < 3", "(did you mean 'area_mm2'?)"),
        ("rows << 3", "constraints[0]: << is not possible"),
        (
            "rows > 99",
            "constraints: none of the 4 designs can be evaluated; reason for the first design: does not meet rows > 99",
        ),
    ],
)
def test_a_constraint(constraint: str, said: str, tmp_path: Path) -> None:
    """A wrong constraint is refused: syntax, names, and constraints that no design meets."""
    found = told(tmp_path, text_with(constraints=f"['{constraint}']"))
    assert any(said in message for message in found), found
    assert len(found) == 1


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"laws": "{memories.sram.sise: kib}"},
            "5 laws.memories.sram.sise: memories.sram.sise of design it-0: unknown key (did you mean 'size'?)",
        ),
        (
            {"laws": "{memories.sram.r_cost: -kib}"},
            "5 laws.memories.sram.r_cost: memories.sram.r_cost of design it-0: must not be negative, got -32",
        ),
        (
            {"laws": "{x: kib}", "axes": f"{{rows: {{path: {ROWS}, values: [0]}}, kib: {{values: [3]}}}}"},
            "4 axes.rows.path: operational_array.sizes[0] of design it-0: must be greater than 0, got 0",
        ),
        (
            {
                "laws": "{x: kib}",
                "axes": "{rows: {choices: {a: {memories.sram.size: 2 KB}, b: {}}}, kib: {values: [3]}}",
                "constraints": "[]",
            },
            "4 axes.rows.choices.a.memories.sram.size: memories.sram.size of design it-0: unknown unit 'KB'",
        ),
    ],
)
def test_the_first_design(parts: dict[str, str], said: str, tmp_path: Path) -> None:
    """A fault of the first design is reported where the file of the space sets it."""
    text = "".join(
        f"{key}: {part}\n" for key, part in ({key: RIGHT[key][len(key) + 2 :].strip() for key in RIGHT} | parts).items()
    )
    found = told(tmp_path, "name: it\nshard_designs: 4\n\n" + text)
    assert len(found) == 1
    assert found[0].startswith(said)


def test_what_is_wrong_with_the_base_is_told_there(tmp_path: Path) -> None:
    """A fault of the base is reported with its line there, and so is a base of another kind."""
    (tmp_path / "base.yaml").write_text(BASE.read_text().replace("unit_energy: 0.23", "unit_energy: -1"))
    (one,) = problems_of(file_of(tmp_path, text_with(accelerator="base.yaml")))
    line = next(n for n, text in enumerate(BASE.read_text().splitlines(), 1) if "unit_energy" in text)
    assert (one.file, one.line, one.path) == (str(tmp_path / "base.yaml"), line, "operational_array.unit_energy")
    (tmp_path / "base.yaml").write_text("- name: default\n")
    (one,) = problems_of(file_of(tmp_path, text_with(accelerator="base.yaml")))
    assert "seems to be a mapping file, but a hardware file is needed" in str(one)


def test_what_a_design_makes_wrong_in_the_base(tmp_path: Path) -> None:
    """A value that contradicts the base is reported with the line of the base and the design."""
    bits = "memories.sram.ports.r_port_1.bandwidth_max"
    (one,) = problems_of(file_of(tmp_path, f"axes: {{bits: {{path: {bits}, values: [32]}}}}\n"))
    assert (one.file, one.path) == (str(BASE), "memories.sram.ports.r_port_1.bandwidth_min")
    assert one.message == "is greater than bandwidth_max (32 bits per cycle), in design it-0"


def test_what_is_wrong_with_a_base_inside(tmp_path: Path) -> None:
    """A fault of a base inside the space has its path and line in the file of the space."""
    text = "accelerator:\n  name: x\n  memories: {}\n" + 'axes: {x: {path: name, values: ["a"]}}\n'
    found = told(tmp_path, text)
    assert any(message.startswith("3 accelerator.memories: too few items") for message in found), found


def test_the_mapping_is_read_too(tmp_path: Path) -> None:
    """Faults of the mapping file are reported, also those against the core of the first design."""
    (tmp_path / "map.yaml").write_text("- {name: default, spatial_maping: {}}\n")
    (one,) = problems_of(file_of(tmp_path, text_with(mapping="map.yaml")))
    assert "did you mean 'spatial_mapping'" in str(one)
    (tmp_path / "map.yaml").write_text("- {name: default, spatial_mapping: {D7: ['K, 4']}}\n")
    (one,) = problems_of(file_of(tmp_path, text_with(mapping="map.yaml")))
    assert "core systolic has no such array dimension, got 'D7'" in str(one)


def test_a_fixed_mapping_of_arrays_that_vary(tmp_path: Path) -> None:
    """A fixed spatial mapping for a varying array gets a notice."""
    text = "- {name: default, spatial_mapping: {D1: ['K, 4']}}\n"
    (tmp_path / "map.yaml").write_text(text)
    notices: list[str] = []
    path = file_of(tmp_path, text_with(mapping="map.yaml"))
    read_space(path, notices)
    assert notices == [
        f"{path}:4 mapping: fixes the factors of spatial mappings, but axes.rows.path can set larger arrays, whose "
        "further units then stay unused; without spatial_mapping in the mapping file, the search fills each array"
    ]
    (tmp_path / "map.yaml").write_text("- {name: default}\n")
    notices.clear()
    read_space(path, notices)
    assert notices == []


def test_everything_at_once(tmp_path: Path) -> None:
    """All faults are reported together, in the order of lines."""
    text = f"""
        name: a b
        mapping: nothing.yaml
        networks: [nothing.onnx]
        axes:
          rows: {{path: {ROWS}, values: [4, 4]}}
          kib: {{from: 4, to: 2, factor: 2}}
          memory: {{choices: {{a: {{memories.srm.size: 3}}}}}}
        laws:
          x: kib +
          memories.sram.size: kb
        constraints: [rows]
        objectives: [speed]
        options: {{lpf_limit: 0, objectiv: energy}}
        shard_designs: -1
    """
    found = told(tmp_path, text)
    assert [int(message.partition(" ")[0]) for message in found] == [1, 2, 3, 5, 6, 7, 9, 10, 12, 13, 13, 14]


def test_what_axes_set_is_checked_beside_other_mistakes(tmp_path: Path) -> None:
    """Values that axes set are checked even if other parts of the file are wrong."""
    text = f"""
        bits: 16
        axes:
          rows: {{path: {ROWS}, values: [4], to: 3}}
          room: {{path: memories.sram.sizes, values: [1 MiB]}}
          clock: {{path: clock_frequency, values: [600 MHzz]}}
          kind: {{choices: {{a: {{memories.sram.sise: 1 MiB}}}}}}
        constraints: [area <= 3]
    """
    found = told(tmp_path, text)
    assert [int(message.partition(" ")[0]) for message in found] == [1, 3, 4, 5, 6, 7]
    sizes = "memories.sram.sizes: unknown key here: 'sizes' belongs to `operational_array` (did you mean 'size'?)"
    assert f"axes.room.path: {sizes}" in found[2]
    assert "axes.clock.path: clock_frequency: unknown unit 'MHzz'" in found[3]
    assert "memories.sram.sise: unknown key (did you mean 'size'?)" in found[4]


@pytest.mark.parametrize("constraint", ["", "constraints: [area <= 3]"])
def test_further_values_are_checked_beside_other_mistakes(constraint: str, tmp_path: Path) -> None:
    """A wrong key of the first design hides no wrong value of another axis; each value has one message."""
    text = f"""
        {constraint}
        axes:
          room: {{path: memories.sram.sizes, values: [1 MiB, 2 MiB]}}
          clock: {{path: clock_frequency, values: [600 MHz, 700 MHzz, 800 GHzz]}}
    """
    found = told(tmp_path, text)
    said = " ".join(found)
    assert len(found) == 3 + bool(constraint)
    assert "memories.sram.sizes" in said
    assert "clock_frequency with 700 MHzz: unknown unit 'MHzz'" in said
    assert "clock_frequency with 800 GHzz: unknown unit 'GHzz'" in said


def test_keys_that_stand_twice(tmp_path: Path) -> None:
    """Two axes of one name are refused."""
    found = told(tmp_path, f"axes:\n  rows: {{path: {ROWS}, values: [4]}}\n  rows: {{path: {ROWS}, values: [8]}}\n")
    assert found == ["3 axes.rows: the key is given twice: rename or remove one"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "has neither `axes` nor `designs`"),
        ({"designs": None, "name": None}, "has neither `axes` nor `designs`"),
        (
            {"axes": {f"a{n}": {"from": 1, "to": 1000, "step": 1} for n in range(3)}},
            "1,000,000,000 designs are too many",
        ),
    ],
)
def test_numbers_of_designs(keys: dict[str, Any], said: str) -> None:
    """Spaces without designs and with too many designs are refused."""
    laws = {"memories.sram.r_cost": "a0 + a1 + a2"} if "axes" in keys else {}
    with pytest.raises(InputError) as raised:
        read_space({"accelerator": str(BASE), "networks": [str(NETWORK)], "laws": laws} | keys)
    assert said in str(raised.value)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate` prints the number of designs; a wrong space ends with exit code 2."""
    path = file_of(tmp_path, text_with())
    assert main(["validate", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{path}: space, no problems\n"
    assert (
        said.err
        == f"note: {path}: 4 designs, of which 3 meet the constraints checked before evaluation, on 1 network\n"
    )
    assert main(["validate", str(file_of(tmp_path, text_with(laws="{x: y}")))]) == 2
    assert "laws.x" in capsys.readouterr().err
