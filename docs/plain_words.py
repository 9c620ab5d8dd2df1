"""Phrases that pages, docstrings and messages must not use, because plainer phrases exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.check_docs import DOCS, ROOT, prose, shown

WORN = {
    r"\btold\b(?!\W+apart)": "say who says it, and where: a message, a note, a column",
    r"\bnothing of this ends\b": "say what goes on",
    r"\b(?:it|that) is said\b": "say who says it, and where",
    r"\bbelongs into\b": "belongs in",
    r"\bsaid otherwise\b": "says otherwise",
}
"""Phrases to replace: pattern of the phrase -> text that says which words to write instead."""


def pages() -> list[Path]:
    """Pages for users: those of docs/ without the notebooks, and those in other folders. The changelog is left out,
    because it is a record.
    """
    others = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "config").rglob("*.md"))]
    return [*sorted(DOCS.rglob("*.md")), *others]


def worn_phrases(page: Path) -> list[str]:
    """Sentences, one for each phrase of a page that must be replaced. A phrase is found even if a line break divides
    it.
    """
    found = []
    text = "\n".join(prose(page.read_text("utf-8")))
    for pattern, instead in WORN.items():
        for match in re.finditer(pattern.replace(" ", r"\s+"), text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{shown(page)}:{line}: {' '.join(match[0].split())!r}: {instead}")
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
"""Words that may not begin a docstring, because they do not name the thing. `The same` may not begin a docstring,
either.
"""
SHAPE = re.compile(r"^\[[^\]]*\]\s+")
"""Pattern of the shape of an array, which may stand before the name. The pattern also covers a tuple of names such as
`(first, count)`.
"""


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Pairs (line, text) of the docstrings of classes, functions and attributes of a module."""
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
    """Docstrings of a module whose first word does not name the thing, each with its line."""
    found = []
    for line, text in docstrings(source):
        words = SHAPE.sub("", text).lower().split()
        first = words[0].strip("`,.:;") if words else ""
        if first in NAMES_NOTHING or words[:2] == ["the", "same"]:
            found.append(f"{line}: {text[:60]}")
    return found


UNCLEAR = {
    r"\bturns? (?:the|this) order\b": "reverses the order",
    r"\b(?:better|worse|smaller|larger|faster|slower) (?:over|for) ": "say what the other side of the comparison is",
    r"\b(?:with|without) (?:any|the|a) [a-z ]+(?:of \{\} )?\{\} (?:is|are|has) ": "put a comma before the subject",
    r"\bthat exists? once\b": "with one instance",
    r"\bso that (?:it|they|no \w+) (?:is|are|cannot)\b": "so, for a consequence",
    r"\bcannot be held\b": "say what cannot stay, and where",
}
"""Phrases that a reader of a message reads twice: pattern of the phrase -> text that says which words to write instead.
`{}` stands for a value.
"""


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Pairs (line, text) of the texts of a module that are not docstrings. `{}` stands for a value."""
    tree = ast.parse(source)
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart.update(id(part) for part in node.values)
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.lineno, node.value


def unclear_messages(source: str) -> list[str]:
    """Sentences, one for each phrase in the messages of a module that must be replaced."""
    return [
        f"{line}: {match[0]!r}: {instead}"
        for line, text in sorted(messages(source))
        for pattern, instead in UNCLEAR.items()
        for match in re.finditer(pattern, text)
    ]
