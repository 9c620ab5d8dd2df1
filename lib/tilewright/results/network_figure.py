"""Drawing of the graph of a network: a box for each node, in the colour of the unit that runs the node.

Edges run downwards from the inputs.

The row of a node is the length of the longest path to the node from a node without predecessors (the layered method of
Sugiyama, 1981). If an edge crosses a row, the row has a narrow passage for the edge, so that the edge does not run
behind nodes. Edges that leave the same node share one passage.

The nodes of a row are ordered by the mean position of their neighbours (barycentre heuristic). Each node is then moved
towards the mean position of its neighbours, within the order of its row and without overlaps.
"""

import io
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import networkx as nx
from matplotlib import rc_context
from matplotlib.figure import Figure

from tilewright.base.artifacts.files import write_atomically
from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.results.canvas import GREY, Canvas
from tilewright.results.figure_files import figure_style, make_printable
from tilewright.results.figure_layout import lighter
from tilewright.results.words import short_layer_name
from tilewright.workload.graph import Workload, WorkloadNode

_ORDER_SWEEPS, _PLACE_SWEEPS = 6, 8

Node = Hashable
Point = tuple[float, int]
"""Pair (x of the centre of a node or passage, number of its row). An edge that crosses a row runs through a passage."""


@dataclass(frozen=True)
class Layout:
    """Positions of nodes, and the points of each edge from its source to its target."""

    places: dict[Node, Point]
    paths: tuple[tuple[Point, ...], ...]
    """Path of each edge: points from its source node to its target node. Edges that leave the same node share their
    first points.
    """
    width: float
    row_count: int


def layered_layout(graph: "nx.DiGraph", node_width: float, passage_width: float) -> Layout:
    """Layout of a graph in rows. The x positions run from 0 to the width of the layout; their unit is that of
    `node_width` and `passage_width`.

    A passage is the room in a row for an edge that crosses the row.
    """
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
    """Triple (rows, chains, links).

    * `rows` has the nodes and the passages of each row.
    * `chains` has a list for each edge: its source, its passages, and its target.
    * `links` is a graph of the nodes and passages, in which every edge goes to the next row.
    """
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
    """Positions of the centres of items in a row, in ascending order and without overlaps. The sum of squared distances
    to the wanted positions `aims` is as small as possible. `widths` are the widths of the items.

    The items are first placed side by side, so that neighbours touch. The wanted shift of an item is its aim minus its
    first position. An isotonic regression of the wanted shifts gives the result: neighbours that would overlap get the
    same shift.
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


BOX_INCHES, GAP_INCHES, MARGIN_INCHES, TITLE_INCHES = (1.9, 0.36), (0.18, 0.22), 0.25, 0.6
NAME_CHARACTERS = 30
PASSAGE_INCHES, LEAST_WIDTH_INCHES = 0.25, 6.0
_COLOURS = {MAC_ARRAY: "#0072B2", VECTOR_UNIT: "#E69F00"}
_WORDS = (
    "blue: layer on the MAC array; orange: layer on the vector unit; white: data movement and operators without costs"
)


def network_figure(workload: Workload) -> Figure:
    """Figure of the nodes of a network. The row of a node is the length of the longest path from an input to the node;
    edges run downwards.
    """
    layout = layered_layout(workload.graph, BOX_INCHES[0] + GAP_INCHES[0], PASSAGE_INCHES)
    pitch = BOX_INCHES[1] + GAP_INCHES[1]
    width = max(2 * MARGIN_INCHES + layout.width, LEAST_WIDTH_INCHES)
    height = TITLE_INCHES + 2 * MARGIN_INCHES + layout.row_count * pitch

    def inches(place: tuple[float, int]) -> tuple[float, float]:
        x, row = place
        return x + (width - layout.width) / 2, height - TITLE_INCHES - MARGIN_INCHES - (row + 0.5) * pitch

    with figure_style():
        canvas = Canvas(width, height)
        canvas.title(MARGIN_INCHES, f"Network {workload.name}: {len(workload.nodes)} nodes", _WORDS)
        for path in layout.paths:
            _draw_edge(canvas, [inches(place) for place in path])
        for node in workload.nodes:
            _draw_node(canvas, workload, node, *inches(layout.places[node.node_id]))
    return canvas.figure


def write_network_figure(workload: Workload, path: Path) -> None:
    """Write the figure of a network as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Letters as text, not as outlines: a drawing of a thousand nodes stays small and can be searched.
    with figure_style(), rc_context({"svg.fonttype": "none"}):
        figure = network_figure(workload)
        make_printable(figure)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": "tilewright"})
    write_atomically(path, drawn.getvalue())


def _draw_edge(canvas: Canvas, bends: list[tuple[float, float]]) -> None:
    """Draw an edge from the bottom of the box of its source to the top of the box of its target. `bends` are pairs (x,
    y) in inches: the centre of the box of the source, a point in each row that the edge crosses, and the centre of the
    box of the target. In the rows that it crosses, the edge is vertical.
    """
    half = BOX_INCHES[1] / 2
    points = [(bends[0][0], bends[0][1] - half)]
    for x, y in bends[1:-1]:
        points += [(x, y + half), (x, y - half)]
    points.append((bends[-1][0], bends[-1][1] + half))
    canvas.line(*points, color=GREY, linewidth=0.6, alpha=0.7)


def _draw_node(canvas: Canvas, workload: Workload, node: WorkloadNode, x: float, y: float) -> None:
    width, height = BOX_INCHES
    colour = _COLOURS.get(node.unit, _COLOURS[MAC_ARRAY] if node.layer else "#ffffff")
    fill = lighter(colour, 0.65) if node.layer else "#ffffff"
    canvas.box(x - width / 2, y - height / 2, width, height, facecolor=fill, edgecolor=GREY)
    shape = " ".join(
        "×".join(map(str, workload.tensor_of[name].shape)) for name in node.outputs[:1] if name in workload.tensor_of
    )
    canvas.text(x, y + 0.08, short_layer_name(node.name, "", NAME_CHARACTERS), 6.0, ha="center")
    canvas.text(x, y - 0.08, f"{node.operator_type} {shape}".strip(), 6.0, ha="center", color=GREY)
