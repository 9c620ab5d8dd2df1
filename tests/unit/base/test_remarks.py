"""Remarks on the numbers in input files: `validate` prints the remarks, and other verbs only count them."""

import json
import pickle
from pathlib import Path

import pytest
from tilewright.base.errors import Remark
from tilewright.base.remarks import folded
from tilewright.cli.main import main

TWO_REGISTER_FILES = """
name: small
clock_frequency: 100 MHz
operational_array: {dimensions: [D1], sizes: [4], unit_energy: 0.1, unit_area: 100 um2}
memories:
""" + "".join(
    f"  {name}:\n    operands: [{operands}]\n    size: 64 B\n    cost: {{from: register_file, node_nm: 40}}\n"
    f"    served_dimensions: [D1]\n    ports: [{{name: rw, type: read_write, bandwidth_min: 8, bandwidth_max: 64,"
    f" allocation: [{allocation}]}}]\n"
    for name, operands, allocation in (
        ("inner", "I1, I2", '"I1, tl", "I1, fh", "I2, tl", "I2, fh"'),
        ("sums", "O", '"O, tl", "O, fl", "O, th", "O, fh"'),
    )
)


def test_several_remarks_are_one_line() -> None:
    """Several remarks on a file become one line with their number and the command that prints them.
    The line stands in place of the first remark, and other notices keep their order.
    """
    notices = ["first", Remark("a:1 x", "a"), Remark("b:1 x", "b"), Remark("a:2 y", "a"), Remark("a:1 x", "a"), "last"]
    assert folded(notices) == [
        "first",
        "a: 2 remarks on costs from the library; `tilewright validate a` prints them",
        "b:1 x",
        "last",
    ]


def test_a_remark_survives_processes() -> None:
    """A pickled remark keeps its file."""
    sent = pickle.loads(pickle.dumps(Remark("a:1 x", "a")))
    assert (type(sent), sent, sent.file) == (Remark, "a:1 x", "a")


def test_only_validate_prints_each_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate` prints both remarks on a file as lines; another verb prints one line with their number."""
    file = tmp_path / "small.yaml"
    file.write_text(TWO_REGISTER_FILES)
    told = []
    for words in (["validate", str(file)], ["parse", "hardware", str(file), "-o", str(tmp_path / "a.json")]):
        assert main(words) == 0
        told.append([line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")])
    assert len(told[0]) == 2
    assert told[1] == [f"note: {file}: 2 remarks on costs from the library; `tilewright validate {file}` prints them"]


IMPOSSIBLE = (
    (
        "unit_energy: 0.1",
        "unit_energy: 80 mJ",
        "unit_energy: 8e+10 pJ for each operation are 1.6e+09 times above what is known",
    ),
    ("size: 64 B", "size: 4 B", "bandwidth_max: a word has 64 bits, but the memory holds 32 bits"),
    (
        "cost: {from: register_file, node_nm: 40}",
        "cost: {from: dram, type: lpddr4}",
        "so the memory needs 25,000 of them",
    ),
    (
        "cost: {from: register_file, node_nm: 40}",
        "r_cost: 1e6\n    w_cost: 1",
        "r_cost: 1.562e+04 pJ for each bit are 223 times above what is known",
    ),
)


@pytest.mark.parametrize(("before", "after", "told"), IMPOSSIBLE)
def test_a_number_of_no_real_part_is_a_warning(
    before: str, after: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An impossible number gets a warning after the notes; it is counted and listed in JSON, but is no error."""
    file = tmp_path / "small.yaml"
    text = TWO_REGISTER_FILES.replace(before, after, 1)
    if "dram" in after:
        text = text.replace(
            "bandwidth_min: 8, bandwidth_max: 64", "bandwidth_min: 640 TB/s, bandwidth_max: 640 TB/s", 1
        )
        text = text.replace("size: 64 B", "size: 1 GiB", 1)
    file.write_text(text)
    assert main(["validate", str(file)]) == 0
    said = capsys.readouterr()
    *notes, warning = said.err.splitlines()
    assert warning.startswith(f"warning: {file}:")
    assert told in warning
    assert all(line.startswith("note: ") for line in notes)
    assert said.out == f"{file}: hardware, no errors, 1 warning\n"
    assert main(["validate", "--json", str(file)]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert [f"warning: {one}" for one in row["warnings"]] == [warning]


def test_a_few_parts_are_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`new` gives a note if a bandwidth needs four DRAM parts, and a warning if it needs thousands."""
    for bandwidth, kind in (("100 GB/s", "note"), ("500 TB/s", "warning")):
        assert main(["new", str(tmp_path / kind), "--dram-bandwidth", bandwidth]) == 0
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "so the memory needs" in line]
        assert line.startswith(f"{kind}: ")
