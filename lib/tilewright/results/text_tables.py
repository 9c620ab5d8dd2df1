"""Tables with any content as CSV, Parquet and HTML, and texts of their cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.seals import sealed_parquet
from tilewright.base.harmless import csv_text, html

if TYPE_CHECKING:
    import pandas


NOTHING = "-"
WORKING_SHARES = "share of working units along each side of the array, while the array computes"
"""Title of a list with the share of working units for each side of the array."""
SMALLEST_SHOWN = 0.001


def write_csv(table: "pandas.DataFrame", path: Path) -> None:
    """Write a table with full precision, so that `from_csv_table` reads the same numbers and names."""
    write_atomically(path, csv_text(table))


def write_parquet(table: "pandas.DataFrame", path: Path) -> None:
    """Write a table as Parquet, with a digest (seal) that readers use to verify the file."""
    write_atomically(path, sealed_parquet(table.to_parquet(index=False)))


def spatial_text(spatial_mapping: Mapping[str, Mapping[str, int]]) -> str:
    """Text of the spatial mapping of a record on one line, such as `D1: K 32, C 2; D2: OX 4`."""
    return "; ".join(
        f"{array_dimension}: " + (", ".join(f"{dimension} {factor}" for dimension, factor in factors.items()) or "-")
        for array_dimension, factors in spatial_mapping.items()
    )


def millions(value: float) -> str:
    """Text of a number in millions, with few digits."""
    scaled = value / 1e6
    return f"{scaled:,.1f}" if scaled >= 10 else f"{scaled:.3g}"


def share_text(part: float, whole: float, threshold: float = SMALLEST_SHOWN) -> str:
    """Text of a part as a percentage of the whole; `-` if the whole is 0.

    If the share is below `threshold`, but rounding would show `threshold`, the text begins with `<`. A positive share
    below SMALLEST_SHOWN is shown as `<` and SMALLEST_SHOWN.
    """
    if not whole:
        return NOTHING
    if 0 < part < SMALLEST_SHOWN * whole:
        return f"<{SMALLEST_SHOWN:.1%}"
    told = f"{part / whole:.1%}"
    return f"<{told}" if part < threshold * whole and told == f"{threshold:.1%}" else told


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """HTML table. The first `texts` columns have texts, and all other columns have numbers."""
    ends = ["" if number < texts else ' class="number"' for number in range(len(heads))]
    head = _html_cells("th", ends, heads)
    body = "".join(f"<tr>{_html_cells('td', ends, row)}</tr>\n" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def _html_cells(element: str, ends: Sequence[str], cells: Sequence[str]) -> str:
    return "".join(f"<{element}{end}>{html(cell)}</{element}>" for end, cell in zip(ends, cells, strict=True))
