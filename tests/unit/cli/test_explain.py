"""`tilewright explain`: runs on one core and on several, with given, found and wrong descriptions."""

import json
import shutil
from pathlib import Path

import pandas
import pytest
import tilewright
from tilewright.cli.main import main

from tests.unit.cli.multi_core import GA, cut_and_cost, inputs, write_network

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
HARDWARE, WORKLOAD = TINY / "hardware/wide.yaml", TINY / "workload/two_layers.yaml"
MAPPING = TINY / "mapping/free.yaml"
GIVEN = ["--hardware", str(HARDWARE), "--workload", str(WORKLOAD)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a results folder as the pipeline does, with a run and, beside the run, its descriptions."""
    folder = tmp_path_factory.mktemp("results")
    hardware, workload = folder / "hardware/wide/accelerator.json", folder / "workload/two_layers/corrected"
    assert main(["parse", "hardware", str(HARDWARE), "-o", str(hardware)]) == 0
    network = str(workload / "workload.json")
    assert main(["parse", "workload", str(WORKLOAD), "--model", "corrected", "-o", network]) == 0
    given = ["--hardware", str(hardware), "--workload", network, "--mapping", str(MAPPING)]
    arguments = [*given, "--model", "corrected", "--lpf-limit", "3", "--no-store"]
    assert main(["map", *arguments, "-o", str(folder / "single/wide")]) == 0
    return folder


def test_descriptions_are_found_beside_a_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Descriptions beside a run are found by their digests, with the same output as for named ones."""
    run = str(results / "single/wide")
    assert main(["explain", run, "--json"]) == 0
    said = capsys.readouterr().out
    found = json.loads(said)
    assert found["limits_not_known"] == ""
    assert main(["explain", run, *GIVEN, "--json"]) == 0
    assert capsys.readouterr().out == said
    summary = json.loads((results / "single/wide/summary.json").read_text())["payload"]
    assert [found["energy_pj"], found["latency_cycles"]] == [summary["energy_pj"], summary["latency_cycles"]]
    assert main(["explain", run]) == 0
    told = capsys.readouterr().out
    assert "A port twice as wide, with the same mappings" in told
    assert "Causes of the spatial stall" in told


def test_alone_a_run_has_causes_and_no_limits(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without its hardware has causes but no limits, and the text says what to name."""
    shutil.copytree(results / "single/wide", tmp_path / "a/b/wide")
    assert main(["explain", str(tmp_path / "a/b/wide")]) == 0
    told = capsys.readouterr().out
    assert "Cycles by cause" in told
    assert "not known: the hardware of this run was not found in config, in " in told
    assert "name it with the option --hardware; the workload of this run" in told


def test_descriptions_are_found_in_config(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Descriptions are found in config; a changed network is not that of the run."""
    shutil.copytree(results / "single/wide", tmp_path / "a/b/wide")
    for kind, file in (("hardware", HARDWARE), ("workload", WORKLOAD), ("mapping", MAPPING)):
        (tmp_path / "config" / kind).mkdir(parents=True)
        shutil.copy(file, tmp_path / "config" / kind)
    shutil.copy(HARDWARE, tmp_path / "config/hardware/a_copy.yaml")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "a/b/wide", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits_not_known"] == ""
    assert main(["advise", "a/b/wide", "--no-search"]) == 0
    assert "Line numbers are those of config/hardware/wide.yaml" in capsys.readouterr().out
    network = Path("config/workload/two_layers.yaml")
    network.write_text(network.read_text().replace("loop_sizes: [", "loop_sizes: [1", 1))
    assert main(["explain", "a/b/wide"]) == 0
    told = capsys.readouterr().out
    assert "not known: the workload of this run was not found in config" in told
    assert "--hardware" not in told


def test_a_hardware_file_beside_the_run_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hardware file beside the run or in the working folder is found by content; otherwise its option is named."""
    for kind, file in (("workload", WORKLOAD), ("mapping", MAPPING)):
        (tmp_path / "config" / kind).mkdir(parents=True)
        shutil.copy(file, tmp_path / "config" / kind)
    (tmp_path / "results").mkdir()
    mine = tmp_path / "results/mine.yaml"
    mine.write_text(HARDWARE.read_text().replace("name: wide", "name: mine"))
    given = ["--hardware", str(mine), "--workload", str(WORKLOAD), "--mapping", str(MAPPING)]
    monkeypatch.chdir(tmp_path)
    assert main(["map", "--preset", "zigzag", *given, "--lpf-limit", "2", "--no-store", "-o", "results/second"]) == 0
    for place in ("results/mine.yaml", "mine.yaml"):
        mine = mine.rename(tmp_path / place)
        capsys.readouterr()
        assert main(["explain", "results/second"]) == 0
        told = capsys.readouterr().out
        assert "not known" not in told
        assert "config/mapping/free.yaml:2 (D1)" in told
        assert main(["advise", "results/second", "--no-search", "--no-mapping-changes"]) == 0
        assert f"Line numbers are those of {place}\n" in capsys.readouterr().out
    mine.unlink()
    Path("results/second/accelerator.json").unlink()
    assert main(["explain", "results/second"]) == 0
    assert "name it with the option --hardware.\n" in capsys.readouterr().out
    assert main(["advise", "results/second"]) == 2
    problems = capsys.readouterr().err.splitlines()
    assert len(problems) == 1
    assert problems[0].startswith("error: --hardware: the hardware of this run was not found in config, in ")


@pytest.mark.parametrize("verb", ["explain", "advise", "compare"])
def test_a_run_that_is_not_there_is_told_with_its_place(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing run is refused with the nearest path."""
    monkeypatch.chdir(tmp_path)
    Path("results/configurations/mine/single/first").mkdir(parents=True)
    for wrong in ("first", "results/configurations/mine/single/frist"):
        assert main([verb, wrong, *(["first"] if verb == "compare" else [])]) == 2
        place = "results/configurations/mine/single/first"
        assert f"{wrong}: no such run (did you mean '{place}'?)" in capsys.readouterr().err


def test_files_are_what_is_told(results: Path, tmp_path: Path) -> None:
    """Tables, JSON and figure agree with the printed text and have equal bytes each time."""
    run = results / "single/wide"
    for name in ("one", "two"):
        found = tilewright.explain(run, output=tmp_path / name)
    names = ["bottlenecks.csv", "bottlenecks.json", "bottlenecks.png", "bottlenecks.svg", "ports.csv"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    tilewright.explain(run, output=tmp_path / "figures", only="figures")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == names[2:4]
    tilewright.explain(run, output=tmp_path / "tables", only="tables")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [*names[:2], names[4]]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    table = pandas.read_csv(tmp_path / "one/bottlenecks.csv", keep_default_na=False)
    sums = table.groupby("quantity")["value"].sum()
    assert sums["latency_cycles"] == found.run.latency_cycles
    assert sums["energy_pj"] == pytest.approx(found.run.energy_pj, rel=1e-14)
    ports = pandas.read_csv(tmp_path / "one/ports.csv")
    for layer, rows in ports.groupby("layer"):
        best = rows.loc[rows["rank"].idxmin()]
        assert best["gain_cycles"] == rows["gain_cycles"].max()
        limiting = found.limits[layer].limiting
        assert (limiting is not None) == (best["gain_cycles"] > 0)


def test_what_is_wrong_is_told(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hardware of another run, an unknown layer and a folder without a run are refused."""
    run = str(results / "single/wide")
    narrow = str(TINY / "hardware/narrow.yaml")
    assert main(["explain", run, "--hardware", narrow, "--workload", str(WORKLOAD)]) == 2
    assert f"{narrow} is not the hardware of the run in {run}" in capsys.readouterr().err
    assert main(["explain", run, "--layer", "nothing"]) == 2
    assert "the run has no such layer, got nothing" in capsys.readouterr().err
    assert main(["explain", str(tmp_path)]) == 2
    assert "has neither layers.jsonl nor" in capsys.readouterr().err


def test_a_network_of_which_an_in_memory_array_leaves_out_a_layer(tmp_path: Path) -> None:
    """The network of a run is recognised, although the in-memory array leaves out a layer."""
    config = TINY.parents[2] / "config"
    text = WORKLOAD.read_text() + (
        "- {id: 2, name: added, operator_type: Add, equation: 'O[b][k]=W[b][k]+I[b][k]', dimension_relations: [],\n"
        "   loop_dims: [B, K], loop_sizes: [1, 8], operand_precision: {W: 8, I: 8, O: 16, O_final: 8},\n"
        "   operand_source: {I: 1, W: 1}}\n"
    )
    network, mapping = tmp_path / "net.yaml", config / "mapping/zigzag/aimc.yaml"
    network.write_text(text)
    given = {"hardware": config / "hardware/zigzag/aimc.yaml", "workload": network}
    mapped = tilewright.map(**given, mapping=mapping, model="corrected", lpf_limit=2, output=tmp_path / "run")
    assert [record.layer.name for record in mapped.records] == ["first", "second"]
    found = tilewright.explain(tmp_path / "run", **given, mapping=mapping)
    assert found.unknown == ""
    assert found.array is not None
    assert [one.layer for one in found.array.layers] == ["first", "second"]


def test_a_run_on_several_cores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run on several cores has energies and latency by layer; `--hardware` and other descriptions are refused."""
    network, run = write_network(tmp_path), tmp_path / "several"
    cut_and_cost(network, run)
    assert main(["allocate", *inputs(network, run), *GA, "--jobs", "1", "-o", str(run)]) == 0
    allocation = ["--core-allocation", str(run / "allocation.json")]
    assert main(["schedule", *inputs(network, run), *allocation, "-o", str(run)]) == 0
    found = tilewright.explain(run)
    total = sum(one.value for one in found.shares if one.quantity == "latency_cycles")
    assert total == found.run.latency_cycles
    capsys.readouterr()
    assert main(["explain", str(run)]) == 0
    told = capsys.readouterr().out
    assert "Energy by memory" in told
    assert "limited by: " in told
    assert "Cycles of each core by cause" in told
    assert found.cores is not None
    by_core = found.cores.table.groupby("core")["cycles"].sum()
    assert by_core.tolist() == [found.run.latency_cycles] * 2
    files = tilewright.explain(run, output=tmp_path / "tables", only="tables")
    assert pandas.read_csv(tmp_path / "tables/core_cycles.csv")["cycles"].sum() == 2 * files.run.latency_cycles
    assert not (tmp_path / "tables/ports.csv").exists()
    assert "Parts of the latency" in told
    assert "computing on 0: " in told
    assert sum(part.cycles for part in found.chain) == found.run.latency_cycles
    assert main(["explain", str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["latency_chain"]
    assert sum(row["cycles"] for row in rows) == found.run.latency_cycles
    layer = max(found.layers, key=lambda name: found.cores.of_layer(name).table["cycles"].sum())
    assert main(["explain", str(run), "--layer", layer]) == 0
    assert "Cycles of the cores that run the layer or wait to run it" in capsys.readouterr().out
    of_layers = [sum(part.cycles for part in tilewright.explain(run, layer).chain) for layer in found.layers]
    assert sum(of_layers) == found.run.latency_cycles
    assert main(["explain", str(run), *GIVEN]) == 2
    assert "is not used: bottlenecks of a run on several cores" in capsys.readouterr().err


def test_a_core_that_runs_a_part_of_the_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` finds the network of a run under `corrected`, although the run keeps only the layers of its core."""
    results, network = tmp_path / "results", TINY.parents[2] / "config/workload/bert_tiny.onnx"
    hardware, parsed = (
        TINY.parents[2] / "config/hardware/zigzag/tpu_like.yaml",
        results / "workload/bert/corrected/workload.json",
    )
    assert main(["parse", "workload", str(network), "--model", "corrected", "-o", str(parsed)]) == 0
    artifact = results / "hardware/tpu_like/accelerator.json"
    assert main(["parse", "hardware", str(hardware), "-o", str(artifact)]) == 0
    run, mapping = results / "single/run", TINY.parents[2] / "config/mapping/zigzag/tpu_like.yaml"
    given = ["--hardware", str(hardware), "--workload", str(parsed)]
    arguments = [*given, "--mapping", str(mapping), "--preset", "zigzag", "--model", "corrected"]
    arguments += ["--lpf-limit", "2", "--no-store"]
    assert main(["map", *arguments, "-o", str(run)]) == 0
    assert tilewright.explain(run).unknown == ""
    assert tilewright.explain(run, hardware=hardware, workload=network).unknown == ""
    capsys.readouterr()
    assert main(["advise", str(run), *given, "--mapping", str(mapping), "--no-search"]) == 0
    assert "One change that helps latency" in capsys.readouterr().out
