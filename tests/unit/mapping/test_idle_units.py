"""Units of an array that no entry of a mapping file uses: each side once, and only where every entry fixes it."""

from pathlib import Path

import pytest
import yaml
from tilewright.cli.main import main

CONFIG = Path(__file__).resolve().parents[3] / "config"
HARDWARE, MAPPING = CONFIG / "hardware/zigzag/eyeriss_like.yaml", CONFIG / "mapping/zigzag/eyeriss_like.yaml"
NETWORK = CONFIG.parent / "tests/workflow/tiny/workload/two_layers.yaml"


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    """The Eyeriss-like core with twice the columns."""
    text = HARDWARE.read_text().replace("name: eyeriss_like", "name: doubled").replace("[14, 12]", "[14, 24]")
    file = tmp_path / "doubled.yaml"
    file.write_text(text)
    return file


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What is said of units that never work."""
    return [line for line in capsys.readouterr().err.splitlines() if "never work" in line]


def test_half_of_a_doubled_array_never_works(doubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By validate for the whole file, by map for the entries that the network has, by explain of its layers."""
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
    assert "units of D1" not in told, "it asks for 14, and layers are smaller"


def test_sides_that_are_full_or_open_are_not_noted(
    doubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The array for which the file was written; a file of which one entry leaves the side to the search."""
    assert main(["validate", str(HARDWARE), str(MAPPING)]) == 0
    assert notes(capsys) == []
    entries = yaml.safe_load(MAPPING.read_text())
    del entries[2]["spatial_mapping"]["D2"]
    opened = tmp_path / "open.yaml"
    opened.write_text(yaml.safe_dump(entries))
    assert main(["validate", str(doubled), str(opened)]) == 0
    assert notes(capsys) == []
    assert main(["validate", str(doubled), str(HARDWARE), str(MAPPING)]) == 0
    assert notes(capsys) == [], "of two hardware files nobody knows which is meant"
