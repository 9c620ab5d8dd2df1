"""Operators that only move data along axes: reshapes, transpositions, concatenation, splitting, repetition."""

from tilewright.workload.onnx.index_maps import Stride, reshape_maps, strided_map
from tilewright.workload.onnx.lowering import Lowering, lowers
from tilewright.workload.onnx.operators.movement_parts import (
    ends_of,
    move_all,
    normal_axis,
    permuted_strides,
    shape_error,
    whole_map_of,
)


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def lower_reshape(op: Lowering) -> None:
    """Elements keep their row-major order; the shapes say the rest (0, -1 and allowzero are resolved in them)."""
    maps = reshape_maps(ends_of(op))
    if not all(index_map.is_exact for index_map in maps):
        op.approximated("the axes of the shapes before and after do not fit together: dependencies are a superset")
    op.move(*maps)


@lowers("Transpose")
def lower_transpose(op: Lowering) -> None:
    """Output axis i is input axis perm[i]; by default in reverse order."""
    ends = ends_of(op)
    rank = len(ends.source_shape)
    order = op.node.integers("perm", tuple(reversed(range(rank))))
    if sorted(order) != list(range(rank)):
        raise op.node.error("attribute 'perm' must name every axis once", str(list(order)), f"0 to {rank - 1}")
    if ends.output_shape != tuple(ends.source_shape[axis] for axis in order):
        raise shape_error(op, tuple(ends.source_shape[axis] for axis in order))
    move_all(op, [strided_map(ends, permuted_strides(ends.source_shape, order))])


@lowers("Concat")
def lower_concat(op: Lowering) -> None:
    """The inputs one after the other along an axis, each at its exact offset."""
    output = op.output_shape()
    axis = normal_axis(op, op.node.integer("axis", 1), len(output))
    maps, offset = [], 0
    for number in range(len(op.node.inputs)):
        ends = ends_of(op, number)
        shape = ends.source_shape
        if len(shape) != len(output) or shape[:axis] + shape[axis + 1 :] != output[:axis] + output[axis + 1 :]:
            raise op.node.error(f"the shape of '{ends.source}' does not fit beside the others", str(list(shape)))
        start = [offset if other == axis else 0 for other in range(len(output))]
        maps.append(strided_map(ends, permuted_strides(shape), start))
        offset += shape[axis]
    if offset != output[axis]:
        raise op.node.error(f"the inputs have {offset} elements along axis {axis}, the output {output[axis]}")
    move_all(op, maps)


@lowers("Split")
def lower_split(op: Lowering) -> None:
    """Every output is the part of the input that follows the outputs before it; their shapes say how much."""
    shape = op.input_shape()
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    maps, offset = [], 0
    for number in range(len(op.node.outputs)):
        if not op.has_output(number):
            raise op.node.error(f"output {number} has no name: what it takes of the input is not known")
        ends = ends_of(op, 0, number)
        own = ends.output_shape
        if len(own) != len(shape) or own[:axis] + own[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:
            raise op.node.error(f"the shape of '{ends.output}' does not follow from {list(shape)}", str(list(own)))
        start = [offset if other == axis else 0 for other in range(len(shape))]
        maps.append(strided_map(ends, permuted_strides(own), None, start))
        offset += own[axis]
    if offset != shape[axis]:
        raise op.node.error(f"the outputs have {offset} elements along axis {axis}, the input {shape[axis]}")
    move_all(op, maps)


@lowers("Expand")
def lower_expand(op: Lowering) -> None:
    """Axes of size 1 and axes that are missing in front are repeated."""
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
    """The input, repeated along every axis; the shapes say how often."""
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
    """Blocks of space become channels or the other way round: block rows, block columns and channels as loops."""
    ends = ends_of(op)
    block = op.node.integer("blocksize", 0)
    if block < 1 or len(ends.source_shape) != 4 or len(ends.output_shape) != 4:
        raise op.node.error("attribute 'blocksize'", str(block), "integer >= 1, with an input of 4 axes")
    to_space = op.node.proto.op_type == "DepthToSpace"
    deep, wide = (ends.source_shape, ends.output_shape) if to_space else (ends.output_shape, ends.source_shape)
    if deep[1] != wide[1] * block * block or deep[2] * block != wide[2] or deep[3] * block != wide[3]:
        raise op.node.error("the shapes do not fit the block size", str(block))
    mode = op.node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise op.node.error("attribute 'mode'", mode, "DCR, CRD")
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
    """No element of the output depends on an element of an input, at most on its shape."""
    op.move()


@lowers("Range")
def lower_range(op: Lowering) -> None:
    """Start and step reach every element."""
    move_all(op, [whole_map_of(op, number, is_exact=False) for number in (0, 2) if not _is_known(op, number)])


def _is_known(op: Lowering, index: int) -> bool:
    return not op.has_input(index) or op.is_constant(op.input(index))
