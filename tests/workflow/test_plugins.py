"""An installed plug-in package: its extensions take part in reading, costs, schedules, tables and digests."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml
from onnx import TensorProto, helper
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.objectives import BUILT_IN
from tilewright.multicore.scheduling.core_costs import read_core_costs

from tests.workflow.conftest import Project

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "tests" / "plugin"
DOCUMENTED = ROOT / "docs" / "examples" / "plug_in"
CONFIG = ROOT / "config"


def wheel_of(project: Path, folder: Path) -> Path:
    """The wheel of a project with one module, written by hand, because tilewright depends on no build tool."""
    about = tomllib.loads((project / "pyproject.toml").read_text())
    name, version = about["project"]["name"].replace("-", "_"), about["project"]["version"]
    (module,) = about["tool"]["setuptools"]["py-modules"]
    points = "".join(f"{key} = {value}\n" for key, value in about["project"]["entry-points"]["tilewright"].items())
    files = {
        f"{module}.py": (project / f"{module}.py").read_text(),
        "METADATA": f"Metadata-Version: 2.1\nName: {about['project']['name']}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": f"[tilewright]\n{points}",
    }
    head = f"{name}-{version}.dist-info/"
    placed = {key if key.endswith(".py") else head + key: text for key, text in files.items()}
    placed[f"{head}RECORD"] = "".join(f"{key},,\n" for key in (*placed, f"{head}RECORD"))
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for key, text in placed.items():
            wheel.writestr(key, text)
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip installs the example, without a network."""
    return install(EXAMPLE, tmp_path_factory)


def install(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder in which pip has installed a project."""
    target = tmp_path_factory.mktemp("site")
    wheel = wheel_of(project, tmp_path_factory.mktemp("wheel"))
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, capture_output=True)
    return target


@pytest.fixture
def site(installed: Path, tmp_path: Path) -> Path:
    """A copy of the folder with the installed example, to change."""
    return shutil.copytree(installed, tmp_path / "site")


def entry_points(site: Path) -> Path:
    """The file with the entry points of the example."""
    return next(site.glob("tilewright_example-*.dist-info")) / "entry_points.txt"


def python(words: list[str], site: Path | None, folder: Path, code: int = 0, program: Path | None = None) -> str:
    """Output of Python, or of another program, with the packages of a folder beside those of this environment."""
    paths = [str(ROOT / "lib"), *([str(site)] if site else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(program or sys.executable), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def tilewright(words: list[str], site: Path | None, folder: Path, code: int = 0) -> str:
    """Output of a verb in a process that starts with packages already imported, but none of those in the folder."""
    return python(["-m", "tilewright", *words], site, folder, code, Project.programs / "python")


def digest(site: Path | None, step: str = "map") -> str:
    """The code digest of a step."""
    program = f"from tilewright.base.artifacts.step_code import code_digest; print(code_digest({step!r}))"
    return python(["-c", program], site, ROOT)


def network(path: Path, operator: str = "Doubled") -> Path:
    """A network of a convolution and an operator that only a plug-in knows; the file lacks the shape of its result."""
    shape = [1, 16, 8, 8]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], kernel_shape=[1, 1], name="conv"),
        helper.make_node(operator, ["a"], ["y"], domain="org.example", name="last"),
    ]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [16, 16, 1, 1], [0.5] * 256)
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, known) for name, known in (("x", shape), ("y", None))
    ]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:], [weights])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    return path


def test_one_core(installed: Path, tmp_path: Path) -> None:
    """The operator is a layer, both terms are in the energy, the attribute is read, and the table has the column."""
    file = yaml.safe_load((CONFIG / "hardware" / "zigzag" / "tpu_like_vector.yaml").read_text()) | {
        "clock_frequency": "1 GHz"
    }
    next(iter(file["memories"].values()))["upkeep"] = "2 mW"
    (tmp_path / "core.yaml").write_text(yaml.safe_dump(file, sort_keys=False))
    words = ["map", "--hardware", "core.yaml", "--workload", str(network(tmp_path / "net.onnx")), "--no-store"]
    words += [
        "--mapping",
        str(CONFIG / "mapping" / "zigzag" / "tpu_like_vector.yaml"),
        "--model",
        "corrected",
        "-o",
        "run",
    ]
    assert "unknown key" in tilewright(words, None, tmp_path, code=2)
    python(["-m", "tilewright", *words], installed, tmp_path)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["payload"]
    assert summary["layers"] == 2
    assert summary["setup_energy_pj"] == 2 * 1000.0
    assert summary["upkeep_energy_pj"] > 0
    tilewright(["check", "run"], installed, tmp_path)
    tilewright(["summarize", "run", "--csv", "runs.csv"], installed, tmp_path)
    with (tmp_path / "runs.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["cycles_a_layer"]) == summary["latency_cycles"] / 2


def summary_of(folder: Path) -> dict[str, Any]:
    """The summary of a run."""
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())["payload"]
    return content


def map_words(folder: Path, *options: str, engine: str = "exact") -> list[str]:
    """Command line that maps a network of two layers on a shipped core."""
    given = ["--hardware", str(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml")]
    given += ["--mapping", str(CONFIG / "mapping" / "zigzag" / "tpu_like.yaml")]
    given += ["--workload", str(ROOT / "tests/workflow/tiny/workload/two_layers.yaml"), "-o", str(folder)]
    given += ["--preset", "zigzag", "--model", "corrected", "--temporal-mapping-search-engine", engine]
    return ["map", *given, "--no-store", *options]


def test_cycles_of_a_command(installed: Path, tmp_path: Path) -> None:
    """Cycles of a command are in the latency of each layer, in all outputs that show it, and in the exact search's
    bound.
    """
    tilewright(map_words(tmp_path / "without"), None, tmp_path)
    tilewright(map_words(tmp_path / "run"), installed, tmp_path)
    without, found = summary_of(tmp_path / "without"), summary_of(tmp_path / "run")
    assert found["latency_breakdown_cycles"]["command"] == 100 * found["layers"]
    assert found["latency_cycles"] == without["latency_cycles"] + 100 * found["layers"]
    assert found["certificate"]["proven"] == found["layers"]
    for words in (["check", "run"], ["report", "run"], ["advise", "run"]):
        tilewright(words, installed, tmp_path)
    assert "command" in tilewright(["explain", "run"], installed, tmp_path)
    tilewright(["summarize", "run", "--csv", "runs.csv"], installed, tmp_path)
    with (tmp_path / "runs.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["command_cycles"]) == 100 * found["layers"]


def test_an_objective_and_a_stage(installed: Path, tmp_path: Path) -> None:
    """The plug-in's objective is a choice of the option and is minimised; its stage has its name in pipelines."""
    values = {}
    for objective in ("latency", "energy", "EDP", "OwnED2P"):
        tilewright(map_words(tmp_path / objective, "--objective", objective), installed, tmp_path)
        layers = read_artifact(tmp_path / objective / "layers.jsonl", "tilewright/layers").payload
        values[objective] = sum(layer["energy_pj"] * layer["latency_cycles"] ** 2 for layer in layers)
    assert min(values.values()) == values["OwnED2P"]
    assert summary_of(tmp_path / "OwnED2P")["objective"] == "OwnED2P"
    tilewright(map_words(tmp_path / "loma", "--objective", "OwnED2P", engine="loma"), installed, tmp_path)
    for stage in ("LeastPower", "MinimalOwnED2P"):
        (tmp_path / "stages.yaml").write_text(f"[{{replace: MinimalLatency, stage: {stage}}}]\n")
        words = map_words(tmp_path / stage, "--pipeline", "stages.yaml", engine="loma")
        tilewright(words, installed, tmp_path)
    power, loma = summary_of(tmp_path / "LeastPower"), summary_of(tmp_path / "loma")
    assert power["energy_pj"] / power["latency_cycles"] <= loma["energy_pj"] / loma["latency_cycles"]
    assert summary_of(tmp_path / "MinimalOwnED2P")["energy_pj"] == loma["energy_pj"]
    said = tilewright(map_words(tmp_path / "x", "--objective", "ED3P"), installed, tmp_path, code=2)
    assert f"allowed: {', '.join(BUILT_IN)}, OwnED2P" in " ".join(said.split())


def test_several_cores(installed: Path, tmp_path: Path) -> None:
    """The plug-in's topology links cores with the first one only, and its schedule term counts transfers."""
    cores = [str(CONFIG / "hardware" / "multi" / "cores" / f"{name}.yaml") for name in (*["k16_c16"] * 3, "offchip")]
    graph = {"type": "star", "bandwidth": 64, "offchip_core_id": 3}
    (tmp_path / "star.yaml").write_text(yaml.safe_dump({"name": "star", "cores": cores, "graph": graph}))
    (tmp_path / "mapping.yaml").write_text("- name: default\n")
    (tmp_path / "net.yaml").write_text((ROOT / "tests/workflow/tiny/workload/two_layers.yaml").read_text())
    given = ["--hardware", "star.yaml", "--workload", "net.yaml", "--mapping", "mapping.yaml"]
    assert "not one of the known values" in tilewright(["cns", *given, "-o", "run"], None, tmp_path, code=2)
    tilewright(["cns", *given, "--cn-define-mode", "1", "--hint-loops", '[["K", 2]]', "-o", "run"], installed, tmp_path)
    for words in (["cost", "--core", "k16_c16", "--cns", "run", "-o", "run/cost/k16_c16.jsonl"],):
        tilewright([*words, *given, "--no-store"], installed, tmp_path)
    tilewright(["allocate", *given, "--cns", "run", "--costs", "run/cost", "-o", "run"], installed, tmp_path)
    allocated = ["--core-allocation", "run/allocation.json"]
    tilewright(
        ["schedule", *given, *allocated, "--cns", "run", "--costs", "run/cost", "-o", "run"], installed, tmp_path
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["payload"]
    assert {link["name"] for link in summary["links"] if "->" in link["name"]} == {"0->1", "1->0", "0->2", "2->0"}
    transfers = sum(
        cause["transfers"] for name, cause in summary["energy"]["causes"].items() if name != "off_chip_stream"
    )
    assert summary["energy"]["terms_pj"] == {"grants": 2.0 * transfers}
    rows = read_core_costs(tmp_path / "run/cost/k16_c16.jsonl")
    assert all(row.total1_cycles - row.total0_cycles >= 100 for row in rows)
    tilewright(["check", "run", *given], installed, tmp_path)


def test_its_code_is_part_of_what_results_are_made_of(site: Path) -> None:
    """Installing, changing or removing a plug-in changes the code digest of steps that may run it."""
    found = [digest(None), digest(site)]
    module = site / "tilewright_example.py"
    module.write_text(module.read_text().replace("fixed_pj=1000.0", "fixed_pj=1001.0"))
    found.append(digest(site))
    assert len(set(found)) == 3
    shutil.rmtree(entry_points(site).parent)
    assert digest(site) == found[0]


def test_what_is_wrong_with_a_package_is_said(site: Path, tmp_path: Path) -> None:
    """An unknown kind, and an entry that its module lacks, end with exit code 2 and no traceback."""
    points = entry_points(site)
    text = points.read_text()
    words = ["draw", str(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml"), "-o", "x.svg"]
    points.write_text(text.replace("topology.star", "topolgy.star"))
    said = tilewright(words, site, tmp_path, code=2)
    assert "entry point topolgy.star of tilewright-example" in said
    assert "did you mean 'topology'" in said
    points.write_text(text.replace("tilewright_example:REFRESH", "tilewright_example:REFRSH"))
    assert "plug-in upkeep cannot be loaded: AttributeError: module" in tilewright(words, site, tmp_path, code=2)


CLASHES = {
    "a power with a default": (
        '"upkeep_mw", "power_mw", "Power that keeps data alive.", term="upkeep")',
        '"upkeep_mw", "power_mw", "Power that keeps data alive.", 0.5, "upkeep")',
        "plug-in upkeep is a power, so its default must be 0, not 0.5: only a hardware file can give a power",
    ),
    "a key of the file": (
        'Attribute("upkeep",',
        'Attribute("size",',
        "attribute of a memory has a key that hardware files already use for something else, got size",
    ),
    "a key that is built in": (
        'Attribute("upkeep",',
        'Attribute("leakage",',
        "attribute of a memory has the key 'leakage', which another attribute already has",
    ),
    "a field that is built in": (
        '"upkeep_mw"',
        '"leakage_mw"',
        "has the field 'leakage_mw', which another attribute already has",
    ),
    "an energy in a term": ('"power_mw"', '"energy_pj"', "which needs a power, not energy_pj"),
    "no such owner": (
        '"memory", "upkeep_mw"',
        '"memories", "upkeep_mw"',
        "belongs to 'memories'; allowed: memory, array, core",
    ),
    "another type": ("REFRESH = Attribute(", "REFRESH = str(", "cannot be loaded: TypeError"),
    "an end of the program": ("REFRESH =", "raise SystemExit(0)\nREFRESH =", "cannot be loaded: SystemExit: 0"),
    "a fault of its own": ("REFRESH =", "1 / 0\nREFRESH =", "cannot be loaded: ZeroDivisionError: division by zero"),
    "no code": ("REFRESH =", "REFRESH = = 1\nOTHER =", "cannot be loaded: SyntaxError"),
}
"""Name of a fault in the package's module -> old text, new text, part of the message."""


@pytest.mark.parametrize(("text", "other", "message"), CLASHES.values(), ids=CLASHES)
def test_a_module_at_fault_is_refused(site: Path, tmp_path: Path, text: str, other: str, message: str) -> None:
    """A module with a name that is taken, or with an object of a wrong kind, ends with exit code 2 and no numbers."""
    module = site / "tilewright_example.py"
    assert text in module.read_text()
    module.write_text(module.read_text().replace(text, other))
    said = tilewright(["validate", str(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml")], site, tmp_path, code=2)
    assert message in " ".join(said.split())
    assert "Traceback" not in said


NAMES = {
    "energy_term.setup": ("energy_term.leakage", "plug-in leakage has the name leakage, which is built in"),
    "latency_term.command": ("latency_term.drain", "plug-in drain has the name drain, which is built in"),
    "objective.OwnED2P": ("objective.EDP", "plug-in EDP has the name EDP, which is built in"),
    "stage.LeastPower": ("stage.Loma", "plug-in Loma has the name Loma, which is built in"),
    "schedule_term.grants": ("schedule_term.on_core", "plug-in on_core has the name on_core, which is built in"),
    "topology.star": ("topology.bus", "plug-in bus has the name bus, which is built in"),
    "column.cycles_a_layer": ("energy_term.memory", "plug-in memory has the name memory, which is built in"),
}
"""Entry point -> its replacement and the message."""


@pytest.mark.parametrize(("point", "other", "message"), [(key, *value) for key, value in NAMES.items()], ids=NAMES)
def test_names_that_are_taken(site: Path, tmp_path: Path, point: str, other: str, message: str) -> None:
    """An entry with the name of a built-in one is refused, and does not replace it."""
    points = entry_points(site)
    points.write_text(points.read_text().replace(point, other))
    program = (
        "from tilewright.base.registry import KINDS, Registry; from importlib import import_module\n"
        f"module = import_module(KINDS['{other.partition('.')[0]}'])\n"
        "(registry,) = [one for one in vars(module).values() if isinstance(one, Registry)]\n"
        f"registry['{other.partition('.')[2]}']"
    )
    paths = os.pathsep.join([str(ROOT / "lib"), str(site)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"InputError: {message}" in done.stderr


def test_an_entry_with_the_name_of_another_package(site: Path, tmp_path: Path) -> None:
    """An array with the name of a built-in one is refused with a message."""
    points = entry_points(site)
    points.write_text(points.read_text() + "array.analog in-memory = tilewright_example:STAR\n")
    said = tilewright(["validate", str(CONFIG / "hardware" / "zigzag" / "aimc.yaml")], site, tmp_path, code=2)
    assert "plug-in analog in-memory has the same name as tilewright.hardware.in_memory:ANALOG" in " ".join(
        said.split()
    )


def test_a_column_of_a_name_that_is_taken(site: Path, tmp_path: Path) -> None:
    """A column with the name of a built-in one, or of a term's column, is refused, and no cell is overwritten."""
    module = site / "tilewright_example.py"
    text = module.read_text()
    words = [
        "map",
        "--hardware",
        str(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml"),
        "--no-store",
        "-o",
        "run",
        "--workload",
    ]
    words += [str(ROOT / "tests/workflow/tiny/workload/two_layers.yaml")]
    tilewright([*words, "--mapping", str(CONFIG / "mapping" / "zigzag" / "tpu_like.yaml")], site, tmp_path)
    for key, message in (("energy_pj", "which is built in"), ("mac_energy_pj", "is the name of two columns")):
        module.write_text(text.replace('"cycles_a_layer"', f'"{key}"'))
        said = tilewright(["summarize", "run", "--csv", "runs.csv"], site, tmp_path, code=2)
        assert message in " ".join(said.split())
        assert not (tmp_path / "runs.csv").exists()


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip installs the example of docs/plug-ins.md."""
    return install(DOCUMENTED, tmp_path_factory)


DOCUMENTED_WORDS = ["--hardware", str(ROOT / "docs/examples/accelerator.yaml")]
DOCUMENTED_WORDS += ["--workload", str(ROOT / "docs/examples/workload.yaml"), "-o", "run", "--no-store"]
DOCUMENTED_WORDS += ["--mapping", str(ROOT / "docs/examples/mapping.yaml"), "--preset", "zigzag"]


def test_the_example_of_the_page(documented: Path, tmp_path: Path) -> None:
    """The example of docs/plug-ins.md works: each bit of results that goes to the DRAM takes 0.4 pJ.

    `--version` lists the plug-in. The term is in the output of `map`, the table of layers, the figure, the table of
    runs and the page of results. The operator has a cost.
    """
    listed = tilewright(["--version"], documented, tmp_path).splitlines()
    assert listed[1:] == [
        "plug-in column.noc_hop_share: tilewright_noc:NOC_HOP_SHARE of tilewright-noc 1",
        "plug-in energy_term.noc_hop: tilewright_noc:NOC_HOP of tilewright-noc 1",
        "plug-in operator.SoftSwitch: tilewright_noc:lower_soft_switch of tilewright-noc 1",
    ]
    said = tilewright(["map", *DOCUMENTED_WORDS], documented, tmp_path)
    summary = summary_of(tmp_path / "run")
    expected = 0.4 * 8 * (32 * 14 * 14 + 196 * 10)  # bits of the results of both layers
    assert summary["noc_hop_energy_pj"] == pytest.approx(expected, rel=1e-12)
    share = expected / summary["energy_pj"]
    assert f"the energy includes the terms of plug-ins: noc hop 0.02634 µJ ({share:.1%})" in said
    tilewright(["report", "run"], documented, tmp_path)
    rows = list(csv.DictReader((tmp_path / "run/report/layers.csv").read_text().splitlines()))
    assert sum(float(row["noc_hop_energy_pj"]) for row in rows) == pytest.approx(expected, rel=1e-12)
    assert "noc hop" in (tmp_path / "run/report/energy.svg").read_text()
    tilewright(["summarize", "run", "--csv", "runs.csv"], documented, tmp_path)
    (row,) = csv.DictReader((tmp_path / "runs.csv").read_text().splitlines())
    assert float(row["noc_hop_share"]) == pytest.approx(share, rel=1e-12)
    tilewright(["page", "run", "-o", "page.html"], documented, tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "NoC share" in page
    assert "noc hop" in page
    core = (ROOT / "docs/examples/accelerator.yaml").read_text() + "operator_types: [mac, vector]\n"
    (tmp_path / "core.yaml").write_text(core)
    given = ["--hardware", "core.yaml", "--workload", str(network(tmp_path / "net.onnx", "SoftSwitch"))]
    tilewright(["map", *DOCUMENTED_WORDS, *given, "--model", "corrected"], documented, tmp_path)
    coverage = summary_of(tmp_path / "run")["coverage"]
    assert coverage["not_costed"] == []
    assert summary_of(tmp_path / "run")["layers"] == 2


@pytest.fixture(scope="module")
def clock_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip installs the example with a number in the hardware file."""
    return install(ROOT / "docs" / "examples" / "clock_tree", tmp_path_factory)


def test_the_number_of_the_page(clock_tree: Path, tmp_path: Path) -> None:
    """A term that reads a key of the hardware file: the energy of all units in each cycle.

    `advise` and `compare` change the number. Without the plug-in, verbs name the key and the missing plug-in.
    """
    core = yaml.safe_load((ROOT / "docs/examples/accelerator.yaml").read_text())
    core["operational_array"]["clock_tree_energy"] = "50 fJ"
    (tmp_path / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    tilewright(["map", *DOCUMENTED_WORDS, "--hardware", "core.yaml", "--objective", "EDP"], clock_tree, tmp_path)
    summary = summary_of(tmp_path / "run")
    units = prod(core["operational_array"]["sizes"])
    assert summary["clock_tree_energy_pj"] == pytest.approx(0.05 * units * summary["latency_cycles"], rel=1e-12)
    files = [*DOCUMENTED_WORDS[2:4], "--mapping", str(ROOT / "docs/examples/mapping.yaml"), "--hardware", "core.yaml"]
    said = tilewright(["advise", "run", *files, "--no-search", "--no-mapping-changes"], clock_tree, tmp_path)
    assert "operational_array.clock_tree_energy" in said
    tilewright(["map", *DOCUMENTED_WORDS, "--objective", "EDP", "-o", "plain"], clock_tree, tmp_path)
    assert "energy of clock tree" in tilewright(["compare", "plain", "run"], clock_tree, tmp_path)
    for words in (["explain", "run"], ["audit", "run"], ["check", "run", "--hardware", "run/accelerator.json"]):
        said = " ".join(tilewright(words, None, tmp_path, code=2).split())
        assert "unknown key 'clock_tree_energy_pj'" in said
        assert "it was made with tilewright-clock-tree 1, which is not installed" in said


def test_other_code_of_a_plug_in_is_a_difference(documented: Path, tmp_path: Path) -> None:
    """`compare` reports plug-ins that one run lacks or that have other code; the summary names the plug-ins of
    a run.
    """
    other = shutil.copytree(documented, tmp_path / "other")
    module = other / "tilewright_noc.py"
    module.write_text(module.read_text().replace("HOPS = 4", "HOPS = 8"))
    for name, site in (("a", documented), ("b", other), ("c", None)):
        tilewright(["map", *DOCUMENTED_WORDS, "-o", name], site, tmp_path)
    provenance = read_artifact(tmp_path / "a" / "summary.json").provenance
    assert list(provenance["plug_ins"]) == ["tilewright-noc 1"]
    assert "plug_ins" not in read_artifact(tmp_path / "c" / "summary.json").provenance
    said = tilewright(["compare", "a", "b"], documented, tmp_path)
    assert "they differ in: plug-in tilewright-noc 1 (with different code)" in said
    assert "plug-in tilewright-noc 1 (only in A)" in tilewright(["compare", "a", "c"], documented, tmp_path)


FAULTY_TERMS = {
    "its own error": ("layer.size_of[name]", "layer.sizes[name]", 2, "'Layer' object has no attribute 'sizes'"),
    "another kind of answer": ("return TermCost(fixed_pj=", "return abs(", 2, "is not a valid energy for layer"),
    "no truth value": ("return True", "return __import__('numpy').ones(2)", 1, "This is a bug in a plug-in"),
    "too few arguments": ("def cost(self, layer, core, unrolling)", "def cost(self)", 2, "needs cost(layer, core,"),
}
"""Name of a fault -> old text of the module, new text, exit code, part of the message."""


@pytest.mark.parametrize(("text", "other", "code", "message"), FAULTY_TERMS.values(), ids=FAULTY_TERMS)
def test_a_fault_in_a_plug_in_is_not_called_a_bug_of_tilewright(
    documented: Path, tmp_path: Path, text: str, other: str, code: int, message: str
) -> None:
    """An error in a plug-in's code is reported with file and line, or with the names of packages, and not as
    tilewright's bug.
    """
    site = shutil.copytree(documented, tmp_path / "site")
    module = site / "tilewright_noc.py"
    assert text in module.read_text()
    module.write_text(module.read_text().replace(text, other))
    said = " ".join(tilewright(["map", *DOCUMENTED_WORDS], site, tmp_path, code=code).split())
    assert message in said
    (line,) = [number for number, row in enumerate(module.read_text().splitlines(), 1) if other in row]
    assert (f"{module}:{line} plug-in tilewright-noc 1: AttributeError" in said) == ("attribute" in message)
    assert "Please report it" not in said
    assert "Traceback" not in said


def test_a_plug_in_that_cannot_be_loaded_is_listed_and_refused(documented: Path, tmp_path: Path) -> None:
    """`--version` prints the version, the list of plug-ins and the reason, and exits with 2."""
    site = shutil.copytree(documented, tmp_path / "site")
    module = site / "tilewright_noc.py"
    module.write_text(module.read_text().replace("NOC_HOP = NocHop()", "NOC_HOPS = NocHop()"))
    said = " ".join(tilewright(["--version"], site, tmp_path, code=2).split())
    assert said.startswith("tilewright, version")
    assert "energy_term.noc_hop: tilewright_noc:NOC_HOP of tilewright-noc 1" in said
    assert (
        "plug-in noc_hop cannot be loaded: AttributeError: module 'tilewright_noc' has no attribute 'NOC_HOP'" in said
    )
