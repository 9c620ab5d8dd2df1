"""The numbers of tilewright against zigzag-dse 3.9.1, for the project's own set and a larger one if present."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tilewright_evidence.reference_numbers import ConformanceReport, compare_flow, compare_points, report_text

DATA = Path(__file__).parent / "data"
LARGE_SET = Path(__file__).resolve().parents[3] / "shared" / "conformance"
needs_large_set = pytest.mark.skipif(
    not LARGE_SET.is_dir(), reason="the larger reference set ../shared/conformance is not beside this checkout"
)
IN_MEMORY_SET = LARGE_SET.with_name("conformance-imc")
needs_in_memory_set = pytest.mark.skipif(
    not IN_MEMORY_SET.is_dir(), reason="the reference set ../shared/conformance-imc is not beside this checkout"
)
OWN_FLOWS = sorted(path.name for path in DATA.glob("flow-*.json"))
LARGE_FLOWS = sorted(path.name for path in (LARGE_SET / "flow").glob("*.json"))


def test_own_points_are_equal_bit_for_bit() -> None:
    """Every committed fixed mapping has exactly the reference's energy, latency and word accesses, or is refused."""
    report = compare_points(DATA / "reference-points.jsonl.gz", DATA / "hardware")
    assert report.points >= 600
    assert report.not_tried == 0
    assert report.points - report.rejected >= 500
    assert report.equal == report.points, report_text([report])


def test_own_points_of_in_memory_arrays_are_equal_bit_for_bit() -> None:
    """In-memory arrays also have the reference's parts of energy, clock period and area, bit for bit."""
    report = compare_points(DATA / "in_memory" / "points.jsonl.gz", DATA / "in_memory" / "hardware")
    assert (report.points, report.rejected, report.not_tried) == (218, 42, 0)
    assert report.equal == report.points, report_text([report])


@pytest.mark.parametrize("name", OWN_FLOWS)
def test_own_searches_find_the_same_winners(name: str) -> None:
    """Mapping a small network from its files finds the reference's mapping of every layer, and its totals."""
    report = compare_flow(DATA / name, DATA / "hardware")
    assert report.points == len(json.loads((DATA / name).read_text())["layers"]) + 1
    assert report.equal == report.points, report_text([report])


@pytest.mark.slow
@needs_large_set
def test_large_set_of_points() -> None:
    """All points of the large set are equal bit for bit, and infeasible ones are refused."""
    report = compare_points(LARGE_SET / "fixed-core.jsonl.gz", LARGE_SET / "hardware")
    assert report.points > 6000
    assert report.not_tried == 0
    assert report.equal == report.points, report_text([report])


@needs_in_memory_set
def test_large_set_of_in_memory_points() -> None:
    """All points of the large set of in-memory arrays are equal up to rounding of sums, or refused."""
    report = compare_points(IN_MEMORY_SET / "fixed-imc.jsonl.gz", IN_MEMORY_SET / "hardware")
    assert report.points > 600
    assert report.not_tried == 0
    assert report.equal == report.points, report_text([report])


@needs_in_memory_set
def test_large_set_of_in_memory_searches() -> None:
    """Searches on in-memory arrays find the reference's mapping of every layer, and its totals."""
    for path in sorted((IN_MEMORY_SET / "flow").glob("*.json")):
        report = compare_flow(path, IN_MEMORY_SET / "hardware")
        assert report.equal == report.points, report_text([report])


@needs_large_set
@pytest.mark.parametrize("name", LARGE_FLOWS)
def test_large_set_of_searches(name: str) -> None:
    """Every search of the large set finds the reference's mapping of every layer, and its totals."""
    report = compare_flow(LARGE_SET / "flow" / name, LARGE_SET / "hardware")
    assert report.equal == report.points, report_text([report])


def test_a_difference_is_reported() -> None:
    """A report counts equal, close and different points, keeps the worst difference, and names the differing values."""
    report = ConformanceReport("demo")
    report.add("same", [("energy", 2.0, 2)])
    report.add("close", [("energy", 1.0 + 1e-12, 1.0)])
    report.add("wrong", [("latency", 3, 2), ("energy", 1.0, 1.0)])
    assert (report.points, report.equal, report.close) == (3, 1, 1)
    assert report.worst_relative_difference == 0.5
    assert not report.passed
    assert "wrong: latency 3 instead of 2" in report_text([report])


def _one_point(path: Path, stage: str | None) -> dict[str, Any]:
    """The first point in a file for which the reference stopped at `stage`, or that it completed if `stage` is None."""
    with gzip.open(path, "rt") as stream:
        return next(point for point in map(json.loads, stream) if point.get("stage") == stage)


@pytest.mark.parametrize(
    ("stage", "change", "outcome"),
    [
        ("spatial", {}, (1, 1, 1, 0)),
        # All of it over one lane is possible, so that nothing is refused.
        ("spatial", {"spatial_mapping_requested": {f"D{i}": {} for i in range(1, 5)}}, (1, 0, 0, 0)),
        ("allocation", {}, (1, 1, 1, 0)),
        ("allocation", {"loop_order_inner_to_outer": None}, (0, 0, 0, 1)),
        (None, {"result": None, "error": "TypeError", "stage": "allocation"}, (1, 0, 0, 0)),
    ],
)
def test_what_the_reference_refuses_is_tried(
    stage: str | None, change: dict[str, Any], outcome: tuple[int, ...], tmp_path: Path
) -> None:
    """A refused point counts as equal if this project refuses it at the same stage; points that cannot be tried count
    apart.
    """
    point = _one_point(DATA / "reference-points.jsonl.gz", stage) | change
    point = {key: value for key, value in point.items() if value is not None}
    (tmp_path / "points.jsonl").write_text(json.dumps(point) + "\n")
    report = compare_points(tmp_path / "points.jsonl", DATA / "hardware")
    assert (report.points, report.equal, report.rejected, report.not_tried) == outcome


def test_a_wrong_number_fails_the_comparison(tmp_path: Path) -> None:
    """A point whose expected latency is off by one cycle fails the comparison."""
    point = _one_point(DATA / "reference-points.jsonl.gz", None)
    point["result"]["latency_total2"] += 1
    (tmp_path / "points.jsonl").write_text(json.dumps(point) + "\n")
    report = compare_points(tmp_path / "points.jsonl", DATA / "hardware")
    assert not report.passed
    assert "latency_total2" in report.mismatches[0]
