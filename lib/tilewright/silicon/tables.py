"""The tables of the library, read once. They stand beside this module: a change of one reruns what depends on it."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent
CACTI, FILLED, NODES, ENTRIES, SOURCES = "cacti.csv", "cacti_filled.csv", "nodes.csv", "entries.csv", "sources.csv"
PLAIN, ZIGZAG_CALL = "plain", "zigzag_call"
"""Kinds of memories that CACTI was asked for: what designers mean, and what zigzag-dse asks for."""
FEWEST_WORDS = 32
"""Of a memory that CACTI finds."""
HP, LSTP = "itrs-hp", "itrs-lstp"
"""Cells and periphery of high performance, and of low standby power."""


class SramFigures(NamedTuple):
    """What CACTI says of a memory."""

    read_energy_pj: float
    """Of a word."""
    write_energy_pj: float
    """Of a word."""
    leakage_mw: float
    area_mm2: float
    access_time_ns: float
    cycle_time_ns: float


class SramGroup(NamedTuple):
    """Memories that differ in size and width alone."""

    setup: str
    node_nm: int
    cell_type: str


class SramPlace(NamedTuple):
    """A memory of a group."""

    size_bytes: int
    width_bits: int


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table as texts."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def sram_table(name: str) -> dict[SramGroup, dict[SramPlace, SramFigures]]:
    """The memories of CACTI, or those of FILLED."""
    found: dict[SramGroup, dict[SramPlace, SramFigures]] = {}
    for row in rows(name):
        group = SramGroup(row["setup"], int(row["node_nm"]), row["cell_type"])
        place = SramPlace(int(row["size_bytes"]), int(row["width_bits"]))
        figures = SramFigures(*(float(row[field]) for field in SramFigures._fields))
        found.setdefault(group, {})[place] = figures
    return found
