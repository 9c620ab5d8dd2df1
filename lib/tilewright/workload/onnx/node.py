"""One operator of an ONNX graph, with typed access to its attributes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx

from tilewright.errors import InputError, Problem

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
"""Tensor name -> its sizes, all known. A tensor that is not in it has no known shape."""

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})


@dataclass(frozen=True)
class OnnxNode:
    """An operator: its place in the order of execution, a name unique in the network, and its message."""

    node_id: int
    name: str
    proto: onnx.NodeProto

    @property
    def operator_type(self) -> str:
        """The operator, with its domain in front when that is not the standard one: Conv, com.example::Gelu."""
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
        """Whether the attribute is given."""
        return name in self._attributes

    def integer(self, name: str, default: int) -> int:
        """The integer attribute `name`. Raises InputError when it is of another type."""
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        if attribute.type != onnx.AttributeProto.INT:
            raise self.error(f"attribute '{name}' must be an integer")
        return attribute.i

    def integers(self, name: str, default: Shape) -> Shape:
        """The attribute `name`, a list of integers. Raises InputError when it is of another type."""
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        if attribute.type != onnx.AttributeProto.INTS:
            raise self.error(f"attribute '{name}' must be a list of integers")
        return tuple(attribute.ints)

    def positive_integers(self, name: str, default: Shape, count: int) -> Shape:
        """The attribute `name`, so many integers above 0. Raises InputError for any others."""
        values = self.integers(name, default)
        if len(values) != count or any(value < 1 for value in values):
            raise self.error(f"attribute '{name}'", str(list(values)), f"{count} positive integers")
        return values

    def text(self, name: str, default: str) -> str:
        """The string attribute `name`. Raises InputError when it is of another type."""
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        if attribute.type != onnx.AttributeProto.STRING:
            raise self.error(f"attribute '{name}' must be a string")
        return attribute.s.decode("utf-8", "replace")

    def input_shape(self, index: int, shapes: Shapes) -> Shape:
        """Shape of input `index`. Raises InputError when the input is missing or its shape is not known."""
        if index >= len(self.inputs) or not self.inputs[index]:
            raise self.error(f"{self.operator_type} needs input {index}, and it is missing")
        return self._shape(self.inputs[index], shapes)

    def output_shape(self, shapes: Shapes) -> Shape:
        """Shape of the first output. Raises InputError when there is none or its shape is not known."""
        if not self.outputs or not self.outputs[0]:
            raise self.error(f"{self.operator_type} has no output")
        return self._shape(self.outputs[0], shapes)

    def _shape(self, tensor: str, shapes: Shapes) -> Shape:
        if tensor not in shapes:
            raise self.error(f"the shape of tensor '{tensor}' is neither stored in the file nor can it be inferred")
        return shapes[tensor]

    def error(self, message: str, value: str = "", allowed: str = "") -> InputError:
        """An InputError about this operator; the reader adds the file name."""
        return InputError([Problem(message, path=self.name, value=value, allowed=allowed)])


@dataclass(frozen=True)
class OperandRoles:
    """Operands of one layer: which node inputs they are, which are constant, and the nodes that feed the others."""

    activation_input: int
    """Index of the node input that is operand I."""
    weight_input: int
    """Index of the node input that is operand W."""
    constant_operands: tuple[str, ...]
    sources: tuple[tuple[str, int], ...]
    """(operand, producing node), W before I as in zigzag-dse 3.9.1."""

    @property
    def weight_is_constant(self) -> bool:
        """Whether W is known before run time."""
        return "W" in self.constant_operands
