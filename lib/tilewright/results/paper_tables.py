"""Tables for a paper, as Markdown and LaTeX.

All numbers of a column have the same unit and number of decimals, and no powers of ten.

The CSV file of a table keeps full precision and base units. The Markdown file and the LaTeX file show the same rounded
numbers.
"""

import glob
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.files import write_atomically
from tilewright.base.errors import count_of
from tilewright.base.harmless import latex, markdown
from tilewright.results.latex_layout import POINTS_AN_INCH, SIZES, TableLayout, layout_of, pieces, scaled_layout_of
from tilewright.results.other_widths import latex_files, remove_other_tables
from tilewright.results.paper_notices import note
from tilewright.results.sheet import LEAST_POINTS, PAGE_INCHES, sheet_inches, sheet_name, table_suffixes
from tilewright.results.table_parts import MOST_FILES, Grid, Part, column_parts, lowest_part, row_parts
from tilewright.results.text_tables import NOTHING, write_csv

if TYPE_CHECKING:
    import pandas

_SCALED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""LaTeX code that begins a box. The box is scaled down if it is too wide for the page."""
NO_COLUMNS = "% no columns\n"
"""LaTeX text of a table without columns."""
QUANTITY = "quantity"
"""Name of the column with the quantity of each row. In a paper, a table with this column becomes one table for each
quantity.
"""
_ENERGIES = ((1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ"), (1.0, "pJ"))
UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "_pj_cycles": tuple((factor, f"{unit} cycles") for factor, unit in _ENERGIES),
    "_pj_s": tuple((factor, f"{unit} s") for factor, unit in _ENERGIES),
    "_pj": _ENERGIES,
    "_mm2": ((1.0, "mm²"),),
    "_s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "_cycles": ((1.0, "cycles"),),
    "_bits": ((1.0, "bits"),),
}
"""Units for the columns of a table, by ending of the column name, as pairs (factor, unit) with the largest unit first.
One unit is `factor` times the unit in which the column is stored.
"""
TOO_MANY_ROWS = "no option leaves out rows: delete the rows that the paper does not need from this file"
"""Words on what to do with a table that has too many rows for a paper."""
Units = Mapping[str, tuple[float, str]]
"""Units by ending of a column name, as pairs (factor, unit)."""
USUAL_UNITS: Units = {"_pj": (1e6, "µJ"), "_pj_cycles": (1e12, "J cycles")}
"""Units of the terminal and of the figures. A table for a paper has the same units if its numbers are readable in them.
"""


class CommonUnits(dict[str, tuple[float, str]]):
    """Units of all tables of one report, so that a reader can compare their numbers. A table has these units even if
    its own numbers are more readable in other units."""


MOST_UNITS = 1e5
"""Limit for readable units: the largest number of a column, in a readable unit, is below this limit."""
MOST_DECIMALS, MOST_DECIMALS_OF_GAPS, DIGITS, LEAST_DIGITS = 3, 2, 4, 2
"""Rule for the decimals of a column. The largest number of the column shows at least DIGITS digits, and the smallest
number at least LEAST_DIGITS digits. There are never more than MOST_DECIMALS decimals, and never more than
MOST_DECIMALS_OF_GAPS decimals of the gap to a lower bound.
"""


@dataclass(frozen=True)
class PaperTable:
    """Table whose cells are texts."""

    headings: tuple[str, ...]
    """Heading of each column, with the unit if the numbers of the column have one."""
    are_numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    same: tuple[str, ...] = ()
    """Texts `<heading> <value>` of the text columns that have the same value in all rows. These columns are not in
    `rows`.
    """
    notes: tuple[str, ...] = ()
    """Sentences below the table, for example on the order of the rows or on the assumptions behind the numbers. In
    LaTeX, they are comments.
    """
    below: tuple[str, ...] = ()
    """Sentences that LaTeX prints below the rows: what a reader must know, for example that rows are left out."""

    @classmethod
    def of(
        cls,
        table: "pandas.DataFrame",
        notes: Sequence[str] = (),
        usual: Units = USUAL_UNITS,
        below: Sequence[str] = (),
    ) -> "PaperTable":
        """Table in the units `usual`. If its numbers are not readable in these units, the table has other units, unless
        `usual` are `CommonUnits`. All columns of one quantity, such as energies, have one unit, so that a reader can
        compare their numbers. `notes` are sentences below the table; in LaTeX, these sentences are comments. `below`
        are sentences that LaTeX prints.
        """
        units, same = _units(table, usual), _same(table)
        table = table.drop(columns=list(same))
        headings, numbers, columns = [], [], []
        for name in map(str, table.columns):
            values = table[name].tolist()
            is_number = all(_is_number(value) for value in values if not _is_missing(value)) and bool(values)
            factor, heading = _heading(name, units) if is_number else (1.0, _words(name))
            headings.append(heading)
            numbers.append(is_number)
            most = MOST_DECIMALS_OF_GAPS if name.endswith("gap") else MOST_DECIMALS
            columns.append(_number_cells(values, factor, most) if is_number else [*map(_text, values)])
        told = tuple(f"{_words(name)} {text}" for name, text in same.items())
        return cls(tuple(headings), tuple(numbers), tuple(zip(*columns, strict=True)), told, tuple(notes), tuple(below))

    def markdown(self) -> str:
        """Table in Markdown."""
        aligned = "|".join("---:" if is_number else "---" for is_number in self.are_numbers)
        lines = [_joined(self.headings, markdown), f"|{aligned}|", *(_joined(row, markdown) for row in self.rows)]
        for sentence in self._told:
            lines += ["", markdown(sentence)]
        return _lines(lines)

    @property
    def _told(self) -> tuple[str, ...]:
        """Sentences below the table: one on the columns that have the same text in all rows (if there are any), then
        the notes.
        """
        return (*((f"In all rows: {'; '.join(self.same)}.",) if self.same else ()), *self.notes)

    def turned(self) -> "PaperTable":
        """Table with rows and columns exchanged: the headings become the first column, and the first column becomes the
        headings.
        """
        heads, *rows = zip(self.headings, *self.rows, strict=True)
        numbers = (False, *[True] * len(self.rows))
        return replace(self, headings=("", *heads[1:]), are_numbers=numbers, rows=tuple(rows))

    def points(self, inches: float) -> float:
        """Size of the text in TeX points, after LaTeX has scaled the table down to a width."""
        layout, does_fit = self._layout(inches)
        return layout.size.points * (1.0 if does_fit else min(1.0, inches / layout.inches(self.headings, self.rows)))

    def _layout(self, inches: float) -> tuple[TableLayout, bool]:
        """Pair (layout for a width, whether the table fits this width without scaling)."""
        layout = layout_of(self.headings, self.rows, self.are_numbers, inches)
        if layout.does_fit:
            return layout, True
        return scaled_layout_of(self.headings, self.rows, self.are_numbers, inches, PAGE_INCHES), False

    def latex(self, inches: float | None = None) -> str:
        """Table in LaTeX, for the package booktabs: the contents of all files of `latex_files`, one below the other. If
        no width is given, the table has the size of the surrounding text.
        """
        if inches is not None:
            return "\n".join(self.latex_files(inches))
        plain = TableLayout(SIZES[0], tuple((one,) for one in self.headings), (None,) * len(self.headings))
        return _lines(_tabular(Part(self._grid, plain))) if self.headings else NO_COLUMNS

    @property
    def _grid(self) -> Grid:
        return Grid(self.headings, self.are_numbers, self.rows)

    def _parts(self, inches: float) -> tuple[list[Part], bool]:
        """Pair (parts of the columns for a width, whether the parts fit this width without scaling)."""
        layout, does_fit = self._layout(inches)
        if not does_fit and self.points(inches) < LEAST_POINTS and (parts := column_parts(self._grid, inches)):
            return parts, True
        return [lowest_part(self._grid, inches) if does_fit else Part(self._grid, layout)], does_fit

    def faults(self, inches: float) -> list[str]:
        """Faults of a table of the given width, as sentences: its text is too small, or its rows are too many for a
        paper. [] if there are none.
        """
        parts, does_fit = self._parts(inches)
        found, points = [], self.points(inches)
        if not does_fit and points < LEAST_POINTS:
            found.append(f"its text has {points:.1f} points, because a name is too long for {inches:g} inches")
        if not row_parts(parts):
            found.append(f"{len(self.rows):,} rows are taller than {MOST_FILES} pages; {TOO_MANY_ROWS}")
        return found

    def latex_files(self, inches: float) -> tuple[str, ...]:
        """LaTeX files of a table of the given width.

        The table has the largest font in which it fits. If it does not fit even in the smallest font, cells with text
        get several lines. If it still does not fit, LaTeX scales the table down; its text is then as large as possible.
        If this text had fewer than LEAST_POINTS points, the columns are divided into several tables, one below the
        other. Rows that are taller than a sheet are divided into several files.
        """
        if not self.headings:
            return (NO_COLUMNS,)
        parts, does_fit = self._parts(inches)
        files = row_parts(parts) or [parts]
        told = [f"% {inches:g} inches wide", *(f"% {latex(sentence)}" for sentence in self._told)]
        told += [f"% {latex(fault)}" for fault in self.faults(inches)]
        if not does_fit:
            needed = f"% needs more than {inches:g} inches: place it in table*, or leave out columns; otherwise LaTeX"
            size = f"(package graphicx): its text then has {self.points(inches):.1f} points"
            told.append(f"{needed} scales it down {size}")
        written = []
        for number, file in enumerate(files, 1):
            lines = [f"% part {number} of {len(files)}"] if len(files) > 1 else []
            below = self.below if file is files[-1] else ()
            written.append(_lines([*told, *lines, *_sized(file, does_fit, below)]))
        return tuple(written)


def _sized(file: Sequence[Part], does_fit: bool, below: Sequence[str]) -> list[str]:
    """LaTeX lines of the parts of a file, which are below each other in one font. `below` are sentences below the last
    part. If the parts do not fit their sheet, LaTeX scales them down.
    """
    lines, size = [], file[0].layout.size
    for part in file:
        tabular = _tabular(part, below if part is file[-1] else ())
        lines += [r"\par\medskip"] * (part is not file[0]) + (tabular if does_fit else [_SCALED, *tabular, "}"])
    if size.command:
        gap = rf"\setlength{{\tabcolsep}}{{{size.gap_points:g}pt}}"
        lines = [rf"\begingroup{size.command}{gap}", *lines, r"\endgroup"]
    return lines


def _tabular(part: Part, below: Sequence[str] = ()) -> list[str]:
    """LaTeX lines of a part in its layout, with sentences that are printed below its rows."""
    grid, layout = part.grid, part.layout
    kinds = ["r" if is_number else "l" for is_number in grid.are_numbers]
    places = [*zip(grid.are_numbers, layout.wrapped_points, strict=True)]
    body = [[_cell(cell, *place, layout) for cell, place in zip(row, places, strict=True)] for row in grid.rows]
    heads = [map(latex, row) for row in layout.heading_rows]
    room = layout.inches(grid.headings, grid.rows) * POINTS_AN_INCH - 2 * layout.size.gap_points
    told = [rf"\multicolumn{{{len(kinds)}}}{{l}}{{{_box(text, room, break_names=False)}}} \\" for text in below]
    return [
        r"% \usepackage{booktabs,textcomp}",
        rf"\begin{{tabular}}{{{''.join(kinds)}}}",
        r"\toprule",
        *(" & ".join(row) + r" \\" for row in heads),
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in body),
        r"\bottomrule",
        *told,
        r"\end{tabular}",
    ]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _cell(cell: str, is_number: bool, wrapped_points: float | None, layout: TableLayout) -> str:
    """LaTeX text of a cell."""
    if is_number:
        return latex(_with_minus(cell))
    return latex(cell) if wrapped_points is None else _box(cell, wrapped_points, layout.break_names)


def _box(cell: str, points: float, break_names: bool) -> str:
    """Cell with a text of several lines in LaTeX, `points` wide in TeX points. If `break_names` is true, a line may end
    after a punctuation sign within a name.
    """
    text = r"\allowbreak{}".join(latex(piece) for piece in pieces(cell, break_names))
    return rf"\parbox[t]{{{points:.1f}pt}}{{\raggedright\strut {text}\strut}}"


def _with_minus(cell: str) -> str:
    """Cell with a minus sign instead of a hyphen, if it is a number. Other cells are returned unchanged."""
    return re.sub(r"^(> )?-(?=\d)", r"\1−", cell)


def write_table(
    table: "pandas.DataFrame",
    path: Path,
    columns: Sequence[str] = (),
    for_paper: "pandas.DataFrame | None" = None,
    notes: Sequence[str] = (),
    may_turn: bool = False,
    usual: Units = USUAL_UNITS,
    below: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write a table as CSV, and for a paper also as Markdown and LaTeX. Returns the paths.

    With `may_turn`, rows and columns of the LaTeX table are exchanged if this makes its text larger.

    `for_paper` is the table for the paper; if it is None, the table of the CSV file is used. If `columns` are given,
    the table for the paper has only these columns. `notes` are sentences below the table for the paper. `usual` are the
    units of this table, if its numbers are readable in these units. `below` are the notes that LaTeX prints.
    """
    write_csv(table, path)
    return (
        path,
        *write_in_paper(table if for_paper is None else for_paper, path, columns, notes, may_turn, usual, below),
    )


def write_in_paper(
    table: "pandas.DataFrame",
    path: Path,
    columns: Sequence[str] = (),
    notes: Sequence[str] = (),
    may_turn: bool = False,
    usual: Units = USUAL_UNITS,
    below: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write a table for a paper as Markdown and LaTeX, beside `path` and with its name. Returns the paths; () if no
    files for a paper are made.

    The name of a LaTeX file ends with the width, for example `layers-column.tex`. The LaTeX file of the other width is
    removed if it shows another table (`other_widths`).
    """
    paths: list[Path] = []
    if sheet_inches() is None and not any(path.parent.glob(f"{glob.escape(path.stem)}*.md")):
        return ()
    for end, shown in paper_tables(table, columns, notes, usual, below):
        stem, text = path.with_name(path.stem + end), shown.markdown()
        remove_other_tables(stem, text)
        inches = sheet_inches()
        if inches is not None and may_turn:
            shown = max(shown, shown.turned(), key=lambda one: one.points(inches))
        if inches is not None:
            paths += _write_files(shown, text, stem, inches)
    return tuple(paths)


def _write_files(table: PaperTable, text: str, stem: Path, inches: float) -> list[Path]:
    """Write the Markdown file with `text`, and the LaTeX files of a table. Returns the paths. LaTeX files of an earlier
    command are removed if they have the same width and are not written again. Notices of the command report three
    cases: there are several LaTeX files, LaTeX scales the text below LEAST_POINTS, or the rows are too many for
    MOST_FILES files.
    """
    markdown_end, latex_end = table_suffixes()
    contents, width = table.latex_files(inches), sheet_name()
    first = stem.with_name(stem.name + latex_end)
    further = [first.with_name(f"{first.stem}-{number}.tex") for number in range(2, len(contents) + 1)]
    paths = [stem.with_name(stem.name + markdown_end), first, *further]
    for old in {*latex_files(stem, width)} - {*paths}:
        old.unlink()
    for path, content in zip(paths, (text, *contents), strict=True):
        write_atomically(path, content)
    if further:
        cells = f"{count_of(len(table.rows), 'row')} and {len(table.headings)} columns"
        named = ", ".join(path.name for path in paths[1:])
        note(f"{first.name}: {cells} need more than one {width}: {len(contents)} files, {named}")
    for words in table.faults(inches):
        note(f"{first.name}: {words}")
    return paths


def paper_tables(
    table: "pandas.DataFrame",
    columns: Sequence[str] = (),
    notes: Sequence[str] = (),
    usual: Units = USUAL_UNITS,
    below: Sequence[str] = (),
) -> Iterator[tuple[str, PaperTable]]:
    """Pairs (end of the file name, table for a paper).

    A table with a column QUANTITY gives one table for each quantity. `columns` are the columns to keep; () keeps all
    columns. Empty columns are left out. `notes` are sentences below each table, as comments in LaTeX. `below` are
    sentences that LaTeX prints. If there are several quantities, a sentence in `below` begins with its quantity, such
    as `energy_pj: `.
    """
    for end, quantity, part in _by_quantity(table, columns):
        own = below
        if quantity:
            own = [words.removeprefix(f"{quantity}: ") for words in below if words.startswith(f"{quantity}: ")]
        yield end, PaperTable.of(part, notes, usual, own)


def _by_quantity(
    table: "pandas.DataFrame", columns: Sequence[str] = ()
) -> "Iterator[tuple[str, str, pandas.DataFrame]]":
    """Triples (end of the file name, quantity, table). If a table has the column QUANTITY, there is one triple for each
    quantity, and the names of the columns end with the unit of the quantity. For any other table, there is one triple
    with '' for the quantity."""
    kept = table[[name for name in columns if name in table]] if columns else table
    if QUANTITY not in kept:
        yield "", "", _with_content(kept)
        return
    for quantity, part in kept.groupby(QUANTITY, sort=False):
        end = f"_{str(quantity).rpartition('_')[2]}"
        numbers = [name for name in part if _kind(part[name].tolist())]
        renamed = part.drop(columns=QUANTITY).rename(
            columns={name: name + end for name in numbers if not _is_share(str(name))}
        )
        yield f"-{quantity}", str(quantity), _with_content(renamed)


def common_units(tables: "Iterable[tuple[pandas.DataFrame, Sequence[str]]]", usual: Units = USUAL_UNITS) -> CommonUnits:
    """Units for all tables of a report, chosen from the numbers of all its tables. `tables` has pairs (table, columns
    of the table in a paper). The columns are () if a paper has all columns of the table.

    The unit in `usual` is taken if the largest number is at least 1 and below MOST_UNITS in this unit; otherwise, the
    unit is that of `readable_unit`. The small numbers of one table therefore do not change the unit of all others.
    """
    found: dict[str, list[float]] = {}
    for table, columns in tables:
        for _, _, part in _by_quantity(table, columns):
            for end, values in _values(part).items():
                found.setdefault(end, []).extend(values)
    return CommonUnits(
        {
            end: own
            if (own := usual.get(end)) and own[0] <= max(values, default=0.0) < MOST_UNITS * own[0]
            else readable_unit(UNITS[end], values, own)
            for end, values in found.items()
        }
    )


def _same(table: "pandas.DataFrame") -> dict[str, str]:
    """Text columns in which all rows have the same text, as texts by name of the column. {} for a table with fewer than
    two rows.

    The table must keep one text column. If the result would contain all text columns of the table, the first one is
    left out.
    """
    if len(table) < 2:
        return {}
    columns = {str(name): table[name].tolist() for name in table.columns}
    texts = {name: cells for name, cells in columns.items() if all(isinstance(cell, str) for cell in cells)}
    found = {name: cells[0] for name, cells in texts.items() if len(set(cells)) == 1}
    return found if len(found) < len(texts) else dict([*found.items()][1:])


def _with_content(table: "pandas.DataFrame") -> "pandas.DataFrame":
    full = [name for name in table if not all(_is_missing(value) or value == "" for value in table[name].tolist())]
    return table[full]


def _kind(values: Sequence[Any]) -> bool:
    """True if the values of a column are numbers. False for a column without values."""
    present = [value for value in values if not _is_missing(value)]
    return bool(present) and all(map(_is_number, present))


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def unit_end(name: str) -> str:
    """Last part of a column name, if it is a unit in UNITS; otherwise ''."""
    return next((end for end in UNITS if name.endswith(end)), "")


def _units(table: "pandas.DataFrame", usual: Units) -> dict[str, tuple[float, str]]:
    """Units for the columns of a table: ending of the column names (a key of UNITS) -> (factor, unit). All columns with
    the same ending get the same unit: the unit in `usual` if `usual` are `CommonUnits`, otherwise that of
    `readable_unit`.
    """
    common = usual if isinstance(usual, CommonUnits) else {}
    return {
        end: common.get(end) or readable_unit(UNITS[end], values, usual.get(end))
        for end, values in _values(table).items()
    }


def _values(table: "pandas.DataFrame") -> dict[str, list[float]]:
    """Absolute values of the numbers in the columns of a table, by ending of the column names (a key of UNITS)."""
    found: dict[str, list[float]] = {}
    for name in map(str, table.columns):
        if end := unit_end(name):
            values = [abs(value) for value in table[name].tolist() if _is_number(value) and math.isfinite(value)]
            found.setdefault(end, []).extend(values)
    return found


def readable_unit(
    units: Sequence[tuple[float, str]], values: Sequence[float], usual: tuple[float, str] | None = None
) -> tuple[float, str]:
    """Unit for numbers. `units` are pairs (factor, unit), the largest unit first, and `values` are absolute values.

    A unit is readable if the largest value is at least 1 and below MOST_UNITS in this unit, and the smallest value
    above 0 shows LEAST_DIGITS digits. The result is the unit `usual` if it is readable, and otherwise the largest
    readable unit. If no unit is readable, the result is the largest unit in which the largest value is at least 1. If
    there is no such unit, the result is the smallest unit.
    """
    largest = max(values, default=0.0)
    smallest = min((value for value in values if value), default=0.0)
    fitting = [unit for unit in units if largest >= unit[0]]
    least = 10.0 ** (LEAST_DIGITS - 1 - MOST_DECIMALS)
    readable = [unit for unit in fitting if smallest >= least * unit[0] and largest < MOST_UNITS * unit[0]]
    return usual if usual in readable else next(iter(readable), next(iter(fitting), units[-1]))


def _heading(name: str, units: Mapping[str, tuple[float, str]]) -> tuple[float, str]:
    """Pair (divisor for the numbers of a column, heading of the column with its unit)."""
    if _is_share(name):
        return 0.01, f"{_words(name)} [%]"
    if end := unit_end(name):
        factor, unit = units[end]
        return factor, f"{_words(name.removesuffix(end), end)} [{unit}]"
    return 1.0, _words(name)


def _is_share(name: str) -> bool:
    return name.endswith(("_share", "gap", "_gain")) or name.startswith(("share", "mac_utilization"))


_NAMED = {"mac_utilization_with_offloading": "use of the array"}
"""Words for columns whose names are those of fields and say little to a reader."""


def _words(name: str, unit_end: str = "") -> str:
    """Name of a column for readers, as in the terminal: EDP has capital letters, and a latency in seconds is a time."""
    if name in _NAMED:
        return _NAMED[name]
    words = re.sub(r"\bedp\b", "EDP", name.replace("_", " "))
    return re.sub(r"\blatency\b", "time", words) if unit_end == "_s" else words


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if _is_missing(value) else str(value)


def _number_cells(values: Sequence[Any], factor: float, most: int) -> list[str]:
    """Cells of a column of numbers, all with the same number of decimals, at most `most`. A number that would be shown
    as 0 is written as `<` and the smallest number with these decimals.
    """
    scaled = [None if _is_missing(value) else value / factor for value in values]
    is_whole = factor == 1 and all(value is None or float(value).is_integer() for value in scaled)
    decimals = 0 if is_whole else min(most, _decimals([abs(value) for value in scaled if value]))
    least = 10.0**-decimals
    return [NOTHING if value is None else _number(value, decimals, least) for value in scaled]


def _number(value: float, decimals: int, least: float) -> str:
    if 0 < abs(value) < least / 2:
        return f"{'> -' if value < 0 else '< '}{least:.{decimals}f}"
    return f"{value + 0.0:,.{decimals}f}"  # -0.0 has no sign


def _decimals(sizes: Sequence[float]) -> int:
    finite = [size for size in sizes if math.isfinite(size)]
    if not finite:
        return 0
    wanted = max(
        DIGITS - 1 - math.floor(math.log10(max(finite))), LEAST_DIGITS - 1 - math.floor(math.log10(min(finite)))
    )
    return min(max(wanted, 0), MOST_DECIMALS)


def _joined(cells: Sequence[str], escape: Callable[[object], str]) -> str:
    return f"| {' | '.join(map(escape, cells))} |"
