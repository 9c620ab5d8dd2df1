"""Configuration of Sphinx for the site. `make site` builds the site from the Markdown pages that a git host shows.

The root of the sources is the root of the project. A link from a page to any file of the project therefore works in the
site, too: it leads to a page, or to a copy of the file. Nothing in the site is loaded from a network.
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
"""Deepest level of headings that get an anchor. The anchors are those of a git host."""

html_theme = "furo"
html_title = f"tilewright {version}"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # needs the text of pages, which a browser refuses to a page that is opened as a file
html_theme_options = {"navigation_with_keys": True}

PAGES_OF = {
    "accuracy": [
        "measurements",
        "known-errors",
        "gemmini",
        "gpu-products",
        "attention",
        "tpu",
        "eyeriss",
        "core-arrays",
        "error-bars",
        "three-chips",
        "three-chips-terms",
    ],
    "artifacts": ["files", "audit", "records", "report", "paper-figures", "tables", "several-cores", "gallery"],
    "bottlenecks": ["explain", "ports", "advise", "several-cores", "results-page"],
    "compare": ["hardware", "two-runs", "search-again", "design-spaces", "systems", "explore", "decide", "fronts"],
    "formats": ["one-core", "several-cores", "links", "mapping", "spaces-and-cases"],
    "mappings": ["mapping-file", "optimum", "front"],
    "model": [
        "energy",
        "latency",
        "waiting",
        "zeros",
        "control",
        "guarantees",
        "switches",
        "switches-ports",
        "switches-memories",
        "data-between-layers",
        "in-memory-arrays",
    ],
    "multi-core-model": [
        "computation-nodes",
        "node-graph",
        "node-costs",
        "large-operands",
        "allocation",
        "scheduling",
        "transfers",
        "stream-2023",
        "schedule-checks",
    ],
    "multi-core": ["run", "fuse", "fuse-steps", "cuts", "report", "interactive-schedule"],
    "proofs": [
        "exact-search",
        "exact-latency",
        "exact-labels",
        "exact-rounds",
        "network-bounds",
        "network-front",
        "fronts",
        "bounds",
        "bounds-traffic",
        "bounds-phases",
        "bounds-ordered-phases",
        "every-plan",
        "every-plan-bounds",
        "exact-allocation",
        "relaxation",
    ],
    "stages": ["pipelines", "own-stage", "several-cores", "catalogue", "multi-core-catalogue"],
    "tiles": ["depth-first", "optimal-depth-first", "depth-first-bounds", "defines", "attention", "optimal-attention"],
}
"""Overview page -> the pages on its topic, in the order in which to read them."""

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
    **{f"docs/{topic}": {"Pages": [f"{topic}/{part}" for part in parts]} for topic, parts in PAGES_OF.items()},
}
"""Pages below a page, by title of their section. The pages do not list them, because git hosts show folders instead."""


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
    """True if an entry has a page. An entry without a star is always True, because Sphinx reports a missing page."""
    return "*" not in entry or any(path.suffix in source_suffix for path in folder.glob(entry + ".*"))


def _complete(app: Sphinx, page: str, content: list[str]) -> None:
    """Add content that a page has only in the site: a notebook is converted to Markdown, and a page of BELOW gets its
    navigation.
    """
    path = Path(app.env.doc2path(page))
    if path.suffix == ".ipynb":
        content[0] = notebook_page(path)
    if page in BELOW:
        content[0] += _tables_of_contents(path.parent, BELOW[page])


def setup(app: Sphinx) -> None:
    """Connect `_complete` to the event of Sphinx for a page that is read. Sphinx calls this function."""
    app.connect("source-read", _complete)
