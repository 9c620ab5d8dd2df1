"""The page on plug-ins has complete tables of refusing commands, quantities and kinds."""

import ast
import re
from pathlib import Path
from typing import get_args

from tilewright.base.registry import KINDS
from tilewright.hardware.attributes import Owner, Quantity

from docs.check_docs import DOCS, ROOT

PAGE = (DOCS / "plug-ins.md").read_text("utf-8")
PACKAGE = ROOT / "lib" / "tilewright"
TERMS = {"further_energy_terms": "energy", "further_latency_terms": "latency", "added_latency_terms": "latency"}
"""Function that gives the terms of a core -> kind of these terms."""
COMMANDS = {
    "designs/pricing.py": "tilewright front",
    "tiles/depth_first/bounds.py": "tilewright depth-first --optimum",
    "tiles/depth_first/schedule.py": "tilewright depth-first --reading defines",
}
"""Module that refuses terms -> command that runs the module."""


def refused(path: Path) -> set[str]:
    """Kinds of terms that a module tests in an `if` that reports a problem."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.If) and "Problem(" in "".join(map(ast.unparse, node.body)):
            found |= {kind for name, kind in TERMS.items() if f"{name}(" in ast.unparse(node.test)}
    return found


def table_after(line: str) -> dict[str, str]:
    """The first two cells of each row of the table after a line of the page, without code marks."""
    lines = PAGE.split(line, 1)[1].lstrip("\n").split("\n\n")[0].splitlines()[2:]
    rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in lines if row.startswith("|"))
    return {row[0].strip("`"): row[1] for row in rows}


def test_commands_that_refuse_terms() -> None:
    """The page lists each command that refuses terms of plug-ins, with the kinds of terms."""
    refusing = {path.relative_to(PACKAGE).as_posix(): refused(path) for path in PACKAGE.rglob("*.py")}
    refusing = {name: kinds for name, kinds in refusing.items() if kinds and not name.startswith("cost/")}
    listed = table_after("These commands refuse terms of plug-ins:")
    assert listed == {
        COMMANDS[name]: " and ".join(f"{kind} terms" for kind in sorted(kinds)) for name, kinds in refusing.items()
    }


def test_quantities_and_owners() -> None:
    """The page has a row for each quantity of an attribute, and a line for each owner."""
    assert tuple(table_after("<!-- quantities -->")) == get_args(Quantity)
    section = PAGE.split("The owner (`of`) says what has the key:", 1)[1].split("\n\n")[1]
    assert tuple(re.findall(r"^\* `(\w+)`", section, re.MULTILINE)) == get_args(Owner)


def test_kinds() -> None:
    """The page has a row for each kind of plug-in."""
    assert table_after("## What a plug-in can add").keys() == KINDS.keys()
