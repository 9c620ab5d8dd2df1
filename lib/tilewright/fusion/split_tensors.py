"""Slices of the constants of an ONNX model, without reading weights that are in other files or were left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.workload.part_names import part_name

NOT_INCLUDED = "weights-not-included.bin"
"""File that stands for data that are nowhere: shapes and types of such tensors are all that there is."""
_DATA_FIELDS = (
    *("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"),
    "raw_data",
)
_PACKED = ("INT2", "UINT2", "INT4", "UINT4", "FLOAT4E2M1")
"""Element types of less than a byte."""
_FIRST_OPSET_WITH_SIZES_AS_INPUT = 13
Ranges = Sequence[tuple[int, int]]
"""(first index, the one after the last) of each slice; they follow on one another and cover the axis."""


@dataclass
class TensorSlicer:
    """Slices tensors of a model; equal slices are made once."""

    model: onnx.ModelProto
    opset: int
    """Version of the standard operators that the model uses."""
    emptied: set[str] = field(default_factory=set)
    """Tensors of which only shapes are left in the slices, though their data are in some file."""
    _made: dict[tuple[str, int, tuple[tuple[int, int], ...]], list[str]] = field(default_factory=dict)
    _initializers: dict[str, onnx.TensorProto] = field(init=False)
    _taken: set[str] = field(init=False)
    """Names of all tensors."""

    def __post_init__(self) -> None:
        graph = self.model.graph
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._taken = set(self._initializers) | {value.name for value in (*graph.input, *graph.value_info)}
        self._taken |= {name for node in graph.node for name in (*node.input, *node.output)}

    def slices(self, name: str, axis: int, ranges: Ranges, nodes: list[onnx.NodeProto]) -> list[str]:
        """Names of the slices of a tensor along an axis.

        An initializer becomes one for each slice. Any other tensor is cut by an operator, which is added to `nodes`.
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
        """Names of tensors for the parts of one, with marks where it is cut in several ways; from then on taken."""
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
        """Remove the initializers that no operator reads any more."""
        graph = self.model.graph
        cut = {name for name, _, _ in self._made} & set(self._initializers)
        unread = cut - _names_read(graph) - {value.name for value in graph.output}
        for values in (graph.initializer, graph.input, graph.value_info):
            for place in reversed(range(len(values))):
                if values[place].name in unread:
                    del values[place]


def has_data(tensor: onnx.TensorProto) -> bool:
    """Whether the data of a tensor are in the model itself."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return 0 in tensor.dims or any(len(getattr(tensor, name)) for name in _DATA_FIELDS)


def leave_out_data(tensor: onnx.TensorProto) -> None:
    """Leave a tensor its shape and type alone: its data are said to be in a file that is not there."""
    for name in _DATA_FIELDS:
        tensor.ClearField(name)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del tensor.external_data[:]
    tensor.external_data.extend(_entries({"location": NOT_INCLUDED}))


def _names_read(graph: onnx.GraphProto) -> set[str]:
    """Tensors that operators read, those of graphs inside operators too."""
    names: set[str] = set()
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                names |= _names_read(inner) | {value.name for value in inner.output}
    return names


def _external_slice(tensor: onnx.TensorProto, start: int, end: int) -> dict[str, str] | None:
    """Where rows of a tensor are in its data file: rows follow on one another. None where nobody can tell."""
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
