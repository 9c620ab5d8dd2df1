"""Tables with any content, as text for the terminal."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from tilewright.base.harmless import ended_lines, terminal

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable, RichCast
    from rich.style import Style

TERMINAL_WIDTH = 120


def render(table: Table, width: int = TERMINAL_WIDTH) -> str:
    """Text of a table of the library `rich`, with at most `width` characters per line. The text is the same on every
    terminal. The title is one line.
    """
    title, table.title = table.title, None
    buffer = io.StringIO()
    # Layer names are text, even if they look like markup. The text must not depend on the current terminal.
    console = Console(
        file=buffer, width=width, color_system=None, markup=False, emoji=False, highlight=False, _environ={}
    )
    console.print(table)
    table.title = title
    return ended_lines([title] if title else []) + "".join(
        line.rstrip() + "\n" for line in buffer.getvalue().splitlines() if line.strip()
    )


class TextTable(Table):
    """Table whose cells are single lines of text, even if a name contains a line break. Headings may have several
    lines.
    """

    def add_row(
        self,
        *renderables: "ConsoleRenderable | RichCast | str | None",
        style: "str | Style | None" = None,
        end_section: bool = False,
    ) -> None:
        """Add a row of texts."""
        cells = (terminal(cell) if isinstance(cell, str) else cell for cell in renderables)
        super().add_row(*cells, style=style, end_section=end_section)


def text_table(title: str, names: Sequence[str], numbers: Sequence[str]) -> TextTable:
    """Empty table with left-aligned columns `names`, then right-aligned columns `numbers`."""
    table = TextTable(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table
