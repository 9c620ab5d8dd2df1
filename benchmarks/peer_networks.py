"""Networks in a form that stream-dse 0.0.8 can read. They have the same layers for both tools, with operators that both
tools know.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

ACTIVATIONS = frozenset({"Relu", "Clip"})
"""Activation functions. The peer ignores them; in our tool they are layers."""


def without_activations(model: Path, folder: Path) -> Path:
    """Network without activation functions: the result of each function is replaced by the function's input.

    A mean over the whole image becomes GlobalAveragePool, and a reshape to a matrix becomes Flatten, because the peer
    knows these operators. A pooling of single pixels, which does nothing, is removed, too.
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
    """True if a node is a pooling whose windows and strides are one pixel."""
    given = {attribute.name: list(attribute.ints) for attribute in node.attribute}
    sizes = [*given.get("kernel_shape", [0]), *given.get("strides", [1])]
    return node.op_type in ("AveragePool", "MaxPool") and set(sizes) == {1}


def shapes_of(network: onnx.ModelProto) -> dict[str, list[int]]:
    """Sizes of tensors by name, as far as they are known."""
    graph = network.graph
    known = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        known[value.name] = [size.dim_value for size in value.type.tensor_type.shape.dim]
    return known
