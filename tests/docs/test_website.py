"""Checks of the site that `make docs` builds, and of notebooks as its pages."""

import ast
import json
import re

import pytest

from docs.check_docs import DOCS, ROOT
from docs.website.checks import problems
from docs.website.notebooks import notebook_page


def test_loads_from_a_network_are_found(tmp_path):
    """Scripts, styles, pictures and fonts from other hosts are named; links to click are allowed."""
    (tmp_path / "a.html").write_text(
        '<a href="https://example.org">x</a><img src="b.png">'
        '<script src="//cdn.example.org/x.js"></script><link href="https://fonts.example.org/f.css">'
        "<style>@import url('https://fonts.example.org/g.css');</style>"
    )
    (tmp_path / "b.png").write_bytes(b"")
    (tmp_path / "c.css").write_text("@font-face { src: url(http://example.org/f.woff2) } b { background: url(b.png) }")
    assert problems(tmp_path) == [
        "a.html: loads from a network: <script> //cdn.example.org/x.js",
        "a.html: loads from a network: <link> https://fonts.example.org/f.css",
        "a.html: a style loads from a network: url('https://fonts.example.org/g.css",
        "c.css: loads from a network: url(http://example.org/f.woff2",
    ]


def test_addresses_that_lead_nowhere_are_found(tmp_path):
    """Missing files and anchors are found, in links within a page and in links to other pages."""
    (tmp_path / "in").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="#down"></a><a href="in/b.html#here"></a>'
    )
    (tmp_path / "in" / "b.html").write_text(
        '<a href="../a.html#top"></a><a href="../a.html#none"></a><img src="c.png">'
    )
    assert problems(tmp_path) == [
        "a.html: no such anchor: #down",
        "a.html: no such anchor: in/b.html#here",
        "in/b.html: no such anchor: ../a.html#none",
        "in/b.html: not in the site: c.png",
    ]


def notebook(folder, *cells):
    """A notebook file with these cells."""
    path = folder / "one.ipynb"
    path.write_text(json.dumps({"cells": list(cells)}))
    return path


def code(*outputs, count=1):
    """A code cell; it was executed unless `count` is None."""
    return {"cell_type": "code", "source": ["x = 1\n", "x"], "execution_count": count, "outputs": list(outputs)}


def test_a_notebook_becomes_a_page(tmp_path):
    """A page has text, code, and for each output its richest form: a table, an embedded picture, or text."""
    page = notebook_page(
        notebook(
            tmp_path,
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            code(
                {"output_type": "stream", "text": ["said\n"]},
                {"output_type": "execute_result", "data": {"text/html": ["<b>1</b>"], "text/plain": ["1"]}},
                {"output_type": "display_data", "data": {"image/png": "QUJD\n", "text/plain": ["<Figure>"]}},
            ),
        )
    )
    assert page.startswith("# Title\ntext\n\n````python\nx = 1\nx\n````\n\n````text\nsaid\n````\n")
    assert "<b>1</b>" in page
    assert 'src="data:image/png;base64,QUJD"' in page
    assert "<Figure>" not in page


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (code(count=None), "cell 1 was not executed"),
        (code({"output_type": "error", "ename": "KeyError", "evalue": "'x'"}), "cell 1 failed: KeyError: 'x'"),
    ],
)
def test_a_notebook_that_did_not_run_is_refused(tmp_path, cell, reason):
    """A notebook with a cell that was not executed, or failed, is refused."""
    with pytest.raises(ValueError, match=reason):
        notebook_page(notebook(tmp_path, cell))


def test_every_page_has_a_place_in_the_navigation():
    """docs/website/conf.py names every page. `make docs` would find a missing one, too, but later."""
    text = (DOCS / "website" / "conf.py").read_text("utf-8").split("\nPAGES_OF = ")[1]
    parts, text = text.split("NAVIGATION = ")
    entries = re.findall(r'"([\w/*-]+)"', re.sub(r'"[^"]*":', "", text.split("\nBELOW")[0]))
    topics = ast.literal_eval(parts.rsplit("}", 1)[0] + "}")
    entries += [f"{topic}/{part}" for topic, names in topics.items() for part in names]
    listed = [
        path
        for entry in entries
        for path in (ROOT.glob(entry[1:] + ".md") if entry.startswith("/") else DOCS.glob(entry + ".*"))
        if path.suffix in (".md", ".ipynb")
    ]
    pages = [
        *DOCS.glob("*.md"),
        *(page for folder in DOCS.iterdir() if folder.name != "adr" for page in folder.glob("*.md")),
        *DOCS.glob("notebooks/*.ipynb"),
        DOCS / "adr" / "README.md",
    ]
    assert sorted(path for path in listed if path.is_relative_to(DOCS)) == sorted({*pages} - {DOCS / "index.md"})
