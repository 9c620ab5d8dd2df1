"""Operators that move data along axes, cut pieces out of tensors, or place tensors in larger tensors."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.workload.access import IndexMap
from tilewright.workload.onnx.index_maps import (
    NOWHERE,
    AxisPiece,
    Ends,
    Stride,
    TooManyPiecesError,
    axis_pieces,
    reshape_maps,
    separable_maps,
    strided_map,
)
from tilewright.workload.onnx.lowering import Lowering, lowers, whole_map
from tilewright.workload.onnx.node import Shape


def ends_of(op: Lowering, source: int = 0, output: int = 0) -> Ends:
    """Names and shapes of an output and an input. Raises InputError if the output or the input is missing."""
    read, written = op.input(source), op.output(output)
    return Ends(written, op.shape(written), read, op.shape(read))


def permuted_strides(shape: Shape, order: Sequence[int] | None = None) -> list[Stride]:
    """Strides of a map that copies a tensor of shape `shape` and reorders its axes: one loop for each output axis.
    Output axis i is input axis `order[i]`. Without `order`, the axes keep their order."""
    axes = range(len(shape)) if order is None else order
    return [Stride(shape[source], {axis: 1}, {source: 1}) for axis, source in enumerate(axes)]


def whole_map_of(op: Lowering, source: int, output: int = 0, *, is_exact: bool = False) -> IndexMap:
    """Map in which every element of an output depends on every element of an input."""
    ends = ends_of(op, source, output)
    return whole_map(ends.output, ends.output_shape, ends.source, ends.source_shape, is_exact=is_exact)


def move_all(op: Lowering, maps: Sequence[IndexMap]) -> None:
    """Add a move with these maps. Maps of tensors without elements are left out."""
    op.move(*(index_map for index_map in maps if all(size > 0 for _, size in index_map.loops)))


def move_superset(op: Lowering, reason: str) -> None:
    """Add a move in which every output element depends on every element of the data (input 0) and of the inputs that
    are computed at run time. The operator counts as approximated, with `reason` in its remarks.
    """
    op.approximated(f"{reason}: each result can depend on all elements")
    sources = [number for number in range(len(op.node.inputs)) if op.has_input(number)]
    needed = [number for number in sources if number == 0 or not op.is_constant(op.input(number))]
    outputs = [number for number in range(len(op.node.outputs)) if op.has_output(number)]
    move_all(op, [whole_map_of(op, number, output) for output in outputs for number in needed])


def normal_axis(op: Lowering, axis: int, rank: int) -> int:
    """Number of an axis, counted from the first axis. Raises InputError if the tensor has no such axis."""
    if not -rank <= axis < rank:
        raise op.node.error("the tensor has no such axis", str(axis), f"{-rank} to {rank - 1}")
    return axis % rank


def shape_error(op: Lowering, shape: Shape) -> Exception:
    """InputError for an output of the wrong shape. `shape` is the shape that follows from the inputs. The message gives
    both shapes.
    """
    return op.node.error(
        f"the output has the shape {list(op.output_shape())}, but {list(shape)} follows from the inputs"
    )


def constant_integers(op: Lowering, index: int) -> npt.NDArray[np.int64] | None:
    """Values of an integer input as a one-dimensional array; None if the values are not known."""
    values = op.values(index)
    return None if values is None else np.asarray(values).astype(np.int64).reshape(-1)


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def lower_reshape(op: Lowering) -> None:
    """Reshape, which keeps the row-major order of elements. The output shape is complete: the values 0 and -1 and the
    attribute allowzero are already resolved."""
    maps = reshape_maps(ends_of(op))
    if not all(index_map.is_exact for index_map in maps):
        op.approximated(
            "the axes of the shapes before and after a reshape do not match: a result can depend on several elements"
        )
    op.move(*maps)


@lowers("Transpose")
def lower_transpose(op: Lowering) -> None:
    """Transposition. Output axis i is input axis `perm[i]`. The default is the reverse order of axes."""
    ends = ends_of(op)
    rank = len(ends.source_shape)
    order = op.node.integers("perm", tuple(reversed(range(rank))))
    if sorted(order) != list(range(rank)):
        raise op.node.error("attribute 'perm' must name every axis one time", str(list(order)), f"0 to {rank - 1}")
    if ends.output_shape != tuple(ends.source_shape[axis] for axis in order):
        raise shape_error(op, tuple(ends.source_shape[axis] for axis in order))
    move_all(op, [strided_map(ends, permuted_strides(ends.source_shape, order))])


@lowers("Concat")
def lower_concat(op: Lowering) -> None:
    """Concatenation along an axis. Each input is placed at its exact offset."""
    output = op.output_shape()
    axis = normal_axis(op, op.node.integer("axis", 1), len(output))
    maps, offset = [], 0
    for number in range(len(op.node.inputs)):
        ends = ends_of(op, number)
        shape = ends.source_shape
        if len(shape) != len(output) or shape[:axis] + shape[axis + 1 :] != output[:axis] + output[axis + 1 :]:
            raise op.node.error(f"the shape of '{ends.source}' does not fit the other inputs", str(list(shape)))
        start = [offset if other == axis else 0 for other in range(len(output))]
        maps.append(strided_map(ends, permuted_strides(shape), start))
        offset += shape[axis]
    if offset != output[axis]:
        raise op.node.error(f"the inputs have {offset} elements along axis {axis}, but the output has {output[axis]}")
    move_all(op, maps)


@lowers("Split")
def lower_split(op: Lowering) -> None:
    """Parts of the input along an axis, in the order of the outputs. The output shapes give the sizes of the parts."""
    shape = op.input_shape()
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    maps, offset = [], 0
    for number in range(len(op.node.outputs)):
        if not op.has_output(number):
            raise op.node.error(
                f"output {number} has no name, so its size and the places of the later outputs are not known"
            )
        ends = ends_of(op, 0, number)
        own = ends.output_shape
        if len(own) != len(shape) or own[:axis] + own[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:
            raise op.node.error(
                f"the shape of '{ends.output}' does not follow from the shape {list(shape)} of the input",
                str(list(own)),
            )
        start = [offset if other == axis else 0 for other in range(len(shape))]
        maps.append(strided_map(ends, permuted_strides(own), None, start))
        offset += own[axis]
    if offset != shape[axis]:
        raise op.node.error(f"the outputs have {offset} elements along axis {axis}, but the input has {shape[axis]}")
    move_all(op, maps)


@lowers("Expand")
def lower_expand(op: Lowering) -> None:
    """Expansion, which repeats axes of size 1 and missing leading axes."""
    ends = ends_of(op)
    missing = len(ends.output_shape) - len(ends.source_shape)
    if missing < 0:
        raise shape_error(op, ends.source_shape)
    strides = []
    for axis, size in enumerate(ends.output_shape):
        own = ends.source_shape[axis - missing] if axis >= missing else 1
        if own not in (1, size):
            raise op.node.error(f"axis {axis - missing} of size {own} cannot become {size}")
        strides.append(Stride(size, {axis: 1}, {axis - missing: 1} if own > 1 else {}))
    move_all(op, [strided_map(ends, strides)])


@lowers("Tile")
def lower_tile(op: Lowering) -> None:
    """Repetition of the input along every axis. The number of repetitions follows from the shapes."""
    ends = ends_of(op)
    if len(ends.output_shape) != len(ends.source_shape):
        raise shape_error(op, ends.source_shape)
    strides = []
    for axis, (size, longer) in enumerate(zip(ends.source_shape, ends.output_shape, strict=True)):
        if size and longer % size:
            raise op.node.error(f"axis {axis} of size {size} is not repeated a whole number of times", str(longer))
        if size:
            strides += [Stride(longer // size, {axis: size}), Stride(size, {axis: 1}, {axis: 1})]
    move_all(op, [strided_map(ends, strides)])


@lowers("DepthToSpace", "SpaceToDepth")
def lower_depth_space(op: Lowering) -> None:
    """Lower DepthToSpace or SpaceToDepth, which move data between channels and square blocks of an image. Each operator
    has one exact map. Two loops of the map go over the rows and the columns of a block.
    """
    ends = ends_of(op)
    block = op.node.integer("blocksize", 0)
    if block < 1 or len(ends.source_shape) != 4 or len(ends.output_shape) != 4:
        raise op.node.error("wrong attribute 'blocksize'", str(block), "integer >= 1, with an input of 4 axes")
    to_space = op.node.proto.op_type == "DepthToSpace"
    deep, wide = (ends.source_shape, ends.output_shape) if to_space else (ends.output_shape, ends.source_shape)
    if deep[1] != wide[1] * block * block or deep[2] * block != wide[2] or deep[3] * block != wide[3]:
        raise op.node.error("the shapes do not fit the block size", str(block))
    mode = op.node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise op.node.error("wrong attribute 'mode'", mode, "DCR, CRD")
    row, column, channel = (block * wide[1], wide[1], 1) if mode == "DCR" else (block, 1, block * block)
    sides = [
        (deep[0], {0: 1}, {0: 1}),
        (wide[1], {1: channel}, {1: 1}),
        (deep[2], {2: 1}, {2: block}),
        (block, {1: row}, {2: 1}),
        (deep[3], {3: 1}, {3: block}),
        (block, {1: column}, {3: 1}),
    ]
    strides = [Stride(size, there, here) if to_space else Stride(size, here, there) for size, here, there in sides]
    move_all(op, [strided_map(ends, strides)])


@lowers("Shape", "Size", "Constant", "ConstantOfShape", "EyeLike", "RandomNormal", "RandomUniform")
def lower_source(op: Lowering) -> None:
    """Operator without dependences on elements of an input. Its output depends at most on the shape of the input."""
    op.move()


@lowers("Range")
def lower_range(op: Lowering) -> None:
    """Range: every element depends on start and step."""
    move_all(op, [whole_map_of(op, number, is_exact=False) for number in (0, 2) if not _is_known(op, number)])


def _is_known(op: Lowering, index: int) -> bool:
    return not op.has_input(index) or op.is_constant(op.input(index))


_MOST_INDICES = 1 << 22
"""Largest length of an axis that is padded by reflection or repetition. The elements of such an axis are examined one
by one."""


@lowers("Slice")
def lower_slice(op: Lowering) -> None:
    """Slice along axes. Before opset 10, starts, ends, axes and steps are attributes. Steps can be negative, and ends
    can lie far outside the tensor."""
    ends = ends_of(op)
    shape = ends.source_shape
    chosen = _slice_parameters(op, len(shape))
    if chosen is None:
        move_superset(op, "the start and the end of the slice are not known before run time")
        return
    pieces = [_whole_axis(size) for size in shape]
    sizes = list(shape)
    for axis, first, last, step in chosen:
        places = range(*slice(first, last, step).indices(shape[axis]))
        sizes[axis] = len(places)
        pieces[axis] = [AxisPiece(0, places.start, ((len(places), 1, step),))] if places else []
    if tuple(sizes) != ends.output_shape:
        raise shape_error(op, tuple(sizes))
    move_all(op, separable_maps(ends, pieces))


@lowers("Pad")
def lower_pad(op: Lowering) -> None:
    """Padding of any mode. Negative amounts of padding crop the tensor. Before opset 11, the amounts are attributes."""
    ends = ends_of(op)
    shape = ends.source_shape
    amounts = _pad_amounts(op, len(shape))
    if amounts is None:
        move_superset(op, "the amount of padding is not known before run time")
        return
    mode = op.node.text("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise op.node.error("wrong attribute 'mode'", mode, "constant, reflect, edge, wrap")
    sizes = tuple(size + before + after for size, (before, after) in zip(shape, amounts, strict=True))
    if sizes != ends.output_shape:
        raise shape_error(op, sizes)
    try:
        pieces = [_padded_axis(size, *pads, mode) for size, pads in zip(shape, amounts, strict=True)]
        maps = separable_maps(ends, pieces)
    except TooManyPiecesError:
        move_superset(op, "the padding repeats the input too often for exact dependences")
        return
    if mode == "constant" and op.has_input(2) and not op.is_constant(op.input(2)):
        maps.append(whole_map_of(op, 2))
    move_all(op, maps)


@lowers("CenterCropPad")
def lower_center_crop_pad(op: Lowering) -> None:
    """Crop or padding of every axis at both ends, to the output size. If the number of added or removed elements is
    odd, one element more is added or removed at the end than at the start."""
    ends = ends_of(op)
    axes = []
    for size, own in zip(ends.output_shape, ends.source_shape, strict=True):
        before, cropped = (size - own) // 2 if size > own else 0, (own - size) // 2 if own > size else 0
        axes.append([AxisPiece(before, cropped, ((min(size, own), 1, 1),))])
    move_all(op, separable_maps(ends, axes))


def _whole_axis(size: int) -> list[AxisPiece]:
    return [AxisPiece(0, 0, ((size, 1, 1),))]


def _slice_parameters(op: Lowering, rank: int) -> list[tuple[int, int, int, int]] | None:
    """Tuples (axis, start, end, step) of all sliced axes; None if these numbers are not known. Raises InputError for
    impossible values.
    """
    if op.node.has("starts") or op.node.has("ends"):
        starts, stops = op.node.integers("starts", ()), op.node.integers("ends", ())
        axes, steps = op.node.integers("axes", tuple(range(len(starts)))), (1,) * len(starts)
    else:
        given = [constant_integers(op, number) for number in range(1, 5)]
        if given[0] is None or given[1] is None:
            return None
        if any(op.has_input(number) and given[number - 1] is None for number in (3, 4)):
            return None
        starts, stops = tuple(given[0].tolist()), tuple(given[1].tolist())
        axes = tuple(range(len(starts))) if given[2] is None else tuple(given[2].tolist())
        steps = (1,) * len(starts) if given[3] is None else tuple(given[3].tolist())
    if not len(starts) == len(stops) == len(axes) == len(steps):
        raise op.node.error("starts, ends, axes and steps must have the same length")
    normal = [normal_axis(op, axis, rank) for axis in axes]
    if len(set(normal)) != len(normal):
        raise op.node.error("an axis is sliced twice", str(list(axes)))
    if 0 in steps:
        raise op.node.error("a step is 0", str(list(steps)), "any other integer")
    # For negative steps, an end near the smallest integer means "up to and including the front". Python's slice() has
    # the same rule.
    return list(zip(normal, starts, stops, steps, strict=True))


def _pad_amounts(op: Lowering, rank: int) -> list[tuple[int, int]] | None:
    """Pairs (before, after) of padding for every axis; None if the amounts are not known. Raises InputError for a wrong
    number of amounts.
    """
    axes: Sequence[int] = range(rank)
    if op.has_input(1):
        values = constant_integers(op, 1)
        if values is None or (op.has_input(3) and constant_integers(op, 3) is None):
            return None
        chosen = constant_integers(op, 3)
        axes = axes if chosen is None else [normal_axis(op, int(axis), rank) for axis in chosen]
        pads = tuple(values.tolist())
    else:
        pads = op.node.integers("pads", op.node.integers("paddings", ()))
    if len(pads) != 2 * len(axes):
        raise op.node.error("wrong pads", str(list(pads)), f"{2 * len(axes)} integers")
    amounts = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        amounts[axis] = (pads[place], pads[place + len(axes)])
    return amounts


def _padded_axis(size: int, before: int, after: int, mode: str) -> list[AxisPiece]:
    """Pieces of one padded axis. Negative padding crops the axis. The crop comes first, as in numpy and ONNX: if a mode
    repeats elements, it repeats only elements that remain after the crop."""
    total = size + before + after
    first, kept = max(-before, 0), size + min(before, 0) + min(after, 0)
    if mode == "constant" or (before <= 0 and after <= 0):
        return [AxisPiece(max(before, 0), first, ((kept, 1, 1),))] if kept > 0 else []
    if total > _MOST_INDICES:
        raise TooManyPiecesError
    if kept < 1:
        return axis_pieces([NOWHERE] * total)
    places = np.arange(total, dtype=np.int64) - max(before, 0)
    if mode == "edge":
        places = np.clip(places, 0, kept - 1)
    elif mode == "wrap":
        places %= kept
    elif kept == 1:
        places[:] = 0
    else:
        period = 2 * (kept - 1)
        places = (kept - 1) - np.abs(places % period - (kept - 1))
    return axis_pieces(places + first)
