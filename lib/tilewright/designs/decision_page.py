"""Page of a decision as one HTML file, which works offline and on small screens, in light and dark mode."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.base.harmless import html
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import (
    SHARED_COMMANDS,
    TOPICS,
    Statement,
    heading,
    own_commands,
    shared_commands,
    table_cells,
)
from tilewright.results.text_tables import html_table

_PAGE = Path(__file__).resolve().parent / "decision_page.html"


def decision_page(decision: Decision, made: Sequence[Statement]) -> str:
    """Text of the HTML file. It has the same statements as the text for the terminal."""
    heads, rows = table_cells(decision)
    assumed = "".join(f"<li>{html(one)}</li>" for one in decision.answer.assumptions)
    note = f"<p>{html(decision.table_note)}</p>" if decision.table_note else ""
    shared = shared_commands(made)
    commands = f"<h2>{html(SHARED_COMMANDS)}</h2>{_commands(shared)}" if shared else ""
    parts = {
        "TITLE": html(heading(decision)),
        "TABLE": html_table(heads, rows, texts=3) + note,
        "STATEMENTS": "\n".join(_sections(made)),
        "ASSUMPTIONS": f"<ul>{assumed}</ul>{commands}",
    }
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], _PAGE.read_text("utf-8"))


def _sections(made: Sequence[Statement]) -> Iterator[str]:
    shared = shared_commands(made)
    for topic in TOPICS:
        own = [one for one in made if one.topic == topic]
        if own:
            yield f"<h2>{html(topic)}</h2>"
        for one in own:
            yield f"<p>{html(one.text)}</p>{_commands(own_commands(one, shared))}"


def _commands(commands: Sequence[str]) -> str:
    return "".join(f"<pre>{html(command)}</pre>" for command in commands)
