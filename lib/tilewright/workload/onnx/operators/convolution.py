"""Convolutions: Conv, QLinearConv and ConvInteger over one to three axes, and deformable convolutions."""

import math
from dataclasses import replace

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.node import OperandRoles
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.operators.matrix import (
    constant_operands,
    declare_padding,
    scale_accesses,
    split_axis,
    with_tensor_precision,
)
from tilewright.workload.onnx.products import ConvGeometry, conv_geometry, conv_layer
from tilewright.workload.onnx.resolution.custom import CONTRIB_DOMAIN, has_channels_last

Loops = tuple[tuple[str, int], ...]

_MOST_AXES = 3
_AXES_OF_LAYER = 2
"""Largest number of axes for which a convolution has the same layer as in zigzag-dse. For more axes, the layer follows
from the accesses."""


def spatial_names(axes: int) -> tuple[str, ...]:
    """Letters of the spatial axes in the order of the tensors: X, or Y and X, or Z, Y and X."""
    return ("Z", "Y", "X")[_MOST_AXES - axes :]


@lowers("Conv", "QLinearConv", "ConvInteger")
def lower_conv(op: Lowering) -> None:
    """Convolution as one nest: O[b][g,k][o*] += W[g,k][c][f*] * I[b][g,c][stride * o* + dilation * f* - padding].

    The number of multiply-accumulates is output elements x kernel elements x channels of a group. Products with padding
    are counted too. The bias costs nothing. Raises InputError if shapes do not fit together.
    """
    _add_conv(op, op.output())


@lowers("NhwcConv", "QLinearConv", domain="com.microsoft")
def lower_conv_of_onnxruntime(op: Lowering) -> None:
    """Convolution like Conv, but with the channels as the last axis of input and output. The filters have the layout of
    the ONNX standard."""
    _add_conv(op, op.output())


@lowers("FusedConv", "NhwcFusedConv", domain="com.microsoft")
def lower_fused_conv(op: Lowering) -> None:
    """Convolution, followed by one nest with one operation per element. This nest adds input 3 (if given) and applies
    the activation. The nest is left out if there is neither an input 3 nor an activation."""
    summed = [op.input(3)] if op.has_input(3) else []
    if not summed and not op.node.has("activation"):
        _add_conv(op, op.output())
        return
    result = op.temporary("conv", op.output_shape(), op.output())
    if _add_conv(op, result, "conv"):
        elementwise(
            op, op.output(), [result, *summed], part="activation", operator_type=op.node.text("activation", "Add")
        )


def _add_conv(op: Lowering, target: str, part: str = "") -> bool:
    """Add the nest of the convolution, with `target` as its output tensor. Returns False if the operator is
    unsupported.
    """
    weight = 3 if op.node.proto.op_type == "QLinearConv" else 1
    geometry = _geometry(op)
    if len(geometry.kernel) > _MOST_AXES:
        op.unsupported(f"a convolution over more than {_MOST_AXES} axes is not modelled")
        return False
    tensors = {"O": target, "W": op.input(weight), "I": op.input()}
    output, kernel, window = conv_accesses(geometry, tensors)
    if _is_channels_last(op):
        output, window = (replace(one, axes=(one.axes[0], *one.axes[2:], one.axes[1])) for one in (output, window))
    layer = None
    if len(geometry.kernel) <= _AXES_OF_LAYER:
        roles = OperandRoles(0, weight, constant_operands(op, tensors), ())
        layer = with_tensor_precision(op, conv_layer(op.node, geometry, roles, op.profile), tensors)
    op.nest(
        conv_loops(geometry),
        output,
        {"W": kernel, "I": window},
        others=_beside(op, geometry),
        unit=MAC_ARRAY,
        part=part,
        layer=layer,
    )
    declare_padding(op, tensors["I"], tensors["W"])
    return True


def conv_loops(geometry: ConvGeometry) -> Loops:
    """Loops and sizes in the order of zigzag-dse: B, K, G, OX, OY, C, FX, FY. If there is a single axis, OY and FY
    have size 1.
    """
    letters = spatial_names(len(geometry.kernel))
    outer = {f"O{letter}": size for letter, size in zip(letters, geometry.out_size, strict=True)}
    inner = {f"F{letter}": size for letter, size in zip(letters, geometry.kernel, strict=True)}
    present = ("X", "Y", "Z")[: max(len(letters), _AXES_OF_LAYER)]
    return (
        ("B", geometry.batch),
        ("K", geometry.out_channels // geometry.groups),
        ("G", geometry.groups),
        *((f"O{letter}", outer.get(f"O{letter}", 1)) for letter in present),
        ("C", geometry.in_channels // geometry.groups),
        *((f"F{letter}", inner.get(f"F{letter}", 1)) for letter in present),
    )


def conv_accesses(geometry: ConvGeometry, tensors: dict[str, str]) -> tuple[TensorAccess, TensorAccess, TensorAccess]:
    """Accesses to the output, the weights and the input of a convolution. `tensors` has their names under the keys O,
    W and I.
    """
    letters = spatial_names(len(geometry.kernel))
    channels = split_axis("G", geometry.out_channels // geometry.groups, "K")
    sources = split_axis("G", geometry.in_channels // geometry.groups, "C")
    windows = [
        affine((f"O{letter}", stride), (f"F{letter}", dilation), offset=-before)
        for letter, dilation, stride, before in zip(
            letters, geometry.dilations, geometry.strides, geometry.pads_before, strict=True
        )
    ]
    return (
        access(tensors["O"], "B", channels, *(f"O{letter}" for letter in letters)),
        access(tensors["W"], channels, "C", *(f"F{letter}" for letter in letters)),
        access(tensors["I"], "B", sources, *windows),
    )


def _geometry(op: Lowering) -> ConvGeometry:
    known = op.graph.tensors
    shapes = {name: known[name].shape for name in (*op.node.inputs, op.output()) if name in known}
    if _is_channels_last(op):
        for name in (op.input(), op.output()):
            shapes[name] = (shapes[name][0], shapes[name][-1], *shapes[name][1:-1])
    return conv_geometry(op.node, shapes)


def _is_channels_last(op: Lowering) -> bool:
    return op.node.proto.domain == CONTRIB_DOMAIN and has_channels_last(op.node.proto)


def _beside(op: Lowering, geometry: ConvGeometry) -> list[TensorAccess]:
    """Accesses to the inputs that are read at no cost: the bias, the scales and the zero points. A scale or zero point
    that is a constant of one element is left out.
    """
    kind = op.node.proto.op_type
    bias = {"Conv": 2, "FusedConv": 2, "NhwcConv": 2, "NhwcFusedConv": 2, "QLinearConv": 8}.get(kind)
    scales = {"QLinearConv": (1, 2, 4, 5, 6, 7), "ConvInteger": (2, 3)}.get(kind, ())
    channel = split_axis("G", geometry.out_channels // geometry.groups, "K")
    accesses = scale_accesses(op, scales, channel, geometry.out_channels)
    if bias is not None and op.has_input(bias):
        accesses.append(bias_access(op, bias, channel, geometry.out_channels))
    return accesses


def bias_access(op: Lowering, index: int, channel: AxisIndex, channels: int) -> TensorAccess:
    """Access to a bias with one value per channel. Raises InputError if the bias has another shape."""
    if op.input_shape(index) != (channels,):
        raise op.node.error("wrong shape of the bias", str(list(op.input_shape(index))), f"[{channels}]")
    return TensorAccess(op.input(index), (channel,))


@lowers("DeformConv")
def lower_deformable_conv(op: Lowering) -> None:
    """Convolution that samples its input at positions from another input. The operator costs as much as a Conv; the
    interpolation costs nothing.

    Each sample depends on the whole image of its channel, on its own offset and on its own mask. Raises InputError if
    attributes or shapes do not fit together.
    """
    geometry = _geometry_of_deformable(op)
    letters = spatial_names(len(geometry.kernel))
    batch, channels = geometry.batch, geometry.in_channels
    samples = op.temporary("samples", (batch, channels, *geometry.kernel, *geometry.out_size), op.input())
    _sample(op, geometry, samples)
    tensors = {"O": op.output(), "W": op.input(1), "I": op.input()}
    output, kernel, window = conv_accesses(geometry, tensors)
    sources = split_axis("G", channels // geometry.groups, "C")
    places = [f"F{letter}" for letter in letters] + [f"O{letter}" for letter in letters]
    channel = split_axis("G", geometry.out_channels // geometry.groups, "K")
    op.nest(
        conv_loops(geometry),
        output,
        {"W": kernel, "I": access(samples, "B", sources, *places)},
        others=[bias_access(op, 3, channel, geometry.out_channels)] if op.has_input(3) else (),
        unit=MAC_ARRAY,
        costed={"I": window},
    )
    op.approximated("deformable convolution: the interpolation has no cost, and a sample can depend on the whole image")


def _geometry_of_deformable(op: Lowering) -> ConvGeometry:
    data, weights, out = op.input_shape(), op.input_shape(1), op.output_shape()
    axes = len(data) - 2
    if not 1 <= axes <= _MOST_AXES or len(weights) != len(data) or len(out) != len(data):
        raise op.node.error(
            "wrong ranks of input, weights and output", f"{len(data)}, {len(weights)}, {len(out)}", "equal"
        )
    pads = op.node.integers("pads", (0,) * (2 * axes))
    strides, dilations = (op.node.integers(name, (1,) * axes) for name in ("strides", "dilations"))
    if len(pads) != 2 * axes or len(strides) != axes or len(dilations) != axes:
        raise op.node.error(
            "wrong attributes pads, strides and dilations", "", f"{2 * axes}, {axes} and {axes} integers"
        )
    groups = op.node.integer("group", 1)
    if out[0] != data[0]:
        raise op.node.error("input and output batch differ", f"{data[0]} and {out[0]}")
    if groups < 1 or data[1] != weights[1] * groups or weights[0] != out[1] or out[1] % groups:
        raise op.node.error("channels do not fit", f"input {data[1]}, weights {list(weights[:2])}, group {groups}")
    return ConvGeometry(
        batch=data[0],
        groups=groups,
        in_channels=data[1],
        out_channels=out[1],
        in_size=data[2:],
        out_size=out[2:],
        kernel=weights[2:],
        strides=strides,
        dilations=dilations,
        pads_before=pads[:axes],
        pads_after=pads[axes:],
    )


def _sample(op: Lowering, geometry: ConvGeometry, samples: str) -> None:
    """Add the move that gathers the samples from the image. The samples also depend on the offsets and the mask. The
    tensor of samples, `samples`, has the axes [batch, channel, kernel positions ..., output positions ...].
    """
    letters = spatial_names(len(geometry.kernel))
    taps = [(f"F{letter}", size) for letter, size in zip(letters, geometry.kernel, strict=True)]
    places = [(f"O{letter}", size) for letter, size in zip(letters, geometry.out_size, strict=True)]
    image = [(f"I{letter}", size) for letter, size in zip(letters, geometry.in_size, strict=True)]
    offset_groups = op.node.integer("offset_group", 1)
    if offset_groups < 1 or geometry.in_channels % offset_groups:
        raise op.node.error(
            "wrong attribute 'offset_group'", str(offset_groups), f"a divisor of {geometry.in_channels}"
        )
    each = geometry.in_channels // offset_groups
    loops = (("B", geometry.batch), ("G", offset_groups), ("C", each), *taps, *places)
    names = [name for name, _ in (*taps, *places)]
    sample = access(samples, "B", split_axis("G", each, "C"), *names)
    whole = access(op.input(), "B", split_axis("G", each, "C"), *(name for name, _ in image))
    maps = [IndexMap((*loops, *image), sample, whole, is_exact=False)]
    for index, values in ((2, len(letters)), (4, 1)):
        if op.has_input(index):
            size = offset_groups * math.prod(geometry.kernel) * values
            expected = (geometry.batch, size, *geometry.out_size)
            if op.input_shape(index) != expected:
                raise op.node.error(
                    f"wrong shape of input {index}", str(list(op.input_shape(index))), str(list(expected))
                )
            axis = _flat_axis([("G", offset_groups), *taps, ("D", values)])
            read = access(op.input(index), "B", axis, *(name for name, _ in places))
            maps.append(IndexMap((*loops, ("D", values)), sample, read, is_exact=False))
    op.move(*maps, part="sample", operator_type="GridSample")


def _flat_axis(loops: list[tuple[str, int]]) -> AxisIndex:
    """Row-major position in the box that `loops` span. `loops` has pairs (name, size), with the outermost loop
    first.
    """
    terms, step = [], 1
    for name, size in reversed(loops):
        terms.append((name, step))
        step *= size
    return AxisIndex(tuple(reversed(terms)))


__all__ = ["bias_access", "conv_accesses", "conv_loops", "lower_conv", "lower_deformable_conv", "spatial_names"]
