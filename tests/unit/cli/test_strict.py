"""Coverage of a network on the command line, and `--strict`."""

import json
from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main

from benchmarks.shipped import shipped

PROJECT = Path(__file__).resolve().parents[3]
MAPPING = PROJECT / "config" / "mapping" / "zigzag" / "tpu_like_vector.yaml"


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return `map` of a small network without the hardware."""
    return ["map", "--workload", str(small_network(tmp_path)), "--mapping", str(MAPPING), "--no-store"]


def small_network(folder: Path) -> Path:
    """Write conv -> relu -> pool -> flatten."""
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["y"], name="flatten"),
    ]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8, 3, 1, 1], [0.0] * 24)
    ends = [info("x", TensorProto.FLOAT, [1, 3, 4, 4])], [info("y", TensorProto.FLOAT, [1, 32])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", *ends, [weights]), opset_imports=[helper.make_opsetid("", 17)]
    )
    path = folder / "small.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def deformable_network(folder: Path) -> Path:
    """Write a deformable convolution with offsets from outside."""
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    node = helper.make_node("DeformConv", ["x", "w", "offset"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8, 8, 3, 3], [0.0] * 576)
    ends = [info("x", TensorProto.FLOAT, [1, 8, 8, 8]), info("offset", TensorProto.FLOAT, [1, 18, 8, 8])]
    graph = helper.make_graph([node], "g", ends, [info("y", TensorProto.FLOAT, [1, 8, 8, 8])], [weights])
    path = folder / "deformable.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9).SerializeToString()
    )
    return path


def hardware(name: str) -> list[str]:
    """Return the option for a shipped core."""
    return ["--hardware", str(shipped("hardware", name))]


def test_what_is_not_costed_is_told(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output and the summary have the shares of costed work and the operators without costs."""
    assert main([*arguments, *hardware("tpu_like"), "--model", "corrected", "-o", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "costed: 100% of MACs; 0% of other operations" in said
    assert (
        "free of cost, because the core does not run them: 1 Relu (128 operations), 1 MaxPool (128 operations)" in said
    )
    assert "operators that only move data, at no cost: 1 Flatten" in said
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["payload"]
    assert not summary["coverage"]["complete"]
    assert [row["operator_type"] for row in summary["coverage"]["not_costed"]] == ["Relu", "MaxPool"]
    assert summary["passed_through"] == {"Flatten": 1}


@pytest.mark.parametrize("verb", ["map", "fuse"])
def test_an_operator_with_a_layer_is_not_said_to_only_move_data(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A deformable convolution has a layer and counts as an estimate, not as an operator that only moves data."""
    network = deformable_network(tmp_path)
    core = "multi/one_core" if verb == "fuse" else "tpu_like"
    plans = ["--nb-plans", "1"] if verb == "fuse" else ["--mapping", str(MAPPING.with_name("tpu_like.yaml"))]
    assert main([verb, "--workload", str(network), *hardware(core), *plans, "-o", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "only move data" not in said
    if verb == "map":
        assert "estimated work or dependences (details: `tilewright parse` of the network): 1 DeformConv" in said
    payload = json.loads((tmp_path / "run" / "summary.json").read_text())["payload"]
    assert (payload["passed_through"], payload["approximated"]) == ({}, {"DeformConv": 1})


def test_the_reference_profile_does_not_know_all_work(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The output says that the work of operators without a layer in the reference profile is unknown."""
    assert main([*arguments, *hardware("tpu_like_vector"), "--preset", "zigzag"]) == 0
    said = capsys.readouterr().out
    assert "costed: 100% of MACs; the number of other operations is not known" in said
    assert "free of cost, because the model has no layers for them: 1 Relu, 1 MaxPool" in said


@pytest.mark.parametrize(("core", "model"), [("tpu_like", "corrected"), ("tpu_like_vector", "zigzag-3.9.1")])
def test_strict_fails_where_work_is_not_costed(
    core: str, model: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--strict` fails before any search, with a message on each operator type without costs."""
    assert main([*arguments, *hardware(core), "--model", model, "--strict"]) == 2
    said = capsys.readouterr().err
    assert "strict forbids: 1 Relu" in said
    assert "strict forbids: 1 MaxPool" in said
    assert "Flatten" not in said


def test_strict_passes_where_everything_is_costed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`--strict` passes if all layers have costs."""
    assert main([*arguments, *hardware("tpu_like_vector"), "--model", "corrected", "--strict"]) == 0
    said = capsys.readouterr().out
    assert "3 layers" in said
    assert "without costs" not in said


def test_strict_in_python(tmp_path: Path) -> None:
    """`strict` in Python refuses the same inputs as `--strict` on the command line."""
    core = yaml.safe_load((PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml").read_text())
    options = api_options()
    with pytest.raises(InputError, match="strict forbids: 1 Relu"):
        tilewright.map_workload(small_network(tmp_path), core, MAPPING, options, strict=True)
    everything = {**core, "operator_types": ["all"]}
    mapped = tilewright.map_workload(small_network(tmp_path), everything, MAPPING, options, strict=True)
    assert mapped.summary["coverage"]["complete"]


def api_options() -> object:
    """Return options with the corrected profile."""
    from tilewright.search.options import SearchOptions

    return SearchOptions(model="corrected")


def test_runs_that_cost_different_work_are_not_compared(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs whose work differs are on separate Pareto fronts."""
    for core in ("tpu_like", "tpu_like_vector"):
        output = ["-o", str(tmp_path / "runs" / core)]
        assert main([*arguments, *hardware(core), "--model", "corrected", *output]) == 0
    capsys.readouterr()
    assert main(["pareto", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert "costed 384 MACs and 0 other operations" in said
    assert "costed 384 MACs and 256 other operations" in said


MAPPING_OF_ONE = """\
- name: default
  spatial_mapping: { D1: ["K, 4"] }
  temporal_ordering: [[OX, 4], [IX, 4]]
- name: head_of_another
  spatial_mapping: { D1: ["K, 8"] }
"""


@pytest.mark.parametrize("with_hardware", [True, False])
def test_validate_holds_a_mapping_against_the_files_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], with_hardware: bool
) -> None:
    """`validate` checks a mapping against the workload beside it; unused parts are problems with --strict."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(MAPPING_OF_ONE)
    hardware = [str(PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml")] if with_hardware else []
    files = [*hardware, str(mapping), str(PROJECT / "config" / "workload" / "bert_tiny.onnx")]
    assert main(["validate", *files]) == 0
    told = capsys.readouterr().err
    assert (
        "mapping.yaml:3 default.temporal_ordering[1]: no layer that this entry selects has the loop dimension IX"
        in told
    )
    assert "head_of_another.name: selects no layer of bert_tiny" in told
    assert main(["validate", "--strict", *files]) == 2
    assert capsys.readouterr().err.count("which the option --strict forbids") == 2 + told.count("temporal_ordering[0]")
    assert len(tilewright.validate(files, strict=True)) >= 2
    assert main(["validate", "--strict", *files[:-1]]) == 0, "files without the network have no unused parts"


def test_validate_tells_keys_that_the_entry_itself_overrules(tmp_path: Path) -> None:
    """`validate --strict` refuses keys that another key of the entry replaces, for any network."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text('- name: default\n  spatial_mapping: { D1: ["K, 4"] }\n  spatial_mapping_hint: { D1: [OX] }\n')
    assert main(["validate", str(mapping)]) == 0
    assert main(["validate", "--strict", str(mapping)]) == 2


def test_validate_holds_the_mapping_of_a_space_against_its_networks(tmp_path: Path) -> None:
    """`validate` checks the mapping of a space against its networks."""
    (tmp_path / "mapping.yaml").write_text(MAPPING_OF_ONE)
    space = tmp_path / "space.yaml"
    hardware = PROJECT / "config" / "hardware" / "systolic" / "systolic.yaml"
    network = PROJECT / "config" / "workload" / "bert_tiny.onnx"
    space.write_text(
        f"accelerator: {hardware}\nnetworks: [{network}]\nmapping: mapping.yaml\n"
        "axes: {k: {path: memories.sram.r_cost, values: [1, 2]}}\n"
    )
    assert main(["validate", str(space)]) == 0
    assert main(["validate", "--strict", str(space)]) == 2
