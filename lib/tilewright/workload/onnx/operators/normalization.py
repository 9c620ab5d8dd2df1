"""Normalisations (by mean and variance, by a norm, or by neighbouring channels) and dynamic quantisation, decomposed
into layers on the vector unit.

A normalisation by mean and variance needs five operations per element: the sum for the mean, the subtraction, the sum
of squares, the multiplication by the reciprocal deviation, and one operation for scale and shift. The reciprocal root
needs one operation per group of elements.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, TensorAccess, affine, fixed
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.operators.elementwise import (
    Loops,
    combine,
    element_access,
    element_loops,
    elementwise,
    is_one_constant,
)
from tilewright.workload.onnx.operators.reduction import normalised_axes, reduce_axes, reduced_shape
from tilewright.workload.onnx.resolution.custom import has_channels_last


@lowers("LpNormalization")
def lower_lp_normalization(op: Lowering) -> None:
    """Norm along an axis, followed by a division by the norm: two operations per element. For p = 2, each norm needs
    one more operation, the root."""
    axes = normalised_axes(op, [op.node.integer("axis", -1)], len(op.input_shape()))
    few = reduced_shape(op.input_shape(), axes)
    is_euclidean = op.node.integer("p", 2) == 2
    total = op.temporary("norm", few, op.input())
    reduce_axes(
        op, op.input(), total, axes, part="norm", operator_type="ReduceSumSquare" if is_euclidean else "ReduceL1"
    )
    norm = total
    if is_euclidean:
        norm = op.temporary("root", few, op.input())
        elementwise(op, norm, [total], part="root", operator_type="Sqrt")
    elementwise(op, op.output(), [op.input(), norm], part="div", operator_type="Div")


@lowers("LRN")
def lower_local_response(op: Lowering) -> None:
    """Local response normalisation: squares summed over `size` neighbouring channels, a power, and a division. The
    operator needs size + 2 operations per element."""
    shape, size = op.input_shape(), op.node.integer("size", 0)
    if size < 1 or len(shape) < 2:
        raise op.node.error("wrong attribute 'size'", str(size), "an integer >= 1, and an input of two axes or more")
    loops = element_loops(shape)
    names = [name for name, _ in loops]
    window = affine((names[1], 1), ("F", 1), offset=-((size - 1) // 2))
    total = op.temporary("sum", shape, op.input())
    read = access(op.input(), names[0], window, *names[2:])
    op.nest((*loops, ("F", size)), access(total, *names), {"I": read}, part="sum", operator_type="ReduceSumSquare")
    power = op.temporary("pow", shape, op.input())
    elementwise(op, power, [total], part="pow", operator_type="Pow")
    elementwise(op, op.output(), [op.input(), power], part="div", operator_type="Div")


@lowers("DynamicQuantizeLinear")
def lower_dynamic_quantise(op: Lowering) -> None:
    """Quantisation with a scale that is computed from the data. Minimum, maximum and quantisation need one operation
    per element each."""
    axes = range(len(op.input_shape()))
    least, most = (op.temporary(part, (), op.input()) for part in ("min", "max"))
    reduce_axes(op, op.input(), least, axes, part="min", operator_type="ReduceMin")
    reduce_axes(op, op.input(), most, axes, part="max", operator_type="ReduceMax")
    elementwise(op, op.output(1), [most, least], part="scale", operator_type="Sub")
    elementwise(op, op.output(2), [least, op.output(1)], part="zero_point", operator_type="Div")
    elementwise(op, op.output(), [op.input()], others=[op.output(1), op.output(2)], operator_type="QuantizeLinear")


_Axes = tuple[AxisIndex | str, ...]


@dataclass(frozen=True)
class _Groups:
    """Groups of elements that share statistics. `loops` go over all elements of the data. `data` has the indices of an
    element in the data tensor. `statistics` has the indices of the element's group in the tensor of statistics.
    """

    loops: Loops
    data: _Axes
    statistics: _Axes
    statistics_shape: Shape


def _groups_along(shape: Shape, axes: Sequence[int]) -> _Groups:
    """Groups along `axes` (counted from 0): all elements along these axes are one group. The statistics have size 1
    along these axes.
    """
    loops = element_loops(shape)
    names = tuple(name for name, _ in loops)
    statistics = tuple(fixed(0) if axis in axes else name for axis, name in enumerate(names))
    return _Groups(loops, names, statistics, reduced_shape(shape, axes))


def _normalise(
    op: Lowering,
    source: str,
    groups: _Groups,
    *,
    is_centred: bool = True,
    scale: TensorAccess | None = None,
    shift: TensorAccess | None = None,
    mean_output: int | None = None,
    deviation_output: int | None = None,
    target: str = "",
) -> None:
    """Add the parts of the normalisation of `source`. The result is written to `target`, or to output 0 if `target` is
    ''.

    The mean is written to output `mean_output`, and the reciprocal deviation to output `deviation_output`, if the
    operator has these outputs.
    """
    shape, loops = op.shape(source), groups.loops

    def statistic(part: str, output: int | None = None) -> str:
        if output is not None and op.has_output(output):
            return op.output(output)
        return op.temporary(part, groups.statistics_shape, source)

    data = access(source, *groups.data)
    if is_centred:
        mean = access(statistic("mean", mean_output), *groups.statistics)
        op.nest(loops, mean, {"I": data}, part="mean", operator_type="ReduceMean")
        centred = access(op.temporary("centred", shape, source), *groups.data)
        op.nest(loops, centred, {"I": data, "W": mean}, part="centre", operator_type="Sub")
        data = centred
    variance = access(op.temporary("variance", groups.statistics_shape, source), *groups.statistics)
    op.nest(loops, variance, {"I": data}, part="variance", operator_type="ReduceSumSquare")
    deviation = statistic("deviation", deviation_output)
    elementwise(op, deviation, [variance.tensor], part="deviation", operator_type="Reciprocal")
    factors = [factor for factor in (scale, shift) if factor is not None]
    result = target or op.output()
    normalised = access(op.temporary("normalised", shape, source) if factors else result, *groups.data)
    reciprocal = access(deviation, *groups.statistics)
    op.nest(loops, normalised, {"I": data, "W": reciprocal}, part="normalise", operator_type="Mul")
    if factors:
        inputs = {"I": normalised, "W": factors[0]}
        op.nest(loops, access(result, *groups.data), inputs, others=factors[1:], part="scale", operator_type="Mul")


def _factor(op: Lowering, index: int, groups: _Groups) -> TensorAccess | None:
    """Access to input `index`, the scale or the shift, broadcast to the data. None if the input is missing, or is a
    constant of one element.
    """
    if not op.has_input(index) or is_one_constant(op, op.input(index)):
        return None
    return element_access(op.input(index), op.input_shape(index), groups.loops)


def _last_axes(op: Lowering) -> _Groups:
    rank = len(op.input_shape())
    first = normalised_axes(op, [op.node.integer("axis", -1)], rank)[0]
    return _groups_along(op.input_shape(), range(first, rank))


@lowers("LayerNormalization")
def lower_layer_normalization(op: Lowering) -> None:
    """Normalisation along the given axis and all later axes. The outputs Mean and InvStdDev are the statistics."""
    groups = _last_axes(op)
    scale, shift = (_factor(op, index, groups) for index in (1, 2))
    _normalise(op, op.input(), groups, scale=scale, shift=shift, mean_output=1, deviation_output=2)


@lowers("RMSNormalization", "SimplifiedLayerNormalization")
@lowers("SimplifiedLayerNormalization", domain="com.microsoft")
def lower_rms_normalization(op: Lowering) -> None:
    """Normalisation as in LayerNormalization, but without mean and shift."""
    groups = _last_axes(op)
    _normalise(op, op.input(), groups, is_centred=False, scale=_factor(op, 1, groups), deviation_output=1)


@lowers("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def lower_skip_layer_normalization(op: Lowering) -> None:
    """Sum of input, skip and an optional bias, followed by the normalisation along the last axis."""
    is_centred = op.node.proto.op_type == "SkipLayerNormalization"
    bias = 4 if is_centred else 3
    added = [op.input(0), op.input(1)] + ([op.input(bias)] if op.has_input(bias) else [])
    shape = op.input_shape()
    total = op.output(3) if op.has_output(3) else op.temporary("sum", shape, op.input())
    combine(op, total, added, "Add", part="sum")
    groups = _groups_along(shape, [len(shape) - 1])
    shift = _factor(op, 3, groups) if is_centred else None
    scale = _factor(op, 2, groups)
    outputs = (1, 2)
    _normalise(
        op,
        total,
        groups,
        is_centred=is_centred,
        scale=scale,
        shift=shift,
        mean_output=outputs[0],
        deviation_output=outputs[1],
    )


def normalise_last_axis(op: Lowering, source: str, scale: int, shift: int) -> None:
    """Add LayerNormalization of `source` along its last axis into output 0. `scale` and `shift` are the indices of
    inputs.
    """
    shape = op.shape(source)
    groups = _groups_along(shape, [len(shape) - 1])
    _normalise(op, source, groups, scale=_factor(op, scale, groups), shift=_factor(op, shift, groups))


@lowers("InstanceNormalization")
def lower_instance_normalization(op: Lowering) -> None:
    """Normalisation along all spatial axes, with scale and shift per channel."""
    shape = op.input_shape()
    groups = _groups_along(shape, range(2, len(shape)))
    scale, shift = (access(op.input(index), groups.data[1]) for index in (1, 2))
    _normalise(op, op.input(), groups, scale=scale, shift=shift)


@lowers("GroupNormalization")
def lower_group_normalization(op: Lowering) -> None:
    """Normalisation along the channels of a group (loops G, C) and all spatial axes. There is one scale and one shift
    per channel, or (before opset 21) per group."""
    _normalise_groups(op, op.input(), op.node.integer("num_groups", 0), op.output())


@lowers("GroupNorm", "SkipGroupNorm", domain="com.microsoft")
def lower_group_norm_of_onnxruntime(op: Lowering) -> None:
    """Normalisation as in GroupNormalization, but by default the channels are the last axis.

    A skip and a bias can be added first. The skip has the shape of the input, or one value per channel of each batch
    entry. The activation SiLU can follow. Each of these steps needs one operation per element.
    """
    source = op.input()
    if op.node.proto.op_type == "SkipGroupNorm":
        source = op.output(1) if op.has_output(1) else op.temporary("sum", op.input_shape(), op.input())
        if op.input_shape(3) != op.input_shape() and math.prod(op.input_shape(3)[1:-1]) != 1:
            raise op.node.error("wrong shape of the skip", str(list(op.input_shape(3))), str(list(op.input_shape())))
        if len(op.input_shape(3)) != len(op.input_shape()):
            op.unsupported("SkipGroupNorm is not modelled if the skip input has another rank than the data")
            return
        added = [op.input(0), op.input(3)] + ([op.input(4)] if op.has_input(4) else [])
        combine(op, source, added, "Add", part="sum")
    activation = op.node.integer("activation", 0)
    target = op.temporary("group", op.output_shape(), op.output()) if activation else op.output()
    last = has_channels_last(op.node.proto)
    _normalise_groups(op, source, op.node.integer("groups", 0), target, is_channels_last=last)
    if activation:
        elementwise(op, op.output(), [target], part="activation", operator_type="Swish")


def _normalise_groups(op: Lowering, source: str, count: int, target: str, *, is_channels_last: bool = False) -> None:
    """Add the normalisation of `source` in `count` groups of channels, and write the result to `target`. Raises
    InputError if `count` does not divide the number of channels.
    """
    shape = op.shape(source)
    channels = shape[-1 if is_channels_last else 1] if len(shape) > 1 else 0
    if count < 1 or len(shape) < 2 or channels % count:
        raise op.node.error("the number of groups must divide the number of channels", f"{count} of {channels}")
    outer, *inner = element_loops(shape)
    spatial = inner[:-1] if is_channels_last else inner[1:]
    each = channels // count
    loops = (outer, ("G", count), ("C", each), *spatial)
    channel = affine(("G", each), ("C", 1))
    names = [name for name, _ in spatial]
    data: _Axes = (outer[0], *names, channel) if is_channels_last else (outer[0], channel, *names)
    groups = _Groups(loops, data, (outer[0], "G"), (shape[0], count))
    per_group = op.input_shape(1) == (count,) and each > 1
    index = "G" if per_group else channel
    scale, shift = (access(op.input(number), index) for number in (1, 2))
    _normalise(op, source, groups, scale=scale, shift=shift, target=target)


@lowers("MeanVarianceNormalization")
def lower_mean_variance_normalization(op: Lowering) -> None:
    """Normalisation along the given axes (0, 2, 3 by default), without scale."""
    shape = op.input_shape()
    axes = normalised_axes(op, op.node.integers("axes", (0, 2, 3)), len(shape))
    _normalise(op, op.input(), _groups_along(shape, axes))


@lowers("BatchNormalization")
def lower_batch_normalization(op: Lowering) -> None:
    """Batch normalisation at inference: a multiplication by a scale and an addition of a shift, which count together as
    one operation per element.

    Each channel has one scale and one shift. Before opset 9, with `spatial` 0, each element of an image has its own
    scale and shift. Scales and shifts are computed before run time, at no cost, from the scale, shift, mean and
    variance of the operator.
    """
    if op.node.integer("training_mode", 0) or any(op.has_output(index) for index in range(1, len(op.node.outputs))):
        op.unsupported("BatchNormalization in training mode is not modelled")
        return
    shape = op.input_shape()
    loops = element_loops(shape)
    names = [name for name, _ in loops]
    channel = names[1:] if len(shape) > 1 else names
    accesses = []
    for index in range(1, 5):
        rank = len(op.input_shape(index))
        accesses.append(access(op.input(index), *channel[:rank]))
    scale, *others = accesses
    inputs = {"I": access(op.input(), *names), "W": scale}
    op.nest(loops, access(op.output(), *names), inputs, others=others)
    if not all(op.is_constant(op.input(index)) for index in range(1, 5)):
        op.approximated(
            "inputs of a BatchNormalization are computed at run time; the work for its scale and shift is not counted"
        )
