"""Folders of results of a configuration, and files of an accelerator that each step depends on."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.manifest import UP_TO_DATE
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import load_yaml
from tilewright.cli.config import plan_of
from tilewright.cli.config_files import SystemFiles, is_system, read_system
from tilewright.cli.main import main
from tilewright.cli.results import unfinished_runs, unfinished_spaces
from tilewright.cli.runs import read_unfinished
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import COLUMNS
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.pipeline.configuration.keys import RunPlan
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.multi.items import part_digest
from tilewright.search.options import SearchOptions
from tilewright.workload.source import parse_workload

from tests.three_layers import write_network

TEXT = "runs: {a: {workload: net, hardware: core, mapping: free}}\n"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, name in (("hardware", "core"), ("workload", "net"), ("mapping", "free")):
        Path("config", kind).mkdir(parents=True)
        Path("config", kind, f"{name}.yaml").write_text("memories: {}\n")


def place(*files: str, text: str = TEXT) -> str:
    """Write configuration files and return their folder of results."""
    for file in files:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text)
    documents = [load_yaml(file) for file in files]
    return str(plan_of(documents[-1].data, documents).results)


def test_each_file_has_a_folder_of_its_own() -> None:
    """Each configuration file has its own folder; several files have a folder with all names."""
    assert place("config/config.yaml") == place(str(Path("config/config.yaml").resolve())) == "results"
    assert place("mine.yaml") == "results/configurations/mine"
    assert place("config/pareto.yaml") == "results/configurations/pareto"
    assert place("a b{c}.yaml") == "results/configurations/a_b_c_"
    assert place("config/config.yaml", "over.yaml") == "results/configurations/config+over"
    assert place("mine.yaml", text=f"results_dir: out/x\n{TEXT}") == "out/x"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("results", "config/config.yaml already writes its results to this folder"),
        ("results/front/x", "this folder is inside the results of config/config.yaml"),
        ("results/single/x", "this folder is inside the results of config/config.yaml"),
        ("'{run}'", "not a folder for results"),
        ("../out", "not a folder for results"),
        ("3", "not a folder for results"),
        ("''", "not a folder for results"),
    ],
)
def test_wrong_folders(said: str, part: str) -> None:
    """A wrong folder of results is reported with the line of its key."""
    with pytest.raises(InputError) as caught:
        place("mine.yaml", text=f"results_dir: {said}\n{TEXT}")
    assert part in str(caught.value)
    assert str(caught.value).startswith("mine.yaml:1 results_dir: ")


def test_a_folder_belongs_to_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder belongs to one configuration file, until this file is gone."""
    place("a/mine.yaml")
    assert main(["results", "a/mine.yaml", "--claim"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "results/configurations/mine",
        "results/configurations/mine/logs",
    ]
    with pytest.raises(InputError, match="this folder has results of another configuration"):
        place("b/mine.yaml")
    assert place("a/mine.yaml") == "results/configurations/mine"
    Path("a/mine.yaml").unlink()
    assert place("b/mine.yaml") == "results/configurations/mine"


MADE = ("single/a/map", "single/a/check", "summary")


@pytest.mark.parametrize(
    ("due", "has_summary", "state"),
    [
        ((), True, None),
        (("summary",), True, None),
        (("single/a/map",), False, "failed"),
        (("single/a/map",), True, "stale"),
        (("single/a/check",), True, "failed"),
    ],
)
def test_unfinished_runs(due: tuple[str, ...], has_summary: bool, state: str | None) -> None:
    """A run counts as failed if it has no result or check, as stale after a change, and otherwise as done."""
    place("config/config.yaml")
    plan = plan_of(load_yaml("config/config.yaml").data, [load_yaml("config/config.yaml")])
    if has_summary:
        Path("results/single/a").mkdir(parents=True)
        Path("results/single/a/summary.json").write_text("{}")
    states = {name: "changed: code" if name in due else UP_TO_DATE for name in MADE}
    row = {"run": "a", "flow": "single", "state": state, "workload": "net", "hardware": "core"}
    assert unfinished_runs(plan, states) == ([row] if state else [])


def test_a_configuration_that_never_ran_is_unfinished() -> None:
    """All runs of a configuration that never ran are unfinished, and asking for them creates no folder of results."""
    place("config/config.yaml")
    assert main(["results", "config/config.yaml", "-o", "out.json"]) == 0
    row = {"run": "a", "flow": "single", "state": "failed", "workload": "net", "hardware": "core"}
    assert read_unfinished(Path("out.json")) == [row]
    assert not Path("results").exists()


def test_unfinished_spaces() -> None:
    """An exploration and a complete front of one space have separate folders and states."""
    spaces = {"lanes": "lanes.yaml"}
    plan = RunPlan((), {}, {}, Path("results"), Path("logs"), spaces, spaces)
    folders = "space/lanes", "front/lanes"
    for unfinished in ((), folders[:1], folders[1:], folders):
        states = {f"{name}/answer": "changed: code" if name in unfinished else UP_TO_DATE for name in folders}
        found = [row["folder"] for row in unfinished_spaces(plan, states)]
        assert found == [f"results/{name}" for name in unfinished]


def test_a_wrong_list_of_unfinished_runs_is_told() -> None:
    """A wrong or missing list of unfinished runs is refused with exit code 2."""
    Path("wrong.json").write_text("[1]")
    assert main(["summarize", "--unfinished", "wrong.json"]) == 2
    assert main(["pareto", "--unfinished", "none.json"]) == 2


TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny_multi"
EVERYTHING = "everything"
OFFCHIP_PORT = "bandwidth_max: 64"
EDITS: dict[str, tuple[str, str, str, set[str]]] = {
    "a comment": ("cores/left.yaml", "name: left", "# words\nname: 'left'  # more", set()),
    "an energy": ("cores/left.yaml", "r_cost: 50", "r_cost: 51", {"left", EVERYTHING}),
    "a bandwidth": ("cores/right.yaml", "bandwidth_max: 128", "bandwidth_max: 64", {"right", EVERYTHING}),
    "an array": ("cores/left.yaml", "sizes: [2]", "sizes: [3]", {"left", EVERYTHING}),
    "a capacity": ("cores/left.yaml", "size: 4 KiB", "size: 200 B", {"left", "graph", EVERYTHING}),
    "what a core file runs": ("cores/right.yaml", "[all]", "[vector]", {"right", "graph", EVERYTHING}),
    "the off-chip energy": ("cores/offchip.yaml", "r_cost: 1000", "r_cost: 10", {"left", "right", EVERYTHING}),
    "the off-chip bandwidth": ("cores/offchip.yaml", OFFCHIP_PORT, "bandwidth_max: 128", {"left", "right", EVERYTHING}),
    "a link": ("duo.yaml", "bandwidth: 32", "bandwidth: 16", {EVERYTHING}),
    "its energy": ("duo.yaml", "energy_per_bit: 0.1", "energy_per_bit: 0.2", {EVERYTHING}),
    "places": ("duo.yaml", "name: duo", "name: duo\ncore_coordinates: { 0: [1, 0] }", {EVERYTHING}),
    "routers": ("duo.yaml", "name: duo", "name: duo\nrouters: [0]", {EVERYTHING}),
    "a role": ("duo.yaml", "name: duo", "name: duo\ncore_roles: { 1: simd }", {"right", "graph", EVERYTHING}),
    "what a core runs": (
        *("duo.yaml", "name: duo", "name: duo\ncore_operator_types: { 0: [mac] }"),
        {"left", "graph", EVERYTHING},
    ),
    "another core": (
        "duo.yaml",
        "1: ./cores/right.yaml",
        "1: ./cores/left.yaml",
        {"left", "right", "graph", EVERYTHING},
    ),
    "which core is which": (
        *("duo.yaml", "0: ./cores/left.yaml, 1: ./cores/right.yaml", "1: ./cores/left.yaml, 0: ./cores/right.yaml"),
        {"left", "right", "graph", EVERYTHING},
    ),
    "the name in a core file": ("cores/left.yaml", "name: left", "name: l", {"left", EVERYTHING}),
    "shared memories": (
        *("duo.yaml", "core_connectivity:\n  - { type: link, cores: [0, 1], bandwidth: 32, energy_per_bit: 0.1 }"),
        *('core_memory_sharing: ["0, 1"]', {"graph", EVERYTHING}),
    ),
}
"""Maps an edit to its file, old text, new text, and the digests that must change."""


@pytest.fixture
def hardware(tmp_path: Path) -> Path:
    """Return a copy of the files of the tiny accelerator."""
    shutil.copytree(TINY / "hardware", tmp_path / "hardware")
    return tmp_path / "hardware"


def digests(system: SystemFiles) -> dict[str, Any]:
    """Return all digests of an accelerator by their names."""
    tables = {name: system.of_cost_table(name) for name in ("left", "right")}
    return {"graph": system.of_graph, EVERYTHING: system.everything} | tables


def products(hardware: Path) -> dict[str, Any]:
    """Return the graph of computation nodes and the cost table of each core, as the steps make them."""
    network = hardware.parent / "net.onnx"
    if not network.exists():
        write_network(network)
    workload = parse_workload(network, "corrected")
    accelerator = parse_accelerator(hardware / "duo.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    # Where no core is named, what cores can run decides.
    entries = [{"name": "default"}, {"name": "second", "core_allocation": [1]}]
    mapping = parse_mapping(entries)
    options = TilingOptions(cn_define_mode=4, hint_loops=[["OY", "all"]])
    graph = build_cn_graph(workload, network_tiling(workload, mapping, accelerator, options))
    search = SearchOptions(lpf_limit=3, model="corrected")
    columns = [getattr(graph, name).tolist() for name in COLUMNS]
    found: dict[str, Any] = {"graph": [encode(graph.layers), columns, part_digest(accelerator)]}
    # Tables of the graph of the unchanged accelerator: that another graph makes other tables is no news.
    same = parse_accelerator(TINY / "hardware" / "duo.yaml")
    assert isinstance(same, MultiCoreAccelerator)
    graph = build_cn_graph(workload, network_tiling(workload, mapping, same, options))
    off_chip = encode(accelerator.core_of[2])
    for name, core in accelerator.distinct_cores.items():
        found[name] = [encode(core), off_chip]
        found[name] += [encode(row) for row in map_core(graph, workload, mapping, accelerator, name, search)]
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the products of the unchanged files."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(TINY / "hardware", folder / "hardware")
    return products(folder / "hardware")


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_digests_of_what_depends_on_it(edit: str, hardware: Path, made: dict[str, Any]) -> None:
    """An edit changes exactly the expected digests, and each changed product has a changed digest."""
    before = digests(read_system(hardware / "duo.yaml"))
    file, old, new, expected = EDITS[edit]
    text = (hardware / file).read_text()
    assert old in text
    (hardware / file).write_text(text.replace(old, new))
    after, remade = digests(read_system(hardware / "duo.yaml")), products(hardware)
    changed = {part for part in before if before[part] != after[part]}
    assert changed == expected
    assert {part for part in made if made[part] != remade.get(part)} <= changed


def test_edits_that_change_what_is_made_are_among_them(hardware: Path, made: dict[str, Any]) -> None:
    """Each of three products is changed by one of the edits, so the previous test does compare changed products."""
    for part, (file, old, new, _) in {
        "graph": EDITS["a capacity"],
        "left": EDITS["an energy"],
        "right": EDITS["a bandwidth"],
    }.items():
        text = (hardware / file).read_text()
        (hardware / file).write_text(text.replace(old, new))
        assert products(hardware)[part] != made[part]
        (hardware / file).write_text(text)


def test_names_of_cores(hardware: Path) -> None:
    """Cores are named by their distinct files without the off-chip core, as in the reader."""
    system = read_system(hardware / "duo.yaml")
    assert system.core_names == ("left", "right")
    assert system.offchip_id == 2
    assert dict(system.name_of) == {0: "left", 1: "right", 2: "offchip"}
    accelerator = parse_accelerator(hardware / "duo.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    assert tuple(accelerator.distinct_cores) == system.core_names
    text = (hardware / "duo.yaml").read_text()
    (hardware / "duo.yaml").write_text(text.replace("1: ./cores/right.yaml", "1: ./cores/left.yaml"))
    assert read_system(hardware / "duo.yaml").core_names == ("left",)


@pytest.mark.parametrize("name", ["quad_core", "heterogeneous", "quad_mesh"])
def test_names_of_cores_of_the_examples(name: str) -> None:
    """The files of the examples have the same core names and off-chip core as the reader, in both forms."""
    file = Path(__file__).resolve().parents[3] / "config" / "hardware" / "multi" / f"{name}.yaml"
    accelerator = parse_accelerator(file)
    assert isinstance(accelerator, MultiCoreAccelerator)
    system = read_system(file)
    assert system.core_names == tuple(accelerator.distinct_cores)
    assert system.offchip_id == accelerator.offchip_core_id


def test_roles_of_a_regular_graph_count(tmp_path: Path, hardware: Path) -> None:
    """The role of a core in a 2024 graph changes the digests for the CN graph and the core's cost table.

    The bandwidth changes only the digest of the whole accelerator.
    """
    file = hardware / "mesh.yaml"
    text = """
name: mesh
cores: [./cores/left.yaml, ./cores/right.yaml, ./cores/offchip.yaml]
graph: { type: 2d_mesh, nb_rows: 1, nb_cols: 1, bandwidth: 8, offchip_core_id: 2, simd_core_id: 1 }
"""
    file.write_text(text)
    before = digests(read_system(file))
    file.write_text(text.replace("bandwidth: 8", "bandwidth: 16"))
    after = digests(read_system(file))
    assert {part for part in before if before[part] != after[part]} == {EVERYTHING}
    file.write_text(text.replace("simd_core_id", "pooling_core_id"))
    after = digests(read_system(file))
    assert {part for part in before if before[part] != after[part]} == {"right", "graph", EVERYTHING}


def test_broken_files_have_digests_too(hardware: Path) -> None:
    """Broken and missing files have digests too; the step that reads them reports the fault."""
    good = digests(read_system(hardware / "duo.yaml"))
    (hardware / "cores" / "left.yaml").write_text("memories: [")
    assert digests(read_system(hardware / "duo.yaml")) != good
    (hardware / "cores" / "left.yaml").unlink()
    assert read_system(hardware / "duo.yaml").core_names == ("right",)
    (hardware / "duo.yaml").write_text("cores: [")
    broken = read_system(hardware / "duo.yaml")
    assert broken.core_names == ()
    assert broken.everything != read_system(hardware / "none.yaml").everything
    assert read_system(hardware / "none.yaml").of_cost_table("left")


def test_files_of_several_cores(hardware: Path) -> None:
    """A file of several cores is recognized by its cores; a missing file is undecided."""
    assert is_system(hardware / "duo.yaml") is True
    assert is_system(hardware / "cores" / "left.yaml") is False
    assert is_system(hardware / "none.yaml") is None
