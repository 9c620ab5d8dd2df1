"""Remarks on numbers of input files, which verbs other than `validate` count."""

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
    """The line counts the distinct remarks of its file, stands where the first of them stood, and names the command
    that prints them; other notices stay in their order.
    """
    notices = ["first", Remark("a:1 x", "a"), Remark("b:1 x", "b"), Remark("a:2 y", "a"), Remark("a:1 x", "a"), "last"]
    assert folded(notices) == [
        "first",
        "a: 2 remarks on costs from the library; `tilewright validate a` prints them",
        "b:1 x",
        "last",
    ]


def test_a_remark_survives_processes() -> None:
    """The file of a remark is kept in its pickled form."""
    sent = pickle.loads(pickle.dumps(Remark("a:1 x", "a")))
    assert (type(sent), sent, sent.file) == (Remark, "a:1 x", "a")


def test_only_validate_prints_each_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both remarks on a file are lines of `validate`, and one line of another verb that reads the file."""
    file = tmp_path / "small.yaml"
    file.write_text(TWO_REGISTER_FILES)
    told = []
    for words in (["validate", str(file)], ["parse", "hardware", str(file), "-o", str(tmp_path / "a.json")]):
        assert main(words) == 0
        told.append([line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")])
    assert len(told[0]) == 2
    assert told[1] == [f"note: {file}: 2 remarks on costs from the library; `tilewright validate {file}` prints them"]
