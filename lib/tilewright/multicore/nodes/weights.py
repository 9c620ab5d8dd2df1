"""Weights of a layer in bits, the memories that hold them, and the split of layers whose weights are too large."""

import math
from collections.abc import Mapping
from fractions import Fraction

from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Memory
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.runnable import core_choice
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

_WEIGHTS = "W"
_SPLIT_FIRST = ("K", "G", "H")


def weight_operand(layer: Layer, network_inputs: frozenset[str] = frozenset()) -> str | None:
    """Operand that holds the weights of a layer. If the layer has a constant operand W, the result is W; otherwise, it
    is the last constant operand. None if there is no constant operand.

    Operands that read inputs of the network (`network_inputs`) do not count as weights. In a workload that is a list of
    layers, they are marked as constant, too.
    """
    constants = [operand for operand in layer.constant_operands if operand not in network_inputs]
    if not constants:
        return None
    return _WEIGHTS if _WEIGHTS in constants else constants[-1]


def network_input_operands(node: "WorkloadNode", workload: "Workload") -> frozenset[str]:
    """Operands of a node's layer that read inputs of the network at run time."""
    inputs = workload.inputs
    return frozenset([index_map.operand for index_map in node.index_maps if index_map.input.tensor in inputs])


def weight_bits(layer: Layer, network_inputs: frozenset[str] = frozenset()) -> int:
    """Bits of the weights of a layer; 0 if the layer has no weights."""
    operand = weight_operand(layer, network_inputs)
    if operand is None:
        return 0
    dimensions = dict(layer.operand_dimensions)[operand]
    return math.prod([layer.size_of.get(dimension, 1) for dimension in dimensions]) * layer.bits_of[operand]


def split_dimension(layer: Layer, network_inputs: frozenset[str] = frozenset()) -> str | None:
    """Dimension along which a layer is cut to divide both weights and outputs: K, else G, else H, else the largest
    dimension that divides both. None if no dimension divides both.
    """
    operand = weight_operand(layer, network_inputs)
    operands = dict(layer.operand_dimensions)
    weights = operands[operand] if operand is not None else ()
    shared = [name for name in weights if name in operands[OUTPUT] and layer.size_of.get(name, 1) > 1]
    preferred = [name for name in _SPLIT_FIRST if name in shared]
    return preferred[0] if preferred else max(shared, key=lambda name: layer.size_of[name], default=None)


def weight_tiles(
    layer: Layer, capacity_bits: int, network_inputs: frozenset[str] = frozenset()
) -> tuple[str, int] | None:
    """Pair (dimension, number of tiles) that makes the weights of each tile fit a memory; None if the weights fit
    without a split.

    The dimension is the result of `split_dimension`. The number of tiles is the smallest possible. Raises InputError if
    there is no such dimension, or if not even a tile of size 1 fits.
    """
    bits = weight_bits(layer, network_inputs)
    if bits <= capacity_bits:
        return None
    dimension = split_dimension(layer, network_inputs)
    if dimension is None:
        message = (
            f"the weights ({bits} bits) exceed the capacity of {capacity_bits} bits,"
            " and no dimension splits both weights and outputs"
        )
        raise InputError([Problem(message, path=layer.name)])
    size = layer.size_of[dimension]
    largest = capacity_bits // (bits // size)
    if largest < 1:
        message = (
            f"the weights for one index of {dimension} ({bits // size} bits) exceed the capacity of"
            f" {capacity_bits} bits"
        )
        raise InputError([Problem(message, path=layer.name)])
    return dimension, -(-size // largest)


def capacity_for_tiles(layer: Layer, count: int, network_inputs: frozenset[str] = frozenset()) -> int | None:
    """Size in bits of the largest tile if the weights are cut into `count` tiles; None if no dimension splits the
    weights. With this size as capacity, `weight_tiles` needs at most `count` tiles.
    """
    dimension = split_dimension(layer, network_inputs)
    if dimension is None:
        return None
    size = layer.size_of[dimension]
    return weight_bits(layer, network_inputs) // size * -(-size // min(count, size))


_WEIGHT_OPERAND = "I2"
"""Memory operand of weights, used if the mapping file names no memory operand."""


def weight_capacity_bits(
    node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator, share: float = 1.0
) -> int | None:
    """Bits that weights can take on each core that is allowed for a layer: `share` times the size of a memory, rounded
    down. The memory is the smallest top memory for weights among these cores. None if no allowed core has a memory for
    weights.
    """
    found = smallest_weight_memory(node, entry, accelerator)
    return None if found is None else int(Fraction(repr(share)) * found[1].size_bits)


def smallest_weight_memory(
    node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator
) -> tuple[int, Memory] | None:
    """Pair (core id, memory) of the smallest top memory for weights among the allowed cores of a layer; None if no
    allowed core has a memory for weights.
    """
    assert node.layer is not None
    memory_operand = weight_memory_operand(node.layer, entry)
    choice = core_choice(node, entry, accelerator)
    found = [
        (core_id, instance.memory)
        for instance in accelerator.memory_instances
        for core_id, operands in instance.users
        if core_id in choice.core_ids and memory_operand in operands
    ]
    return min(found, key=lambda pair: (pair[1].size_bits, pair[0]), default=None)


def total_weight_capacity_bits(
    workload: Workload, entry_of: Mapping[int, MappingConstraints], accelerator: MultiCoreAccelerator
) -> int:
    """Total capacity in bits of the top memories in which on-chip cores keep weights. A memory that several cores share
    counts once. `entry_of` has the mapping entry of each layer, by node id.
    """
    used = {
        _memory_operand(operand, entry_of[node.node_id])
        for node in workload.nodes
        if node.layer is not None and (operand := weight_operand(node.layer)) is not None
    }
    return sum(
        instance.memory.size_bits
        for instance in accelerator.memory_instances
        if any(core_id != accelerator.offchip_core_id and used & set(operands) for core_id, operands in instance.users)
    )


def weight_memory_operand(layer: Layer, entry: MappingConstraints) -> str:
    """Memory operand of a layer's weights."""
    return _memory_operand(weight_operand(layer) or "", entry)


def _memory_operand(operand: str, entry: MappingConstraints) -> str:
    return dict(entry.memory_operand_links).get(operand, _WEIGHT_OPERAND)
