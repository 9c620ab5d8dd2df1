"""Broken hardware files: each problem has its file, line and path, and the allowed values."""

from pathlib import Path

import pytest
from tilewright.base.yamlfile import parse_yaml
from tilewright.hardware.yaml_reader import read_accelerator

from tests.unit.inputs.faults import check_fault, problems_in

VALID = """\
# A small core
name: small

memories:
  rf_I:
    size: 64
    r_cost: 0.1
    w_cost: 0.2
    area: 0
    latency: 1
    operands: [I1]
    ports:
      - name: r_port_1
        type: read
        bandwidth_min: 8
        bandwidth_max: 16
        allocation:
          - I1, tl
      - name: w_port_1
        type: write
        bandwidth_min: 8 b/cycle
        bandwidth_max: 2 B/cycle
        allocation:
          - I1, fh
    served_dimensions: []  # rf_I
  sram:
    size: 2 KiB
    r_cost: 10
    w_cost: 11 pJ
    mem_type: sram
    auto_cost_extraction: false
    operands: [I1, I2, O]
    ports:
      - name: rw_port_1
        type: read_write
        bandwidth_min: 64
        bandwidth_max: 128
        allocation: ["I1, tl", "I1, fh", "I2, tl", "I2, fh", "O, tl", "O, fl", "O, th", "O, fh"]
    served_dimensions: [D1, D2]  # sram

operational_array:
  unit_energy: 40 fJ
  unit_area: 1
  dimensions: [D1, D2]
  sizes: [4, 8]
  is_imc: false
"""

# (what is replaced, by what, start of the line that is blamed, path, parts of the message)
CASES = {
    "misspelt key": ("    size: 64", "    sizee: 64", "    sizee", "memories.rf_I.sizee", ["did you mean 'size'?"]),
    "unknown key": ("    latency: 1", "    colour: 1", "    colour", "memories.rf_I.colour", ["unknown key", "r_cost"]),
    "unknown top key": ("name: small", "name: small\ncolour: 1", "colour", "colour", ["unknown key", "memories"]),
    "no name": ("name: small\n", "", "memories:", "name", ["required key is missing"]),
    "name is a number": ("name: small", "name: 12", "name: 12", "name", ["must be text", "12"]),
    "empty name": ("name: small", 'name: ""', "name:", "name", ["must not be empty"]),
    "zero size": ("size: 64", "size: 0", "    size: 0", "memories.rf_I.size", ["greater than 0", "0"]),
    "negative size": ("size: 64", "size: -64", "    size: -64", "memories.rf_I.size", ["greater than 0", "-64"]),
    "size with odd unit": ("2 KiB", "2 KB", "    size: 2 KB", "memories.sram.size", ["'KB'", "KiB", "64 kB"]),
    "size with a comma": ("2 KiB", "2,5 KiB", "    size: 2,5", "memories.sram.size", ["must be a number", "2 KiB"]),
    "part of a bit": ("size: 64", "size: 0.3 B", "    size: 0.3", "memories.rf_I.size", ["whole number of bits"]),
    "size is true": ("size: 64", "size: true", "    size: true", "memories.rf_I.size", ["must be a number", "True"]),
    "size is a list": ("size: 64", "size: [64]", "    size: [64]", "memories.rf_I.size", ["must be a number"]),
    "size is too large": ("size: 64", "size: 1.e30", "    size: 1.e30", "memories.rf_I.size", ["2^60"]),
    "no size": ("    size: 64\n", "", "  rf_I:", "memories.rf_I.size", ["required key is missing"]),
    "no read cost": ("    r_cost: 0.1\n", "", "  rf_I:", "memories.rf_I.r_cost", ["required key is missing"]),
    "null write cost": (
        "w_cost: 0.2",
        "w_cost: ~",
        "    w_cost: ~",
        "memories.rf_I.w_cost",
        ["required key is missing"],
    ),
    "negative cost": ("r_cost: 0.1", "r_cost: -0.1", "    r_cost: -0.1", "memories.rf_I.r_cost", ["not be negative"]),
    "infinite cost": ("r_cost: 0.1", "r_cost: .inf", "    r_cost: .inf", "memories.rf_I.r_cost", ["finite"]),
    "unit in small letters": (
        "11 pJ",
        "11 pj",
        "    w_cost: 11 pj",
        "memories.sram.w_cost",
        ["'pj'", "did you mean 'pJ'?"],
    ),
    "negative area": ("area: 0", "area: -1 mm2", "    area", "memories.rf_I.area", ["not be negative"]),
    "latency is text": (
        "latency: 1",
        "latency: one",
        "    latency",
        "memories.rf_I.latency",
        ["whole number", "'one'"],
    ),
    "memory type": ("mem_type: sram", "mem_type: sdram", "    mem_type", "memories.sram.mem_type", ["sram, dram, rf"]),
    "extraction": (
        "mem_type: sram\n    auto_cost_extraction: false",
        "mem_type: dram\n    auto_cost_extraction: true",
        "    auto_cost",
        "memories.sram.auto_cost_extraction",
        ["the table of CACTI has no DRAM", "r_cost"],
    ),
    "unknown operand": (
        "operands: [I1]",
        "operands: [I3]",
        "    operands: [I3]",
        "memories.rf_I.operands[0]",
        ["I1, I2"],
    ),
    "operand twice": ("[I1, I2, O]", "[I1, I2, O, O]", "    operands: [I1, I2", "memories.sram.operands[3]", ["twice"]),
    "no operands": ("operands: [I1]", "operands: []", "    operands: []", "memories.rf_I.operands", ["at least 1"]),
    "no memory for O": ("[I1, I2, O]", "[I1, I2]", "memories:", "memories", ["no memory holds operand O"]),
    "port type": (
        "type: read\n",
        "type: raed\n",
        "        type: raed",
        "memories.rf_I.ports.r_port_1.type",
        ["'read'"],
    ),
    "port name twice": (
        "- name: w_port_1",
        "- name: r_port_1  # again",
        "      - name: r_port_1  # again",
        "memories.rf_I.ports[1].name",
        ["same name", "'r_port_1'"],
    ),
    "min over max": (
        "bandwidth_min: 64",
        "bandwidth_min: 256",
        "        bandwidth_min: 256",
        "memories.sram.ports.rw_port_1.bandwidth_min",
        ["greater than bandwidth_max", "128"],
    ),
    "bandwidth per second": (
        "2 B/cycle",
        "2 GB/s",
        "        bandwidth_max: 2 GB/s",
        "memories.rf_I.ports.w_port_1.bandwidth_max",
        ["need the frequency of the clock", "b/cycle"],
    ),
    "bandwidth without cycle": (
        "2 B/cycle",
        "2 B",
        "        bandwidth_max: 2 B",
        "memories.rf_I.ports.w_port_1.bandwidth_max",
        ["unknown unit 'B'", "64 B/cycle"],
    ),
    "zero bandwidth": (
        "bandwidth_max: 128",
        "bandwidth_max: 0",
        "        bandwidth_max: 0",
        "memories.sram.ports.rw_port_1.bandwidth_max",
        ["greater than 0"],
    ),
    "allocation form": (
        "- I1, fh",
        "- I1; fh",
        "          - I1; fh",
        "memories.rf_I.ports.w_port_1.allocation[0]",
        ["operand and a direction", "'I1, tl'"],
    ),
    "allocation operand": (
        "- I1, fh",
        "- I2, fh",
        "          - I2, fh",
        "memories.rf_I.ports.w_port_1.allocation[0]",
        ["does not hold this operand", "allowed: I1"],
    ),
    "allocation direction": (
        "- I1, fh",
        "- I1, up",
        "          - I1, up",
        "memories.rf_I.ports.w_port_1.allocation[0]",
        ["unknown direction 'up'", "tl, fl, th, fh"],
    ),
    "read port written": (
        "- I1, tl",
        "- I1, fh  # wrong",
        "          - I1, fh  # wrong",
        "memories.rf_I.ports.r_port_1.allocation[0]",
        ["a read port cannot carry", "'fh'", "tl, th"],
    ),
    "served dimension": (
        "[D1, D2]  # sram",
        "[D1, D3]",
        "    served_dimensions: [D1, D3]",
        "memories.sram.served_dimensions[1]",
        ["no such array dimension", "'D3'", "D1, D2"],
    ),
    "served dimension twice": (
        "[D1, D2]  # sram",
        "[D1, D1]",
        "    served_dimensions: [D1, D1]",
        "memories.sram.served_dimensions[1]",
        ["twice"],
    ),
    "array dimension name": (
        "  dimensions: [D1, D2]",
        "  dimensions: [D1, X]",
        "  dimensions: [D1, X]",
        "operational_array.dimensions[1]",
        ["'X'", "D1, D2, D3"],
    ),
    "array dimension twice": (
        "  dimensions: [D1, D2]",
        "  dimensions: [D1, D1]",
        "  dimensions: [D1, D1]",
        "operational_array.dimensions[1]",
        ["twice"],
    ),
    "sizes too few": ("sizes: [4, 8]", "sizes: [4]", "  sizes: [4]", "operational_array.sizes", ["2 items"]),
    "zero array size": ("sizes: [4, 8]", "sizes: [4, 0]", "  sizes:", "operational_array.sizes[1]", ["greater than 0"]),
    "no unit energy": ("  unit_energy: 40 fJ\n", "", "operational_array", "operational_array.unit_energy", ["missing"]),
    "systolic dimension": (
        "is_imc: false",
        "systolic_dimensions: [D3]",
        "  systolic",
        "operational_array.systolic_dimensions[0]",
        ["no such array dimension", "D1, D2"],
    ),
    "in-memory kind": (
        "is_imc: false",
        "imc_type: analog",
        "  imc_type",
        "operational_array.imc_type",
        ["only in-memory arrays", "leave the key out"],
    ),
    "memories is a list": ("  is_imc: false\n", "memories: [1]\n", "memories: [1]", "memories", ["must be a table"]),
    "dataflow dimension": (
        "  is_imc: false\n",
        "dataflows:\n  D4: ['K, 4']\n",
        "  D4",
        "dataflows.D4",
        ["no such array dimension", "D1, D2"],
    ),
    "dataflow without a factor": (
        "  is_imc: false\n",
        "dataflows:\n- D1: ['K, 4']\n- D1:\n  - C\n",
        "  - C",
        "dataflows[1].D1[0]",
        ["dimension and a factor"],
    ),
    "dataflow given before": (
        "  is_imc: false\n",
        "dataflows:\n- D1: ['K, 4', 'C, 1']\n- D1: ['c,1', 'k,4']\n",
        "- D1: ['c",
        "dataflows[1]",
        ["given before"],
    ),
    "dataflow of nothing": (
        "  is_imc: false\n",
        "dataflows:\n- {}\n",
        "- {}",
        "dataflows[0]",
        ["too few items", "at least 1"],
    ),
    "no dataflow in the list": ("  is_imc: false\n", "dataflows: []\n", "dataflows", "dataflows", ["too few items"]),
    "dataflow is text": ("  is_imc: false\n", "dataflows:\n- K\n", "- K", "dataflows[0]", ["must be a table"]),
    "dataflows are text": ("  is_imc: false\n", "dataflows: K\n", "dataflows", "dataflows", ["must be a table"]),
}


def problems_of(text: str, folder: Path) -> tuple:
    """Return the problems of a hardware text, read from a file."""
    file = folder / "core.yaml"
    problems = problems_in(text, file, read_accelerator)
    assert all(problem.file == str(file) for problem in problems)
    return problems


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_told_where_and_how_to_mend_it(case: str, tmp_path: Path) -> None:
    """Each fault gives exactly one problem with its line, its path and a hint."""
    check_fault(CASES[case], VALID, tmp_path / "core.yaml", read_accelerator)


def test_all_problems_come_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    """Faults in single keys and between keys are reported together, in the order of lines."""
    text = VALID.replace("size: 64", "sizee: 64").replace("bandwidth_min: 64", "bandwidth_min: 256")
    text = text.replace("sizes: [4, 8]", "sizes: [4, -8, 2]").replace("- I1, fh", "- O, fh")
    problems = problems_of(text, tmp_path)
    assert [problem.path for problem in problems] == [
        "memories.rf_I.sizee",
        "memories.rf_I.ports.w_port_1.allocation[0]",
        "memories.sram.ports.rw_port_1.bandwidth_min",
        "operational_array.sizes[1]",
        "operational_array.sizes",
    ]


def test_all_problems_of_all_dataflows_come_at_once(tmp_path: Path) -> None:
    """All problems of all dataflows are reported together, each with its line and path."""
    flows = "dataflows:\n- D1: ['K, 5']\n  D3: ['C, 2']\n- D2: ['OX 8']\n- D2: ['OX, 4', 'K, 4']\n  X: []\n"
    problems = problems_of(VALID.replace("  is_imc: false\n", flows), tmp_path)
    first = VALID[: VALID.index("  is_imc")].count("\n") + 2
    assert [(problem.line - first, problem.path) for problem in problems] == [
        (1, "dataflows[0].D3"),
        (2, "dataflows[1].D2[0]"),
        (4, "dataflows[2].X"),
        (4, "dataflows[2].X"),
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ()),
        ("dataflows: {}", ()),
        ("dataflows: null", ()),
        ("dataflows: {D1: ['K, 4']}", ((("D1", (("K", 4),)),),)),
        ("dataflows: [{D1: ['K, 4']}]", ((("D1", (("K", 4),)),),)),
        (
            "dataflows: [{D2: ['c, 8'], D1: []}, {D1: ['g, 4']}]",
            ((("D2", (("C", 8),)), ("D1", ())), (("D1", (("G", 4),)),)),
        ),
    ],
)
def test_dataflows_are_a_table_or_a_list_of_tables(written: str, expected: object) -> None:
    """Dataflows are a list of tables; a single table is a list of one."""
    assert read_accelerator(parse_yaml(VALID + written).data).cores[0].dataflows == expected


def test_a_loop_given_twice_to_a_side_leaves_a_notice() -> None:
    """A loop that is given twice to a side gets a notice, and the last one counts."""
    notices: list[str] = []
    read_accelerator(parse_yaml(VALID + "dataflows: [{D1: ['K, 8', 'K, 4']}]").data, notices)
    assert len(notices) == 2
    assert "dataflows[0].D1[1]: K is given twice" in notices[0]
    assert "dataflows has no effect on a single core" in notices[1].replace(": ", " ")


def test_the_message_reads_as_the_guide_says(tmp_path: Path) -> None:
    """The message has file, line, path, fault and the right key in one line."""
    problems = problems_of(VALID.replace("size: 64", "sizee: 64"), tmp_path)
    assert [str(p) for p in problems] == [
        f"{tmp_path}/core.yaml:6 memories.rf_I.sizee: unknown key (did you mean 'size'?)"
    ]


def test_the_valid_file_has_no_problem_and_converts_units(tmp_path: Path) -> None:
    """The valid file has no problem, and its units are converted to bits and pJ."""
    file = tmp_path / "core.yaml"
    file.write_text(VALID)
    notices: list[str] = []
    core = read_accelerator(file, notices).cores[0]
    assert not notices
    assert core.memories[1].size_bits == 2 * 1024 * 8
    assert core.memories[0].ports[1].bandwidth_max_bits == 16
    assert core.memories[1].write_energy_pj == 11.0
    assert core.operational_array.unit_energy_pj == 0.04
    assert core.operational_array.dimensions == (("D1", 4), ("D2", 8))


def test_unusual_ports_leave_notices(tmp_path: Path) -> None:
    """Unusual ports get notices: a port that replaces another, and a missing port that only partial sums need."""
    text = VALID.replace('"O, tl", "O, fl"', '"O, fl"')
    text = text.replace("operational_array:", TAKING_OVER + "operational_array:")
    file = tmp_path / "core.yaml"
    file.write_text(text)
    notices: list[str] = []
    core = read_accelerator(file, notices).cores[0]
    partial = [notice for notice in notices if "partial sums" in notice]
    assert len(partial) == 1
    assert "memories.sram.ports: no port carries 'O, tl'" in partial[0]
    assert any(
        "port a also lists 'I1, tl'; only the last port that lists a pair carries it" in notice for notice in notices
    )
    assert core.memories[2].port_of["I1", "tl"] == 1


TAKING_OVER = """\
  top:
    size: 1 MiB
    r_cost: 1
    w_cost: 1
    operands: [I1]
    ports:
      - {name: a, type: read, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I1, tl"]}
      - {name: b, type: read, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I1, tl"]}
    served_dimensions: [D1, D2]
"""
