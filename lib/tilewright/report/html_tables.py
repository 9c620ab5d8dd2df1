"""Tables in HTML pages, whatever they are of."""

import html
from collections.abc import Sequence


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """A table whose first columns are texts and whose others are numbers."""
    ends = ["" if number < texts else ' class="number"' for number in range(len(heads))]
    head = "".join(f"<th{end}>{html.escape(cell)}</th>" for end, cell in zip(ends, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{end}>{html.escape(cell)}</td>" for end, cell in zip(ends, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'
