"""Classes of CNs that cost the same: equal loop sizes, windows, relations and precisions, whatever their names."""

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace

import numpy as np

from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.workload.layer import DimensionRelation, Layer

_FIELDS = tuple(field.name for field in fields(Layer) if field.name != "name")


def nameless_layer(layer: Layer) -> Hashable:
    """All of a layer but its name."""
    return tuple(getattr(layer, field) for field in _FIELDS)


def shape_classes(layer: Layer, grid: LayerGrid) -> tuple[Integers, list[Layer]]:
    """([cn] class, the layer of each class).

    A tile at a border has a class of its own where it is smaller, or where padding is part of its window: what it
    reads of the input is given by `data_dimension_sizes`, padding excluded. The layers have no name.
    """
    loops = [_loop_sizes(dimension, size, grid) for dimension, size in layer.loop_sizes]
    windows = [_window_sizes(layer, relation, grid) for relation in layer.relations]
    key = np.zeros(grid.cn_count, np.int64)
    for sizes in (*loops, *windows):
        if sizes.of_cn is not None:
            distinct, kind = np.unique(sizes.values, return_inverse=True)
            key = key * len(distinct) + kind.reshape(-1)[sizes.of_cn]
    if key.any():
        _, examples, cn_class = np.unique(key, return_index=True, return_inverse=True)
    else:
        examples, cn_class = np.zeros(1, np.int64), key
    # In the order in which the CNs meet the classes.
    order = np.argsort(examples, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    shapes = []
    for cn in examples[order].tolist():
        loop_sizes = tuple([(name, sizes.at(cn)) for (name, _), sizes in zip(layer.loop_sizes, loops, strict=True)])
        window = zip(layer.relations, windows, strict=True)
        data_sizes = tuple([(relation.data_dimension, sizes.at(cn)) for relation, sizes in window])
        shapes.append(replace(layer, name="", loop_sizes=loop_sizes, padding=(), data_dimension_sizes=data_sizes))
    return rank[cn_class.reshape(-1)], shapes


@dataclass(frozen=True, eq=False)
class _Sizes:
    """The size of one dimension in all CNs."""

    values: Integers
    of_cn: Integers | None
    """[cn] place in `values`; None: the first one is that of all"""

    def at(self, cn: int) -> int:
        """That of a CN."""
        return int(self.values[0 if self.of_cn is None else self.of_cn[cn]])


def _loop_sizes(dimension: str, size: int, grid: LayerGrid) -> _Sizes:
    tiles = grid.tiles[dimension]
    if tiles.count == 1:
        return _Sizes(np.array([size]), None)
    shortest, longest = tiles.shortest_and_longest
    return _Sizes(tiles.lengths, None if shortest == longest else grid.tile_of(dimension))


def _window_sizes(layer: Layer, relation: DimensionRelation, grid: LayerGrid) -> _Sizes:
    """Sizes of the data dimension without padding, by pairs of tiles of the relation's loops."""
    whole = _whole_size(layer, relation)
    before = dict(layer.padding).get(relation.data_dimension, (0, 0))[0]
    dimensions = tuple([name for name, _ in relation.terms])
    if all(grid.tiles[name].count == 1 for name in dimensions):
        return _Sizes(np.array([whole]), None)
    first = np.full(1, -before, np.int64)
    last = first
    for name, coefficient in relation.terms:
        tiles = grid.tiles[name]
        first = (first[:, None] + coefficient * tiles.start).ravel()
        last = (last[:, None] + coefficient * (tiles.end - 1)).ravel()
    sizes = np.maximum(np.minimum(last, whole - 1) - np.maximum(first, 0) + 1, 1)
    is_same = bool((sizes == sizes[0]).all())
    return _Sizes(sizes, None if is_same else grid.combination_of(dimensions)[0])


def _whole_size(layer: Layer, relation: DimensionRelation) -> int:
    """Size of the data dimension without padding: as given, else by the loops and the padding."""
    given = dict(layer.data_dimension_sizes)
    if relation.data_dimension in given:
        return given[relation.data_dimension]
    reach = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    return max(1, reach - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))
