"""The fuzz target: it runs for a few seconds and finds a planted error."""

from pathlib import Path

import pytest

from tests.fuzz import fuzz_onnx
from tests.members import members


def test_no_findings_within_seconds(tmp_path: Path) -> None:
    """Damaged models are read or refused within seconds, without findings."""
    report = fuzz_onnx.fuzz(seed=11, seconds=members(5, 2), folder=tmp_path)
    assert report["ok"] > 0
    assert report["refused"] > 0
    assert not report["findings"]


def test_cases_repeat() -> None:
    """A case depends only on its seed and number."""
    models = fuzz_onnx.seed_models()
    assert fuzz_onnx.case_bytes(models, 3, 5) == fuzz_onnx.case_bytes(models, 3, 5)
    assert fuzz_onnx.case_bytes(models, 3, 5) != fuzz_onnx.case_bytes(models, 3, 6)


def test_an_exception_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception other than InputError is a finding with its traceback."""

    def broken(_path: Path) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(fuzz_onnx, "load_model", broken)
    assert "KeyError: 'lost'" in fuzz_onnx.run_case(b"", tmp_path / "case.onnx", is_deep=False)
