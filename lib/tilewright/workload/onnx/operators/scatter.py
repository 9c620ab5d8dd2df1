"""Operators that write at places which a tensor of indices says.

An element comes from its update or, where nothing was written, from the data: exactly with constant indices, from
either with others.
"""

import math

import numpy as np

from tilewright.workload.access import IndexMap, affine
from tilewright.workload.onnx.index_maps import Ends, Stride, grid_map, strided_map
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.operators.gather import Integers, grid_places, index_tuples, indices_of, pieces_or_none
from tilewright.workload.onnx.operators.movement import (
    ends_of,
    move_all,
    move_superset,
    normal_axis,
    permuted_strides,
    shape_error,
    whole_map_of,
)

_MOST_PLACES = 1 << 19
"""Scatters into more places are not followed place by place."""
_REDUCTIONS = ("none", "add", "mul", "max", "min")


@lowers("Scatter", "ScatterElements")
def lower_scatter_elements(op: Lowering) -> None:
    """Update elements go to their own place in the data, with the index along one axis replaced."""
    shape, picked, updates = (op.input_shape(number) for number in range(3))
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    if picked != updates or len(picked) != len(shape) or op.output_shape() != shape:
        raise op.node.error("data, indices and updates do not fit together", f"{shape}, {picked} and {updates}")
    chosen = indices_of(op, 1, shape[axis])
    if chosen is not None and math.prod(shape) <= _MOST_PLACES:
        targets = grid_places(picked)
        targets[..., axis] = chosen.reshape(picked)
        if _scatter_pieces(op, targets, len(shape)):
            return
    _say_superset(op, f"along axis {axis}")
    strides = [Stride(size, {} if n == axis else {n: 1}, {n: 1}) for n, size in enumerate(picked)]
    strides.append(Stride(shape[axis], {axis: 1}))
    maps = [_data_map(op)]
    maps += [strided_map(ends_of(op, number), strides, is_exact=False) for number in _computed(op)]
    move_all(op, maps)


@lowers("ScatterND")
def lower_scatter_nd(op: Lowering) -> None:
    """Update slices go to the index tuples in the last axis of the indices."""
    shape, picked, updates = (op.input_shape(number) for number in range(3))
    depth = picked[-1] if picked else 0
    if not 1 <= depth <= len(shape) or updates != picked[:-1] + shape[depth:] or op.output_shape() != shape:
        raise op.node.error("data, indices and updates do not fit together", f"{shape}, {picked} and {updates}")
    targets = index_tuples(op, 1, shape[:depth])
    if targets is not None and math.prod(shape[:depth]) <= _MOST_PLACES and _scatter_pieces(op, targets, depth):
        return
    _say_superset(op, "along the scattered axes")
    outer = len(picked) - 1
    written = [Stride(size, {n: 1}) for n, size in enumerate(shape[:depth])]
    read = [Stride(size, {}, {n: 1}) for n, size in enumerate(picked[:-1])]
    tail = [Stride(size, {depth + n: 1}, {outer + n: 1}) for n, size in enumerate(shape[depth:])]
    maps = [_data_map(op)]
    if 2 in _computed(op):
        maps.append(strided_map(ends_of(op, 2), [*written, *read, *tail], is_exact=False))
    if 1 in _computed(op):
        maps.append(whole_map_of(op, 1))
    move_all(op, maps)


@lowers("TensorScatter")
def lower_tensor_scatter(op: Lowering) -> None:
    """A cache with new entries at places that are known at run time."""
    move_superset(op, "where the update goes is not followed")


@lowers("Col2Im")
def lower_col2im(op: Lowering) -> None:
    """Overlapping blocks are added up in an image: one addition for every element of the columns."""
    shape, output = op.input_shape(), op.output_shape()
    block = op.values(2)
    axes = len(output) - 2
    if block is None or axes < 1 or len(shape) != 3:
        raise op.node.error("the block shape must be a constant, and the columns have three axes", str(list(shape)))
    kernel = tuple(int(size) for size in np.asarray(block).reshape(-1))
    strides = op.node.integers("strides", (1,) * axes)
    dilations = op.node.integers("dilations", (1,) * axes)
    pads = op.node.integers("pads", (0,) * 2 * axes)
    if not len(kernel) == len(strides) == len(dilations) == axes or len(pads) != 2 * axes or min(strides) < 1:
        raise op.node.error("block shape, strides, dilations and pads do not fit the image", str(list(output)))
    counts = [
        (size + pads[n] + pads[n + axes] - dilations[n] * (kernel[n] - 1) - 1) // strides[n] + 1
        for n, size in enumerate(output[2:])
    ]
    if shape[1:] != (output[1] * math.prod(kernel), math.prod(counts)):
        raise shape_error(op, (shape[0], shape[1] // max(math.prod(kernel), 1), *output[2:]))
    outer, inner = [f"O{n}" for n in range(axes)], [f"F{n}" for n in range(axes)]
    loops = [("B", shape[0]), ("C", output[1]), *zip(inner, kernel, strict=True), *zip(outer, counts, strict=True)]
    within = affine(("C", math.prod(kernel)), *_row_major(inner, kernel))
    read = access(op.input(), "B", within, affine(*_row_major(outer, counts)))
    image = [affine((outer[n], strides[n]), (inner[n], dilations[n]), offset=-pads[n]) for n in range(axes)]
    apart = [affine((outer[n], kernel[n]), (inner[n], 1)) for n in range(axes)]
    op.nest(
        loops,
        access(op.output(), "B", "C", *image),
        {"I": read},
        costed={"O": access(op.output(), "B", "C", *apart)},
    )
    if any(size > stride for size, stride in zip(kernel, strides, strict=True)):
        op.approximated("sums of overlapping blocks are costed as if every element of a block were written apart")


def _scatter_pieces(op: Lowering, targets: Integers, depth: int) -> bool:
    """Move data and updates [..., depth] by exact pieces; whether there are few enough of them.

    `targets` are the index tuples into the first `depth` axes of the data, one for every place of the updates.
    """
    data, updates = ends_of(op), ends_of(op, 2)
    shape = data.source_shape
    reduction = op.node.text("reduction", "none")
    if reduction not in _REDUCTIONS:
        raise op.node.error("attribute 'reduction'", reduction, ", ".join(_REDUCTIONS))
    if not targets.size:
        move_all(op, [strided_map(data, permuted_strides(shape))])
        return True
    added = reduction != "none"
    maps = _added_maps(data, updates, targets, depth) if added else _written_maps(data, updates, targets, depth)
    if maps is not None:
        move_all(op, maps)
    return maps is not None


def _added_maps(data: Ends, updates: Ends, targets: Integers, depth: int) -> list[IndexMap] | None:
    """Maps where updates are combined with the data and with one another; None if they would be too many."""
    pieces = pieces_or_none(targets)
    if pieces is None:
        return None
    outer = targets.ndim - 1
    swapped = Ends(updates.source, updates.source_shape, updates.output, updates.output_shape)
    rest = [Stride(size, {outer + n: 1}, {depth + n: 1}) for n, size in enumerate(data.source_shape[depth:])]
    found = [grid_map(swapped, piece, range(outer), range(depth), rest) for piece in pieces]
    return [strided_map(data, permuted_strides(data.source_shape)), *(_swapped(index_map) for index_map in found)]


def _written_maps(data: Ends, updates: Ends, targets: Integers, depth: int) -> list[IndexMap] | None:
    """Maps where updates take the place of the data; None if they would be too many."""
    sizes, rest = data.source_shape[:depth], data.source_shape[depth:]
    outer = targets.ndim - 1
    flat = np.zeros(targets.shape[:-1], dtype=np.int64)
    for axis, size in enumerate(sizes):
        flat = flat * size + targets[..., axis]
    # numpy assigns in order: of several updates of one place the last one stays, as in the reference of ONNX.
    writer = np.full(math.prod(sizes), -1, dtype=np.int64)
    writer[flat.reshape(-1)] = np.arange(flat.size)
    kept = (writer < 0).reshape(sizes)
    origins = np.zeros((len(writer), outer), dtype=np.int64)
    for axis, places in enumerate(np.unravel_index(np.maximum(writer, 0), flat.shape) if outer else ()):
        origins[:, axis] = places
    unwritten = pieces_or_none(grid_places(sizes), kept)
    written = pieces_or_none(origins.reshape(*sizes, outer), ~kept)
    if unwritten is None or written is None:
        return None
    own = [Stride(size, {depth + n: 1}, {depth + n: 1}) for n, size in enumerate(rest)]
    other = [Stride(size, {depth + n: 1}, {outer + n: 1}) for n, size in enumerate(rest)]
    maps = [grid_map(data, piece, range(depth), range(depth), own) for piece in unwritten]
    return maps + [grid_map(updates, piece, range(depth), range(outer), other) for piece in written]


def _swapped(index_map: IndexMap) -> IndexMap:
    return IndexMap(index_map.loops, index_map.input, index_map.output, is_exact=index_map.is_exact)


def _say_superset(op: Lowering, where: str) -> None:
    op.approximated(
        f"the indices are computed at run time or follow no short pattern: dependencies are a superset {where}"
    )


def _data_map(op: Lowering) -> IndexMap:
    return strided_map(ends_of(op), permuted_strides(op.input_shape()), is_exact=False)


def _computed(op: Lowering) -> list[int]:
    """The inputs besides the data that matter: the updates, and indices that are computed at run time."""
    return [number for number in (1, 2) if number == 2 or not op.is_constant(op.input(number))]


def _row_major(names: list[str], sizes: tuple[int, ...] | list[int]) -> list[tuple[str, int]]:
    return [(name, math.prod(sizes[n + 1 :])) for n, name in enumerate(names)]
