"""Data that flows from the CNs of one layer to those of another: pairs, and how many elements each passes on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import Problem
from tilewright.fusion.alike import Alike, axes_of
from tilewright.fusion.axis_join import (
    NOBODY,
    AxisJoin,
    AxisOwners,
    ascending,
    join_intervals,
    product_of_joins,
    spread,
)
from tilewright.fusion.axis_rows import AxisRows, axis_rows, owners_along
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Demand
from tilewright.workload.access import Boxes, IndexMap, Shape
from tilewright.workload.graph import WorkloadNode

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Producer:
    """How the CNs of a layer make one tensor."""

    grid: LayerGrid
    owners: tuple[AxisOwners, ...]
    """For each axis: what the tile that makes an index adds to the number of a CN."""
    last_step: int = 0
    """What the last steps of all reductions add: only they have final values."""
    is_exact: bool = True
    """False where tiles make elements together."""
    unsplittable: tuple[str, ...] = ()
    """Dimensions whose tiles add to the same elements: they cannot be of different groups."""

    def cns(self, owner: Integers) -> Integers:
        """CNs from sums of owners."""
        return self.grid.cn_of(owner + self.last_step if self.last_step else owner)


def producer_of(node: WorkloadNode, tensor: str, shape: Shape, grid: LayerGrid, alike: Alike) -> Producer:
    """How a layer makes one of its outputs."""
    index_map = _map_of(node, tensor)
    key = index_map.loops, axes_of(index_map.output), shape, grid
    return alike.once_for(key, _producer, index_map, shape, grid, alike)


def _map_of(node: WorkloadNode, tensor: str) -> IndexMap:
    return next(index_map for index_map in node.index_maps if index_map.output.tensor == tensor)


def _producer(index_map: IndexMap, shape: Shape, grid: LayerGrid, alike: Alike) -> Producer:
    axes = zip(index_map.output.axes, shape, strict=True)
    rows = [axis_rows(axis, size, index_map, grid, alike) for axis, size in axes]
    made = [alike.once(owners_along, row) for row in rows]
    shared = [
        dimension for row, (_, together) in zip(rows, made, strict=True) if together for dimension in row.dimensions
    ]
    written = {dimension for row in rows for dimension in row.dimensions}
    reduced = [dimension for dimension in grid.tiled_dimensions if dimension not in written]
    last_step = sum(int(grid.tiles[dimension].number.max()) for dimension in reduced)
    return Producer(grid, tuple([owners for owners, _ in made]), last_step, not shared, (*reduced, *shared))


def split_reductions(node: WorkloadNode, tensor: str, producer: Producer) -> list[Problem]:
    """What cannot be cut as the grid wants it.

    A reduction is added up by one core: its steps, and tiles that add to the same elements, must be of one group.
    """
    grid = producer.grid
    problems = []
    for place in grid.tiling.group_loops:
        dimension = grid.loops[place].dimension
        if dimension in producer.unsplittable:
            message = "a reduction cannot be split over cores: its partial sums would have to be added up across them"
            index_map = _map_of(node, tensor)
            kept = _kept(index_map) - set(producer.unsplittable)
            allowed = ", ".join(name for name, _ in index_map.loops if name in kept)
            problems.append(Problem(message, path=node.name, value=dimension, allowed=allowed))
    return problems


def _kept(index_map: IndexMap) -> set[str]:
    return {name for axis in index_map.output.axes for name, _ in axis.terms}


def content_flow(demand: Demand, producer: Producer, alike: Alike) -> tuple[Integers, Integers, Integers]:
    """(content, CN of the producer, elements) of all that flows; contents and, within one, CNs ascend."""
    joins: list[tuple[AxisJoin, Integers | None]] = []
    fixed_owner, fixed_elements = 0, 1
    for axis, owners in enumerate(producer.owners):
        if demand.axes is None:
            joins.append(_join_of_boxes(demand.boxes[:, axis, 0], demand.boxes[:, axis, 1], owners))
            continue
        rows, row_of_entry = demand.axes[axis]
        if rows.only is None or owners.only is None:
            is_own = row_of_entry is demand.content and len(row_of_entry) == len(rows.first)
            joins.append((alike.once(AxisRows.joined, rows, owners), None if is_own else row_of_entry))
        else:  # an axis that neither side cuts: the same for all
            fixed_owner += owners.only
            fixed_elements *= rows.only[1] - rows.only[0] if owners.only != NOBODY else 0
    if not fixed_elements:
        return _NONE, _NONE, _NONE
    entry, owner, elements = product_of_joins(joins, len(demand.content), fixed_owner, fixed_elements)
    content = demand.content[entry]
    if len(joins) == 1 and joins[0][1] is None:  # as the join has them
        return content, producer.cns(owner), elements
    return added_up(content, producer.cns(owner), elements)


def _join_of_boxes(first: Integers, end: Integers, owners: AxisOwners) -> tuple[AxisJoin, Integers]:
    """(the join of the distinct ranges of boxes along an axis, [box] its row)."""
    size = len(owners.of_index) + 1
    keys, row_of_entry = np.unique(first * size + end, return_inverse=True)
    return join_intervals(keys // size, keys % size, owners), row_of_entry.reshape(-1)


def flow(
    demands: tuple[Demand, ...], producer: Producer, grid: LayerGrid, alike: Alike
) -> tuple[Integers, Integers, Integers, bool]:
    """(consumer CN, producer CN, elements, exact) for one operand that needs one tensor, along any number of ways.

    What is needed along several ways flows once. Consumer CNs and, for one, producer CNs ascend.
    """
    if len(demands) == 1:
        (demand,) = demands
        content, source, elements = content_flow(demand, producer, alike)
        is_exact = demand.is_exact
        dimensions = demand.dimensions
    else:
        dimensions = tuple(d for d in grid.tiled_dimensions if any(d in demand.dimensions for demand in demands))
        disjoint = _disjoint([_refined(demand, dimensions, grid) for demand in demands])
        parts = [content_flow(part, producer, alike) for part in disjoint]
        content, source, elements = added_up(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        is_exact = all(demand.is_exact and not demand.is_gapped for demand in demands)
    is_exact = is_exact and producer.is_exact
    content_of_cn, content_count, is_own = grid.contents(dimensions)
    if is_own:
        return content, source, elements, is_exact
    start = np.zeros(content_count + 1, np.int64)
    np.cumsum(np.bincount(content, minlength=content_count), out=start[1:])
    target, entry = spread(start, content_of_cn)
    return target, source[entry], elements[entry], is_exact


def added_up(content: Integers, source: Integers, elements: Integers) -> tuple[Integers, Integers, Integers]:
    """(content, source, elements) by content, then by source, each pair once with the sum of its elements."""
    if ascending(content, source):
        return content, source, elements
    order = np.lexsort((source, content))
    content, source, elements = content[order], source[order], elements[order]
    heads = np.flatnonzero(np.append(True, (content[1:] != content[:-1]) | (source[1:] != source[:-1])))
    if len(heads) == len(content):
        return content, source, elements
    return content[heads], source[heads], np.add.reduceat(elements, heads)


def _refined(demand: Demand, dimensions: tuple[str, ...], grid: LayerGrid) -> Demand:
    """The same demand, as boxes, with contents told apart by more dimensions."""
    content = np.zeros(1, np.int64)
    for dimension in dimensions:
        tiles = grid.tiles[dimension].count
        steps = np.arange(tiles) if dimension in demand.dimensions else np.zeros(tiles, np.int64)
        scale = tiles if dimension in demand.dimensions else 1
        content = (content[:, None] * scale + steps).ravel()
    place = np.searchsorted(demand.content, content)
    found = place < len(demand.content)
    found[found] = demand.content[place[found]] == content[found]
    refined = np.flatnonzero(found).astype(np.int64)
    return Demand(dimensions, refined, demand.is_exact, None, demand.boxes[place[found]])


def _disjoint(demands: Sequence[Demand]) -> list[Demand]:
    """Demands whose boxes of one content do not overlap and hold the same elements together."""
    parts: list[Demand] = []
    for number, demand in enumerate(demands):
        pieces = [(demand.content, demand.boxes)]
        for earlier in demands[:number]:
            pieces = [rest for piece in pieces for rest in _without(*piece, earlier)]
        parts += [replace(demand, content=content, moved_boxes=boxes) for content, boxes in pieces]
    return parts


def _without(content: Integers, boxes: Boxes, other: Demand) -> list[tuple[Integers, Boxes]]:
    """Boxes without those of the same content of another demand, cut into boxes."""
    place = np.minimum(np.searchsorted(other.content, content), max(len(other.content) - 1, 0))
    if not len(other.content):
        return [(content, boxes)]
    cut = other.boxes[place]
    overlap = np.maximum(boxes[:, :, 0], cut[:, :, 0]) < np.minimum(boxes[:, :, 1], cut[:, :, 1])
    meets = (other.content[place] == content) & overlap.all(axis=1)
    if not meets.any():
        return [(content, boxes)]
    pieces = [(content[~meets], boxes[~meets])]
    content, rest, cut = content[meets], boxes[meets].copy(), cut[meets]
    for axis in range(boxes.shape[1]):
        for side in (0, 1):
            piece = rest.copy()
            inner = np.clip(cut[:, axis, side], rest[:, axis, 0], rest[:, axis, 1])
            piece[:, axis, 1 - side] = inner
            rest[:, axis, side] = inner
            filled = piece[:, axis, 0] < piece[:, axis, 1]
            pieces.append((content[filled], piece[filled]))
    return [(contents, part) for contents, part in pieces if len(contents)]
