"""Loading of an ONNX model from a file or from memory, without its weights.

The data of large constants are removed before the model is decoded, so that weights take no memory. The code reads the
wire format of protocol buffers (protobuf.dev, "Encoding") and follows the messages of onnx.proto3 that hold tensors.
Data fields that are longer than LARGEST_DATA_BYTES are skipped. Constants whose values are needed are always smaller.
"""

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from tilewright.base.errors import InputError, Problem
from tilewright.base.missing_files import missing_file

LARGEST_DATA_BYTES = 2**20
"""Length in bytes of the longest data field that is kept. A constant whose values are needed (`evaluation`) has at most
half this length."""
_DEEPEST = 64
_LENGTH_DELIMITED = 2
_FIXED_BYTES = {1: 8, 5: 4}

_INNER: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Protobuf fields that can contain tensors: kind of message -> field number -> kind of the message in the field."""
_TENSOR_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})
"""Fields of a tensor that hold its elements: float, int32, string, int64, raw, double, uint64."""


def without_weights(content: memoryview) -> bytes:
    """Serialised model without large tensor data. Raises ValueError if `content` is not a message."""
    return b"".join(_stripped(content, "model", 0))


def _stripped(content: memoryview, kind: str, depth: int) -> Iterator[bytes]:
    if depth > _DEEPEST:
        raise ValueError("messages are nested too deeply")
    kept_from = place = 0
    while place < len(content):
        start = place
        tag, place = _varint(content, place)
        number, wire_type = tag >> 3, tag & 7
        if wire_type != _LENGTH_DELIMITED:
            place = _skip(content, place, wire_type)
            continue
        length, begin = _varint(content, place)
        place = begin + length
        if place > len(content):
            raise ValueError("truncated")
        if length <= LARGEST_DATA_BYTES:
            continue
        inner_kind = _INNER[kind].get(number)
        if inner_kind is not None:
            inner = b"".join(_stripped(content[begin:place], inner_kind, depth + 1))
            yield bytes(content[kept_from:start]) + _as_varint(tag) + _as_varint(len(inner)) + inner
        elif kind == "tensor" and number in _TENSOR_DATA:
            yield bytes(content[kept_from:start])
        else:
            continue
        kept_from = place
    yield bytes(content[kept_from:])


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    """Pair (integer that begins at position `place`, position after this integer). The integer is in the
    variable-length encoding of protocol buffers. Raises ValueError for an integer that is truncated or too long.
    """
    value = shift = 0
    while place < len(content) and shift < 70:
        byte = content[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("truncated")


def _skip(content: memoryview, place: int, wire_type: int) -> int:
    if wire_type == 0:
        return _varint(content, place)[1]
    if wire_type in _FIXED_BYTES:
        return place + _FIXED_BYTES[wire_type]
    raise ValueError("unknown wire type")


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


IN_MEMORY = "<model>"
"""File name in messages about a model that is given as an object."""
_FIRST_IR_WITH_OPSETS = 3
LARGEST_FILE_BYTES = 2**31 - 1
"""Size of the largest file that protobuf decodes, in bytes. Larger models store their weights in other files."""
LARGEST_GRAPH = 500_000
"""Largest number of operators of a graph. No known network has so many operators, and a graph of this size is read
within seconds."""


def load_model(source: str | Path | onnx.ModelProto) -> tuple[onnx.ModelProto, str, str]:
    """Triple (model, file name for messages, default network name) of an ONNX file or of a model in memory.

    Weights are not loaded. External files are never opened and can be missing. Data of large constants in the file are
    skipped. Raises InputError if the file cannot be read, is not an ONNX model, has no operators, or has too many
    operators.
    """
    if isinstance(source, onnx.ModelProto):
        model, file, name = source, IN_MEMORY, source.graph.name or "network"
    else:
        file, name = str(source), Path(source).stem
        model = _decode(_read_bytes(Path(source), file), file)
    if not model.graph.node:
        raise InputError([Problem("the graph of this ONNX model is empty: it has no operators", file=file)])
    graphs = [model.graph, *model.functions]
    if len(model.graph.node) > LARGEST_GRAPH:
        count, allowed = str(len(model.graph.node)), f"at most {LARGEST_GRAPH}"
        raise InputError([Problem("too many operators for a network", file=file, value=count, allowed=allowed)])
    if not all(isinstance(text, str) for graph in graphs for text in _texts(graph)) or not all(
        isinstance(opset.domain, str) for opset in model.opset_import
    ):
        raise InputError([Problem("a damaged ONNX model: it contains names that are not text", file=file)])
    return model, file, name


def _read_bytes(path: Path, file: str) -> bytes:
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError([Problem("cannot be read: not a regular file", file=file)])
        if path.is_file() and path.stat().st_size > LARGEST_FILE_BYTES:
            message = (
                "an ONNX file of more than 2 GB cannot be decoded; save the model with its weights as external data, "
                "which are not read (onnx.save_model with save_as_external_data=True)"
            )
            raise InputError([Problem(message, file=file)])
        content = _content(path)
    except FileNotFoundError:
        raise InputError([missing_file(path)]) from None
    except ValueError:
        # The walk over a large file raises ValueError, and so does a path with a character that no path can have.
        raise InputError([Problem("not an ONNX model, or a truncated one", file=file)]) from None
    except MemoryError:
        raise InputError([Problem("cannot be read: there is not enough memory", file=file)]) from None
    except OSError as error:
        raise InputError([Problem(f"cannot be read: {error.strerror or error}", file=file)]) from None
    if not content:
        raise InputError([Problem("the file is empty", file=file)])
    return content


def _content(path: Path) -> bytes:
    """Content of the file. To save memory, a large file is read without the data of its weights."""
    if path.is_dir() or path.stat().st_size <= LARGEST_DATA_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        # The mapping is not closed here, because an error in the walk still refers to parts of it.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return without_weights(memoryview(mapped))


def _decode(content: bytes, file: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        raise InputError([Problem("not an ONNX model, or a truncated one", file=file)]) from None
    # Text and random bytes sometimes decode to a message that has only unknown fields. A model always has a version.
    if not model.HasField("graph") or not (model.ir_version or model.opset_import):
        raise InputError([Problem("not an ONNX model", file=file)])
    if model.ir_version >= _FIRST_IR_WITH_OPSETS and not model.opset_import:
        raise InputError([Problem("a truncated ONNX model: it names no operator set", file=file)])
    return model


def _texts(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[object]:
    """Texts of a graph or function that later steps use, such as names of nodes and tensors. A text that is not valid
    UTF-8 in the file has the type bytes instead of str."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            for inner in (attribute.g, *attribute.graphs) if _holds_graph(attribute) else ():
                yield from _texts(inner)
    if isinstance(graph, onnx.FunctionProto):
        yield from (graph.name, graph.domain, graph.overload, *graph.input, *graph.output, *graph.attribute)
        yield from (attribute.name for attribute in graph.attribute_proto)
        yield from (opset.domain for opset in graph.opset_import)
        return
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from (dimension.dim_param for dimension in value.type.tensor_type.shape.dim)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)


def _holds_graph(attribute: onnx.AttributeProto) -> bool:
    return attribute.HasField("g") or bool(attribute.graphs)
