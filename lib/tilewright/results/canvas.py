"""Canvas for figures that are drawn in inches: boxes, lines and text."""

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle

from tilewright.results.noted_figure import TITLE_TEXT, NotedFigure

GREY = "#444444"


class Canvas:
    """Canvas that draws texts, boxes and arrows into `figure`; all positions and sizes are in inches."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = NotedFigure(figsize=(width, height))
        FigureCanvasAgg(self.figure)
        self._inches = self.figure.dpi_scale_trans

    def text(self, x: float, y: float, text: str, points: float, **style: Any) -> None:
        """Draw a line of text, vertically centred on y. The text begins at x unless `ha` sets another alignment."""
        self.figure.text(x, y, text, fontsize=points, transform=self._inches, **{"va": "center", **style})

    def title(self, x: float, title: str, *lines: str) -> None:
        """Draw a bold title at the top and smaller lines below it; empty lines are left out."""
        self.text(x, self.height - 0.2, title, 10, weight="bold", gid=TITLE_TEXT)
        self.figure.note(title, lines, self.figure.numbers)
        for number, line in enumerate(line for line in lines if line):
            self.text(x, self.height - 0.4 - 0.15 * number, line, 7.5, color=GREY, gid=TITLE_TEXT)

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle with its lower left corner at (x, y)."""
        self._add(Rectangle((x, y), width, height, **{"linewidth": 1, **style}))

    def rounded_box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle with round corners."""
        shape = "round,pad=0,rounding_size=0.06"
        self._add(FancyBboxPatch((x, y), width, height, boxstyle=shape, **{"linewidth": 1, **style}))

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        """Draw an arrow that points to `end`."""
        look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
        self._add(FancyArrowPatch(start, end, color=colour, **look))

    def line(self, *points: tuple[float, float], **style: Any) -> None:
        """Draw straight lines from point to point."""
        ends = zip(*points, strict=True)
        self.figure.add_artist(Line2D(*(list(pair) for pair in ends), transform=self._inches, **style))

    def _add(self, patch: Patch) -> None:
        patch.set_transform(self._inches)
        self.figure.add_artist(patch)
