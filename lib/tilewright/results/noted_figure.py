"""Figure with notes: title, lines below the title, words for the axes, legend, and the numbers that the figure shows.

A figure of a report shows title, lines and legend. In a figure for a paper, title and lines become the caption, the
words become axis labels, and the numbers become a CSV file beside the figure.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tilewright.base.harmless import visible

if TYPE_CHECKING:
    import pandas

SMALL_TEXT, NUMBER_TEXT, PANEL_TEXT, TITLE_TEXT = (
    *("text of a mark", "number of a point", "text of a panel", "title"),
)
"""Ids of texts (`Artist.set_gid`). A figure for a paper treats texts by their id.

* SMALL_TEXT: number or name on a mark, left out if there is no room.
* NUMBER_TEXT: number beside a point, left out if it overlaps another number.
* PANEL_TEXT: text above a panel, moved to the caption.
* TITLE_TEXT: title of a diagram, moved to the caption.
"""


class NotedFigure(Figure):
    """Figure that keeps its title and numbers, which can then be written to files beside the figure."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.caption_title = ""
        self.caption_lines: tuple[str, ...] = ()
        self.further_lines: tuple[str, ...] = ()
        """Lines that are too long for the caption of a figure for a paper, such as assumptions. They are in the text
        file beside the figure.
        """
        self.shares_rows = False
        """True if the panels of a row share their vertical axis. Such panels stay beside each other in a figure for a
        paper.
        """
        self.words_of_marks = ""
        """Line of the caption that explains texts with the id SMALL_TEXT. It is left out if the figure has no room for
        these texts.
        """
        self.place_numbers: Callable[[], None] | None = None
        """Function that draws numbers beside points. A figure for a paper calls it after its panels have been placed.
        """
        self.handles: tuple[Artist, ...] = ()
        """Entries of the legend below a figure for a paper. A figure of a report does not use these entries: it draws
        its own legend.
        """
        self.numbers: Callable[[], pandas.DataFrame] | None = None
        """Function that makes the table of the shown numbers, with full precision, in base units."""
        self.words: dict[Axes, tuple[str, str]] = {}
        """Axis labels of panels that have such labels only in a paper: panel -> (label of the horizontal axis, label of
        the vertical axis). '' means that the axis has no label.
        """

    def note(
        self,
        title: str,
        lines: Iterable[str] = (),
        numbers: "Callable[[], pandas.DataFrame] | None" = None,
        handles: Sequence[Artist] = (),
        further: Iterable[str] = (),
    ) -> None:
        """Keep the title, the lines of the caption, the function that makes the table of numbers, the entries of the
        legend, and the lines that the text file has below the caption (`further`).

        Line breaks in the title and in the lines are replaced by visible escapes, so a name in them cannot begin a new
        line of the caption. Empty lines are left out. Each line begins with a capital letter, because it is a sentence
        of the caption; therefore, neither the title nor a line may begin with a name. `handles` are added to the
        existing entries of the legend.
        """
        self.caption_title, self.caption_lines = visible(title), tuple(sentence(line) for line in lines if line)
        self.further_lines = tuple(sentence(line) for line in further if line)
        self.numbers = numbers
        self.handles += tuple(handles)


def sentence(line: str) -> str:
    """Line of a caption: the first letter is a capital letter, and line breaks are visible escapes."""
    return visible(line[:1].upper() + line[1:])


def name_axes(panel: Axes, across: str = "", upwards: str = "") -> None:
    """Store the labels of the horizontal axis (`across`) and of the vertical axis (`upwards`) of a panel. A report does
    not show these labels, but a figure for a paper does.
    """
    figure = panel.figure
    if isinstance(figure, NotedFigure):
        figure.words[panel] = (across, upwards)
