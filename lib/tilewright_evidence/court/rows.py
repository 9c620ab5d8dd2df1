"""Reader for files with rows of measurements.

One error reports the mistakes in all files.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import words

MOST_PROBLEMS = 20


MAPPING = "mapping"
"""Key of a row whose value is a mapping. A mapping is a list of memories, innermost first. Each memory has a list of
temporal loops and a list of spatial loops, inner to outer.
"""


def read_rows(
    files: Sequence[Path],
    needed: Mapping[str, type | tuple[type, ...]],
    check: Callable[[JsonObject], Iterable[Problem]] = lambda row: (),
) -> list[dict[str, Any]]:
    """Rows of all files.

    `needed` has the allowed types of the value at each key that a row must have. A dotted key, such as `layer.K`, is a
    key of a nested object. In CSV files, cells of keys with a numeric type become numbers, and empty cells become None.
    `check` returns the mistakes in a row whose values have allowed types; this function adds the places of the
    mistakes. Raises InputError with the first twenty mistakes, and with the number of further mistakes.
    """
    problems: list[Problem] = []
    rows = []
    for file in files:
        for line, row in _raw_rows(file, needed, problems):
            wrong = [
                _problem(file, line, key, _value(row, key), kinds)
                for key, kinds in needed.items()
                if "." not in key or isinstance(row.get(key.partition(".")[0]), dict)
            ]
            found = [problem for problem in wrong if problem is not None]
            found = found or [replace(problem, file=str(file), line=line) for problem in check(row)]
            problems += found
            if not found:
                rows.append(row)
    if problems:
        left = len(problems) - MOST_PROBLEMS
        more = [Problem(f"and {left} more mistakes in rows")] if left > 0 else []
        raise InputError(problems[:MOST_PROBLEMS] + more)
    return rows


def _raw_rows(
    file: Path, needed: Mapping[str, type | tuple[type, ...]], problems: list[Problem]
) -> Iterator[tuple[int, JsonObject]]:
    """Pairs (line number, row) of the rows that can be parsed. Problems of other lines, and of a file that cannot be
    read, are appended to `problems`.
    """
    told = Problems()
    text = told.attempt(_text, file)
    if text is None:
        problems += told.found
        return
    if file.name.removesuffix(".gz").endswith(".csv"):
        reader = csv.DictReader(io.StringIO(text))
        for row in reader:
            yield reader.line_num, {key: _cell(value, needed.get(key)) for key, value in row.items() if key is not None}
        return
    for line, content in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(content)
        except ValueError as error:
            problems.append(Problem(f"no JSON: {error}", str(file), line))
            continue
        if isinstance(row, dict):
            yield line, row
        else:
            problems.append(Problem("no JSON object", str(file), line))


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError([Problem(f"cannot be read: {error}", str(file))]) from error


def _cell(value: str | None, kinds: type | tuple[type, ...] | None) -> Any:
    if value is None or value == "":
        return None
    if kinds is None or kinds is str:
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if kinds is int and number.is_integer() else number


def _value(row: Any, key: str) -> Any:
    """Value at a dotted key of a row; None if there is none. The value at the key `mapping` is also None if it is not a
    list of memories with loops (`_is_mapping`).
    """
    for name in key.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row if key != MAPPING or _is_mapping(row) else None


def _is_mapping(value: Any) -> bool:
    """True if a value is a list of memories with loops."""
    return isinstance(value, list) and all(
        isinstance(memory, dict) and all(_are_loops(memory.get(kind)) for kind in ("temporal", "spatial"))
        for memory in value
    )


def _are_loops(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(loop, list) and len(loop) == 2 and isinstance(loop[0], str) and isinstance(loop[1], int)
        for loop in value
    )


def _problem(file: Path, line: int, key: str, value: Any, kinds: type | tuple[type, ...]) -> Problem | None:
    every = kinds if isinstance(kinds, tuple) else (kinds,)
    good = isinstance(value, every) and not isinstance(value, bool)
    if float in every and isinstance(value, int) and not isinstance(value, bool):
        good = True
    if good:
        return None
    allowed = " or ".join(map(words, every))
    return Problem("wrong or missing", str(file), line, path=key, value=repr(value), allowed=allowed)
