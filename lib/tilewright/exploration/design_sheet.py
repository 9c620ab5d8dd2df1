"""Design sheets: tables with one design a row, as people keep them in spreadsheets."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError, Problem, shown
from tilewright.exploration.laws import Value
from tilewright.steps import NAME_PATTERN
from tilewright.units import NUMBER_PATTERN

NAME_COLUMN = "design"
LARGEST_SHEET_BYTES = 256 * 2**20
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class Sheet:
    """The content of a design sheet, without the column of names."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    names: tuple[str, ...]
    """Of the designs; () where there is no column for them."""
    lines: tuple[int, ...]
    """The line of each row, from 1."""


def read_sheet(path: Path) -> Sheet:
    """The sheet in a file: cells are separated by commas if it ends in .csv, else by tabs. Lines that are empty or
    begin with # are no rows.

    Raises InputError with every problem, each with its line and column.
    """
    file = str(path)
    heading, lines, cells = _cells(path)
    problems = list(_heading_problems(file, heading))
    if not cells:
        problems.append(Problem("holds no design", file, 1))
    whole = [(line, row) for line, row in zip(lines, cells, strict=True) if len(row) == len(heading)]
    for line, row in zip(lines, cells, strict=True):
        if len(row) != len(heading):
            problems.append(Problem("a row of another width than the heading", file, line, "", *_widths(row, heading)))
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
        problems += _repetitions(file, lines, designs, "the same values as on line {line}")
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line))
    names = tuple(row[heading.index(NAME_COLUMN)] for row in rows) if NAME_COLUMN in heading else ()
    return Sheet(file, tuple(columns), tuple(designs), names, tuple(lines))


def _cells(path: Path) -> tuple[list[str], list[int], list[list[str]]]:
    """The heading, and line and cells of each row. Raises InputError."""
    file = str(path)
    try:
        if path.stat().st_size > LARGEST_SHEET_BYTES:
            raise InputError([Problem("the file is too large", file, allowed=f"{LARGEST_SHEET_BYTES} bytes")])
        text = path.read_bytes().decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter="," if path.suffix == ".csv" else "\t")
        found = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
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
            yield Problem("a column without a name", file, 1, value=f"column {place + 1}")
        elif name in heading[:place]:
            yield Problem("two columns of this name", file, 1, name)
    if not [name for name in heading if name != NAME_COLUMN]:
        yield Problem("no column says anything of a design", file, 1)


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
    """Cells without a value, and text in a column of numbers."""
    are_numbers = any(type(value) in (int, float) for value in values)
    for line, text, value in zip(lines, texts, values, strict=True):
        if not text:
            yield Problem("no value", file, line, column)
        elif isinstance(value, float) and not math.isfinite(value):
            yield Problem("not a finite number", file, line, column, shown(text))
        elif are_numbers and type(value) not in (int, float):
            yield Problem("not a number, as others in this column are", file, line, column, shown(text))


def _name_problems(file: str, lines: Sequence[int], names: Sequence[str]) -> Iterator[Problem]:
    for line, name in zip(lines, names, strict=True):
        if not re.fullmatch(NAME_PATTERN, name):
            yield Problem("not a name", file, line, NAME_COLUMN, shown(name), "letters, digits, _ . + -")
    yield from _repetitions(file, lines, names, "the same name as on line {line}", NAME_COLUMN)


def _repetitions(
    file: str, lines: Sequence[int], things: Sequence[object], message: str, column: str = ""
) -> Iterator[Problem]:
    first: dict[object, int] = {}
    for line, thing in zip(lines, things, strict=True):
        if first.setdefault(thing, line) != line:
            yield Problem(message.format(line=first[thing]), file, line, column)
