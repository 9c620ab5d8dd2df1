"""Checks of an operator before onnx's inference reads it: attributes, sizes that overflow, and operands that must
agree.

The inference computes with 64-bit integers and does not check for overflow. Sizes that would overflow are therefore
refused.

Operands of an operator that do not agree in channels, gates, biases or indices are refused. The network could not run,
although its shapes can look right. Source: Operators.md of ONNX.

The messages of all checks use the same words for operands and sizes.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from tilewright.base.errors import InputError, Problem
from tilewright.workload.onnx.node import OnnxNode, Shape
from tilewright.workload.onnx.resolution.evaluation import Values

_OTHER_AXES = frozenset(
    {"ConcatFromSequence", "DequantizeLinear", "Flatten", "OneHot", "QuantizeLinear", "SplitToSequence"}
)
"""Operators whose attribute `axis` does not refer to the first input."""


def known_attributes(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> onnx.NodeProto:
    """Node without the attributes that its operator does not define. Some tools add such attributes to standard
    operators."""
    if all(attribute.name in schema.attributes for attribute in node.attribute):
        return node
    copy = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name)
    copy.input.extend(node.input)
    copy.output.extend(node.output)
    copy.attribute.extend(attribute for attribute in node.attribute if attribute.name in schema.attributes)
    return copy


def check_axes(name: str, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> None:
    """Check the attributes `axis` and `batch_dims`, which onnx's inference does not always check. Raises InputError for
    a value out of range.
    """
    value = types.get(node.input[0]) if node.input else None
    if value is None or not value.HasField("tensor_type"):
        return
    rank = max(len(value.tensor_type.shape.dim), 1)
    for attribute in node.attribute:
        if attribute.name == "axis" and attribute.type == onnx.AttributeProto.INT and node.op_type not in _OTHER_AXES:
            least = -rank
        elif attribute.name == "batch_dims":
            least = 0
        else:
            continue
        if not least <= attribute.i < rank:
            message, allowed = f"attribute '{attribute.name}' of {node.op_type}", f"integers from {least} to {rank - 1}"
            raise InputError([Problem(message, path=name, value=str(attribute.i), allowed=allowed)])


_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def check_consistency(
    name: str,
    node: onnx.NodeProto,
    inputs: Sequence[Shape | None],
    values: Sequence[Values | None],
    output: Shape | None,
) -> None:
    """Check that the operands of a standard operator fit together, for example that their numbers of channels agree.
    Raises InputError if the operands do not fit together.

    `inputs` has the shape of each input of the operator, and `values` has the values of each input. An entry is None if
    the input is missing, or if the shape or the values are unknown. `output` is the shape of the first output.
    """
    check = _CHECKS.get(node.op_type)
    if check is None:
        return
    try:
        message = check(OnnxNode(0, name, node), inputs, values, output)
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        message = "the ranks of its inputs are wrong"
    if message:
        shown = ", ".join(str(list(shape)) for shape in inputs if shape is not None)
        raise InputError([Problem(f"{node.op_type} does not fit its inputs: {message}", path=name, value=shown)])


def _convolution(weight: int, bias: int) -> "_Check":
    def check(
        node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
    ) -> str:
        data, filters = _given(inputs, 0), _given(inputs, weight)
        group = node.integer("group", 1)
        if data[1] % group or filters[0] % group:
            return f"the number of groups, {group}, must divide the numbers of input and output channels"
        if data[1] != filters[1] * group:
            return f"the channels of input and weights do not match ({group} groups)"
        if node.integers("kernel_shape", filters[2:]) != filters[2:]:
            return "attribute 'kernel_shape' and the shape of the weights differ"
        if _optional(inputs, bias) not in (None, (filters[0],)):
            return "the bias needs one number for each output channel"
        return ""

    return check


def _transposed_convolution(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, filters = _given(inputs, 0), _given(inputs, 1)
    group = node.integer("group", 1)
    if data[1] != filters[0] or filters[0] % group:
        return f"the channels of input and weights do not match ({group} groups)"
    if node.integers("kernel_shape", filters[2:]) != filters[2:]:
        return "attribute 'kernel_shape' and the shape of the weights differ"
    if _optional(inputs, 2) not in (None, (filters[1] * group,)):
        return "the bias needs one number for each output channel"
    return ""


def _recurrent(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, weights, recurrence = (_given(inputs, index) for index in range(3))
    gates = _GATES[node.proto.op_type]
    hidden = node.integer("hidden_size", recurrence[2])
    directions = 2 if node.text("direction", "forward") == "bidirectional" else 1
    if weights != (directions, gates * hidden, data[2]):
        return f"the weights need the shape {[directions, gates * hidden, data[2]]} for {hidden} hidden units"
    if recurrence != (directions, gates * hidden, hidden):
        return f"the recurrence weights need the shape {[directions, gates * hidden, hidden]} for {hidden} hidden units"
    if _optional(inputs, 3) not in (None, (directions, 2 * gates * hidden)):
        return f"the bias needs the shape {[directions, 2 * gates * hidden]} for {hidden} hidden units"
    return ""


def _gemm(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], output: Shape | None
) -> str:
    bias = _optional(inputs, 2)
    if bias is None or output is None or node.has("broadcast"):
        return ""
    return "" if _broadcasts_to(bias, output) else "the bias cannot be broadcast to the result"


def _slope(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, slope = _given(inputs, 0), _given(inputs, 1)
    # Before operator set 7, the slope was one number for each channel.
    fits = _broadcasts_to(slope, data) or slope == data[1:2]
    return "" if fits else "the slope cannot be broadcast to the data"


def _layer_norm(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data = _given(inputs, 0)
    normalised = data[node.integer("axis", -1) :]
    wrong = [shape for shape in inputs[1:3] if shape is not None and not _broadcasts_to(shape, normalised)]
    return f"scale and bias cannot be broadcast to {list(normalised)}" if wrong else ""


def _channel_norm(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    channels = _given(inputs, 0)[1]
    groups = node.integer("num_groups", 1)
    allowed = {(channels,), (groups,)} if node.has("num_groups") else {(channels,)}
    if channels % groups:
        return f"{channels} channels cannot be divided into {groups} groups"
    wrong = [shape for shape in inputs[1:3] if shape is not None and shape not in allowed]
    return "scale and bias need one number for each channel" if wrong else ""


def _gather(
    node: OnnxNode, inputs: Sequence[Shape | None], values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, indices = _given(inputs, 0), values[1]
    axis = node.integer("axis", 0)
    if indices is None or not indices.size:
        return ""
    size = data[axis]
    return "" if -size <= indices.min() and indices.max() < size else f"indices lie outside an axis of size {size}"


def _einsum(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    terms = node.text("equation", "").replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        shape, letters = _given(inputs, index), term
        if "..." in term:
            before, after = term.split("...")
            hidden = len(shape) - len(before) - len(after)
            shape, letters = shape[: len(before)] + shape[len(before) + hidden :], before + after
        for letter, size in zip(letters, shape, strict=True):
            if size != sizes.setdefault(letter, size):
                if 1 not in (size, sizes[letter]):
                    return f"index {letter} has two sizes, {sizes[letter]} and {size}"
                sizes[letter] = max(size, sizes[letter])
    return ""


def _given(inputs: Sequence[Shape | None], index: int) -> Shape:
    shape = inputs[index]
    if shape is None:
        raise ValueError
    return shape


def _optional(inputs: Sequence[Shape | None], index: int) -> Shape | None:
    return inputs[index] if index < len(inputs) else None


def _broadcasts_to(shape: Shape, target: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == tuple(target)
    except ValueError:
        return False


_Check = Callable[[OnnxNode, Sequence[Shape | None], Sequence[Values | None], Shape | None], str]
_CHECKS: Mapping[str, _Check] = {
    "Conv": _convolution(1, 2),
    "ConvInteger": _convolution(1, 4),
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gather": _gather,
    "Gemm": _gemm,
    "GroupNormalization": _channel_norm,
    "InstanceNormalization": _channel_norm,
    "LSTM": _recurrent,
    "LayerNormalization": _layer_norm,
    "PRelu": _slope,
    "QLinearConv": _convolution(3, 8),
    "RMSNormalization": _layer_norm,
    "SimplifiedLayerNormalization": _layer_norm,
    "RNN": _recurrent,
}
