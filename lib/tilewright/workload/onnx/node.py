"""Operator of an ONNX graph with typed access to its attributes, and the rules for the bits per element of its
tensors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import onnx

from tilewright.base.errors import InputError, Problem
from tilewright.workload.network_options import ASSUMED
from tilewright.workload.onnx.element_types import ELEMENT_BITS, REAL_TYPES
from tilewright.workload.onnx.tensor_facts import TensorFacts

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
"""Shapes by tensor name. All sizes of these shapes are known; tensors of unknown shape are missing."""

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})


@dataclass(frozen=True)
class GivenBits:
    """Bits that the user gives for the operands of an operator. None means that no bits are given."""

    weights: int | None = None
    activations: int | None = None
    partial: int | None = None


@dataclass(frozen=True)
class OnnxNode:
    """Operator: its position in the order of execution, a name that is unique in the network, and its ONNX message."""

    node_id: int
    name: str
    proto: onnx.NodeProto
    opsets: Mapping[str, int] = field(default_factory=dict)
    """Version of each operator set, by domain. It is set only for an operator in the body of a function with which onnx
    defines another operator. For all other operators, it is {}: their versions are the imports of the model."""
    given: GivenBits = GivenBits()
    """Bits that the user gives for the operands. These bits take precedence over attributes in the file."""

    @property
    def operator_type(self) -> str:
        """Operator type, such as Conv. If the operator is not in the standard domain, the domain comes first, as in
        com.example::Gelu."""
        domain = self.proto.domain
        return self.proto.op_type if domain in STANDARD_DOMAINS else f"{domain}::{self.proto.op_type}"

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input tensors; '' for an optional input that is left out."""
        return tuple(self.proto.input)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output tensors."""
        return tuple(self.proto.output)

    @cached_property
    def _attributes(self) -> dict[str, onnx.AttributeProto]:
        return {attribute.name: attribute for attribute in self.proto.attribute}

    def has(self, name: str) -> bool:
        """True if the attribute is given."""
        return name in self._attributes

    def integer(self, name: str, default: int) -> int:
        """Value of the integer attribute `name`. Raises InputError if the attribute has another type."""
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        if attribute.type != onnx.AttributeProto.INT:
            raise self.error(f"attribute '{name}' must be an integer")
        return attribute.i

    def integers(self, name: str, default: Shape) -> Shape:
        """Value of the attribute `name`, a list of integers. Raises InputError if the attribute has another type."""
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        if attribute.type != onnx.AttributeProto.INTS:
            raise self.error(f"attribute '{name}' must be a list of integers")
        return tuple(attribute.ints)

    def positive_integers(self, name: str, default: Shape, count: int) -> Shape:
        """Value of the attribute `name`; `default` if the attribute is missing. Raises InputError unless the value has
        `count` integers that are all above 0.
        """
        values = self.integers(name, default)
        if len(values) != count or any(value < 1 for value in values):
            raise self.error(f"wrong attribute '{name}'", str(list(values)), f"{count} positive integers")
        return values

    def text(self, name: str, default: str) -> str:
        """Value of the string attribute `name`. Raises InputError if the attribute has another type."""
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        if attribute.type != onnx.AttributeProto.STRING:
            raise self.error(f"attribute '{name}' must be a string")
        return attribute.s.decode("utf-8", "replace")

    def input_shape(self, index: int, shapes: Shapes) -> Shape:
        """Shape of input `index`. Raises InputError if the input is missing or if the shape is not known."""
        if index >= len(self.inputs) or not self.inputs[index]:
            raise self.error(f"{self.operator_type} needs input {index}, which is missing")
        return self._shape(self.inputs[index], shapes)

    def output_shape(self, shapes: Shapes) -> Shape:
        """Shape of the first output. Raises InputError if there is no output or if the shape is not known."""
        if not self.outputs or not self.outputs[0]:
            raise self.error(f"{self.operator_type} has no output")
        return self._shape(self.outputs[0], shapes)

    def _shape(self, tensor: str, shapes: Shapes) -> Shape:
        if tensor not in shapes:
            raise self.error(f"the shape of tensor '{tensor}' is not in the file, and it cannot be inferred")
        return shapes[tensor]

    def error(self, message: str, value: str = "", allowed: str = "") -> InputError:
        """InputError about this operator. The reader adds the file name."""
        return InputError([Problem(message, path=self.name, value=value, allowed=allowed)])


@dataclass(frozen=True)
class OperandRoles:
    """Operands of one layer and their sources: the operator inputs that are I and W, and the nodes that produce
    operands. A constant operand has no such node."""

    activation_input: int
    """Index of the node input that is operand I."""
    weight_input: int
    """Index of the node input that is operand W."""
    constant_operands: tuple[str, ...]
    sources: tuple[tuple[str, int], ...]
    """Pairs (operand, id of the producing node). W comes before I, as in zigzag-dse 3.9.1."""

    @property
    def weight_is_constant(self) -> bool:
        """True if W is known before run time."""
        return "W" in self.constant_operands


PRECISION_ATTRIBUTES = frozenset({"act_size", "output_size", "weight_size"})
"""Attributes that a user can add to any operator: bits of activations (act_size), of partial sums (output_size) and of
constants (weight_size).
"""
_DEFAULT_BITS = 8
SELECTING = frozenset(
    {"MaxPool", "GlobalMaxPool", "MaxRoiPool", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK", "Hardmax"}
)
"""Operators that select one of several values. The partial results of such an operator are as wide as its result."""
_WIDEST_ACCUMULATOR_BITS = 32
"""Bits of accumulators under the policy FILE, unless an input is wider."""


@dataclass(frozen=True)
class TensorPrecision:
    """Bits per element, and the source of this number: given (by the user), quantisation, element type or assumed."""

    bits: int
    source: str


def tensor_precision(facts: TensorFacts, policy: str) -> TensorPrecision:
    """Precision of a tensor if no attribute of an operator overrides it. `policy` is ASSUMED or FILE.

    Bits that the user gives take precedence. Quantised tensors and integers have their stored bits under both policies.
    A floating-point tensor has 8 bits under ASSUMED, and its stored bits under FILE.
    """
    if facts.given_bits is not None:
        return TensorPrecision(facts.given_bits, "given")
    if facts.quantised_bits is not None:
        return TensorPrecision(facts.quantised_bits, "quantisation")
    if facts.element_type in REAL_TYPES and policy == ASSUMED:
        return TensorPrecision(_DEFAULT_BITS, "assumed")
    bits = ELEMENT_BITS.get(facts.element_type)
    return TensorPrecision(bits, "element type") if bits else TensorPrecision(_DEFAULT_BITS, "assumed")


def partial_sum_bits(node: OnnxNode, operand_bits: int, final_bits: int, accumulates: bool, policy: str) -> int:
    """Number of bits of partial sums. The first of these rules that applies gives the number:

    * If results are summed (`accumulates`) and the user gives bits of partial sums (`--bits`): the given bits.
    * If the node has the attribute `output_size`: its value.
    * If results are not summed: the bits of the result (`final_bits`).
    * Under the policy ASSUMED: twice the bits of the widest input (`operand_bits`).
    * Under the policy FILE: 32 bits, or the bits of the widest input if these are more.

    Under the last two rules, partial sums are never narrower than the result: a product of bytes that is stored as
    INT32 is summed in 32 bits. Raises InputError for an `output_size` that is not positive.
    """
    if node.given.partial is not None and accumulates:
        return node.given.partial
    if node.has("output_size"):
        return _bits(node, "output_size", 0)
    if not accumulates:
        return final_bits
    chosen = 2 * operand_bits if policy == ASSUMED else max(_WIDEST_ACCUMULATOR_BITS, operand_bits)
    return max(chosen, final_bits)


def overridden_bits(node: OnnxNode, *, is_weight: bool) -> int | None:
    """Bits that an attribute of the node gives: `weight_size` for constant operands, `act_size` for all other operands.
    None if the attribute is missing, or if the user gives bits for such operands: the tensors then already have the
    user's bits.

    Raises InputError for a value of the attribute that is not positive.
    """
    given = node.given.weights if is_weight else node.given.activations
    if given is not None:
        return None  # the tensors have them
    attribute = "weight_size" if is_weight else "act_size"
    return _bits(node, attribute, 0) if node.has(attribute) else None


def precision_bits(node: OnnxNode, *, weight_is_activation: bool = False) -> tuple[tuple[str, int], ...]:
    """Pairs (key, bits) of W, I, O_final and O (partial sums). Bits that the user gives take precedence over the
    attributes weight_size, act_size and output_size.

    The defaults are 8 bits for W, 8 bits for I, and twice the bits of I for O, as in zigzag-dse 3.9.1. O_final always
    has the bits of I, and so does W if it is an activation. ONNX element types are ignored. Raises InputError for
    attributes that are not positive integers.
    """
    given = node.given
    activation = given.activations or _bits(node, "act_size", _DEFAULT_BITS)
    weight = given.weights or _bits(node, "weight_size", _DEFAULT_BITS)
    partial_sum = given.partial or _bits(node, "output_size", 2 * activation)
    return (
        ("W", activation if weight_is_activation else weight),
        ("I", activation),
        ("O_final", activation),
        ("O", partial_sum),
    )


def _bits(node: OnnxNode, attribute: str, default: int) -> int:
    bits = node.integer(attribute, default)
    if bits < 1:
        raise node.error(f"wrong attribute '{attribute}' (bits)", str(bits), "integer >= 1")
    return bits
