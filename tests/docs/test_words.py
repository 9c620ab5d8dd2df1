"""The words of the documentation: no worn phrases, a glossary that leads to pages, and small pictures in the
gallery.
"""

import re

import pytest

from docs.check_docs import DOCS, broken_links
from docs.plain_words import nameless, pages, unclear_messages, worn_phrases

GLOSSARY = DOCS / "glossary.md"
PACKAGE = DOCS.parent / "lib" / "tilewright"
TESTS = DOCS.parent / "tests"
FIELDS = ["Papers", "Here", "Files", "More"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_page_has_a_worn_phrase(page):
    """No page has a phrase that docs/plain_words.py lists."""
    assert worn_phrases(page) == []


def test_a_worn_phrase_is_found(tmp_path):
    """A phrase is found across lines, with the line where it begins; code and `told apart` are allowed."""
    page = tmp_path / "page.md"
    page.write_text("Which are told apart.\n\nNothing of\nthis ends the command. `it is told`\n\nThis is told.\n")
    assert [text.split(": ")[:2] for text in worn_phrases(page)] == [
        ["page.md:6", "'told'"],
        ["page.md:3", "'Nothing of this ends'"],
    ]


def test_no_message_has_an_unclear_phrase():
    """No text of the package, except docstrings, has a phrase that docs/plain_words.py lists for messages."""
    found = {str(path): unclear_messages(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


def test_an_unclear_message_is_found():
    """Phrases are found in texts with and without values, not in docstrings; a comma before the subject is allowed."""
    source = '''
def line(second):
    """Lines that turn the order."""
    yield f"without any change {second} is below"
    yield f"without any change, {second} is below"
    yield "no plan is better over all plans"
    return "it is excluded, so that no plan is searched"
'''
    assert [text.split(": ")[:2] for text in unclear_messages(source)] == [
        ["4", "'without any change {} is '"],
        ["6", "'better over '"],
        ["7", "'so that no plan is'"],
    ]


def terms():
    """The part of the page below its heading `Terms`."""
    return GLOSSARY.read_text("utf-8").split("\n## Terms\n")[1]


def entries():
    """Term -> text below the term."""
    _, *parts = re.split(r"^### ", terms(), flags=re.MULTILINE)
    return {title.strip(): text.strip() for title, _, text in (part.partition("\n") for part in parts)}


def test_terms_of_the_glossary_are_in_order():
    """The terms are in alphabetical order, each once."""
    titles = re.findall(r"^### (.+)$", terms(), re.MULTILINE)
    assert titles == sorted(set(titles), key=str.casefold)
    assert len(titles) >= 40


@pytest.mark.parametrize(("term", "text"), entries().items(), ids=entries())
def test_a_term_has_what_a_reader_looks_for(term, text):
    """A term has one to three sentences, the name in papers, the name here, the place in files, and a page."""
    meaning, *fields = text.split("\n* ")
    assert 1 <= len(re.findall(r"[.!?](?=\s|$)", meaning.strip())) <= 3
    assert [field.partition(": ")[0] for field in fields] == FIELDS
    assert all(field.partition(": ")[2].strip() for field in fields)
    links = re.findall(r"\]\(([\w/-]+\.md)(?:#[\w-]+)?\)", fields[-1])
    assert links
    assert all((DOCS / name).exists() for name in links)


@pytest.mark.parametrize("page", ["docs/glossary.md", "docs/tiles/depth-first.md", "lib/tilewright/tiles/__init__.py"])
def test_a_layer_of_a_tile_is_defined_where_readers_meet_it(page):
    """The first use of the term `layer of a tile` on a page defines it."""
    text = " ".join((DOCS.parent / page).read_text("utf-8").split())
    first = text.index("layer of a tile")
    assert text[first - 1] == text[first + len("layer of a tile")] == "*"
    assert "part of a layer that is computed for one tile" in text[first - 80 : first + 80]


def test_links_of_the_glossary_lead_somewhere():
    """Links of the glossary lead to existing pages and headings."""
    assert broken_links(GLOSSARY) == []


def test_pictures_of_the_gallery_are_small():
    """Each picture of the gallery is below 150 kB, and all together are below 1 MB."""
    names = re.findall(r"\]\(\.\./(images/[\w.-]+)\)", (DOCS / "artifacts" / "gallery.md").read_text("utf-8"))
    sizes = {name: (DOCS / name).stat().st_size for name in names}
    assert len(sizes) >= 8
    assert {name: size for name, size in sizes.items() if size > 150_000} == {}
    assert sum(sizes.values()) < 1_000_000


@pytest.mark.parametrize("room", sorted(path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"))
def test_the_first_word_of_a_docstring_names_the_thing(room):
    """The first words of docstrings name the thing, as in `Energy of the schedule.`, not `Of the schedule.`."""
    place = PACKAGE / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place] if place.suffix == ".py" else []
    found = [f"{file.name}:{text}" for file in files for text in nameless(file.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("folder", sorted(path.name for path in TESTS.iterdir() if any(path.rglob("*.py"))))
def test_the_first_word_of_a_docstring_of_a_test_names_the_thing(folder):
    """The first words of docstrings of tests name the thing: `Clocks that differ ...`, not `If clocks differ, ...`."""
    files = sorted((TESTS / folder).rglob("*.py"))
    found = [f"{file.name}:{text}" for file in files for text in nameless(file.read_text("utf-8"))]
    assert found == []


def test_a_nameless_docstring_is_found():
    """A nameless docstring of a function or an attribute is found; a shape or a tuple of parts may come first."""
    source = 'class A:\n    """A thing."""\n    x = 1\n    """Of it."""\n    y = 1\n    """[core] bits of it."""\n'
    source += 'def f():\n    """The same of that."""\ndef g():\n    """(first, count) of it."""\n'
    assert [text.split(": ")[1] for text in nameless(source)] == ["Of it.", "The same of that."]
