"""Memories of tensors, weights and kept data of a stack, and kinds of tiles with equal cost (DeFiNES, section IV).

Tensors and kept data lie in the innermost memory that has enough room and only one instance. Memories with several
instances are not used for these data, because one part of the array may read data that another part computed. Weights
lie in the innermost memory that has enough room. If no memory is suitable, the outermost memory is used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tilewright.hardware.hierarchy import instance_count, memory_hierarchy
from tilewright.tiles.depth_first.axes import AxisTile, axis_tiles
from tilewright.tiles.depth_first.chain import Chain
from tilewright.tiles.depth_first.options import Reading


@dataclass(frozen=True)
class MemoryPlaces:
    """Memories of a core in which the data of a chain of layers can lie, by index."""

    chain: Chain

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Memories of the layers' inputs, innermost first."""
        return memory_hierarchy(self.chain.core).memories_of(self.chain.activation)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Memories of the layers' outputs, innermost first."""
        return memory_hierarchy(self.chain.core).memories_of(self.chain.output)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Memories of the layers' weights, innermost first; () for layers without weights."""
        return memory_hierarchy(self.chain.core).memories_of(self.chain.weight) if self.chain.weight else ()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Size of each memory in bits."""
        return tuple([memory.size_bits for memory in self.chain.core.memories])

    @cached_property
    def exist_once(self) -> tuple[bool, ...]:
        """Truth value for each memory: True if the memory has only one instance."""
        return tuple([instance_count(self.chain.core, k) == 1 for k in range(len(self.chain.core.memories))])

    @property
    def top(self) -> int:
        """Outermost memory, through which a stack passes data to the next stack."""
        return self.outputs[-1]

    def for_input(self, bits: int) -> int:
        """Memory for the input of a layer, which takes `bits` bits: the innermost memory of inputs that has only one
        instance and enough room. If there is no such memory, the result is the outermost memory of inputs.
        """
        return self._lowest(self.inputs, bits)

    def for_output(self, bits: int, input_bits: int, input_memory: int | None) -> int:
        """Memory for `bits` bits of a layer's output: the innermost memory of outputs that has only one instance and
        enough room. If there is no such memory, the result is the outermost memory of outputs.

        `input_memory` is the memory that already holds `input_bits` bits of the layer's input (None: no memory). It has
        enough room for the output only if input and output fit together.
        """
        for k in self.outputs:
            needed = bits + (input_bits if k == input_memory else 0)
            if self.exist_once[k] and self.sizes[k] >= needed:
                return k
        return self.outputs[-1]

    def for_kept(self, bits: int) -> int:
        """Memory for `bits` bits of kept data, among the memories that hold both inputs and outputs: the innermost
        memory that has only one instance and enough room. If there is no such memory, the result is the outermost
        memory.
        """
        return self._lowest(tuple([k for k in self.outputs if k in self.inputs]), bits)

    def _lowest(self, memories: tuple[int, ...], bits: int) -> int:
        found = (k for k in memories if self.exist_once[k] and self.sizes[k] >= bits)
        return next(found, memories[-1])


@dataclass(frozen=True)
class Stack:
    """Stack of a chain: its layers `first` to `last`, which run depth-first."""

    places: MemoryPlaces
    first: int
    last: int

    @cached_property
    def input_bits(self) -> tuple[int, ...]:
        """Number of bits of all elements at one position of each layer's input."""
        return tuple([entry.input_bits for entry in self._layers])

    @cached_property
    def output_bits(self) -> tuple[int, ...]:
        """Number of bits of all output elements at one position, for each layer."""
        return tuple([entry.output_bits for entry in self._layers])

    @cached_property
    def weight_bits(self) -> int:
        """Number of bits of the weights, summed over the layers of the stack."""
        return sum(entry.weight_bits for entry in self._layers)

    @property
    def _layers(self):  # type: ignore[no-untyped-def]
        return self.places.chain.layers[self.first : self.last + 1]

    def tensor_bits(self, tensor: int) -> int:
        """Number of bits at one position of tensor number `tensor`, over all channels. Tensor 0 is the input of the
        stack, and tensor i is the output of its i-th layer.
        """
        return self.input_bits[0] if tensor == 0 else self.output_bits[tensor - 1]

    @property
    def row_width(self) -> tuple[int, ...]:
        """Number of positions of each layer's input along x, for the whole image."""
        return tuple([entry.x.input_size for entry in self._layers])


@dataclass(frozen=True)
class KeptPlaces:
    """Memories that tiles of one kind would choose for the data they keep, if neighbouring tiles did not matter."""

    columns: int | None
    rows: int | None
    weights: int | None


def live_bits(stack: Stack, x: AxisTile, y: AxisTile, kept_bits: tuple[int, ...] = ()) -> int:
    """Largest number of bits that are live at any time while a tile runs through the stack.

    Live data are the input and the output of the running layer, and the data that earlier layers have kept. `kept_bits`
    has the kept bits of each layer's input. Kept data of the stack's input do not count, as in DeFiNES.
    """
    most = stack.tensor_bits(0) * x.made[0] * y.made[0]
    kept = 0
    for i in range(len(stack.input_bits)):
        output = stack.output_bits[i] * x.made[i + 1] * y.made[i + 1]
        most = max(most, kept + stack.input_bits[i] * x.read[i] * y.read[i] + output)
        if kept_bits and i + 1 < len(stack.input_bits):
            kept += kept_bits[i + 1]
        most = max(most, kept + output)
    return most


def kept_places(
    stack: Stack,
    x: AxisTile,
    y: AxisTile,
    column_y: AxisTile,
    kept: tuple[tuple[int, ...], tuple[int, ...]],
    keeps: tuple[bool, bool],
) -> KeptPlaces:
    """Memories in which a tile keeps columns, rows and weights. A memory is suitable if it has room for the kept data
    together with the tensors of the tile that can lie in this memory, at the time when these tensors are largest. If no
    memory is suitable, the outermost memory is taken.

    The tile is `x` along the first axis and `y` along the second axis. `column_y` gives the height of kept columns.
    `kept` is a pair of tuples with one count for each layer: first the columns of the layer's input that the tile reads
    again, then the rows. The first tile reads nothing again; it gets the counts of the next tile. `keeps` has two truth
    values: whether columns are kept, and whether rows are kept.
    """
    places, layers = stack.places, range(len(stack.input_bits))
    live = live_bits(stack, x, y)
    columns = rows = None
    with_columns, shared = live, 0
    if keeps[0]:
        if x.is_first:
            bits = tuple([stack.input_bits[i] * kept[0][i] * column_y.made[i] for i in layers])
            with_columns = live_bits(stack, x, y, bits)
        else:
            with_columns = live + sum(stack.input_bits[i] * kept[0][i] * column_y.read[i] for i in layers)
        columns = places.for_kept(with_columns)
    with_rows = with_columns
    if keeps[0] and keeps[1]:
        with_rows += sum(stack.input_bits[i] * stack.row_width[i] * kept[1][i] for i in layers)
        shared = sum(stack.input_bits[i] * kept[0][i] * kept[1][i] for i in layers)
        candidates = [k for k in places.outputs if k in places.inputs and places.exist_once[k]]
        rows = next(
            (k for k in candidates if places.sizes[k] >= with_rows - (shared if k == columns else 0)),
            places.top,
        )
    return KeptPlaces(columns, rows, _weights_place(stack, live, with_columns, with_rows, shared, columns, rows))


def _weights_place(
    stack: Stack, live: int, with_columns: int, with_rows: int, shared: int, columns: int | None, rows: int | None
) -> int | None:
    places = stack.places
    if not places.weights or not stack.weight_bits:
        return None
    tensors = places.for_kept(live)
    reserved = places.outputs[: places.outputs.index(tensors) + 1]
    for k in places.weights:
        needed = stack.weight_bits + (live if k in reserved else 0)
        if k == columns:
            needed = stack.weight_bits + with_columns
        if k == rows:
            needed = stack.weight_bits + with_rows - (shared if k == columns else 0)
        if places.sizes[k] >= needed:
            return k
    return places.weights[-1]


Mode = Literal["fully-recompute", "h-cached-v-recompute", "fully-cached"]
MODES: dict[str, tuple[bool, bool]] = {
    "fully-recompute": (False, False),
    "h-cached-v-recompute": (True, False),
    "fully-cached": (True, True),
}
"""Two truth values for each mode: True if columns that a neighbouring tile needs are kept, and True if rows that a
neighbouring tile needs are kept.

Columns and rows that are not kept are computed again.
"""


@dataclass(frozen=True)
class TileKind:
    """Kind of tiles: all tiles of one kind have the same cost."""

    x: AxisTile
    y: AxisTile
    columns_from: int | None
    """Memory from which kept columns are read; None if there are no kept columns."""
    columns_to: int | None
    rows_from: int | None
    rows_to: int | None
    weights: int | None
    """Index of the memory from which tiles of this kind read weights; None for stacks without weights. The first tile
    of a stack reads the weights from the outermost memory instead.
    """


@dataclass(frozen=True)
class _Row:
    """Row of tiles, described by the numbers that determine in which memories its data lie."""

    y: AxisTile
    column_y: AxisTile
    rows: tuple[int, ...]


def tile_kinds(stack: Stack, tile: tuple[int, int], mode: str, reading: Reading) -> dict[TileKind, int]:
    """Number of tiles of each kind in a stack. The kinds are in the order in which they first run."""
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
    """Number of positions of each layer's input that tile number `place` reuses from the tile before it. For the first
    tile, which reuses nothing, the numbers of the second tile (if any) are returned instead.
    """
    tile = tiles[place]
    if tile.is_first and place + 1 < len(tiles):
        return tiles[place + 1].reused
    return tile.reused


def _places_of_row(stack: Stack, columns: Sequence[AxisTile], row: _Row, keeps: tuple[bool, bool]) -> list[KeptPlaces]:
    """Memories that the tiles of one row would choose for the data they keep, if neighbouring tiles did not matter. The
    list has one result for each tile, in the order of `columns`. Equal tiles are computed only once.

    `keeps` has two truth values: whether columns are kept, and whether rows are kept.
    """
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
    """Pairs (kind, number of tiles of this kind) for the tiles of one row.

    `columns` are the tiles of the row along x, and `y` is the row itself, as a tile along y. `places` has, for each
    tile in `columns`, the memories in which it would keep data. `rows` is the pair (memory from which kept rows are
    read, memory to which kept rows are written). `weights` is the memory of the weights.

    Two neighbouring tiles can choose different memories for the columns that the first tile keeps for the second. The
    outer of the two memories is then taken. If the reading has `last_tile_decides`, the choice of the second tile is
    taken instead.
    """
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
