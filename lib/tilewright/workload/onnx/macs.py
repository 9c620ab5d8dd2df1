"""Multiply-accumulates of operators that are not costed, so that what is left out is never left out silently."""

import math
from collections.abc import Callable, Mapping

import onnx

from tilewright.errors import InputError
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shape, Shapes
from tilewright.workload.onnx.products import conv_geometry, matrix_product
from tilewright.workload.onnx.resolution.inputs import stored_shapes

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})


def counted_macs(node: OnnxNode, shapes: Shapes) -> int | None:
    """Multiply-accumulates of one operator: 0 if it does none, None if they cannot be told from the shapes.

    Bodies of If, Loop and Scan count once; of the branches of an If the largest counts.
    """
    if node.proto.domain not in STANDARD_DOMAINS:
        return None
    if node.proto.op_type in CONTROL_FLOW:
        return _body_macs(node, shapes)
    counter = _COUNTERS.get(node.proto.op_type)
    if counter is None:
        return 0
    try:
        return counter(node, shapes)
    except (InputError, IndexError, ValueError, ZeroDivisionError, KeyError):
        return None


def does_macs(node: OnnxNode) -> bool:
    """Whether the operator multiplies and accumulates, or might: control flow and unknown domains."""
    proto = node.proto
    return proto.op_type in _COUNTERS or proto.op_type in CONTROL_FLOW or proto.domain not in STANDARD_DOMAINS


def _conv(node: OnnxNode, shapes: Shapes) -> int:
    return conv_geometry(node, shapes).mac_count


def _matmul(node: OnnxNode, shapes: Shapes) -> int:
    return matrix_product(node, shapes).mac_count


def _plain_conv(node: OnnxNode, shapes: Shapes) -> int:
    """ConvInteger, DeformConv: output elements times the elements of one filter."""
    return math.prod(node.output_shape(shapes)) * math.prod(node.input_shape(1, shapes)[1:])


def _plain_matmul(node: OnnxNode, shapes: Shapes) -> int:
    return math.prod(node.output_shape(shapes)) * node.input_shape(0, shapes)[-1]


def _transposed_conv(node: OnnxNode, shapes: Shapes) -> int:
    """Every input element meets one filter: (output channels / group) * kernel."""
    return math.prod(node.input_shape(0, shapes)) * math.prod(node.input_shape(1, shapes)[1:])


def _recurrent(node: OnnxNode, shapes: Shapes) -> int:
    """Gates of a recurrent cell: W[directions, gates*hidden, inputs] and R[.., gates*hidden, hidden] at every step."""
    steps_times_batch = math.prod(node.input_shape(0, shapes)[:2])
    return steps_times_batch * (math.prod(node.input_shape(1, shapes)) + math.prod(node.input_shape(2, shapes)))


def _einsum(node: OnnxNode, shapes: Shapes) -> int | None:
    """Product of the sizes of all indices; a sum over one operand multiplies nothing."""
    equation = node.text("equation", "").replace(" ", "")
    terms = equation.split("->")[0].split(",")
    if "..." in equation or not equation:
        return None
    if len(terms) < 2:
        return 0
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        for letter, size in zip(term, node.input_shape(index, shapes), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return math.prod(sizes.values()) * (len(terms) - 1)


def _attention(node: OnnxNode, shapes: Shapes) -> int:
    """Scores Q*K and the weighted sum of V: for every query position and key position, one head after the other."""
    query, key, value = (node.input_shape(index, shapes) for index in range(3))
    if len(query) == 4:
        batch, heads, queries, depth = query
        return batch * heads * queries * key[-2] * (depth + value[-1])
    heads, kv_heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    return query[0] * query[1] * key[1] * (query[2] + heads * value[2] // kv_heads)


def _body_macs(node: OnnxNode, shapes: Shapes) -> int | None:
    totals = []
    for attribute in node.proto.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            totals.append(_graph_macs(attribute.g, shapes))
    known = [total for total in totals if total is not None]
    return max(known, default=0) if len(known) == len(totals) else None


def _graph_macs(graph: onnx.GraphProto, outer: Shapes) -> int | None:
    shapes: dict[str, Shape] = {**outer, **stored_shapes(graph, {})}
    total = 0
    for index, proto in enumerate(graph.node):
        macs = counted_macs(OnnxNode(index, proto.name or f"Op{index}", proto), shapes)
        if macs is None:
            return None
        total += macs
    return total


_COUNTERS: Mapping[str, Callable[[OnnxNode, Shapes], int | None]] = {
    "Attention": _attention,
    "Conv": _conv,
    "ConvInteger": _plain_conv,
    "ConvTranspose": _transposed_conv,
    "DeformConv": _plain_conv,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gemm": _matmul,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "MatMulInteger": _plain_matmul,
    "QLinearConv": _conv,
    "QLinearMatMul": _plain_matmul,
    "RNN": _recurrent,
}
