"""Names as a drawing can hold them: XML has no form for control characters, and names of networks may have any."""

import re

from matplotlib.figure import Figure
from matplotlib.text import Text

REPLACEMENT = "\ufffd"
"""What stands for a character that cannot be drawn."""
_NOT_DRAWN = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """The text with every character that XML forbids or that controls a terminal replaced."""
    return _NOT_DRAWN.sub(REPLACEMENT, text)


def make_printable(figure: Figure) -> None:
    """Replaces such characters in all texts of a figure."""
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        shown = printable(text.get_text())
        if shown != text.get_text():
            text.set_text(shown)
