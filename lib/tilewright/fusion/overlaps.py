"""What a layer needs of one tensor along several ways, without what they share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Demand
from tilewright.workload.access import Boxes


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


def disjoint_demands(demands: Sequence[Demand], dimensions: tuple[str, ...], grid: LayerGrid) -> list[Demand]:
    """Demands whose boxes of one content do not overlap and hold the same elements together.

    Contents are told apart by `dimensions`, which hold those of every demand.
    """
    demands = [_refined(demand, dimensions, grid) for demand in demands]
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
