"""Networks with another batch equal the network written with that batch, or are refused."""

import copy
import json
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.workload.batches import BatchedNetwork
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.source import parse_workload

from tests.unit.multicore.nodes.networks import SAME, conv
from tests.unit.workload.onnx.dependency_checks import build_model

LAYER: dict[str, Any] = {
    "id": 0,
    "operator_type": "Gemm",
    "equation": "O[b][k] += W[k][c] * I[b][c]",
    "loop_dims": ["B", "K", "C"],
    "loop_sizes": [2, 8, 4],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
}
MODEL = {
    "language_model": {
        "model_type": "llama",
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": 20,
    },
    "phase": "decode",
    "context": 7,
}


def layers(**changed: Any) -> list[dict[str, Any]]:
    """Two layers, the second with changed keys."""
    return [copy.deepcopy(LAYER), {**copy.deepcopy(LAYER), "id": 1, **changed}]


def written(folder: Path, data: Any) -> Path:
    """A YAML file of a workload."""
    path = folder / "net.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def convolutions(batch: int | str, reshape: tuple[int, ...] = ()) -> onnx.ModelProto:
    """A convolution with the batch in the file, perhaps followed by a reshape to a fixed shape."""
    nodes = [conv("x", "w", "y", **SAME)]
    constants: dict[str, Any] = {"w": [[[[1.0] * 3] * 3] * 4] * 4}
    if reshape:
        nodes += [onnx.helper.make_node("Reshape", ["y", "shape"], ["z"], name="reshape")]
        nodes += [onnx.helper.make_node("Relu", ["z"], ["out"], name="relu")]
        constants["shape"] = list(reshape)
    shape: Any = (batch, 4, 6, 6)
    return build_model(nodes, {"x": shape}, constants)


@pytest.mark.parametrize("model", ["zigzag-3.9.1", "corrected"])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_layers_of_a_file(tmp_path: Path, model: str, batch: int) -> None:
    """The loop B of each layer gets the batch, and the network equals the file written with the batch."""
    network = BatchedNetwork(written(tmp_path, layers(operand_source={"W": 1, "I": 0}, loop_sizes=[2, 4, 8])), model)
    assert network.batch == 2
    again = layers(operand_source={"W": 1, "I": 0}, loop_sizes=[batch, 4, 8])
    again[0]["loop_sizes"] = [batch, 8, 4]
    (tmp_path / "other").mkdir()
    assert network.at(batch) == parse_workload(written(tmp_path / "other", again), model)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_step_of_a_language_model(tmp_path: Path, batch: int) -> None:
    """The key `batch` of a language model changes; it is 1 if the file has none."""
    network = BatchedNetwork(written(tmp_path, MODEL), "corrected")
    assert network.batch == 1
    (tmp_path / "other").mkdir()
    assert network.at(batch) == parse_workload(written(tmp_path / "other", {**MODEL, "batch": batch}), "corrected")


@pytest.mark.parametrize("model", ["zigzag-3.9.1", "corrected"])
@pytest.mark.parametrize("begin", [1, 2, "N"])
def test_an_onnx_file(tmp_path: Path, model: str, begin: int | str) -> None:
    """A fixed and an open first axis both give the network of a model exported with the batch."""
    for name, batch in (("net", begin), ("exported", 4)):
        (tmp_path / name).mkdir()
        onnx.save(convolutions(batch, (-1, 4, 36)), tmp_path / name / "net.onnx")
    network = BatchedNetwork(tmp_path / "net/net.onnx", model)
    assert network.batch == (1 if begin == "N" else begin)
    assert network.at(4) == parse_workload(tmp_path / "exported/net.onnx", model)


def refusal(network: BatchedNetwork) -> str:
    """The message for a network whose batch cannot be changed."""
    with pytest.raises(InputError) as caught:
        network.at(4)
    return str(caught.value)


def test_onnx_files_with_a_fixed_batch(tmp_path: Path) -> None:
    """A reshape to a fixed batch, work that does not grow with the batch, and inputs of two sizes are refused."""
    path = tmp_path / "net.onnx"
    onnx.save(convolutions(1, (1, 4, 36)), path)
    told = refusal(BatchedNetwork(path, "corrected"))
    assert "shapes in the file are valid only for the batch 1" in told
    assert "reshape: Reshape of [4, 4, 6, 6] to [1, 4, 36]" in told
    square = onnx.helper.make_node("MatMul", ["x", "turned"], ["y"], name="square")
    turn = onnx.helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0], name="turn")
    onnx.save(build_model([turn, square], {"x": (2, 8)}), path)
    told = refusal(BatchedNetwork(path, "corrected"))
    assert "work of some layers is not in proportion to the batch: square" in told
    onnx.save(build_model([onnx.helper.make_node("MatMul", ["x", "y"], ["z"])], {"x": (2, 8), "y": (8, 3)}), path)
    assert "first axes of its inputs do not have one common size above 0, got 2 of x, 8 of y" in refusal(
        BatchedNetwork(path, "corrected")
    )


def test_recurrent_networks_are_refused(tmp_path: Path) -> None:
    """Recurrent networks are refused, because their first axis may be the time instead of the batch."""
    constants: dict[str, Any] = {"w": [[[0.5] * 4] * 12], "r": [[[0.5] * 4] * 12]}
    lstm = onnx.helper.make_node("RNN", ["x", "w", "r"], ["y"], name="cells", hidden_size=12)
    constants["r"] = [[[0.5] * 12] * 12]
    onnx.save(build_model([lstm], {"x": (5, 1, 4)}, constants), tmp_path / "net.onnx")
    told = refusal(BatchedNetwork(tmp_path / "net.onnx", "corrected"))
    assert "the axis of the batch is not known in a recurrent network: cells" in told


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"loop_sizes": [4, 8, 4]}, "different sizes of the loop B, got 2 in Layer0, 4 in Layer1"),
        ({"loop_dims": ["D", "K", "C"], "equation": "O[d][k] += W[k][c] * I[d][c]"}, "no loop B over samples"),
        ({"equation": "O[k] += W[k][c] * I[b][c]"}, "no loop B over samples in its output"),
    ],
)
def test_layers_without_a_batch(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    """Each message names the file, and the line if one layer is wrong."""
    told = refusal(BatchedNetwork(written(tmp_path, layers(**changed)), "zigzag-3.9.1"))
    assert message in told
    assert "net.yaml" in told


def test_requests_of_several_kinds(tmp_path: Path) -> None:
    """A list of requests has no batch, so it is refused."""
    model = {"language_model": MODEL["language_model"], "requests": [{"tokens": 1, "context": 3}]}
    told = refusal(BatchedNetwork(written(tmp_path, model), "corrected"))
    assert "because the file lists its requests one by one" in told


def matrix_product(first: int | str, second: int | str) -> onnx.ModelProto:
    """A product with a constant, followed by Relu; the input has open axes `first` and `second`."""
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        onnx.helper.make_node("Relu", ["y"], ["z"], name="relu"),
    ]
    shape: Any = (first, second, 4)
    return build_model(nodes, {"x": shape}, {"w": [[0.5] * 3] * 4})


OPTIONS = {
    "symbols": NetworkOptions(dims=(("N", 3), ("T", 5))),
    "open batch": NetworkOptions(dims=(("T", 5),)),
    "places": NetworkOptions(dims=(("x[0]", 3), ("x[1]", 5))),
    "a pattern of the batch": NetworkOptions(dims=(("x[0*", 3), ("T", 5))),
    "a pattern of both axes": NetworkOptions(dims=(("x[*", 5),)),
    "shape": NetworkOptions(input_shapes=(("x", (3, 5, 4)),)),
    "bits": NetworkOptions(dims=(("T", 5),), bits=(("weights", 4), ("MatMul.activations", 16))),
}
"""Name -> options for sequences of 5 tokens that give sizes in different ways."""


@pytest.mark.parametrize("model", ["zigzag-3.9.1", "corrected"])
@pytest.mark.parametrize("name", OPTIONS)
def test_an_onnx_file_that_was_read_with_options(tmp_path: Path, model: str, name: str) -> None:
    """A file with an open batch, read with options and given a batch, equals a file that states this batch.

    The second file is read with the same options, except those for the batch.
    """
    options = OPTIONS[name]
    for folder, data in (("net", matrix_product("N", "T")), ("exported", matrix_product(7, "T"))):
        (tmp_path / folder).mkdir()
        onnx.save(data, tmp_path / folder / "net.onnx")
    network = BatchedNetwork(tmp_path / "net/net.onnx", model, options)
    assert network.batch == {"open batch": 1, "bits": 1, "a pattern of both axes": 5}.get(name, 3)
    exported = NetworkOptions(dims=(("T", 5),), bits=options.bits)
    assert network.at(7) == parse_workload(tmp_path / "exported/net.onnx", model, options=exported)
    assert network.at(network.batch) == parse_workload(tmp_path / "net/net.onnx", model, options=options)


def test_a_size_of_two_axes_is_no_batch(tmp_path: Path) -> None:
    """A batch is refused if the named size of the first axis is also that of another axis."""
    onnx.save(matrix_product("N", "N"), tmp_path / "net.onnx")
    options = NetworkOptions(dims=(("N", 3),))
    told = refusal(BatchedNetwork(tmp_path / "net.onnx", "corrected", options))
    assert "the first axis of an input and another axis have a size of the same name: N of x[0] and x[1]" in told


def test_an_option_for_a_tensor_inside_can_fix_the_batch(tmp_path: Path) -> None:
    """An option that gives a run-time size inside the network fixes the batch, so another batch is refused."""
    nodes = [
        onnx.helper.make_node("NonZero", ["x"], ["places"], name="places"),
        onnx.helper.make_node("Transpose", ["places"], ["turned"], name="turned", perm=[1, 0]),
        onnx.helper.make_node("Cast", ["turned"], ["rows"], name="rows", to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("MatMul", ["rows", "w"], ["y"], name="product"),
    ]
    shape: Any = ("N", 4)
    onnx.save(build_model(nodes, {"x": shape}, {"w": [[0.5] * 3] * 2}), tmp_path / "net.onnx")
    options = NetworkOptions(dims=(("places[1]", 6),))
    network = BatchedNetwork(tmp_path / "net.onnx", "corrected", options)
    assert network.batch == 1
    told = refusal(network)
    assert "or because dims.places[1] gives a size inside the network for this batch" in told
    assert "work of some layers is not in proportion to the batch" in told


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_come_back_from_their_record(options: NetworkOptions) -> None:
    """Options survive JSON, which turns tuples into lists."""
    full = options._replace(branches=(("*", "then"),), precision="file")
    for one in (options, full, NetworkOptions()):
        assert NetworkOptions.of_stated(json.loads(json.dumps({**one.stated(), "model": "corrected"}))) == one
