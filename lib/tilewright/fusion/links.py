"""Data that flows from the CNs of one layer to those of another: pairs, and how many elements each passes on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import Problem
from tilewright.fusion.axis_join import AxisJoin, join_intervals, product_of_joins, spread
from tilewright.fusion.axis_rows import axis_rows, owners_along
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Needs
from tilewright.workload.access import Boxes, IndexMap, Shape
from tilewright.workload.graph import WorkloadNode


@dataclass(frozen=True, eq=False)
class Producer:
    """How the CNs of a layer make one tensor."""

    grid: LayerGrid
    owners: tuple[Integers, ...]
    """For each axis: [index] what the tile that makes it adds to the number of a CN, -1 where none does."""
    last_step: int
    """What the last steps of all reductions add: only they have final values."""
    is_exact: bool
    """False where tiles make elements together."""

    def cns(self, owner: Integers) -> Integers:
        """CNs from sums of owners."""
        return self.grid.cn_of(owner + self.last_step)


def producer_of(node: WorkloadNode, tensor: str, shape: Shape, grid: LayerGrid) -> tuple[Producer, list[Problem]]:
    """How a layer makes one of its outputs, and what cannot be cut as the grid wants it.

    A reduction is added up by one core: its steps, and tiles that add to the same elements, must be of one group.
    """
    index_map = next(index_map for index_map in node.index_maps if index_map.output.tensor == tensor)
    rows = [axis_rows(axis, size, index_map, grid) for axis, size in zip(index_map.output.axes, shape, strict=True)]
    made = [owners_along(row) for row in rows]
    shared = {
        dimension for row, (_, together) in zip(rows, made, strict=True) if together for dimension in row.dimensions
    }
    written = {dimension for row in rows for dimension in row.dimensions}
    reduced = [dimension for dimension in grid.tiled_dimensions if dimension not in written]
    problems = []
    for place in grid.tiling.group_loops:
        dimension = grid.loops[place].dimension
        if dimension in reduced or dimension in shared:
            message = "a reduction cannot be split over cores: its partial sums would have to be added up across them"
            allowed = ", ".join(dimension for dimension in grid.tiles if dimension in _kept(index_map) - shared)
            problems.append(Problem(message, path=node.name, value=dimension, allowed=allowed))
    last_step = sum(int(grid.tiles[dimension].number.max()) for dimension in reduced)
    return Producer(grid, tuple(owner for owner, _ in made), last_step, not shared), problems


def _kept(index_map: IndexMap) -> set[str]:
    return {name for axis in index_map.output.axes for name, _ in axis.terms}


def content_flow(needs: Needs, producer: Producer) -> tuple[Integers, Integers, Integers]:
    """(content, CN of the producer, elements) of all that flows; contents and, within one, CNs ascend."""
    joins: list[tuple[AxisJoin, Integers]] = []
    for axis, owner_of_index in enumerate(producer.owners):
        if needs.axes is not None:
            rows, row_of_entry = needs.axes[axis]
            joins.append((rows.joined(owner_of_index), row_of_entry))
            continue
        first, end = needs.boxes[:, axis, 0], needs.boxes[:, axis, 1]
        keys, row_of_entry = np.unique(first * (len(owner_of_index) + 1) + end, return_inverse=True)
        first, end = keys // (len(owner_of_index) + 1), keys % (len(owner_of_index) + 1)
        joins.append((join_intervals(first, end, owner_of_index), row_of_entry.reshape(-1)))
    entry, owner, elements = product_of_joins(joins, len(needs.content))
    return _added_up(needs.content[entry], producer.cns(owner), elements)


def flow(all_needs: Sequence[Needs], producer: Producer, grid: LayerGrid) -> tuple[Integers, Integers, Integers, bool]:
    """(consumer CN, producer CN, elements, exact) for one operand that needs one tensor, along any number of ways.

    What is needed along several ways flows once. Consumer CNs and, for one, producer CNs ascend.
    """
    if len(all_needs) == 1:
        needs = all_needs[0]
        content, source, elements = content_flow(needs, producer)
        is_exact = needs.is_exact
        dimensions = needs.dimensions
    else:
        dimensions = tuple(d for d in grid.tiled_dimensions if any(d in needs.dimensions for needs in all_needs))
        parts = [content_flow(part, producer) for part in _disjoint([_refined(n, dimensions, grid) for n in all_needs])]
        content, source, elements = _added_up(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        is_exact = all(needs.is_exact and not _is_gapped(needs) for needs in all_needs)
    content_of_cn, counts = grid.combination_of(dimensions)
    start = np.zeros(int(np.prod(counts, dtype=np.int64)) + 1, np.int64)
    np.cumsum(np.bincount(content, minlength=len(start) - 1), out=start[1:])
    target, entry = spread(start, content_of_cn)
    return target, source[entry], elements[entry], is_exact and producer.is_exact


def _added_up(content: Integers, source: Integers, elements: Integers) -> tuple[Integers, Integers, Integers]:
    order = np.lexsort((source, content))
    content, source, elements = content[order], source[order], elements[order]
    if not len(content):
        return content, source, elements
    heads = np.flatnonzero(np.append(True, (content[1:] != content[:-1]) | (source[1:] != source[:-1])))
    if len(heads) == len(content):
        return content, source, elements
    return content[heads], source[heads], np.add.reduceat(elements, heads)


def _is_gapped(needs: Needs) -> bool:
    return needs.axes is not None and any(rows.gapped is not None for rows, _ in needs.axes)


def _refined(needs: Needs, dimensions: tuple[str, ...], grid: LayerGrid) -> Needs:
    """The same needs, as boxes, with contents told apart by more dimensions."""
    content = np.zeros(1, np.int64)
    for dimension in dimensions:
        tiles = grid.tiles[dimension].count
        steps = np.arange(tiles) if dimension in needs.dimensions else np.zeros(tiles, np.int64)
        scale = tiles if dimension in needs.dimensions else 1
        content = (content[:, None] * scale + steps).ravel()
    place = np.searchsorted(needs.content, content)
    found = place < len(needs.content)
    found[found] = needs.content[place[found]] == content[found]
    refined = np.flatnonzero(found).astype(np.int64)
    return replace(needs, dimensions=dimensions, content=refined, boxes=needs.boxes[place[found]], axes=None)


def _disjoint(all_needs: Sequence[Needs]) -> list[Needs]:
    """Needs whose boxes of one content do not overlap and hold the same elements together."""
    parts: list[Needs] = []
    for number, needs in enumerate(all_needs):
        pieces = [(needs.content, needs.boxes)]
        for earlier in all_needs[:number]:
            pieces = [rest for piece in pieces for rest in _without(*piece, earlier)]
        parts += [replace(needs, content=content, boxes=boxes) for content, boxes in pieces]
    return parts


def _without(content: Integers, boxes: Boxes, other: Needs) -> list[tuple[Integers, Boxes]]:
    """Boxes without those of the same content of other needs, cut into boxes."""
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
