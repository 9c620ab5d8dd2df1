"""How ONNX operators are split over output channels: which inputs are cut along which axes, and what joins parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx
from onnx import helper

from tilewright.fusion.split_tensors import TensorSlicer
from tilewright.workload.onnx.node import STANDARD_DOMAINS
from tilewright.workload.part_names import part_name

Shapes = Mapping[str, tuple[int, ...]]
_DATA = 0
"""Input of a convolution that is no constant."""
_BESIDE_OF_CONVOLUTION = {"Conv": (2,), "ConvInteger": (3,), "QLinearConv": (4, 5, 8)}
"""Inputs of convolutions that may have one value for each output channel: bias, scales, zero points."""
_BESIDE_OF_COLUMNS = {"MatMul": (), "MatMulInteger": (3,), "QLinearMatMul": (4, 5)}
_BESIDE_OF_ROWS = {"MatMul": (), "MatMulInteger": (2,), "QLinearMatMul": (1, 2, 6, 7)}
"""The same of matrix products whose right and whose left operand is the weights."""


@dataclass(frozen=True)
class OperatorForm:
    """How an operator can be split."""

    weight_input: int
    weight_axis: int
    output_axis: int
    channels: int
    """Output channels in all."""
    groups: int = 1
    """Groups of a convolution: output channels of a group read the input channels of the same group only."""
    group_inputs: int = 0
    """Input channels of a group, of a convolution."""
    is_of_rows: bool = False
    """Whether the channels are the rows of a matrix product, whose left operand then is the weights."""
    beside: tuple[tuple[int, int], ...] = ()
    """(input, axis) of what has a value for each output channel."""


@dataclass(frozen=True)
class ChannelPart:
    """A part of an operator: the output channels that it makes."""

    start: int
    end: int
    """The one after the last."""
    first_group: int = 0
    group_count: int = 1
    """Groups to which these channels belong. A part is of several whole groups, or of a piece of one."""


def operator_form(node: onnx.NodeProto, weights: str, shapes: Shapes) -> OperatorForm | None:
    """How an operator with these weights (a tensor that it reads once) is split; None if it is of another kind."""
    if node.domain not in STANDARD_DOMAINS or list(node.input).count(weights) != 1 or len(node.output) != 1:
        return None
    place, shape = list(node.input).index(weights), shapes.get(weights, ())
    if node.op_type in _BESIDE_OF_CONVOLUTION:
        if place != _weight_place(node.op_type) or len(shape) < 3:
            return None
        form = OperatorForm(place, 0, 1, shape[0], _groups(node), shape[1])
        return _with_beside(form, node, shapes, _BESIDE_OF_CONVOLUTION[node.op_type])
    if node.op_type == "ConvTranspose" and place == 1 and len(shape) > 2 and _groups(node) == 1:
        return _with_beside(OperatorForm(place, 1, 1, shape[1]), node, shapes, (2,))
    if node.op_type == "Gemm" and place in (0, 1) and len(shape) == 2:
        is_transposed = any(a.name == ("transA", "transB")[place] and a.i for a in node.attribute)
        axis = int(is_transposed) if place == 0 else 1 - int(is_transposed)
        form = OperatorForm(place, axis, place, shape[axis], is_of_rows=place == 0)
        return _with_beside(form, node, shapes, (2,))
    if node.op_type in _BESIDE_OF_COLUMNS and len(shape) > 1:
        left, right = (0, 3) if node.op_type == "QLinearMatMul" else (0, 1)
        rank = len(shapes.get(node.output[0], ()))
        other = shapes.get(node.input[left if place == right else right], ())
        if place == right and rank:
            form = OperatorForm(place, len(shape) - 1, rank - 1, shape[-1])
            return _with_beside(form, node, shapes, _BESIDE_OF_COLUMNS[node.op_type])
        if place == left and rank:
            # A vector on the right leaves the rows as the last axis.
            axis = rank - (2 if len(other) > 1 else 1)
            form = OperatorForm(place, len(shape) - 2, axis, shape[-2], is_of_rows=True)
            return _with_beside(form, node, shapes, _BESIDE_OF_ROWS[node.op_type])
    return None


def channel_parts(form: OperatorForm, most_channels: int) -> tuple[ChannelPart, ...]:
    """The fewest parts of at most so many channels. Parts are of equal size, the last is what is left.

    Of a convolution with groups a part has several whole groups, or every group is cut alike. Raises ValueError if not
    even one channel is allowed.
    """
    if most_channels < 1:
        raise ValueError("a part has a channel at least")
    of_group = form.channels // form.groups
    if form.groups > 1 and most_channels >= of_group:
        size = _even_size(form.groups, most_channels // of_group)
        firsts = range(0, form.groups, size)
        counts = [min(size, form.groups - first) for first in firsts]
        return tuple(
            ChannelPart(first * of_group, (first + count) * of_group, first, count)
            for first, count in zip(firsts, counts, strict=True)
        )
    size = _even_size(of_group, most_channels)
    return tuple(
        ChannelPart(group * of_group + start, group * of_group + min(start + size, of_group), group)
        for group in range(form.groups)
        for start in range(0, of_group, size)
    )


def split_operator(
    node: onnx.NodeProto,
    name: str,
    form: OperatorForm,
    parts: Sequence[ChannelPart],
    slicer: TensorSlicer,
) -> list[onnx.NodeProto]:
    """The operators that replace one: its parts, called after `name`, and a Concat that makes its output.

    The parts come in the order of their channels, so that the Concat has their true offsets.
    """
    nodes: list[onnx.NodeProto] = []
    ranges = [(part.start, part.end) for part in parts]
    inputs = [list(node.input) for _ in parts]
    for place, axis in ((form.weight_input, form.weight_axis), *form.beside):
        for part_inputs, tensor in zip(inputs, slicer.slices(node.input[place], axis, ranges, nodes), strict=True):
            part_inputs[place] = tensor
    if form.groups > 1:
        _slice_data(node, form.group_inputs, parts, slicer, nodes, inputs)
    outputs = slicer.part_names(node.output[0], len(parts))
    for number, (part, part_inputs, output) in enumerate(zip(parts, inputs, outputs, strict=True)):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = part_name(name, number, len(parts))
        del copy.input[:], copy.output[:]
        copy.input.extend(part_inputs)
        copy.output.append(output)
        for attribute in copy.attribute:
            if attribute.name == "group":
                attribute.i = part.group_count
        nodes.append(copy)
    nodes.append(helper.make_node("Concat", outputs, [node.output[0]], name=f"{name}#concat", axis=form.output_axis))
    return nodes


def _slice_data(
    node: onnx.NodeProto,
    group_inputs: int,
    parts: Sequence[ChannelPart],
    slicer: TensorSlicer,
    nodes: list[onnx.NodeProto],
    inputs: list[list[str]],
) -> None:
    """Give each part of a convolution with groups the input channels of its groups."""
    spans = list(dict.fromkeys((part.first_group, part.first_group + part.group_count) for part in parts))
    if len(spans) == 1:
        return
    ranges = [(first * group_inputs, end * group_inputs) for first, end in spans]
    slices = dict(zip(spans, slicer.slices(node.input[_DATA], 1, ranges, nodes), strict=True))
    for part, part_inputs in zip(parts, inputs, strict=True):
        part_inputs[_DATA] = slices[part.first_group, part.first_group + part.group_count]


def _groups(node: onnx.NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)


def _weight_place(operator_type: str) -> int:
    return 3 if operator_type == "QLinearConv" else 1


def _with_beside(form: OperatorForm, node: onnx.NodeProto, shapes: Shapes, places: Sequence[int]) -> OperatorForm:
    """The form with the inputs that have a value for each output channel; others hold for all channels."""
    found = []
    for place in places:
        shape = shapes.get(node.input[place], ()) if place < len(node.input) and node.input[place] else ()
        axis = _channel_axis(shape, form, is_gemm=node.op_type == "Gemm")
        if axis is not None:
            found.append((place, axis))
    return replace(form, beside=tuple(found))


def _channel_axis(shape: Sequence[int], form: OperatorForm, *, is_gemm: bool) -> int | None:
    """The axis of the output channels in a bias, a scale or a zero point; None if it has one value for all of them.

    A vector goes with the channels, but the bias of a Gemm with its columns; of more axes, columns are the last, rows
    the one before it.
    """
    if len(shape) == 1:
        axis = None if is_gemm and form.is_of_rows else 0
    else:
        axis = len(shape) - (2 if form.is_of_rows else 1) if shape else None
    return axis if axis is not None and shape[axis] == form.channels > 1 else None


def _even_size(total: int, most: int) -> int:
    """The size of the fewest equal tiles of at most `most`."""
    return -(-total // -(-total // most))
