"""Published energies, areas and other figures, each with its source: arithmetic, SRAM, DRAM, wires and links.

The tables of the library are files in the folder of this module, and are read once. If a table changes, the pipeline
reruns the steps that use the table.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent
CACTI, FILLED, NODES, ENTRIES, SOURCES = "cacti.csv", "cacti_filled.csv", "nodes.csv", "entries.csv", "sources.csv"
PLAIN, ZIGZAG_CALL = "plain", "zigzag_call"
"""CACTI setups: the usual setup of designers, and the setup that zigzag-dse uses."""
FEWEST_WORDS = 32
"""Smallest number of words with which CACTI can compute a memory."""
HP, LSTP = "itrs-hp", "itrs-lstp"
"""CACTI cell types: high performance, and low standby power."""


class SramFigures(NamedTuple):
    """Figures of one memory from CACTI."""

    read_energy_pj: float
    """Energy in pJ of reading a word."""
    write_energy_pj: float
    """Energy in pJ of writing a word."""
    leakage_mw: float
    area_mm2: float
    access_time_ns: float
    cycle_time_ns: float


class SramGroup(NamedTuple):
    """Properties that all memories of a group share. The memories of a group differ only in size and width."""

    setup: str
    node_nm: int
    cell_type: str


class SramPlace(NamedTuple):
    """Size and width of a memory within its group."""

    size_bytes: int
    width_bits: int


def rows(name: str) -> list[dict[str, str]]:
    """Rows of a table of the library, with every cell as text."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def sram_table(name: str) -> dict[SramGroup, dict[SramPlace, SramFigures]]:
    """Group -> size and width -> figures of the SRAMs in a table of the library. The table `CACTI` holds results of
    CACTI. The table `FILLED` holds predicted figures of memories that `CACTI` lacks.
    """
    found: dict[SramGroup, dict[SramPlace, SramFigures]] = {}
    for row in rows(name):
        group = SramGroup(row["setup"], int(row["node_nm"]), row["cell_type"])
        place = SramPlace(int(row["size_bytes"]), int(row["width_bits"]))
        figures = SramFigures(*(float(row[field]) for field in SramFigures._fields))
        found.setdefault(group, {})[place] = figures
    return found


CHECKED = {
    "title": "the figure is in the title of the publication",
    "seen": "the figure was seen in a second public place",
    "arithmetic": "the figure is a sum or a product of figures of the source",
    "recalled": "the figure is NOT confirmed in a second place",
    "taken over": "no source has a figure for this type, so the figure is that of the most similar type",
}
"""Level of checking -> its meaning: how a figure was checked when it was entered into the library."""
REGISTER, DRAM = "register-40nm", "dram"


@dataclass(frozen=True)
class Source:
    """Publication that figures are taken from."""

    name: str
    publication: str
    note: str
    """Origin of the figures: measured, modelled or projected."""


@dataclass(frozen=True)
class LibraryEntry:
    """Entry of the library: one figure, or several figures of the same circuit."""

    name: str
    kind: str
    what: str
    node_nm: float | None
    energy_pj: float | None
    energy_range_pj: tuple[float, float] | None
    """Smallest and largest energy in pJ, if sources disagree or a source gives a range."""
    energy_per: str
    """Unit of work that needs the energy, such as an operation or a bit."""
    area_um2: float | None
    leakage_mw: float | None
    bandwidth_gbyte_s: float | None
    conditions: str
    sources: tuple[Source, ...]
    """Sources of the figures. The order is: energy, range of the energy, area, bandwidth."""
    checked: str
    """Level of checking of the figure, as a key of CHECKED."""


@cache
def entries() -> dict[str, LibraryEntry]:
    """Name -> library entry, in the order of the rows of `entries.csv`."""
    sources = {row["source"]: Source(row["source"], row["publication"], row["note"]) for row in rows(SOURCES)}
    return {row["name"]: _entry(row, sources) for row in rows(ENTRIES)}


def _entry(row: dict[str, str], sources: dict[str, Source]) -> LibraryEntry:
    low, high = _number(row["energy_low_pj"]), _number(row["energy_high_pj"])
    return LibraryEntry(
        name=row["name"],
        kind=row["kind"],
        what=row["what"],
        node_nm=_number(row["node_nm"]),
        energy_pj=_number(row["energy_pj"]),
        energy_range_pj=None if low is None or high is None else (low, high),
        energy_per=row["energy_per"],
        area_um2=_number(row["area_um2"]),
        leakage_mw=_number(row["leakage_mw"]),
        bandwidth_gbyte_s=_number(row["bandwidth_gbyte_s"]),
        conditions=row["conditions"],
        sources=tuple(sources[name] for name in (row["source"], *row["further_sources"].split())),
        checked=row["checked"],
    )


def _number(text: str) -> float | None:
    return float(text) if text else None


def dram_types() -> tuple[str, ...]:
    """Names of the DRAM types that a hardware file can give for a memory."""
    return tuple(entry.name for entry in entries().values() if entry.kind == DRAM and entry.bandwidth_gbyte_s)
