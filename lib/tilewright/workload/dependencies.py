"""Dependences between elements of tensors, computed from access relations as boxes of elements."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tilewright.workload.access import AxisIndex, IndexMap, Shape, index_range

Boxes = npt.NDArray[np.int64]
"""Boxes of elements, as an array [box, axis, 2]. Along each axis of the tensor, a box has a first index and an end
(exclusive)."""
_Range = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Range of a loop or an index in each box: two arrays of shape (boxes,) with the smallest and the largest values."""
_SWEEPS = 2
"""Number of passes over all axes of the output and the input. In a pass, each axis narrows the ranges of its loops. A
second pass helps if two axes share a loop. In the first pass, the later axis narrows the range of this loop. In the
second pass, the earlier axis can then narrow the ranges of its other loops."""


def input_boxes(
    index_map: IndexMap, output_boxes: Boxes, output_shape: Shape, input_shape: Shape
) -> tuple[Boxes, npt.NDArray[np.bool_]]:
    """Boxes of the input elements that output boxes depend on.

    Returns an array [box, input axis, 2] of input boxes, and an array [box] that is True for output boxes with at least
    one dependence. If an output box has no dependence, its input box is all 0. Output boxes may reach outside the
    output tensor.

    A returned box can be larger than necessary. The box is the smallest possible one if the loops of each axis do not
    overlap, as in 8 * a + b with b below 8. An axis with at most one loop has no overlap.

    The ranges of the loops are narrowed by interval arithmetic. The index of an output axis is a sum of terms, and must
    lie in the output box. This limits each term, given the ranges of the other terms. In the same way, the index of an
    input axis must lie in the input tensor, because elements outside the tensor (padding) are not read.
    """
    boxes = np.asarray(output_boxes, dtype=np.int64)
    count = len(boxes)
    whole = _box_of_all(index_map, boxes, output_shape, input_shape)
    if whole is not None:
        return np.broadcast_to(whole, (count, *whole.shape)).copy(), np.ones(count, dtype=bool)
    ranges: dict[str, _Range] = {
        name: (np.zeros(count, np.int64), np.full(count, size - 1, np.int64)) for name, size in index_map.loops
    }
    possible = np.ones(count, dtype=bool)
    allowed: list[tuple[AxisIndex, _Range]] = []
    for number, (axis, size) in enumerate(zip(index_map.output.axes, output_shape, strict=True)):
        bounds = np.maximum(boxes[:, number, 0], 0), np.minimum(boxes[:, number, 1], size) - 1
        allowed.append((axis, bounds))
    for axis, size in zip(index_map.input.axes, input_shape, strict=True):
        allowed.append((axis, (np.zeros(count, np.int64), np.full(count, size - 1, np.int64))))
    for _ in range(_SWEEPS):
        for axis, bounds in allowed:
            possible &= _bound_loops(axis, bounds, ranges)
    found = np.zeros((count, len(input_shape), 2), dtype=np.int64)
    output_bounds = allowed[: len(output_shape)]
    for number, (axis, (first, last)) in enumerate(allowed[len(output_shape) :]):
        low, high = _reach(axis, ranges)
        for output_axis, (start, end) in output_bounds:
            ratio, rest = _common_part(axis, output_axis)
            if ratio:
                rest_low, rest_high = _reach(rest, ranges)
                ends = ratio * (start - output_axis.offset), ratio * (end - output_axis.offset)
                low = np.maximum(low, np.minimum(*ends) + rest_low)
                high = np.minimum(high, np.maximum(*ends) + rest_high)
        low, high = np.maximum(low, first), np.minimum(high, last)
        possible &= low <= high
        found[:, number, 0], found[:, number, 1] = low, high + 1
    found[~possible] = 0
    return found, possible


def _box_of_all(index_map: IndexMap, boxes: Boxes, output_shape: Shape, input_shape: Shape) -> Boxes | None:
    """Box of all input elements that a map reads, as an array [input axis, 2] with the first index and the end
    (exclusive).

    The result is None if an output box in `boxes` does not contain every element that the map writes, or if the map has
    an index outside a tensor.
    """
    reached = [
        [index_range(axis, index_map.size_of) for axis in access.axes] for access in (index_map.output, index_map.input)
    ]
    for ranges, shape in zip(reached, (output_shape, input_shape), strict=True):
        if any(first < 0 or last >= size for (first, last), size in zip(ranges, shape, strict=True)):
            return None
    written, read = (np.array(ranges, np.int64).reshape(-1, 2) for ranges in reached)
    if (boxes[:, :, 0] > written[:, 0]).any() or (boxes[:, :, 1] <= written[:, 1]).any():
        return None
    read[:, 1] += 1
    return read


def _reach(axis: AxisIndex, ranges: Mapping[str, _Range]) -> _Range:
    """Smallest and largest index along an axis, in each box. `ranges` has the smallest and the largest value of each
    loop in each box.
    """
    low = high = np.array(axis.offset, dtype=np.int64)
    for name, coefficient in axis.terms:
        ends = coefficient * ranges[name][0], coefficient * ranges[name][1]
        low, high = low + np.minimum(*ends), high + np.maximum(*ends)
    return low, high


def _bound_loops(axis: AxisIndex, bounds: _Range, ranges: dict[str, _Range]) -> npt.NDArray[np.bool_]:
    """Narrow the ranges of the loops of an axis so that the index of the axis lies within `bounds`. Returns a Bool
    array of shape (boxes,): False for a box in which no loop values give an index within `bounds`."""
    possible = bounds[0] <= bounds[1]
    if not axis.terms:
        return possible & (bounds[0] <= axis.offset) & (axis.offset <= bounds[1])
    for name, coefficient in sorted(axis.terms, key=lambda term: -abs(term[1])):
        if not coefficient:
            continue
        others = AxisIndex(tuple(term for term in axis.terms if term[0] != name), axis.offset)
        least, most = _reach(others, ranges)
        low, high = bounds[0] - most, bounds[1] - least
        if coefficient < 0:
            low, high = -high, -low
        size = abs(coefficient)
        first = np.maximum(ranges[name][0], -((-low) // size))
        last = np.minimum(ranges[name][1], high // size)
        empty = first > last
        possible = possible & ~empty
        # An empty box keeps the old range, so that later arithmetic stays within its limits.
        ranges[name] = np.where(empty, ranges[name][0], first), np.where(empty, ranges[name][1], last)
    return possible


def _common_part(axis: AxisIndex, output_axis: AxisIndex) -> tuple[int, AxisIndex]:
    """Pair (factor, rest) that splits the index of an input axis: index = factor * (terms of the output axis) + rest.
    The pair is (0, axis) if there is no such factor, or if the output axis has fewer than two loops.

    The split is useful if several loops form one output index, such as the rows and columns of a flattened axis. The
    output box then limits only the sum of these loops, not each loop by itself.
    """
    wanted = {name: coefficient for name, coefficient in output_axis.terms if coefficient}
    own = dict(axis.terms)
    if len(wanted) < 2 or any(name not in own for name in wanted):
        return 0, axis
    ratios = {divmod(own[name], coefficient) for name, coefficient in wanted.items()}
    ratio, remainder = next(iter(ratios))
    if len(ratios) > 1 or remainder or not ratio:
        return 0, axis
    return ratio, AxisIndex(tuple(term for term in axis.terms if term[0] not in wanted), axis.offset)
