"""`tilewright cns`: artifacts, tables, and all faults together."""

import json
from pathlib import Path

import pytest
from tilewright.cli.main import main
from tilewright.multicore.nodes.graph import read_cn_graph

from tests.unit.multicore.nodes.systems import CONFIG, QUAD_CORE

RESNET18 = CONFIG / "workload" / "resnet18.onnx"
LINES = ["--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]']


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Return `cns` of resnet18 on four cores, with a mapping file without constraints."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: default\n")
    return ["cns", "--hardware", str(QUAD_CORE), "--workload", str(RESNET18), "--mapping", str(mapping)]


def test_resnet18_line_by_line(given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """resnet18 line by line has 1,381 computation nodes and 3,740 edges, printed and written."""
    assert main([*given, *LINES, "-o", str(tmp_path / "run")]) == 0
    assert "1,381 computation nodes of 48 layers in 1 stack, 34 classes" in capsys.readouterr().out
    graph = read_cn_graph(tmp_path / "run" / "cn_graph.json", tmp_path / "run" / "cn_graph.npz")
    assert (graph.cn_count, len(graph.edge_source), graph.network) == (1381, 3740, "resnet18")
    provenance = json.loads((tmp_path / "run" / "cn_graph.json").read_text())["provenance"]
    assert provenance["options"]["hint_loops"] == [["OY", "all"]]
    assert set(provenance["inputs"]) >= {"cores", "mapping", "workload"}


def test_artifacts_of_descriptions_give_the_same_bytes(given: list[str], tmp_path: Path) -> None:
    """Artifacts of the descriptions give the same bytes as the files."""
    hardware, workload, mapping = (tmp_path / f"{name}.json" for name in ("hardware", "workload", "mapping"))
    assert main(["parse", "hardware", str(QUAD_CORE), "-o", str(hardware)]) == 0
    assert main(["parse", "workload", str(RESNET18), "-o", str(workload)]) == 0
    assert main(["parse", "mapping", str(tmp_path / "mapping.yaml"), "-o", str(mapping)]) == 0
    read = ["cns", "--hardware", str(hardware), "--workload", str(workload), "--mapping", str(mapping)]
    assert main([*given, "-o", str(tmp_path / "a")]) == main([*read, "-o", str(tmp_path / "b")]) == 0
    for name in ("cn_graph.json", "cn_graph.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_links_and_energies_do_not_count(given: list[str], tmp_path: Path) -> None:
    """An accelerator with other links and energies gives the same graph."""
    other = tmp_path / "hardware" / "quad_core.yaml"
    other.parent.mkdir()
    text = QUAD_CORE.read_text().replace("./cores", str(QUAD_CORE.parent / "cores"))
    other.write_text(text.replace("bandwidth: 64", "bandwidth: 32").replace("320 fJ", "1 pJ"))
    assert main([*given, *LINES, "-o", str(tmp_path / "a")]) == 0
    instead = [str(other) if word == str(QUAD_CORE) else word for word in given]
    assert main([*instead, *LINES, "-o", str(tmp_path / "b")]) == 0
    for name in ("cn_graph.json", "cn_graph.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_table_has_a_row_for_each_layer(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a row for each layer, as text and as JSON."""
    assert main([*given, *LINES]) == 0
    shown = capsys.readouterr().out
    assert "layer4.1.conv2" in shown
    assert "OY 112" in shown
    assert main([*given, *LINES, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["cns"], summary["edges"], len(summary["layers"])) == (1381, 3740, 48)
    assert sum(row["cns"] for row in summary["layers"]) == 1381
    assert sum(row["edges_in"] for row in summary["layers"]) == summary["data_edges"] == 2407
    first = summary["layers"][0]
    assert (first["layer"], first["loops"], first["groups"], first["classes"]) == ("conv1", [["OY", 112]], 1, 4)
    # 224 x 224 x 3 of the image, halos of 7 lines read in each of the 112 lines, weights and a bias.
    assert first["outside_bits"] > (224 * 224 * 3 + 64 * 3 * 49) * 8


BAD = """\
- name: Conv
  core_allocation: [0, 5, 9, 6]
  intra_core_tiling: ["OY, 500"]
- name: conv1
  core_allocation: [0, 1]
  core_allocation_is_fixed: true
  inter_core_tiling: ["K, 4"]
- name: MaxPool
  core_allocation: [0]
- name: default
"""


def test_everything_that_is_wrong_comes_at_once(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All faults are reported together with exit code 2, each with its place, and nothing is written."""
    (tmp_path / "mapping.yaml").write_text(BAD)
    assert main([*given, "--layer-stacks", "[[0, 1], [1, 99]]", "-o", str(tmp_path / "run")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    assert [line.split(": ")[1].partition(" ")[2] for line in lines if "mapping.yaml" in line] == [
        "Conv.core_allocation[2]",
        "Conv.core_allocation[3]",
        "Conv.core_allocation[1]",
        "Conv.intra_core_tiling[0]",
        "conv1.core_allocation",
        "MaxPool.core_allocation",
    ]
    assert "mapping.yaml:9 MaxPool.core_allocation: no core can run MaxPool maxpool" in lines[5]
    assert len(lines) == 8
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--hint-loops", "[["], "is not JSON"),
        (["--cn-define-mode", "8", "--split-w-percentage", "3"], "--split-w-percentage: wrong"),
        (["--hint-loops", '[["OY", 2]]'], "needs a --cn-define-mode"),
        (["--layer-stacks", "7"], "--layer-stacks: "),
        (["--cn-define-mode", "1", "--hint-loops", '[["OZ", 2]]'], "--hint-loops[0]: "),
        (["--stack-cutoffs", '["a"]'], "--stack-cutoffs: "),
    ],
)
def test_wrong_options(given: list[str], options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong option ends with exit code 2 and its name."""
    assert main([*given, *options]) == 2
    assert told in capsys.readouterr().err


def test_strict_refuses_work_that_is_not_costed(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator without a model is reported as free of cost, and refused with --strict."""
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Mystery", ["r"], ["y"], name="odd", domain="com.example"),
    ]
    ends = [info("x", TensorProto.FLOAT, [1, 4, 4, 4])], [info("y", TensorProto.FLOAT, [1, 4, 4, 4])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    path = tmp_path / "odd.onnx"
    path.write_bytes(helper.make_model(helper.make_graph(nodes, "g", *ends), opset_imports=opsets).SerializeToString())
    call = [*given, "--workload", str(path)]
    assert main(call) == 0
    assert "free of cost, because the model has no layers for them: 1 com.example::Mystery" in capsys.readouterr().out
    assert main([*call, "--strict"]) == 2
    assert "Mystery" in capsys.readouterr().err
