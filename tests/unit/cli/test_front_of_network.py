"""`tilewright map --front`: the front of a small network, points within limits, and refused limits."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.artifacts.envelope import read_artifact, write_document, write_rows
from tilewright.base.errors import InputError, UnmetLimitError
from tilewright.base.report_files import ONE_CORE_FILES
from tilewright.cli.main import main
from tilewright.results.front_figure import front_figure
from tilewright.results.report_writing import write_report
from tilewright.results.reported_mapping import ReportedMapping

pytestmark = pytest.mark.usefixtures("unpainted")

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
FILES = [f"--{name}={EXAMPLES / file}.yaml" for name, file in
         (("hardware", "accelerator"), ("workload", "workload"), ("mapping", "mapping"))]  # fmt: skip


def mapped(folder: Path, *words: str) -> dict[str, Any]:
    """Return the summary of a run with these options."""
    assert main(["map", *FILES, "--store", str(folder.parent / "store"), "-o", str(folder), *words]) == 0
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))["payload"]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return folder and summary of a run with its front."""
    folder = tmp_path_factory.mktemp("front") / "run"
    return folder, mapped(folder, "--front")


def test_the_table_has_the_points_of_the_summary(whole: tuple[Path, dict[str, Any]]) -> None:
    """The table has the points of the summary in order, and the run is not below a bounding line."""
    folder, summary = whole
    front = summary["front"]
    rows = list(csv.DictReader((folder / "front.csv").open(encoding="utf-8")))
    points = [(one["energy_pj"], one["latency_cycles"]) for one in front["points"]]
    assert [(float(row["energy_pj"]), float(row["latency_cycles"])) for row in rows] == points
    assert points == sorted(points, key=lambda point: point[1])
    assert points == sorted(points, reverse=True)
    assert [row["is_knee"] for row in rows].index("True") == front["knee"]
    for line in front["lines"]:
        least = summary["energy_pj"] + line["pj_a_cycle"] * summary["latency_cycles"]
        assert least >= line["level_pj"] * (1 - 1e-9)


def test_the_artifact_has_the_mappings_whose_sums_are_the_points(whole: tuple[Path, dict[str, Any]]) -> None:
    """Each point of the network is the sum of the named points of its layers, each with a mapping."""
    content = tilewright.load(whole[0] / "front.json")
    assert content["network"] == whole[1]["front"]
    assert [layer["layer"] for layer in content["layers"]] == [row[0] for row in whole[1]["layer_index"]]
    for point in content["network"]["points"]:
        chosen = [layer["points"][at] for layer, at in zip(content["layers"], point["of_layers"], strict=True)]
        assert all(one["mapping"]["loop_order"] for one in chosen)
        counts = [layer["count"] for layer in content["layers"]]
        for name in ("energy_pj", "latency_cycles"):
            total = sum(n * one[name] for one, n in zip(chosen, counts, strict=True))
            assert point[name] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("name", ["latency", "energy"])
@pytest.mark.parametrize("percent", [0, 5])
def test_a_slack_chooses_the_best_point_within_it(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, name: str, percent: int
) -> None:
    """Among the points within a slack, the one with the best other measure is chosen, and the run has its totals."""
    summary = mapped(tmp_path / "run", f"--{name}-slack={percent}%")
    keys = ("latency_cycles", "energy_pj") if name == "latency" else ("energy_pj", "latency_cycles")
    points = whole[1]["front"]["points"]
    limit = min(one[keys[0]] for one in points) * (1 + percent / 100)
    assert summary[keys[0]] <= limit * (1 + 1e-12)
    assert summary[keys[1]] == pytest.approx(min(one[keys[1]] for one in points if one[keys[0]] <= limit), rel=1e-9)
    assert summary["front"]["points"] == points
    assert summary["front"]["point_of_run"] is not None


def test_a_budget_that_no_point_meets_names_the_nearest(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A budget that no point meets ends with exit code 1 and the distance of the nearest point."""
    least_uj = whole[1]["front"]["points"][-1]["energy_pj"] / 1e6
    assert main(["map", *FILES, "-o", str(tmp_path / "run"), f"--energy-budget={least_uj / 2} uJ"]) == 1
    told = capsys.readouterr().err
    assert "no point of the front stays within the energy budget" in told
    assert "100.00% more" in told
    assert "proves that no mapping that the search covers meets this limit" in told
    assert not (tmp_path / "run/summary.json").exists()
    assert main(["map", *FILES, f"--energy-budget={least_uj * (1 - 1e-6)} uJ"]) == 1
    assert "(less than 0.01% more)" in capsys.readouterr().err
    summary = mapped(tmp_path / "met", f"--energy-budget={least_uj * (1 + 1e-9)} uJ")
    assert summary["energy_pj"] == pytest.approx(least_uj * 1e6, rel=1e-8)


def test_a_budget_can_be_larger_than_a_joule(whole: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """An energy budget can exceed a joule, the limit of one access."""
    summary = mapped(tmp_path / "run", "--energy-budget=2 J")
    assert summary["latency_cycles"] == whole[1]["front"]["points"][0]["latency_cycles"]


def test_a_deadline_uses_the_clock() -> None:
    """The fastest point meets a deadline just above the least latency, and no point meets a shorter one."""
    hardware = (EXAMPLES / "accelerator.yaml").read_text("utf-8")
    read = yaml.safe_load(hardware) | {"clock_frequency": "500 MHz"}
    given: dict[str, Any] = {name: str(EXAMPLES / f"{name}.yaml") for name in ("workload", "mapping")}
    front = tilewright.map(hardware=read, **given, front=True).summary["front"]
    least = front["points"][0]["latency_cycles"]
    found = tilewright.map(hardware=read, **given, deadline_ms=least * 1.0001 / 500e3).summary
    assert found["latency_cycles"] <= least * 1.0001
    with pytest.raises(UnmetLimitError, match="no point of the front meets the deadline"):
        tilewright.map(hardware=read, **given, deadline_ms=least * 0.9 / 500e3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deadline_ms": 1.0, "latency_slack": "2%"}, "each choose a point"),
        ({"energy_budget": "1 uJ", "preset": "zigzag"}, "only `temporal_mapping_search_engine: best`"),
        ({"latency_slack": "1 %", "front": False}, "`front` must be true"),
        ({"latency_slack": "-1%"}, "latency_slack: must be a percentage"),
        ({"latency_slack": "2"}, "latency_slack: must be a percentage"),
        ({"energy_budget": "3"}, "energy_budget: must have a unit"),
        ({"energy_budget": "3 mX"}, "energy_budget: unknown unit"),
        ({"energy_budget": "0 mJ"}, "energy_budget: must be greater than 0"),
        ({"energy_budget": "-3 mJ"}, "energy_budget: must be greater than 0"),
        ({"energy_budget": "nan mJ"}, r"must be a number with a unit, .*allowed: a number above 0 with a unit"),
        ({"energy_budget": "3 mW"}, r"unknown unit 'mW', .*allowed: a number above 0 with a unit"),
        ({"energy_budget": "1e13 J"}, r"must not be greater than 10\^12 J"),
        ({"deadline_ms": 0}, "deadline_ms"),
        ({"deadline_ms": 1.0}, "needs a clock"),
        (
            {
                "energy_slack": "1%",
                "preset": "best",
                "pipeline": [{"insert": "CompleteSave", "after": "Workload"}],
            },
            "pipeline",
        ),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Contradictory limits are refused by name before the search."""
    given: dict[str, Any] = {name: str(EXAMPLES / f"{name}.yaml") for name in ("workload", "mapping")}
    with pytest.raises(InputError, match=message):
        tilewright.map(hardware=str(EXAMPLES / "accelerator.yaml"), **given, **options, output=tmp_path)


def test_audit_repeats_a_chosen_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An audit repeats a run with a chosen point, and finds a changed line, point or choice."""
    run = tmp_path / "run"
    mapped(run, "--latency-slack=1%")
    audit = ["audit", str(run), "--share", "100%"]
    assert main(audit) == 0
    files = {name: (run / name).read_bytes() for name in ("layers.jsonl", "summary.json")}

    def layers(change: Callable[[dict[str, Any]], None]) -> None:
        artifact = read_artifact(run / "layers.jsonl")
        rows = list(artifact.payload)
        change(rows[1]["search"]["front"])
        write_rows(run / "layers.jsonl", artifact.schema, rows, artifact.provenance)

    def summary(change: Callable[[dict[str, Any]], None]) -> None:
        artifact = read_artifact(run / "summary.json")
        change(artifact.payload["front"])
        write_document(run / "summary.json", artifact.schema, artifact.payload, artifact.provenance)

    changes = (
        (layers, lambda front: front["lines"][0].update(level_pj=front["lines"][0]["level_pj"] * 1.001), "level_pj"),
        (layers, lambda front: front["points"][0].update(energy_pj=front["points"][0]["energy_pj"] * 0.999), "points"),
        (summary, lambda front: front.update(point_of_run=1), "point_of_run"),
    )
    for where, change, told in changes:
        where(change)
        capsys.readouterr()
        assert main(audit) == 1
        assert told in capsys.readouterr().out
        for name, content in files.items():
            (run / name).write_bytes(content)


def test_the_report_has_a_figure_only_with_a_front(whole: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """The report has a figure of the front only if the run has a front."""
    row = [file for file in ONE_CORE_FILES if file.name == "front.svg"]
    assert len(write_report(row, ReportedMapping((), whole[1]), tmp_path)) == 2
    numbers = front_figure(whole[1]).numbers()
    assert numbers["energy_pj"].tolist() == [one["energy_pj"] for one in whole[1]["front"]["points"]]
    without = {name: value for name, value in whole[1].items() if name != "front"}
    assert write_report(row, ReportedMapping((), without), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_front_has_no_table(tmp_path: Path) -> None:
    """A run without a front removes the table of an earlier front."""
    mapped(tmp_path / "run", "--front")
    assert (tmp_path / "run/front.csv").exists()
    assert "front" not in mapped(tmp_path / "run", "--no-front")
    assert not list((tmp_path / "run").glob("front.*"))
