"""Index maps of operators that move data, made of a small number of affine pieces.

A piece is a box of output positions. Within a piece, the input index is an affine function of the output position. The
maps come from tables of indices, from strides, or from reshapes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from tilewright.workload.access import AxisIndex, IndexMap, Shape, TensorAccess

Integers = npt.NDArray[np.int64]
MOST_PIECES = 4096
"""Largest number of affine pieces that describe the dependences of an operator. If more are needed, one map describes a
superset of the dependences instead. Reshapes have the smaller limit `_MOST_RESHAPE_PIECES`."""
_MOST_PERIODS = 256
_FEW_RUNS = 4
NOWHERE = -1
"""Index that marks an output position that depends on no input element."""


class TooManyPiecesError(Exception):
    """Error that is raised if an operator has too many affine pieces for exact index maps."""


@dataclass(frozen=True)
class GridPiece:
    """Box of positions in an array of index vectors. The vector at a position is `base + sum(steps[axis] * distance)`.
    The distance along an axis is the number of positions from the start of the box."""

    starts: tuple[int, ...]
    """First position along every axis of the array."""
    sizes: tuple[int, ...]
    base: tuple[int, ...]
    """Index vector at the first position."""
    steps: tuple[tuple[int, ...], ...]
    """Change of the index vector from one position to the next, one vector per axis of the array."""


@dataclass(frozen=True)
class AxisPiece:
    """Positions along one output axis and indices along one input axis, both affine in the same loops."""

    output_start: int
    input_start: int
    loops: tuple[tuple[int, int, int], ...]
    """Triples (size, coefficient on the output axis, coefficient on the input axis)."""


def grid_pieces(values: Integers, kept: npt.NDArray[np.bool_] | None = None) -> list[GridPiece]:
    """Affine pieces that cover an array of index vectors [..., component]. A position is in exactly one piece if `kept`
    is true there, and in no piece otherwise. By default, all positions are kept.

    Raises TooManyPiecesError if more than MOST_PIECES pieces are needed.
    """
    values = np.asarray(values, dtype=np.int64)
    kept = np.ones(values.shape[:-1], dtype=bool) if kept is None else kept
    if (values.size == 0 and values.shape[-1] > 0) or not kept.any():
        return []
    if kept.all() and (whole := _whole_piece(values)) is not None:
        return [whole]
    if values.ndim == 1:
        return [GridPiece((), (), tuple(values.tolist()), ())]
    pieces = _runs(values, kept) if values.ndim == 2 else _merged(_pieces_of_rows(values, kept))
    if len(pieces) > MOST_PIECES:
        raise TooManyPiecesError
    return pieces


def axis_pieces(indices: Sequence[int] | Integers) -> list[AxisPiece]:
    """Affine pieces that cover the input index of every position along an output axis. NOWHERE means that a position
    has no input index.

    A pattern that repeats with a constant shift becomes two loops, for example in nearest-neighbour resizing. Raises
    TooManyPiecesError if more than MOST_PIECES pieces are needed.
    """
    values = np.asarray(indices, dtype=np.int64)
    kept = values != NOWHERE
    if not kept.any():
        return []
    first, last = int(kept.argmax()), len(values) - int(kept[::-1].argmax())
    values, kept = values[first:last], kept[first:last]
    runs = _runs(values[:, None], kept)
    best = [_axis_piece(run, first) for run in runs]
    for period in _periods(runs) if len(runs) > _FEW_RUNS else ():
        folded = _folded(values, kept, period, first)
        if folded is not None and len(folded) < len(best):
            best = folded
            break
    if len(best) > MOST_PIECES:
        raise TooManyPiecesError
    return best


def _whole_piece(values: Integers) -> GridPiece | None:
    origin = (0,) * (values.ndim - 1)
    base = values[origin]
    expected = np.broadcast_to(base, values.shape).copy()
    steps = []
    for axis, size in enumerate(values.shape[:-1]):
        step = values[(*origin[:axis], 1, *origin[axis + 1 :])] - base if size > 1 else np.zeros_like(base)
        places = np.arange(size).reshape([size if other == axis else 1 for other in range(values.ndim)])
        expected += places * step
        steps.append(tuple(step.tolist()))
    if not (expected == values).all():
        return None
    return GridPiece(origin, values.shape[:-1], tuple(base.tolist()), tuple(steps))


def _runs(values: Integers, kept: npt.NDArray[np.bool_]) -> list[GridPiece]:
    """Runs of consecutive positions. In a run, `kept` is true, and the index vector changes by a constant step. Each
    run is as long as possible. `values` has the index vector of every position, as an array of shape (positions,
    components).
    """
    pieces: list[GridPiece] = []
    steps = np.diff(values, axis=0)
    kept_places = np.flatnonzero(kept)
    place, count = 0, len(values)
    # `breaks` are the positions where the step changes or a position is not kept. Each run ends at one of them.
    ends = np.append((steps[1:] != steps[:-1]).any(axis=1) | ~kept[2:], True) if count > 1 else np.zeros(0, dtype=bool)
    breaks = np.flatnonzero(ends) + 1
    while place < count:
        if not kept[place]:
            number = int(np.searchsorted(kept_places, place))
            if number == len(kept_places):
                break
            place = int(kept_places[number])
        end = place + 1
        if end < count and kept[end]:
            end = int(breaks[np.searchsorted(breaks, end)]) + 1
        step = steps[place] if end - place > 1 else np.zeros_like(values[0])
        pieces.append(GridPiece((place,), (end - place,), tuple(values[place].tolist()), (tuple(step.tolist()),)))
        place = end
    return pieces


def _pieces_of_rows(values: Integers, kept: npt.NDArray[np.bool_]) -> list[list[GridPiece]]:
    """Affine pieces of each row of `values`.

    A piece has a form: its start positions, its sizes and its steps. Only pieces of the same form can be merged later.
    Raises TooManyPiecesError if the pieces have more than MOST_PIECES different forms.
    """
    rows: list[list[GridPiece]] = []
    forms: set[tuple[object, ...]] = set()
    for place in range(len(values)):
        rows.append(grid_pieces(values[place], kept[place]))
        forms.update((piece.starts, piece.sizes, piece.steps) for piece in rows[-1])
        if len(forms) > MOST_PIECES:
            raise TooManyPiecesError
    return rows


def _merged(rows: list[list[GridPiece]]) -> list[GridPiece]:
    """Pieces of an array, from the pieces of its rows. Pieces of consecutive rows are merged if they differ only in
    their bases, and if the base changes by a constant step from row to row."""
    places: dict[tuple[object, ...], list[tuple[int, GridPiece]]] = {}
    for number, row in enumerate(rows):
        for piece in row:
            places.setdefault((piece.starts, piece.sizes, piece.steps), []).append((number, piece))
    joined = []
    for same in places.values():
        numbers_and_bases = np.array([(number, *piece.base) for number, piece in same], dtype=np.int64)
        for run in _consecutive(numbers_and_bases):
            first = same[run.start][1]
            count = len(run)
            step = numbers_and_bases[run.start + 1] - numbers_and_bases[run.start] if count > 1 else None
            change = tuple(step[1:].tolist()) if step is not None else (0,) * len(first.base)
            start = int(numbers_and_bases[run.start, 0])
            joined.append(GridPiece((start, *first.starts), (count, *first.sizes), first.base, (change, *first.steps)))
    return joined


def _consecutive(rows: Integers) -> Iterator[range]:
    """Ranges of positions along the first axis of `rows`, an array of shape (positions, columns). Column 0 is a row
    number. In a range of two or more positions, column 0 increases by 1 from position to position, and every other
    column changes by a constant step.
    """
    steps = np.diff(rows, axis=0)
    place = 0
    while place < len(rows):
        end = place + 1
        if end < len(rows) and steps[place, 0] == 1:
            while end < len(rows) and (steps[end - 1] == steps[place]).all():
                end += 1
        yield range(place, end)
        place = end


def _axis_piece(run: GridPiece, offset: int) -> AxisPiece:
    return AxisPiece(run.starts[0] + offset, run.base[0], ((run.sizes[0], 1, run.steps[0][0]),))


def _periods(runs: list[GridPiece]) -> list[int]:
    """Possible periods of a pattern of runs: distances between starts of runs, ascending. The distances are measured
    from each of the first three runs, because the first runs of a pattern can differ from later runs.
    """
    starts = [run.starts[0] for run in runs[: _MOST_PERIODS + 1]]
    return sorted({start - first for first in starts[:3] for start in starts if start > first})


def _folded(values: Integers, kept: npt.NDArray[np.bool_], period: int, offset: int) -> list[AxisPiece] | None:
    """Pieces of `values`, a pattern that repeats with the given period. The pieces of the first period get one more
    loop, over all full periods. The positions after the last full period have pieces of their own. `offset` is the
    output position of the first value.

    None if there are fewer than two full periods, or if the values or `kept` do not repeat. Values that shift by a
    constant from each period to the next also count as repeated.
    """
    count = len(values) // period
    if count < 2 or (kept[period:] != kept[:-period]).any():
        return None
    changes = (values[period:] - values[:-period])[kept[period:]]
    if (changes != changes[0]).any():
        return None
    shift = int(changes[0])
    pieces = []
    for run in _runs(values[:period, None], kept[:period]):
        inner = _axis_piece(run, offset)
        pieces.append(AxisPiece(inner.output_start, inner.input_start, ((count, period, shift), *inner.loops)))
    rest = count * period
    pieces += [_axis_piece(run, offset + rest) for run in _runs(values[rest:, None], kept[rest:])]
    return pieces


_MOST_RESHAPE_PIECES = 1024
Coefficients = Mapping[int, int]
"""Coefficients of one loop: axis number -> coefficient of the loop in the index along this axis."""


@dataclass(frozen=True)
class Stride:
    """Loop of an index map: the number of iterations, and the steps of one iteration along each axis of the output
    tensor and of the input tensor."""

    size: int
    output: Coefficients = field(default_factory=dict)
    input: Coefficients = field(default_factory=dict)


@dataclass(frozen=True)
class Ends:
    """Output tensor and input tensor of a map."""

    output: str
    output_shape: Shape
    source: str
    source_shape: Shape


def strided_map(
    ends: Ends,
    strides: Iterable[Stride],
    output_start: Sequence[int] | None = None,
    source_start: Sequence[int] | None = None,
    *,
    is_exact: bool = True,
) -> IndexMap:
    """Map with one loop for each of `strides`. The map begins at the elements `output_start` and `source_start` (0 by
    default). Loops of size 1 are left out."""
    moving = [stride for stride in strides if stride.size != 1]
    named = [(f"D{number}", stride) for number, stride in enumerate(moving)]

    def axes(start: Sequence[int] | None, shape: Shape, side: str) -> tuple[AxisIndex, ...]:
        terms = [
            tuple((name, sides[axis]) for name, stride in named if (sides := getattr(stride, side)).get(axis))
            for axis in range(len(shape))
        ]
        return tuple(AxisIndex(own, int(start[axis]) if start else 0) for axis, own in enumerate(terms))

    return IndexMap(
        tuple((name, stride.size) for name, stride in named),
        TensorAccess(ends.output, axes(output_start, ends.output_shape, "output")),
        TensorAccess(ends.source, axes(source_start, ends.source_shape, "input")),
        is_exact=is_exact,
    )


def grid_map(
    ends: Ends,
    piece: GridPiece,
    places: Sequence[int],
    components: Sequence[int],
    others: Iterable[Stride] = (),
    *,
    is_exact: bool = True,
) -> IndexMap:
    """Index map of one piece of an array of index vectors. Axis n of the array is output axis `places[n]`. Component n
    of an index vector is the index along input axis `components[n]`. `others` are further loops of the map.
    """
    strides = [
        Stride(size, {place: 1}, {axis: step for axis, step in zip(components, steps, strict=True) if step})
        for place, size, steps in zip(places, piece.sizes, piece.steps, strict=True)
    ]
    output_start, source_start = [0] * len(ends.output_shape), [0] * len(ends.source_shape)
    for place, start in zip(places, piece.starts, strict=True):
        output_start[place] = start
    for axis, start in zip(components, piece.base, strict=True):
        source_start[axis] = start
    return strided_map(ends, [*strides, *others], output_start, source_start, is_exact=is_exact)


def separable_maps(ends: Ends, axes: Sequence[Sequence[AxisPiece]]) -> list[IndexMap]:
    """Index maps of an operator whose axes are independent: the input index along an axis depends only on the output
    index along this axis. Output and input have the same rank.

    `axes` has the pieces of each axis; each combination of pieces gives one map. Raises TooManyPiecesError for more
    than MOST_PIECES combinations.
    """
    if math.prod(len(pieces) for pieces in axes) > MOST_PIECES:
        raise TooManyPiecesError
    maps = []
    for chosen in product(*axes):
        strides = [
            Stride(size, {axis: output}, {axis: source})
            for axis, piece in enumerate(chosen)
            for size, output, source in piece.loops
        ]
        starts = [piece.output_start for piece in chosen], [piece.input_start for piece in chosen]
        maps.append(strided_map(ends, strides, *starts))
    return maps


def reshape_maps(ends: Ends) -> list[IndexMap]:
    """Maps of a reshape, which keeps the row-major order of all elements; [] for tensors without elements.

    A suffix product is the number of elements of the last axes of a shape. If each suffix product of one shape divides
    all larger suffix products of the other shape, there is one exact map. Otherwise, there are several exact maps. If
    the exact maps are too many, one map with a superset of the dependences replaces them. This map mixes axes only
    within ranges of axes that have the same number of elements in both shapes.

    Raises ValueError if the shapes have different numbers of elements.
    """
    total = math.prod(ends.source_shape)
    if total == 0:
        return []
    if math.prod(ends.output_shape) != total:
        raise ValueError(f"{ends.source_shape} and {ends.output_shape} have different numbers of elements")
    boundaries = {*_suffix_products(ends.output_shape), *_suffix_products(ends.source_shape)}
    runs = [_Run(0, (), total)]
    try:
        for boundary in sorted(boundaries - {1, total}, reverse=True):
            runs = _split(runs, boundary)
    except TooManyPiecesError:
        return [_mixed_map(ends)]
    return [_run_map(ends, run) for run in runs]


@dataclass(frozen=True)
class _Run:
    """Set of row-major positions: each position `base + sum(stride * loop)`, and the `length - 1` positions after
    it."""

    base: int
    loops: tuple[tuple[int, int], ...]
    """Pairs (size, stride)."""
    length: int


def _suffix_products(shape: Shape) -> list[int]:
    """Suffix products of a shape. The first product is the number of all elements. Each further product belongs to one
    axis, from the outermost axis on: it is the number of elements in one step along this axis, in row-major order.
    """
    products = [1]
    for size in reversed(shape):
        products.append(products[-1] * size)
    return products[::-1]


def _split(runs: list[_Run], boundary: int) -> list[_Run]:
    """Runs cut at multiples of `boundary`, the size of a block of positions.

    A resulting run has two kinds of loops. If the stride of a loop is a multiple of `boundary`, the loop leads from
    block to block. All loops with other strides, and the `length` consecutive positions, stay within one block.

    Raises TooManyPiecesError if there are more than _MOST_RESHAPE_PIECES runs.
    """
    waiting = list(reversed(runs))
    done: list[_Run] = []
    while waiting:
        if len(waiting) + len(done) > _MOST_RESHAPE_PIECES:
            raise TooManyPiecesError
        run = waiting.pop()
        crossing = [loop for loop in run.loops if loop[1] % boundary]
        span = sum((size - 1) * stride for size, stride in crossing) + run.length - 1
        phase = run.base % boundary
        if phase + span < boundary:
            done.append(run)
        elif crossing:
            waiting += reversed(_unrolled(run, crossing[0], boundary))
        else:
            waiting += reversed(_cut(run, phase, boundary))
    return done


def _unrolled(run: _Run, loop: tuple[int, int], boundary: int) -> list[_Run]:
    size, stride = loop
    period = boundary // math.gcd(boundary, stride)
    others = tuple(other for other in run.loops if other != loop)
    parts = []
    for phase in range(min(period, size)):
        count = (size - phase + period - 1) // period
        longer = ((count, stride * period),) if count > 1 else ()
        loops = tuple(sorted((*others, *longer), key=lambda pair: -pair[1]))
        parts.append(_Run(run.base + phase * stride, loops, run.length))
    return parts


def _cut(run: _Run, phase: int, boundary: int) -> list[_Run]:
    head = min(boundary - phase, run.length) if phase else 0
    count, tail = divmod(run.length - head, boundary)
    parts = [_Run(run.base, run.loops, head)] if head else []
    if count:
        loops = (*run.loops, (count, boundary)) if count > 1 else run.loops
        parts.append(_Run(run.base + head, loops, boundary))
    if tail:
        parts.append(_Run(run.base + head + count * boundary, run.loops, tail))
    return parts


def _run_map(ends: Ends, run: _Run) -> IndexMap:
    def moved(stride: int, shape: Shape) -> Coefficients:
        for axis, step in enumerate(_suffix_products(shape)[1:]):
            if stride % step == 0:
                return {axis: stride // step}
        return {}

    strides = [
        Stride(size, moved(stride, ends.output_shape), moved(stride, ends.source_shape))
        for size, stride in (*run.loops, (run.length, 1))
    ]
    starts = [
        [int(index) for index in np.unravel_index(run.base, shape)] if shape else []
        for shape in (ends.output_shape, ends.source_shape)
    ]
    return strided_map(ends, strides, *starts)


def _mixed_map(ends: Ends) -> IndexMap:
    """Map with a superset of the dependences of a reshape.

    A suffix product is the number of elements of the last axes of a shape. The common suffix products of both shapes
    divide the axes of each shape into ranges. If a range is a single axis in both shapes, its positions correspond one
    to one. Within any other range, each output position can depend on all input positions.
    """
    outputs, sources = _suffix_products(ends.output_shape), _suffix_products(ends.source_shape)
    strides: list[Stride] = []
    common = sorted({*outputs} & {*sources}, reverse=True)
    for upper, lower in pairwise(common):
        own = [_axes_between(products, upper, lower) for products in (outputs, sources)]
        if len(own[0]) == len(own[1]) == 1:
            strides.append(Stride(upper // lower, {own[0][0][0]: 1}, {own[1][0][0]: 1}))
            continue
        strides += [Stride(size, {axis: 1}) for axis, size in own[0]]
        strides += [Stride(size, {}, {axis: 1}) for axis, size in own[1]]
    return strided_map(ends, strides, is_exact=False)


def _axes_between(products: list[int], upper: int, lower: int) -> list[tuple[int, int]]:
    """Pairs (axis, size) of the axes of a shape that lie between two of its suffix products, `upper` and `lower`. Axes
    of size 1 are left out.

    A suffix product is the number of elements of the last axes of a shape. `products` has all suffix products of the
    shape, from the product of all sizes to 1. Axis n lies between the entries n and n + 1 of `products`. The axis is in
    the result if both entries are in the range from `lower` to `upper`.
    """
    pairs = enumerate(pairwise(products))
    return [(axis, above // step) for axis, (above, step) in pairs if lower <= step < above <= upper]
