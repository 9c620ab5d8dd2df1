"""Multiply-accumulates of an ONNX graph, counted one by one in a plain walk by the definitions of operators.

The walk is slow and short on purpose. Shapes are those of onnx's own inference. Nothing of tilewright is imported.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]


def count_macs(model: onnx.ModelProto) -> int:
    """Multiply-accumulates of all operators of a model with known sizes."""
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    shapes = _shapes_of(inferred.graph)
    functions = {(function.domain, function.name): function for function in model.functions}
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return _walk(inferred.graph.node, shapes, functions, constants)


def _shapes_of(graph: onnx.GraphProto) -> dict[str, Shape]:
    shapes = {
        value.name: tuple(size.dim_value for size in value.type.tensor_type.shape.dim)
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    return shapes | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _walk(nodes: Sequence[onnx.NodeProto], shapes: Shapes, functions: Any, constants: Any) -> int:
    total = 0
    for node in nodes:
        attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        function = functions.get((node.domain, node.op_type))
        if function is not None:
            total += count_macs(_alone(function, [shapes[name] for name in node.input]))
        elif node.op_type == "If":
            branch = attributes["then_branch" if bool(constants[node.input[0]]) else "else_branch"]
            total += _walk(branch.node, {**shapes, **_shapes_of(branch)}, functions, constants)
        elif node.op_type == "Loop":
            body = attributes["body"]
            inner = {**shapes, **_shapes_of(body)}
            for _ in range(int(constants[node.input[0]])):
                total += _walk(body.node, inner, functions, constants)
        else:
            total += _RULES.get(node.op_type, _none)(node, attributes, shapes)
    return total


def _alone(function: onnx.FunctionProto, shapes: Sequence[Shape]) -> onnx.ModelProto:
    """The body of a function as a model whose inputs are floats of these shapes."""
    pairs = zip(function.input, shapes, strict=True)
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in pairs]
    outputs = [onnx.ValueInfoProto(name=name) for name in function.output]
    graph = onnx.helper.make_graph(list(function.node), function.name, inputs, outputs)
    return onnx.helper.make_model(graph, opset_imports=list(function.opset_import))


def _all(*sizes: int) -> int:
    """Number of times that the innermost statement of nested loops runs."""
    return sum(1 for _ in itertools.product(*(range(size) for size in sizes)))


def _none(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    return 0


def _matmul(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    return _all(*shapes[node.output[0]], shapes[node.input[0]][-1])


def _gemm(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    return _all(*shapes[node.output[0]], shapes[node.input[0]][0 if attributes.get("transA") else 1])


def _conv(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    """Multiply-accumulates of a convolution: every output element adds up its whole window, padding included."""
    return _all(*shapes[node.output[0]], *shapes[node.input[1]][1:])


def _conv_transpose(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    return _all(*shapes[node.input[0]], *shapes[node.input[1]][1:])


def _einsum(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    """Multiply-accumulates of an Einsum, which multiplies two tensors at a time.

    A label that neither a later tensor nor the result has is summed up at once.
    """
    left, result = attributes["equation"].decode().replace(" ", "").split("->")
    terms = left.split(",")
    sizes = {
        label: size
        for term, name in zip(terms, node.input, strict=True)
        for label, size in zip(term, shapes[name], strict=True)
    }
    total, held = 0, terms[0]
    for place, term in enumerate(terms[1:], start=1):
        later = set(result).union(*terms[place + 1 :])
        labels = sorted(set(held) | set(term))
        held = "".join(label for label in labels if label in later)
        if any(sizes[label] > 1 for label in labels if label not in later):
            total += _all(*(sizes[label] for label in labels))
    return total


def _attention(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    """Multiply-accumulates of attention: each query of each head meets every key, also of the cache, and then every
    value.
    """
    query, key, value = (shapes[name] for name in node.input[:3])
    if len(query) == 3:
        heads, shared = attributes["q_num_heads"], attributes["kv_num_heads"]
        query = (query[0], heads, query[1], query[2] // heads)
        key = (key[0], shared, key[1], key[2] // shared)
        value = (value[0], shared, value[1], value[2] // shared)
    past = shapes[node.input[4]][2] if len(node.input) > 4 and node.input[4] else 0
    keys = key[2] + past
    return _all(*query[:3], keys, query[3]) + _all(*query[:3], keys, value[3])


def _recurrent(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    steps, batch, width = shapes[node.input[0]]
    directions, gates, hidden = shapes[node.input[2]]
    return sum(_all(directions, batch, gates, width) + _all(directions, batch, gates, hidden) for _ in range(steps))


def _linear_attention(node: onnx.NodeProto, attributes: Mapping[str, Any], shapes: Shapes) -> int:
    """Multiply-accumulates of linear attention, token by token.

    They are the outer product of key and value, and the state times the query; for delta rules also times the key.
    """
    batch, tokens, width = shapes[node.input[0]]
    heads, shared = attributes["q_num_heads"], attributes["kv_num_heads"]
    key, value = width // heads, shapes[node.input[2]][2] // shared
    rule = attributes.get("update_rule", b"gated_delta").decode()
    state = shared * (2 if "delta" in rule else 1) + heads
    return sum(_all(batch, state, key, value) for _ in range(tokens))


_RULES: Mapping[str, Callable[[onnx.NodeProto, Mapping[str, Any], Shapes], int]] = {
    "Attention": _attention,
    "CausalConvWithState": lambda node, attributes, shapes: _conv(node, attributes, shapes),
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    "FlexAttention": _attention,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "LSTM": _recurrent,
    "LinearAttention": _linear_attention,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "RNN": _recurrent,
}
