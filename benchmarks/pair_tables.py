"""Tables of measurements on pairs of a shipped core and a network. Programs print these tables and write them into
README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

PAGE = Path(__file__).resolve().parent / "README.md"


class PairRow(Protocol):
    """Row of one pair."""

    @property
    def cells(self) -> str:
        """Row of the table, as text."""


Row = TypeVar("Row", bound=PairRow)


def measure_pairs(
    description: str,
    pairs: tuple[Sequence[str], Sequence[str]],
    measured: Callable[[str, str, Path], Row],
    text_of: Callable[[list[Row]], str],
    marks: tuple[str, str],
) -> None:
    """Measure all pairs (core, network), or the pairs that the command line names. Print the table.

    With `--write`, the table replaces the text between two marks in README.md.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", nargs="*", default=pairs[0])
    parser.add_argument("--networks", nargs="*", default=pairs[1])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    asked = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for core in asked.cores:
            for network in asked.networks:
                rows.append(measured(core, network, Path(folder) / f"{core}-{network}"))
                print(rows[-1].cells, file=sys.stderr, flush=True)
    text = text_of(rows)
    print(text)
    if asked.write:
        write_between(marks, text)


def write_between(marks: tuple[str, str], text: str) -> None:
    """Replace the text between two marks in README.md."""
    begin, end = marks
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")
