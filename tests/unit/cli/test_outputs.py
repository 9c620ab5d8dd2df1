"""Outputs that cannot be written, the store, and missing files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from tilewright.cli.main import main

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
CORE, MAPPING = str(TINY / "hardware" / "narrow.yaml"), str(TINY / "mapping" / "free.yaml")
NETWORK = str(TINY / "workload" / "two_layers.yaml")
GIVEN = ["--hardware", CORE, "--workload", NETWORK, "--mapping", MAPPING, "--lpf-limit", "3"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small run with a store beside it."""
    folder = tmp_path_factory.mktemp("run")
    assert main(["map", *GIVEN, "-o", str(folder / "run"), "--store", str(folder / "store")]) == 0
    return folder / "run"


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message about wrong input, after exit code 2 without an internal error."""
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert next(line for line in said.splitlines() if not line.startswith("note: ")).startswith("error: ")
    assert "internal" not in said
    return said


@pytest.mark.parametrize(
    "arguments",
    [
        ["parse", "hardware", CORE, "-o", "{file}/x.json"],
        ["parse", "workload", NETWORK, "--coverage", "{file}/x.json"],
        ["export", "{run}", "-o", "{file}/x.yaml"],
        ["report", "{run}", "-o", "{file}"],
        ["summarize", "{run}", "--csv", "{file}/x.csv"],
        ["summarize", "{run}", "--parquet", "{folder}"],
        ["check", "{run}", "-o", "{folder}"],
    ],
)
def test_output_that_cannot_be_written(
    arguments: list[str], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An output inside a file, or in place of a folder, is refused with the reason."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    places = {"run": run, "file": tmp_path / "file", "folder": tmp_path / "folder"}
    assert "cannot be written: " in refused([text.format(**places) for text in arguments], capsys)


def test_map_tells_a_wrong_folder_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`map` refuses a wrong folder before the search."""

    def search(*_: object, **__: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr("tilewright.pipeline.stages.run.map_problem", search)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(["map", *GIVEN, "--no-store", "-o", str(tmp_path / "file")], capsys)


def test_gc_deletes_the_store_only(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`store gc` deletes only a store with its leftovers, and refuses a folder with other files."""
    store = run.parent / "store"
    entries = sorted(store.glob("*/*.json"))
    assert len(entries) == 2
    (entries[0].parent / ".left.json.tmp").write_text("half")
    (store / "notes.txt").write_text("mine")
    assert "notes.txt" in refused(["store", "gc", str(store)], capsys)
    assert sorted(store.glob("*/*.json")) == entries
    (store / "notes.txt").unlink()
    assert main(["store", "gc", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 3
    assert not store.exists()
    assert "is not a store" in refused(["store", "gc", str(run.parent)], capsys)
    assert "no such folder" in refused(["store", "gc", str(store)], capsys)
    assert (run / "layers.jsonl").is_file()


def test_missing_places_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing folders and files are errors."""
    none = str(tmp_path / "none.json")
    assert "no such folder" in refused(["store", "verify", none], capsys)
    assert refused(["conformance", none, f"{none}l"], capsys).count("no such reference file") == 2


def test_unfinished_runs_are_not_replaced_by_others(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`summarize --config` shows only runs of this configuration, or says that none is finished."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "single").symlink_to(run.parent)
    config = tmp_path / "config.yaml"
    config.write_text(f"runs:\n  mine: {{workload: {NETWORK}, hardware: {CORE}, mapping: {MAPPING}}}\n")
    assert "has 1 run, but no finished run" in refused(["summarize", "--config", str(config)], capsys)


def test_options_of_onnx_files_are_not_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    """Options of ONNX files are refused for a workload of layers."""
    said = refused(["parse", "workload", NETWORK, "--dim", "b=4", "--precision", "file"], capsys)
    assert "two_layers.yaml --dim: applies only to ONNX files, and this workload is not an ONNX file" in said
    assert "--precision: " in said


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("zigzag-3.9.1", "1 Relu (work unknown) not modelled; `model: corrected` reads every operator"),
        ("corrected", "1 Relu (6 operations) not run by the core"),
    ],
)
def test_network_without_layers_is_no_result(
    model: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A network without a layer for the core is refused with its operators, and no result is written."""
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    network = tmp_path / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), network)
    folder = str(tmp_path / "out")
    files = ["--hardware", CORE, "--workload", str(network), "--mapping", MAPPING]
    said = refused(["map", *files, "--model", model, "--no-store", "-o", folder], capsys)
    assert "nothing to map, because the network has no layer for this core" in said
    assert words in said
    assert not Path(folder).exists()


@pytest.mark.parametrize("dims", [["b=-1"], ["b=1", "b=2"], ["b=9007199254740993"], ["b=" + "9" * 5000], ["b=²"]])
def test_wrong_dimensions_are_told(dims: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes of dimensions are whole numbers up to 2^53, and each dimension is given once."""
    options = [text for dim in dims for text in ("--dim", dim)]
    assert "dim: " in refused(["parse", "workload", NETWORK, *options], capsys)


def test_empty_order_is_called_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mapping without temporal_ordering is refused by `evaluate`, because it leaves loops open."""
    path = tmp_path / "mapping.yaml"
    path.write_text("- name: default\n  spatial_mapping: {D1: ['K, 2']}\n")
    given = ["--hardware", CORE, "--workload", NETWORK, "--mapping", str(path)]
    assert main(["evaluate", *given]) == 2
    assert "temporal_ordering does not fix every loop" in capsys.readouterr().err


def test_warm_up_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`warm-up --json` prints JSON."""
    monkeypatch.setattr("tilewright.cli.map.map_workload", lambda *_: None)
    assert main(["warm-up", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ready": True}


FONTS_FIRST = """
import sys
from pathlib import Path
from tilewright.cli import explore, front

class Called(Exception):
    pass

def called():
    assert "matplotlib.font_manager" not in sys.modules
    raise Called

explore.keep_font_cache_here = front.keep_font_cache_here = called
for write in (lambda: explore._write(None, Path()), lambda: front._written(None, Path(), Path(), ())):
    try:
        write()
    except Called:
        print("first")
"""


def test_the_folder_of_fonts_is_named_before_fonts_are_loaded() -> None:
    """The folder for the list of fonts is set before matplotlib loads fonts."""
    library = Path(__file__).resolve().parents[3] / "lib"
    environment = {**os.environ, "PYTHONPATH": str(library)}
    command = [sys.executable, "-c", FONTS_FIRST]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "first\n" * 2
