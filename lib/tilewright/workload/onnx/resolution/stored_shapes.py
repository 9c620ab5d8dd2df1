"""Shapes that a file stores of inner tensors; some of their sizes are symbols."""

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.resolution.inputs import ANONYMOUS_SYMBOLS


@dataclass(frozen=True)
class StoredShape:
    """The shape of one tensor as the file has it."""

    element_type: int
    sizes: tuple[int | None, ...]
    """None where the file has no size, and where nobody says what a symbol stands for."""
    symbols: tuple[str, ...]
    """By axis, '' where there is none."""


def read_stored_shapes(graph: onnx.GraphProto, symbols: Mapping[str, int]) -> dict[str, StoredShape]:
    """Tensor -> what the file stores once `symbols` are put in."""
    stored = {}
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not tensor.HasField("shape") or not tensor.elem_type:
            continue
        sizes = [
            size.dim_value if size.HasField("dim_value") else symbols.get(size.dim_param) for size in tensor.shape.dim
        ]
        named = [
            "" if size.HasField("dim_value") or size.dim_param in ANONYMOUS_SYMBOLS else size.dim_param
            for size in tensor.shape.dim
        ]
        known = tuple(None if size is None or size < 0 else size for size in sizes)
        stored[value.name] = StoredShape(tensor.elem_type, known, tuple(named))
    return stored


def stored_shapes(graph: onnx.GraphProto, symbols: dict[str, int]) -> dict[str, Shape]:
    """Tensor -> sizes for all tensors whose stored shape is complete once `symbols` are put in.

    A name that occurs more than once is looked up in inputs, outputs, value_info, initialisers, in this order, as
    zigzag-dse 3.9.1 does.
    """
    shapes: dict[str, Shape] = {}
    for node in graph.node:
        if node.op_type == "Constant":
            shapes.update(
                (node.output[0], tuple(a.t.dims)) for a in node.attribute if a.name == "value" and node.output
            )
    for sparse in graph.sparse_initializer:
        shapes[sparse.values.name] = tuple(sparse.dims)
    for tensor in graph.initializer:
        shapes[tensor.name] = tuple(tensor.dims)
    for values in (graph.value_info, graph.output, graph.input):
        for value in values:
            shape = _static_shape(value, symbols)
            if shape is not None:
                shapes[value.name] = shape
    return shapes


def _static_shape(value: onnx.ValueInfoProto, symbols: dict[str, int]) -> Shape | None:
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return None
    sizes = []
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.HasField("dim_value") and dimension.dim_value != -1:
            sizes.append(dimension.dim_value)
        elif dimension.dim_param in symbols:
            sizes.append(symbols[dimension.dim_param])
        else:
            return None
    return tuple(sizes)
