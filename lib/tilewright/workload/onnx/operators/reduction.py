"""Reductions on the vector unit: sums, extremes and norms along axes, and operators that select elements along an axis.

A reduction needs one operation per element of the input. The division of a mean counts as part of the last operation.
"""

import math
from collections.abc import Sequence

from tilewright.workload.access import IndexMap, fixed, identity_map
from tilewright.workload.onnx.lowering import Lowering, access, lowers, whole_map
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.operators.elementwise import element_loops, elementwise

_AXES_INPUT_SINCE = {"ReduceSum": 13}
_AXES_INPUT_SINCE_DEFAULT = 18
_AFTERWARDS = {"ReduceL2": "Sqrt", "ReduceLogSum": "Log", "ReduceLogSumExp": "Log"}
"""Type of a reduction -> operator that is applied to each result of the reduction."""
_UNCHANGED_ALONE = frozenset({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"})
"""Reductions whose result for a single element is this element."""


def normalised_axes(op: Lowering, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from 0, in ascending order. Raises InputError for an axis that the tensor does not have."""
    wrong = [axis for axis in axes if not -rank <= axis < rank]
    if wrong:
        raise op.node.error("the tensor has no such axis", str(wrong), f"-{rank} to {rank - 1}")
    return tuple(sorted({axis % rank for axis in axes}))


def reduce_axes(
    op: Lowering, source: str, output: str, axes: Sequence[int], part: str = "", operator_type: str = ""
) -> None:
    """Add the nest that reduces `source` along `axes` (counted from 0) into `output`. In `output`, these axes have size
    1 or are missing."""
    shape, reduced = op.shape(source), op.shape(output)
    loops = element_loops(shape)
    names = [name for name, _ in loops][: len(shape)]
    kept = [name for axis, name in enumerate(names) if axis not in axes]
    keeps_axes = len(reduced) == len(shape)
    written = [fixed(0) if axis in axes else name for axis, name in enumerate(names)] if keeps_axes else kept
    op.nest(loops, access(output, *written), {"I": access(source, *names)}, part=part, operator_type=operator_type)


def reduced_shape(shape: Shape, axes: Sequence[int]) -> Shape:
    """Shape with size 1 along `axes` (counted from 0)."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def _reduction_axes(op: Lowering) -> tuple[int, ...] | None:
    """Axes of a reduction, counted from 0. The result is () if there are no axes, and None if the axes are computed at
    run time."""
    rank = len(op.input_shape())
    kind = op.node.proto.op_type
    given: Sequence[int] | None = None
    if op.opset >= _AXES_INPUT_SINCE.get(kind, _AXES_INPUT_SINCE_DEFAULT) or op.has_input(1):
        if op.has_input(1):
            values = op.values(1)
            if values is None:
                return None if math.prod(op.input_shape(1)) else _all_or_none(op, rank)
            given = [int(axis) for axis in values.reshape(-1)]
    elif op.node.has("axes"):
        given = op.node.integers("axes", ())
    return normalised_axes(op, given, rank) if given else _all_or_none(op, rank)


def _all_or_none(op: Lowering, rank: int) -> tuple[int, ...]:
    return () if op.node.integer("noop_with_empty_axes", 0) else tuple(range(rank))


@lowers(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)
def lower_reduction(op: Lowering) -> None:
    """Reduction as one nest over the input. Three operations are separate nests: the root of an L2 norm, the logarithm
    of a sum, and the exponentials before a sum. Absolute values and squares count as part of the addition."""
    axes = _reduction_axes(op)
    kind, source, output = op.node.proto.op_type, op.input(), op.output()
    if axes is None:
        _reduce_unknown_axes(op)
        return
    if not axes:
        if op.input_shape() and kind not in _UNCHANGED_ALONE:
            elementwise(op, output, [source])
        else:
            op.move(identity_map(output, source, op.output_shape()))
        return
    if kind == "ReduceLogSumExp":
        exponentials = op.temporary("exp", op.shape(source), source)
        elementwise(op, exponentials, [source], part="exp", operator_type="Exp")
        source = exponentials
    last = _AFTERWARDS.get(kind)
    if last is None:
        reduce_axes(op, source, output, axes)
        return
    total = op.temporary("sum", op.shape(output), output)
    reduce_axes(op, source, total, axes, part="sum", operator_type=kind)
    elementwise(op, output, [total], operator_type=last)


def _reduce_unknown_axes(op: Lowering) -> None:
    """Lower a reduction whose axes are computed at run time, with one operation per element of the input. Each result
    is assumed to depend on all elements.
    """
    shape = op.input_shape()
    combined = op.temporary("combined", shape, op.output())
    elementwise(op, combined, [op.input()], part="combined")
    axes = whole_map(op.output(), op.output_shape(), op.input(1), op.input_shape(1))
    op.move(whole_map(op.output(), op.output_shape(), combined, shape), axes)
    op.approximated("a reduction along axes that are computed at run time: each result can depend on all elements")


@lowers("QLinearReduceMean", domain="com.microsoft")
def lower_quantised_mean(op: Lowering) -> None:
    """Mean of quantised elements, as one nest over the input."""
    axes = normalised_axes(op, op.node.integers("axes", ()), len(op.input_shape()))
    reduce_axes(op, op.input(), op.output(), axes or range(len(op.input_shape())))


@lowers("ArgMax", "ArgMin")
def lower_arg_extreme(op: Lowering) -> None:
    """Index of the largest or smallest element, with one comparison per element of the input."""
    axes = normalised_axes(op, [op.node.integer("axis", 0)], len(op.input_shape()))
    reduce_axes(op, op.input(), op.output(), axes)


@lowers("TopK")
def lower_top_k(op: Lowering) -> None:
    """Largest or smallest k elements. Every element is compared one time with every result. Values and indices depend
    on all elements along the axis."""
    rank = len(op.input_shape())
    axis = normalised_axes(op, [op.node.integer("axis", -1)], rank)[0]
    results = op.output_shape()
    loops = element_loops(results)
    name = loops[axis][0]
    read = [f"{own}IN" if own == name else own for own, _ in loops]
    loops = (*loops, (f"{name}IN", op.input_shape()[axis]))
    written = [own for own, _ in loops[:rank]]
    source = access(op.input(), *read)
    op.nest(loops, access(op.output(), *written), {"I": source})
    if op.has_output(1):
        op.move(IndexMap(loops, access(op.output(1), *written), source), part="indices")
    op.approximated("TopK is counted as one comparison of every element with every result")
