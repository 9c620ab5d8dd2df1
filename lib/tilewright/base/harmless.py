"""Harmless text: names from input files, escaped for the terminal, CSV, HTML, SVG, Markdown, YAML and Perfetto.

One function for each kind of output. Ordinary names pass through unchanged. Names inside the model stay as they were
written: text is made harmless where it leaves the program, in the writer that all outputs of its kind share.

Standard library only: error messages of the first imports go through here.
"""

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas

_HOSTILE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e007f]"
)
"""Control characters, separators of lines, format characters that turn or hide text, and halves of surrogate pairs."""
_LAYOUT = "\n\t"
"""Characters that lay out a text of several lines."""
_FORMULA = re.compile(r"'*(?:\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n])")
"""How a cell begins that spreadsheets take for a formula, apostrophes before it included."""
_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)")
"""Numbers that are written as text, of which spreadsheets compute nothing."""
_NUMBER_KINDS = "biufcmM"
"""Kinds of columns of a table that have no text."""
_NOT_XML = re.compile("[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\ufffd"
"""Character that figures show for one that XML and fonts do not have: labels keep their lengths."""
_HTML_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_MARKDOWN = re.compile(r"[\\`|\[\]<>&]")
_MARKDOWN_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
Value = TypeVar("Value")


def visible(text: str, kept: str = "") -> str:
    """Text whose control and format characters are seen as escapes, \\x1b or \\n or \\u202e; those of `kept` stay."""
    return _escaped(text, kept, lambda character: character.encode("unicode_escape").decode())


def _escaped(text: str, kept: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():  # nearly all text
        return text
    return _HOSTILE.sub(lambda found: found[0] if found[0] in kept else escape(found[0]), text)


def is_harmless(text: str) -> bool:
    """Whether a text has no character that `visible` shows as an escape."""
    return text.isprintable() or not _HOSTILE.search(text)


def terminal(text: object) -> str:
    """A line of a terminal or of a log."""
    return visible(str(text))


def terminal_lines(lines: Iterable[object]) -> str:
    """Lines of a terminal as one text, with newlines between them and nowhere else."""
    return "\n".join(map(terminal, lines))


def ended_lines(lines: Iterable[object], begin: str = "") -> str:
    """Lines of a terminal as one text, each after `begin` and ended by a newline, which is nowhere else."""
    return "".join(f"{begin}{terminal(line)}\n" for line in lines)


def terminal_text(text: str) -> str:
    """A text of several lines, whose newlines and tabs are its layout."""
    return visible(text, _LAYOUT)


def terminal_json(text: str) -> str:
    """JSON for a terminal: the same value, with the escapes of JSON for control and format characters."""
    return _escaped(text, _LAYOUT, _json_escape)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def csv(cell: Value) -> Value | str:
    """A cell or a heading of csv: text that spreadsheets take for a formula begins with an apostrophe; numbers stay."""
    # Nearly all text begins with a letter or a digit, and a table has very many cells.
    if not isinstance(cell, str) or cell[:1].isalnum() or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def from_csv(cell: Value) -> Value | str:
    """The cell that `csv` was given."""
    return cell[1:] if isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell) else cell


def csv_line_end(cells: Iterable[object]) -> str:
    """How rows of csv end: with a carriage return where a cell has one, since writers quote only what ends rows."""
    return "\r\n" if any(isinstance(cell, str) and "\r" in cell for cell in cells) else "\n"


def csv_text(table: "pandas.DataFrame") -> str:
    """A table as csv, its headings and cells of text by `csv`."""
    texts = _texts(table)
    end = csv_line_end(chain(table.columns, *texts))
    text: str = _with_cells(table, texts, csv).to_csv(index=False, lineterminator=end)
    return text


def from_csv_table(table: "pandas.DataFrame") -> "pandas.DataFrame":
    """The table that `csv_text` was given, from what was read of its text."""
    return _with_cells(table, _texts(table), from_csv)


def visible_table(table: "pandas.DataFrame") -> "pandas.DataFrame":
    """A table whose headings and cells of text have gone through `visible`, for writers that escape the rest."""
    return _with_cells(table, _texts(table), lambda cell: visible(cell) if isinstance(cell, str) else cell)


def _texts(table: "pandas.DataFrame") -> list[set[str]]:
    """The texts of each column, each once."""
    columns = (column for _, column in table.items())
    return [
        set() if column.dtype.kind in _NUMBER_KINDS else {cell for cell in column.tolist() if isinstance(cell, str)}
        for column in columns
    ]


def _with_cells(table: "pandas.DataFrame", texts: list[set[str]], change: Callable[[Any], Any]) -> "pandas.DataFrame":
    """A table with some of its headings and texts changed; the same one where none is."""
    headings = [change(name) for name in table.columns]
    changes = [{text: new for text in column if (new := change(text)) is not text} for column in texts]
    if not any(changes) and headings == list(table.columns):
        return table
    changed = table.copy()
    for place, new_of in enumerate(changes):
        if new_of:
            cells = table.iloc[:, place].tolist()
            changed.isetitem(place, [new_of.get(cell, cell) if isinstance(cell, str) else cell for cell in cells])
    changed.columns = headings
    return changed


def html(text: object) -> str:
    """Text of an HTML page, in an element or in an attribute in quotes; newlines and tabs stay."""
    return visible(str(text), _LAYOUT).translate(_HTML_ENTITIES)


def html_data(text: str) -> str:
    """JSON on one line inside a script element, which nothing in it ends; its format characters are seen."""
    # "<" ends no element inside JSON text that has it as an escape.
    seen = _escaped(text, "", lambda character: visible(character).replace("\\", "\\\\"))
    return seen.replace("<", "\\u003c")


def svg(text: str) -> str:
    """Text of a figure, without characters that XML refuses or that turn what stands around them."""
    return _escaped(_NOT_XML.sub(REPLACEMENT, text), "\n", lambda character: REPLACEMENT)


def markdown(text: object, is_marked: bool = False) -> str:
    """Text in a cell of a table or elsewhere on a line of Markdown: no markup, link, element or line begins in it.

    Where it `is_marked`, its markup is ours and stays: a cell ends in it nowhere.
    """
    line = visible(str(text))
    return line.replace("|", "\\|") if is_marked else _MARKDOWN.sub(_markdown_escape, line)


def _markdown_escape(found: re.Match[str]) -> str:
    return _MARKDOWN_ENTITIES.get(found[0], f"\\{found[0]}")


def perfetto(value: Any) -> Any:
    """A JSON value of a trace: in each text control and format characters are seen as escapes."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): perfetto(part) for key, part in value.items()}
    return [perfetto(part) for part in value] if isinstance(value, list) else value
