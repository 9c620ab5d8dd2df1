"""Bits of operands that a person gives for an ONNX network: weights, activations and partial sums.

A name in front of an operand selects operators: `Conv.weights` of one operator type, `conv1.weights` of one operator.
The name of an operator counts before its type, and its type before the operands of all operators.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.base.errors import Problem, nearest_name, some_of
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT
from tilewright.workload.network_options import ACTIVATIONS, PARTIAL, WEIGHTS
from tilewright.workload.onnx.element_types import REAL_TYPES
from tilewright.workload.onnx.node import GivenBits, OnnxNode
from tilewright.workload.onnx.tensor_facts import TensorFacts

_ALL = ""
_OPTION = "bits"
_QUANTISERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})


@dataclass(frozen=True)
class BitsOfNetwork:
    """Bits that were given, as (selector and operand, bits): `weights`, `Conv.activations`."""

    pairs: tuple[tuple[str, int], ...]

    def of(self, node: OnnxNode) -> GivenBits:
        """Bits of the operands of an operator."""
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
        """Operators with their bits; those that nothing is given for are unchanged."""
        if not self.pairs:
            return tuple(nodes)
        return tuple(replace(node, given=self.of(node)) for node in nodes)

    def tensors(self, nodes: Sequence[OnnxNode], tensors: Mapping[str, TensorFacts]) -> dict[str, TensorFacts]:
        """Floating-point tensors with the bits that the operators give which make or read them.

        Constants have the bits of weights, all others those of activations. If operators give a tensor different bits,
        the largest count.
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
        """Problems: selectors of no operator, and networks whose file says the bits by quantisation."""
        known = dict.fromkeys(name for node in nodes for name in (node.operator_type, node.name))
        for key, bits in self.pairs:
            selector = key.rpartition(".")[0]
            if selector and selector not in known:
                message = "no operator of the network has this type or name"
                yield Problem(message, path=_OPTION, value=f"{key}={bits}", nearest=nearest_name(selector, list(known)))
        quantised = [name for name, facts in tensors.items() if facts.given_bits and facts.quantised_bits is not None]
        quantised += [node.name for node in nodes if node.operator_type in _QUANTISERS and node.given != GivenBits()]
        if quantised:
            message = f"the file says bits by quantisation ({some_of(quantised)})"
            allowed = f"networks, or operators of a network, without {' and '.join(sorted(_QUANTISERS))}"
            given = ", ".join(f"{key}={bits}" for key, bits in self.pairs)
            yield Problem(message, path=_OPTION, value=given, allowed=allowed)

    def unused(self, workload: Workload) -> Iterator[Problem]:
        """Problems: operands that no layer of the selected operators has."""
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
                PARTIAL: any(layer.bits_of[OUTPUT] == bits for layer in layers),
            }
            if not has[operand]:
                words = {WEIGHTS: "constant operands", ACTIVATIONS: "layers", PARTIAL: "partial sums"}[operand]
                whose = f"operators '{selector}' have" if selector else "the network has"
                yield Problem(f"{whose} no {words}", path=_OPTION, value=f"{key}={bits}")
