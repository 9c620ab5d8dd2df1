"""The verbs of the command line as functions: the same names, the same results."""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import tilewright
from tilewright.cli.main import VERBS, main
from tilewright.cli.parse import READERS

from tests.unit.cli.multi_core import CORES, GA, HARDWARE, MAPPING, cut_and_cost, inputs, write_network

PROJECT = Path(__file__).resolve().parents[2]
TINY = PROJECT / "tests" / "workflow" / "tiny"
HARDWARE_FILE = TINY / "hardware" / "wide.yaml"
OF_COMMANDS = {"verbose", "as_json", "help", "no_store"}
"""Options that say what is printed; a function has no store unless it is given one."""
OF_OBJECTS = {"map", "cns", "cost", "allocate", "schedule", "evaluate"}
"""Verbs whose functions take and give what is in memory instead of the files of a command."""
ONE_KEYWORD = dict.fromkeys(("dims", "input_shapes", "branches", "precision"), "network_options")
"""Options of commands that are one keyword of functions."""


def function_name(verb: str) -> str:
    """As Python writes it."""
    return verb.replace("-", "_")


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


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_documented_function(verb: str) -> None:
    """Of the same name, also once the packages `cost` and `report` are imported."""
    function = getattr(tilewright, function_name(verb))
    assert inspect.isfunction(function)
    assert function.__doc__
    assert f"`{function_name(verb)}`" in (PROJECT / "docs" / "guide.md").read_text()


def commands() -> Iterator[tuple[str, click.Command, Callable[..., Any]]]:
    """Each verb with its command and its function; each kind of `parse`, each action of `store`."""
    for verb in VERBS:
        command, function = importlib.import_module(VERBS[verb][0]).command, getattr(tilewright, function_name(verb))
        for name, part in getattr(command, "commands", {"": command}).items():
            if verb not in OF_OBJECTS:
                yield f"{verb} {name}".strip(), part, READERS[name] if verb == "parse" else function


@pytest.mark.parametrize(("command", "function"), [pytest.param(*rest, id=verb) for verb, *rest in commands()])
def test_every_option_is_a_keyword(command: click.Command, function: Callable[..., Any]) -> None:
    """By the name that it has on the command line; functions take parameters of classes as settings."""
    known = inspect.signature(function).parameters
    has_settings = any(one.kind is one.VAR_KEYWORD for one in known.values())
    for option in command.params:
        names = {ONE_KEYWORD.get(str(option.name), str(option.name))}
        names |= {text.lstrip("-").replace("-", "_") for text in option.opts}
        of_class = has_settings and hasattr(option, "parameter")
        assert of_class or not names.isdisjoint({*known, *OF_COMMANDS}), option.name


def test_descriptions_are_parsed_by_their_kind(tmp_path: Path) -> None:
    """The same artifacts as the command writes; an unknown kind or option is told."""
    core = tilewright.parse("hardware", HARDWARE, tmp_path / "left.json", core="left")
    assert core == tilewright.parse_accelerator(HARDWARE).distinct_cores["left"]
    assert main(["parse", "hardware", HARDWARE, "--core", "left", "-o", str(tmp_path / "same.json")]) == 0
    assert (tmp_path / "same.json").read_bytes() == (tmp_path / "left.json").read_bytes()
    network = tilewright.parse("workload", TINY / "workload" / "two_layers.yaml", table=tmp_path / "layers.csv")
    assert len((tmp_path / "layers.csv").read_text().splitlines()) == 1 + len(network.layers_in_order)
    assert tilewright.parse("mapping", MAPPING) == tilewright.parse_mapping(MAPPING)
    with pytest.raises(tilewright.InputError, match="kind: no such kind of file"):
        tilewright.parse("hardwar", HARDWARE)
    with pytest.raises(tilewright.InputError, match="cors: no such option"):
        tilewright.parse("hardware", HARDWARE, cors=tmp_path)


def test_files_are_looked_after(tmp_path: Path) -> None:
    """Artifacts are verified, damaged ones deleted if asked for; several files are validated in one call."""
    folder = tmp_path / "single" / "one"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("no artifact")
    with pytest.raises(tilewright.ArtifactError, match="damaged"):
        tilewright.store("verify", tmp_path)
    found = tilewright.store("verify", tmp_path, remove_damaged=True)
    assert found == {"artifacts": 1, "damaged": [str(folder / "summary.json")]}
    assert tilewright.store("verify", tmp_path) == {"artifacts": 0, "damaged": []}
    with pytest.raises(tilewright.InputError, match="action: no such action"):
        tilewright.store("collect")
    assert tilewright.validate([HARDWARE, MAPPING]) == ()
    assert tilewright.validate(MAPPING, "hardware")
    assert tilewright.results(PROJECT / "config" / "config.yaml")["results"] == "results"
    assert {"model", "objective"} <= {row["name"] for row in tilewright.options()}


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
