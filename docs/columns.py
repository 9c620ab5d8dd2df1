"""Writes the columns of runs into the page that lists them: `python -m docs.columns`."""

from pathlib import Path

from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.steps import MULTI, SINGLE
from tilewright.results.run_columns import run_columns

PAGE = Path(__file__).resolve().parent / "artifacts.md"
BEGIN, END = "<!-- columns of runs -->\n", "<!-- end of columns -->"
OF = {"": "both", SINGLE: "one core", MULTI: "several cores"}


def columns_table() -> str:
    """The columns of `summary.csv` in their order, as a table of the page."""
    names = [
        (", ".join(f"`{name}`" for name in one_or_several(one)), OF[one.flow], one.sentence) for one in run_columns()
    ]
    rows = [("`run`", OF[""], "Name of the run."), *names]
    return "| column | of runs on | meaning |\n|---|---|---|\n" + "".join(
        f"| {' | '.join(cells)} |\n" for cells in rows
    )


def one_or_several(one: object) -> list[str]:
    """The names of an entry of the table."""
    return str(getattr(one, "key", None) or getattr(one, "keys", "")).split(", ")


def with_columns(text: str) -> str:
    """The page with the columns between its marks. Raises ValueError without them."""
    return with_part(text, BEGIN, END, columns_table())


if __name__ == "__main__":
    PAGE.write_text(with_columns(PAGE.read_text("utf-8")), "utf-8")
