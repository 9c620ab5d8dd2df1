"""The graph of a network as a drawing: a box for each node, in rows from the inputs down, coloured by what it needs."""

from collections.abc import Sequence
from pathlib import Path

import networkx as nx
from matplotlib import rc_context
from matplotlib.figure import Figure

from tilewright.report.canvas import GREY, Canvas
from tilewright.report.colours import lighter
from tilewright.report.figure_layout import figure_style
from tilewright.report.short_names import short_layer_name
from tilewright.workload.graph import MAC_ARRAY, VECTOR_UNIT, Workload, WorkloadNode

BOX_INCHES, GAP_INCHES, MARGIN_INCHES, TITLE_INCHES = (1.9, 0.36), (0.18, 0.22), 0.25, 0.6
NAME_CHARACTERS = 30
_SWEEPS = 4
"""Passes that order each row by the mean place of its neighbours (barycentre heuristic of Sugiyama)."""
_COLOURS = {MAC_ARRAY: "#0072B2", VECTOR_UNIT: "#E69F00"}
_WORDS = "blue: layer on the MAC array; orange: layer on the vector unit; white: data movement and what is not costed"


def network_figure(workload: Workload) -> Figure:
    """The nodes of a network in rows by longest path from the inputs; edges run downwards."""
    rows = _ordered_rows(workload)
    widest = max((len(row) for row in rows), default=1)
    pitch = (BOX_INCHES[0] + GAP_INCHES[0], BOX_INCHES[1] + GAP_INCHES[1])
    width = max(2 * MARGIN_INCHES + widest * pitch[0], 6.0)
    height = TITLE_INCHES + 2 * MARGIN_INCHES + len(rows) * pitch[1]
    centres = {}
    for number, row in enumerate(rows):
        left = (width - (len(row) - 1) * pitch[0]) / 2
        for place, node_id in enumerate(row):
            y = height - TITLE_INCHES - MARGIN_INCHES - (number + 0.5) * pitch[1]
            centres[node_id] = (left + place * pitch[0], y)
    with figure_style():
        canvas = Canvas(width, height)
        canvas.title(MARGIN_INCHES, f"{workload.name}: {len(workload.nodes)} nodes", _WORDS)
        for source, target in workload.graph.edges:
            _draw_edge(canvas, centres[source], centres[target])
        for node in workload.nodes:
            _draw_node(canvas, workload, node, *centres[node.node_id])
    return canvas.figure


def write_network_figure(workload: Workload, path: Path) -> None:
    """Write the drawing as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Letters as text, not as outlines: a drawing of a thousand nodes stays small and can be searched.
    with figure_style(), rc_context({"svg.fonttype": "none"}):
        network_figure(workload).savefig(path, format="svg", metadata={"Date": None, "Creator": "tilewright"})


def _ordered_rows(workload: Workload) -> list[list[int]]:
    graph = workload.graph
    rows = [sorted(row) for row in nx.topological_generations(graph)]
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = graph.predecessors if downwards else graph.successors
        places: dict[int, float] = {}
        for row in rows:
            places.update((node, place / max(len(row) - 1, 1)) for place, node in enumerate(row))
        for row in rows if downwards else reversed(rows):
            row.sort(key=lambda node: (_mean([places[n] for n in neighbours(node)], places[node]), node))
            places.update((node, place / max(len(row) - 1, 1)) for place, node in enumerate(row))
    return rows


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _draw_edge(canvas: Canvas, start: tuple[float, float], end: tuple[float, float]) -> None:
    half = BOX_INCHES[1] / 2
    canvas.line((start[0], start[1] - half), (end[0], end[1] + half), color=GREY, linewidth=0.6, alpha=0.7)


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
