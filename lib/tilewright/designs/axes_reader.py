"""Reader of the axes of a space: lists, ranges, choices, or a design sheet (column per axis, row per design)."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, KeyPath, Problem, Problems, nearest_name, shown
from tilewright.base.harmless import from_csv
from tilewright.base.steps import NAME_PATTERN
from tilewright.base.units import NUMBER_PATTERN, FieldError
from tilewright.base.validation import whole
from tilewright.designs.columns import DESIGN, is_column
from tilewright.designs.laws import Value, name_problem, value_word
from tilewright.designs.space import Axis
from tilewright.designs.space_schema import AxisEntry
from tilewright.hardware.dotted_paths import key_path

MOST_VALUES = 10_000
"""Largest number of values in a range."""


def geometric(first: float, last: float, factor: float) -> tuple[int | float, ...]:
    """Values `first`, `first` x `factor`, ... up to `last`, as integers if all of them are integers.

    Raises FieldError in four cases: `factor` is not above 1, `first` is not above 0, the range is empty, or the range
    has more than MOST_VALUES values.
    """
    if factor <= 1:
        raise FieldError("factor must be greater than 1")
    if first <= 0:
        raise FieldError("a range with `factor` must begin above 0")
    return _range(first, last, factor=_exact(factor))


def linear(first: float, last: float, step: float) -> tuple[int | float, ...]:
    """Values `first`, `first` + `step`, ... up to `last`, as integers if all of them are integers.

    Raises FieldError if `step` is not above 0, if the range is empty, or if it has more than MOST_VALUES values.
    """
    if step <= 0:
        raise FieldError("step must be greater than 0")
    return _range(first, last, step=_exact(step))


def _range(
    first: float, last: float, factor: Decimal = Decimal(1), step: Decimal = Decimal(0)
) -> tuple[int | float, ...]:
    """Values of a range. The first is `first`. Each further value is the value before it times `factor`, plus `step`.
    No value is above `last`.

    The values are computed in decimal arithmetic from the numbers in the file. Values such as 0.1, 0.2, 0.3 are
    therefore the same on every machine. If all values of a range are whole, they are integers. Raises FieldError for an
    empty range, and for more than MOST_VALUES values.
    """
    if last < first:
        raise FieldError("`to` is below `from`: the range is empty")
    found = [_exact(first)]
    while (following := found[-1] * factor + step) <= _exact(last):
        found.append(following)
        if len(found) > MOST_VALUES:
            raise FieldError("too many values", f"{MOST_VALUES:,}")
    if all(value == value.to_integral_value() for value in found):
        return tuple(map(int, found))
    return tuple(map(float, found))


def _exact(number: float) -> Decimal:
    return Decimal(str(number))


NAME_COLUMN = DESIGN
LARGEST_SHEET_BYTES = 256 * 2**20
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class Sheet:
    """Content of a design sheet. The names of the designs are stored separately from the other columns."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    names: tuple[str, ...]
    """Names of the designs; () if the sheet has no column with names."""
    lines: tuple[int, ...]
    """Line of the file, counted from 1, in which each row stands."""


def read_sheet(path: Path) -> Sheet:
    """Design sheet of a file.

    Cells are separated by commas if the file name ends in .csv, else by tabs. Empty lines and lines that begin with #
    are ignored. Raises InputError with all mistakes, each with its line and column.
    """
    file = str(path)
    heading, lines, cells = _cells(path)
    problems = list(_heading_problems(file, heading))
    if not cells:
        problems.append(Problem("holds no design", file, 1))
    whole = [(line, row) for line, row in zip(lines, cells, strict=True) if len(row) == len(heading)]
    for line, row in zip(lines, cells, strict=True):
        if len(row) != len(heading):
            problems.append(
                Problem(
                    "the number of cells differs from the number of columns in the heading",
                    file,
                    line,
                    "",
                    *_widths(row, heading),
                )
            )
    lines, rows = [line for line, _ in whole], [row for _, row in whole]
    columns: dict[str, list[Value]] = {}
    for place, name in enumerate(heading):
        texts = [row[place] for row in rows]
        if name == NAME_COLUMN:
            problems += _name_problems(file, lines, texts)
        elif name:
            columns[name] = [_value(text) for text in texts]
            problems += _value_problems(file, name, lines, texts, columns[name])
    designs = list(zip(*columns.values(), strict=True))
    if columns:
        problems += _repetitions(file, lines, designs, "repeats the values on line {line}: remove one of the two lines")
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line))
    names = tuple(row[heading.index(NAME_COLUMN)] for row in rows) if NAME_COLUMN in heading else ()
    return Sheet(file, tuple(columns), tuple(designs), names, tuple(lines))


def _cells(path: Path) -> tuple[list[str], list[int], list[list[str]]]:
    """Content of a design sheet, as a triple (cells of the heading, line numbers of the rows below it, cells of these
    rows). Raises InputError if the file cannot be read as a table.
    """
    file = str(path)
    try:
        if path.stat().st_size > LARGEST_SHEET_BYTES:
            raise InputError([Problem("the file is too large", file, allowed=f"{LARGEST_SHEET_BYTES} bytes")])
        text = path.read_bytes().decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter="," if path.suffix == ".csv" else "\t")
        found = [(reader.line_num, [from_csv(cell.strip()) for cell in row]) for row in reader]
    except UnicodeDecodeError as error:
        raise InputError([Problem("is not UTF-8 text", file, error.object[: error.start].count(b"\n") + 1)]) from None
    except (OSError, csv.Error) as error:
        raise InputError([Problem(f"cannot be read: {error}", file)]) from None
    found = [(line, row) for line, row in found if any(row) and not row[0].startswith("#")]
    if not found:
        raise InputError([Problem("the file is empty", file, 1)])
    return found[0][1], [line for line, _ in found[1:]], [row for _, row in found[1:]]


def _heading_problems(file: str, heading: Sequence[str]) -> Iterator[Problem]:
    for place, name in enumerate(heading):
        if not name:
            yield Problem("a column has no name", file, 1, value=f"column {place + 1}")
        elif name in heading[:place]:
            yield Problem("two columns have this name", file, 1, name)
    if not [name for name in heading if name != NAME_COLUMN]:
        yield Problem("the sheet has no column besides the names of the designs", file, 1)


def _widths(row: Sequence[str], heading: Sequence[str]) -> tuple[str, str]:
    return f"{len(row)} cells", str(len(heading))


def _value(text: str) -> Value:
    if re.fullmatch(NUMBER_PATTERN, text):
        number = text.replace("_", "")
        return int(number) if re.fullmatch("[+-]?[0-9]+", number) else float(number)
    return _TRUTHS.get(text.lower(), text)


def _value_problems(
    file: str, column: str, lines: Sequence[int], texts: Sequence[str], values: Sequence[Value]
) -> Iterator[Problem]:
    """Problems in one column of a design sheet: cells without a value, numbers that are not finite, and text in a
    column of numbers.
    """
    are_numbers = any(type(value) in (int, float) for value in values)
    for line, text, value in zip(lines, texts, values, strict=True):
        if not text:
            yield Problem("no value", file, line, column)
        elif isinstance(value, float) and not math.isfinite(value):
            yield Problem("is not a finite number", file, line, column, shown(text))
        elif are_numbers and type(value) not in (int, float):
            yield Problem(
                "is not a number, although other values in this column are numbers", file, line, column, shown(text)
            )


def _name_problems(file: str, lines: Sequence[int], names: Sequence[str]) -> Iterator[Problem]:
    for line, name in zip(lines, names, strict=True):
        if not re.fullmatch(NAME_PATTERN, name):
            yield Problem("not a name", file, line, NAME_COLUMN, shown(name), "letters, digits, _ . + -")
    yield from _repetitions(file, lines, names, "repeats the name on line {line}", NAME_COLUMN)


def _repetitions(
    file: str, lines: Sequence[int], things: Sequence[object], message: str, column: str = ""
) -> Iterator[Problem]:
    first: dict[object, int] = {}
    for line, thing in zip(lines, things, strict=True):
        if first.setdefault(thing, line) != line:
            yield Problem(message.format(line=first[thing]), file, line, column)


_RANGE = ("from", "to", "factor", "step")


@dataclass(frozen=True)
class Setter:
    """Entry of the space file that sets a value in the base hardware file."""

    path: KeyPath
    """Path, in the base hardware file, of the value that this entry of the space file sets."""
    place: KeyPath
    """Path of keys to this entry in the space file. If the entry is a column of a design sheet and its heading is a
    dotted path, `place` is the key `designs`.
    """
    axis: str = ""
    """Name of the axis to which this entry of the space file belongs; '' if it belongs to a law."""
    choice: str = ""
    """Name of the axis choice to which this entry of the space file belongs; '' if it belongs to no choice."""


class AxesReader:
    """Reader of the axes of a space. It adds mistakes to `problems` and reads on. The axes are complete only if no
    mistake is reported.
    """

    def __init__(self, base: Any, problems: Problems) -> None:
        """Start a reader. `base` is the data of the hardware file; None if the file cannot be read."""
        self.base = base
        self.problems = problems
        self.setters: list[Setter] = []

    def grid(self, entries: Mapping[str, AxisEntry | None]) -> tuple[Axis, ...]:
        """Axes of a space whose designs are all combinations of values."""
        found = []
        for name, entry in entries.items():
            self.check_name(("axes", name), name)
            if entry is not None:
                values = self._values(name, entry) if entry.choices is None else tuple(entry.choices)
                if not values and not self.problems.has("axes", name):
                    allowed = "`values`, `choices`, or `from` and `to` with `factor` or `step`"
                    self.problems.at(("axes", name), "has no values", allowed=allowed)
                found.append(Axis(name, values, self._settings(name, entry, values)))
        return tuple(found)

    def sheet(
        self, entries: Mapping[str, AxisEntry | None], sheet: Sheet
    ) -> tuple[tuple[Axis, ...], tuple[tuple[int, ...], ...]]:
        """Pair (axes of a design sheet, one tuple for each design). A tuple has, for each axis, the index of the value
        that the design has on this axis.
        """
        axes, columns = [], []
        for name, entry in entries.items():
            self.check_name(("axes", name), name)
            if entry is not None and self._is_of_sheet(name, entry, sheet):
                place = sheet.columns.index(name)
                values = tuple(dict.fromkeys(row[place] for row in sheet.rows))
                axes.append(Axis(name, values, self._sheet_settings(name, entry, values, sheet)))
                columns.append(place)
        for place, column in enumerate(sheet.columns):
            if column not in entries and self._is_path(column, list(entries), sheet):
                values = tuple(dict.fromkeys(row[place] for row in sheet.rows))
                axes.append(Axis(column, values, self._settings_of_column(column, values, sheet)))
                columns.append(place)
        places = [{value: place for place, value in enumerate(axis.values)} for axis in axes]
        rows = [tuple(of[row[column]] for of, column in zip(places, columns, strict=True)) for row in sheet.rows]
        return tuple(axes), tuple(rows)

    def check_name(self, path: KeyPath, name: str) -> None:
        """Report a problem if a name cannot be the name of an axis or a law."""
        taken = "is already the name of a column in tables of designs: choose another name"
        message = taken if is_column(name) else name_problem(name)
        if message:
            self.problems.at(path, message, name)

    def key_path(self, place: KeyPath, path: str, axis: str = "", choice: str = "") -> KeyPath | None:
        """Path in the base hardware file to which a dotted path refers. The dotted path stands at `place` in the space
        file. The path found is also added to `setters`, with the names of its `axis` and its `choice`.

        If the base hardware file has no such path, a problem is reported, and the result is None. The result is also
        None if there is no base hardware file.
        """
        found = () if self.base is None else key_path(self.base, path)
        if isinstance(found, Problem):
            self.problems.at(place, f"'{path}': {found.message}", found.value, found.allowed, found.nearest)
            return None
        if found:
            self.setters.append(Setter(found, place, axis, choice))
        return found or None

    def check_setters(self) -> None:
        """Report settings that conflict.

        Two settings conflict if they set the same value, or if one sets a part of the value that the other sets.
        Settings of different choices of one axis do not conflict.
        """
        for place, one in enumerate(self.setters):
            for other in self.setters[:place]:
                is_other_choice = one.axis and one.axis == other.axis and one.choice != other.choice
                shorter, longer = sorted((one.path, other.path), key=len)
                if not is_other_choice and longer[: len(shorter)] == shorter:
                    where = self.problems.places.place_of(other.place)[2] if self.problems.places else ""
                    self.problems.at(one.place, f"conflicts with {where}: both set the same value")
                    break

    def _values(self, name: str, entry: AxisEntry) -> tuple[Value, ...]:
        path: KeyPath = ("axes", name)
        if "values" in entry.model_fields_set:
            self._refuse(path, entry, _RANGE, "belongs to a range and cannot be combined with `values`")
            self.problems.repeated((*path, "values"), entry.values or (), "repeats an earlier value of the list")
            self._check_words((*path, "values"), entry.values or ())
            return tuple(dict.fromkeys(whole(entry.values)))
        given = entry.model_fields_set & set(_RANGE)
        if not given:
            return ()
        for key in (key for key in ("from", "to") if key not in given):
            self.problems.at(path, f"a range needs `{key}`")
        if len(given & {"factor", "step"}) != 1:
            self.problems.at(path, "a range needs one of `factor` and `step`")
        return self._range(path, entry)

    def _check_words(self, path: KeyPath, values: Sequence[Value | None]) -> None:
        """Report values of one axis that would look the same in a table, such as the text "2" and the number 2."""
        first: dict[str, Value] = {}
        for place, value in enumerate(values):
            if value is not None and first.setdefault(value_word(value), value) != value:
                self.problems.at((*path, place), "looks like another value of the list in tables", value)

    def _range(self, path: KeyPath, entry: AxisEntry) -> tuple[Value, ...]:
        first, last = getattr(entry, "from"), entry.to
        try:
            if first is not None and last is not None and entry.factor is not None and entry.step is None:
                return geometric(first, last, entry.factor)
            if first is not None and last is not None and entry.step is not None and entry.factor is None:
                return linear(first, last, entry.step)
        except FieldError as error:
            self.problems.at(path, error.message, allowed=error.allowed)
        return ()

    def _refuse(self, path: KeyPath, entry: AxisEntry, keys: Sequence[str], message: str) -> None:
        for key in keys:
            if key in entry.model_fields_set:
                self.problems.at((*path, key), message)

    def _settings(
        self, name: str, entry: AxisEntry, values: Sequence[Value]
    ) -> tuple[tuple[tuple[KeyPath, Any], ...], ...]:
        """Settings that an axis makes: for each value of the axis, a tuple of pairs (path in the base hardware file,
        value to set there).
        """
        if entry.choices is not None:
            message = "cannot be combined with `choices`, which already name the values that they set"
            self._refuse(("axes", name), entry, ("values", *_RANGE, "path"), message)
            return tuple(self._choice(name, choice, table or {}) for choice, table in entry.choices.items())
        paths = list(self._paths(name, entry))
        return tuple(tuple((path, value) for path in paths) for value in values)

    def _paths(self, name: str, entry: AxisEntry) -> Iterator[KeyPath]:
        paths = entry.path or ()
        for place, path in enumerate(paths):
            where: KeyPath = ("axes", name, "path", place) if len(paths) > 1 else ("axes", name, "path")
            found = self.key_path(where, path, name)
            if found is not None:
                yield found

    def _choice(self, axis: str, choice: str, table: Mapping[str, Any]) -> tuple[tuple[KeyPath, Any], ...]:
        where = ("axes", axis, "choices", choice)
        found = [(self.key_path((*where, path), path, axis, choice), value) for path, value in table.items()]
        return tuple((path, value) for path, value in found if path is not None)

    # design sheets ----------------------------------------------------------------------------------------------------

    def _is_of_sheet(self, name: str, entry: AxisEntry, sheet: Sheet) -> bool:
        self._refuse(("axes", name), entry, ("values", *_RANGE), "must be removed: the design sheet has the values")
        if name not in sheet.columns:
            message = f"the design sheet {sheet.file} has no such column"
            self.problems.at(("axes", name), message, nearest=nearest_name(name, sheet.columns))
        return name in sheet.columns

    def _sheet_settings(
        self, name: str, entry: AxisEntry, values: Sequence[Value], sheet: Sheet
    ) -> tuple[tuple[tuple[KeyPath, Any], ...], ...]:
        settings = self._settings(name, entry, values)
        if entry.choices is None:
            return settings
        choices = dict(zip(entry.choices, settings, strict=True))
        for value in values:
            if value not in choices:
                line = self._line_of(name, value, sheet)
                allowed, nearest = ", ".join(choices), nearest_name(str(value), list(choices))
                told = Problem("no such choice", sheet.file, line, name, shown(value), allowed, nearest)
                self.problems.found.append(told)
        for choice in (choice for choice in choices if choice not in set(map(str, values))):
            self.problems.unused(("axes", name, "choices", choice), f"no design of {sheet.file} has this choice")
        return tuple(choices.get(str(value), ()) for value in values)

    def _is_path(self, column: str, axes: Sequence[str], sheet: Sheet) -> bool:
        if "." not in column:
            allowed, nearest = ", ".join(axes), nearest_name(column, axes)
            told = Problem("must be the name of an axis, or a dotted path", sheet.file, 1, column, "", allowed, nearest)
            self.problems.found.append(told)
        return "." in column

    def _settings_of_column(
        self, column: str, values: Sequence[Value], sheet: Sheet
    ) -> tuple[tuple[tuple[KeyPath, Any], ...], ...]:
        found = () if self.base is None else key_path(self.base, column)
        if isinstance(found, Problem):
            told = Problem(found.message, sheet.file, 1, column, found.value, found.allowed, found.nearest)
            self.problems.found.append(told)
            return tuple(() for _ in values)
        if found:
            self.setters.append(Setter(found, ("designs",), column))
        return tuple(((found, value),) for value in values)

    @staticmethod
    def _line_of(column: str, value: Value, sheet: Sheet) -> int:
        place = sheet.columns.index(column)
        return next(line for line, row in zip(sheet.lines, sheet.rows, strict=True) if row[place] == value)
