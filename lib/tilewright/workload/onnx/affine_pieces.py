"""Arrays of indices as few affine pieces.

A piece is a box of places on which the index is an affine function of the place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
MOST_PIECES = 4096
"""More pieces than this are not worth their cost: a superset of the dependencies is used instead."""
_MOST_PERIODS = 256
_FEW_RUNS = 4
NOWHERE = -1
"""In an array of indices: this place depends on nothing."""


class TooManyPiecesError(Exception):
    """No description of at most MOST_PIECES pieces was found."""


@dataclass(frozen=True)
class GridPiece:
    """A box of places of an array of index vectors, on which they are `base + sum(steps[axis] * place along axis)`."""

    starts: tuple[int, ...]
    """First place along every axis of the array."""
    sizes: tuple[int, ...]
    base: tuple[int, ...]
    """The index vector at the first place."""
    steps: tuple[tuple[int, ...], ...]
    """Change of the index vector per place along every axis of the array."""


@dataclass(frozen=True)
class AxisPiece:
    """Places along one output axis and the indices along one input axis: both affine in the same loops."""

    output_start: int
    input_start: int
    loops: tuple[tuple[int, int, int], ...]
    """(size, coefficient on the output axis, coefficient on the input axis)."""


def grid_pieces(values: Integers, kept: npt.NDArray[np.bool_] | None = None) -> list[GridPiece]:
    """Cover an array of index vectors [..., components] by affine pieces, each place where `kept` exactly once.

    Raises TooManyPiecesError.
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
    """Cover the input index of every place along an output axis (NOWHERE: none) by affine pieces.

    Patterns that repeat with a constant shift, as of repeating or nearest-neighbour resizing, become two loops.
    Raises TooManyPiecesError.
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
    """Greedy runs of constant step along the only axis of values [places, components]."""
    pieces: list[GridPiece] = []
    steps = np.diff(values, axis=0)
    kept_places = np.flatnonzero(kept)
    place, count = 0, len(values)
    # The places at which runs of equal steps end; a run is in one of the stretches between them.
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
    """Pieces of every row; gives up as soon as there are more forms of pieces than joining could leave."""
    rows: list[list[GridPiece]] = []
    forms: set[tuple[object, ...]] = set()
    for place in range(len(values)):
        rows.append(grid_pieces(values[place], kept[place]))
        forms.update((piece.starts, piece.sizes, piece.steps) for piece in rows[-1])
        if len(forms) > MOST_PIECES:
            raise TooManyPiecesError
    return rows


def _merged(rows: list[list[GridPiece]]) -> list[GridPiece]:
    """Join equal pieces of consecutive rows whose bases differ by a constant step."""
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
    """Ranges of rows (number, values...) with numbers one apart and a constant change of the values."""
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
    """Distances between runs, from small to large; the first runs of a pattern may differ from the later ones."""
    starts = [run.starts[0] for run in runs[: _MOST_PERIODS + 1]]
    return sorted({start - first for first in starts[:3] for start in starts if start > first})


def _folded(values: Integers, kept: npt.NDArray[np.bool_], period: int, offset: int) -> list[AxisPiece] | None:
    """Pieces of one period with a loop over the periods, and those of the rest; None where it does not repeat."""
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
