"""Text for each kind of output: harmful characters are escaped, and ordinary names stay."""

import ast
import csv
import html
import html.parser
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas
import pytest
import tilewright
import yaml
from tilewright.base import harmless
from tilewright.base.errors import InputError, MappingError, NothingFitsError, Problem
from tilewright.base.yamlfile import parse_yaml, yaml_text
from tilewright.cli.csv_text import csv_text
from tilewright.results.terminal_tables import render, text_table

PACKAGE = Path(tilewright.__file__).parent
ORDINARY = (
    "conv1",
    "/layer1/layer1.0/conv1/Conv",
    "Größe_3",
    "mem@bank",
    "a=b",
    "x-1",
    "a b",
    "µ×",
    "名前",
    "e\u0301",
    "",
)
CONTROLS = (
    "\x00",
    "\x07",
    "\x1b",
    "\n",
    "\r",
    "\t",
    "\x7f",
    "\x85",
    "\x9b",
    "\u2028",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\ud800",
)
FORMULAS = ("=1+1", "+a", "-a", "@SUM(A1)", "\t=1", "\r=1", "-", "'=1", "''@a", " =1", "\uff1d1")


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_stay(name: str) -> None:
    """No function changes an ordinary name."""
    kinds: tuple[Any, ...] = (
        *(harmless.terminal, harmless.terminal_text, harmless.terminal_json, harmless.csv, harmless.from_csv),
        *(harmless.html, harmless.html_data, harmless.svg, harmless.markdown, harmless.perfetto),
    )
    assert [kind(name) for kind in kinds] == [name] * len(kinds)


@pytest.mark.parametrize("control", CONTROLS)
def test_control_characters_are_seen(control: str) -> None:
    """A control or format character is escaped in terminals, pages, figures, traces and Markdown."""
    name = f"a{control}b"
    seen = "a" + control.encode("unicode_escape").decode() + "b"
    assert harmless.terminal(name) == harmless.perfetto(name) == seen
    assert harmless.markdown(name) == seen.replace("\\", "\\\\")
    for kind, layout in ((harmless.terminal_text, "\n\t"), (harmless.html, "\n\t"), (harmless.svg, "\n")):
        assert (control in kind(name)) == (control in layout)
    if control != "\ud800":
        text = json.dumps(name, ensure_ascii=False)
        assert control not in harmless.terminal_json(text)
        assert json.loads(harmless.terminal_json(text)) == name
        assert control not in harmless.html_data(text)


def test_lines_stay_lines() -> None:
    """A newline in a name adds no line to a text, a table or a message."""
    name = "a\nerror: b"
    assert harmless.terminal_lines(["x", name]) == "x\na\\nerror: b"
    assert harmless.ended_lines([name], "  ") == "  a\\nerror: b\n"
    table = text_table(name, ("layer",), ("cycles\n[10⁶]",))
    table.add_row(name, "1")
    assert len(render(table).splitlines()) == 5
    assert str(InputError([Problem(name, name, 1, name, name, name, name)])).count("\n") == 0
    assert str(MappingError(name)).count("\n") == 0
    assert str(NothingFitsError(name, name, [name, "x"])).count("\n") == 2


@pytest.mark.parametrize("name", [*FORMULAS, *ORDINARY, *(f"a{control}b" for control in CONTROLS[1:-1])])
def test_csv_has_no_formulas_and_reads_back(name: str) -> None:
    """No cell or heading in CSV begins with a formula, and each reads back as the same name."""
    table = pandas.DataFrame({"name": ["x", name], name or "other": [-1.5, -2.0]})
    for text in (harmless.csv_text(table), csv_text(table.to_dict("records"))):
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert len(rows) == 3
        assert rows[1][1] == "-1.5"
        assert not any(cell.startswith(tuple("=+-@\t\r")) for cell in (rows[0][1], rows[2][0]))
        read = pandas.read_csv(io.StringIO(text, newline=""), keep_default_na=False, na_values=[])
        pandas.testing.assert_frame_equal(harmless.from_csv_table(read), table)


@pytest.mark.parametrize("cell", [-1, -1.5, 3, None, True, "-1", "-1.5e-7", "+2", "-inf", ""])
def test_numbers_in_csv_stay(cell: object) -> None:
    """Numbers in CSV stay as they are, even as text."""
    assert harmless.csv(cell) is cell


def test_html_begins_no_element() -> None:
    """Text begins no HTML element: in an element, in a quoted attribute, and as JSON in a script."""
    name = "\"'><img onerror=x></script><script>&amp;"
    found: list[Any] = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, attrs))

        def handle_data(self, data: str) -> None:
            found.append(data)

    assert harmless.html(name) == html.escape(name)
    data = harmless.html_data(json.dumps({"name": name + "\u202e"}, ensure_ascii=False))
    page = f'<p title="{harmless.html(name)}">{harmless.html(name)}</p><script>{data}</script>'
    Reader(convert_charrefs=True).feed(page)
    assert found == [("p", [("title", name)]), name, ("script", []), data]
    assert json.loads(data) == {"name": name + "\\u202e"}


def test_markdown_has_no_markup() -> None:
    """A name in Markdown begins no cell, code, link or element; a cell with markup of the program keeps it."""
    assert harmless.markdown("a|b`c`[x](y)<br>\\\n&") == "a\\|b\\`c\\`\\[x\\](y)&lt;br&gt;\\\\\\\\n&amp;"
    assert harmless.markdown("`a | b`", is_marked=True) == "`a \\| b`"
    row = f"| {harmless.markdown('a|b')} | {harmless.markdown('`a', is_marked=True)} |"
    assert len(re.split(r"(?<!\\)\|", row)) == 4


@pytest.mark.parametrize("name", [*FORMULAS, *ORDINARY, *(f"a{control}é{control}" for control in CONTROLS[1:-1])])
def test_yaml_reads_back(name: str) -> None:
    """A name in YAML reads back as the same name, as key and as value, and shows no control character."""
    text = yaml_text([{"name": name, name: [name]}], allow_unicode=True)
    assert harmless.terminal_text(text) == text
    assert parse_yaml(text).data == [{"name": name, name: [name]}]
    if name in ORDINARY:
        assert text == yaml.safe_dump([{"name": name, name: [name]}], sort_keys=False, allow_unicode=True)


def test_nothing_is_said_past_the_one_writer() -> None:
    """Modules print only through `cli/terminal.py`."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        source = file.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if any(word in source for word in ("click.", "sys.", "print(")) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called, given = ast.unparse(node.func), ast.unparse(node.args[0]) if node.args else ""
                says = called in ("click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write")
                says = says and file.name != "terminal.py"
                prints = called == "print" and not given.startswith("terminal(")
                if says or prints:
                    found.append(f"{file.relative_to(PACKAGE)}: {called}({given})")
    # The stub is of our own code, and `tell` gets lines of `main` that have gone through.
    assert sorted(found) == ["cli/interruption.py: print(line)"]


def test_csv_and_html_are_written_by_the_one_function() -> None:
    """Modules write tables and escape text only through `harmless`."""
    past = (".to_csv(", "html.escape", ".to_html(", "yaml.safe_dump(", "csv.DictWriter(")
    found = {
        (str(file.relative_to(PACKAGE)), text)
        for file in PACKAGE.rglob("*.py")
        for text in past
        if text in file.read_text("utf-8") and file.name != "harmless.py"
    }
    assert found == {("results/shown.py", ".to_html(")}
