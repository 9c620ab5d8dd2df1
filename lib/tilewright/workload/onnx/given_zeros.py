"""Shares of zeros in weights, activations and outputs, which a person gives for an ONNX network.

A name in front of an operand selects operators, as for bits (`given_bits`): `Conv.weights` selects one operator type,
and `conv1.weights` selects one operator. The narrower selection takes precedence.
"""

from collections.abc import Mapping
from dataclasses import replace

from tilewright.base.errors import InputError, OptionPath, Problem, nearest_name
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, Layer, activation_operand
from tilewright.workload.network_options import ACTIVATIONS, OUTPUTS, WEIGHTS

_ALL = ""
_OPTION = OptionPath("zeros")


def with_zeros(workload: Workload, pairs: tuple[tuple[str, float], ...]) -> Workload:
    """Workload whose layers have the given shares of zeros. `pairs` has pairs (key, share), and a key is an operand,
    such as `weights`, or a selector and an operand, such as `Conv.activations`. Raises InputError for each selector
    that selects no operator, and for each pair without effect.
    """
    if not pairs:
        return workload
    problems = [problem for key, share in pairs if (problem := _fault(workload, key, share))]
    if problems:
        raise InputError(problems)
    table: dict[str, dict[str, float]] = {}
    for key, share in pairs:
        selector, _, operand = key.rpartition(".")
        table.setdefault(selector, {})[operand] = float(share)
    return replace(workload, nodes=tuple(_node(node, table) for node in workload.nodes))


def _selectors(node: WorkloadNode) -> tuple[str, ...]:
    """Selectors that select a node, from the widest to the narrowest."""
    return (_ALL, node.origin_type, node.origin, node.name)


def _node(node: WorkloadNode, table: Mapping[str, Mapping[str, float]]) -> WorkloadNode:
    if node.layer is None:
        return node
    shares: dict[str, float] = {}
    for selector in _selectors(node):
        shares |= table.get(selector, {})
    return replace(node, layer=replace(node.layer, zeros=_zeros(node.layer, shares)))


def _zeros(layer: Layer, shares: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Pairs (operand, share of zeros) of a layer, from shares by kind of data."""
    activation = activation_operand(layer)  # the input of a network counts as a constant operand
    constants = [name for name in layer.constant_operands if name != activation]
    kinds = {name: WEIGHTS if name in constants else ACTIVATIONS for name in layer.input_operands}
    kinds[FINAL_OUTPUT] = OUTPUTS
    return tuple((name, shares[kind]) for name, kind in kinds.items() if kind in shares)


def _fault(workload: Workload, key: str, share: float) -> Problem | None:
    """Problem of one pair (key, share): the selector of the key selects nothing, or no layer has the data that the key
    names. None if there is no problem."""
    selector, _, operand = key.rpartition(".")
    value = f"{key}={share:g}"
    known = dict.fromkeys(name for node in workload.nodes for name in _selectors(node) if name)
    if selector and selector not in known:
        message = "no operator of the network has this type or name"
        return Problem(message, path=_OPTION, value=value, nearest=nearest_name(selector, list(known)))
    layers = [node.layer for node in workload.nodes if node.layer is not None and selector in _selectors(node)]
    if operand == WEIGHTS and not any(set(layer.constant_operands) - {activation_operand(layer)} for layer in layers):
        return Problem("has no effect: the layers have no constant operands", path=_OPTION, value=value)
    if not layers:
        return Problem("has no effect: the operators have no layers", path=_OPTION, value=value)
    return None
