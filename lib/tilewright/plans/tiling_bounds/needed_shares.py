"""Least parts of earlier layers that must be complete before any tile of a later layer can start.

A tile makes at least one element of an output. Each element of the output depends on a block of elements (a box) of an
earlier tensor. The size of the box depends on the position of the element. Therefore the functions of this module
compute lower bounds of the size that hold for every position. If the element depends on a tensor over several paths of
the network, the path with the largest box counts.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from tilewright.workload.access import AxisIndex, IndexMap, index_range
from tilewright.workload.graph import Workload, WorkloadNode

Sides = tuple[int, ...]
"""Size of a box: number of needed indices along each axis of a tensor; () for a scalar."""


def needed_boxes(workload: Workload, node_id: int, cut: Collection[str] = ()) -> dict[str, Sides]:
    """Size of a box (a block of elements of a tensor), by tensor. Each element of the outputs of the node depends on at
    least one box of this size. A tensor is left out if an output element can be independent of the tensor.

    `cut` has the reduction loops along which tiles of this node can be cut. An output element of a tile can then be a
    partial sum. A partial sum uses at least one value of each of these loops. It uses only operands, not other inputs
    such as a bias. Outputs of all other nodes count as complete sums.
    """
    boxes: dict[str, Sides] = {}
    for node in reversed(workload.nodes):
        if node.node_id == node_id:
            for name in node.outputs:
                boxes[name] = (1,) * len(workload.tensor_of[name].shape)
            outputs = set(node.outputs)
            _pass_on(workload, node, boxes, outputs if len(outputs) == 1 else set(), cut)
        elif any(name in boxes for name in node.outputs):
            _pass_on(workload, node, boxes, {name for name in node.outputs if name in boxes})
    return boxes


def _pass_on(
    workload: Workload, node: WorkloadNode, boxes: dict[str, Sides], outputs: set[str], cut: Collection[str] = ()
) -> None:
    """Add to `boxes` the boxes of a node's inputs, computed from the boxes of its outputs. `outputs` has the names of
    the outputs to use. `boxes` must have the boxes of these outputs. If an input already has a larger box, this box is
    kept. `cut` has the names of loops that tiles can cut (`box_of_input`).
    """
    for index_map in node.index_maps:
        if index_map.output.tensor not in outputs or not index_map.is_exact:
            continue
        if cut and not index_map.operand:
            continue  # only the last addition of partial sums reads it
        found = box_of_input(
            index_map,
            boxes[index_map.output.tensor],
            workload.tensor_of[index_map.output.tensor].shape,
            workload.tensor_of[index_map.input.tensor].shape,
            cut,
        )
        before = boxes.get(index_map.input.tensor)
        if found is not None and (before is None or math.prod(found) > math.prod(before)):
            boxes[index_map.input.tensor] = found


def box_of_input(
    index_map: IndexMap, box: Sides, output: Sequence[int], source: Sequence[int], cut: Collection[str] = ()
) -> Sides | None:
    """Least size of the box of an input that a box of the output needs. A box is a block of elements. The size is valid
    for every position of the output box. None if no bound is known, or if it is possible that the output box depends on
    no element of the input. `output` and `source` are the shapes of the output and of the input. `cut` has the names of
    loops that tiles can cut: only one value of each of these loops counts as needed.
    """
    full, reach = index_map.size_of, reach_of_box(index_map, box, output)
    if reach is None:
        return None
    reach |= {name: 1 for name in cut if name in reach}
    used: set[str] = set()
    sides = []
    for axis, size in zip(index_map.input.axes, source, strict=True):
        side = _side(axis, full, reach, size)
        if side < 1:
            return None
        names = {name for name, _ in axis.terms if full[name] > 1}
        sides.append(side if used.isdisjoint(names) else 1)
        used |= names
    return tuple(sides)


def reach_of_box(index_map: IndexMap, box: Sides, output: Sequence[int]) -> dict[str, int] | None:
    """Least number of consecutive values that a box of the output needs, for each loop. None if the box may need no
    values, or if no lower bound is known for this form of indices.
    """
    full = index_map.size_of
    reach = dict(full)
    fixed: set[str] = set()
    for axis, length, size in zip(index_map.output.axes, box, output, strict=True):
        terms = [(name, factor) for name, factor in axis.terms if full[name] > 1]
        if any(name in fixed for name, _ in terms):
            return None  # a loop of two axes: the box may have no element on the diagonal
        count = math.prod(full[name] for name, _ in terms)
        low, high = index_range(AxisIndex(tuple(terms), axis.offset), full)
        covered = min(count, min(high, size - 1) - max(low, 0) + 1)
        inside = length - (size - covered)
        if inside < 1:
            return None
        fixed.update(name for name, _ in terms)
        if len(terms) == 1 and abs(terms[0][1]) == 1:
            reach[terms[0][0]] = inside
        elif inside >= size == count and _stays_inside(axis, full, size):
            continue  # all indices are needed, and thus all values of the loops
        elif len(terms) == 2 and _is_split(terms, full) and count == size:
            reach.update(_reach_of_split(terms, full, inside))
        elif terms:
            return None
    return reach


def _stays_inside(axis: AxisIndex, full: Mapping[str, int], size: int) -> bool:
    """True if the index along an axis lies inside the tensor for all values of the loops."""
    low, high = index_range(axis, full)
    return low >= 0 and high < size


def _is_split(terms: Sequence[tuple[str, int]], full: Mapping[str, int]) -> bool:
    """True if two loops count the indices of an axis like the digits of a number. The inner loop must have coefficient
    1. The coefficient of the outer loop must be the size of the inner loop. `terms` has two pairs (loop, coefficient),
    and `full` has the size of each loop.
    """
    inner, outer = sorted(terms, key=lambda term: term[1])
    return inner[1] == 1 and outer[1] == full[inner[0]]


def _reach_of_split(terms: Sequence[tuple[str, int]], full: Mapping[str, int], length: int) -> dict[str, int]:
    """Least number of different values that each loop takes in `length` consecutive indices of an axis, by loop.

    The two loops in `terms` count the indices like the two digits of a number. The result is valid for every start of
    the `length` indices. All combinations of the resulting values of the two loops occur.
    """
    inner, outer = (name for name, _ in sorted(terms, key=lambda term: term[1]))
    rows = (length - full[inner] + 1) // full[inner] if length >= full[inner] else 0
    return {inner: full[inner], outer: rows} if rows > 0 else {inner: 1, outer: 1}


def _side(axis: AxisIndex, full: Mapping[str, int], reach: Mapping[str, int], size: int) -> int:
    """Least number of indices along an axis that lie inside the tensor. `reach` has the number of consecutive values
    that each loop takes.
    """
    low, high = index_range(axis, full)
    outside = max(0, -low) + max(0, high - size + 1)
    reached, has_gaps = 0, False
    for factor, name in sorted((abs(factor), name) for name, factor in axis.terms):
        count = reach[name]
        has_gaps |= count > 1 and factor > reached + 1
        reached += factor * (count - 1)
    span = reached + 1
    if has_gaps:
        return max((reach[name] for name, factor in axis.terms if factor), default=1) - outside
    # A box that reaches over both ends of the axis covers the whole axis.
    return min(size, span - max(max(0, -low), max(0, high - size + 1)))
