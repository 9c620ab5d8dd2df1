"""Sizes of the tensors of an ONNX graph as the file stores them."""

import onnx

from tilewright.workload.onnx.node import Shape


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
