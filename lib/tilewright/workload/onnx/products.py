"""Layers of convolutions and matrix products (Gemm, MatMul)."""

import math
from dataclasses import dataclass, replace

from tilewright.base.errors import InputError, Problem
from tilewright.base.profile import ModelProfile
from tilewright.workload.layer import DimensionRelation, Layer
from tilewright.workload.onnx.node import OnnxNode, OperandRoles, Shape, Shapes, precision_bits

WEIGHT_INPUT = {"Conv": 1, "QLinearConv": 3}
"""Index of the input that holds the weights, by operator type."""


@dataclass(frozen=True)
class ConvSizes:
    """Sizes of a convolution or of a transposed convolution.

    Spatial tuples are in ONNX order: (height, width) for two axes, (length,) for one axis.
    """

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    in_size: Shape
    out_size: Shape
    kernel: Shape
    strides: Shape
    dilations: Shape
    pads_before: Shape


@dataclass(frozen=True)
class ConvGeometry(ConvSizes):
    """Sizes of a convolution that is not transposed."""

    pads_after: Shape

    @property
    def mac_count(self) -> int:
        """Number of multiply-accumulates: number of output elements, times the number of products in the sum of one
        element.
        """
        outputs = self.batch * self.out_channels * math.prod(self.out_size)
        return outputs * (self.in_channels // self.groups) * math.prod(self.kernel)

    @property
    def axes_differ(self) -> bool:
        """True if kernel, strides, dilations or padding differ between height and width."""
        tuples = (self.kernel, self.strides, self.dilations, self.pads_before, self.pads_after)
        return any(len(set(values)) > 1 for values in tuples)


def conv_geometry(node: OnnxNode, shapes: Shapes) -> ConvGeometry:
    """Geometry of a convolution with any number of spatial axes. Raises InputError if the sizes do not fit together."""
    weight_input = WEIGHT_INPUT.get(node.proto.op_type, 1)
    data, out = node.input_shape(0, shapes), node.output_shape(shapes)
    if len(data) < 3 or len(out) != len(data):
        raise node.error(
            "a convolution needs input and output of the same rank, 3 or more", f"ranks {len(data)}, {len(out)}"
        )
    axes = len(data) - 2
    weights = shapes.get(node.inputs[weight_input]) if weight_input < len(node.inputs) else None
    kernel = _spatial(node, "kernel_shape", weights[2:] if weights else (), axes)
    geometry = ConvGeometry(
        batch=max(out[0], 1),
        groups=node.integer("group", 1),
        in_channels=data[1],
        out_channels=out[1],
        in_size=data[2:],
        out_size=out[2:],
        kernel=kernel,
        strides=_spatial(node, "strides", (1,) * axes, axes),
        dilations=_spatial(node, "dilations", (1,) * axes, axes),
        pads_before=(0,) * axes,
        pads_after=(0,) * axes,
    )
    _check(node, geometry, data, weights)
    return _with_pads(node, geometry)


def _spatial(node: OnnxNode, attribute: str, default: Shape, axes: int) -> Shape:
    values = node.integers(attribute, default)
    if len(values) != axes or any(value < 1 for value in values):
        raise node.error(f"wrong attribute '{attribute}'", str(list(values)), f"{axes} positive integers")
    return values


def _check(node: OnnxNode, geometry: ConvGeometry, data: Shape, weights: Shape | None) -> None:
    problems: list[Problem] = []
    if max(data[0], 1) != geometry.batch:
        problems += node.error("input and output batch differ", f"{data[0]} and {geometry.batch}").problems
    if min(geometry.out_size) < 1 <= min(geometry.in_channels, geometry.out_channels, *geometry.in_size):
        message = "the kernel is larger than the padded input: there is no output"
        problems += node.error(message, str(list(geometry.out_size))).problems
    elif min(geometry.in_channels, geometry.out_channels, *geometry.in_size, *geometry.out_size) < 1:
        problems += node.error("a tensor of this convolution has an empty or negative dimension").problems
    groups = geometry.groups
    if groups < 1 or geometry.in_channels % groups or geometry.out_channels % groups:
        channels = f"group {groups} with {geometry.in_channels} input and {geometry.out_channels} output channels"
        problems += node.error("'group' must divide the numbers of input and output channels", channels).problems
    elif weights is not None:
        expected = (geometry.out_channels, geometry.in_channels // groups, *geometry.kernel)
        if weights != expected:
            problems += node.error("wrong shape of the weights", str(list(weights)), str(list(expected))).problems
    if problems:
        raise InputError(problems)


def _with_pads(node: OnnxNode, geometry: ConvGeometry) -> ConvGeometry:
    axes = len(geometry.kernel)
    pads = node.integers("pads", (0,) * (2 * axes))
    auto_pad = node.text("auto_pad", "NOTSET")
    if len(pads) != 2 * axes:
        raise node.error("wrong attribute 'pads'", str(list(pads)), f"{2 * axes} integers")
    before, after = pads[:axes], pads[axes:]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
            for out, stride, kernel, dilation, size in zip(
                geometry.out_size, geometry.strides, geometry.kernel, geometry.dilations, geometry.in_size, strict=True
            )
        ]
        small, large = tuple(value // 2 for value in total), tuple(value - value // 2 for value in total)
        before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    elif auto_pad == "VALID":
        before, after = (0,) * axes, (0,) * axes
    return replace(geometry, pads_before=before, pads_after=after)


def conv_layer(node: OnnxNode, geometry: ConvGeometry, roles: OperandRoles, profile: ModelProfile) -> Layer:
    """Layer of a convolution over one or two spatial axes. A single axis is X.

    Dimension order, operand order and precisions are those of zigzag-dse 3.9.1. In zigzag-dse, index 0 of kernel_shape,
    strides, dilations and pads (the height) belongs to X (fault B10, docs/model.md). For two axes, this function does
    the same, unless the switch `profile.onnx_height_is_y` is on. zigzag-dse refuses a convolution over one axis.
    """
    one_axis = len(geometry.kernel) == 1
    exchange = not (profile.onnx_height_is_y or one_axis)

    def of_axes(values: Shape, missing: int) -> tuple[int, int]:
        height, width = (missing, values[0]) if one_axis else values
        return (width, height)

    def of_attributes(values: Shape, missing: int) -> tuple[int, int]:
        x, y = of_axes(values, missing)
        return (y, x) if exchange else (x, y)

    out_x, out_y = of_axes(geometry.out_size, 1)
    in_x, in_y = of_axes(geometry.in_size, 1)
    kernel_x, kernel_y = of_attributes(geometry.kernel, 1)
    stride_x, stride_y = of_attributes(geometry.strides, 1)
    dilation_x, dilation_y = of_attributes(geometry.dilations, 1)
    before_x, before_y = of_attributes(geometry.pads_before, 0)
    after_x, after_y = of_attributes(geometry.pads_after, 0)
    return Layer(
        name=node.name,
        operator_type=node.proto.op_type,
        operand_dimensions=(
            ("O", ("B", "G", "K", "OY", "OX")),
            ("W", ("G", "K", "C", "FY", "FX")),
            ("I", ("B", "G", "C", "IY", "IX")),
        ),
        loop_sizes=(
            ("B", geometry.batch),
            ("K", geometry.out_channels // geometry.groups),
            ("G", geometry.groups),
            ("OX", out_x),
            ("OY", out_y),
            ("C", geometry.in_channels // geometry.groups),
            ("FX", kernel_x),
            ("FY", kernel_y),
        ),
        relations=(
            DimensionRelation("IX", (("OX", stride_x), ("FX", dilation_x))),
            DimensionRelation("IY", (("OY", stride_y), ("FY", dilation_y))),
        ),
        precision_bits=precision_bits(node),
        padding=(("IX", (before_x, after_x)), ("IY", (before_y, after_y))),
        data_dimension_sizes=(("IX", in_x), ("IY", in_y)),
        constant_operands=roles.constant_operands,
    )
