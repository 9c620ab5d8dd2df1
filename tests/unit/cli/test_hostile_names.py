"""Hostile names in every output of every verb: they have no effect where they are shown."""

import csv
import html.parser
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import tilewright
import yaml
from tilewright.cli.main import VERBS
from tilewright.cli.verb import command_of

from tests.unit.cli.hostile import CASES, FORGED, LAYERS, World

pytestmark = pytest.mark.usefixtures("unpainted")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a folder with all outputs of all verbs for hostile names."""
    made = World(tmp_path_factory.mktemp("world"))
    for case in CASES.values():
        case(made)
    return made


def files(world: World, *suffixes: str) -> list[Path]:
    """Return the files of some kinds that verbs wrote, of which there is at least one."""
    found = [path for path in Path(world.out("")).rglob("*") if path.suffix in suffixes and path.is_file()]
    assert found
    return found


def is_seen(text: str, layout: str = "\n") -> bool:
    """Return whether each character is printable or part of the layout."""
    return all(character.isprintable() or character in layout for character in text)


def test_every_verb_has_a_case(world: World) -> None:
    """Each verb and each of its subcommands has a case with hostile names."""
    assert set(CASES) == set(VERBS)
    for verb, (module, _) in VERBS.items():
        assert any(said.words[0] == verb for said in world.said), verb
        command = command_of(module)
        if isinstance(command, click.Group):
            assert set(command.commands) == {said.words[1] for said in world.said if said.words[0] == verb}, verb


@pytest.mark.parametrize("verb", VERBS)
def test_the_terminal_gets_lines_of_ours(verb: str, world: World) -> None:
    """The terminal gets no control character, no line that a name begins, and no internal error."""
    for said in world.said:
        if said.words[0] != verb:
            continue
        for text in (said.out, said.err):
            assert is_seen(text)
            assert text.count(FORGED) == text.count(f"\\n{FORGED}")
        assert said.code != 2 or "rror: " in said.err
        assert "internal error" not in said.err


def test_csv_has_no_formulas(world: World) -> None:
    """Each row of a CSV file is one row, and a cell that begins like a formula is a number."""
    texts: set[str] = set()
    for path in files(world, ".csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            heading, *rows = csv.reader(stream)
        assert {len(row) for row in rows} <= {len(heading)}, path.name
        for cell in (cell for row in (heading, *rows) for cell in row if cell.startswith(tuple("=+-@\t\r"))):
            float(cell)
        texts |= {cell for row in rows for cell in row}
    assert f"'{LAYERS[0]}" in texts


def test_csv_reads_back(world: World) -> None:
    """A table that is read back has the names of the descriptions."""
    table = tilewright.load(Path(world.out("report/layers.csv")))
    assert tuple(table["layer"]) == LAYERS[:2]
    assert table["energy_pj"].dtype.kind == "f"


class Page(html.parser.HTMLParser):
    """The elements of a page, its scripts by kind, and its other text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element with its attributes."""
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs).get("type") or "", ""))

    def handle_data(self, data: str) -> None:
        """Keep the text of a script or of the page."""
        if self.cdata_elem == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        else:
            self.text += data


def assert_page_is_ours(text: str) -> None:
    """Assert that no element, attribute or script of a page comes from a name, and that its text is printable."""
    page = Page(text)
    for tag, attributes in page.elements:
        assert tag not in ("img", "b") or not attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert not any("javascript:" in (attributes.get(name) or "") for name in ("href", "src", "xlink:href"))
        assert all(is_seen(value or "") for value in attributes.values())
    for kind, script in page.scripts:
        if kind == "application/json":
            assert is_seen(script)
            assert_frame_is_ours(json.loads(script))
        else:
            assert "evil()" not in script
    assert is_seen(page.text, "\n\t")


def assert_frame_is_ours(data: Any) -> None:
    """Check the schedule pages inside the data of a page; each is put together as the script of the page does."""
    frame = data.get("frame") if isinstance(data, dict) else ""
    schedules = [run["schedule"] for run in data["details"].values() if run.get("schedule")] if frame else []
    assert bool(schedules) == bool(frame)
    for schedule in schedules:
        head, middle, end = re.split("@TITLE@|@DATA@", frame)
        assert_page_is_ours(head + schedule["title"] + middle + schedule["data"] + end)


def test_pages_have_no_elements_of_names(world: World) -> None:
    """No page has an element from a name, including pages inside other pages."""
    found = files(world, ".html")
    assert {path.name for path in found} >= {
        "page.html",
        "schedule.html",
        "fusion.html",
        "explore.html",
        "decision.html",
    }
    for path in found:
        text = path.read_text("utf-8")
        assert "cmd|" in text or path.name in ("explore.html", "front.html", "decision.html")
        assert_page_is_ours(text)


def test_python_shows_names_as_the_terminal_does(world: World) -> None:
    """A result at a Python prompt is one line, and in a notebook a table without elements from names."""
    found = [tilewright.load(Path(world.out(name))) for name in ("single/=narrow", "multi", "multi/cn_graph.json")]
    found.append(tilewright.explain(Path(world.out("multi"))))
    for result in found:
        assert is_seen(repr(result), "")
        if hasattr(result, "_repr_html_"):
            assert_page_is_ours(result._repr_html_())


def test_figures_are_xml_without_scripts(world: World) -> None:
    """Every drawing is valid XML without scripts."""
    for path in files(world, ".svg"):
        text = path.read_text("utf-8")
        assert is_seen(text, "\n\t"), path.name
        for element in ElementTree.fromstring(text).iter():  # our own file
            assert not str(element.tag).endswith(("script", "img", "foreignObject"))
            names = {str(name).rpartition("}")[2] for name in element.attrib}
            assert not [name for name in names if name.startswith("on")]
            assert not any("javascript:" in value for value in element.attrib.values())


def names_in(value: Any) -> Iterator[str]:
    """Yield all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from names_in(part)


def test_traces_show_their_names(world: World) -> None:
    """Traces for Perfetto have the names with escaped characters."""
    for path in (path for path in files(world, ".json") if path.name == "trace.json"):
        texts = [*names_in(json.loads(path.read_text("utf-8")))]
        assert any("cmd|" in text for text in texts)
        assert all(is_seen(text, "") for text in texts)


def test_texts_and_descriptions_are_seen(world: World) -> None:
    """Loop nests and written YAML have only printable characters; YAML reads back to the names."""
    for path in files(world, ".txt", ".yaml"):
        text = path.read_text("utf-8")
        assert is_seen(text), path.name
        assert text.count(FORGED) == text.count(f"\\n{FORGED}")
    entries = yaml.safe_load(Path(world.out("found.yaml")).read_text("utf-8"))
    assert [entry["name"] for entry in entries][:2] == list(LAYERS[:2])


def test_tables_for_a_paper_print_names(world: World) -> None:
    """No name begins a line, a formula, a link or an element in the tables for papers."""
    tables = [
        path
        for path in files(world, ".tex", ".md")
        if path.suffix == ".tex" or [*path.parent.glob(f"{path.stem}-*.tex")]
    ]
    for path in tables:
        text = path.read_text("utf-8")
        assert is_seen(text), path.name
        assert not any(line.lstrip("% ").startswith(FORGED) for line in text.splitlines()), path.name
        assert "[l](javascript:" not in text, path.name
        assert "<b onclick" not in text, path.name
        assert path.suffix == ".md" or "$x$" not in text, path.name
    assert {"summary-column.tex", "summary.md", "pareto-page.tex", "pareto.md"} <= {path.name for path in tables}


def test_results_have_the_names_as_they_are(world: World) -> None:
    """Artifacts have the names of the descriptions unchanged."""
    run = tilewright.load(Path(world.out("single/=narrow")))
    assert tuple(run.layers["layer"]) == LAYERS[:2]
