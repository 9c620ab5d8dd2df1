"""Classes of CNs that cost the same: equal loop sizes, windows, relations and precisions, whatever their names."""

from dataclasses import replace

import numpy as np

from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.workload.layer import DimensionRelation, Layer


def shape_classes(layer: Layer, grid: LayerGrid) -> tuple[Integers, list[Layer]]:
    """([cn] class, the layer of each class).

    A tile at a border has a class of its own where it is smaller, or where padding is part of its window: what it
    reads of the input is given by `data_dimension_sizes`, padding excluded. The layers have no name.
    """
    parts: list[tuple[Integers, int]] = []
    for dimension in grid.tiled_dimensions:
        tiles = grid.tiles[dimension]
        sizes, kind = np.unique(tiles.end - tiles.start, return_inverse=True)
        parts.append((kind.reshape(-1)[grid.tile_of(dimension)], len(sizes)))
    for relation in layer.relations:
        sizes_of_pair, pair = _window_sizes(layer, relation, grid)
        sizes, kind = np.unique(sizes_of_pair, return_inverse=True)
        parts.append((kind.reshape(-1)[pair], len(sizes)))
    key = np.zeros(grid.cn_count, np.int64)
    for kind, count in parts:
        if count > 1:
            key = key * count + kind
    _, examples, cn_class = np.unique(key, return_index=True, return_inverse=True)
    # In the order in which the CNs meet the classes.
    order = np.argsort(examples, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[cn_class.reshape(-1)], [_layer_of(layer, int(cn), grid) for cn in examples[order]]


def _layer_of(layer: Layer, cn: int, grid: LayerGrid) -> Layer:
    sizes = []
    for dimension, size in layer.loop_sizes:
        tiles = grid.tiles[dimension]
        tile = grid.tile_of(dimension)[cn] if tiles.count > 1 else 0
        sizes.append((dimension, int(tiles.end[tile] - tiles.start[tile]) if tiles.count > 1 else size))
    windows = []
    for relation in layer.relations:
        sizes_of_pair, pair = _window_sizes(layer, relation, grid)
        windows.append((relation.data_dimension, int(sizes_of_pair[pair[cn]])))
    return replace(layer, name="", loop_sizes=tuple(sizes), padding=(), data_dimension_sizes=tuple(windows))


def _window_sizes(layer: Layer, relation: DimensionRelation, grid: LayerGrid) -> tuple[Integers, Integers]:
    """([pair of tiles] size of the data dimension without padding, [cn] pair of tiles of the relation's loops)."""
    whole = _whole_size(layer, relation)
    before = dict(layer.padding).get(relation.data_dimension, (0, 0))[0]
    dimensions = tuple(name for name, _ in relation.terms)
    if all(grid.tiles[name].count == 1 for name in dimensions):
        return np.array([whole]), np.zeros(grid.cn_count, np.int64)
    first = np.full(1, -before, np.int64)
    last = first
    for name, coefficient in relation.terms:
        tiles = grid.tiles[name]
        first = (first[:, None] + coefficient * tiles.start).ravel()
        last = (last[:, None] + coefficient * (tiles.end - 1)).ravel()
    sizes = np.maximum(np.minimum(last, whole - 1) - np.maximum(first, 0) + 1, 1)
    return sizes, grid.combination_of(dimensions)[0]


def _whole_size(layer: Layer, relation: DimensionRelation) -> int:
    """Size of the data dimension without padding: as given, else by the loops and the padding."""
    given = dict(layer.data_dimension_sizes)
    if relation.data_dimension in given:
        return given[relation.data_dimension]
    reach = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    return max(1, reach - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))
