"""Pooling on the vector unit: windows over one to three spatial axes, and whole images.

A pool needs one operation per element of every window. Elements in the padding are counted too. The division of an
average and the root of an Lp pool count as part of the last operation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, IndexMap, affine, fixed
from tilewright.workload.onnx.lowering import Lowering, access, lowers, whole_map
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.resolution.custom import CONTRIB_DOMAIN, has_channels_last

_SPATIAL_NAMES = {1: "X", 2: "YX", 3: "ZYX"}
_SAMPLES_PER_BIN = 4


@dataclass(frozen=True)
class PoolWindows:
    """Windows of a pool, in ONNX order of the spatial axes."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    pads_before: Shape


def pool_windows(op: Lowering) -> PoolWindows:
    """Windows that the attributes give. Raises InputError for wrong numbers of axes, and for sizes below 1."""
    data, output = (channels_second(op, shape) for shape in (op.input_shape(), op.output_shape()))
    axes = len(data) - 2
    if axes not in _SPATIAL_NAMES or len(output) != len(data):
        allowed = "the same rank, 3 to 5"
        raise op.node.error("wrong ranks of the input and output of a pool", f"{len(data)}, {len(output)}", allowed)
    kernel = op.node.positive_integers("kernel_shape", (), axes)
    strides = op.node.positive_integers("strides", (1,) * axes, axes)
    dilations = op.node.positive_integers("dilations", (1,) * axes, axes)
    pads = op.node.integers("pads", (0,) * (2 * axes))
    if len(pads) != 2 * axes:
        raise op.node.error("wrong attribute 'pads'", str(list(pads)), f"{2 * axes} integers")
    before = pads[:axes]
    auto_pad = op.node.text("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        before = (0,) * axes
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        sizes = zip(output[2:], strides, kernel, dilations, data[2:], strict=True)
        total = [
            max((out - 1) * stride + (size - 1) * dilation + 1 - given, 0)
            for out, stride, size, dilation, given in sizes
        ]
        before = tuple(value // 2 if auto_pad == "SAME_UPPER" else value - value // 2 for value in total)
    return PoolWindows(kernel, strides, dilations, before)


def channels_second(op: Lowering, shape: Shape) -> Shape:
    """Shape with the channels as the second axis, as in the standard. If the operator has the channels last, the last
    axis becomes the second.
    """
    return (shape[0], shape[-1], *shape[1:-1]) if _is_channels_last(op) and len(shape) > 2 else shape


def _in_order(op: Lowering, axes: Sequence[AxisIndex | str]) -> list[AxisIndex | str]:
    """Indices along the axes, in the order of the operator's tensors. `axes` has the channels as the second axis. If
    the operator has the channels last, the channels are the last axis of the result.
    """
    return [axes[0], *axes[2:], axes[1]] if _is_channels_last(op) else list(axes)


def _is_channels_last(op: Lowering) -> bool:
    return op.node.proto.domain == CONTRIB_DOMAIN and has_channels_last(op.node.proto)


@lowers("MaxPool", "AveragePool", "LpPool")
@lowers("NhwcMaxPool", "QLinearAveragePool", domain="com.microsoft")
def lower_pool(op: Lowering) -> None:
    """Loop nest of a pooling operator. With two spatial axes, the loops are B, K, OY, OX, FY, FX. With one spatial
    axis, OY and FY are missing. With three spatial axes, OZ and FZ are added. The second output of a MaxPool, with
    indices, has the same dependences as the first.

    Windows that reach beyond the image (padding, `ceil_mode`) depend only on the elements inside the image.
    """
    windows = pool_windows(op)
    spatial = _SPATIAL_NAMES[len(windows.kernel)]
    output = channels_second(op, op.output_shape())
    loops = [("B", output[0]), ("K", output[1])]
    loops += [(f"O{name}", size) for name, size in zip(spatial, output[2:], strict=True)]
    loops += [(f"F{name}", size) for name, size in zip(spatial, windows.kernel, strict=True)]
    places = zip(spatial, windows.strides, windows.dilations, windows.pads_before, strict=True)
    read: list[AxisIndex] = [
        affine((f"O{name}", stride), (f"F{name}", dilation), offset=-pad) for name, stride, dilation, pad in places
    ]
    source = access(op.input(), *_in_order(op, ["B", "K", *read]))
    written = _in_order(op, ["B", "K", *(f"O{name}" for name in spatial)])
    op.nest(loops, access(op.output(), *written), {"I": source})
    if op.node.proto.op_type == "MaxPool" and op.has_output(1):
        op.move(IndexMap(tuple(loops), access(op.output(1), *written), source), part="indices")


@lowers("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
@lowers("QLinearGlobalAveragePool", domain="com.microsoft")
def lower_global_pool(op: Lowering) -> None:
    """Pool of whole images, as one nest with loops B, K and one loop for each spatial axis (FY, FX, ...). Each output
    depends on all elements of one channel of one image.
    """
    data = channels_second(op, op.input_shape())
    spatial = _SPATIAL_NAMES.get(len(data) - 2) or [str(axis) for axis in range(len(data) - 2)]
    names = ["B", "K", *(f"F{name}" for name in spatial)]
    op.nest(
        tuple(zip(names, data, strict=True)),
        access(op.output(), *_in_order(op, ["B", "K", *(fixed(0) for _ in spatial)])),
        {"I": access(op.input(), *_in_order(op, names))},
    )


@lowers("MaxUnpool")
def lower_max_unpool(op: Lowering) -> None:
    """Unpooling with one operation per element of the input. The position of an element in the output is known only at
    run time.
    """
    placed = op.temporary("placed", op.input_shape(), op.input())
    elementwise(op, placed, [op.input(0), op.input(1)], part="placed")
    op.move(whole_map(op.output(), op.output_shape(), placed, op.input_shape()), part="scattered")
    op.approximated(
        "MaxUnpool places elements at indices that are known only at run time: each output can depend on all elements"
    )


@lowers("RoiAlign", "MaxRoiPool")
def lower_regions(op: Lowering) -> None:
    """Pooling of regions: samples are gathered for every region, and each sample needs one operation.

    A bin of RoiAlign has `sampling_ratio` * `sampling_ratio` positions, with four samples (the interpolated pixels) at
    each position. Without `sampling_ratio`, the true number of positions depends on the region; a bin then counts as
    four samples. A bin of MaxRoiPool also counts as four samples.
    """
    shape = op.output_shape()
    ratio = op.node.integer("sampling_ratio", 0)
    count = 4 * ratio * ratio if ratio > 0 else _SAMPLES_PER_BIN
    samples = op.temporary("samples", (*shape, count), op.input())
    loops = (("B", shape[0]), ("K", shape[1]), ("OY", shape[2]), ("OX", shape[3]), ("F", count))
    gathered = access(samples, "B", "K", "OY", "OX", "F")
    images, _, height, width = op.input_shape()
    image_loops = (*loops, ("N", images), ("IY", height), ("IX", width))
    maps = [IndexMap(image_loops, gathered, access(op.input(), "N", "K", "IY", "IX"), is_exact=False)]
    corner_loops = (*loops, ("R", op.input_shape(1)[1]))
    maps.append(IndexMap(corner_loops, gathered, access(op.input(1), "B", "R"), is_exact=False))
    if op.has_input(2):
        maps.append(IndexMap(loops, gathered, access(op.input(2), "B"), is_exact=False))
    op.move(*maps, part="samples")
    op.nest(loops, access(op.output(), "B", "K", "OY", "OX"), {"I": gathered})
    op.approximated(
        "the pixels that a region reads are known only at run time: the region can depend on the whole channel"
    )
