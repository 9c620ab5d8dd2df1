"""`make numbers`: differences between the results of two commits."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FILE = Path(__file__).resolve().parents[3] / "tools" / "compare_numbers.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("compare_numbers", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_how_something_was_made_is_no_number(tool: ModuleType, tmp_path: Path) -> None:
    """Provenance and digests are left out at any depth; figures and pages count as no numbers."""
    one: dict[str, Any] = {
        "payload": {"energy_pj": 1.5, "rows": [{"digest": "a", "cycles": 3}]},
        "provenance": {"code": 1},
    }
    other = json.loads(json.dumps(one)) | {"provenance": {"code": 2}}
    other["payload"]["rows"][0]["digest"] = "b"
    assert tool.plain(one) == tool.plain(other)
    (tmp_path / "figure.svg").write_text("<svg/>")
    assert tool.numbers_of(tmp_path / "figure.svg") is None
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert tool.numbers_of(tmp_path / "table.csv") == "a,b\n1,2\n"
    description = np.frombuffer(json.dumps({"digest": "x", "cycles": 2}).encode(), np.uint8)
    np.savez(tmp_path / "arrays.npz", description=description, times=np.arange(3))
    found = tool.numbers_of(tmp_path / "arrays.npz")
    assert found["description"] == {"cycles": 2}
    assert found["times"] != tool.array_numbers(np.arange(1, 4))


def test_differences_name_the_key_and_both_values(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line names an artifact and its first differences, or an artifact of one side; renamed keys do not differ."""
    before = {"a.json": {"schema": "s", "payload": {"energy": 1, "rows": [1, 2]}}, "b.csv": "x\n", "only": 1}
    now = {"a.json": {"schema": "s", "payload": {"energy_pj": 1, "rows": [1, 3]}}, "b.csv": "x\n", "new": 1}
    lines = list(tool.differences(before, now))
    assert [line.split(":")[0] for line in lines] == ["a.json", "new", "only"]
    assert "payload.rows[1] '2' -> '3'" in lines[0]
    monkeypatch.setattr(tool, "RENAMED", {("s", 1): {"energy": "energy_pj"}})
    assert "energy" not in next(tool.differences(tool.renamed(before), now))
