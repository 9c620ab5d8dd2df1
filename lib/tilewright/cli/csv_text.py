"""Conversion of rows to CSV text, without pandas, which is slow to import."""

from tilewright.base import harmless
from tilewright.base.json_values import JsonObject


def csv_text(rows: list[JsonObject]) -> str:
    """CSV text of rows that all have the same keys; '' if there are no rows."""
    import csv  # imported here: --help starts faster
    import io

    buffer = io.StringIO()
    if rows:
        end = harmless.csv_line_end(cell for row in rows for cell in (*row, *row.values()))
        writer = csv.writer(buffer, lineterminator=end)
        writer.writerow(map(harmless.csv, rows[0]))
        writer.writerows([harmless.csv(row[name]) for name in rows[0]] for row in rows)
    return buffer.getvalue()


def plain(value: object) -> str:
    """Text of a cell. Whole numbers have no decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
