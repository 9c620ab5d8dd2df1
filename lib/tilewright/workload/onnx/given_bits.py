"""Bits of operands that a person gives for an ONNX network: weights, activations and partial sums.

A name in front of an operand selects operators: `Conv.weights` selects one operator type, and `conv1.weights` selects
one operator. Bits for an operator take precedence over bits for its type. Bits for a type take precedence over bits for
all operators.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.base.errors import OptionPath, Problem, nearest_name, some_of
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.network_options import ACTIVATIONS, PARTIAL, WEIGHTS
from tilewright.workload.onnx.element_types import REAL_TYPES
from tilewright.workload.onnx.node import SELECTING, GivenBits, OnnxNode
from tilewright.workload.onnx.tensor_facts import TensorFacts

_ALL = ""
_OPTION = OptionPath("bits")
_QUANTISERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})


def _sums(layer: Layer) -> bool:
    """True if the layer has partial sums, because several results are summed in one output element."""
    dimensions = dict(layer.operand_dimensions)[OUTPUT]
    windows = {loop for one in layer.relations if one.data_dimension in dimensions for loop, _ in one.terms}
    written = windows.union(dimensions)
    is_selecting = layer.operator_type in SELECTING
    return not is_selecting and any(size > 1 and loop not in written for loop, size in layer.loop_sizes)


@dataclass(frozen=True)
class BitsOfNetwork:
    """Bits that the user gives, as pairs (key, bits). A key is an operand, such as `weights`, or a selector and an
    operand, such as `Conv.activations`."""

    pairs: tuple[tuple[str, int], ...]

    def of(self, node: OnnxNode) -> GivenBits:
        """Bits that the user gives for the operands of an operator."""
        found: dict[str, int] = {}
        for selector in (_ALL, node.operator_type, node.name):
            found |= self._table.get(selector, {})
        return GivenBits(found.get(WEIGHTS), found.get(ACTIVATIONS), found.get(PARTIAL))

    @property
    def _table(self) -> Mapping[str, Mapping[str, int]]:
        table: dict[str, dict[str, int]] = {}
        for key, bits in self.pairs:
            selector, _, operand = key.rpartition(".")
            table.setdefault(selector, {})[operand] = bits
        return table

    def nodes(self, nodes: Sequence[OnnxNode]) -> tuple[OnnxNode, ...]:
        """Copies of all operators. In each copy, the field `given` has the bits that the user gives for the operands of
        the operator.
        """
        if not self.pairs:
            return tuple(nodes)
        return tuple(replace(node, given=self.of(node)) for node in nodes)

    def tensors(self, nodes: Sequence[OnnxNode], tensors: Mapping[str, TensorFacts]) -> dict[str, TensorFacts]:
        """Copy of `tensors` (name -> facts) in which the field `given_bits` has the bits that the user gives. Only
        floating-point tensors get given bits.

        The operators that read or write a tensor determine its bits. A constant gets the bits that are given for the
        weights of these operators. Any other tensor gets the bits that are given for the activations of these
        operators. If these operators have different bits, the largest number is used.
        """
        bits: dict[str, int] = {}
        for node in nodes:
            for name in dict.fromkeys((*node.inputs, *node.outputs)):
                facts = tensors.get(name)
                if facts is None or facts.element_type not in REAL_TYPES:
                    continue
                given = node.given.weights if facts.is_constant else node.given.activations
                if given is not None:
                    bits[name] = max(bits.get(name, 0), given)
        return {**tensors, **{name: replace(tensors[name], given_bits=number) for name, number in bits.items()}}

    def faults(self, nodes: Sequence[OnnxNode], tensors: Mapping[str, TensorFacts]) -> Iterator[Problem]:
        """Problems of the bits that the user gives: a selector selects no operator, or quantisation in the file already
        determines the bits.
        """
        known = dict.fromkeys(name for node in nodes for name in (node.operator_type, node.name))
        for key, bits in self.pairs:
            selector = key.rpartition(".")[0]
            if selector and selector not in known:
                message = "no operator of the network has this type or name"
                yield Problem(message, path=_OPTION, value=f"{key}={bits}", nearest=nearest_name(selector, list(known)))
        quantised = [name for name, facts in tensors.items() if facts.given_bits and facts.quantised_bits is not None]
        quantised += [node.name for node in nodes if node.operator_type in _QUANTISERS and node.given != GivenBits()]
        if quantised:
            message = f"the network file already gives the bits, because it is quantised ({some_of(quantised)})"
            allowed = f"networks, or operators of a network, without {', '.join(sorted(_QUANTISERS))}"
            given = ", ".join(f"{key}={bits}" for key, bits in self.pairs)
            yield Problem(message, path=_OPTION, value=given, allowed=allowed)

    def unused(self, workload: Workload) -> Iterator[Problem]:
        """Problems of the pairs (key, bits) that have no effect, one problem for each such pair.

        Bits of weights have no effect if no selected operator has a layer with a constant operand. Bits of activations
        have no effect if no selected operator has a layer. Bits of partial sums have no effect if no layer of a
        selected operator has partial sums with this number of bits.
        """
        for key, bits in self.pairs:
            selector, _, operand = key.rpartition(".")
            layers = [
                node.layer
                for node in workload.nodes
                if node.layer is not None and selector in (_ALL, node.origin_type, node.origin, node.name)
            ]
            has = {
                WEIGHTS: any(layer.constant_operands for layer in layers),
                ACTIVATIONS: bool(layers),
                PARTIAL: any(layer.bits_of[OUTPUT] == bits and _sums(layer) for layer in layers),
            }
            if not has[operand]:
                words = {
                    WEIGHTS: "constant operands",
                    ACTIVATIONS: "layers",
                    PARTIAL: "partial sums, or other entries set the bits of all of them",
                }[operand]
                whose = f"operators '{selector}' have" if selector else "the network has"
                yield Problem(f"{whose} no {words}", path=_OPTION, value=f"{key}={bits}")
