"""Operators that read or write at positions given by a tensor of indices."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.workload.access import IndexMap, affine
from tilewright.workload.onnx.index_maps import (
    AxisPiece,
    Ends,
    GridPiece,
    Stride,
    TooManyPiecesError,
    axis_pieces,
    grid_map,
    grid_pieces,
    separable_maps,
    strided_map,
)
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.operators.movement import (
    constant_integers,
    ends_of,
    move_all,
    move_superset,
    normal_axis,
    permuted_strides,
    shape_error,
    whole_map_of,
)

Integers = npt.NDArray[np.int64]
_MOST_INDICES = 1 << 20
_COMPUTED = "the indices are computed at run time"
_MANY = "the indices have no simple pattern"


@lowers("Gather")
def lower_gather(op: Lowering) -> None:
    """Slices of the data at the given indices along one axis. The axes of the tensor of indices replace this axis."""
    ends, indices = ends_of(op), ends_of(op, 1)
    shape, picked = ends.source_shape, indices.source_shape
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    if ends.output_shape != shape[:axis] + picked + shape[axis + 1 :]:
        raise shape_error(op, shape[:axis] + picked + shape[axis + 1 :])
    front = permuted_strides(shape[:axis])
    shift = len(picked) - 1
    back = [Stride(size, {axis + 1 + n + shift: 1}, {axis + 1 + n: 1}) for n, size in enumerate(shape[axis + 1 :])]
    chosen = indices_of(op, 1, shape[axis])
    pieces = None if chosen is None else pieces_or_none(chosen.reshape(*picked, 1))
    if pieces is not None:
        places = [tuple(axis + n for n in range(len(picked))), (axis,)]
        move_all(op, [grid_map(ends, piece, places[0], places[1], [*front, *back]) for piece in pieces])
        return
    op.approximated(f"{_COMPUTED if chosen is None else _MANY}: each result can depend on the whole axis {axis}")
    own = [Stride(size, {axis + n: 1}) for n, size in enumerate(picked)]
    read = Stride(shape[axis], {}, {axis: 1})
    maps = [strided_map(ends, [*front, *own, read, *back], is_exact=False)]
    if not op.is_constant(indices.source):
        strides = [Stride(size, {axis + n: 1}, {n: 1}) for n, size in enumerate(picked)]
        others = [n for n in range(len(ends.output_shape)) if not axis <= n < axis + len(picked)]
        strides += [Stride(ends.output_shape[n], {n: 1}) for n in others]
        maps.append(strided_map(indices, strides))
    move_all(op, maps)


@lowers("GatherElements")
def lower_gather_elements(op: Lowering) -> None:
    """Lower GatherElements, which reads single elements. The position that is read has the indices of the output
    element, except along one axis: there, the tensor of indices gives the index."""
    ends, indices = ends_of(op), ends_of(op, 1)
    shape, picked = ends.source_shape, indices.source_shape
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    if len(picked) != len(shape) or ends.output_shape != picked:
        raise shape_error(op, picked)
    chosen = indices_of(op, 1, shape[axis])
    pieces = None
    if chosen is not None:
        places = grid_places(picked)
        places[..., axis] = chosen.reshape(picked)
        pieces = pieces_or_none(places)
    axes = tuple(range(len(shape)))
    if pieces is not None:
        move_all(op, [grid_map(ends, piece, axes, axes) for piece in pieces])
        return
    op.approximated(f"{_COMPUTED if chosen is None else _MANY}: each result can depend on the whole axis {axis}")
    strides = [Stride(size, {n: 1}, {} if n == axis else {n: 1}) for n, size in enumerate(picked)]
    maps = [strided_map(ends, [*strides, Stride(shape[axis], {}, {axis: 1})], is_exact=False)]
    if not op.is_constant(indices.source):
        maps.append(strided_map(indices, permuted_strides(picked)))
    move_all(op, maps)


@lowers("GatherND")
def lower_gather_nd(op: Lowering) -> None:
    """Lower GatherND, which copies slices of the data. The last axis of the tensor of indices holds index tuples, and
    each tuple selects one slice. The first `batch_dims` axes are batch axes: a tuple selects a slice of its own batch.
    """
    ends, indices = ends_of(op), ends_of(op, 1)
    shape, picked = ends.source_shape, indices.source_shape
    batch = op.node.integer("batch_dims", 0)
    depth = picked[-1] if picked else 0
    if not (0 <= batch < len(picked) and 1 <= depth <= len(shape) - batch and picked[:batch] == shape[:batch]):
        raise op.node.error("the shape of the indices does not fit the data", str(list(picked)))
    outer = len(picked) - 1
    if ends.output_shape != picked[:-1] + shape[batch + depth :]:
        raise shape_error(op, picked[:-1] + shape[batch + depth :])
    tail = shape[batch + depth :]
    inner = [Stride(size, {outer + n: 1}, {batch + depth + n: 1}) for n, size in enumerate(tail)]
    chosen = index_tuples(op, 1, shape[batch : batch + depth])
    pieces = None
    if chosen is not None:
        batches = grid_places(picked[:-1])[..., :batch]
        pieces = pieces_or_none(np.concatenate([batches, chosen], axis=-1))
    if pieces is not None:
        axes = tuple(range(outer)), tuple(range(batch + depth))
        move_all(op, [grid_map(ends, piece, *axes, inner) for piece in pieces])
        return
    op.approximated(f"{_COMPUTED if chosen is None else _MANY}: each result can depend on all data along the axes")
    strides = [Stride(size, {n: 1}, {n: 1} if n < batch else {}) for n, size in enumerate(picked[:-1])]
    strides += [Stride(shape[n], {}, {n: 1}) for n in range(batch, batch + depth)]
    maps = [strided_map(ends, [*strides, *inner], is_exact=False)]
    if not op.is_constant(indices.source):
        named = [Stride(size, {n: 1}, {n: 1}) for n, size in enumerate(picked[:-1])]
        named += [Stride(depth, {}, {outer: 1}), *(Stride(size, {outer + n: 1}) for n, size in enumerate(tail))]
        maps.append(strided_map(indices, named))
    move_all(op, maps)


@lowers("OneHot")
def lower_one_hot(op: Lowering) -> None:
    """Lower OneHot. The output has the axes of the tensor of indices and one new axis. Each output element depends on
    the index at its position along the other axes. Each output element also depends on the two values to write (off,
    on) if these are computed at run time.
    """
    ends = ends_of(op)
    axis = normal_axis(op, op.node.integer("axis", -1), len(ends.output_shape))
    rest = [n for n in range(len(ends.output_shape)) if n != axis]
    if tuple(ends.output_shape[n] for n in rest) != ends.source_shape:
        raise shape_error(op, ends.source_shape)
    strides = [Stride(ends.output_shape[n], {n: 1}, {place: 1}) for place, n in enumerate(rest)]
    maps = [strided_map(ends, [*strides, Stride(ends.output_shape[axis], {axis: 1})])]
    if not op.is_constant(op.input(2)):
        maps.append(whole_map_of(op, 2, is_exact=True))
    move_all(op, maps)


@lowers("ReverseSequence")
def lower_reverse_sequence(op: Lowering) -> None:
    """Reversal of the first elements along the time axis. In each sequence of the batch, the number of reversed
    elements is the length of the sequence.
    """
    ends = ends_of(op)
    shape = ends.source_shape
    time, batch = op.node.integer("time_axis", 0), op.node.integer("batch_axis", 1)
    if len(shape) < 2 or {time, batch} != {0, 1}:
        raise op.node.error("time_axis and batch_axis must be 0 and 1", f"{time} and {batch}")
    lengths = constant_integers(op, 1)
    if lengths is None:
        op.approximated("the sequence lengths are computed at run time: each result can depend on the whole time axis")
        strides = [Stride(size, {n: 1}, {} if n == time else {n: 1}) for n, size in enumerate(shape)]
        maps = [strided_map(ends, [*strides, Stride(shape[time], {}, {time: 1})], is_exact=False)]
        if not op.is_constant(op.input(1)):
            lengths_ends = ends_of(op, 1)
            named = [Stride(size, {n: 1}, {0: 1} if n == batch else {}) for n, size in enumerate(shape)]
            maps.append(strided_map(lengths_ends, named, is_exact=False))
        move_all(op, maps)
        return
    if lengths.shape != (shape[batch],) or (lengths < 0).any() or (lengths > shape[time]).any():
        raise op.node.error("wrong sequence_lens", str(lengths.tolist()), f"{shape[batch]} integers 0 to {shape[time]}")
    if shape[time] * shape[batch] > _MOST_INDICES:
        move_superset(op, "the sequences are too many or too long for exact dependences")
        return
    places = np.broadcast_to(np.arange(shape[time]), (shape[batch], shape[time]))
    turned = np.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    rows = np.broadcast_to(np.arange(shape[batch])[:, None], turned.shape)
    rest = [Stride(size, {n + 2: 1}, {n + 2: 1}) for n, size in enumerate(shape[2:])]
    pieces = pieces_or_none(np.stack([rows, turned], axis=-1))
    if pieces is None:
        move_superset(op, "the sequence lengths have no simple pattern")
        return
    move_all(op, [grid_map(ends, piece, (batch, time), (batch, time), rest) for piece in pieces])


@lowers("Compress")
def lower_compress(op: Lowering) -> None:
    """Selection by a condition: the result has the slices along an axis, or the single elements, for which the
    condition is true."""
    ends = ends_of(op)
    shape = ends.source_shape
    condition = op.values(1)
    if condition is None or (not op.node.has("axis") and len(shape) > 1):
        move_superset(op, "single elements are kept, or the kept elements are known only at run time")
        return
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    kept = np.flatnonzero(np.asarray(condition).reshape(-1)[: shape[axis]])
    if len(kept) != ends.output_shape[axis]:
        raise op.node.error(f"the condition keeps {len(kept)} elements, but the output has {ends.output_shape[axis]}")
    axes = [[AxisPiece(0, 0, ((size, 1, 1),))] for size in shape]
    try:
        axes[axis] = axis_pieces(kept)
        move_all(op, separable_maps(ends, axes))
    except TooManyPiecesError:
        move_superset(op, _MANY)


# --- functions that scatters use too ------------------------------------------------------------------------------


def indices_of(op: Lowering, index: int, size: int) -> Integers | None:
    """Values of input `index` as indices into an axis of `size` elements, in a one-dimensional array; None if the
    values are not known. Negative indices, which are counted from the end, are converted to indices from the start.

    For an axis of one element, all indices are 0, even if their values are not known. The result is None for more than
    _MOST_INDICES unknown indices. Raises InputError for an index outside the axis.
    """
    values = constant_integers(op, index)
    if values is None:
        count = math.prod(op.input_shape(index))
        return np.zeros(count, dtype=np.int64) if size == 1 and count <= _MOST_INDICES else None
    if values.size and not (-size <= values.min() and values.max() < size):
        raise op.node.error(
            "an index is outside the axis", f"{values.min()} to {values.max()}", f"{-size} to {size - 1}"
        )
    return np.where(values < 0, values + size, values)


def index_tuples(op: Lowering, index: int, sizes: tuple[int, ...]) -> Integers | None:
    """Index tuples of input `index`, as an array of shape (..., axes); None if their values are not known. Negative
    indices are converted, so that each index is in the range 0 to size - 1 of its axis. `sizes` has the sizes of the
    axes that the tuples index. Raises InputError for an index outside its axis.
    """
    values = constant_integers(op, index)
    if values is None:
        return None
    tuples = values.reshape(op.input_shape(index))
    limits = np.array(sizes, dtype=np.int64)
    if ((tuples < -limits) | (tuples >= limits)).any():
        raise op.node.error(
            "an index is outside the data", f"{values.min()} to {values.max()}", f"axes of {list(sizes)}"
        )
    return np.where(tuples < 0, tuples + limits, tuples)


def pieces_or_none(values: Integers, kept: npt.NDArray[np.bool_] | None = None) -> list[GridPiece] | None:
    """Affine pieces of index vectors; None if there are too many."""
    try:
        return grid_pieces(values, kept)
    except TooManyPiecesError:
        return None


def grid_places(sizes: Sequence[int]) -> Integers:
    """Indices of all positions in an array of shape `sizes`: an array of shape (*sizes, number of axes)."""
    return np.moveaxis(np.indices(tuple(sizes), dtype=np.int64), 0, -1).copy()


_MOST_PLACES = 1 << 19
"""Largest number of positions for which a scatter has exact dependences. The indices of the scatter select among these
positions. The number of positions is the product of the sizes of the indexed axes of the data.
"""
_REDUCTIONS = ("none", "add", "mul", "max", "min")


@lowers("Scatter", "ScatterElements")
def lower_scatter_elements(op: Lowering) -> None:
    """Lower ScatterElements, which writes single elements. The position that is written has the indices of the update
    element, except along one axis: there, the tensor of indices gives the index."""
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
    """Lower ScatterND, which writes slices into the data. The last axis of the tensor of indices holds index tuples.
    Each tuple is the position in the data at which one slice of the updates is written.
    """
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
    """Cache into which new entries are written at positions that are known only at run time."""
    move_superset(op, "the position of the update is not known before run time")


@lowers("Col2Im")
def lower_col2im(op: Lowering) -> None:
    """Sum of overlapping blocks in an image. The input has the blocks as columns. Each of its elements needs one
    addition."""
    shape, output = op.input_shape(), op.output_shape()
    block = op.values(2)
    axes = len(output) - 2
    if block is None or axes < 1 or len(shape) != 3:
        raise op.node.error("the block shape must be constant, and the columns must have 3 axes", str(list(shape)))
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
        op.approximated("overlapping blocks are counted with the cost of blocks that do not overlap")


def _scatter_pieces(op: Lowering, targets: Integers, depth: int) -> bool:
    """Add a move from the data and the updates to the output, with exact dependences. Returns False, and adds nothing,
    if too many maps would be needed.

    `targets` has the index tuples into the first `depth` axes of the data: one tuple for every slice that is written.
    """
    data, updates = ends_of(op), ends_of(op, 2)
    shape = data.source_shape
    reduction = op.node.text("reduction", "none")
    if reduction not in _REDUCTIONS:
        raise op.node.error("wrong attribute 'reduction'", reduction, ", ".join(_REDUCTIONS))
    if not targets.size:
        move_all(op, [strided_map(data, permuted_strides(shape))])
        return True
    added = reduction != "none"
    maps = _added_maps(data, updates, targets, depth) if added else _written_maps(data, updates, targets, depth)
    if maps is not None:
        move_all(op, maps)
    return maps is not None


def _added_maps(data: Ends, updates: Ends, targets: Integers, depth: int) -> list[IndexMap] | None:
    """Index maps of a scatter with a reduction. Each output element combines the data element at its position with all
    updates for this position. None if there are too many maps.
    """
    pieces = pieces_or_none(targets)
    if pieces is None:
        return None
    outer = targets.ndim - 1
    swapped = Ends(updates.source, updates.source_shape, updates.output, updates.output_shape)
    rest = [Stride(size, {outer + n: 1}, {depth + n: 1}) for n, size in enumerate(data.source_shape[depth:])]
    found = [grid_map(swapped, piece, range(outer), range(depth), rest) for piece in pieces]
    return [strided_map(data, permuted_strides(data.source_shape)), *(_swapped(index_map) for index_map in found)]


def _written_maps(data: Ends, updates: Ends, targets: Integers, depth: int) -> list[IndexMap] | None:
    """Exact maps of a scatter in which updates replace elements of the data. Positions that an update writes depend on
    the last update for the position. All other positions depend on the data. None if there are too many maps."""
    sizes, rest = data.source_shape[:depth], data.source_shape[depth:]
    outer = targets.ndim - 1
    flat = np.zeros(targets.shape[:-1], dtype=np.int64)
    for axis, size in enumerate(sizes):
        flat = flat * size + targets[..., axis]
    # numpy assigns in order. If several updates write the same position, the last one stays, as in the reference of
    # ONNX.
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
        f"the indices are computed at run time or have no simple pattern: each result can depend on all updates {where}"
    )


def _data_map(op: Lowering) -> IndexMap:
    return strided_map(ends_of(op), permuted_strides(op.input_shape()), is_exact=False)


def _computed(op: Lowering) -> list[int]:
    """Indices of the inputs on which the output of a scatter depends, besides the data input: input 2 (updates), and
    input 1 (indices) if it is computed at run time."""
    return [number for number in (1, 2) if number == 2 or not op.is_constant(op.input(number))]


def _row_major(names: list[str], sizes: tuple[int, ...] | list[int]) -> list[tuple[str, int]]:
    return [(name, math.prod(sizes[n + 1 :])) for n, name in enumerate(names)]
