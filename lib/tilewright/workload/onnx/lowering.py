"""Lowering: conversion of one ONNX operator to loop nests with costs, to moves of data, or to a remark.

Every operator family has a module in `operators/` with functions `lower_...(op: Lowering)`, which are registered by
ONNX operator type. Such a function reads shapes, attributes and constants from `op`, and adds loop nests and moves of
data to `op`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.base.profile import ModelProfile
from tilewright.base.registry import Registry
from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, access_of_loops, loop
from tilewright.workload.graph import APPROXIMATED, MODELLED, PASS_THROUGH, UNSUPPORTED, Tensor
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.network_options import ASSUMED
from tilewright.workload.onnx.node import (
    SELECTING,
    STANDARD_DOMAINS,
    OnnxNode,
    Shape,
    overridden_bits,
    partial_sum_bits,
    tensor_precision,
)
from tilewright.workload.onnx.resolution.custom import STATED, OperatorFacts, ShapeRule
from tilewright.workload.onnx.tensor_facts import TensorFacts

if TYPE_CHECKING:
    import onnx

    from tilewright.workload.onnx.resolution.network import ResolvedGraph
from tilewright.workload.nests import NestOperand, accumulates, dimension_names, nest_layer

_EXCHANGED = {"I": "W", "W": "I"}


@dataclass(frozen=True)
class LoweredNode:
    """Node of the future workload: a layer with costs, or a move of data, whose layer is None."""

    name: str
    operator_type: str
    layer: Layer | None
    unit: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    index_maps: tuple[IndexMap, ...]


@dataclass
class Lowering:
    """State of the lowering of one operator: its inputs and attributes, and the nodes that have been made so far."""

    node: OnnxNode
    graph: "ResolvedGraph"
    profile: ModelProfile
    policy: str = ASSUMED
    """Precision policy, ASSUMED or FILE; see `tensor_precision`."""
    lowered: list[LoweredNode] = field(default_factory=list)
    temporaries: dict[str, Tensor] = field(default_factory=dict)
    """Tensors between the parts of the operator, if it is decomposed."""
    status: str = ""
    remarks: list[str] = field(default_factory=list)

    # --- properties of the operator -------------------------------------------------------------------------------

    @property
    def opset(self) -> int:
        """Version of the operator set of the node's domain."""
        opsets = self.node.opsets or self.graph.opsets
        return opsets.get("" if self.node.proto.domain in STANDARD_DOMAINS else self.node.proto.domain, 1)

    def has_input(self, index: int) -> bool:
        """True if input `index` is given. An input that is not given is absent from the list of inputs, or has an empty
        name."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def input(self, index: int = 0) -> str:
        """Name of the tensor at input `index`. Raises InputError if the input is missing."""
        if not self.has_input(index):
            raise self.node.error(f"{self.node.operator_type} needs input {index}, which is missing")
        return self.node.inputs[index]

    def output(self, index: int = 0) -> str:
        """Name of the tensor at output `index`. Raises InputError if the output is missing."""
        if not self.has_output(index):
            raise self.node.error(f"{self.node.operator_type} has no output {index}")
        return self.node.outputs[index]

    def has_output(self, index: int) -> bool:
        """True if the node has output `index`. Optional outputs can be missing."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def facts(self, tensor: str) -> TensorFacts:
        """Facts about a tensor of the file. Raises InputError if the shape of the tensor is not known."""
        if tensor not in self.graph.tensors:
            raise self.node.error(f"the shape of tensor '{tensor}' is not in the file, and it cannot be inferred")
        return self.graph.tensors[tensor]

    def shape(self, tensor: str) -> Shape:
        """Shape of a tensor of the file or of a temporary tensor. Raises InputError if the shape is not known."""
        return self.temporaries[tensor].shape if tensor in self.temporaries else self.facts(tensor).shape

    def input_shape(self, index: int = 0) -> Shape:
        """Shape of input `index`. Raises InputError if the input is missing or if the shape is not known."""
        return self.shape(self.input(index))

    def output_shape(self, index: int = 0) -> Shape:
        """Shape of output `index`. Raises InputError if the output is missing or if the shape is not known."""
        return self.shape(self.output(index))

    def is_constant(self, tensor: str) -> bool:
        """True if the tensor is known before run time."""
        return tensor not in self.temporaries and self.facts(tensor).is_constant

    def values(self, index: int) -> np.ndarray | None:
        """Values of input `index`. None if the input is missing, is not constant, or has no values in the file."""
        return self.facts(self.input(index)).values if self.has_input(index) else None

    # --- nodes of the operator ------------------------------------------------------------------------------------

    def temporary(self, part: str, shape: Shape, like: str) -> str:
        """Add a tensor between two parts of the operator, with the precision of the tensor `like`; return the name of
        the new tensor."""
        model = self.tensor(like)
        name = f"{self.node.name}/{part}"
        while name in self.temporaries or name in self.graph.tensors:
            name += "_"
        self.temporaries[name] = Tensor(name, shape, model.bits, model.element_type, model.precision_source)
        return name

    def tensor(self, name: str) -> Tensor:
        """Tensor of the file, or temporary tensor, with its precision."""
        if name in self.temporaries:
            return self.temporaries[name]
        return file_tensor(self.facts(name), self.policy)

    def nest(
        self,
        loops: Sequence[tuple[str, int]],
        output: TensorAccess,
        inputs: Mapping[str, TensorAccess],
        *,
        others: Sequence[TensorAccess] = (),
        unit: str = VECTOR_UNIT,
        part: str = "",
        operator_type: str = "",
        layer: Layer | None = None,
        costed: Mapping[str, TensorAccess] | None = None,
        further: Sequence[IndexMap] = (),
        is_exact: bool = True,
    ) -> None:
        """Add a loop nest: one layer that reads `inputs` and writes `output`.

        * `inputs` are the accesses of operand I, or of I and W. If the first input is constant and the second is
          computed, the two names are exchanged, so that I is always the computed tensor.
        * `others` are accesses to further tensors, such as a bias. Reading these tensors costs nothing.
        * `costed` are accesses by operand (O, I, W) for the layer only. These accesses replace true accesses that a
          layer cannot describe.
        * `layer` replaces the whole layer. By default, the layer is derived from the accesses.
        * `further` are index maps of further inputs that the loops of the layer cannot index.
        * `part` and `operator_type` are the name and the type of the part that the nest computes, if the operator is
          decomposed into parts.
        * `is_exact` is false if the accesses describe a superset of the dependences.

        The number of operations of the nest (multiply-accumulates on the MAC array) is the product of its loop sizes.
        """
        if layer is None and self._are_exchanged(inputs):
            inputs = {"W": inputs["I"], "I": inputs["W"]}
            costed = {_EXCHANGED.get(key, key): access for key, access in (costed or {}).items()}
        name = f"{self.node.name}/{part}" if part else self.node.name
        loop_sizes = tuple(loops)
        if any(size < 1 for _, size in loop_sizes):
            raise self.node.error("a tensor of this operator has an empty or negative dimension")
        if layer is None:
            replaced = costed or {}
            accesses = {OUTPUT: output, **inputs}
            operands = {key: self._operand(key, replaced.get(key, access)) for key, access in accesses.items()}
            widest = max(operand.bits for key, operand in operands.items() if key != OUTPUT)
            kind = operator_type or self.node.proto.op_type
            grows = accumulates(loop_sizes, output) and kind not in SELECTING
            sums = partial_sum_bits(self.node, widest, operands[OUTPUT].bits, grows, self.policy)
            layer = nest_layer(name, kind, loop_sizes, operands, sums)
        maps = [IndexMap(loop_sizes, output, access, operand, is_exact) for operand, access in inputs.items()]
        maps += [IndexMap(loop_sizes, output, access, "", is_exact) for access in others]
        maps += further
        self._add(name, operator_type or self.node.operator_type, layer, unit, [output.tensor], maps)
        self._raise_status(MODELLED)

    def move(self, *maps: IndexMap, part: str = "", operator_type: str = "") -> None:
        """Add a move of data at no cost. `maps` give the dependences of the outputs on the inputs."""
        name = f"{self.node.name}/{part}" if part else self.node.name
        outputs = dict.fromkeys(index_map.output.tensor for index_map in maps)
        if not part:  # outputs without dependences are outputs of the move too
            outputs |= dict.fromkeys(name for name in self.node.outputs if name in self.graph.tensors)
        self._add(name, operator_type or self.node.operator_type, None, "", list(outputs), list(maps))
        self._raise_status(PASS_THROUGH)

    def approximated(self, reason: str) -> None:
        """Add `reason` to the remarks, and set the status of the operator to APPROXIMATED: its costs or dependences are
        estimates. The status UNSUPPORTED is kept."""
        self._raise_status(APPROXIMATED)
        self.remarks.append(reason)

    def unsupported(self, reason: str) -> None:
        """Set the status of the operator to UNSUPPORTED, and add `reason` to the remarks. All nodes that the operator
        has so far are replaced by one move, in which every output element depends on every input element."""
        self.lowered.clear()
        self.temporaries.clear()
        known = [name for name in self.node.outputs if name in self.graph.tensors]
        sources = [name for name in dict.fromkeys(self.node.inputs) if name in self.graph.tensors]
        maps = [
            whole_map(output, self.shape(output), source, self.shape(source)) for output in known for source in sources
        ]
        self._add(self.node.name, self.node.operator_type, None, "", known, maps)
        self.status = UNSUPPORTED
        self.remarks.append(reason)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _are_exchanged(self, inputs: Mapping[str, TensorAccess]) -> bool:
        """True if I is constant and W is computed, so that the two names are exchanged."""
        if set(inputs) != {"I", "W"}:
            return False
        return self.is_constant(inputs["I"].tensor) and not self.is_constant(inputs["W"].tensor)

    def _operand(self, operand: str, access: TensorAccess) -> NestOperand:
        tensor = self.tensor(access.tensor)
        stated = overridden_bits(self.node, is_weight=tensor.is_constant and operand != OUTPUT)
        is_constant = tensor.is_constant and operand != OUTPUT
        return NestOperand(access, tensor.shape, tensor.bits if stated is None else stated, is_constant)

    def _add(
        self, name: str, operator_type: str, layer: Layer | None, unit: str, outputs: list[str], maps: list[IndexMap]
    ) -> None:
        for access_of in (one for index_map in maps for one in (index_map.output, index_map.input)):
            if len(access_of.axes) != len(self.shape(access_of.tensor)):
                rank = len(self.shape(access_of.tensor))
                raise self.node.error(f"wrong rank of tensor '{access_of.tensor}'", str(rank), str(len(access_of.axes)))
        read = tuple(dict.fromkeys(index_map.input.tensor for index_map in maps))
        self.lowered.append(LoweredNode(name, operator_type, layer, unit, read, tuple(outputs), tuple(maps)))

    def _raise_status(self, status: str) -> None:
        order = ("", PASS_THROUGH, MODELLED, APPROXIMATED, UNSUPPORTED)
        self.status = max(self.status, status, key=order.index)


def file_tensor(facts: TensorFacts, policy: str) -> Tensor:
    """Tensor for the workload, from the facts about a tensor of the ONNX file. The precision policy `policy` decides
    the number of bits per element."""
    import onnx

    precision = tensor_precision(facts, policy)
    element_type = onnx.TensorProto.DataType.Name(facts.element_type)
    return Tensor(facts.name, facts.shape, precision.bits, element_type, precision.source, facts.is_constant)


def whole_map(
    output: str, output_shape: Shape, source: str, source_shape: Shape, *, is_exact: bool = False
) -> IndexMap:
    """Map in which every output element depends on every input element. `is_exact` is true if the operator has all
    these dependences. Otherwise, the map is a superset of the true dependences."""
    written = tuple((f"D{axis}", size) for axis, size in enumerate(output_shape))
    read = tuple((f"S{axis}", size) for axis, size in enumerate(source_shape))
    return IndexMap(
        (*written, *read),
        access_of_loops(output, (name for name, _ in written)),
        access_of_loops(source, (name for name, _ in read)),
        is_exact=is_exact,
    )


def access(tensor: str, *axes: AxisIndex | str) -> TensorAccess:
    """Access to a tensor. An axis that is given as text is indexed by the loop of this name."""
    return TensorAccess(tensor, tuple(loop(axis) if isinstance(axis, str) else axis for axis in axes))


_LOOPS = ("Loop", "Scan")
"""Loop operators. A loop operator that is still in the graph was not unrolled, because its number of iterations is not
known."""
LowerFunction = Callable[[Lowering], None]
_LOWER_FUNCTIONS: dict[tuple[str, str], LowerFunction] = {}


OPERATORS: Registry[LowerFunction] = Registry(__name__)
"""Registry of the lowering functions of plug-ins. A look-up imports the module of the plug-in; the decorator `lowers`
then registers the function for its operator types."""


def lowers(
    *operator_types: str, domain: str = "", shapes: ShapeRule | None = None, attributes: str | None = None
) -> Callable[[LowerFunction], LowerFunction]:
    """Decorator that registers a function for operator types of a domain. '' is the standard domain.

    `shapes` is a rule for output shapes that onnx does not infer, such as `like_first_input`. `attributes` has the
    names of the attributes, separated by spaces, for operators that onnx does not define. Raises ValueError if an
    operator already has a function, or if `shapes` is given although onnx infers the shapes.
    """
    known = None if attributes is None else frozenset(attributes.split())

    def register(function: LowerFunction) -> LowerFunction:
        for operator_type in operator_types:
            if other := _LOWER_FUNCTIONS.get((domain, operator_type)):
                modules = f"{other.__module__} and by {function.__module__}"
                raise ValueError(f"{operator_type} is registered by {modules}")
            if shapes is not None and _is_inferred_by_onnx(operator_type, domain):
                raise ValueError(f"onnx infers the shapes of {operator_type}: `shapes` would have no effect")
            _LOWER_FUNCTIONS[domain, operator_type] = function
            if shapes is not None or known is not None:
                STATED[domain, operator_type] = OperatorFacts(shapes, known)
        return function

    return register


def _is_inferred_by_onnx(operator_type: str, domain: str) -> bool:
    from onnx import defs

    if not defs.has(operator_type, domain):
        return False
    return bool(defs.get_schema(operator_type, domain).has_type_and_shape_inference_function)


def registered_operators() -> Mapping[tuple[str, str], LowerFunction]:
    """Registered functions by (domain, operator type), in the order of registration."""
    return dict(_LOWER_FUNCTIONS)


def is_registered(node: "onnx.NodeProto") -> bool:
    """True if a function is registered for an operator."""
    return ("" if node.domain in STANDARD_DOMAINS else node.domain, node.op_type) in _LOWER_FUNCTIONS


def lower(op: Lowering) -> None:
    """Lower one operator. An operator without a registered function is unsupported. Raises InputError if the operator
    is not well formed or is too large."""
    proto = op.node.proto
    domain = "" if proto.domain in ("", "ai.onnx") else proto.domain
    function = _LOWER_FUNCTIONS.get((domain, proto.op_type))
    if function is None:
        is_loop = not domain and proto.op_type in _LOOPS
        how_often = f"the number of iterations of {proto.op_type} is decided at run time: " if is_loop else ""
        op.unsupported(f"{how_often}{op.node.operator_type} is not modelled")
        return
    if _is_empty(op):
        op.remarks.append(_why_empty(op))
        op.move()
        return
    try:
        function(op)
    except InputError:
        raise
    except (IndexError, KeyError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise op.node.error(f"{op.node.operator_type} is not well formed", str(error)) from None
    except MemoryError:
        raise op.node.error(f"{op.node.operator_type} is too large: its dependencies need too much memory") from None
    if not op.lowered:
        op.unsupported(f"{op.node.operator_type} is not modelled in this form")


def _is_empty(op: Lowering) -> bool:
    """True if the operator has nothing to compute. This is the case if all its outputs are empty tensors, or if it
    needs elements of a computed input that is empty. An empty constant does not count, because it stands for an input
    that is not given.
    """
    known = op.graph.tensors
    made = [known[name] for name in op.node.outputs if name in known]
    read = [known[name] for name in op.node.inputs if name in known and not known[name].is_constant]
    optional = _may_be_empty(op)
    return (bool(made) and all(0 in facts.shape for facts in made)) or any(
        0 in facts.shape and facts.name not in optional for facts in read
    )


def _why_empty(op: Lowering) -> str:
    known, proto = op.graph.tensors, op.node.proto
    first = known.get(op.node.inputs[0]) if op.node.inputs else None
    if "Conv" in proto.op_type and first is not None and 0 not in first.shape:
        return "the kernel is larger than the padded input: there is no output, no layer, and no work"
    return "a tensor has no elements: there is no layer, no work, and no dependence"


_MAY_BE_EMPTY: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("", "Attention"): (4, 5),
    ("", "ScatterElements"): (1, 2),
    ("", "ScatterND"): (1, 2),
    ("", "Scatter"): (1, 2),
    ("com.microsoft", "Attention"): (4,),
    ("com.microsoft", "GroupQueryAttention"): (3, 4),
    ("com.microsoft", "MultiHeadAttention"): (6, 7),
}
"""Inputs that can be empty although the operator does work: (domain, operator type) -> indices of the inputs. Such
inputs are caches before the first token, and the indices and updates of a scatter."""
_EVERY_INPUT_MAY_BE_EMPTY = frozenset({"Concat", "Loop", "QLinearConcat", "Scan"})


def _may_be_empty(op: Lowering) -> tuple[str, ...]:
    """Names of the inputs that can be empty although the operator does work."""
    if op.node.proto.op_type in _EVERY_INPUT_MAY_BE_EMPTY:
        return op.node.inputs
    domain = "" if op.node.proto.domain == "ai.onnx" else op.node.proto.domain
    places = _MAY_BE_EMPTY.get((domain, op.node.proto.op_type), ())
    return tuple(op.node.inputs[place] for place in places if op.has_input(place))


def operation_count(nodes: Sequence[LoweredNode], unit: str) -> int:
    """Number of operations (multiply-accumulates on the MAC array) of all layers that need `unit`."""
    layers = [node.layer for node in nodes if node.layer is not None and node.unit == unit]
    return sum(layer.mac_count for layer in layers)


def moved_bits(op: Lowering) -> int:
    """Total number of bits of the tensors that the operator reads and writes. A tensor that the operator uses several
    times counts once."""
    names = dict.fromkeys(name for name in (*op.node.inputs, *op.node.outputs) if name in op.graph.tensors)
    return sum(math.prod(op.shape(name)) * op.tensor(name).bits for name in names)


__all__ = [
    "MAC_ARRAY",
    "VECTOR_UNIT",
    "LoweredNode",
    "Lowering",
    "access",
    "dimension_names",
    "file_tensor",
    "is_registered",
    "lower",
    "lowers",
    "moved_bits",
    "operation_count",
    "registered_operators",
    "whole_map",
]
