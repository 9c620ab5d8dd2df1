"""Names of the rows of a panel on several lines, so that long names leave room for the plot."""

from itertools import pairwise
from math import ceil

from matplotlib.axes import Axes

from tilewright.results.latex_layout import pieces

MOST_LINES = 4
LINE_INCHES = 0.125
"""Height of a line of a name, in inches, with its part of the gap to the next row."""


def break_names(axes: Axes, lines: int) -> None:
    """Write each name beside the vertical axis on several lines, if needed. No line is longer than the longest name
    divided by `lines`, unless it cannot be broken. A line ends only between words, or after a separator such as `_` or
    `/` inside a word.
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
