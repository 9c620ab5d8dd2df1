"""Classes of computation nodes (CNs) that cost the same.

These are CNs that have equal loop sizes, windows, relations and precisions, whatever their names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from tilewright.fusion.grid import DimensionTiles, Integers, LayerGrid, sums
from tilewright.workload.layer import DimensionRelation, Layer

_FIELDS = tuple(field.name for field in fields(Layer) if field.name != "name")
_KEPT = tuple(name for name in _FIELDS if name not in ("loop_sizes", "padding", "data_dimension_sizes"))
"""What all CNs of a layer have in common."""


def shape_classes(layer: Layer, grid: LayerGrid) -> tuple[Integers, list[Layer]]:
    """([cn] class, the layer of each class).

    A tile at a border has a class of its own where it is smaller, or where padding is part of its window: what it
    reads of the input is given by `data_dimension_sizes`, padding excluded. The layers have no name.
    """
    loops = {name: _tile_sizes(name, tiles) for name, tiles in grid.cut_tiles.items()}
    windows = {item.data_dimension: _window_sizes(layer, item, grid) for item in layer.relations}
    varying = tuple([sizes for sizes in (*loops.values(), *windows.values()) if sizes[0].kind_count > 1])
    classes = _classes(grid, varying)
    kept = {name: getattr(layer, name) for name in _KEPT}
    shapes = []
    for number in range(classes.count):
        loop_sizes = tuple((layer.size_of | _sizes_in_class(number, classes, loops)).items())
        data_sizes = tuple(_sizes_in_class(number, classes, windows).items())
        shapes.append(Layer("", loop_sizes=loop_sizes, data_dimension_sizes=data_sizes, **kept))
    return classes.of_cn, shapes


def _sizes_in_class(number: int, classes: "_Classes", by_tile: Mapping[str, "_Sizes"]) -> dict[str, int]:
    """Dimension -> size in a class."""
    found = {}
    for dimension, sizes in by_tile.items():
        tiles = classes.tile.get(sizes)
        found[dimension] = sizes[0].sizes[tiles[number] if tiles else 0]
    return found


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Sizes of a dimension by its tiles."""

    sizes: tuple[int, ...]
    kinds: Integers
    """[tile] number of its size among the distinct ones"""
    kind_count: int


_Sizes = tuple[_Lengths, tuple[str, ...]]
"""(sizes of a dimension, the loop dimensions whose tiles they go by)."""


@dataclass(frozen=True, eq=False)
class _Classes:
    """CNs told apart by sizes."""

    of_cn: Integers
    count: int
    tile: dict[_Sizes, list[int]]
    """Sizes that vary -> [class] place in them"""


def _classes(grid: LayerGrid, varying: tuple[_Sizes, ...]) -> _Classes:
    """The classes of the CNs of a grid, in the order in which the CNs meet them."""
    if not varying:
        return _Classes(np.zeros(grid.cn_count, np.int64), 1, {})
    key = np.zeros(grid.cn_count, np.int64)
    tiles = [grid.combination_of(dimensions)[0] for _, dimensions in varying]
    for (lengths, _), tile in zip(varying, tiles, strict=True):
        key = key * lengths.kind_count + lengths.kinds[tile]
    examples, of_cn = _first_of_each(key)
    places = {sizes: tile[examples].tolist() for sizes, tile in zip(varying, tiles, strict=True)}
    return _Classes(of_cn, len(examples), places)


def _first_of_each(key: Integers) -> tuple[Integers, Integers]:
    """(the first CN of each class, [cn] class); classes in the order in which the CNs meet them."""
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    return first[order], rank[number.reshape(-1)]


def _tile_sizes(name: str, tiles: DimensionTiles) -> _Sizes:
    return _lengths(tiles.lengths), (name,)


def _lengths(values: Integers) -> _Lengths:
    distinct, kinds = np.unique(values, return_inverse=True)
    return _Lengths(tuple(values.tolist()), kinds.reshape(-1), len(distinct))


def _window_sizes(layer: Layer, relation: DimensionRelation, grid: LayerGrid) -> _Sizes:
    """Sizes of the data dimension without padding, by the tiles of the relation's loops."""
    whole = _whole_size(layer, relation)
    cut = grid.cut_tiles
    dimensions = tuple([name for name, _ in relation.terms if name in cut])
    if not dimensions:
        return _lengths(np.array([whole])), ()
    first = last = -dict(layer.padding).get(relation.data_dimension, (0, 0))[0]
    terms = []
    for name, coefficient in relation.terms:
        if name in cut:
            terms.append((cut[name], coefficient))
        else:
            last += coefficient * (layer.size_of[name] - 1)
    return _windows(terms, first, last, whole), dimensions


def _windows(terms: list[tuple[DimensionTiles, int]], low: int, high: int, whole: int) -> _Lengths:
    """Sizes of windows by the tiles of the cut loops, the first loop slowest; padding excluded.

    The uncut loops reach from `low` to `high`.
    """
    first, last = np.array([low]), np.array([high])
    for tiles, coefficient in terms:
        below, above = coefficient * tiles.start, coefficient * tiles.last
        first, last = sums(first, below), sums(last, above)
    return _lengths(np.maximum(np.minimum(last, whole - 1) - np.maximum(first, 0) + 1, 1))


def _whole_size(layer: Layer, relation: DimensionRelation) -> int:
    """Size of the data dimension without padding: as given, else by the loops and the padding."""
    for data_dimension, size in layer.data_dimension_sizes:
        if data_dimension == relation.data_dimension:
            return size
    reach = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    return max(1, reach - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))
