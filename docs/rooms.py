"""Writes the rooms (packages and modules with a fixed place in the order of imports) into the pages that list them.

Usage: `python -m docs.rooms`. The rooms are listed in the order of imports, which a test checks. The text for a room is
the first paragraph of its docstring.
"""

import ast
import re
from pathlib import Path

from tilewright.base.artifacts.marked_pages import with_part

from tests.unit.test_import_direction import PACKAGE, ROOMS

ROOT = Path(__file__).resolve().parents[1]
WITH_ROOMS = (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md")
BEGIN, END = "<!-- rooms -->\n", "<!-- end of rooms -->"


def rooms() -> str:
    """Lines of the list of rooms, one for each room. A room comes after all rooms that it imports."""
    return "".join(f"* `{_shown(room)}`: {_sentence(room)}\n" for room in ROOMS)


def with_rooms(text: str) -> str:
    """Text of a page with the rooms between its marks. Raises ValueError if the marks are missing."""
    return with_part(text, BEGIN, END, rooms())


def _shown(room: str) -> str:
    place = room.replace(".", "/")
    return f"{place}/" if (PACKAGE / place).is_dir() else f"{place}.py"


def _sentence(room: str) -> str:
    place = PACKAGE / room.replace(".", "/")
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return re.sub(r"\s+", " ", text.partition("\n\n")[0]).removeprefix("tilewright: ")


if __name__ == "__main__":
    for page in WITH_ROOMS:
        page.write_text(with_rooms(page.read_text("utf-8")), "utf-8")
