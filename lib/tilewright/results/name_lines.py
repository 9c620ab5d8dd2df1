"""Names of the rows of a panel on several lines, so that long names leave room for the plot."""

from itertools import pairwise
from math import ceil

from matplotlib.axes import Axes

from tilewright.results.latex_layout import pieces

MOST_LINES = 4
LINE_INCHES = 0.125
"""Height in inches of one line of a name, including a share of the gap between rows."""


def break_names(axes: Axes, lines: int) -> None:
    """Write each name beside the vertical axis on several lines, if needed. A line has at most (length of the longest
    name / `lines`) characters; only a part that cannot be broken can be longer. A line ends only between words, or
    after a separator such as `_` or `/` inside a word.
    """
    names = [label.get_text().replace("\n", "") for label in axes.get_yticklabels()]
    most = ceil(max(map(len, names), default=0) / lines)
    axes.set_yticks(axes.get_yticks(), labels=["\n".join(_lines(name, most)) for name in names])


def names_inches(axes: Axes) -> float:
    """Smallest height of a panel, in inches, in which the names beside its vertical axis do not overlap."""
    lines = [label.get_text().count("\n") + 1 for label in axes.get_yticklabels()]
    places = sorted(map(float, axes.get_yticks()))
    low, high = sorted(map(float, axes.get_ylim()))
    gap = min((second - first for first, second in pairwise(places)), default=high - low)
    return LINE_INCHES * max(lines, default=0) * (high - low) / gap if gap else 0.0


def _lines(name: str, most: int) -> list[str]:
    found = [""]
    for piece in pieces(name):
        if found[-1] and len(found[-1] + piece.rstrip()) > most:
            found.append("")
        found[-1] += piece
    return found
