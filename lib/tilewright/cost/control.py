"""Rules of the control of a core (docs/model/control.md) in the form that the kernels read (`control_kernel`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.hardware.core import MOST_ORDERS, Core
from tilewright.workload.layer import Layer

ANYWHERE = -1
"""Placeholder for the position of a loop dimension that a rule for a loop order does not list."""


def control_fields(operands: int, levels: int, dimensions: int) -> tuple[Any, ...]:
    """Fields for the rules of the control of a core, in the record of a mapping problem. The arguments are the largest
    numbers of operands, memory levels and loop dimensions. The axis r has one entry for each memory whose loop order a
    rule limits. The other axes are those of `PROBLEM_DTYPE`.
    """
    return (
        ("has_control", np.int8),  # True if a rule limits the mappings of this layer
        ("no_tile", np.int8, (operands, levels, dimensions)),  # [o, m, d] True if the level cannot have a loop over d
        ("ordered_count", np.int64),
        ("ordered_memory", np.int64, (MOST_ORDERS,)),  # [r] k whose loops have an order
        ("ordered_level", np.int64, (MOST_ORDERS, operands)),  # [r, o] m of this memory, above all levels if none
        ("order_place", np.int64, (MOST_ORDERS, dimensions)),  # [r, d] place in the order, inner to outer, or ANYWHERE
    )


def control_arrays(
    layer: Layer, core: Core, chains: Mapping[str, tuple[int, ...]], steps: np.ndarray, no_level: int
) -> "dict[str, float | np.ndarray[Any, np.dtype[Any]]]":
    """Values of the fields of `control_fields`. `chains` has the memories of each operand, innermost first. `steps`
    [operand, dimension] is true if a loop over the dimension steps through the data of the operand. A rule limits only
    such loops. `no_level` stands for the memory level of an operand, if the memory of a rule does not hold the operand.
    """
    names, operands = [name for name, _ in layer.loop_sizes], layer.operands
    depth = max(len(chain) for chain in chains.values())
    no_tile = np.zeros((len(operands), depth, len(names)), np.bool_)
    for o, operand in enumerate(operands):
        for m, k in enumerate(chains[operand]):
            can = core.memories[k].tile_dimensions
            if can is not None:
                no_tile[o, m] = steps[o] & np.array([name not in can for name in names])
    held = {k for chain in chains.values() for k in chain}
    ordered = [k for k, memory in enumerate(core.memories) if memory.loop_order and k in held]
    level = np.full((len(ordered), len(operands)), no_level, np.int64)
    place = np.full((len(ordered), len(names)), ANYWHERE, np.int64)
    for r, k in enumerate(ordered):
        for o, operand in enumerate(operands):
            if k in chains[operand]:
                level[r, o] = chains[operand].index(k)
        for position, name in enumerate(core.memories[k].loop_order):
            if name in names:
                place[r, names.index(name)] = position
    return {
        "has_control": bool(no_tile.any() or ordered),
        "no_tile": no_tile,
        "ordered_count": len(ordered),
        "ordered_memory": np.array(ordered, np.int64),
        "ordered_level": level,
        "order_place": place,
    }
