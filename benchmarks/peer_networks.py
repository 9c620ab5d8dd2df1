"""Networks as stream-dse 0.0.8 can read them: the same layers for both sides, in operators that both know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

ACTIVATIONS = frozenset({"Relu", "Clip"})
"""The peer passes over them; ours are layers."""


def without_activations(model: Path, folder: Path) -> Path:
    """The network with the results of its activation functions replaced by what they are functions of.

    A mean over the whole image becomes GlobalAveragePool and a reshape to a matrix Flatten, which the peer knows; a
    pooling of single pixels, which does nothing, goes the way of the activation functions.
    """
    import onnx

    network = onnx.shape_inference.infer_shapes(onnx.load(model, load_external_data=False))
    shapes = shapes_of(network)
    source_of: dict[str, str] = {}
    kept = []
    for node in network.graph.node:
        inputs = [source_of.get(name, name) for name in node.input]
        if node.op_type in ACTIVATIONS or is_single_pixel_pooling(node):
            source_of[node.output[0]] = inputs[0]
            continue
        before, after = shapes.get(node.input[0], []) if node.input else [], shapes.get(node.output[0], [])
        if node.op_type == "ReduceMean" and len(before) == 4 and after == [*before[:2], 1, 1]:
            node = onnx.helper.make_node("GlobalAveragePool", inputs[:1], node.output, node.name)
        elif node.op_type == "Reshape" and len(after) == 2 and before[:1] == after[:1]:
            node = onnx.helper.make_node("Flatten", inputs[:1], node.output, node.name)
        else:
            node.input[:] = inputs
        kept.append(node)
    del network.graph.node[:]
    network.graph.node.extend(kept)
    path = folder / f"{model.stem}-bare.onnx"
    onnx.save(network, path)
    return path


def is_single_pixel_pooling(node: onnx.NodeProto) -> bool:
    """Whether it is a pooling with windows and strides of one pixel."""
    given = {attribute.name: list(attribute.ints) for attribute in node.attribute}
    sizes = [*given.get("kernel_shape", [0]), *given.get("strides", [1])]
    return node.op_type in ("AveragePool", "MaxPool") and set(sizes) == {1}


def shapes_of(network: onnx.ModelProto) -> dict[str, list[int]]:
    """Tensor -> its sizes, as far as they are known."""
    graph = network.graph
    known = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        known[value.name] = [size.dim_value for size in value.type.tensor_type.shape.dim]
    return known
