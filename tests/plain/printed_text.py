"""The output of verbs, read as a person reads it: tables, numbers, shares and the data of a page."""

import contextlib
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.cli.main import main

REFUSED = 2
"""Exit code for wrong input."""
MOST_HEAD_LINES = 4
CUT = "\n"
"""Mark where a cell is folded between two words."""
LEAST_TOLD = 0.001
HALF_A_DIGIT = 0.0005 + 1e-9
SHARE = r"<?-?[\d,]+(?:\.\d+)?%"


class VerbError(Exception):
    """Raised if a verb refuses its input."""


class BrokenVerbError(Exception):
    """Raised if a verb ends with an internal error."""


def said(*words: object) -> str:
    """The terminal output of a verb. Raises VerbError if the verb refuses its input."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    if code:
        raise (VerbError if code == REFUSED else BrokenVerbError)(f"{' '.join(map(str, words))}: {err.getvalue()}")
    return out.getvalue()


Row = dict[str, str]


def table(text: str, title: str) -> list[Row]:
    """Rows, by heading, of the first table whose title begins with `title`; [] if there is no such table."""
    lines = text.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith(title)]
    starts = [place for place in starts if any(map(_is_rule, lines[place + 1 : place + 1 + MOST_HEAD_LINES]))]
    return rows_of(lines[starts[0] + 1 :]) if starts else []


def rows_of(lines: Sequence[str]) -> list[Row]:
    """Rows of the table that begins with these lines; folded cells are joined."""
    rule = next(place for place, line in enumerate(lines) if _is_rule(line))
    heads, body = list(lines[:rule]), []
    for line in lines[rule + 1 :]:
        if not line.startswith(" ") or re.match(r"  \S", line):
            break
        body.append(line)
    spans = _spans([*heads, *body])
    names = [" ".join(filter(None, (line[a:b].strip() for line in heads))) for a, b in spans]
    last = max(place for place, name in enumerate(names) if name)
    rows: list[Row] = []
    for line in body:
        cells = [line[a:b].strip() for a, b in spans]
        is_more = rows and not any(cells[1:]) and len(cells) > 1 and not cells[0]
        starts_row = cells[-1] or cells[0] == "all" or (last > 0 and cells[last])
        if rows and (is_more or not starts_row):
            for name, cell, (a, b) in zip(names, cells, spans, strict=True):
                before = rows[-1][name].rpartition(CUT)[2]
                is_cut = bool(before) and len(before) % (b - a) == 0 and " " not in before
                rows[-1][name] += cell if is_cut or not cell else CUT + cell
        else:
            rows.append(dict(zip(names, cells, strict=True)))
    return [{name: cell.replace(CUT, " ") for name, cell in row.items()} for row in rows]


def _is_rule(line: str) -> bool:
    return set(line.strip()) == {"─"}


def _spans(lines: Sequence[str]) -> list[tuple[int, int]]:
    """First and last place of each column; columns are three blanks apart on all lines."""
    width = max(map(len, lines))
    is_used = [any(len(line) > place and line[place] != " " for line in lines) for place in range(width)]
    spans: list[list[int]] = []
    for place, used in enumerate(is_used):
        if used and spans and place - spans[-1][1] < 3:
            spans[-1][1] = place + 1
        elif used:
            spans.append([place, place + 1])
    return [(a, b) for a, b in spans]


def number(text: str) -> float:
    """A number with thousands separators."""
    return float(text.replace(",", ""))


def is_share(text: str, value: float) -> bool:
    """Whether a text with one decimal is this share; `<0.1%` is above 0."""
    told = text.removeprefix("-") if value >= 0 else text
    if told == "-" or not told:
        return value == 0 or math.isnan(value)
    if told == "<0.1%":
        return 0 < value < LEAST_TOLD * (1 + 1e-9)
    if told == "<1.0%":
        return 0.01 - HALF_A_DIGIT <= value < 0.01
    return abs(number(told.removesuffix("%")) / 100 - value) <= HALF_A_DIGIT


def is_change(text: str, gain: float | None) -> bool:
    """Whether the printed change of an objective is a gain of this share; None means that it does not fit."""
    if text in ("-", "does not fit"):
        return gain is None
    if gain is None:
        return False
    if text in ("-<0.1%", "+<0.1%"):
        return 0 < abs(gain) <= HALF_A_DIGIT and (gain > 0) == text.startswith("-")
    told = 0.0 if text == "0" else number(text.removesuffix("%")) / 100
    return abs(told + gain) <= (1e-9 if text == "0" else HALF_A_DIGIT)


def is_count(text: str, value: float) -> bool:
    """Whether a whole number with separators is this number, rounded."""
    return abs(number(text) - value) <= 0.5 + 1e-6


def is_close(text: str, value: float, digits: int) -> bool:
    """Whether a text is this number, printed with `digits` digits."""
    return math.isclose(number(text), value, rel_tol=0.51 * 10.0 ** (1 - digits), abs_tol=1e-12)


def page_data(file: Path) -> Any:
    """The data that the scripts of a page draw."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', file.read_text("utf-8"), re.S)
    return json.loads(text)
