"""Sizes of the tensors of an ONNX graph as the reference reading takes them: stored ones first, then inferred ones."""

from collections.abc import Collection

import onnx

from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.resolution.inputs import ResolvedInputs
from tilewright.workload.onnx.resolution.network import resolve_graph


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


def tensor_shapes(
    model: onnx.ModelProto,
    resolved: ResolvedInputs,
    required: Collection[str],
    options: NetworkOptions,
    notices: list[str],
    *,
    must_infer: bool = False,
) -> dict[str, Shape]:
    """Tensor -> sizes; they are inferred only if the stored shapes leave out a `required` tensor, or if they must be.

    Raises InputError when the inference finds the model inconsistent.
    """
    shapes = stored_shapes(model.graph, resolved.symbols) | resolved.shapes
    if not must_infer and all(tensor in shapes for tensor in required):
        return shapes
    notices.append("the file does not store all shapes; they were inferred")
    graph = resolve_graph(model, dict(options.dims), dict(options.input_shapes), dict(options.branches))
    return {name: facts.shape for name, facts in graph.tensors.items()} | shapes
