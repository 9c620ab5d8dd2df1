"""Least parts of earlier layers that must be complete before any tile of a later layer can start.

A tile makes at least one element of the output. Every element of an output needs a box of elements of earlier tensors.
The sides of this box depend on the place of the element; the functions of this module compute sides that no element
has smaller. If an element needs data over several paths of the network, the path with the largest box counts.
"""

import math
from collections.abc import Mapping, Sequence

from tilewright.workload.access import AxisIndex, IndexMap, index_range
from tilewright.workload.graph import Workload, WorkloadNode

Sides = tuple[int, ...]
"""Number of needed indices along each axis of a tensor; () for a scalar."""


def needed_boxes(workload: Workload, node_id: int) -> dict[str, Sides]:
    """Least boxes of tensors that every element of the outputs of a node needs, by name of the tensor. Tensors without
    an entry may be needed by no element.
    """
    boxes: dict[str, Sides] = {}
    for node in reversed(workload.nodes):
        if node.node_id == node_id:
            for name in node.outputs:
                boxes[name] = (1,) * len(workload.tensor_of[name].shape)
            outputs = set(node.outputs)
            _pass_on(workload, node, boxes, outputs if len(outputs) == 1 else set())
        elif any(name in boxes for name in node.outputs):
            _pass_on(workload, node, boxes, {name for name in node.outputs if name in boxes})
    return boxes


def _pass_on(workload: Workload, node: WorkloadNode, boxes: dict[str, Sides], outputs: set[str]) -> None:
    """Add the boxes that a node needs of its inputs for the boxes of its outputs."""
    for index_map in node.index_maps:
        if index_map.output.tensor not in outputs or not index_map.is_exact:
            continue
        found = box_of_input(
            index_map,
            boxes[index_map.output.tensor],
            workload.tensor_of[index_map.output.tensor].shape,
            workload.tensor_of[index_map.input.tensor].shape,
        )
        before = boxes.get(index_map.input.tensor)
        if found is not None and (before is None or math.prod(found) > math.prod(before)):
            boxes[index_map.input.tensor] = found


def box_of_input(index_map: IndexMap, box: Sides, output: Sequence[int], source: Sequence[int]) -> Sides | None:
    """Least box of an input that a box of the output needs, wherever the box of the output is; None if it may need
    nothing. `output` and `source` are the shapes of the tensors.
    """
    full, reach = index_map.size_of, reach_of_box(index_map, box, output)
    if reach is None:
        return None
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
    """Least number of consecutive values of each loop that a box of the output needs; None if it may need none."""
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
    """True if all loop values give indices inside a tensor."""
    low, high = index_range(axis, full)
    return low >= 0 and high < size


def _is_split(terms: Sequence[tuple[str, int]], full: Mapping[str, int]) -> bool:
    """True if two loops count the indices of an axis as digits: the coefficient of one loop is 1, and that of the other
    loop is the size of the first.
    """
    inner, outer = sorted(terms, key=lambda term: term[1])
    return inner[1] == 1 and outer[1] == full[inner[0]]


def _reach_of_split(terms: Sequence[tuple[str, int]], full: Mapping[str, int], length: int) -> dict[str, int]:
    """Values that two loops take at least in all combinations, for `length` indices in a row."""
    inner, outer = (name for name, _ in sorted(terms, key=lambda term: term[1]))
    rows = (length - full[inner] + 1) // full[inner] if length >= full[inner] else 0
    return {inner: full[inner], outer: rows} if rows > 0 else {inner: 1, outer: 1}


def _side(axis: AxisIndex, full: Mapping[str, int], reach: Mapping[str, int], size: int) -> int:
    """Least number of indices inside a tensor along an axis, if each loop takes `reach` consecutive values."""
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
