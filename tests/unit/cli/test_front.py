"""`tilewright front` and `tilewright check-front` on the command line."""

import json
from pathlib import Path

import pandas
import pytest
import tilewright
from tilewright.cli.main import main

from tests.unit.designs.front_cases import NETWORKS, write_space


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """Write a space of 64 designs."""
    return write_space(tmp_path, networks={"two": NETWORKS["two"]})


def test_the_front_and_its_certificate(space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`front` writes its files and certificate, and `check-front` accepts them until the space changes."""
    out = tmp_path / "out"
    assert main(["front", str(space), "-o", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The fronts are complete: the costs of all 64 designs" in said
    for name in ("front.html", "front.csv", "front.parquet", "certificate.parquet", "space.txt"):
        assert (out / name).is_file(), name
    assert len(pandas.read_csv(out / "front.csv")) > 1
    assert main(["check-front", str(out), "--sample", "3"]) == 0
    said = capsys.readouterr().out
    assert "areas recomputed: 64 designs" in said
    assert "the checked parts of the certificate are true" in said
    assert main(["check-front", str(out), "--all", "--json", "--sample", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    space.write_text(space.read_text().replace("0.0037", "0.0038"))
    assert main(["check-front", str(out)]) == 1
    assert "WRONG: the certificate was made from another space" in capsys.readouterr().out


def test_parts_by_hand(space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts that are made separately give the same files as a single call."""
    by_hand, at_once = tmp_path / "by_hand", tmp_path / "at_once"
    assert main(["front", str(space), "-o", str(by_hand), "--gather"]) == 2
    assert "missing or out of date: 1 part of the space" in capsys.readouterr().err
    assert main(["front", str(space), "-o", str(by_hand), "--part", "0"]) == 0
    assert main(["front", str(space), "-o", str(by_hand), "--gather", "--json"]) == 0
    table = tilewright.front(space, at_once)
    assert table["design"].tolist()
    for name in ("certificate.parquet", "front.csv", "front.html", "costs/00000.parquet"):
        assert (by_hand / name).read_bytes() == (at_once / name).read_bytes(), name


@pytest.mark.parametrize(
    ("words", "told"),
    [(["--part", "7"], "no such part"), (["--part", "0", "--gather"], "--part: cannot be combined with --gather")],
)
def test_what_is_refused(
    space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """Wrong options are refused with one message and exit code 2."""
    assert main(["front", str(space), "-o", str(tmp_path / "out"), *words]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_without_a_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without its space is refused."""
    assert main(["check-front", str(tmp_path)]) == 2
    assert "does not name the file of the space" in capsys.readouterr().err
