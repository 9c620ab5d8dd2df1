"""Operators that cut pieces out of tensors or put tensors into larger ones: slices, padding, cropping."""

from collections.abc import Sequence

import numpy as np

from tilewright.workload.onnx.affine_pieces import NOWHERE, AxisPiece, TooManyPiecesError, axis_pieces
from tilewright.workload.onnx.index_maps import separable_maps
from tilewright.workload.onnx.lowering import Lowering, lowers
from tilewright.workload.onnx.operators.movement_parts import (
    constant_integers,
    ends_of,
    move_all,
    move_superset,
    normal_axis,
    shape_error,
    whole_map_of,
)

_MOST_INDICES = 1 << 22
"""Axes longer than this are not padded by reflection or repetition element by element."""


@lowers("Slice")
def lower_slice(op: Lowering) -> None:
    """Starts, ends, axes and steps are attributes before opset 10; steps may be negative, ends far outside."""
    ends = ends_of(op)
    shape = ends.source_shape
    chosen = _slice_parameters(op, len(shape))
    if chosen is None:
        move_superset(op, "where the slice starts and ends is not known before run time")
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
    """Padding of any mode; negative amounts crop. Amounts and axes are attributes before opset 11."""
    ends = ends_of(op)
    shape = ends.source_shape
    amounts = _pad_amounts(op, len(shape))
    if amounts is None:
        move_superset(op, "how much is padded is not known before run time")
        return
    mode = op.node.text("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise op.node.error("attribute 'mode'", mode, "constant, reflect, edge, wrap")
    sizes = tuple(size + before + after for size, (before, after) in zip(shape, amounts, strict=True))
    if sizes != ends.output_shape:
        raise shape_error(op, sizes)
    try:
        pieces = [_padded_axis(size, *pads, mode) for size, pads in zip(shape, amounts, strict=True)]
        maps = separable_maps(ends, pieces)
    except TooManyPiecesError:
        move_superset(op, "the padding repeats the input too often to be told piece by piece")
        return
    if mode == "constant" and op.has_input(2) and not op.is_constant(op.input(2)):
        maps.append(whole_map_of(op, 2))
    move_all(op, maps)


@lowers("CenterCropPad")
def lower_center_crop_pad(op: Lowering) -> None:
    """Every axis is cropped or padded at both ends until it has its size in the output; an odd rest is at the end."""
    ends = ends_of(op)
    axes = []
    for size, own in zip(ends.output_shape, ends.source_shape, strict=True):
        before, cropped = (size - own) // 2 if size > own else 0, (own - size) // 2 if own > size else 0
        axes.append([AxisPiece(before, cropped, ((min(size, own), 1, 1),))])
    move_all(op, separable_maps(ends, axes))


def _whole_axis(size: int) -> list[AxisPiece]:
    return [AxisPiece(0, 0, ((size, 1, 1),))]


def _slice_parameters(op: Lowering, rank: int) -> list[tuple[int, int, int, int]] | None:
    """(axis, start, end, step) for every sliced axis; None if unknown. Raises InputError for those that cannot be."""
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
        raise op.node.error("a step of 0", str(list(steps)), "any other integer")
    # An end of the smallest integers means "to the front, included" for negative steps, as slice() has it too.
    return list(zip(normal, starts, stops, steps, strict=True))


def _pad_amounts(op: Lowering, rank: int) -> list[tuple[int, int]] | None:
    """(before, after) for every axis, None if unknown. Raises InputError for amounts of a wrong length."""
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
        raise op.node.error("pads", str(list(pads)), f"{2 * len(axes)} integers")
    amounts = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        amounts[axis] = (pads[place], pads[place + len(axes)])
    return amounts


def _padded_axis(size: int, before: int, after: int, mode: str) -> list[AxisPiece]:
    """Pieces of one axis. Cropping comes first, so that what is repeated is what is left, as in numpy and ONNX."""
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
