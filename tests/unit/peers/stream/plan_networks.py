"""Small ONNX networks with strides, shared inputs and branches, for mapping files of stream-dse 2.x."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper


def _value(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _weights(name: str, *shape: int) -> onnx.TensorProto:
    count = 1
    for size in shape:
        count *= size
    return helper.make_tensor(name, TensorProto.FLOAT, shape, [0.0] * count)


def _save(
    path: Path, nodes: list[onnx.NodeProto], given: onnx.ValueInfoProto, made: str, *weights: onnx.TensorProto
) -> Path:
    values = [helper.make_tensor_value_info(made, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, path.stem, [given], values, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def image_network(folder: Path) -> Path:
    """Convolution, activation, pooling with stride 2, and a branch that is added."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first", pads=[1] * 4, kernel_shape=[3, 3]),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MaxPool", ["b"], ["c"], name="pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Conv", ["c", "w2"], ["d"], name="second", pads=[1] * 4, kernel_shape=[3, 3]),
        helper.make_node("Add", ["d", "c"], ["e"], name="add"),
        helper.make_node("GlobalAveragePool", ["e"], ["f"], name="mean"),
    ]
    weights = _weights("w1", 16, 8, 3, 3), _weights("w2", 16, 16, 3, 3)
    return _save(folder / "image.onnx", nodes, _value("x", 1, 8, 16, 16), "f", *weights)


def matrix_network(folder: Path) -> Path:
    """Two products that read one input, their elementwise product, and a further product; then a batch of products."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1"], ["a"], name="left"),
        helper.make_node("Gemm", ["x", "w2"], ["b"], name="right"),
        helper.make_node("Mul", ["a", "b"], ["c"], name="mul"),
        helper.make_node("Gemm", ["c", "w3"], ["d"], name="down"),
        helper.make_node("MatMul", ["d", "w4"], ["e"], name="last"),
    ]
    sizes = {"w1": (16, 64), "w2": (16, 64), "w3": (64, 32), "w4": (32, 8)}
    weights = [_weights(name, *size) for name, size in sizes.items()]
    return _save(folder / "matrix.onnx", nodes, _value("x", 32, 16), "e", *weights)


def one_product(folder: Path) -> Path:
    """Network of one matrix product."""
    node = helper.make_node("Gemm", ["x", "w1"], ["a"], name="only")
    return _save(folder / "one.onnx", [node], _value("x", 32, 16), "a", _weights("w1", 16, 64))


def pooled_network(folder: Path, size: int, channels: int) -> Path:
    """Convolution with square outputs of `size` rows, activation, pooling with stride 2, and a further convolution.

    `size` must be even. The convolutions have `channels` output channels.
    """
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first", kernel_shape=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MaxPool", ["b"], ["c"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["c", "w2"], ["d"], name="second", kernel_shape=[1, 1]),
    ]
    weights = _weights("w1", channels, 3, 1, 1), _weights("w2", channels, channels, 1, 1)
    return _save(folder / "pooled.onnx", nodes, _value("x", 1, 3, size, size), "d", *weights)


def average_network(folder: Path) -> Path:
    """Network of one average pooling."""
    node = helper.make_node("AveragePool", ["x"], ["a"], name="avg", kernel_shape=[2, 2], strides=[2, 2])
    return _save(folder / "average.onnx", [node], _value("x", 1, 8, 8, 8), "a")
