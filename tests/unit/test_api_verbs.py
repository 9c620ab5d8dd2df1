"""The verbs of the command line as functions: same names, same results."""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import tilewright
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.parameters import parameters_of
from tilewright.cli.main import VERBS, main
from tilewright.cli.parse import READERS
from tilewright.cli.verb import command_of

from tests.unit.cli.multi_core import CORES, GA, HARDWARE, MAPPING, cut_and_cost, inputs, write_network

pytestmark = pytest.mark.usefixtures("unpainted")

PROJECT = Path(__file__).resolve().parents[2]
TINY = PROJECT / "tests" / "workflow" / "tiny"
HARDWARE_FILE = TINY / "hardware" / "wide.yaml"
OF_COMMANDS = {"verbose", "as_json", "help", "no_store", "plan"}
"""Options without a keyword in Python.

They concern printing, the store and plans: a function has a store only if it is given one, and takes `plan.stacks` and
`schedule_settings` in place of a plan.
"""


def function_name(verb: str) -> str:
    """Return the name of a verb in Python."""
    return verb.replace("-", "_")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run on one core."""
    folder = tmp_path_factory.mktemp("run")
    given = ["--workload", TINY / "workload" / "two_layers.yaml", "--mapping", TINY / "mapping" / "free.yaml"]
    arguments = [
        "map",
        "--preset",
        "zigzag",
        "--hardware",
        HARDWARE_FILE,
        *given,
        "--lpf-limit",
        "3",
        "--no-store",
        "-o",
        folder,
    ]
    assert main([str(argument) for argument in arguments]) == 0
    return folder


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run on two cores."""
    folder = tmp_path_factory.mktemp("schedule")
    network = write_network(folder)
    cut_and_cost(network, folder)
    assert main(["allocate", *inputs(network, folder), *GA, "--jobs", "1", "-o", str(folder)]) == 0
    allocation = ["--core-allocation", str(folder / "allocation.json"), "-o", str(folder)]
    assert main(["schedule", *inputs(network, folder), *allocation]) == 0
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_documented_function(verb: str) -> None:
    """Each verb is a documented function of its name, also after the packages `cost` and `report` are imported."""
    function = getattr(tilewright, function_name(verb))
    assert inspect.isfunction(function)
    assert function.__doc__
    assert f"`{function_name(verb)}`" in (PROJECT / "docs" / "many-runs.md").read_text()


def commands() -> Iterator[tuple[str, click.Command, Callable[..., Any]]]:
    """Yield each verb with its command and function, each kind of `parse` and each action of `store`."""
    for verb in VERBS:
        command = command_of(VERBS[verb][0])
        function = getattr(tilewright, function_name(verb))
        for name, part in getattr(command, "commands", {"": command}).items():
            yield f"{verb} {name}".strip(), part, READERS[name] if verb == "parse" else function


@pytest.mark.parametrize(("command", "function"), [pytest.param(*rest, id=verb) for verb, *rest in commands()])
def test_every_option_is_a_keyword(command: click.Command, function: Callable[..., Any]) -> None:
    """Each option is a keyword of the same name, with the default of the class that declares it."""
    known = inspect.signature(function).parameters
    for option in command.params:
        names = {str(option.name)} | {text.lstrip("-").replace("-", "_") for text in option.opts}
        found = names & {*known, *OF_COMMANDS}
        assert found, option.name
        parameter = getattr(option, "parameter", None)
        if parameter is not None:
            declared = next(one for one in parameters_of(parameter.owner) if one.name == parameter.name)
            assert known[parameter.name].default in (parameter.default, declared.default)


def test_descriptions_are_parsed_by_their_kind(tmp_path: Path) -> None:
    """`parse` writes the same artifacts as the command and refuses an unknown kind or option."""
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
    """`store` verifies artifacts and deletes damaged ones on request; `validate` takes several files."""
    folder = tmp_path / "single" / "one"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("no artifact")
    with pytest.raises(tilewright.ArtifactError, match="damaged"):
        tilewright.store("verify", tmp_path)
    found = tilewright.store("verify", tmp_path, remove_damaged=True)
    # Beside them it looks at the caches of the project, into which other tests may write.
    assert [path for path in found["damaged"] if ".cache" not in Path(path).parts] == [str(folder / "summary.json")]
    assert not (folder / "summary.json").exists()
    with pytest.raises(tilewright.InputError, match="action: no such action"):
        tilewright.store("collect")
    assert tilewright.validate([HARDWARE, MAPPING]) == ()
    assert tilewright.validate(MAPPING, "hardware")
    assert tilewright.results(PROJECT / "config" / "config.yaml")["results"] == "results"
    assert {"model", "objective"} <= {row["name"] for row in tilewright.options()}


def test_packages_of_the_names_of_verbs_are_importable() -> None:
    """Packages with names of verbs can be imported in any order."""
    code = (
        "import tilewright.cost.record, tilewright.results.tables; from tilewright.results import figures;"
        "from tilewright.cost import record; import tilewright;"
        "print(callable(tilewright.cost), callable(tilewright.report), record.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "tilewright.cost.record"]


def test_check_report_and_export_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check`, `report` and `export` return and write the same as the commands."""
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
    """`summarize` and `pareto` have a row for each run on one core or on several."""
    table = tilewright.summarize([run, schedule], csv=tmp_path / "summary.csv")
    assert sorted(table["flow"]) == ["multi", "single"]
    assert (tmp_path / "summary.csv").is_file()
    assert list(tilewright.pareto([run, schedule])["run"]) == [run.name, schedule.name]
    with pytest.raises(tilewright.InputError, match="give folders of runs"):
        tilewright.pareto([])


def test_check_of_several_cores(schedule: Path) -> None:
    """`check` without given files reads the descriptions in the run; its checks equal those with given files."""
    found = tilewright.check(schedule)
    assert found[-1].name == "problem"
    assert all(one.passed for one in found)
    assert tilewright.check(schedule, HARDWARE, schedule / "net.onnx", MAPPING) == found


def test_hardware_is_drawn_and_varied(tmp_path: Path) -> None:
    """`draw` writes figures of a core, and `vary` writes valid variants."""
    assert {path.suffix for path in tilewright.draw(HARDWARE_FILE, tmp_path / "core.svg")} == {".svg", ".png"}
    files = tilewright.vary(PROJECT / "config" / "hardware" / "systolic" / "variants.yml", tmp_path)
    assert files
    assert all(tilewright.validate(file) == () for file in files)


def test_split_is_that_of_the_verb(schedule: Path, tmp_path: Path) -> None:
    """`split` gives the same file as the command."""
    settings: dict[str, Any] = {"split_W_percentage": 0.02}
    found = tilewright.split(schedule / "net.onnx", HARDWARE, MAPPING, tmp_path / "split.onnx", **settings)
    assert [len(one.parts) for one in found.splits] == [2, 2, 2]
    given = ["--hardware", HARDWARE, "--workload", str(schedule / "net.onnx"), "--mapping", MAPPING]
    assert main(["split", *given, "--split-w-percentage", "0.02", "-o", str(tmp_path / "same.onnx")]) == 0
    assert (tmp_path / "same.onnx").read_bytes() == (tmp_path / "split.onnx").read_bytes()
    with pytest.raises(tilewright.InputError, match="split_W_percentage: wrong share"):
        tilewright.split(schedule / "net.onnx", HARDWARE, MAPPING, split_W_percentage=2.0)


def test_cost_of_one_core(schedule: Path) -> None:
    """`cost` makes the cost table of one core file, or of all of them."""
    cns = tilewright.cns(schedule / "net.onnx", HARDWARE, MAPPING)
    assert list(tilewright.cost(cns, lpf_limit=3, core="left").costs) == ["left"]
    assert list(tilewright.cost(cns, lpf_limit=3).costs) == list(CORES)
    with pytest.raises(tilewright.InputError, match="no such core file"):
        tilewright.cost(cns, core="middle")


# what functions write ------------------------------------------------------------------------------------------------


def assert_same_files(written: Path, expected: Path) -> None:
    """Assert that each file of a folder has the bytes of the file of the same name in another folder."""
    files = [file for file in written.rglob("*") if file.is_file()]
    assert files
    for file in files:
        other = expected / file.relative_to(written)
        if file.name == "accelerator.json":  # of what was parsed before there is no text
            assert read_artifact(file).payload == read_artifact(other).payload
        else:
            assert file.read_bytes() == other.read_bytes(), file.name


def test_map_writes_what_the_command_writes(run: Path, tmp_path: Path) -> None:
    """`map` writes the same as the command, from files and from parsed objects, with a folder as store."""
    files = (TINY / "workload" / "two_layers.yaml", HARDWARE_FILE, TINY / "mapping" / "free.yaml")
    mapped = tilewright.map(*files, preset="zigzag", lpf_limit=3, output=tmp_path / "files", store=tmp_path / "store")
    assert_same_files(tmp_path / "files", run)
    parsers = (tilewright.parse_workload, tilewright.parse_accelerator, tilewright.parse_mapping)
    parsed = [parse(file) for parse, file in zip(parsers, files, strict=True)]
    assert (
        tilewright.map(*parsed, preset="zigzag", lpf_limit=3, output=tmp_path / "parsed", store=str(tmp_path / "store"))
        == mapped
    )
    assert_same_files(tmp_path / "parsed", run)
    assert any((tmp_path / "store").iterdir())


def test_steps_in_memory_write_what_the_commands_write(schedule: Path, tmp_path: Path) -> None:
    """Functions that get the results of earlier ones in memory write the same as the commands."""
    cns = tilewright.cns(schedule / "net.onnx", HARDWARE, MAPPING, output=tmp_path)
    costs = tilewright.cost(cns, output=tmp_path / "cost")
    found = tilewright.allocate(costs, nb_ga_individuals=4, nb_ga_generations=2, exhaustive_nodes=0, output=tmp_path)
    made = tilewright.schedule(costs, found, output=tmp_path)
    assert_same_files(tmp_path, schedule)
    assert made.latency_cycles == found.latency_cycles


def test_steps_in_folders_write_what_the_commands_write(schedule: Path, tmp_path: Path) -> None:
    """Functions that get the folders of earlier steps write the same as the commands, also with a baseline."""
    given: dict[str, Any] = {"hardware": HARDWARE, "workload": schedule / "net.onnx", "mapping": MAPPING}
    cns = tilewright.cns(**given, output=tmp_path)
    for core in CORES:
        tilewright.cost(tmp_path, **given, core=core, output=tmp_path / "cost" / f"{core}.jsonl")
    run: dict[str, Any] = {**given, "cns": tmp_path, "costs": tmp_path / "cost"}
    tilewright.allocate(**run, nb_ga_individuals=4, nb_ga_generations=2, exhaustive_nodes=0, output=tmp_path)
    tilewright.schedule(**run, core_allocation=tmp_path / "allocation.json", output=tmp_path)
    assert_same_files(tmp_path, schedule)
    compared = {"core_allocation": tmp_path / "allocation.json", "baseline": schedule}
    tilewright.schedule(tmp_path / "cost", cns=cns, **compared, output=tmp_path / "compared")
    arguments = [*inputs(schedule / "net.onnx", schedule), "--core-allocation", str(schedule / "allocation.json")]
    same = tmp_path / "same"
    assert main(["schedule", *arguments, "--baseline", str(schedule), "-o", str(same)]) == 0
    assert_same_files(tmp_path / "compared", same)


def test_a_pipeline_is_that_of_the_command(schedule: Path, tmp_path: Path) -> None:
    """A pipeline as a list or as JSON text gives the same as on the command line."""
    given: dict[str, Any] = {"hardware": HARDWARE, "workload": schedule / "net.onnx", "mapping": MAPPING}
    pipeline = [{"set": "IntraCoreMapping", "parameters": {"lpf_limit": 2}}]
    text = json.dumps(pipeline)
    cns = tilewright.cns(**given, pipeline=pipeline, output=tmp_path / "python")
    tilewright.cost(cns, core="left", pipeline=text, output=tmp_path / "python" / "left.jsonl")
    described = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
    folder = str(tmp_path / "command")
    assert main(["cns", *described, "--pipeline", text, "-o", folder]) == 0
    of_core = ["--cns", folder, "--core", "left", "--no-store", "-o", f"{folder}/left.jsonl"]
    assert main(["cost", *described, "--pipeline", text, *of_core]) == 0
    assert_same_files(tmp_path / "python", tmp_path / "command")
    assert (tmp_path / "python" / "cn_graph.json").read_bytes() != (schedule / "cn_graph.json").read_bytes()


def test_evaluate_writes_what_the_command_writes(run: Path, tmp_path: Path) -> None:
    """`evaluate` writes the same bytes as the command, whether mappings come from files, lists or a single object."""
    given: dict[str, Any] = {"hardware": HARDWARE_FILE, "workload": TINY / "workload" / "two_layers.yaml"}
    described = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
    (tmp_path / "found.yaml").write_text(tilewright.export(run, hardware=HARDWARE_FILE))
    records = tilewright.evaluate(**given, mapping=tmp_path / "found.yaml", output=tmp_path / "found.jsonl")
    assert main(["evaluate", *described, "--mapping", str(tmp_path / "found.yaml"), "-o", str(tmp_path / "same")]) == 0
    assert (tmp_path / "found.jsonl").read_bytes() == (tmp_path / "same").read_bytes()
    points = [
        {"layer": record.layer.name, "spatial_mapping": record.spatial_mapping, "loop_order": order}
        for record in records
        for order in (record.loop_order, ())
    ]
    with pytest.raises(tilewright.MappingError, match="2 of 4 mappings do not fit\nfirst: "):
        tilewright.evaluate(**given, points=points, output=tmp_path / "points.jsonl")
    (tmp_path / "points").write_text("\n".join(map(json.dumps, points)))
    assert main(["evaluate", *described, "--points", str(tmp_path / "points"), "-o", str(tmp_path / "same")]) == 2
    assert (tmp_path / "points.jsonl").read_bytes() == (tmp_path / "same").read_bytes()
    (second,) = tilewright.evaluate("second", **given, mapping=tmp_path / "found.yaml")
    assert second == records[1]
    core, network = tilewright.parse_accelerator(HARDWARE_FILE).cores[0], tilewright.parse_workload(given["workload"])
    mapped = (network.layers_in_order[1].layer, core, second.spatial_mapping, second.loop_order)
    one = tilewright.evaluate(*mapped, model="corrected")
    assert (one.model, one.energy_pj) == ("corrected", second.corrected.energy_pj)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda cns: tilewright.cns("net", HARDWARE, MAPPING, ouput="x", mode="x"),
         ["ouput: no such setting (did you mean 'output'?)", "mode: not a mode"]),
        (lambda cns: tilewright.map("net", HARDWARE, MAPPING, dim={"x": 1}),
         ["dim: no such setting (did you mean 'dims'?)"]),
        (lambda cns: tilewright.map("net", HARDWARE, MAPPING, dims=3), ["dims: wrong kind of value"]),
        (lambda cns: tilewright.map("net", HARDWARE, MAPPING, precision="x"), ["unknown precision"]),
        (lambda cns: tilewright.cost("out"), ["hardware: is needed in addition to out", "mapping: is needed"]),
        (lambda cns: tilewright.cost(cns, workload="net"), ["workload: cannot be given in addition to a CnProblem"]),
        (lambda cns: tilewright.allocate("out/cost"), ["cns: is needed in addition to out/cost"]),
        (lambda cns: tilewright.schedule(tilewright.cost(cns, lpf_limit=2), cns=cns), ["cns: cannot be given"]),
        (lambda cns: tilewright.evaluate(points=[]), ["hardware: is required if no layer object is given"]),
        (lambda cns: tilewright.evaluate("conv", loop_order=[]), ["loop_order: needs a layer object"]),
        (lambda cns: tilewright.evaluate(hardware=HARDWARE_FILE, workload=TINY / "workload" / "two_layers.yaml",
                                         points=[{"layer": "secnd"}]),
         ["points[0].loop_order: required key is missing", "points[0].layer: no such layer"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_arguments_is_told(call: Callable[[Any], Any], told: list[str], schedule: Path) -> None:
    """Wrong arguments are reported by name, with the nearest one."""
    with pytest.raises(tilewright.InputError) as caught:
        call(tilewright.cns(schedule / "net.onnx", HARDWARE, MAPPING))
    for text in told:
        assert text in str(caught.value)
