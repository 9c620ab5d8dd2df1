"""The graph of a network as a drawing: a box for each node, in rows from the inputs down, coloured by what it needs."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from tilewright.report.canvas import GREY, Canvas
from tilewright.report.colours import lighter
from tilewright.report.figure_layout import figure_style
from tilewright.report.layered_layout import layered_layout
from tilewright.report.printable import make_printable
from tilewright.report.short_names import short_layer_name
from tilewright.workload.graph import MAC_ARRAY, VECTOR_UNIT, Workload, WorkloadNode

BOX_INCHES, GAP_INCHES, MARGIN_INCHES, TITLE_INCHES = (1.9, 0.36), (0.18, 0.22), 0.25, 0.6
NAME_CHARACTERS = 30
PASSAGE_INCHES, LEAST_WIDTH_INCHES = 0.25, 6.0
_COLOURS = {MAC_ARRAY: "#0072B2", VECTOR_UNIT: "#E69F00"}
_WORDS = "blue: layer on the MAC array; orange: layer on the vector unit; white: data movement and what is not costed"


def network_figure(workload: Workload) -> Figure:
    """The nodes of a network in rows by longest path from the inputs; edges run downwards."""
    layout = layered_layout(workload.graph, BOX_INCHES[0] + GAP_INCHES[0], PASSAGE_INCHES)
    pitch = BOX_INCHES[1] + GAP_INCHES[1]
    width = max(2 * MARGIN_INCHES + layout.width, LEAST_WIDTH_INCHES)
    height = TITLE_INCHES + 2 * MARGIN_INCHES + layout.row_count * pitch

    def inches(place: tuple[float, int]) -> tuple[float, float]:
        x, row = place
        return x + (width - layout.width) / 2, height - TITLE_INCHES - MARGIN_INCHES - (row + 0.5) * pitch

    with figure_style():
        canvas = Canvas(width, height)
        canvas.title(MARGIN_INCHES, f"{workload.name}: {len(workload.nodes)} nodes", _WORDS)
        for path in layout.paths:
            _draw_edge(canvas, [inches(place) for place in path])
        for node in workload.nodes:
            _draw_node(canvas, workload, node, *inches(layout.places[node.node_id]))
    return canvas.figure


def write_network_figure(workload: Workload, path: Path) -> None:
    """Write the drawing as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Letters as text, not as outlines: a drawing of a thousand nodes stays small and can be searched.
    with figure_style(), rc_context({"svg.fonttype": "none"}):
        figure = network_figure(workload)
        make_printable(figure)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "tilewright"})


def _draw_edge(canvas: Canvas, bends: list[tuple[float, float]]) -> None:
    """From below the first box to above the last; straight down along the rows that it passes."""
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
