"""Bits per element of ONNX types, derived from the names of the types.

Types of newer ONNX versions are therefore known, too.

A type narrower than a byte has its packed size: two elements of four bits in a byte, four elements of two bits in a
byte, four elements of six bits in three bytes. A boolean takes a byte.
"""

import re
from collections.abc import Mapping

import onnx

_REAL_BITS = {"FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16, "COMPLEX64": 64, "COMPLEX128": 128}
"""Types of real and complex numbers that are not quantised formats. The option `precision` decides how many bits an
element of these types has."""
_BOOL_BITS = 8
_NAMED_BITS = re.compile(r"(?:U?INT|FLOAT)(\d+)(?:E\d+M\d+\w*)?")
_WIDEST_QUANTISED = 32
"""Number of bits of the widest quantised integer type. Wider integers are not quantised numbers."""


def _bits_of(name: str) -> int | None:
    if name in _REAL_BITS:
        return _REAL_BITS[name]
    named = _NAMED_BITS.fullmatch(name)
    return int(named[1]) if named else _BOOL_BITS if name == "BOOL" else None


ELEMENT_BITS: Mapping[int, int] = {
    number: bits for name, number in onnx.TensorProto.DataType.items() if (bits := _bits_of(name)) is not None
}
"""Bits of each element type of a fixed width, by the number of the type. Strings have no fixed width."""
REAL_TYPES: frozenset[int] = frozenset(
    number for name, number in onnx.TensorProto.DataType.items() if name in _REAL_BITS
)
"""Element types of real (and complex) numbers that are not quantised formats."""
QUANTISED_BITS: Mapping[int, int] = {
    number: bits
    for number, bits in ELEMENT_BITS.items()
    if number not in REAL_TYPES
    and bits <= _WIDEST_QUANTISED
    and number not in (onnx.TensorProto.BOOL, onnx.TensorProto.UINT32)
}
"""Bits of the integers and narrow floats that represent quantised real numbers, by element type."""
NARROW_TYPES: frozenset[int] = frozenset(number for number, bits in QUANTISED_BITS.items() if bits < 8)
"""Element types narrower than a byte. These types are used only for quantised numbers."""
