"""Operators that read at places which a tensor of indices says.

Where the indices are constants in the file, every output element has its exact input element, told in affine pieces of
equal steps; where they are computed at run time, an output element may depend on every element that an index can name.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.workload.onnx.affine_pieces import AxisPiece, GridPiece, TooManyPiecesError, axis_pieces, grid_pieces
from tilewright.workload.onnx.index_maps import Stride, grid_map, separable_maps, strided_map
from tilewright.workload.onnx.lowering import Lowering, lowers
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
_MANY = "the indices follow no short pattern"


@lowers("Gather")
def lower_gather(op: Lowering) -> None:
    """Slices along one axis at the places of the indices, whose own axes take the place of that axis."""
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
    op.approximated(f"{_COMPUTED if chosen is None else _MANY}: dependencies are a superset along axis {axis}")
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
    """Every output element reads the data at its own place, with the index along one axis replaced."""
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
    op.approximated(f"{_COMPUTED if chosen is None else _MANY}: dependencies are a superset along axis {axis}")
    strides = [Stride(size, {n: 1}, {} if n == axis else {n: 1}) for n, size in enumerate(picked)]
    maps = [strided_map(ends, [*strides, Stride(shape[axis], {}, {axis: 1})], is_exact=False)]
    if not op.is_constant(indices.source):
        maps.append(strided_map(indices, permuted_strides(picked)))
    move_all(op, maps)


@lowers("GatherND")
def lower_gather_nd(op: Lowering) -> None:
    """Slices at the index tuples in the last axis of the indices, within the leading batch axes."""
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
    op.approximated(f"{_COMPUTED if chosen is None else _MANY}: dependencies are a superset along the gathered axes")
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
    """All places along the new axis depend on the index at the remaining axes, and on both values."""
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
    """The first elements along the time axis in reverse order, as many as the length of the batch entry says."""
    ends = ends_of(op)
    shape = ends.source_shape
    time, batch = op.node.integer("time_axis", 0), op.node.integer("batch_axis", 1)
    if len(shape) < 2 or {time, batch} != {0, 1}:
        raise op.node.error("time_axis and batch_axis must be 0 and 1", f"{time} and {batch}")
    lengths = constant_integers(op, 1)
    if lengths is None:
        op.approximated(
            "the sequence lengths are computed at run time: dependencies are a superset along the time axis"
        )
        strides = [Stride(size, {n: 1}, {} if n == time else {n: 1}) for n, size in enumerate(shape)]
        maps = [strided_map(ends, [*strides, Stride(shape[time], {}, {time: 1})], is_exact=False)]
        if not op.is_constant(op.input(1)):
            lengths_ends = ends_of(op, 1)
            named = [Stride(size, {n: 1}, {0: 1} if n == batch else {}) for n, size in enumerate(shape)]
            maps.append(strided_map(lengths_ends, named, is_exact=False))
        move_all(op, maps)
        return
    if lengths.shape != (shape[batch],) or (lengths < 0).any() or (lengths > shape[time]).any():
        raise op.node.error("sequence_lens", str(lengths.tolist()), f"{shape[batch]} integers 0 to {shape[time]}")
    if shape[time] * shape[batch] > _MOST_INDICES:
        move_superset(op, "the sequences are too many or too long to be followed one by one")
        return
    places = np.broadcast_to(np.arange(shape[time]), (shape[batch], shape[time]))
    turned = np.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    rows = np.broadcast_to(np.arange(shape[batch])[:, None], turned.shape)
    rest = [Stride(size, {n + 2: 1}, {n + 2: 1}) for n, size in enumerate(shape[2:])]
    pieces = pieces_or_none(np.stack([rows, turned], axis=-1))
    if pieces is None:
        move_superset(op, "the sequence lengths follow no short pattern")
        return
    move_all(op, [grid_map(ends, piece, (batch, time), (batch, time), rest) for piece in pieces])


@lowers("Compress")
def lower_compress(op: Lowering) -> None:
    """The slices along an axis (or the elements) whose condition is true."""
    ends = ends_of(op)
    shape = ends.source_shape
    condition = op.values(1)
    if condition is None or (not op.node.has("axis") and len(shape) > 1):
        move_superset(op, "which elements are kept is told element by element or at run time")
        return
    axis = normal_axis(op, op.node.integer("axis", 0), len(shape))
    kept = np.flatnonzero(np.asarray(condition).reshape(-1)[: shape[axis]])
    if len(kept) != ends.output_shape[axis]:
        raise op.node.error(f"the condition keeps {len(kept)} elements, the output has {ends.output_shape[axis]}")
    axes = [[AxisPiece(0, 0, ((size, 1, 1),))] for size in shape]
    try:
        axes[axis] = axis_pieces(kept)
        move_all(op, separable_maps(ends, axes))
    except TooManyPiecesError:
        move_superset(op, _MANY)


# --- parts that scatters use too ----------------------------------------------------------------------------------


def indices_of(op: Lowering, index: int, size: int) -> Integers | None:
    """Constant indices into an axis of `size`, negative ones counted from the end; None if they are not known.

    Indices into an axis of one element are known, whatever computes them. Raises InputError for an index outside.
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
    """Constant index tuples [..., axes] into axes of `sizes`; None if not known. Raises InputError."""
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
    """Affine pieces of index vectors, or None where there would be too many."""
    try:
        return grid_pieces(values, kept)
    except TooManyPiecesError:
        return None


def grid_places(sizes: Sequence[int]) -> Integers:
    """The index tuple of every place of an array of these sizes: [..., axes]."""
    return np.moveaxis(np.indices(tuple(sizes), dtype=np.int64), 0, -1).copy()
