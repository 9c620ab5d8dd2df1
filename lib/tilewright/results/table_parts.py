"""Parts of a table that does not fit a sheet: groups of columns for the width, groups of rows for the height."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.results.latex_layout import POINTS_AN_INCH, SIZES, FontSize, TableLayout, layout_of
from tilewright.results.sheet import SHEET_HEIGHT_INCHES

MOST_KEYS = 2
"""Largest number of columns that name a row in each part. If more are needed, the rows have numbers instead."""
MOST_FILES = 6
"""Largest number of files of a table. A longer table is one file, which is taller than a sheet."""
ROW = "row"
"""Heading of the column with the numbers of rows."""
_RULES_POINTS = 16.0
"""Height of the rules of a table, with the gaps around them, in TeX points."""


@dataclass(frozen=True)
class Grid:
    """Cells of a table or of a part of it."""

    headings: tuple[str, ...]
    are_numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]

    def columns(self, places: Sequence[int]) -> "Grid":
        """Part with the columns at `places`."""
        return Grid(
            tuple(self.headings[place] for place in places),
            tuple(self.are_numbers[place] for place in places),
            tuple(tuple(row[place] for place in places) for row in self.rows),
        )

    @property
    def numbered(self) -> "Grid":
        """Grid with an additional first column, which has the number of each row."""
        rows = tuple((str(number), *row) for number, row in enumerate(self.rows, 1))
        return Grid((ROW, *self.headings), (True, *self.are_numbers), rows)


@dataclass(frozen=True)
class Part:
    """Cells of a part of a table, with their layout."""

    grid: Grid
    layout: TableLayout

    @classmethod
    def of(cls, grid: Grid, inches: float, sizes: Sequence[FontSize] = SIZES) -> "Part":
        """Part with the largest font of `sizes` in which it fits a width."""
        return cls(grid, layout_of(grid.headings, grid.rows, grid.are_numbers, inches, sizes))

    @property
    def points(self) -> float:
        """Height in TeX points."""
        return self.layout.height_points(self.grid.rows) + _RULES_POINTS

    def of_rows(self, begin: int, end: int) -> "Part":
        """Part with the rows from `begin` to before `end`, in the same layout."""
        return replace(self, grid=replace(self.grid, rows=self.grid.rows[begin:end]))


def column_parts(grid: Grid, inches: float) -> list[Part]:
    """Parts of a table, in the order of the columns. Each part has so few columns that it fits the width `inches`. []
    if even a single column does not fit.

    Each part begins either with the columns that name the rows, or with the number of the row. The choice leads to the
    smallest number of files. Columns can name the rows only if at most MOST_KEYS columns are needed. All parts have one
    font.
    """
    distinct = (len({row[:keys] for row in grid.rows}) for keys in range(1, MOST_KEYS + 1))
    keyed = next((keys for keys, found in enumerate(distinct, 1) if found == len(grid.rows)), 0)
    ways = [
        list(_filled(whole, keys, inches))
        for whole, keys in ((grid, keyed), (grid.numbered, 1))
        if 0 < keys < len(whole.headings)
    ]
    fitting = [_in_one_font(parts, inches) for parts in ways if all(part.layout.does_fit for part in parts)]
    return min(fitting, key=lambda parts: (_file_count(parts), len(parts)), default=[])


def _in_one_font(parts: Sequence[Part], inches: float) -> list[Part]:
    """Parts of a table, all in the smallest font that one of them needs. The parts are below each other in a paper, so
    their text must have one size.
    """
    size = min((part.layout.size for part in parts), key=lambda one: one.points)
    return [part if part.layout.size == size else Part.of(part.grid, inches, (size,)) for part in parts]


def _file_count(parts: Sequence[Part]) -> int:
    """Number of files of a table; MOST_FILES + 1 if it needs more than MOST_FILES."""
    return len(row_parts(parts)) or MOST_FILES + 1


def lowest_part(grid: Grid, inches: float) -> Part:
    """Part with all columns, in the largest of the fonts with which the table needs the fewest files."""
    found = [Part.of(grid, inches, SIZES[place:]) for place in range(len(SIZES))]
    return min(found, key=lambda part: _file_count([part]))


def _filled(grid: Grid, keys: int, inches: float) -> Iterator[Part]:
    """Parts with as many columns as fit without broken names; each has at least one column besides the keys."""
    begin = keys
    while begin < len(grid.headings):
        end = begin + 1
        part = Part.of(grid.columns([*range(keys), begin]), inches)
        while end < len(grid.headings):
            wider = Part.of(grid.columns([*range(keys), *range(begin, end + 1)]), inches)
            if not wider.layout.does_fit or (wider.layout.break_names and not part.layout.break_names):
                break
            part, end = wider, end + 1
        yield part
        begin = end


def row_parts(parts: Sequence[Part]) -> list[list[Part]]:
    """Division of a table into files: one list of parts for each file. The parts of a file are below each other and fit
    the height of a sheet. Rows are divided into groups of equal size. [] if the table needs more than MOST_FILES files.
    """
    total = max(1, len(parts[0].grid.rows))
    for groups in range(1, MOST_FILES + 1):
        step = -(-total // groups)
        cut = [part.of_rows(begin, begin + step) for begin in range(0, total, step) for part in parts]
        files = _stacked(cut)
        if all(sum(part.points for part in file) <= _MOST_POINTS for file in files):
            return files if len(files) <= MOST_FILES else []
    return []


_MOST_POINTS = SHEET_HEIGHT_INCHES * POINTS_AN_INCH


def _stacked(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts by file: a part begins a new file if it does not fit below the parts of the file before it."""
    files: list[list[Part]] = []
    for part in parts:
        if files and sum(one.points for one in (*files[-1], part)) <= _MOST_POINTS:
            files[-1].append(part)
        else:
            files.append([part])
    return files
