"""Rows as CSV, without pandas, which takes long to load."""

from typing import Any


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Rows of equal keys as CSV; '' for none."""
    import csv  # here, because --help starts faster without
    import io

    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()


def plain(value: object) -> str:
    """A cell: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
