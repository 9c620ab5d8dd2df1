"""What Sphinx knows of the site: `make site` builds it from the pages as a git host shows them, in the same Markdown.

The root of the sources is the project. So a link from a page to any file of the project leads somewhere in the site,
too: to a page, or to a copy of the file. Nothing in the site is loaded from a network.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "lib")]

from sphinx.application import Sphinx  # noqa: E402
from tilewright import __version__  # noqa: E402

from docs.website.notebooks import notebook_page  # noqa: E402

project = "tilewright"
author = "The tilewright authors"
version = release = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
root_doc = "docs/index"
include_patterns = ["docs/**", "config/**.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
exclude_patterns = [
    ".*",
    "benchmarks",
    "lib",
    "logs",
    "profiles",
    "results",
    "tests",
    "workflow",
    "**/.*",
    "docs/website",
]

myst_heading_anchors = 4
"""Headings have the anchors that a git host gives them, down to this level."""

html_theme = "furo"
html_title = f"tilewright {version}"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # needs the text of pages, which a browser refuses to a page that is opened as a file
html_theme_options = {"navigation_with_keys": True}

# By what a reader wants. An entry with a star stands for all pages of its folder, or for none.
NAVIGATION = {
    "Tutorials": ["first-ten-minutes*", "tutorials/which-sram", "tutorials/two-cores", "notebooks/*"],
    "How to": [
        "accelerators",
        "networks",
        "language-models",
        "mappings",
        "bottlenecks",
        "compare",
        "multi-core",
        "many-runs",
        "plug-ins",
        "migrate",
    ],
    "Reference": [
        "/config/README",
        "/config/hardware/README",
        "/config/hardware/zigzag/README",
        "/config/workload/README",
        "/config/workload/language_models/README",
        "formats",
        "artifacts",
        "stages",
        "operators",
        "costs",
        "glossary*",
    ],
    "Explanation": ["accuracy", "limits", "model", "multi-core-model", "proofs", "tiles", "peers"],
    "Developers": ["architecture", "citing*", "/CONTRIBUTING", "/SECURITY", "adr/README", "/CHANGELOG"],
}
BELOW = {
    "docs/index": NAVIGATION,
    "docs/adr/README": {"Decisions": ["[0-9]*"]},
}
"""Page -> the pages below it. Git hosts show folders instead, so this does not stand in the pages themselves."""


def _tables_of_contents(folder: Path, sections: dict[str, list[str]]) -> str:
    found = {
        title: [entry for entry in entries if _leads_somewhere(folder, entry)] for title, entries in sections.items()
    }
    return "".join(
        "\n```{toctree}\n:hidden:\n:glob:\n" + f":caption: '{title}'\n\n" + "\n".join(entries) + "\n```\n"
        for title, entries in found.items()
        if entries
    )


def _leads_somewhere(folder: Path, entry: str) -> bool:
    """A pattern may match nothing; a page that is not there is for Sphinx to complain about."""
    return "*" not in entry or any(path.suffix in source_suffix for path in folder.glob(entry + ".*"))


def _complete(app: Sphinx, page: str, content: list[str]) -> None:
    """Add what a page is in the site and not on a git host: a notebook as Markdown, the navigation."""
    path = Path(app.env.doc2path(page))
    if path.suffix == ".ipynb":
        content[0] = notebook_page(path)
    if page in BELOW:
        content[0] += _tables_of_contents(path.parent, BELOW[page])


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _complete)
