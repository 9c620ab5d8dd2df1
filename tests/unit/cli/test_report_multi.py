"""`tilewright report` of a run on several cores."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.cli.main import main
from tilewright.multicore.scheduling.result import read_schedule

from tests.three_layers import write_network
from tests.unit.results.multi.page_data import page_data
from tests.workflow.multi_projects import TINY_MULTI

FIGURES = ("schedule", "memory", "links", "energy", "baselines", "cost_table", "allocation")
FILES = {
    *(f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")),
    "schedule.html",
    "layers.csv",
    "cores.csv",
    "memories.csv",
    "links.csv",
    "trace.json",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small run: a network of three layers on two cores."""
    folder = tmp_path_factory.mktemp("multi")
    made, costs = folder / "run", folder / "run" / "cost"
    write_network(folder / "net.onnx")
    given = ["--hardware", str(TINY_MULTI / "hardware" / "duo.yaml"), "--workload", str(folder / "net.onnx")]
    given += ["--mapping", str(TINY_MULTI / "mapping" / "duo.yaml")]
    assert main(["cns", *given, "-o", str(made)]) == 0
    for core in ("left", "right"):
        options = ["--core", core, "--lpf-limit", "3", "--no-store", "-o", str(costs / f"{core}.jsonl")]
        assert main(["cost", *given, "--cns", str(made), *options]) == 0
    given += ["--cns", str(made), "--costs", str(costs), "-o", str(made)]
    assert main(["allocate", *given]) == 0
    assert main(["schedule", *given, "--core-allocation", str(made / "allocation.json")]) == 0
    return made


@pytest.fixture(scope="module")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the report of the run."""
    folder = tmp_path_factory.mktemp("report") / "full"
    assert main(["report", str(run), "-o", str(folder)]) == 0
    return folder


def different(one: Path, other: Path) -> set[str]:
    """Return the files that differ between two complete reports."""
    assert {path.name for path in one.iterdir()} == {path.name for path in other.iterdir()} == FILES
    return {name for name in FILES if (one / name).read_bytes() != (other / name).read_bytes()}


def test_all_files_are_written_and_told(
    run: Path, report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All files are written and printed, with equal bytes each time."""
    capsys.readouterr()
    assert main(["report", str(run), "-o", str(tmp_path / "again"), "--json"]) == 0
    assert {Path(path).name for path in json.loads(capsys.readouterr().out)} == FILES
    assert different(report, tmp_path / "again") == set()


def test_numbers_are_those_of_the_run(run: Path, report: Path) -> None:
    """Page, trace and table have the numbers of the run."""
    schedule = read_schedule(run / "schedule.npz").schedule
    summary = read_artifact(run / "summary.json").payload
    page = page_data((report / "schedule.html").read_text("utf-8"))
    assert page["latency_cycles"] == schedule.latency_cycles == summary["latency_cycles"]
    assert f"{100 * summary['gap_latency']:.1f} %" in page["totals"]
    assert page["layers"][0]["tile_dimensions"] == ["OY"]
    trace = json.loads((report / "trace.json").read_text())
    assert len([event for event in trace["traceEvents"] if event.get("cat") == "cn"]) == summary["cn_count"]
    with (report / "layers.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == ["first", "relu", "second"]
    assert sum(int(row["cn_count"]) for row in rows) == summary["cn_count"]
    with (report / "cores.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["busy_cycles"]) for row in rows] == [core["busy_cycles"] for core in summary["cores"]]
    assert sum(float(row["energy_pj"]) for row in rows) == pytest.approx(summary["energy"]["on_core_pj"])
    assert {int(row["peak_bits"]) for row in rows} <= {memory["peak_bits"] for memory in summary["memories"]}


def test_tables_and_figures_are_the_two_parts(run: Path, report: Path, tmp_path: Path) -> None:
    """Tables and figures are two parts, which together are all files."""
    made = {}
    for part in ("tables", "figures"):
        assert main(["report", str(run), "-o", str(tmp_path / part), "--only", part]) == 0
        made[part] = {path.name for path in (tmp_path / part).iterdir()}
        assert all((tmp_path / part / name).read_bytes() == (report / name).read_bytes() for name in made[part])
    assert made["tables"] == {"schedule.html", "layers.csv", "cores.csv", "memories.csv", "links.csv", "trace.json"}
    assert made["figures"] == FILES - made["tables"]


@pytest.mark.parametrize("option", ["--no-plot-full-schedule", "--no-plot-data-transfer"])
def test_options_change_the_figure_of_the_schedule_alone(option: str, run: Path, report: Path, tmp_path: Path) -> None:
    """The options of plots change only the figure of the schedule."""
    assert main(["report", str(run), "-o", str(tmp_path / "other"), option]) == 0
    assert different(report, tmp_path / "other") == {"schedule.svg", "schedule.png"}


@pytest.mark.parametrize(
    "name",
    ["summary.json", "cn_graph.json", "cn_graph.npz", "generations.csv", "pareto.csv", "cost/left.jsonl"],
)
def test_a_missing_file_of_the_run_is_told_before_anything_is_written(
    name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing file of the run is refused with its name before anything is written."""
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / name).unlink()
    assert main(["report", str(copy), "-o", str(tmp_path / "report")]) == 2
    said = capsys.readouterr().err
    assert name in said
    assert "internal" not in said
    assert not (tmp_path / "report").exists()


def test_loop_nests_of_layers_are_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--loop-nest` is refused for a run on several cores."""
    assert main(["report", str(run), "-o", str(tmp_path / "report"), "--loop-nest", "first"]) == 2
    assert "--loop-nest" in capsys.readouterr().err
