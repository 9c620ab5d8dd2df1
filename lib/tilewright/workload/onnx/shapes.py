"""Tensor shapes of a graph: the stored ones, and only when those do not suffice, inferred ones."""

import math
from collections.abc import Collection

import onnx

from tilewright.errors import InputError, Problem
from tilewright.workload.onnx.inputs import ResolvedInputs
from tilewright.workload.onnx.node import STANDARD_DOMAINS, Shape
from tilewright.workload.onnx.shape_values import fold_shape_values

_KEPT_ELEMENTS = 4096
"""Initialisers up to this many elements keep their values for inference: shapes of Reshape, axes, scales."""
_MOST_ROUNDS = 100
"""Each round gets past one more reshape by a computed shape."""


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
    model: onnx.ModelProto, resolved: ResolvedInputs, required: Collection[str], notices: list[str]
) -> dict[str, Shape]:
    """Tensor -> sizes; runs shape inference only if the stored shapes leave out a `required` tensor.

    Raises InputError when the inference finds the model inconsistent.
    """
    shapes = stored_shapes(model.graph, resolved.symbols) | resolved.shapes
    if all(tensor in shapes for tensor in required):
        return shapes
    notices.append("the file does not store all shapes; they were inferred")
    slim = _weightless_copy(model, shapes)
    for _ in range(_MOST_ROUNDS):
        shapes = stored_shapes(_inferred(slim), resolved.symbols) | shapes
        if all(tensor in shapes for tensor in required) or not fold_shape_values(slim, shapes):
            break
    return shapes


def _inferred(model: onnx.ModelProto) -> onnx.GraphProto:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError([Problem(f"shape inference failed: {reason}")]) from None
    return inferred.graph


def _weightless_copy(model: onnx.ModelProto, shapes: dict[str, Shape]) -> onnx.ModelProto:
    """The model with the known shapes written in, unknown ones left open, and large constants without values."""
    copy = onnx.ModelProto(
        ir_version=max(model.ir_version, 4), opset_import=model.opset_import, functions=model.functions
    )
    source, graph = model.graph, copy.graph
    # Inference refuses a domain whose version is not stated, although it knows nothing about it anyway.
    stated = {opset.domain for opset in model.opset_import}
    for domain in sorted({node.domain for node in source.node} - stated - STANDARD_DOMAINS):
        copy.opset_import.add(domain=domain, version=1)
    graph.name = "network"
    for node in source.node:
        tensor = _large_constant(node)
        if tensor is None:
            graph.node.add().CopyFrom(node)
        else:
            graph.initializer.append(_without_values(tensor, node.output[0]))
    for tensor in source.initializer:
        is_large = _element_count(tensor) > _KEPT_ELEMENTS
        graph.initializer.append(_without_values(tensor, tensor.name) if is_large else tensor)
    graph.sparse_initializer.extend(source.sparse_initializer)
    for values, copies in (
        (source.input, graph.input),
        (source.output, graph.output),
        (source.value_info, graph.value_info),
    ):
        copies.extend(_with_shape(value, shapes.get(value.name)) for value in values)
    return copy


def _large_constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    if node.op_type == "Constant" and node.output:
        for attribute in node.attribute:
            tensor: onnx.TensorProto = attribute.t
            if attribute.name == "value" and _element_count(tensor) > _KEPT_ELEMENTS:
                return tensor
    return None


def _element_count(tensor: onnx.TensorProto) -> int:
    return math.prod(tensor.dims)


def _without_values(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    empty = onnx.TensorProto(name=name, data_type=tensor.data_type, dims=tensor.dims)
    empty.data_location = onnx.TensorProto.EXTERNAL
    empty.external_data.add(key="location", value="weights-are-not-loaded")
    return empty


def _with_shape(value: onnx.ValueInfoProto, shape: Shape | None) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    if copy.type.HasField("tensor_type"):
        copy.type.tensor_type.ClearField("shape")
        if shape is not None:
            copy.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in shape)
    return copy
