"""The tensors of a network as far as one pass over it knows them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx

from tilewright.errors import InputError, Problem
from tilewright.workload.onnx.evaluation import Values, tensor_values
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.resolution_checks import size_problem
from tilewright.workload.onnx.resolution_facts import TensorFacts, tensor_type
from tilewright.workload.onnx.resolution_quantisation import element_bits

_ELEMENT_TYPES = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}


@dataclass(frozen=True)
class AssumedTensor:
    """A tensor of which some sizes are missing, with ASSUMED_SIZE in their place."""

    shape: Shape
    element_type: int
    missing: dict[str, Problem]


@dataclass
class KnownTensors:
    """What is known of each tensor. Every tensor that exists is `defined`; some of these have no facts."""

    facts: dict[str, TensorFacts] = field(default_factory=dict)
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    """Of tensors with facts, and of sequences, optionals and maps."""
    constants: set[str] = field(default_factory=set)
    """Known before run time, with or without facts."""
    defined: set[str] = field(default_factory=lambda: {""})
    failed: set[str] = field(default_factory=set)
    """Not known because of a problem that is told already."""
    unknown: dict[str, tuple[Problem, ...]] = field(default_factory=dict)
    """Without a known shape -> what to say when somebody needs it."""
    undecided: set[str] = field(default_factory=set)
    """Those of the unknown ones whose shape is decided at run time: they cannot be network outputs."""
    assumed: dict[str, AssumedTensor] = field(default_factory=dict)
    """Those of the unknown ones whose rank is known: what to go on with once somebody needs them."""
    missing_sizes: dict[str, Problem] = field(default_factory=dict)
    """Sizes that somebody needed, by name, and nobody gives. What is found after the first one may follow from it."""
    missing_shapes: list[Problem] = field(default_factory=list)
    """The same for whole shapes."""

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
        """A tensor with all its facts. Raises InputError for impossible sizes and element types."""
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
        """A constant of the file, with its values if it is small. Raises InputError like `add`."""
        self.add(name, tuple(tensor.dims), tensor.data_type, is_constant=True, values=tensor_values(tensor))

    def add_unknown(
        self, name: str, problems: Iterable[Problem], value_type: onnx.TypeProto | None, *, is_constant: bool
    ) -> None:
        """A tensor without a known shape, which is a problem once somebody needs it, or a sequence, optional or map."""
        self.defined.add(name)
        self.unknown[name] = tuple(problems)
        if is_constant:
            self.constants.add(name)
        if value_type is not None and not value_type.HasField("tensor_type"):
            self.types[name] = value_type

    def require(self, name: str) -> bool:
        """Whether a tensor is known well enough to go on, with assumed sizes, which are then missing."""
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
        """Tensors of an operator with a problem: whatever depends on them is not looked at."""
        self.failed.update(name for name in names if name)
        self.defined.update(names)
