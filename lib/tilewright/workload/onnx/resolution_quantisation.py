"""Bits of quantised tensors: what quantisers, integer types and dequantisers of a file say."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tilewright.workload.onnx.node import STANDARD_DOMAINS
from tilewright.workload.onnx.resolution_custom import CONTRIB_DOMAIN, QUANTISER_DOMAINS
from tilewright.workload.onnx.resolution_facts import TensorFacts

_INTEGER_BITS = {
    name: bits
    for names, bits in (("INT2 UINT2", 2), ("INT4 UINT4", 4), ("INT8 UINT8", 8), ("INT16 UINT16", 16), ("INT32", 32))
    for name in names.split()
}
ELEMENT_BITS: Mapping[int, int] = {
    number: _INTEGER_BITS[name] for name, number in onnx.TensorProto.DataType.items() if name in _INTEGER_BITS
}
"""Element type -> bits, of the integers that stand for real numbers."""
_NARROW = frozenset(number for number, bits in ELEMENT_BITS.items() if bits < 8)
_FLOAT8 = frozenset(number for name, number in onnx.TensorProto.DataType.items() if name.startswith("FLOAT8"))
_MOVES_TEXT = """
    Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape Slice SpaceToDepth Split
    Squeeze Tile Transpose Unsqueeze
"""
_MOVES = frozenset(_MOVES_TEXT.split())
_MOST_BITS = 64


def element_bits(element_type: int) -> int | None:
    """Bits that an element type alone says are quantised: integers narrower than a byte."""
    return ELEMENT_BITS[element_type] if element_type in _NARROW else None


def quantised_bits(
    node: onnx.NodeProto, inputs: Sequence[TensorFacts | None], output_type: int, *, is_constant: bool
) -> int | None:
    """Bits of the outputs of `node`, None where nothing says so.

    A dequantised tensor has the bits of the integer behind it. Operators that only move data keep what their (joined)
    inputs have; a constant that is scaled or shifted keeps the bits that are stored.
    """
    first = inputs[0] if inputs else None
    if node.domain in QUANTISER_DOMAINS:
        return _declared_bits(node, inputs)
    if node.domain not in STANDARD_DOMAINS and node.domain != CONTRIB_DOMAIN:
        return None
    if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear"):
        return 8 if output_type in _FLOAT8 else ELEMENT_BITS.get(output_type)
    if first is None:
        return element_bits(output_type)
    if node.op_type == "DequantizeLinear":
        return _stored_bits(first)
    if node.op_type == "Concat":
        every = {facts.quantised_bits if facts is not None else None for facts in inputs}
        return every.pop() if len(every) == 1 else None
    if node.op_type in _MOVES:
        return first.quantised_bits
    if is_constant and node.op_type == "Cast":
        return _stored_bits(first) if ELEMENT_BITS.get(first.element_type, 32) <= 16 else first.quantised_bits
    if is_constant and node.op_type in ("Mul", "Div", "Sub", "Add"):
        return _scaled_bits(inputs)
    return element_bits(output_type)


def _stored_bits(facts: TensorFacts) -> int | None:
    if facts.element_type in _FLOAT8:
        return 8
    return facts.quantised_bits or ELEMENT_BITS.get(facts.element_type)


def _scaled_bits(inputs: Sequence[TensorFacts | None]) -> int | None:
    """Those of the larger operand: the other one is the scale or the zero point."""
    known = [facts for facts in inputs if facts is not None]
    largest = max(known, key=lambda facts: int(np.prod(facts.shape, dtype=object)), default=None)
    return largest.quantised_bits if largest is not None else None


def _declared_bits(node: onnx.NodeProto, inputs: Sequence[TensorFacts | None]) -> int | None:
    if node.op_type == "BipolarQuant":
        return 1
    if node.op_type == "FloatQuant":
        parts = [_number(inputs, 2), _number(inputs, 3)]
        return None if None in parts else 1 + sum(part for part in parts if part is not None)
    if node.op_type in ("Quant", "IntQuant"):
        return _number(inputs, 3)
    return _number(inputs, 4) if node.op_type == "Trunc" else None


def _number(inputs: Sequence[TensorFacts | None], index: int) -> int | None:
    """The bit width in a constant input; a fractional one takes the next whole number, one per channel the largest."""
    facts = inputs[index] if index < len(inputs) else None
    if facts is None or facts.values is None or not facts.values.size or facts.values.dtype.kind not in "iuf":
        return None
    bits = float(np.max(facts.values))
    return int(np.ceil(bits)) if 0 < bits <= _MOST_BITS else None
