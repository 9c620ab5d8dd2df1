"""Index maps of operators that move data: from per-axis indices as few affine pieces, from strides, and of reshapes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np

from tilewright.workload.access import AxisIndex, IndexMap, Shape, TensorAccess
from tilewright.workload.onnx.affine_pieces import MOST_PIECES, AxisPiece, GridPiece, TooManyPiecesError

_MOST_RESHAPE_PIECES = 1024
Coefficients = Mapping[int, int]
"""Axis -> coefficient."""


@dataclass(frozen=True)
class Stride:
    """One loop: its size, and how far it moves along the axes of the output and of the input."""

    size: int
    output: Coefficients = field(default_factory=dict)
    input: Coefficients = field(default_factory=dict)


@dataclass(frozen=True)
class Ends:
    """The two tensors of a map."""

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
    """The map of these loops from these first elements (0 by default); loops of size 1 are left out."""
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
    """The map of a piece: array axis n is output axis places[n], component n of the values input axis components[n]."""
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
    """Maps of an operator that picks the input index along every axis on its own (output and input of one rank).

    `axes` has the pieces of every axis. Raises TooManyPiecesError.
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
    """Maps between two shapes of the same elements in row-major order.

    One exact map where each suffix product of a shape divides the larger ones of the other; exact pieces where not;
    beyond a limit one superset, in which only the axes between common suffix products are mixed.
    """
    total = math.prod(ends.source_shape)
    if total == 0:
        return []
    if math.prod(ends.output_shape) != total:
        raise ValueError(f"{ends.source_shape} has not as many elements as {ends.output_shape}")
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
    """Row-major positions `base + sum(stride * loop) + 0..length-1`."""

    base: int
    loops: tuple[tuple[int, int], ...]
    """(size, stride)."""
    length: int


def _suffix_products(shape: Shape) -> list[int]:
    """Positions that one step along an axis moves, outermost first, after the number of all elements."""
    products = [1]
    for size in reversed(shape):
        products.append(products[-1] * size)
    return products[::-1]


def _split(runs: list[_Run], boundary: int) -> list[_Run]:
    """Cut runs until the loops of each either step over whole multiples of `boundary` or stay between two of them."""
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
    """One map that mixes all axes between two suffix products that both shapes have."""
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
    """(axis, size) of the axes whose steps lie between two suffix products; axes of size 1 do not move."""
    pairs = enumerate(pairwise(products))
    return [(axis, above // step) for axis, (above, step) in pairs if lower <= step < above <= upper]
