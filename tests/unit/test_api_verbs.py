"""The verbs of the command line as functions: the same names, the same results."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.cli.main import VERBS, main

from tests.unit.cli.multi_core import CORES, GA, HARDWARE, MAPPING, cut_and_cost, inputs, write_network

PROJECT = Path(__file__).resolve().parents[2]
TINY = PROJECT / "tests" / "workflow" / "tiny"
HARDWARE_FILE = TINY / "hardware" / "wide.yaml"
ONLY_COMMANDS = {"parse", "results", "store", "conformance", "validation", "warm-up"}
"""Verbs that look after files, or compare; `parse` is `parse_accelerator`, `parse_workload`, `parse_mapping`."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on one core."""
    folder = tmp_path_factory.mktemp("run")
    given = ["--workload", TINY / "workload" / "two_layers.yaml", "--mapping", TINY / "mapping" / "free.yaml"]
    arguments = ["map", "--hardware", HARDWARE_FILE, *given, "--lpf-limit", "3", "--no-store", "-o", folder]
    assert main([str(argument) for argument in arguments]) == 0
    return folder


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on two cores."""
    folder = tmp_path_factory.mktemp("schedule")
    network = write_network(folder)
    cut_and_cost(network, folder)
    assert main(["allocate", *inputs(network, folder), *GA, "--threads", "1", "-o", str(folder)]) == 0
    allocation = ["--allocation", str(folder / "allocation.json"), "-o", str(folder)]
    assert main(["schedule", *inputs(network, folder), *allocation]) == 0
    return folder


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ONLY_COMMANDS])
def test_every_verb_is_a_documented_function(verb: str) -> None:
    """Of the same name, also once the packages `cost` and `report` are imported."""
    function = getattr(tilewright, verb)
    assert inspect.isfunction(function)
    assert function.__doc__
    assert f"`{verb}`" in (PROJECT / "docs" / "guide.md").read_text()


def test_packages_of_the_names_of_verbs_are_importable() -> None:
    """Whatever is imported first."""
    code = (
        "import tilewright.cost.record, tilewright.report.tables; from tilewright.report import figures;"
        "from tilewright.cost import record; import tilewright;"
        "print(callable(tilewright.cost), callable(tilewright.report), record.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "tilewright.cost.record"]


def test_check_report_and_export_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the commands write and print."""
    checks = tilewright.check(run, HARDWARE_FILE, output=tmp_path / "checks.json")
    assert all(one.passed for one in checks)
    assert main(["check", str(run), "--hardware", str(HARDWARE_FILE), "-o", str(tmp_path / "same.json")]) == 0
    assert (tmp_path / "same.json").read_bytes() == (tmp_path / "checks.json").read_bytes()
    files = tilewright.report(run, tmp_path / "report")
    assert {"energy.svg", "layers.csv", "loop_nests.txt"} <= {file.name for file in files}
    assert all(file.is_file() for file in files)
    capsys.readouterr()
    assert main(["export", str(run), "--format", "loop-nest"]) == 0
    assert capsys.readouterr().out == tilewright.export(run, "loop-nest")
    written = tilewright.export(run, "simple-json", output=tmp_path / "simple")
    assert written
    assert tilewright.export(run, "simple-json")["layers"]


def test_tables_of_runs(run: Path, schedule: Path, tmp_path: Path) -> None:
    """A row for each run, of one core and of several."""
    table = tilewright.summarize([run, schedule], csv=tmp_path / "summary.csv")
    assert sorted(table["flow"]) == ["multi", "single"]
    assert (tmp_path / "summary.csv").is_file()
    assert list(tilewright.pareto([run, schedule])["run"]) == [run.name, schedule.name]
    with pytest.raises(tilewright.InputError, match="give folders of runs"):
        tilewright.pareto([])


def test_check_of_several_cores(schedule: Path) -> None:
    """With the descriptions the problem is made again."""
    plain = tilewright.check(schedule)
    described = tilewright.check(schedule, HARDWARE, schedule / "net.onnx", MAPPING)
    assert len(described) > len(plain)
    assert all(one.passed for one in described)


def test_hardware_is_drawn_and_varied(tmp_path: Path) -> None:
    """Figures of a core, and files of variants."""
    assert {path.suffix for path in tilewright.draw(HARDWARE_FILE, tmp_path / "core.svg")} == {".svg", ".png"}
    files = tilewright.vary(PROJECT / "config" / "hardware" / "systolic" / "variants.yml", tmp_path)
    assert files
    assert all(tilewright.validate(file) == () for file in files)


def test_split_is_that_of_the_verb(schedule: Path, tmp_path: Path) -> None:
    """Layers with weights that are too large become several."""
    settings: dict[str, Any] = {"split_W_percentage": 0.02}
    found = tilewright.split(schedule / "net.onnx", HARDWARE, MAPPING, tmp_path / "split.onnx", **settings)
    assert [len(one.parts) for one in found.splits] == [2, 2, 2]
    given = ["--hardware", HARDWARE, "--workload", str(schedule / "net.onnx"), "--mapping", MAPPING]
    assert main(["split", *given, "--split-w-percentage", "0.02", "-o", str(tmp_path / "same.onnx")]) == 0
    assert (tmp_path / "same.onnx").read_bytes() == (tmp_path / "split.onnx").read_bytes()
    with pytest.raises(tilewright.InputError, match="split_W_percentage: wrong share"):
        tilewright.split(schedule / "net.onnx", HARDWARE, MAPPING, split_W_percentage=2.0)


def test_cost_of_one_core(schedule: Path) -> None:
    """One core file, or all of them."""
    cns = tilewright.cns(schedule / "net.onnx", HARDWARE, MAPPING)
    assert list(tilewright.cost(cns, lpf_limit=3, core="left").costs) == ["left"]
    assert list(tilewright.cost(cns, lpf_limit=3).costs) == list(CORES)
    with pytest.raises(tilewright.InputError, match="no such core file"):
        tilewright.cost(cns, core="middle")
