"""The weights of a layer, and how a layer is split whose weights are larger than a memory."""

import math
from typing import TYPE_CHECKING

from tilewright.errors import InputError, Problem
from tilewright.workload.layer import OUTPUT, Layer

if TYPE_CHECKING:
    from tilewright.workload.graph import Workload, WorkloadNode

_WEIGHTS = "W"
_SPLIT_FIRST = ("K", "G", "H")


def weight_operand(layer: Layer, network_inputs: frozenset[str] = frozenset()) -> str | None:
    """The operand of a layer that holds its weights: W, else the last constant one; None if there is none.

    A list of layers calls inputs of the network constant too: `network_inputs` are the operands that read them.
    """
    constants = [operand for operand in layer.constant_operands if operand not in network_inputs]
    if not constants:
        return None
    return _WEIGHTS if _WEIGHTS in constants else constants[-1]


def network_input_operands(node: "WorkloadNode", workload: "Workload") -> frozenset[str]:
    """The operands of a node's layer that read what comes from outside at run time."""
    inputs = workload.inputs
    return frozenset([index_map.operand for index_map in node.index_maps if index_map.input.tensor in inputs])


def weight_bits(layer: Layer, network_inputs: frozenset[str] = frozenset()) -> int:
    """Bits of the weights of a layer, 0 if it has none."""
    operand = weight_operand(layer, network_inputs)
    if operand is None:
        return 0
    dimensions = dict(layer.operand_dimensions)[operand]
    return math.prod([layer.size_of.get(dimension, 1) for dimension in dimensions]) * layer.bits_of[operand]


def split_dimension(layer: Layer, network_inputs: frozenset[str] = frozenset()) -> str | None:
    """The dimension that splits weights and outputs alike: K, else G, else H, else the largest; None if none does."""
    operand = weight_operand(layer, network_inputs)
    operands = dict(layer.operand_dimensions)
    weights = operands[operand] if operand is not None else ()
    shared = [name for name in weights if name in operands[OUTPUT] and layer.size_of.get(name, 1) > 1]
    preferred = [name for name in _SPLIT_FIRST if name in shared]
    return preferred[0] if preferred else max(shared, key=lambda name: layer.size_of[name], default=None)


def weight_tiles(
    layer: Layer, capacity_bits: int, network_inputs: frozenset[str] = frozenset()
) -> tuple[str, int] | None:
    """(dimension, number of tiles) such that the weights of a tile fit into a memory; None where all do.

    The dimension is that of `split_dimension`. The number is the smallest with which the largest tile fits. Raises
    InputError where not even a tile of 1 fits.
    """
    bits = weight_bits(layer, network_inputs)
    if bits <= capacity_bits:
        return None
    dimension = split_dimension(layer, network_inputs)
    if dimension is None:
        message = f"the weights ({bits} bits) exceed {capacity_bits} bits, and no dimension splits weights and outputs"
        raise InputError([Problem(message, path=layer.name)])
    size = layer.size_of[dimension]
    largest = capacity_bits // (bits // size)
    if largest < 1:
        message = f"the weights of one {dimension} ({bits // size} bits) exceed {capacity_bits} bits"
        raise InputError([Problem(message, path=layer.name)])
    return dimension, -(-size // largest)


def capacity_for_tiles(layer: Layer, count: int, network_inputs: frozenset[str] = frozenset()) -> int | None:
    """Bits of the largest of `count` tiles of weights, None if nothing splits them.

    With this capacity `weight_tiles` gives that number of tiles.
    """
    dimension = split_dimension(layer, network_inputs)
    if dimension is None:
        return None
    size = layer.size_of[dimension]
    return weight_bits(layer, network_inputs) // size * -(-size // min(count, size))
