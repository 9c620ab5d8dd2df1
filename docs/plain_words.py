"""Phrases that the pages do without, since a plainer one says who does what."""

import re
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
