"""Verification of a part of a results folder, by the manifests above and below this part."""

from pathlib import Path

import pytest
from tilewright.base.artifacts.manifest import ResultsLedger, Unit, manifest_file, read_order, results_above
from tilewright.base.artifacts.verification import verify_part

FILES = {"single/one/map": "single/one/layers.csv", "single/two/map": "single/two/layers.csv"}
"""Maps a unit to its file."""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return two runs made by jobs, with results of another configuration below the folder."""
    folder = tmp_path / "results"
    for place in (folder, folder / "configurations" / "other"):
        ledger = ResultsLedger(place, {name: Unit(name, (file,), {"code": str}) for name, file in FILES.items()})
        for name, file in FILES.items():
            (place / file).parent.mkdir(parents=True)
            (place / file).write_text("a table without a seal\n")
            read_order(ledger.order(name)).record()
    return folder


def test_a_run_is_compared_with_the_manifest_above_it(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is verified by the manifest above it, for its own files, from any working folder."""
    for name in ("one", "two"):
        (results / "single" / name / "layers.csv").write_text("changed\n")
    assert list(verify_part(results / "single" / "one").problems) == [results / "single" / "one" / "layers.csv"]
    assert len(verify_part(results).problems) == 2
    monkeypatch.chdir(results / "single")
    assert [path.name for path in verify_part(Path("two")).problems] == ["layers.csv"]
    assert len(verify_part(Path("two")).problems) == 1


def test_results_below_are_compared_with_their_own_manifest(results: Path) -> None:
    """Results below a folder are verified by their own manifest."""
    other = results / "configurations" / "other"
    assert not verify_part(results).problems
    (other / "single" / "one" / "layers.csv").write_text("changed\n")
    assert list(verify_part(results).problems) == [other / "single" / "one" / "layers.csv"]
    assert not verify_part(results / "single").problems


def test_a_damaged_manifest_is_that_of_its_own_run(results: Path) -> None:
    """A damaged manifest is a problem of its own run only."""
    file = manifest_file(results, "single/one/map")
    file.write_text(file.read_text().replace('"code"', '"cade"'))
    assert list(verify_part(results / "single" / "one").problems) == [file]
    assert not verify_part(results / "single" / "two").problems


def test_where_results_begin(results: Path, tmp_path: Path) -> None:
    """Results begin at the nearest folder above with manifests."""
    assert results_above(results / "single" / "one") == results
    assert results_above(results) == results
    other = results / "configurations" / "other"
    assert results_above(other / "single") == other
    assert results_above(tmp_path) is None
