"""Notices about units of an array that no entry of a mapping file uses, once for each side."""

from pathlib import Path

import pytest
import yaml
from tilewright.cli.main import main

CONFIG = Path(__file__).resolve().parents[3] / "config"
HARDWARE, MAPPING = CONFIG / "hardware/zigzag/eyeriss_like.yaml", CONFIG / "mapping/zigzag/eyeriss_like.yaml"
NETWORK = CONFIG.parent / "tests/workflow/tiny/workload/two_layers.yaml"


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    """Write the Eyeriss-like core with twice the columns."""
    text = HARDWARE.read_text().replace("name: eyeriss_like", "name: doubled").replace("[14, 12]", "[14, 24]")
    file = tmp_path / "doubled.yaml"
    file.write_text(text)
    return file


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the notices about units that never work."""
    return [line for line in capsys.readouterr().err.splitlines() if "never work" in line]


def test_half_of_a_doubled_array_never_works(doubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate`, `map` and `explain` each say that half of a doubled array never works."""
    assert main(["validate", str(doubled), str(MAPPING)]) == 0
    said = "no entry of this file uses more than 12 of the 24 units of D2 of core doubled: the other units never work"
    assert notes(capsys) == [f"note: {MAPPING}:5 default.spatial_mapping.D2: {said}"]
    described = ["--hardware", str(doubled), "--workload", str(NETWORK), "--mapping", str(MAPPING)]
    run = tmp_path / "run"
    assert main(["map", "--preset", "zigzag", *described, "--lpf-limit", "2", "--no-store", "-o", str(run)]) == 0
    (note,) = notes(capsys)
    assert "spatial_mapping.D2: no entry for the layers of two_layers uses more than 12 of the 24 units of D2" in note
    assert main(["explain", str(run), *described]) == 0
    told = capsys.readouterr().out
    assert "the loops of the mapping file use at most 12 of the 24 units along D2: the other units never work" in told
    assert "units of D1" not in told, "the file asks for all 14 units"


def test_validate_tells_excess_lanes_and_unusual_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate` notes lanes that the array does not have, with and without a network, like `map`.

    Without a network, it also notes loop dimensions that no ONNX network has.
    """
    entries = [{"name": "default", "spatial_mapping": {"D1": ["OX, 4", "OY, 4"], "D2": ["QQ, 12"]}}]
    entries[0]["memory_operand_links"] = {"O": "O", "W": "I2", "I": "I1"}
    file = tmp_path / "mapping.yaml"
    file.write_text(yaml.safe_dump(entries))
    excess = "asks for 16 lanes, but the array of eyeriss_like has only 14 on this side: the excess lanes are left out"
    assert main(["validate", str(HARDWARE), str(file)]) == 0
    said = capsys.readouterr().err
    assert f"default.spatial_mapping.D1: {excess}\n" in said
    assert "default.spatial_mapping.D2: no ONNX network has a loop dimension QQ" in said
    entries[0]["spatial_mapping"] = {"D1": ["OX, 4", "OY, 4"]}
    file.write_text(yaml.safe_dump(entries))
    assert main(["validate", str(HARDWARE), str(file), str(NETWORK)]) == 0
    assert f"default.spatial_mapping.D1: {excess} (in " in capsys.readouterr().err
    assert main(["validate", str(HARDWARE), str(MAPPING)]) == 0
    said = capsys.readouterr().err
    assert "excess lanes" not in said
    assert "loop dimension" not in said


def test_sides_that_are_full_or_open_are_not_noted(
    doubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mapping file that fills a side or leaves it open gets no notice."""
    assert main(["validate", str(HARDWARE), str(MAPPING)]) == 0
    assert notes(capsys) == []
    entries = yaml.safe_load(MAPPING.read_text())
    del entries[2]["spatial_mapping"]["D2"]
    opened = tmp_path / "open.yaml"
    opened.write_text(yaml.safe_dump(entries))
    assert main(["validate", str(doubled), str(opened)]) == 0
    assert notes(capsys) == []
    assert main(["validate", str(doubled), str(HARDWARE), str(MAPPING)]) == 0
    assert notes(capsys) == [], "the note needs a single hardware file"
