"""Places for the nodes of a directed acyclic graph in rows (the layered method of Sugiyama, 1981).

Nodes stand in the row of their longest path from a source. Edges that pass rows get a narrow place in each of them, one
for all edges of a source, so that they do not run behind nodes. Rows are ordered by the mean place of neighbours
(barycentre heuristic), then every node is moved as near to the mean of its neighbours as order and widths allow.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

_ORDER_SWEEPS, _PLACE_SWEEPS = 6, 8

Node = Hashable
Point = tuple[float, int]
"""(x of the centre, row)."""


@dataclass(frozen=True)
class Layout:
    """Places of nodes, and the bends of each edge from its source to its target, ends included."""

    places: dict[Node, Point]
    paths: tuple[tuple[Point, ...], ...]
    """Edges of one source share the first part of their way."""
    width: float
    row_count: int


def layered_layout(graph: "nx.DiGraph", node_width: float, passage_width: float) -> Layout:
    """The layout of a graph; x runs from 0 to the layout's width, in the unit of the widths."""
    rows, chains, links = _with_passages(graph)
    _order(rows, links)
    widths = {node: node_width if node in graph else passage_width for row in rows for node in row}
    x = _x_of(rows, links, widths)
    left = min((x[node] - widths[node] / 2 for node in x), default=0.0)
    right = max((x[node] + widths[node] / 2 for node in x), default=0.0)
    row_of = {node: number for number, row in enumerate(rows) for node in row}
    at = {node: (x[node] - left, row_of[node]) for node in x}
    paths = tuple(tuple(at[node] for node in chain) for chain in chains)
    return Layout({node: at[node] for node in graph}, paths, right - left, len(rows))


def _with_passages(graph: "nx.DiGraph") -> tuple[list[list[Node]], list[list[Node]], "nx.DiGraph"]:
    """Rows with passages in them, the chain of each edge, and the graph of chains: every edge to the next row."""
    rows: list[list[Node]] = [sorted(row) for row in nx.topological_generations(graph)]
    row_of = {node: number for number, row in enumerate(rows) for node in row}
    links = nx.DiGraph()
    links.add_nodes_from(graph)
    chains = []
    for source, target in graph.edges:
        passages: list[Node] = [(source, row) for row in range(row_of[source] + 1, row_of[target])]
        for passage, row in zip(passages, range(row_of[source] + 1, row_of[target]), strict=True):
            if passage not in links:
                rows[row].append(passage)
        chain = [source, *passages, target]
        nx.add_path(links, chain)
        chains.append(chain)
    return rows, chains, links


def _order(rows: list[list[Node]], links: "nx.DiGraph") -> None:
    place = {node: float(number) for row in rows for number, node in enumerate(row)}
    for sweep in range(_ORDER_SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = links.predecessors if downwards else links.successors
        for row in rows if downwards else reversed(rows):
            aims = {node: _mean([place[other] for other in neighbours(node)], place[node]) for node in row}
            row.sort(key=lambda node: (aims[node], place[node]))
            # Places count from the middle, so that rows of different lengths compare.
            place.update((node, number - (len(row) - 1) / 2) for number, node in enumerate(row))


def _x_of(rows: list[list[Node]], links: "nx.DiGraph", widths: dict[Node, float]) -> dict[Node, float]:
    x: dict[Node, float] = {}
    for row in rows:
        x.update(zip(row, _apart([0.0] * len(row), [widths[node] for node in row]), strict=True))
    for sweep in range(_PLACE_SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = links.predecessors if downwards else links.successors
        for row in rows if downwards else reversed(rows):
            aims = [_mean([x[other] for other in neighbours(node)], x[node]) for node in row]
            x.update(zip(row, _apart(aims, [widths[node] for node in row]), strict=True))
    return x


def _apart(aims: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Places in order, no two nearer than their widths allow, with the least sum of squared distances to the aims.

    Isotonic regression of what is left of the aims without the widths: neighbours that would overlap move as a block.
    """
    starts = [0.0]
    for first, second in pairwise(widths):
        starts.append(starts[-1] + (first + second) / 2)
    blocks: list[tuple[float, int]] = []
    for aim, start in zip(aims, starts, strict=False):
        mean, count = aim - start, 1
        while blocks and blocks[-1][0] > mean:
            before, members = blocks.pop()
            mean, count = (before * members + mean * count) / (members + count), members + count
        blocks.append((mean, count))
    shifts = [mean for mean, count in blocks for _ in range(count)]
    return [start + shift for start, shift in zip(starts, shifts, strict=False)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
