"""The numbers of docs/accuracy.md#measurements-by-others, made by running the court.

`python -m tilewright_evidence.court.document docs/accuracy.md [FOLDER]` writes between the
marks of that page what the samples of the package give, and, with the folder of the full sets, what those give.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.harmless import markdown

from tilewright_evidence.court.verb import Heard, court
from tilewright_evidence.court.verdict import VerdictPart, set_text

SAMPLE, FULL = "sample", "full"


def mark(kind: str, name: str) -> tuple[str, str]:
    """The marks between which the numbers of a set stand."""
    return f"<!-- {kind} {name}: made by tilewright_evidence.court.document -->", f"<!-- end of {kind} {name} -->"


def blocks(kind: str, data: Path | None) -> dict[str, str]:
    """The text of each set: from the samples, or from the folder of the full sets."""
    heard = court(sample=True) if data is None else court(data=data)
    return {one.court_set.name: full_text(one) if kind == FULL else sample_text(one) for one in heard}


def sample_text(one: Heard) -> str:
    """The table of a sample."""
    return f"```text\n{set_text(one.court_set, one.parts)}\n```\n"


def full_text(one: Heard) -> str:
    """Table, constants and causes of a full set."""
    lines = [f"```text\n{set_text(one.court_set, one.parts)}\n```\n", "| constant | value | meaning |\n|---|---|---|"]
    for device, constants in one.court_set.constants.items():
        lines += [
            f"| `{device}`: `{constant.name}` | {constant.value:g} {constant.unit} | {constant.meaning} |"
            for constant in constants
        ]
    if not any(one.court_set.constants.values()):
        lines.pop()
    lines.append(
        f"\nFitted to: {one.court_set.rule}.\n\n| part | limited by | rows | median error | bias |\n"
        "|---|---|---|---|---|"
    )
    lines += _cause_rows(one.parts)
    return "\n".join(lines) + "\n"


def _cause_rows(parts: Sequence[VerdictPart]) -> list[str]:
    return [
        f"| {markdown(part.name)} | {markdown(cause)} | {errors.rows:,} | {errors.median:.1%} | {errors.bias:+.1%} |"
        for part in parts
        for cause, errors in part.causes.items()
    ]


def with_blocks(page: str, kind: str, texts: dict[str, str]) -> str:
    """The page with the numbers of each set between its marks. Raises ValueError where marks are missing."""
    for name, text in texts.items():
        page = with_part(page, *mark(kind, name), f"\n{text}")
    return page


def main(arguments: Sequence[str]) -> None:
    """Write the page."""
    page = Path(arguments[0])
    text = with_blocks(page.read_text(), SAMPLE, blocks(SAMPLE, None))
    if len(arguments) > 1:
        text = with_blocks(text, FULL, blocks(FULL, Path(arguments[1])))
    write_atomically(page, text)


__all__ = ["FULL", "SAMPLE", "blocks", "main", "with_blocks"]

if __name__ == "__main__":
    main(sys.argv[1:])
