"""Harmless text: names from input files, escaped for the terminal, CSV, HTML, SVG, Markdown, LaTeX, YAML and Perfetto.

There is one function for each kind of output. Ordinary names pass through unchanged. Names inside the program are never
escaped. Text is escaped only by the function that writes it.

Standard library only: error messages of the first imports use this module.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas

_LAYOUT = "\n\t"
"""Characters that form the layout of a text of several lines: newline and tab."""
_FORMULA = re.compile(r"'*(?:\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n])")
"""Pattern of the first characters of a cell that spreadsheets take for a formula. Apostrophes can come before `=`."""
_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)")
"""Pattern of a number that is written as text. Spreadsheets do not take it for a formula."""
_NUMBER_KINDS = "biufcmM"
"""numpy type codes of columns without text."""
REPLACEMENT = "\ufffd"
"""Character that figures show in place of a character that XML or the fonts lack. Labels keep their lengths."""
_HTML_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_MARKDOWN = re.compile(r"[\\`|\[\]<>&]")
_MARKDOWN_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "{}_%&#$"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",
    "]": "{]}",
    "-": "-{}",
    "µ": r"\ensuremath{\mu}",
    "·": r"\ensuremath{\cdot}",
    "×": r"\ensuremath{\times}",
    "−": r"\ensuremath{-}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "→": r"\ensuremath{\rightarrow}",
    "Σ": r"\ensuremath{\Sigma}",
    "⁻": r"\ensuremath{^-}",
    **{sign: rf"\ensuremath{{^{digit}}}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}
"""Character -> text that shows this character in LaTeX. The table has the characters of LaTeX commands, characters that
LaTeX joins with their neighbours (`--`), and signs of units. The signs of units become formulas, because the text fonts
of a plain installation have only bitmaps for the signs. Publishers refuse bitmap fonts (fonts of type 3).
"""
Value = TypeVar("Value")


@cache  # compiled when a text needs it, which few runs have: the pattern costs as much as importing a large module
def _hostile() -> re.Pattern[str]:
    """Pattern of control characters, line separators, format characters that hide text or reverse its direction, and
    halves of surrogate pairs.
    """
    return re.compile(
        "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ud800-\\udfff\\ufeff"
        "\\ufff9-\\ufffb\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e007f]"
    )


@cache
def _not_xml() -> re.Pattern[str]:
    """Pattern of characters that XML does not allow."""
    return re.compile("[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def visible(text: str, kept: str = "") -> str:
    """Text in which control and format characters are replaced by visible escapes, such as \\x1b, \\n or \\u202e.
    Characters in `kept` are not replaced."""
    return _escaped(text, kept, lambda character: character.encode("unicode_escape").decode())


def _escaped(text: str, kept: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():  # true for nearly all text
        return text
    return _hostile().sub(lambda found: found[0] if found[0] in kept else escape(found[0]), text)


def is_harmless(text: str) -> bool:
    """True if a text has no character that `visible` would replace."""
    return text.isprintable() or not _hostile().search(text)


def terminal(text: object) -> str:
    """Text for one line on a terminal or in a log. Visible escapes replace control and format characters, including
    newlines and tabs.
    """
    return visible(str(text))


def terminal_lines(lines: Iterable[object]) -> str:
    """Lines for a terminal as one text. There are newlines between the lines and nowhere else."""
    return "\n".join(map(terminal, lines))


def ended_lines(lines: Iterable[object], begin: str = "") -> str:
    """Lines for a terminal as one text. Each line starts with `begin` and ends with a newline; there are no other
    newlines."""
    return "".join(f"{begin}{terminal(line)}\n" for line in lines)


def terminal_text(text: str) -> str:
    """Text of several lines for a terminal. Newlines and tabs stay, because they are the layout of the text."""
    return visible(text, _LAYOUT)


def terminal_json(text: str) -> str:
    """JSON for a terminal: the same value, with control and format characters as JSON escapes."""
    return _escaped(text, _LAYOUT, _json_escape)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def csv(cell: Value) -> Value | str:
    """Cell or heading of a CSV file. Text that spreadsheets would take for a formula gets an apostrophe in front.
    Numbers stay."""
    # Nearly all text begins with a letter or a digit, and a table has very many cells.
    if not isinstance(cell, str) or cell[:1].isalnum() or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def from_csv(cell: Value) -> Value | str:
    """Original cell from the output of `csv`: the inverse of `csv`."""
    return cell[1:] if isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell) else cell


def csv_line_end(cells: Iterable[object]) -> str:
    r"""Line end of the rows of a CSV file: `\r\n` if a cell contains a carriage return, because CSV writers quote such
    a cell only with this line end. `\n` in all other cases."""
    return "\r\n" if any(isinstance(cell, str) and "\r" in cell for cell in cells) else "\n"


def csv_text(table: "pandas.DataFrame") -> str:
    """Table as CSV text. The function `csv` makes headings and text cells harmless for spreadsheets."""
    texts = _texts(table)
    end = csv_line_end(chain(table.columns, *texts))
    text: str = _with_cells(table, texts, csv).to_csv(index=False, lineterminator=end)
    return text


def from_csv_table(table: "pandas.DataFrame") -> "pandas.DataFrame":
    """Copy of `table` without the apostrophes that `csv_text` added. `table` was read from the output of `csv_text`."""
    return _with_cells(table, _texts(table), from_csv)


def visible_table(table: "pandas.DataFrame") -> "pandas.DataFrame":
    """Table in which `visible` was applied to headings and text cells, for writers that escape all other special
    characters."""
    return _with_cells(table, _texts(table), lambda cell: visible(cell) if isinstance(cell, str) else cell)


def _texts(table: "pandas.DataFrame") -> list[set[str]]:
    """Distinct texts of each column."""
    columns = (column for _, column in table.items())
    return [
        set() if column.dtype.kind in _NUMBER_KINDS else {cell for cell in column.tolist() if isinstance(cell, str)}
        for column in columns
    ]


def _with_cells(table: "pandas.DataFrame", texts: list[set[str]], change: Callable[[Any], Any]) -> "pandas.DataFrame":
    """Table in which `change` was applied to the headings and to all text cells. `texts` has the distinct texts of each
    column. If nothing changes, the result is the object `table` itself."""
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
    """Text for an HTML page, for use in an element or in a quoted attribute. Newlines and tabs stay."""
    return visible(str(text), _LAYOUT).translate(_HTML_ENTITIES)


def html_data(text: str) -> str:
    """JSON text on one line for a script element. No text in the value can end the element, and format characters
    become escapes."""
    # Written as an escape, "<" cannot end the element.
    seen = _escaped(text, "", lambda character: visible(character).replace("\\", "\\\\"))
    return seen.replace("<", "\\u003c")


def svg(text: str) -> str:
    """Text for a figure. Characters that XML does not allow, and characters that reverse the direction of writing, are
    replaced."""
    return _escaped(_not_xml().sub(REPLACEMENT, text), "\n", lambda character: REPLACEMENT)


def markdown(text: object, is_marked: bool = False) -> str:
    """Text for a table cell or a line of Markdown. No markup, link, element or new line can begin in it.

    If `is_marked` is true, the text has markup that tilewright made. This markup is kept, and only characters that
    would end a cell are escaped.
    """
    line = visible(str(text))
    return line.replace("|", "\\|") if is_marked else _MARKDOWN.sub(_markdown_escape, line)


def latex(text: object) -> str:
    """Text for a table cell or a line of LaTeX. No command, comment, column or formula can begin in it."""
    return "".join(_LATEX.get(character, character) for character in visible(str(text)))


def _markdown_escape(found: re.Match[str]) -> str:
    return _MARKDOWN_ENTITIES.get(found[0], f"\\{found[0]}")


def perfetto(value: Any) -> Any:
    """JSON value of a trace. Control and format characters in its texts become visible escapes."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): perfetto(part) for key, part in value.items()}
    return [perfetto(part) for part in value] if isinstance(value, list) else value
