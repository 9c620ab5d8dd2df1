"""Softmax and similar operators, decomposed into layers on the vector unit."""

from collections.abc import Sequence

from tilewright.workload.onnx.lowering import Lowering, lowers
from tilewright.workload.onnx.operators.elementwise import (
    elementwise,
)
from tilewright.workload.onnx.operators.reduction import normalised_axes, reduce_axes, reduced_shape

_SINGLE_AXIS_SINCE = 13


def softmax_parts(op: Lowering, source: str, output: str, axis: int | Sequence[int], prefix: str = "") -> None:
    """Add the softmax of `source` along one or several axes into `output`.

    The parts are the maximum, the exponentials of the differences from the maximum, the sum of the exponentials, and
    the division. The parts need four operations per element. `prefix` is the beginning of the names of the parts.
    """
    shape = op.shape(source)
    axes = normalised_axes(op, [axis] if isinstance(axis, int) else axis, len(shape))
    few = reduced_shape(shape, axes)
    maximum = op.temporary(f"{prefix}max", few, source)
    reduce_axes(op, source, maximum, axes, part=f"{prefix}max", operator_type="ReduceMax")
    exponentials = op.temporary(f"{prefix}exp", shape, output)
    elementwise(op, exponentials, [source, maximum], part=f"{prefix}exp", operator_type="Exp")
    total = op.temporary(f"{prefix}sum", few, output)
    reduce_axes(op, exponentials, total, axes, part=f"{prefix}sum", operator_type="ReduceSum")
    elementwise(op, output, [exponentials, total], part=f"{prefix}div", operator_type="Div")


def _log_softmax_parts(op: Lowering, source: str, output: str, axes: Sequence[int]) -> None:
    """Add the six nests that compute the logarithm of a softmax of x:

    * max: maximum of x
    * shift: x - max
    * exp: exp(shift)
    * sum: sum of exp
    * log: log(sum)
    * sub: shift - log

    The nest log needs one operation per sum. Each of the other five nests needs one operation per element of x.
    """
    shape, few = op.shape(source), reduced_shape(op.shape(source), axes)
    maximum = op.temporary("max", few, source)
    reduce_axes(op, source, maximum, axes, part="max", operator_type="ReduceMax")
    shifted = op.temporary("shift", shape, source)
    elementwise(op, shifted, [source, maximum], part="shift", operator_type="Sub")
    exponentials = op.temporary("exp", shape, output)
    elementwise(op, exponentials, [shifted], part="exp", operator_type="Exp")
    total = op.temporary("sum", few, output)
    reduce_axes(op, exponentials, total, axes, part="sum", operator_type="ReduceSum")
    logarithm = op.temporary("log", few, output)
    elementwise(op, logarithm, [total], part="log", operator_type="Log")
    elementwise(op, output, [shifted, logarithm], part="sub", operator_type="Sub")


def _softmax_axes(op: Lowering) -> tuple[int, ...]:
    """Axes of a softmax. Since opset 13, a softmax has one axis: the given axis (by default, the last axis). Before
    opset 13, a softmax has the given axis (by default, axis 1) and all later axes.
    """
    rank = len(op.input_shape())
    # QLinearSoftmax of onnxruntime has an attribute that gives the opset of its meaning.
    if op.node.integer("opset", max(op.opset, 1)) >= _SINGLE_AXIS_SINCE:
        return normalised_axes(op, [op.node.integer("axis", -1)], rank)
    stated = op.node.integer("axis", 1)
    first = rank if stated == rank else normalised_axes(op, [stated], rank)[0]
    return tuple(range(first, rank))


@lowers("Softmax")
@lowers("QLinearSoftmax", domain="com.microsoft")
def lower_softmax(op: Lowering) -> None:
    """Softmax, in the parts of `softmax_parts`."""
    softmax_parts(op, op.input(), op.output(), _softmax_axes(op))


@lowers("LogSoftmax")
def lower_log_softmax(op: Lowering) -> None:
    """Logarithm of a softmax, in the parts of `_log_softmax_parts`."""
    _log_softmax_parts(op, op.input(), op.output(), _softmax_axes(op))


@lowers("Hardmax")
def lower_hardmax(op: Lowering) -> None:
    """Maximum along the axes, and a comparison with this maximum: two operations per element."""
    axes = _softmax_axes(op)
    maximum = op.temporary("max", reduced_shape(op.input_shape(), axes), op.input())
    reduce_axes(op, op.input(), maximum, axes, part="max", operator_type="ReduceMax")
    elementwise(op, op.output(), [op.input(), maximum], part="compare", operator_type="Equal")
