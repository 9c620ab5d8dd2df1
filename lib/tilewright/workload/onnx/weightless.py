"""The bytes of an ONNX file without those of its large constants, so that decoding it costs no memory for weights.

Walks the wire format of protocol buffers (protobuf.dev, "Encoding") along the messages of onnx.proto3 that hold
tensors, and leaves out the data fields that are longer than any constant whose values matter here.
"""

from collections.abc import Iterator, Mapping

LARGEST_DATA_BYTES = 2**20
"""Longer data are left out; the constants that keep their values (see `evaluation`) have at most half of this."""
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
"""Message -> field number -> message of that field, where tensors may be inside."""
_TENSOR_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})
"""Fields of a tensor that hold its elements: float, int32, string, int64, raw, double, uint64."""


def without_weights(content: memoryview) -> bytes:
    """A serialised model without large tensor data. Raises ValueError for what is no message."""
    return b"".join(_stripped(content, "model", 0))


def _stripped(content: memoryview, kind: str, depth: int) -> Iterator[bytes]:
    if depth > _DEEPEST:
        raise ValueError("messages inside messages without end")
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
    """(value, place behind it)."""
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
