"""Layout of a LaTeX table in a given width.

The layout has the font size, the lines of headings, and the columns whose cells have several lines.

The width of a text is estimated from the letter widths of Computer Modern, which are at least as wide as those of
Times.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

POINTS_AN_INCH = 72.27
"""TeX points per inch."""
_LINE_SCALE = 1.2
"""Distance of two lines, relative to the font size."""
_STEP_INCHES = 0.1
"""Step between the widths that `scaled_layout_of` tries."""
BREAKING_GAIN = 1.1
"""Least gain for which names are split over several lines: the scaled text must become larger by at least this factor.
"""
_WIDE, _NARROW = frozenset("mwMW%@&"), frozenset("iljtfrI.,:;'|!()[]/-_ ")
_PIECE = re.compile(r"(?<![^ ])[+−-]?\d[\d.,]*%?[;:]?(?: |$)|[^_./,\- ]*[_./,\- ]?")
"""Pattern of a piece of text. If names may be broken, a line may end after any piece. A number like `-1.4%` is one
piece.
"""
_LETTERS = re.compile(r".{1,24}")
"""Pattern of the parts of a piece that is too long for a line."""
_WORD = re.compile(r"[^ ]* ?")
"""Pattern of a word with the space after it. If names may not be broken, a line can end only after such a word."""
_QUANTITY = re.compile(r"[\d.,]+ \S+")
"""Pattern of a quantity: a number with its unit. A line never ends inside a quantity."""


@dataclass(frozen=True)
class FontSize:
    """Size of the font of a table."""

    command: str
    """LaTeX command for the size; '' for the size of the surrounding text."""
    points: float
    gap_points: float
    """Half of the gap between columns, in TeX points."""
    em_scale: float
    """Factor for the widths of letters relative to the font size: 1 for the largest font. In smaller fonts, letters are
    wider relative to the font size, and the factor is larger.
    """


SIZES = (
    FontSize("", 10.0, 6.0, 1.0),
    FontSize(r"\small", 9.0, 5.0, 1.03),
    FontSize(r"\footnotesize", 8.0, 4.0, 1.06),
    FontSize(r"\scriptsize", 7.0, 2.5, 1.14),
)
"""Font sizes, from the largest to the smallest readable one."""


@dataclass(frozen=True)
class TableLayout:
    """Layout of the columns of a table."""

    size: FontSize
    headings: tuple[tuple[str, ...], ...]
    """Lines of each heading."""
    wrapped_points: tuple[float | None, ...]
    """Width of each column whose cells have several lines, in TeX points; None for the other columns."""
    does_fit: bool = True
    """True if the table fits the given width."""
    break_names: bool = False
    """True if lines of cells may end within a name, after a punctuation sign."""

    def inches(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> float:
        """Width of a table with these headings and rows, in inches."""
        _, widths = _widths(headings, [*zip(*rows, strict=True)] if rows else [()] * len(headings), self.size)
        kept = [wrapped or width for wrapped, width in zip(self.wrapped_points, widths, strict=True)]
        return _total(kept, self.size) / POINTS_AN_INCH

    @property
    def heading_rows(self) -> list[tuple[str, ...]]:
        """Rows of the headings; the last line of each heading is in the last row."""
        turned = zip_longest(*(reversed(lines) for lines in self.headings), fillvalue="")
        return list(reversed(list(turned)))

    def row_count(self, rows: Sequence[Sequence[str]]) -> int:
        """Number of text lines that all rows have together."""
        places = [(place, wrapped) for place, wrapped in enumerate(self.wrapped_points) if wrapped]
        return sum(max([1, *(self._line_count(row[place], wrapped) for place, wrapped in places)]) for row in rows)

    def _line_count(self, cell: str, points: float) -> int:
        """Number of lines of a cell that is `points` wide."""
        lines, used = 1, 0.0
        for piece in pieces(cell, self.break_names):
            width = text_points(piece, self.size)
            if used and used + width > points:
                lines, used = lines + 1, 0.0
            used += width
        return lines

    def height_points(self, rows: Sequence[Sequence[str]]) -> float:
        """Height of the headings and of all rows, in TeX points."""
        lines = self.row_count(rows) + len(self.heading_rows)
        return lines * self.size.points * _LINE_SCALE


def text_points(text: str, size: FontSize) -> float:
    """Estimate of the width of a text, in TeX points."""
    ems = sum(
        0.9 if letter in _WIDE else 0.36 if letter in _NARROW else 0.77 if letter.isupper() else 0.54 for letter in text
    )
    return ems * size.points * size.em_scale


def layout_of(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    are_numbers: Sequence[bool],
    inches: float,
    sizes: Sequence[FontSize] = SIZES,
) -> TableLayout:
    """Layout with the largest font in which the table fits the width of `inches`. If it fits in no font, cells of text
    columns get several lines, in one of the two smallest fonts of `sizes`; lines end within names only if this is
    needed. If the table still does not fit, `does_fit` is false.
    """
    columns = [*zip(*rows, strict=True)] if rows else [()] * len(headings)
    room = inches * POINTS_AN_INCH
    for size in sizes:
        lines, widths = _widths(headings, columns, size)
        if _total(widths, size) <= room:
            return TableLayout(size, lines, (None,) * len(headings))
    for size, break_names in ((size, break_names) for break_names in (False, True) for size in sizes[-2:]):
        lines, widths = _widths(headings, columns, size)
        texts = [place for place, is_number in enumerate(are_numbers) if not is_number]
        least = {place: _longest_piece(columns[place], lines[place], size, break_names) for place in texts}
        spare = room - _total([0.0 if place in texts else width for place, width in enumerate(widths)], size)
        if texts and sum(least.values()) <= spare:
            wrapped = _shared(spare, {place: widths[place] for place in texts}, least)
            return TableLayout(
                size, lines, tuple(wrapped.get(place) for place in range(len(headings))), True, break_names
            )
    return TableLayout(SIZES[-1], _widths(headings, columns, SIZES[-1])[0], (None,) * len(headings), does_fit=False)


def scaled_layout_of(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    are_numbers: Sequence[bool],
    inches: float,
    most_inches: float,
) -> TableLayout:
    """Layout of a table that does not fit the width of `inches` and that LaTeX scales down to this width. The layouts
    for all widths up to `most_inches` are compared, and the result is the layout whose scaled text is largest.

    A layout that breaks names needs several lines for most rows. It counts only if it makes the text larger by the
    factor BREAKING_GAIN. If the table fits in none of the widths, the result is the layout in the smallest font.
    """
    best, best_points = None, 0.0
    for step in range(int((most_inches - inches) / _STEP_INCHES) + 1):
        width = inches + step * _STEP_INCHES
        layout = layout_of(headings, rows, are_numbers, width)
        points = layout.size.points * inches / width / (BREAKING_GAIN if layout.break_names else 1.0)
        if layout.does_fit and points > best_points:
            best, best_points = layout, points
    return best or layout_of(headings, rows, are_numbers, most_inches)


def pieces(text: str, break_names: bool = True) -> list[str]:
    """Parts of a text after which a line may end: words, or also parts of names if `break_names` is true."""
    if _QUANTITY.fullmatch(text):
        return [text]
    if not break_names:
        return [piece for piece in _WORD.findall(text) if piece]
    return [part for piece in _PIECE.findall(text) for part in _LETTERS.findall(piece)]


def _widths(
    headings: Sequence[str], columns: Sequence[Sequence[str]], size: FontSize
) -> tuple[tuple[tuple[str, ...], ...], list[float]]:
    """Pair (lines of each heading, width of each column in TeX points)."""
    lines, widths = [], []
    for heading, cells in zip(headings, columns, strict=True):
        widest = max((text_points(cell, size) for cell in cells), default=0.0)
        lines.append(_heading_lines(heading, widest, size))
        widths.append(max(widest, *(text_points(line, size) for line in lines[-1])))
    return tuple(lines), widths


def _heading_lines(heading: str, room: float, size: FontSize) -> tuple[str, ...]:
    """Lines of a heading, broken between words. A line is at most `room` TeX points wide, or as wide as the widest word
    if that is more. A unit in brackets counts as one word.
    """
    words = heading.partition(" [")[0].split(" ") + ([f"[{heading.partition(' [')[2]}"] if " [" in heading else [])
    room = max(room, *(text_points(word, size) for word in words))
    lines: list[str] = []
    for word in words:
        if lines and text_points(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return tuple(lines)


def _total(widths: Sequence[float], size: FontSize) -> float:
    return sum(widths) + 2 * size.gap_points * len(widths)


def _longest_piece(cells: Sequence[str], heading: Sequence[str], size: FontSize, break_names: bool) -> float:
    found = [text_points(piece, size) for cell in cells for piece in pieces(cell, break_names)]
    return max([*found, *(text_points(line, size) for line in heading)])


def _shared(spare: float, natural: dict[int, float], least: dict[int, float]) -> dict[int, float]:
    """Widths of the columns that must become narrower, by index, so that all columns together take at most `spare`. The
    widest columns are reduced first. No column becomes narrower than its width in `least`. Columns that keep their
    width in `natural` are left out.
    """
    low, high = 0.0, max(natural.values())
    for _ in range(40):
        cap = (low + high) / 2
        if sum(max(least[place], min(width, cap)) for place, width in natural.items()) <= spare:
            low = cap
        else:
            high = cap
    found = {place: max(least[place], min(width, low)) for place, width in natural.items()}
    return {place: width for place, width in found.items() if width < natural[place]}
