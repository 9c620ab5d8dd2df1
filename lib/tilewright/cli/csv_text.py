"""Rows as CSV, without pandas, which takes long to load."""

from tilewright.base import harmless
from tilewright.base.json_values import JsonObject


def csv_text(rows: list[JsonObject]) -> str:
    """Rows of equal keys as CSV; '' for none."""
    import csv  # here, because --help starts faster without
    import io

    buffer = io.StringIO()
    if rows:
        end = harmless.csv_line_end(cell for row in rows for cell in (*row, *row.values()))
        writer = csv.writer(buffer, lineterminator=end)
        writer.writerow(map(harmless.csv, rows[0]))
        writer.writerows([harmless.csv(row[name]) for name in rows[0]] for row in rows)
    return buffer.getvalue()


def plain(value: object) -> str:
    """A cell: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
