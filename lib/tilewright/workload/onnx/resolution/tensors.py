"""Tensors of a network during one pass over it: shapes, constants, and bits of quantised tensors.

The bits come from quantisers, dequantisers and integer types of the file.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from tilewright.base.errors import InputError, Problem
from tilewright.workload.onnx.element_types import ELEMENT_BITS, NARROW_TYPES, QUANTISED_BITS
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shape
from tilewright.workload.onnx.resolution.custom import CONTRIB_DOMAIN, QUANTISER_DOMAINS
from tilewright.workload.onnx.resolution.evaluation import Values, tensor_values
from tilewright.workload.onnx.resolution.size_checks import size_problem
from tilewright.workload.onnx.tensor_facts import TensorFacts


@dataclass(frozen=True)
class ResolvedGraph:
    """Network as a graph of operators. Functions are expanded, each `If` is replaced by one branch, and all shapes that
    an operator needs are known.
    """

    nodes: tuple[OnnxNode, ...]
    """Nodes in an order in which they can run. `node_id` is the position of a node in this order. Names are unique, and
    they are the same each time the file is read."""
    tensors: dict[str, TensorFacts]
    """Facts of every tensor with a known shape. Sequences, maps and results of unknown operators are missing."""
    inputs: tuple[str, ...]
    """Names of the network inputs, without initialisers."""
    outputs: tuple[str, ...]
    producer_of: dict[str, int]
    """Id of the node that makes each tensor. Network inputs and initialisers are missing."""
    constant_nodes: frozenset[int]
    """Ids of the nodes whose outputs are all known before run time."""
    opsets: dict[str, int]
    """Version of each operator set, by domain ('' for the standard domain)."""
    origins: dict[int, str]
    """Origin of each node of the network, by id of the node. The origin of a node of the file is its name in the file.
    The origin of a node of an expanded function is the name of the call. The origin of a node of a branch is a name
    such as `If name/node of branch`."""
    notices: tuple[str, ...]


@functools.lru_cache(maxsize=65536)
def tensor_type(element_type: int, shape: tuple[int | None, ...]) -> onnx.TypeProto:
    """Type of a tensor, with None for open sizes. The caller must not change the returned type, because later calls
    return the same object.
    """
    return onnx.helper.make_tensor_type_proto(element_type, shape)


_MOVES_TEXT = """
    CenterCropPad Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape
    ReverseSequence Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze
"""
_MOVES = frozenset(_MOVES_TEXT.split())
_KEEP_STORED_TEXT = """
    Abs Add BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Clip Div Mod Mul Neg Sub Where
"""
_KEEP_STORED = frozenset(_KEEP_STORED_TEXT.split())
"""Elementwise operators with which networks compute a constant from stored numbers. The stored numbers can have fewer
bits than the element type of the constant. The constant then counts with the bits of the stored numbers
(`quantised_bits`).
"""
CAST_LIKE = "CastLike"
_CASTS = ("Cast", CAST_LIKE)
_WIDEST_STORED = 16
_MOST_BITS = 64


def element_bits(element_type: int) -> int | None:
    """Bits of an element type that is narrower than a byte and therefore quantised. None for other types."""
    return QUANTISED_BITS[element_type] if element_type in NARROW_TYPES else None


def quantised_bits(
    node: onnx.NodeProto, inputs: Sequence[TensorFacts | None], output_type: int, *, is_constant: bool
) -> int | None:
    """Bits of the quantised outputs of `node`; None if the outputs are not quantised, or if their bits are not known.

    A dequantised tensor has the bits of its quantised input. An operator that only moves data keeps the bits of its
    first input. A Concat keeps the bits of its inputs if they are equal; otherwise, its bits are not known. A constant
    that is computed element by element from stored numbers has the bits of these numbers.
    """
    first = inputs[0] if inputs else None
    if node.domain in QUANTISER_DOMAINS:
        return _declared_bits(node, inputs)
    if node.domain not in STANDARD_DOMAINS and node.domain != CONTRIB_DOMAIN:
        return None
    if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear"):
        return QUANTISED_BITS.get(output_type)
    if first is None:
        return element_bits(output_type)
    if node.op_type == "DequantizeLinear":
        return _stored_bits(first)
    if node.op_type == "Concat":
        every = {facts.quantised_bits if facts is not None else None for facts in inputs}
        return every.pop() if len(every) == 1 else None
    if is_constant and node.op_type == "Gather" and first.quantised_bits is None:
        return _code_bits(first, inputs[1] if len(inputs) > 1 else None)
    if node.op_type in _MOVES:
        return first.quantised_bits
    narrow = element_bits(output_type)
    if not is_constant or node.op_type not in _KEEP_STORED:
        return narrow
    if node.op_type in _CASTS:
        inputs = inputs[:1]
        if first.element_type == onnx.TensorProto.BOOL:
            return ELEMENT_BITS[first.element_type]
    stored = _unpacked_bits(node, inputs) or _scaled_bits(inputs)
    widest = QUANTISED_BITS.get(output_type) if stored is not None else narrow
    return min((bits for bits in (stored, widest) if bits is not None), default=None)


def _stored_bits(facts: TensorFacts) -> int | None:
    return facts.quantised_bits or QUANTISED_BITS.get(facts.element_type)


def _scaled_bits(inputs: Sequence[TensorFacts | None]) -> int | None:
    """Bits in which the inputs of an elementwise operator are stored; None if these bits are not known.

    Only the largest inputs count, because smaller inputs are a scale or a zero point. Inputs of more than 16 bits are
    left out, because sizes and positions are 32-bit integers. The result is the largest number of bits of the inputs
    that count.
    """
    known = [facts for facts in inputs if facts is not None]
    counts = [math.prod(facts.shape) for facts in known]
    largest = [facts for facts, count in zip(known, counts, strict=True) if count == max(counts)]
    stored = [bits for facts in largest if (bits := _stored_bits(facts)) is not None]
    return max((bits for bits in stored if bits <= _WIDEST_STORED), default=None)


def _unpacked_bits(node: onnx.NodeProto, inputs: Sequence[TensorFacts | None]) -> int | None:
    """Bits of the result of an operator that masks or shifts stored numbers. None for any other operator, and if the
    mask or the shift is not known.
    """
    values = [facts.values if facts is not None else None for facts in inputs]
    alone = [int(value.reshape(-1)[0]) for value in values if value is not None and value.size and _is_one(value)]
    if len(inputs) != 2 or len(alone) != 1 or alone[0] < 0:
        return None
    if node.op_type == "BitwiseAnd":
        return alone[0].bit_length() or None
    stored = _stored_bits(inputs[0]) if inputs[0] is not None else None
    if node.op_type != "BitShift" or stored is None or (values[0] is not None and _is_one(values[0])):
        return None
    is_right = any(item.name == "direction" and item.s == b"RIGHT" for item in node.attribute)
    return max(stored - alone[0], 1) if is_right else stored + alone[0]


def _is_one(values: Values) -> bool:
    """True if all elements are the same integer."""
    return values.dtype.kind in "iu" and bool((values == values.reshape(-1)[:1]).all())


def _code_bits(table: TensorFacts, codes: TensorFacts | None) -> int | None:
    """Bits of the numbers that codes select from a table. The result is b, the bits of a code, if b is known and the
    table has at most 2 ** b numbers. Otherwise, the result is the bits of the table.
    """
    if codes is None or codes.quantised_bits is None or math.prod(table.shape) > 2**codes.quantised_bits:
        return table.quantised_bits
    return codes.quantised_bits


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
    """Bit width that a constant input gives; None if the input is no known constant or no valid width. A fractional
    width is rounded up. If there is one width per channel, the result is the largest width."""
    facts = inputs[index] if index < len(inputs) else None
    if facts is None or facts.values is None or not facts.values.size or facts.values.dtype.kind not in "iuf":
        return None
    bits = float(np.max(facts.values))
    return int(np.ceil(bits)) if 0 < bits <= _MOST_BITS else None


_ELEMENT_TYPES = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}


@dataclass(frozen=True)
class AssumedTensor:
    """Tensor for which some sizes are missing. ASSUMED_SIZE replaces the missing sizes."""

    shape: Shape
    element_type: int
    missing: dict[str, Problem]


@dataclass
class KnownTensors:
    """Known facts of each tensor. Every tensor that exists is in `defined`; some of these tensors have no facts."""

    facts: dict[str, TensorFacts] = field(default_factory=dict)
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    """Types of tensors with a known shape, and types of sequences, optionals and maps."""
    constants: set[str] = field(default_factory=set)
    """Names of all tensors that are known before run time; some of them are not in `facts`."""
    defined: set[str] = field(default_factory=lambda: {""})
    failed: set[str] = field(default_factory=set)
    """Names of tensors that are not known because of an earlier problem. Operators that read these tensors are not
    checked, so the problem is reported only once."""
    unknown: dict[str, tuple[Problem, ...]] = field(default_factory=dict)
    """Problems of each tensor without a known shape. The problems are reported if the tensor is needed."""
    undecided: set[str] = field(default_factory=set)
    """Names of unknown tensors whose shape is decided at run time. Such tensors cannot be network outputs."""
    assumed: dict[str, AssumedTensor] = field(default_factory=dict)
    """Unknown tensors with a known rank. If such a tensor is needed, its missing sizes are assumed."""
    missing_sizes: dict[str, Problem] = field(default_factory=dict)
    """Problems of sizes that were needed but not given, by name of the size. Problems that are found after the first
    missing size can be consequences of this missing size."""
    missing_shapes: list[Problem] = field(default_factory=list)
    """Problems of tensors whose whole shape is missing."""

    def add(
        self,
        name: str,
        shape: Shape,
        element_type: int,
        *,
        is_constant: bool,
        values: Values | None = None,
        bits: int | None = None,
    ) -> None:
        """Add a tensor with all its facts. Raises InputError for impossible sizes and element types."""
        self.defined.add(name)
        problem = size_problem(name, shape)
        if problem is None and element_type not in _ELEMENT_TYPES:
            problem = Problem(f"tensor '{name}' has no known element type", value=str(element_type))
        if problem is not None:
            self.failed.add(name)
            raise InputError([problem])
        if bits is None:
            bits = element_bits(element_type)
        if is_constant:
            self.constants.add(name)
        self.types[name] = tensor_type(element_type, shape)
        self.facts[name] = TensorFacts(name, shape, element_type, is_constant, values, bits)

    def add_constant(self, name: str, tensor: onnx.TensorProto) -> None:
        """Add a constant of the file. The values of a small constant are kept; the values of a large constant are
        dropped. Raises InputError for impossible sizes and element types.
        """
        self.add(name, tuple(tensor.dims), tensor.data_type, is_constant=True, values=tensor_values(tensor))

    def add_unknown(
        self, name: str, problems: Iterable[Problem], value_type: onnx.TypeProto | None, *, is_constant: bool
    ) -> None:
        """Add a tensor without a known shape, or a value that is not a tensor: a sequence, an optional or a map.

        `problems` are reported only if an operator needs the shape of the tensor.
        """
        self.defined.add(name)
        self.unknown[name] = tuple(problems)
        if is_constant:
            self.constants.add(name)
        if value_type is not None and not value_type.HasField("tensor_type"):
            self.types[name] = value_type

    def require(self, name: str) -> bool:
        """Request the shape of a tensor that an operator needs. Returns True if the shape or the type of the tensor is
        known.

        If the rank is known but sizes are missing, the problems of these sizes are added to `missing_sizes`.
        ASSUMED_SIZE then replaces the sizes, and the result is True. If the rank is not known, the problems of the
        tensor are added to `missing_shapes`, and the result is False.
        """
        if name not in self.unknown or name in self.types or name in self.facts:
            return True
        assumed = self.assumed.get(name)
        if assumed is None:
            self.missing_shapes += self.unknown[name]
            return False
        self.missing_sizes.update(assumed.missing)
        self.add(name, assumed.shape, assumed.element_type, is_constant=name in self.constants)
        return True

    def fail(self, names: list[str]) -> None:
        """Mark `names`, the outputs of an operator that has a problem, as failed. Operators that depend on these
        tensors are not checked.
        """
        self.failed.update(name for name in names if name)
        self.defined.update(names)
