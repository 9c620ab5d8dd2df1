"""Figure with notes: its title, the lines below it, the words for its axes, its legend and the numbers that it shows.

A figure of a report shows the title, lines and legend. In a figure for a paper, the title and the lines become the
caption, the words become axis labels, and the numbers become a CSV file beside the figure.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    import pandas

SMALL_TEXT, NUMBER_TEXT, PANEL_TEXT, TITLE_TEXT = (
    *("text of a mark", "number of a point", "text of a panel", "title"),
)
"""Ids of texts (`Artist.set_gid`), which say what a figure for a paper does with the text.

SMALL_TEXT is a number or name on a mark, left out if there is no room. NUMBER_TEXT is a number beside a point, left out
if it overlaps another. PANEL_TEXT is a text above a panel, and TITLE_TEXT a title of a diagram: both move to the
caption.
"""


class NotedFigure(Figure):
    """Figure that keeps its title and numbers, so that they can be written to files beside the figure."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.caption_title = ""
        self.caption_lines: tuple[str, ...] = ()
        self.handles: tuple[Artist, ...] = ()
        """Legend entries that the function of the figure draws itself."""
        self.numbers: Callable[[], pandas.DataFrame] | None = None
        """Function that makes the table of the numbers, with full precision, in base units."""
        self.words: dict[Axes, tuple[str, str]] = {}
        """Words for the horizontal and the vertical axis of a panel that has no labels of its own; '' for none."""

    def note(
        self,
        title: str,
        lines: Iterable[str] = (),
        numbers: "Callable[[], pandas.DataFrame] | None" = None,
        handles: Sequence[Artist] = (),
    ) -> None:
        """Keep the title, the lines of the caption, the table of numbers, and the entries of the legend."""
        self.caption_title, self.caption_lines = title, tuple(line for line in lines if line)
        self.numbers = numbers
        self.handles += tuple(handles)


def name_axes(panel: Axes, across: str = "", upwards: str = "") -> None:
    """Keep the words for the axes of a panel that shows no labels in a report."""
    figure = panel.figure
    if isinstance(figure, NotedFigure):
        figure.words[panel] = (across, upwards)
