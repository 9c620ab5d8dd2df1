"""Splits of ONNX operators over output channels: which inputs are cut along which axes, and how the parts are joined.

Constants are sliced; weights that are in other files, or that were left out, are not read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.workload.layer import part_name
from tilewright.workload.onnx.node import STANDARD_DOMAINS

NOT_INCLUDED = "weights-not-included.bin"
"""Name of a data file that does not exist. A tensor that refers to this file has a shape and a type, but no data."""
_DATA_FIELDS = (
    *("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"),
    "raw_data",
)
_PACKED = ("INT2", "UINT2", "INT4", "UINT4", "FLOAT4E2M1")
"""Element types with several elements in a byte."""
_FIRST_OPSET_WITH_SIZES_AS_INPUT = 13
Ranges = Sequence[tuple[int, int]]
"""Pairs (first index, index after the last one) of consecutive slices that cover an axis."""


@dataclass
class TensorSlicer:
    """Slicer for the tensors of a model. A slice that is needed several times is made only once."""

    model: onnx.ModelProto
    opset: int
    """Version of the standard operator set that the model uses."""
    emptied: set[str] = field(default_factory=set)
    """Names of tensors whose slices have a shape but no data. The data of such a tensor are in another file, and the
    slices cannot refer to parts of this file.
    """
    _made: dict[tuple[str, int, tuple[tuple[int, int], ...]], list[str]] = field(default_factory=dict)
    _initializers: dict[str, onnx.TensorProto] = field(init=False)
    _taken: set[str] = field(init=False)
    """Names that tensors of the model already have."""

    def __post_init__(self) -> None:
        graph = self.model.graph
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._taken = set(self._initializers) | {value.name for value in (*graph.input, *graph.value_info)}
        self._taken |= {name for node in graph.node for name in (*node.input, *node.output)}

    def slices(self, name: str, axis: int, ranges: Ranges, nodes: list[onnx.NodeProto]) -> list[str]:
        """Names of the slices of a tensor along an axis. A slice that does not exist yet is made.

        The slices of an initializer are new initializers. Any other tensor is sliced by an operator, which is added to
        `nodes`.
        """
        key = (name, axis, tuple(ranges))
        if key not in self._made:
            names = self.part_names(name, len(ranges))
            if name in self._initializers:
                self._slice_initializer(self._initializers[name], axis, ranges, names)
            else:
                nodes.append(self._split_node(name, axis, ranges, names))
            self._made[key] = names
        return self._made[key]

    def part_names(self, name: str, count: int) -> list[str]:
        """New names for the parts of a tensor. The names are reserved, so that no other tensor gets them. Apostrophes
        are appended to `name` if names of parts already exist, for example because the tensor is also cut in another
        way.
        """
        names = [part_name(name, place, count) for place in range(count)]
        while not self._taken.isdisjoint(names):
            name += "'"
            names = [part_name(name, place, count) for place in range(count)]
        self._taken.update(names)
        return names

    def _slice_initializer(self, tensor: onnx.TensorProto, axis: int, ranges: Ranges, names: Sequence[str]) -> None:
        graph = self.model.graph
        is_input = any(value.name == tensor.name for value in graph.input)
        for name, (start, end) in zip(names, ranges, strict=True):
            part = self._slice(tensor, axis, start, end)
            part.name = name
            graph.initializer.append(part)
            self._initializers[name] = graph.initializer[-1]
            if is_input:  # old files list constants among the inputs
                graph.input.append(helper.make_tensor_value_info(name, part.data_type, list(part.dims)))

    def _slice(self, tensor: onnx.TensorProto, axis: int, start: int, end: int) -> onnx.TensorProto:
        dims = list(tensor.dims)
        if has_data(tensor):
            values = numpy_helper.to_array(tensor)
            index = [slice(None)] * len(dims)
            index[axis] = slice(start, end)
            part = numpy_helper.from_array(np.ascontiguousarray(values[tuple(index)]))
            del part.dims[:]
        else:
            part = onnx.TensorProto(data_type=tensor.data_type, data_location=onnx.TensorProto.EXTERNAL)
            place = _external_slice(tensor, start, end) if axis == 0 else None
            part.external_data.extend(_entries(place or {"location": NOT_INCLUDED}))
            if place is None and any(entry.value not in ("", NOT_INCLUDED) for entry in tensor.external_data):
                self.emptied.add(tensor.name)
        dims[axis] = end - start
        part.dims.extend(dims)
        return part

    def _split_node(self, name: str, axis: int, ranges: Ranges, names: Sequence[str]) -> onnx.NodeProto:
        sizes = [end - start for start, end in ranges]
        node_name = f"{name}#split"
        if self.opset < _FIRST_OPSET_WITH_SIZES_AS_INPUT:
            return helper.make_node("Split", [name], list(names), name=node_name, axis=axis, split=sizes)
        sizes_name = f"{names[0]}#sizes"
        self._taken.add(sizes_name)
        self.model.graph.initializer.append(numpy_helper.from_array(np.array(sizes, np.int64), sizes_name))
        return helper.make_node("Split", [name, sizes_name], list(names), name=node_name, axis=axis)

    def remove_unread(self) -> None:
        """Remove sliced initializers that no operator reads any longer. An initializer that is an output of the model
        stays.
        """
        graph = self.model.graph
        cut = {name for name, _, _ in self._made} & set(self._initializers)
        unread = cut - _names_read(graph) - {value.name for value in graph.output}
        for values in (graph.initializer, graph.input, graph.value_info):
            for place in reversed(range(len(values))):
                if values[place].name in unread:
                    del values[place]


def has_data(tensor: onnx.TensorProto) -> bool:
    """True if the tensor itself contains its data, or has no elements; false if the data are in another file or are
    left out.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return 0 in tensor.dims or any(len(getattr(tensor, name)) for name in _DATA_FIELDS)


def leave_out_data(tensor: onnx.TensorProto) -> None:
    """Remove the data of a tensor and keep its shape and type. The tensor then refers to a file that does not exist."""
    for name in _DATA_FIELDS:
        tensor.ClearField(name)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del tensor.external_data[:]
    tensor.external_data.extend(_entries({"location": NOT_INCLUDED}))


def _names_read(graph: onnx.GraphProto) -> set[str]:
    """Names of the tensors that operators read, including operators of subgraphs."""
    names: set[str] = set()
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                names |= _names_read(inner) | {value.name for value in inner.output}
    return names


def _external_slice(tensor: onnx.TensorProto, start: int, end: int) -> dict[str, str] | None:
    """Location of the rows `start` to `end` - 1 of a tensor in its data file, as keys and values of `external_data`.
    Rows are stored one after the other. None if the location cannot be determined.
    """
    given = {entry.key: entry.value for entry in tensor.external_data}
    rows = tensor.dims[0] if tensor.dims else 0
    elements = int(np.prod([int(size) for size in tensor.dims], dtype=np.int64))
    try:
        width = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        offset, length = int(given.get("offset", 0)), int(given.get("length", elements * width))
    except (KeyError, TypeError, ValueError):
        return None
    packed = onnx.TensorProto.DataType.Name(tensor.data_type) in _PACKED
    if packed or "location" not in given or given["location"] == NOT_INCLUDED or not rows or length != elements * width:
        return None
    row = length // rows
    return {"location": given["location"], "offset": str(offset + start * row), "length": str((end - start) * row)}


def _entries(values: dict[str, str]) -> list[onnx.StringStringEntryProto]:
    return [onnx.StringStringEntryProto(key=key, value=value) for key, value in values.items()]


Shapes = Mapping[str, tuple[int, ...]]
_DATA = 0
"""Position of the data input, which is not a constant, among the inputs of each convolution operator."""
_BESIDE_OF_CONVOLUTION = {"Conv": (2,), "ConvInteger": (3,), "QLinearConv": (4, 5, 8)}
"""Positions of the inputs of a convolution, other than data and weights, that can have one value for each output
channel: bias, scales, zero points.
"""
_BESIDE_OF_COLUMNS = {"MatMul": (), "MatMulInteger": (3,), "QLinearMatMul": (4, 5)}
_BESIDE_OF_ROWS = {"MatMul": (), "MatMulInteger": (2,), "QLinearMatMul": (1, 2, 6, 7)}
"""Positions of the inputs of a matrix product, other than the two matrices, that can have one value for each output
channel.

If the weights are the right matrix, output channels are columns, and `_BESIDE_OF_COLUMNS` applies. If the weights are
the left matrix, output channels are rows, and `_BESIDE_OF_ROWS` applies.
"""


@dataclass(frozen=True)
class OperatorForm:
    """Description of how an operator can be split: the input with the weights, and the axes of the output channels in
    weights and output.
    """

    weight_input: int
    weight_axis: int
    output_axis: int
    channels: int
    """Total number of output channels."""
    groups: int = 1
    """Number of groups of a convolution. Output channels of a group read only the input channels of this group."""
    group_inputs: int = 0
    """Number of input channels in a group of a convolution."""
    is_of_rows: bool = False
    """True if the output channels are the rows of a matrix product. If so, the weights are its left operand."""
    beside: tuple[tuple[int, int], ...] = ()
    """Further inputs that have one value for each output channel, such as the bias. An input is given by a pair:
    (position of the input, axis of the output channels in this input). Data and weights are not listed.
    """


@dataclass(frozen=True)
class ChannelPart:
    """Part of a split operator: a range of output channels."""

    start: int
    end: int
    """End of the range: the channel after the last one."""
    first_group: int = 0
    group_count: int = 1
    """Number of groups to which the channels of this part belong. A part covers one or several whole groups, or a range
    within one group.
    """


def operator_form(node: onnx.NodeProto, weights: str, shapes: Shapes) -> OperatorForm | None:
    """Description of how an operator can be split; None if it cannot be split. The operator must read `weights`, the
    name of the weight tensor, exactly once.
    """
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
            # If the right operand is a vector, the rows are the last axis.
            axis = rank - (2 if len(other) > 1 else 1)
            form = OperatorForm(place, len(shape) - 2, axis, shape[-2], is_of_rows=True)
            return _with_beside(form, node, shapes, _BESIDE_OF_ROWS[node.op_type])
    return None


def channel_parts(form: OperatorForm, most_channels: int) -> tuple[ChannelPart, ...]:
    """Parts with at most `most_channels` channels each, as few as possible. Without groups, all parts have the same
    size, but the last part can be smaller.

    In a convolution with groups, there are two cases. If a whole group has at most `most_channels` channels, each part
    has one or several whole groups. If a group has more channels, every group is cut in the same way, and the last part
    of each group can be smaller. Raises ValueError if `most_channels` is below 1.
    """
    if most_channels < 1:
        raise ValueError("a part must have at least one channel")
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
    """Operators that replace an operator: its parts, whose names begin with `name`, and a Concat of their outputs. The
    Concat has the same output as the operator, because the parts are in the order of their channels.
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
    """Give each part of a grouped convolution a slice as its data input. The slice has only the input channels of the
    groups of the part. The names of the slices are written into `inputs`, which has the input names of each part.
    Operators that make slices are added to `nodes`. Nothing is replaced if all parts have the same groups.
    """
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
    """Copy of a form with a new value of the field `beside`. The new value lists the inputs at `places` that have one
    value for each output channel. All other inputs at `places` are shared by all parts of the operator.
    """
    found = []
    for place in places:
        shape = shapes.get(node.input[place], ()) if place < len(node.input) and node.input[place] else ()
        axis = _channel_axis(shape, form, is_gemm=node.op_type == "Gemm")
        if axis is not None:
            found.append((place, axis))
    return replace(form, beside=tuple(found))


def _channel_axis(shape: Sequence[int], form: OperatorForm, *, is_gemm: bool) -> int | None:
    """Axis of the output channels in a bias, a scale or a zero point with shape `shape`; None if the tensor does not
    have one value for each channel.

    In a vector, the only axis is the axis of the channels. The bias of a Gemm is an exception: a vector then has one
    value for each column, and the result is None if the channels are rows. In tensors with more axes, the columns are
    the last axis, and the rows are the axis before it.
    """
    if len(shape) == 1:
        axis = None if is_gemm and form.is_of_rows else 0
    else:
        axis = len(shape) - (2 if form.is_of_rows else 1) if shape else None
    return axis if axis is not None and shape[axis] == form.channels > 1 else None


def _even_size(total: int, most: int) -> int:
    """Tile size that cuts `total` into as few tiles as possible, each at most `most` long. The tiles are as equal as
    possible.
    """
    return -(-total // -(-total // most))
