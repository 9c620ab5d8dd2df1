"""`tilewright cost-library`: lists, explanations and refusals."""

import json

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.hardware.silicon.library import entries

from tests.unit.hardware.system_cases import ROOT


def test_all_entries_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """All entries or those of a kind are listed, as text and as JSON."""
    assert main(["cost-library"]) == 0
    text = capsys.readouterr().out
    assert f"{len(entries())} entries" in text
    assert "plain 22 nm itrs-hp: 60 memories" in text
    assert main(["cost-library", "--kind", "link", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["kind"] for row in rows} == {"link"}
    assert all(row["sources"] for row in rows)


def test_an_entry_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """An entry is explained with its sources, and says if it is not confirmed."""
    assert main(["cost-library", "hbm2", "mul-int8-7nm"]) == 0
    text = capsys.readouterr().out
    assert "O'Connor et al." in text
    assert "3.9 to 7" in text
    assert "NOT confirmed" in text


def test_a_memory_is_explained_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    """A memory is explained step by step, from options or from a hardware file."""
    asked = ["cost-library", "sram", "--size", "48 KiB", "--width", "64", "--node-nm", "28", "--cells", "lstp"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "  6. 28 nm lies between 22 and 32 nm" in text
    assert main([*asked, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert len(row["steps"]) == 6
    (exact,) = tilewright.cost_library(["auto_cost_extraction"], size=65536, width=64)
    assert exact["read_energy_pj"] == 2.19637
    rows = tilewright.cost_library(hardware=ROOT / "config" / "hardware" / "zigzag" / "tpu_like.yaml")
    assert {row["law"] for row in rows} == {"numbers of the file"}
    assert tilewright.cost_library(["hbm2"], width=512)[0]["read_energy_pj"] == pytest.approx(512 * 3.9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ["srm"]}, "did you mean 'sram'?"),
        ({"names": ["sram"]}, "size: sram needs this option"),
        ({"kind": "drm"}, "did you mean 'dram'?"),
        ({"names": ["sram"], "size": "4 KB", "width": 64, "node_nm": 22}, "KiB"),
        ({"names": ["sram"], "size": "64 B", "width": 64, "node_nm": 22}, "8 words of 64 bits"),
    ],
)
def test_what_is_not_there_is_told(arguments: dict, words: str) -> None:
    """A wrong name or option is refused with the nearest name or the allowed values."""
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        tilewright.cost_library(**arguments)
