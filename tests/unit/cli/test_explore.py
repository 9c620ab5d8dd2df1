"""`tilewright explore` on the command line: output, files and refusals."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas
import pytest
import tilewright
import yaml
from tilewright.cli.main import main
from tilewright.cli.map import map_workload
from tilewright.designs.design_cost import NO_MAPPING
from tilewright.designs.kept_designs import KeptDesigns
from tilewright.designs.space_reader import read_space
from tilewright.search.options import SearchOptions
from tilewright.workload.network_options import NetworkOptions

pytestmark = pytest.mark.usefixtures("unpainted")

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
SPACE = """
accelerator: hardware/wide.yaml
mapping: mapping/free.yaml
networks: [workload/two_layers.yaml]
axes:
  lanes: {path: operational_array.sizes.0, values: [2, 4]}
  kib: {values: [0.0625, 16]}
laws: {memories.memory.size: kib * 8192}
options: {objective: energy, lpf_limit: 3}
shard_designs: 3
"""


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """Write a space of four designs, two of which fit no layer."""
    for name in ("hardware/wide.yaml", "mapping/free.yaml", "workload/two_layers.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(TINY / name, tmp_path / name)
    path = tmp_path / "lanes.yaml"
    path.write_text(SPACE)
    return path


def test_the_number_of_designs_comes_first(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number of designs is printed first, then the answer with reasons for failed designs."""
    assert main(["explore", str(space)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("lanes: 4 designs on two_layers; 2 of 2 shards to evaluate\n")
    assert "1 design is infeasible: no mapping of layer" in said
    assert "too small" in said or "cannot hold" in said


def test_only_what_is_missing_is_said_to_be_evaluated(
    space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says how many shards are missing."""
    for options, missing in ((["--shard", "1"], 2), ([], 1), ([], 0)):
        assert main(["explore", str(space), "-o", str(tmp_path / "out"), *options]) == 0
        said = capsys.readouterr().out
        assert options or said.startswith(f"lanes: 4 designs on two_layers; {missing} of 2 shards to evaluate\n")


def test_an_interruption_tells_the_best_design_so_far(
    space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C prints the best design so far and how to continue; the same command evaluates only the other designs."""
    keep, out = KeptDesigns.keep, tmp_path / "out"

    def kept_once(self: KeptDesigns, *block: Any) -> None:
        keep(self, *block)
        raise KeyboardInterrupt

    space.write_text(SPACE.replace("shard_designs: 3", "shard_designs: 100").replace("[2, 4]", "[2, 4, 8]"))
    monkeypatch.setattr(KeptDesigns, "keep", kept_once)
    assert main(["explore", str(space), "-o", str(out)]) == 130
    said = capsys.readouterr()
    assert "the results of 4 of 6 designs are kept" in said.err
    assert "  best of 4 designs so far:\n  least energy: design lanes-3 with " in said.out
    monkeypatch.setattr(KeptDesigns, "keep", keep)
    assert main(["explore", str(space), "-o", str(out)]) == 0
    assert "; 4 designs already evaluated by an interrupted exploration\n" in capsys.readouterr().out
    table = pandas.read_csv(out / "space.csv")
    assert len(table) == 6
    assert table[table["index"] < 4].sort_values("energy_pj")["design"].iloc[0] == "lanes-3"


def test_bits_of_operands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A space with `bits` has the costs of `map` with these bits, also in the run of --show.
    Other bits make the results outdated, and wrong bits are refused.
    """
    root, out = TINY.parents[2] / "config", tmp_path / "out"
    space: dict[str, Any] = {
        "accelerator": str(root / "hardware" / "systolic" / "systolic.yaml"),
        "networks": [str(root / "workload" / "bert_tiny.onnx")],
        "bits": {"activations": 4, "MatMul.weights": 2},
        "axes": {"rows": {"path": "operational_array.sizes.0", "values": [16]}},
        "options": {"lpf_limit": 3, "bounds": False, "nb_spatial_mappings_generated": 1},
    }
    path = tmp_path / "bits.yaml"
    path.write_text(yaml.safe_dump(space, sort_keys=False))
    table = tilewright.explore(path, out)
    assert main(["explore", str(path), "-o", str(out), "--show", "bits-0"]) == 0
    run = json.loads((out / "designs" / "bits-0" / "bert_tiny" / "summary.json").read_text())["payload"]
    assert run["energy_pj"] == table["energy_pj"].iloc[0]
    bits = NetworkOptions(bits=(("activations", 4), ("MatMul.weights", 2)))
    options = read_space(path).options
    assert isinstance(options, SearchOptions)
    hardware = out / "designs" / "bits-0" / "hardware.yaml"
    mapped = map_workload(space["networks"][0], hardware, NO_MAPPING, options, network_options=bits)
    assert mapped.summary["energy_pj"] == table["energy_pj"].iloc[0]
    plain = tilewright.explore(space | {"bits": {}})
    assert plain["energy_pj"].iloc[0] > table["energy_pj"].iloc[0]
    capsys.readouterr()
    path.write_text(yaml.safe_dump(space | {"bits": {"activations": 8}}, sort_keys=False))
    assert main(["explore", str(path), "-o", str(out), "--gather"]) == 0
    said = capsys.readouterr()
    assert "1 of 1 shards are incomplete or out of date" in said.err
    assert "Bits of operands: activations 8." in said.out
    layers = str(TINY / "workload" / "two_layers.yaml")
    wrong = {"bits": {"activation": 16, "weights": 0, "partial": 4096}, "networks": [layers]}
    path.write_text(yaml.safe_dump(space | wrong, sort_keys=False))
    assert main(["validate", str(path)]) == 2
    said = capsys.readouterr()
    for fault in (
        "bits.activation: ",
        "did you mean 'activations'?",
        "bits.weights: ",
        "bits.partial: wrong number of bits, got 4096",
        "networks[0]: `bits` applies only to ONNX files",
    ):
        assert fault in said.err + said.out


def zeros_space(**changes: Any) -> dict[str, Any]:
    """Return a space with zero gating and two shares of zeros of one network."""
    root = TINY.parents[2] / "config"
    network = str(root / "workload" / "bert_tiny.onnx")
    return {
        "accelerator": str(root / "hardware" / "systolic" / "systolic.yaml"),
        "networks": {"dense": network, "sparse": network},
        "zeros": {"weights": 0.1, "sparse": {"activations": 0.8}},
        "axes": {
            "gating": {"choices": {"none": {}, "inputs": {"operational_array.zero_gating": {"operands": ["I1"]}}}}
        },
        "options": {"lpf_limit": 3, "bounds": False, "nb_spatial_mappings_generated": 1},
    } | changes


def test_zeros_of_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A network has its own shares of zeros, beside the shares for all networks, also in the run of --show.
    Other shares make the results outdated.
    """
    path, out = tmp_path / "zeros.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(zeros_space(), sort_keys=False))
    table = tilewright.explore(path, out).set_index(["design", "network"])["energy_pj"]
    assert table["zeros-1", "dense"] == table["zeros-0", "dense"] == table["zeros-0", "sparse"]
    assert table["zeros-1", "sparse"] < table["zeros-0", "sparse"]
    assert main(["explore", str(path), "-o", str(out), "--show", "zeros-1"]) == 0
    run = json.loads((out / "designs" / "zeros-1" / "sparse" / "summary.json").read_text())["payload"]
    assert run["energy_pj"] == table["zeros-1", "sparse"]
    capsys.readouterr()
    path.write_text(yaml.safe_dump(zeros_space(zeros={"activations": 0.5}), sort_keys=False))
    assert main(["explore", str(path), "-o", str(out), "--gather"]) == 0
    said = capsys.readouterr()
    assert "1 of 1 shards are incomplete or out of date" in said.err
    assert "Shares of zeros of dense, sparse: activations 0.5." in said.out


def test_wrong_and_unused_shares_of_zeros(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong shares of zeros are refused together; unused shares get a notice, unless designs have keys for zeros."""
    path = tmp_path / "zeros.yaml"
    wrong = {"weight": 0.1, "weights": 2, "partial": {"weights": 0.1}, "sparse": {"outputs": -1}}
    layers = {"dense": str(TINY / "workload" / "two_layers.yaml"), "sparse": zeros_space()["networks"]["sparse"]}
    path.write_text(yaml.safe_dump(zeros_space(zeros=wrong, networks=layers), sort_keys=False))
    assert main(["validate", str(path)]) == 2
    said = capsys.readouterr().err
    for fault in (
        "zeros.weight: unknown operand, got weight (allowed: weights, activations, outputs) (did you mean 'weights'?)",
        "zeros.weights: wrong share of zeros, got 2 (allowed: a number from 0 to 1)",
        "zeros.partial: no network has this name",
        "zeros.sparse.outputs: wrong share of zeros, got -1",
        "networks.dense: `zeros` applies only to ONNX files",
    ):
        assert fault in said
    rows = {"rows": {"path": "operational_array.sizes.0", "values": [16]}}
    for axes, told in ((rows, True), (zeros_space()["axes"], False)):
        path.write_text(yaml.safe_dump(zeros_space(axes=axes), sort_keys=False))
        assert main(["validate", str(path)]) == 0
        said = capsys.readouterr()
        assert ("no key of the hardware file uses the zeros of W" in said.err + said.out) == told


def test_json_is_the_front(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output is the front and no further text."""
    assert main(["explore", str(space), "--json"]) == 0
    front = json.loads(capsys.readouterr().out)
    assert front
    assert {"design", "energy_pj", "latency_cycles", "lanes", "kib"} <= front[0].keys()


def test_files_and_what_is_missing(space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A single shard gives no answer; gathering names the missing shards, and a full run makes all files."""
    out = tmp_path / "out"
    assert main(["explore", str(space), "-o", str(out), "--shard", "1"]) == 0
    assert [path.name for path in out.rglob("*") if path.is_file()] == ["00001.parquet"]
    assert main(["explore", str(space), "-o", str(out), "--gather"]) == 0
    assert "1 of 2 shards are incomplete or out of date: 0" in capsys.readouterr().err
    assert len(pandas.read_csv(out / "space.csv")) == 1
    assert main(["explore", str(space), "-o", str(out)]) == 0
    assert len(pandas.read_csv(out / "space.csv")) == 4
    assert {"explore.html", "front.csv", "front.parquet", "space.parquet"} <= {path.name for path in out.iterdir()}


def test_a_design_is_shown_by_its_name(space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--show` makes the full run of a design with the numbers of the table, and a valid hardware file."""
    out = tmp_path / "out"
    assert main(["explore", str(space), "-o", str(out)]) == 0
    row = pandas.read_csv(out / "space.csv").set_index("design").loc["lanes-3"]
    assert main(["explore", str(space), "-o", str(out), "--show", "lanes-3"]) == 0
    explained = str(out / "designs/lanes-3/two_layers"), "--workload", str(tmp_path / "workload/two_layers.yaml")
    assert main(["explain", *explained]) == 0  # its hardware is found
    said = capsys.readouterr().out
    assert "two_layers on lanes-3: " in said
    assert "limited by" in said
    run = out / "designs" / "lanes-3" / "two_layers"
    summary = json.loads((run / "summary.json").read_text())["payload"]
    assert (summary["energy_pj"], summary["latency_cycles"]) == (row["energy_pj"], row["latency_cycles"])
    assert (run / "checks.json").is_file()
    assert (run / "report" / "energy.svg").is_file()
    assert main(["validate", str(out / "designs" / "lanes-3" / "hardware.yaml")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shard", "0"], "-o: is needed"),
        (["-o", "out", "--shard", "2"], "no such shard, got 2 (allowed: 0 to 1)"),
        (["-o", "out", "--shard", "0", "--gather"], "--shard: cannot be combined with --gather"),
        (["--show", "lanes-1"], "-o: is needed"),
        (["-o", "out", "--show", "lane-1"], "no such design, got lane-1 (did you mean 'lanes-1'?)"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_what_is_refused(
    space: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong options are refused with exit code 2, and nothing is written."""
    monkeypatch.chdir(space.parent)
    assert main(["explore", str(space), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (space.parent / "out").exists()
