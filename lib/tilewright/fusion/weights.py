"""Splitting a layer whose weights are larger than a memory."""

import math

from tilewright.errors import InputError, Problem
from tilewright.workload.layer import OUTPUT, Layer

_SPLIT_FIRST = ("K", "G", "H")


def weight_bits(layer: Layer) -> int:
    """Bits of the last constant operand of a layer, 0 if it has none."""
    if not layer.constant_operands:
        return 0
    operand = layer.constant_operands[-1]
    dimensions = dict(layer.operand_dimensions)[operand]
    return math.prod(layer.size_of.get(dimension, 1) for dimension in dimensions) * layer.bits_of[operand]


def weight_tiles(layer: Layer, capacity_bits: int) -> tuple[str, int] | None:
    """(dimension, number of tiles) such that the weights of a tile fit into a memory; None where all do.

    The dimension is one that weights and outputs have: K, else G, else H, else the largest. The number is the
    smallest with which the largest tile fits. Raises InputError where not even a tile of 1 fits.
    """
    bits = weight_bits(layer)
    if bits <= capacity_bits:
        return None
    operands = dict(layer.operand_dimensions)
    shared = [d for d in operands[layer.constant_operands[-1]] if d in operands[OUTPUT] and layer.size_of.get(d, 1) > 1]
    if not shared:
        message = f"the weights ({bits} bits) exceed {capacity_bits} bits, and no dimension splits weights and outputs"
        raise InputError([Problem(message, path=layer.name)])
    preferred = [dimension for dimension in _SPLIT_FIRST if dimension in shared]
    dimension = preferred[0] if preferred else max(shared, key=lambda name: layer.size_of[name])
    size = layer.size_of[dimension]
    largest = capacity_bits // (bits // size)
    if largest < 1:
        message = f"the weights of one {dimension} ({bits // size} bits) exceed {capacity_bits} bits"
        raise InputError([Problem(message, path=layer.name)])
    return dimension, -(-size // largest)
