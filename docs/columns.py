"""Writes tables from the code into the pages that list them: columns of tables, files of reports, topologies.

Usage: `python -m docs.columns`.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.report_files import ONE_CORE_FILES, SEVERAL_CORES_FILES, ReportFile
from tilewright.base.steps import MULTI, SINGLE
from tilewright.hardware.topologies import BUILT_IN, OF_STREAM
from tilewright.results.columns import Column, Table
from tilewright.results.multi import layer_places, use_tables
from tilewright.results.run_columns import NAME, run_columns
from tilewright.results.tables import LAYERS

DOCS = Path(__file__).resolve().parent
RUNS = "runs"
OF = {"": "both", SINGLE: "one core", MULTI: "several cores"}
TABLES: Mapping[str, Mapping[str, Table[Any]]] = {
    "artifacts/tables.md": {RUNS: (NAME, *run_columns())},
    "artifacts/paper-figures.md": {"layers": LAYERS},
    "multi-core/report.md": {
        "layers": layer_places.LAYERS,
        "cores": use_tables.CORES,
        "memories": use_tables.MEMORIES,
        "links": use_tables.LINKS,
    },
}
"""Tables of columns in pages. Each page, named by its path from docs/, has pairs (name of the rows of a table, columns
of the table).
"""
FILES: Mapping[str, Iterable[ReportFile]] = {
    "artifacts/report.md": ONE_CORE_FILES,
    "multi-core/report.md": SEVERAL_CORES_FILES,
}
"""Files of reports that pages list, by page."""
TOPOLOGIES = "formats/several-cores.md"
"""Page that lists the topologies."""


def columns_table(rows: str, table: Table[Any]) -> str:
    """Columns of a table in their order, as a Markdown table. For runs, the table also names the flows that have each
    column.
    """
    if rows != RUNS:
        return _table("column | meaning", (f"{names_of(one)} | {one.sentence}" for one in table))
    lines = (f"{names_of(one)} | {OF[one.flow]} | {one.sentence}" for one in table)
    return _table("column | for runs on | meaning", lines)


def files_table(files: Iterable[ReportFile], page: str) -> str:
    """Files of a report in their order, as a Markdown table for a page (path from docs/). A figure is also written as
    PNG.
    """
    lines = (
        f"`{file.name}`{', `.png`' if file.name.endswith('.svg') else ''} | {_linked(file.content, page)}"
        for file in files
    )
    return _table("file | content", lines)


def _linked(text: str, page: str) -> str:
    """Text whose links start from docs/, with links that start from a page (path from docs/)."""

    def link(found: re.Match[str]) -> str:
        path, mark, anchor = found[1].partition("#")
        if ":" in path:
            return found[0]
        place = posixpath.relpath(path, posixpath.dirname(page)) if path != page or not anchor else ""
        return f"]({place}{mark}{anchor})"

    return re.sub(r"\]\(([^)]*)\)", link, text)


def topologies_table() -> str:
    """Built-in topologies in their order, as a Markdown table. A plus marks topologies that Stream does not have."""
    return _table(
        "`type` | links | sizes",
        (
            f"`{name}`{'' if name in OF_STREAM else ' +'} | {shape.links} |"
            f" {', '.join(f'`{key}`' for key in shape.keys)}"
            for name, shape in BUILT_IN.items()
        ),
    )


def _table(heading: str, lines: Iterable[str]) -> str:
    rule = "|".join(["---"] * len(heading.split(" | ")))
    return "".join(f"| {line}".rstrip() + " |\n" for line in (heading, *lines)).replace("\n", f"\n|{rule}|\n", 1)


def names_of(one: Any) -> str:
    """Names of an entry of a table."""
    keys = one.key if isinstance(one, Column) else one.keys
    return ", ".join(f"`{name}`" for name in keys.split(", "))


def _parts(page: str) -> Mapping[str, str]:
    """Generated parts of a page: pairs (name in the marks of the part, text)."""
    parts = {f"columns of {rows}": columns_table(rows, table) for rows, table in TABLES.get(page, {}).items()}
    if page in FILES:
        parts["files of the report"] = files_table(FILES[page], page)
    if page == TOPOLOGIES:
        parts["topologies"] = topologies_table()
    return parts


PARTS: Mapping[str, Mapping[str, str]] = {
    page: _parts(page) for page in (*TABLES, *(page for page in FILES if page not in TABLES), TOPOLOGIES)
}
"""Generated parts of each page: pairs (name in the marks of the part, text)."""


def with_parts(text: str, page: str) -> str:
    """Text of a page with the generated parts between their marks. Raises ValueError if a mark is missing."""
    for name, part in PARTS[page].items():
        text = with_part(text, f"<!-- {name} -->\n", f"<!-- end of {name} -->", part)
    return text


if __name__ == "__main__":
    for name in PARTS:
        (DOCS / name).write_text(with_parts((DOCS / name).read_text("utf-8"), name), "utf-8")
