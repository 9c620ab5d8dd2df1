"""Classes of CNs that cost the same: equal loop sizes, windows, relations and precisions, whatever their names."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter

import numpy as np

from tilewright.fusion.alike import Alike
from tilewright.fusion.grid import DimensionTiles, Integers, LayerGrid
from tilewright.workload.layer import DimensionRelation, Layer

_FIELDS = tuple(field.name for field in fields(Layer) if field.name != "name")
_KEPT = tuple(name for name in _FIELDS if name not in ("loop_sizes", "padding", "data_dimension_sizes"))
"""What all CNs of a layer have in common."""
_all_but_name = attrgetter(*_FIELDS)
_MOST_KEYS = 2**16
"""Above this, combinations of sizes are numbered anew."""
_MOST_KINDS = 64
"""Sizes that lie closer together than this are told apart by their distance from the smallest."""


def nameless_layer(layer: Layer) -> Hashable:
    """All of a layer but its name."""
    found: Hashable = _all_but_name(layer)
    return found


def shape_classes(layer: Layer, grid: LayerGrid, alike: Alike) -> tuple[Integers, list[Layer]]:
    """([cn] class, the layer of each class).

    A tile at a border has a class of its own where it is smaller, or where padding is part of its window: what it
    reads of the input is given by `data_dimension_sizes`, padding excluded. The layers have no name.
    """
    loops = {dimension: (alike.once(_tile_lengths, tiles), (dimension,)) for dimension, tiles in grid.cut_tiles.items()}
    windows = [_window_sizes(layer, relation, grid, alike) for relation in layer.relations]
    varying = tuple([sizes for sizes in (*loops.values(), *windows) if sizes[0].kind_count > 1])
    classes = alike.once(_classes, grid, varying)
    columns = [(name, *_column(loops.get(name), size, classes)) for name, size in layer.loop_sizes]
    window = zip(layer.relations, windows, strict=True)
    data_columns = [(relation.data_dimension, *_column(sizes, 0, classes)) for relation, sizes in window]
    kept = {name: getattr(layer, name) for name in _KEPT}
    shapes = []
    for number in range(classes.count):
        loop_sizes = tuple([(name, sizes[tile[number]] if tile else sizes[0]) for name, sizes, tile in columns])
        data_sizes = tuple([(name, sizes[tile[number]] if tile else sizes[0]) for name, sizes, tile in data_columns])
        shapes.append(Layer("", loop_sizes=loop_sizes, padding=(), data_dimension_sizes=data_sizes, **kept))
    return classes.of_cn, shapes


def _column(sizes: "_Sizes | None", size: int, classes: "_Classes") -> tuple[tuple[int, ...], list[int] | None]:
    """(sizes, [class] place in them; None: all have the first) of a dimension; `size` is that of one without tiles."""
    return ((size,), None) if sizes is None else (sizes[0].sizes, classes.tile.get(sizes))


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Sizes of a dimension by its tiles."""

    sizes: tuple[int, ...]
    kinds: Integers
    """[tile] different where sizes are: the distinct sizes are numbered, with gaps where that is quicker"""
    kind_count: int
    """Above all kinds; 1 where all tiles have one size."""


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
    key: Integers | int = 0
    key_count = 1
    tiles = [grid.contents(dimensions)[0] for _, dimensions in varying]
    for (lengths, _), tile in zip(varying, tiles, strict=True):
        key = key * lengths.kind_count + lengths.kinds[tile]
        key_count *= lengths.kind_count
    assert not isinstance(key, int)
    examples, of_cn = _first_of_each(key, key_count)
    places = {sizes: tile[examples].tolist() for sizes, tile in zip(varying, tiles, strict=True)}
    return _Classes(of_cn, len(examples), places)


def _first_of_each(key: Integers, key_count: int) -> tuple[Integers, Integers]:
    """(the first CN of each class, [cn] class); classes in the order in which the CNs meet them."""
    if key_count > _MOST_KEYS:
        values, key = np.unique(key, return_inverse=True)
        key, key_count = key.reshape(-1), len(values)
    count = len(key)
    first = np.full(key_count, count, np.int64)
    first[key[::-1]] = np.arange(count - 1, -1, -1)  # of equal keys the last one assigned counts
    order = np.argsort(first, kind="stable")
    rank = np.empty(key_count, np.int64)
    rank[order] = np.arange(key_count)
    first = first[order]
    return first[first < count], rank[key]


@lru_cache(maxsize=1024)
def _uncut(size: int) -> _Sizes:
    return _Lengths((size,), np.zeros(1, np.int64), 1), ()


def _tile_lengths(tiles: DimensionTiles) -> _Lengths:
    return _lengths(tiles.lengths)


def _lengths(values: Integers) -> _Lengths:
    sizes = values.tolist()
    smallest = min(sizes)
    spread = max(sizes) - smallest + 1
    if spread <= _MOST_KINDS:
        return _Lengths(tuple(sizes), values - smallest, spread)
    distinct, kinds = np.unique(values, return_inverse=True)
    return _Lengths(tuple(sizes), kinds.reshape(-1), len(distinct))


def _window_sizes(layer: Layer, relation: DimensionRelation, grid: LayerGrid, alike: Alike) -> _Sizes:
    """Sizes of the data dimension without padding, by the tiles of the relation's loops."""
    whole = _whole_size(layer, relation)
    cut = grid.cut_tiles
    first = last = -dict(layer.padding).get(relation.data_dimension, (0, 0))[0]
    dimensions, terms = [], []
    for name, coefficient in relation.terms:
        if name in cut:
            dimensions.append(name)
            terms.append((cut[name], coefficient))
        else:
            last += coefficient * (layer.size_of[name] - 1)
    if not dimensions:
        return _uncut(whole)
    return alike.once(_windows, tuple(terms), first, last, whole), tuple(dimensions)


def _windows(terms: tuple[tuple[DimensionTiles, int], ...], low: int, high: int, whole: int) -> _Lengths:
    """Sizes of windows by the tiles of the cut loops, the first loop slowest; padding excluded.

    The uncut loops reach from `low` to `high`.
    """
    first, last = np.array([low]), np.array([high])
    for tiles, coefficient in terms:
        first = (first[:, None] + coefficient * tiles.start).ravel()
        last = (last[:, None] + coefficient * tiles.last).ravel()
    return _lengths(np.maximum(np.minimum(last, whole - 1) - np.maximum(first, 0) + 1, 1))


def _whole_size(layer: Layer, relation: DimensionRelation) -> int:
    """Size of the data dimension without padding: as given, else by the loops and the padding."""
    given = dict(layer.data_dimension_sizes)
    if relation.data_dimension in given:
        return given[relation.data_dimension]
    reach = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    return max(1, reach - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))
