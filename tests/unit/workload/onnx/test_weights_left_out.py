"""Large constants inside a file are not loaded; the rest of the file is unchanged."""

import contextlib
import random
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.base.errors import InputError
from tilewright.workload.onnx.loading import LARGEST_DATA_BYTES, load_model, without_weights

node = helper.make_node


def _model(elements: int) -> onnx.ModelProto:
    """A model with a large and a small initialiser, a Constant, and a constant in a branch and in a function."""
    large = np.ones(elements, np.float32)
    result = [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    inside = [
        node("Constant", [], ["k"], value=numpy_helper.from_array(large, "in branch")),
        node("Add", ["x", "k"], ["r"]),
    ]
    branch = helper.make_graph(inside, "branch", [], result)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    body = [
        node("Constant", [], ["k"], value=numpy_helper.from_array(large, "in function")),
        node("Add", ["a", "k"], ["b"]),
    ]
    function = helper.make_function("own", "Shift", ["a"], ["b"], body, opsets)
    nodes = [
        node("Add", ["x", "w"], ["p"]),
        node("If", ["c"], ["q"], then_branch=branch, else_branch=branch),
        node("Shift", ["p"], ["y"], domain="own"),
    ]
    listed = onnx.TensorProto(name="f", data_type=TensorProto.FLOAT, dims=[elements], float_data=large)
    constants = [numpy_helper.from_array(large, "w"), listed, numpy_helper.from_array(np.array(True), "c")]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [elements])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    return helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9)


def _tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    bodies = [model.functions[0].node, *(a.g.node for a in model.graph.node[1].attribute)]
    return [*model.graph.initializer[:2], *(body[0].attribute[0].t for body in bodies)]


def test_only_large_data_are_left_out(tmp_path: Path) -> None:
    """Large data, and no other data, are left out: with them put back, the model equals the saved one."""
    elements = LARGEST_DATA_BYTES // 4 + 1
    model = _model(elements)
    path = tmp_path / "large.onnx"
    path.write_bytes(model.SerializeToString())
    loaded, _, _ = load_model(path)
    assert len(loaded.SerializeToString()) < 10_000
    for slim, full in zip(_tensors(loaded), _tensors(model), strict=True):
        assert list(slim.dims) == [elements]
        slim.CopyFrom(full)
    assert loaded == model


def test_small_models_are_unchanged() -> None:
    """A model with small constants keeps every byte, whatever its total size."""
    content = _model(1000).SerializeToString()
    assert without_weights(memoryview(content)) == content


@pytest.mark.parametrize("seed", range(20))
def test_damaged_large_files(tmp_path: Path, seed: int) -> None:
    """A large file with damaged or missing bytes is read, or raises InputError."""
    draw = random.Random(seed)
    content = bytearray(_model(LARGEST_DATA_BYTES // 4 + 1).SerializeToString())
    starts = [place for place in (content.find(b"in branch"), content.find(b"in function")) if place >= 0]
    for _ in range(3):
        content[draw.choice(starts) + draw.randrange(-60, 60) if draw.random() < 0.7 else 0] = draw.randrange(256)
    if seed % 4 == 0:
        del content[draw.randrange(len(content)) :]
    path = tmp_path / "large.onnx"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        load_model(path)


def test_truncated_large_file(tmp_path: Path) -> None:
    """A truncated large file is refused like any truncated file."""
    path = tmp_path / "large.onnx"
    path.write_bytes(_model(LARGEST_DATA_BYTES // 4 + 1).SerializeToString()[:-100])
    with pytest.raises(InputError, match=r"large\.onnx not an ONNX model, or a truncated one"):
        load_model(path)


def _field(number: int, length: int) -> bytes:
    """The head of a field of `length` bytes."""
    head = bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length])


def test_memory_of_a_large_file(tmp_path: Path) -> None:
    """A process with a data limit of 0.5 GB reads a file of 1.5 GB, nearly all of which is one weight."""
    size, path = 1_500_000_000, tmp_path / "large.onnx"
    tensor = onnx.TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=[size // 4]).SerializeToString()
    tensor += _field(9, size)
    graph = _field(5, len(tensor) + size) + tensor
    with path.open("wb") as file:
        # A second part of the graph is merged with the first; the data are a hole in the file.
        file.write(_model(4).SerializeToString() + _field(7, len(graph) + size) + graph)
        file.truncate(file.tell() + size)
    program = "import sys; from tilewright.workload.onnx.loading import load_model as load; print(load(sys.argv[1])[0])"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (500_000_000, 500_000_000))

    ended = subprocess.run(
        [sys.executable, "-c", program, str(path)], preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "huge" in ended.stdout
