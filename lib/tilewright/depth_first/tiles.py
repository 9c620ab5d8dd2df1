"""Kinds of tiles of a stack: those that make, read and keep the same, in the same memories, cost the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.depth_first.axes import AxisTile, axis_tiles
from tilewright.depth_first.locations import KeptPlaces, Stack, kept_places
from tilewright.depth_first.reading import Reading

Mode = Literal["fully-recompute", "h-cached-v-recompute", "fully-cached"]
MODES: dict[str, tuple[bool, bool]] = {
    "fully-recompute": (False, False),
    "h-cached-v-recompute": (True, False),
    "fully-cached": (True, True),
}
"""Whether columns and rows that neighbouring tiles need too are kept; else they are computed again."""


@dataclass(frozen=True)
class TileKind:
    """Tiles that are alike."""

    x: AxisTile
    y: AxisTile
    columns_from: int | None
    """The memory that kept columns come from, None where none do."""
    columns_to: int | None
    rows_from: int | None
    rows_to: int | None
    weights: int | None
    """The outermost memory of weights."""


@dataclass(frozen=True)
class _Row:
    """Tiles of a row of tiles."""

    y: AxisTile
    column_y: AxisTile
    rows: tuple[int, ...]


def tile_kinds(stack: Stack, tile: tuple[int, int], mode: str, reading: Reading) -> dict[TileKind, int]:
    """How many tiles of each kind a stack has, in the order in which they first run."""
    keeps = MODES[mode]
    windows = [stack.places.chain.windows(stack.first, stack.last, axis) for axis in (0, 1)]
    columns = axis_tiles(windows[0], tile[0], keeps[0])
    rows = axis_tiles(windows[1], tile[1], keeps[1])
    high = rows if reading.kept_columns_have_all_rows else axis_tiles(windows[1], tile[1], True)
    lines: dict[_Row, int] = {}
    for place, y in enumerate(rows):
        row = _Row(y, high[place], _kept(rows, place))
        lines[row] = lines.get(row, 0) + 1
    found = {row: _places_of_row(stack, columns, row, keeps) for row in lines}
    every = [places for kept in found.values() for places in kept]
    if reading.last_tile_decides:
        kept_rows = next(found[row] for row in lines if row.y is rows[-1])[-1].rows
    else:
        kept_rows = max((p.rows for p in every if p.rows is not None), default=None)
    weights = max((p.weights for p in every if p.weights is not None), default=None)
    kinds: dict[TileKind, int] = {}
    for row, count in lines.items():
        rows_of = (None if row.y.is_first else kept_rows, None if row.y.is_last else kept_rows)
        for kind, times in _row_kinds(columns, row.y, found[row], rows_of, weights, reading):
            kinds[kind] = kinds.get(kind, 0) + count * times
    return kinds


def _kept(tiles: Sequence[AxisTile], place: int) -> tuple[int, ...]:
    """What a tile, or else the next one, reads again."""
    tile = tiles[place]
    if tile.is_first and place + 1 < len(tiles):
        return tiles[place + 1].reused
    return tile.reused


def _places_of_row(stack: Stack, columns: Sequence[AxisTile], row: _Row, keeps: tuple[bool, bool]) -> list[KeptPlaces]:
    """[column] where each tile of a row would keep data; equal ones are found once."""
    known: dict[tuple[AxisTile, tuple[int, ...]], KeptPlaces] = {}
    found = []
    for place, x in enumerate(columns):
        kept = _kept(columns, place)
        if (x, kept) not in known:
            known[x, kept] = kept_places(stack, x, row.y, row.column_y, (kept, row.rows), keeps)
        found.append(known[x, kept])
    return found


def _row_kinds(
    columns: Sequence[AxisTile],
    y: AxisTile,
    places: Sequence[KeptPlaces],
    rows: tuple[int | None, int | None],
    weights: int | None,
    reading: Reading,
) -> Iterator[tuple[TileKind, int]]:
    """The tiles of a row by kind. Neighbours agree on the higher memory for the columns between them."""
    counts: dict[TileKind, int] = {}
    for place, x in enumerate(columns):
        own = places[place].columns
        before = None if x.is_first or own is None else own
        after = None if x.is_last or own is None else _own(places, place + 1)
        if not reading.last_tile_decides:
            before = None if before is None else max(before, _own(places, place - 1))
            after = None if after is None else max(after, _own(places, place))
        kind = TileKind(x, y, before, after, *rows, weights)
        counts[kind] = counts.get(kind, 0) + 1
    return iter(counts.items())


def _own(places: Sequence[KeptPlaces], place: int) -> int:
    found = places[place].columns
    assert found is not None
    return found
