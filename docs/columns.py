"""Writes the columns of tables into the pages that list them: `python -m docs.columns`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.steps import MULTI, SINGLE
from tilewright.results.columns import Column, Table
from tilewright.results.multi import layer_places, use_tables
from tilewright.results.run_columns import NAME, run_columns
from tilewright.results.tables import LAYERS

DOCS = Path(__file__).resolve().parent
RUNS = "runs"
OF = {"": "both", SINGLE: "one core", MULTI: "several cores"}
TABLES: Mapping[str, Mapping[str, Table[Any]]] = {
    "artifacts.md": {RUNS: (NAME, *run_columns()), "layers": LAYERS},
    "multi-core.md": {
        "layers": layer_places.LAYERS,
        "cores": use_tables.CORES,
        "memories": use_tables.MEMORIES,
        "links": use_tables.LINKS,
    },
}
"""Tables that pages list: for each page, pairs (name of the rows of a table, columns of the table)."""


def columns_table(rows: str, table: Table[Any]) -> str:
    """Columns of a table in their order, as a Markdown table. For runs, the table also names the flows that have each
    column.
    """
    has_flow = rows == RUNS
    heading = "| column | of runs on | meaning |\n|---|---|---|\n" if has_flow else "| column | meaning |\n|---|---|\n"
    return heading + "".join(
        f"| {' | '.join([names_of(one), *([OF[one.flow]] if has_flow else []), one.sentence])} |\n" for one in table
    )


def names_of(one: Any) -> str:
    """Names of an entry of a table."""
    keys = one.key if isinstance(one, Column) else one.keys
    return ", ".join(f"`{name}`" for name in keys.split(", "))


def with_columns(text: str, page: str) -> str:
    """Text of a page with the columns between the page's marks. Raises ValueError if the marks are missing."""
    for rows, table in TABLES[page].items():
        text = with_part(
            text, f"<!-- columns of {rows} -->\n", f"<!-- end of columns of {rows} -->", columns_table(rows, table)
        )
    return text


if __name__ == "__main__":
    for name in TABLES:
        (DOCS / name).write_text(with_columns((DOCS / name).read_text("utf-8"), name), "utf-8")
