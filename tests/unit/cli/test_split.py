"""`tilewright split`: an ONNX file with layers that fit, and the report on the split layers."""

import json
from pathlib import Path

import onnx
import pytest
from tilewright.cli.main import main
from tilewright.multicore.nodes.weights import weight_bits
from tilewright.workload.source import parse_workload

from tests.unit.multicore.nodes.systems import CONFIG, QUAD_CORE

RESNET18 = CONFIG / "workload" / "resnet18.onnx"
CAPACITY_BITS = 256 * 8192


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Return `split` of resnet18 for four cores of 256 KiB, which may run all layers."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: default\n")
    return ["split", "--hardware", str(QUAD_CORE), "--workload", str(RESNET18), "--mapping", str(mapping)]


def test_resnet18(given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """9 layers of resnet18 become 48 that fit, in a small file without weights."""
    path = tmp_path / "out" / "split.onnx"
    assert main([*given, "-o", str(path)]) == 0
    shown = capsys.readouterr()
    assert "resnet18: 9 layers become 48" in shown.out
    assert "sram_weight of core 0" in shown.out
    assert shown.err == ""
    assert path.stat().st_size < 3 * RESNET18.stat().st_size
    layers = [node.layer for node in parse_workload(path, "corrected").nodes if node.layer]
    assert max(weight_bits(layer) for layer in layers) <= CAPACITY_BITS
    assert sum(layer.name.startswith("layer4.1.conv2#") for layer in layers) == 10


def test_a_split_network_runs_through_the_next_step(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A split network has the same MACs and goes through `cns`; an entry of a layer holds for its parts."""
    path = tmp_path / "split.onnx"
    assert main([*given, "-o", str(path)]) == 0
    (tmp_path / "mapping.yaml").write_text(
        "- name: default\n- name: layer4.1.conv2\n  intra_core_tiling: ['OY, 7']\n- name: fc\n  core_allocation: [3]\n"
    )
    capsys.readouterr()
    call = ["cns", *given[1:], "--json", "--layer-stacks", "[[0, 1]]"]
    assert main([*call, "--workload", str(path)]) == 0
    rows = {row["layer"]: row for row in json.loads(capsys.readouterr().out)["layers"]}
    assert len(rows) == 48 - 9 + 48
    assert rows["layer4.1.conv2#10of10"]["operator_type"] == "Conv"


def test_what_is_split_as_json(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output has layer, memory, limit, and the channels of each part."""
    assert main([*given, "--split-w-double-buffered", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    split = {one["layer"]: one for one in told["splits"]}
    fc = split["fc"]
    assert (fc["core"], fc["memory"], fc["memory_bits"], fc["capacity_bits"]) == (
        0, "sram_weight", CAPACITY_BITS, CAPACITY_BITS // 2,
    )  # fmt: skip
    assert [(part["name"], part["first_channel"], part["channels"]) for part in fc["parts"]] == [
        (f"fc#{place + 1}of4", 250 * place, 250) for place in range(4)
    ]
    assert fc["largest_part_bits"] == 250 * 512 * 8 <= fc["capacity_bits"]
    assert "layer2.0.conv2" in split


def test_nothing_to_split(given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A network without layers to split is written unchanged."""
    path = tmp_path / "split.onnx"
    call = [*given, "--workload", str(CONFIG / "workload" / "bert_tiny.onnx"), "-o", str(path)]
    assert main(call) == 0
    onnx.load(str(path), load_external_data=False)
    assert main([*given, "--workload", str(path), "-o", str(tmp_path / "again.onnx")]) == 0
    assert "no layer is split" in capsys.readouterr().out
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--workload", "{folder}/workload.json"], "only layers of ONNX files can be split"),
        (["--workload", "{folder}/none.onnx"], "no such"),
        (["--hardware", str(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml")], "several cores need"),
        (["--split-w-percentage", "0"], "--split-w-percentage"),
        (["--split-w-percentage", "1e-6"], "one output channel"),
    ],
)
def test_wrong_input(
    given: list[str], change: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong input ends with exit code 2 and no file."""
    assert main(["parse", "workload", str(RESNET18), "-o", str(tmp_path / "workload.json")]) == 0
    arguments = [text.format(folder=tmp_path) for text in change]
    assert main([*given, *arguments, "-o", str(tmp_path / "split.onnx")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "split.onnx").exists()
