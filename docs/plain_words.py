"""Phrases that pages and docstrings do without, since a plainer one says who does what."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.check_docs import DOCS, ROOT, prose

WORN = {
    r"\btold\b(?!\W+apart)": "say who says it, and where: a message, a note, a column",
    r"\bnothing of this ends\b": "say what goes on",
    r"\b(?:it|that) is said\b": "say who says it, and where",
    r"\bbelongs into\b": "belongs in",
    r"\bsaid otherwise\b": "says otherwise",
}
"""Pattern -> what to write instead."""


def pages() -> list[Path]:
    """Those of docs/ without the notebooks, and the others that users read. The changes are a record, and stay."""
    others = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "config").rglob("*.md"))]
    return [*sorted(DOCS.rglob("*.md")), *others]


def worn_phrases(page: Path) -> list[str]:
    """One sentence for each worn phrase of a page, also for one that a line break cuts in two."""
    found = []
    text = "\n".join(prose(page.read_text("utf-8")))
    for pattern, instead in WORN.items():
        for match in re.finditer(pattern.replace(" ", r"\s+"), text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{page.name}:{line}: {' '.join(match[0].split())!r}: {instead}")
    return found


NAMES_NOTHING = {
    *("of", "in", "on", "by", "for", "from", "with", "to", "as", "at", "when", "while", "if", "that", "those"),
    *(
        "these",
        "it",
        "its",
        "they",
        "their",
        "them",
        "than",
        "without",
        "within",
        "between",
        "behind",
        "before",
        "after",
        "below",
    ),
    *("above", "beside", "under", "so", "also", "only", "not", "this", "there"),
}
"""First words of a docstring that do not name the thing; nor does `The same`."""
SHAPE = re.compile(r"^\[[^\]]*\]\s+")
"""Shape of an array, which may stand before the name; a tuple, as `(first, count)`, names its parts."""


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of the docstrings of classes, functions and attributes of a module."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for place, item in enumerate(body):
            value = item.value if isinstance(item, ast.Expr) else None
            if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
                continue
            is_first = place == 0 and isinstance(node, ast.FunctionDef | ast.ClassDef)
            if is_first or (place and isinstance(body[place - 1], ast.Assign | ast.AnnAssign)):
                yield item.lineno, " ".join(value.value.split())


def nameless(source: str) -> list[str]:
    """The docstrings of a module whose first word does not name the thing, each with its line."""
    found = []
    for line, text in docstrings(source):
        words = SHAPE.sub("", text).lower().split()
        first = words[0].strip("`,.:;") if words else ""
        if first in NAMES_NOTHING or words[:2] == ["the", "same"]:
            found.append(f"{line}: {text[:60]}")
    return found
